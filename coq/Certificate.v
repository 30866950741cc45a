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

Inductive proof :=
| No_proof
| Floor (line : N) (statement : N)
| Start (line : N)                   (* the bytes live before the first statement *)
| Trap_proof (t : trap_lines).

Record certificate := Certificate {
  order_line : N;
  the_order : list N;
  peak_line : N;
  the_peak : N;
  bound_line : N;
  the_bound : N;
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
| Run_broken (s : N).

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
