(** Certificates as data (doc/certificate.md), and what a check answers. *)

From Coq Require Import NArith List Bool.
From Peakproof Require Import Sets Program.
Import ListNotations.
Open Scope N_scope.

(** Every part knows its line. *)

(** Storages joined by runs of statements. *)
Record chain := Chain {
  chain_line : N;
  weight : N;
  first : N;
  links : list (list N * N)
}.

Record exit_lines := Exit {
  exit_line : N;
  exit_statement : N;
  exit_chains : list chain
}.

(** A base, and the exits that it serves. *)
Record base_lines := Base {
  base_line : N;
  base_anchors : list N;
  base_chains : list chain;
  base_exits : list exit_lines
}.

Record trap_lines := Trap {
  trap_line : N;
  trap_reverse : bool;
  trap_count : N;        (* of the first (last) statements of the order *)
  trap_more : list N;
  trap_bases : list base_lines
}.

Record probe_lines := Probe {
  probe_line : N;
  probe_from : N;
  probe_to : N;
  probe_chains : list chain
}.

(** A step of the exact search: in the program, or ([reverse]) in the reversed one. *)
Inductive search_step :=
| Pivot (line : N) (reverse : bool) (v : N)
| Commit_each (line : N) (reverse : bool) (l : list N)
| Commit_to (line : N) (reverse : bool) (l : list N) (chains : list chain).

(** A line about the states of a block. *)
Inductive state_line :=
| Declare (line state v : N)
| Claim_next (line state : N)
| Claim_commit (line state to : N) (chains : list chain)
| Claim_reached (line state start : N) (path : list N).

Record block_lines := Block {
  block_line : N;
  block_statements : list N;
  block_chains : list chain;
  block_states : list state_line
}.

Record search_lines := Search_lines {
  search_line : N;
  search_steps : list search_step;
  explore_line : N;
  explore_reverse : bool;
  search_blocks : list block_lines
}.

Inductive proof :=
| No_proof
| Floor (line : N) (statement : N)
| Start (line : N)                   (* the bytes live before the first statement *)
| Trap_proof (t : trap_lines)
| Search_proof (s : search_lines).

Record certificate := Certificate {
  order_line : N;
  the_order : list N;
  peak_line : N;
  the_peak : N;
  bound_line : N;
  the_bound : N;
  the_probes : list probe_lines;
  the_proof : proof;
  last_line : N
}.

(** ** Lies, most of them about a statement or a storage *)

Inductive lie :=
| Access_outside
| Order_not_legal
| Peak_is (bytes : N)
| Bound_above_peak
| Bound_without_proof
| Floor_is (bytes : N)
| Trap_statement_twice (v : N)
| Trap_is_everything
| Trap_not_closed (v : N)
| Exit_is_none (v : N)
| Exit_twice (v : N)
| Exit_missing (v : N)
| Exit_costs (v bytes : N)
| Anchor_outside (v : N)
| Anchor_twice (v : N)
| Anchor_before_anchor (v : N)
| Anchor_not_before_exit (v : N)
| Storage_twice (s : N)
| Storage_unknown (s : N)
| Storage_not_begun (s : N)
| Storage_ended (s : N)
| Storage_fixed (s : N)              (* the exit accesses it, or it is constant *)
| Storage_overloaded (s : N)
| Run_broken (s : N)
| Probe_same (v : N)
| Probe_circle                       (* proves the bound, but something follows *)
| Statement_not_ready (v : N)
| Statement_outside (v : N)          (* of the middle, or of the block *)
| Statement_twice (v : N)
| Memory_grows (v : N)
| Memory_not_least (shown bytes : N)
| Chains_not_needed
| Not_comparable (v u : N)
| Pivot_outside (v : N)
| Blocks_empty
| Blocks_joined (v : N)              (* a dependence, or a storage, joins its block to another *)
| Blocks_miss (v : N)
| State_unknown (state : N)
| State_twice (state : N)
| State_not_claimed (state : N)
| State_claimed_twice (state : N)
| State_below_start (state : N)
| State_not_larger (state : N)
| State_other (state : N)
| Step_costs_too_much (v : N)
| Start_not_claimed
| No_block_stuck.

