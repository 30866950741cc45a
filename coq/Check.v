(** The checker, and what it proves. *)

From Coq Require Import NArith List Bool Lia.
From Peakproof Require Import Sets Program Cost Reverse Graph Simulate Trap Certificate TrapCheck.
Import ListNotations.
Open Scope N_scope.

(** ** A certificate of the reversed program *)

Section Mirror.

Variable f : N -> N.

Definition mirror_chain (c : chain) : chain :=
  {| chain_line := chain_line c;
     weight := weight c;
     first := first c;
     links := map (fun l => (map f (fst l), snd l)) (links c) |}.

Definition mirror_exit (e : exit_lines) : exit_lines :=
  {| exit_line := exit_line e;
     exit_statement := f (exit_statement e);
     exit_chains := map mirror_chain (exit_chains e) |}.

Definition mirror_base (b : base_lines) : base_lines :=
  {| base_line := base_line b;
     base_anchors := map f (base_anchors b);
     base_chains := map mirror_chain (base_chains b);
     base_exits := map mirror_exit (base_exits b) |}.

End Mirror.

(** ** The checker *)

Section Check.

Variable p : program.

Definition rename {A} (f : N -> N) (o : outcome A) : outcome A :=
  match o with
  | Accepted a => Accepted a
  | Refuted line l => Refuted line (rename_lie f l)
  end.

(** [start] are the bytes before the first statement. *)
Definition check_proof (preds : table (list N)) (start : N) (c : certificate) : outcome unit :=
  let bound := the_bound c in
  match the_proof c with
  | No_proof => require (bound =? 0) (bound_line c) Bound_without_proof
  | Floor line v =>
      require (v <? statements p) line (Exit_is_none v);;
      require (bound <=? floor p v) line (Floor_is (floor p v))
  | Start line => require (bound <=? start) line (Floor_is start)
  | Search_proof s => Refuted (search_line s) Bound_without_proof
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
  end.

Definition check (c : certificate) : outcome unit :=
  let preds := predecessors p in
  require (well_formed p) 1 Access_outside;;
  require (check_legal p preds (the_order c)) (order_line c) Order_not_legal;;
  let (start, highest) := compute p (the_order c) in
  require (the_peak c =? highest) (peak_line c) (Peak_is highest);;
  require (the_bound c <=? the_peak c) (bound_line c) Bound_above_peak;;
  check_proof preds start c.

(** ** Soundness *)

Lemma check_proof_sound preds start c :
  well_formed p = true -> preds = predecessors p -> start = memory p nothing ->
  check_proof preds start c = Accepted tt ->
  forall order, legal p order -> the_bound c <= peak p order.
Proof.
  intros Hwf -> -> H order Hl. unfold check_proof in H. destruct (the_proof c) as [ | line v | line | t | s ]; [ | | | | discriminate ].
  - apply require_accepted, N.eqb_eq in H. lia.
  - apply bind_accepted in H. destruct H as ([] & Hv & H).
    apply require_accepted, N.ltb_lt in Hv. apply require_accepted, N.leb_le in H.
    etransitivity; [ exact H | now apply floor_bound ].
  - apply require_accepted, N.leb_le in H.
    etransitivity; [ exact H | apply start_bound ].
  - destruct (trap_reverse t).
    + apply (bound_reverse p); [ | assumption ].
      unfold rename in H.
      destruct (bind _ _) as [ [] | ] eqn:E in H; [ clear H | discriminate ].
      apply bind_accepted in E. destruct E as ([] & Hwf' & E).
      apply require_accepted in Hwf'.
      refine (check_trap_sound _ _ _ _ _ _ _ _ _ Hwf' _ E).
      intros u x Hx. now apply in_predecessors.
    + refine (check_trap_sound _ _ _ _ _ _ _ _ _ Hwf _ H order Hl).
      intros u x Hx. now apply in_predecessors.
Qed.

(** What is accepted is true: the order is legal, its peak is the one claimed, and no legal order
    has a peak below the bound. *)
Theorem check_sound c :
  check c = Accepted tt ->
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
  exact (check_proof_sound _ _ c Hwf eq_refl eq_refl H).
Qed.

(** So an accepted certificate whose peak is its bound shows an optimal order. *)
Corollary check_optimal c :
  check c = Accepted tt -> the_peak c = the_bound c -> optimal p (the_order c).
Proof.
  intros H E. apply check_sound in H. destruct H as (Hl & Hp & Hb).
  apply optimal_of_bound with (the_bound c); [ assumption | congruence | assumption ].
Qed.

End Check.
