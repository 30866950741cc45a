(** The checker, and what it proves. *)

From Coq Require Import NArith List Bool Lia.
From Peakproof Require Import Sets Program Cost Reverse Graph Simulate Trap Certificate ChainCheck
  TrapCheck ProbeCheck SearchProof.
Import ListNotations.
Open Scope N_scope.

(** ** A trap of the reversed program *)

Definition mirror_exit (f : N -> N) (e : exit_lines) : exit_lines :=
  {| exit_line := exit_line e;
     exit_statement := f (exit_statement e);
     exit_chains := map (mirror_chain f) (exit_chains e) |}.

Definition mirror_base (f : N -> N) (b : base_lines) : base_lines :=
  {| base_line := base_line b;
     base_anchors := map f (base_anchors b);
     base_chains := map (mirror_chain f) (base_chains b);
     base_exits := map (mirror_exit f) (base_exits b) |}.

(** ** The checker *)

(** A proof of the certificate's bound for [p], which may have edges from probing. [start] are the
    bytes before the first statement. *)
Definition check_proof (p : program) (preds : table (list N)) (start : N) (c : certificate)
    : outcome unit :=
  let bound := the_bound c in
  match the_proof c with
  | No_proof => require (bound =? 0) (last_line c) Bound_without_proof
  | Floor line v =>
      require (v <? statements p) line (Exit_is_none v);;
      require (bound <=? floor p v) line (Floor_is (floor p v))
  | Start line => require (bound <=? start) line (Floor_is start)
  | Trap_proof t =>
      if trap_reverse t then
        let q := reverse p in
        let f := mirror p in
        rename f
          (require (well_formed q) 1 Access_outside;;
           check_trap q (predecessors q) bound (backwards p (the_order c)) (last_line c)
             (trap_line t) (trap_count t) (map f (trap_more t)) (map (mirror_base f) (trap_bases t)))
      else
        check_trap p preds bound (the_order c) (last_line c)
          (trap_line t) (trap_count t) (trap_more t) (trap_bases t)
  | Search_proof s => check_search p preds bound (last_line c) s
  end.

(** First the edges from probing. If they close a circle, they are all the proof. *)
Definition check_all_proofs (p : program) (preds : table (list N)) (start : N) (c : certificate)
    : outcome unit :=
  match the_probes c with
  | [] => check_proof p preds start c
  | probes =>
      r <- fold (check_probe (the_bound c)) probes (probed_start p preds);
      if circle r then
        match the_proof c with
        | No_proof => Accepted tt
        | Trap_proof t => Refuted (trap_line t) Probe_circle
        | Search_proof s => Refuted (search_line s) Probe_circle
        | _ => Refuted (last_line c) Probe_circle
        end
      else check_proof (probed_program r) (probed_preds r) start c
  end.

Definition check (p : program) (c : certificate) : outcome unit :=
  let preds := predecessors p in
  require (well_formed p) 1 Access_outside;;
  require (check_legal p preds (the_order c)) (order_line c) Order_not_legal;;
  let (start, highest) := compute p (the_order c) in
  require (the_peak c =? highest) (peak_line c) (Peak_is highest);;
  require (the_bound c <=? the_peak c) (bound_line c) Bound_above_peak;;
  check_all_proofs p preds start c.

(** ** Soundness *)

Lemma check_proof_sound p preds start c :
  well_formed p = true ->
  (forall u x, x < statements p -> In u (get [] x preds) <-> before p u x) ->
  start = memory p nothing ->
  check_proof p preds start c = Accepted tt ->
  forall order, legal p order -> the_bound c <= peak p order.
Proof.
  intros Hwf Hpreds -> H order Hl. unfold check_proof in H.
  destruct (the_proof c) as [ | line v | line | t | s ].
  - apply require_accepted, N.eqb_eq in H. lia.
  - apply bind_accepted in H. destruct H as ([] & Hv & H).
    apply require_accepted, N.ltb_lt in Hv. apply require_accepted, N.leb_le in H.
    etransitivity; [ exact H | now apply floor_bound ].
  - apply require_accepted, N.leb_le in H.
    etransitivity; [ exact H | apply start_bound ].
  - destruct (trap_reverse t).
    + apply (bound_reverse p); [ | assumption ].
      apply rename_accepted, bind_accepted in H. destruct H as ([] & Hwf' & H).
      apply require_accepted in Hwf'.
      refine (check_trap_sound _ _ _ _ _ _ _ _ _ Hwf' _ H).
      intros u x Hx. now apply in_predecessors.
    + exact (check_trap_sound _ _ _ _ _ _ _ _ _ Hwf Hpreds H order Hl).
  - exact (check_search_sound p preds (the_bound c) Hwf Hpreds (last_line c) s H order Hl).
Qed.

Lemma check_all_proofs_sound p start c :
  well_formed p = true -> start = memory p nothing ->
  check_all_proofs p (predecessors p) start c = Accepted tt ->
  forall order, legal p order -> the_bound c <= peak p order.
Proof.
  intros Hwf Hstart H order Hl.
  assert (Hpreds : forall u x, x < statements p -> In u (get [] x (predecessors p)) <-> before p u x).
  { intros u x Hx. now apply in_predecessors. }
  unfold check_all_proofs in H. destruct (the_probes c) as [ | e probes ].
  { now apply check_proof_sound with (1 := Hwf) (2 := Hpreds) (3 := Hstart) (4 := H). }
  apply bind_accepted in H. destruct H as (r & Hr & H).
  assert (Hok : probed_ok p (the_bound c) r).
  { refine (fold_invariant _ (fun _ r => probed_ok p (the_bound c) r) _ _ _ Hr _ _).
    - intros done e' r1 r2 _. apply check_probe_sound.
    - now apply probed_start_ok. }
  destruct (circle r) eqn:Hcircle; [ now apply (ok_circle p (the_bound c) r Hok) | ].
  destruct (N.lt_ge_cases (peak p order) (the_bound c)) as [ F | ]; [ | assumption ].
  destruct (ok_orders p (the_bound c) r Hok order Hl F) as [ A B ]. rewrite <- B.
  apply check_proof_sound with (probed_preds r) start; auto; try apply Hok.
  rewrite Hstart. symmetry. apply Hok.
Qed.

(** What is accepted is true: the order is legal, its peak is the one claimed, and no legal order
    has a peak below the bound. *)
Theorem check_sound p c :
  check p c = Accepted tt ->
  legal p (the_order c) /\
  peak p (the_order c) = the_peak c /\
  forall order, legal p order -> the_bound c <= peak p order.
Proof.
  unfold check. intro H.
  apply bind_accepted in H. destruct H as ([] & Hwf & H). apply require_accepted in Hwf.
  apply bind_accepted in H. destruct H as ([] & Hl & H).
  apply require_accepted, check_legal_sound in Hl.
  rewrite (compute_correct p Hwf _ Hl) in H.
  apply bind_accepted in H. destruct H as ([] & Hp & H). apply require_accepted, N.eqb_eq in Hp.
  apply bind_accepted in H. destruct H as ([] & _ & H).
  split; [ assumption | ]. split; [ congruence | ].
  exact (check_all_proofs_sound p _ c Hwf eq_refl H).
Qed.

(** So an accepted certificate whose peak is its bound shows an optimal order. *)
Corollary check_optimal p c :
  check p c = Accepted tt -> the_peak c = the_bound c -> optimal p (the_order c).
Proof.
  intros H E. apply check_sound in H. destruct H as (Hl & Hp & Hb).
  apply optimal_of_bound with (the_bound c); [ assumption | congruence | assumption ].
Qed.
