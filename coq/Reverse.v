(** The reversed program is a program, and each order costs the same backwards (THEORY.md 2). So a
    reverse trap is a trap of the reversed program. *)

From Coq Require Import NArith List Bool Lia Permutation.
From Peakproof Require Import Sets Program Cost.
Import ListNotations.
Open Scope N_scope.

Section Reverse.

Variable p : program.

Definition mirror (v : N) : N := statements p - 1 - v.

Definition reverse : program :=
  {| statements := statements p;
     storages := storages p;
     statement_of := fun v => statement_of p (mirror v);
     storage_of := fun s =>
       let r := storage_of p s in Storage (size r) (live_out r) (live_in r);
     pairs := map (fun pair => (mirror (snd pair), mirror (fst pair)))
       (filter (fun pair => (fst pair <? statements p) && (snd pair <? statements p)) (pairs p)) |}.

Definition backwards (order : list N) : list N := map mirror (rev order).

Lemma mirror_lt v : v < statements p -> mirror v < statements p.
Proof. unfold mirror. lia. Qed.

Lemma mirror_mirror v : v < statements p -> mirror (mirror v) = v.
Proof. unfold mirror. lia. Qed.

Lemma overlap_sym a b : overlap a b = overlap b a.
Proof.
  unfold overlap. destruct (bytes_of a) as [ [ ] | ], (bytes_of b) as [ [ ] | ]; auto.
  apply andb_comm.
Qed.

Lemma conflict_sym a b : conflict a b = conflict b a.
Proof. unfold conflict. now rewrite N.eqb_sym, (orb_comm (writes a)), overlap_sym. Qed.

Lemma touches_reverse v s : v < statements p -> touches reverse (mirror v) s = touches p v s.
Proof.
  intro H. unfold touches, accesses. cbn [reverse statement_of]. now rewrite mirror_mirror.
Qed.

Lemma before_reverse u x :
  u < statements p -> x < statements p -> before reverse (mirror x) (mirror u) <-> before p u x.
Proof.
  intros Hu Hx. unfold before. cbn [reverse statements pairs].
  assert (Hpairs : In (mirror x, mirror u) (map (fun pair => (mirror (snd pair), mirror (fst pair)))
    (filter (fun pair => (fst pair <? statements p) && (snd pair <? statements p)) (pairs p))) <->
    In (u, x) (pairs p)).
  { rewrite in_map_iff. split.
    - intros ([ y z ] & E & H). cbn [fst snd] in E.
      apply filter_In in H. cbn [fst snd] in H. rewrite andb_true_iff, !N.ltb_lt in H.
      injection E as E1 E2. unfold mirror in E1, E2.
      replace u with y by lia. replace x with z by lia. tauto.
    - intro H. exists (u, x). split; [ reflexivity | ].
      apply filter_In. cbn [fst snd]. rewrite andb_true_iff, !N.ltb_lt. auto. }
  rewrite Hpairs. unfold accesses. cbn [reverse statement_of]. rewrite !mirror_mirror by assumption.
  unfold mirror.
  split; intros (A & B & [ C | (C & a & b & D & E & F) ]);
    (split; [ lia | split; [ lia | ] ]); try (now left);
    right; (split; [ lia | ]); exists b, a; rewrite conflict_sym; auto.
Qed.

Lemma ancestor_reverse u v :
  u < statements p -> v < statements p ->
  ancestor reverse (mirror u) (mirror v) -> ancestor p v u.