(** A lie about a reversed program, told about the program itself. *)
Definition rename_lie (f : N -> N) (l : lie) : lie :=
  match l with
  | Trap_statement_twice v => Trap_statement_twice (f v)
  | Trap_not_closed v => Trap_not_closed (f v)
  | Exit_is_none v => Exit_is_none (f v)
  | Exit_twice v => Exit_twice (f v)
  | Exit_missing v => Exit_missing (f v)
  | Exit_costs v bytes => Exit_costs (f v) bytes
  | Anchor_outside v => Anchor_outside (f v)
  | Anchor_twice v => Anchor_twice (f v)
  | Anchor_before_anchor v => Anchor_before_anchor (f v)
  | Anchor_not_before_exit v => Anchor_not_before_exit (f v)
  | Statement_not_ready v => Statement_not_ready (f v)
  | Statement_outside v => Statement_outside (f v)
  | Statement_twice v => Statement_twice (f v)
  | Memory_grows v => Memory_grows (f v)
  | Not_comparable v u => Not_comparable (f v) (f u)
  | Pivot_outside v => Pivot_outside (f v)
  | Blocks_joined v => Blocks_joined (f v)
  | Blocks_miss v => Blocks_miss (f v)
  | Step_costs_too_much v => Step_costs_too_much (f v)
  | _ => l
  end.

Inductive outcome (A : Type) :=
| Accepted (a : A)
| Refuted (line : N) (l : lie).
Arguments Accepted {A} a.
Arguments Refuted {A} line l.

Definition bind {A B} (o : outcome A) (f : A -> outcome B) : outcome B :=
  match o with
  | Accepted a => f a
  | Refuted line l => Refuted line l
  end.

Definition require (b : bool) (line : N) (l : lie) : outcome unit :=
  if b then Accepted tt else Refuted line l.

Notation "x <- e ; f" := (bind e (fun x => f)) (at level 100, e at next level, right associativity).
Notation "e ;; f" := (bind e (fun _ => f)) (at level 100, right associativity).

Fixpoint fold {A B} (f : A -> B -> outcome A) (l : list B) (a : A) : outcome A :=
  match l with
  | [] => Accepted a
  | b :: rest => a' <- f a b; fold f rest a'
  end.

Lemma bind_accepted {A B} (o : outcome A) (f : A -> outcome B) b :
  bind o f = Accepted b <-> exists a, o = Accepted a /\ f a = Accepted b.
Proof.
  destruct o as [ a | ]; cbn; split.
  - eauto.
  - now intros (a' & [= ->] & H).
  - discriminate.
  - now intros (a' & [=] & _).
Qed.

Lemma require_accepted b line l u : require b line l = Accepted u <-> b = true.
Proof. destruct u, b; cbn; split; congruence. Qed.

(** What holds at the start and is kept by each step holds at the end. *)
Lemma fold_invariant {A B} (f : A -> B -> outcome A) (I : list B -> A -> Prop) l a a' :
  fold f l a = Accepted a' ->
  (forall done b a a', In b l -> I done a -> f a b = Accepted a' -> I (done ++ [ b ]) a') ->
  I [] a -> I l a'.
Proof.
  intros H Hstep Ha. change (I l a') with (I ([] ++ l) a'). revert a Ha H. generalize (@nil B) as done.
  induction l as [ | b l IH ]; intros done a Ha H; cbn in H.
  - injection H as <-. now rewrite app_nil_r.
  - apply bind_accepted in H. destruct H as (a1 & H1 & H2).
    change (b :: l) with ([ b ] ++ l). rewrite app_assoc. apply IH with a1.
    + intros. eapply Hstep; eauto. now right.
    + apply Hstep with a; auto. now left.
    + assumption.
Qed.