Proof.
  intros Hu Hv H.
  assert (G : forall x y, ancestor reverse x y -> ancestor p (mirror y) (mirror x)).
  { assert (B : forall x y, before reverse x y -> before p (mirror y) (mirror x)).
    { intros x y B. destruct (before_range _ _ _ B) as [ Hx Hy ]. cbn in Hx, Hy.
      apply before_reverse; try now apply mirror_lt. now rewrite !mirror_mirror. }
    induction 1 as [ x y A | x z y A IH A' ].
    - apply parent. now apply B.
    - apply ancestor_trans with (mirror z); [ apply parent; now apply B | assumption ]. }
  apply G in H. now rewrite !mirror_mirror in H.
Qed.

Lemma ancestor_unreverse u v :
  u < statements p -> v < statements p ->
  ancestor p (mirror u) (mirror v) -> ancestor reverse v u.
Proof.
  intros Hu Hv H.
  assert (G : forall x y, ancestor p x y -> ancestor reverse (mirror y) (mirror x)).
  { induction 1 as [ x y A | x z y A IH A' ].
    - apply parent. destruct (before_range _ _ _ A). now apply before_reverse.
    - apply ancestor_trans with (mirror z); [ apply parent | assumption ].
      destruct (before_range _ _ _ A'). now apply before_reverse. }
  apply G in H. now rewrite !mirror_mirror in H.
Qed.

Lemma NoDup_backwards order : legal p order -> NoDup (backwards order).
Proof.
  intro Hl. apply NoDup_map.
  - intros u v Hu Hv E. apply in_rev in Hu, Hv.
    rewrite (legal_range p) in Hu, Hv by assumption. unfold mirror in E. lia.
  - apply NoDup_rev. now apply (legal_NoDup p).
Qed.

Lemma legal_reverse order : legal p order -> legal reverse (backwards order).
Proof.
  intro Hl. split.
  - apply NoDup_Permutation_bis.
    + now apply NoDup_backwards.
    + cbn [reverse statements]. rewrite length_ids. unfold backwards.
      rewrite map_length, rev_length. destruct Hl as [ H _ ].
      apply Permutation_length in H. rewrite length_ids in H. lia.
    + intros v H. unfold backwards in H. apply in_map_iff in H. destruct H as (u & <- & H).
      apply in_rev in H. rewrite (legal_range p) in H by assumption.
      apply in_ids. now apply mirror_lt.
  - intros done v rest E u Hu.
    destruct (before_range _ _ _ Hu) as [ Hun Hv ]. cbn [reverse statements] in Hun, Hv.
    assert (Hmu := mirror_lt u Hun). assert (Hmv := mirror_lt v Hv).
    assert (Hu' : before p (mirror v) (mirror u)).
    { apply before_reverse; auto. now rewrite !mirror_mirror. }
    (* In the order, mirror v stands before mirror u. *)
    assert (Hin : In (mirror u) order) by (now apply (legal_range p)).
    destruct (in_split _ _ Hin) as (l1 & l2 & E').
    assert (H1 : In (mirror v) l1) by (destruct Hl as [ _ Hl ]; eauto).
    (* So backwards, u stands before v. *)
    assert (Hnd : NoDup (backwards order)).
    { now apply NoDup_backwards. }
    assert (E2 : backwards order = backwards l2 ++ u :: backwards l1).
    { rewrite E'. unfold backwards. rewrite rev_app_distr. cbn [rev].
      rewrite !map_app. cbn [map]. rewrite mirror_mirror by assumption.
      now rewrite <- app_assoc. }
    assert (Hvl : In v (backwards l1)).
    { unfold backwards. apply in_map_iff. exists (mirror v).
      split; [ now apply mirror_mirror | now apply -> in_rev ]. }
    destruct (in_split _ _ Hvl) as (m1 & m2 & E3).
    rewrite E3 in E2.
    assert (E4 : backwards order = (backwards l2 ++ u :: m1) ++ v :: m2).
    { rewrite E2. now rewrite <- app_assoc. }
    rewrite E in E4, Hnd.
    assert (Hdone : done = backwards l2 ++ u :: m1) by (eapply NoDup_split; eauto).
    rewrite Hdone. apply in_elt.
Qed.

(** *** Costs *)

(** What runs after [v] in a state: all but [v] and what has run. *)
Lemma live_reverse S S' v s :
  v < statements p -> touches p v s = false ->
  (forall u, u < statements p -> u <> v -> S' (mirror u) = negb (S u)) ->
  live reverse S' s = live p S s.
Proof.
  intros Hv Ht H.
  assert (B : begun reverse S' s = negb (ended p S s)).
  { apply eq_iff_eq_true. rewrite begun_spec, negb_true_iff, <- not_true_iff_false, ended_spec.
    cbn [reverse storage_of live_in statements]. split.
    - intros [ A | (u & Hu & A & B) ] [ C D ]; [ congruence | ].
      assert (Hmu := mirror_lt u Hu). rewrite <- (mirror_mirror u Hu) in A, B.
      rewrite touches_reverse in A by assumption.
      rewrite H, (D _ Hmu A) in B; [ discriminate | assumption | congruence ].
    - intro A. destruct (live_out (storage_of p s)); [ now left | right ].
      destruct (existsb (fun u => touches p u s && negb (S u)) (ids (statements p))) eqn:E.
      + apply existsb_exists in E. destruct E as (u & Hu & E). apply in_ids in Hu.
        apply andb_true_iff in E. destruct E as [ E F ].
        exists (mirror u). split; [ now apply mirror_lt | ].
        rewrite touches_reverse, H; auto. congruence.
      + exfalso. apply A. split; [ reflexivity | ]. intros u Hu Hu'.
        destruct (S u) eqn:F; [ reflexivity | ]. apply not_true_iff_false in E. exfalso. apply E.
        apply existsb_exists. exists u. rewrite in_ids, Hu', F. auto. }
  assert (E : ended reverse S' s = negb (begun p S s)).
  { apply eq_iff_eq_true. rewrite negb_true_iff, <- not_true_iff_false, ended_spec, begun_spec.
    cbn [reverse storage_of live_out statements]. split.
    - intros [ A G ] [ C | (u & Hu & C & D) ]; [ congruence | ].
      assert (F := G (mirror u) (mirror_lt u Hu)). rewrite touches_reverse in F by assumption.
      specialize (F C). rewrite H, D in F; [ discriminate | assumption | congruence ].
    - intro A. split.
      + destruct (live_in (storage_of p s)); [ exfalso; apply A; now left | reflexivity ].
      + intros u Hu G. rewrite <- (mirror_mirror u Hu) in G |- *. assert (Hmu := mirror_lt u Hu).
        rewrite touches_reverse in G by assumption.
        rewrite H; [ | assumption | congruence ].
        destruct (S (mirror u)) eqn:F; [ | reflexivity ].
        exfalso. apply A. right. exists (mirror u). auto. }
  unfold live. rewrite B, E, negb_involutive. apply andb_comm.
Qed.

Lemma cost_reverse S S' v :
  v < statements p ->
  (forall u, u < statements p -> u <> v -> S' (mirror u) = negb (S u)) ->
  cost reverse S' (mirror v) = cost p S v.
Proof.
  intros Hv H. unfold cost. f_equal.
  - unfold work. cbn [reverse statement_of]. now rewrite mirror_mirror.
  - cbn [reverse storages]. apply sum_ext. intros s _. rewrite touches_reverse by assumption.
    destruct (touches p v s) eqn:Ht; [ reflexivity | ].
    now rewrite (live_reverse S S' v).
Qed.

Lemma cost_backwards order done v rest :
  legal p order -> order = done ++ v :: rest ->
  cost reverse (state_of (backwards rest)) (mirror v) = cost p (state_of done) v.
Proof.
  intros Hl E.
  assert (Hnd := legal_NoDup p order Hl).
  assert (Hr := fun u => legal_range p order u Hl).
  assert (Hv : v < statements p) by (apply Hr; rewrite E; apply in_elt).
  apply cost_reverse; [ assumption | ]. intros u Hu Huv.
  apply eq_iff_eq_true. rewrite negb_true_iff, <- not_true_iff_false, !state_of_spec.
  rewrite E in Hnd. split.
  - intros H Hd. unfold backwards in H. apply in_map_iff in H. destruct H as (w & F & H).
    apply in_rev in H.
    assert (Hw : w < statements p) by (apply Hr; rewrite E; apply in_or_app; cbn; auto).
    assert (w = u) by (unfold mirror in F; lia). subst w.
    apply in_split in Hd. destruct Hd as (l1 & l2 & ->).
    rewrite <- app_assoc in Hnd. cbn in Hnd. apply NoDup_remove_2 in Hnd.
    apply Hnd. apply in_or_app. right. apply in_or_app. cbn. auto.
  - intro H. unfold backwards. apply in_map_iff. exists u. split; [ reflexivity | ].
    apply -> in_rev. assert (Hin : In u order) by (now apply Hr).
    rewrite E in Hin. apply in_app_or in Hin. destruct Hin as [ | [ | ] ]; congruence || tauto.
Qed.

Lemma memory_reverse : statements p = 0 -> memory reverse nothing = memory p nothing.
Proof.
  intro H. unfold memory. cbn [reverse storages]. apply sum_ext. intros s _.
  unfold live, begun, ended. cbn [reverse statements storage_of live_in live_out]. rewrite H. cbn.
  unfold bytes. cbn [reverse storage_of size].
  destruct (live_in (storage_of p s)), (live_out (storage_of p s)); reflexivity.
Qed.

Theorem peak_reverse order : legal p order -> peak reverse (backwards order) = peak p order.
Proof.
  intro Hl.
  assert (X : forall x, x <= peak reverse (backwards order) <-> x <= peak p order).
  { intro x. rewrite !peak_spec.
    assert (Step :
      (exists done v rest, backwards order = done ++ v :: rest /\
        x <= cost reverse (state_of done) v) <->
      (exists done v rest, order = done ++ v :: rest /\ x <= cost p (state_of done) v)).
    { split.
      - intros (done & v & rest & E & H).
        unfold backwards in E.
        apply map_eq_app in E. destruct E as (l1 & l2 & E & <- & E2).
        apply map_eq_cons in E2. destruct E2 as (w & l3 & -> & <- & E3).
        assert (E4 : order = rev l3 ++ w :: rev l1).
        { rewrite <- (rev_involutive order), E, rev_app_distr. cbn. now rewrite <- app_assoc. }
        exists (rev l3), w, (rev l1). split; [ assumption | ].
        rewrite <- (cost_backwards order (rev l3) w (rev l1)) by assumption.
        unfold backwards. now rewrite rev_involutive.
      - intros (done & v & rest & E & H).
        exists (backwards rest), (mirror v), (backwards done). split.
        + rewrite E. unfold backwards. rewrite rev_app_distr. cbn. rewrite !map_app. cbn.
          now rewrite <- app_assoc.
        + now rewrite (cost_backwards order done v rest). }
    rewrite Step.
    destruct order as [ | v order' ] eqn:E.
    - (* no statements *)
      rewrite memory_reverse; [ reflexivity | ].
      destruct Hl as [ H _ ]. apply Permutation_length in H. rewrite length_ids in H. cbn in H. lia.
    - (* the first statement needs all that is there before it *)
      rewrite <- E in *.
      split; (intros [ H | H ]; [ right | now right ]).
      + destruct (exists_last (l := order)) as (l & w & F); [ congruence | ].
        apply Step. exists [], (mirror w), (backwards l). split.
        * rewrite F. unfold backwards. rewrite rev_app_distr. reflexivity.
        * etransitivity; [ exact H | apply memory_le_cost ].
      + exists [], v, order'. split; [ assumption | ].
        etransitivity; [ exact H | apply memory_le_cost ]. }
  apply N.le_antisymm; apply X; reflexivity.
Qed.

(** A lower bound for the reversed program is one for the program. *)
Corollary bound_reverse bound :
  (forall order, legal reverse order -> bound <= peak reverse order) ->
  forall order, legal p order -> bound <= peak p order.
Proof.
  intros H order Hl. rewrite <- peak_reverse by assumption. now apply H, legal_reverse.
Qed.

End Reverse.
