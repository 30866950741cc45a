(** Two-sided commits (THEORY.md 3): memory and cost are submodular, so a state of least memory may be
    gone to at once. Nothing here is computed. *)

From Coq Require Import NArith List Bool Lia Permutation.
From Peakproof Require Import Sets Program Cost Reverse.
Import ListNotations.
Open Scope N_scope.

Definition union (S S' : state) : state := fun u => S u || S' u.
Definition inter (S S' : state) : state := fun u => S u && S' u.
Definition plus (S : state) (v : N) : state := fun u => (u =? v) || S u.

Section Commit.

Variable p : program.

Definition includes (S S' : state) : Prop := forall u, u < statements p -> S u = true -> S' u = true.

(** *** Down-sets *)

Lemma down_set_union S S' : down_set p S -> down_set p S' -> down_set p (union S S').
Proof. intros H H' u x B. unfold union. rewrite !orb_true_iff. intros [ A | A ]; eauto. Qed.

Lemma down_set_inter S S' : down_set p S -> down_set p S' -> down_set p (inter S S').
Proof. intros H H' u x B. unfold inter. rewrite !andb_true_iff. intros [ A A' ]; eauto. Qed.

Definition ready (S : state) (v : N) : Prop :=
  v < statements p /\ S v = false /\ forall u, before p u v -> S u = true.

Lemma down_set_plus S v : down_set p S -> ready S v -> down_set p (plus S v).
Proof.
  intros H (_ & _ & R) u x B. unfold plus. rewrite !orb_true_iff, !N.eqb_eq.
  intros [ -> | A ]; [ right; auto | right; eauto ].
Qed.

(** *** Submodularity *)

Lemma begun_mono S S' s : includes S S' -> begun p S s = true -> begun p S' s = true.
Proof. intros H. rewrite !begun_spec. intros [ A | (u & A & B & C) ]; [ auto | right; eauto ]. Qed.

Lemma ended_mono S S' s : includes S S' -> ended p S s = true -> ended p S' s = true.
Proof. intros H. rewrite !ended_spec. intros [ A B ]. split; auto. Qed.

Lemma begun_union S S' s : begun p (union S S') s = begun p S s || begun p S' s.
Proof.
  apply eq_iff_eq_true. rewrite orb_true_iff, !begun_spec. unfold union. split.
  - intros [ A | (u & A & B & C) ]; [ auto | ]. apply orb_true_iff in C. destruct C; eauto 8.
  - intros [ [ A | (u & A & B & C) ] | [ A | (u & A & B & C) ] ]; auto;
      right; exists u; rewrite C, ?orb_true_r; auto.
Qed.

Lemma ended_inter S S' s : ended p (inter S S') s = ended p S s && ended p S' s.
Proof.
  apply eq_iff_eq_true. rewrite andb_true_iff, !ended_spec. unfold inter. split.
  - intros [ A B ]. split; (split; [ assumption | ]); intros u Hu Ht;
      specialize (B u Hu Ht); apply andb_true_iff in B; tauto.
  - intros [ [ A B ] [ _ C ] ]. split; [ assumption | ]. intros u Hu Ht. now rewrite B, C.
Qed.

Lemma begun_inter_le S S' s : begun p (inter S S') s = true -> begun p S s && begun p S' s = true.
Proof.
  intro H. apply andb_true_iff.
  split; revert H; apply begun_mono; intros u _; unfold inter; rewrite andb_true_iff; tauto.
Qed.

Lemma ended_union_ge S S' s : ended p S s || ended p S' s = true -> ended p (union S S') s = true.
Proof.
  rewrite orb_true_iff. intros [ H | H ]; revert H; apply ended_mono; intros u _; unfold union;
    rewrite orb_true_iff; tauto.
Qed.

(** Each storage by itself. [own]: it is counted anyway. *)
Definition counts (own : bool) (S : state) (s : N) : N := if own || live p S s then 1 else 0.

Lemma live_submodular S Q s :
  counts false (union S Q) s + counts false (inter S Q) s <= counts false S s + counts false Q s.
Proof.
  unfold counts, live. rewrite begun_union, ended_inter.
  assert (B := begun_inter_le S Q s). assert (E := ended_union_ge S Q s).
  destruct (begun p S s), (begun p Q s), (ended p S s), (ended p Q s), (begun p (inter S Q) s),
    (ended p (union S Q) s); cbn in *; try lia; try (specialize (B eq_refl); discriminate);
    specialize (E eq_refl); discriminate.
Qed.

(** A storage that a statement accesses, which has not run in [Q]: it gains from a larger set. *)
Lemma live_own S Q v s :
  v < statements p -> Q v = false -> touches p v s = true ->
  counts false (inter S Q) s <= counts false Q s.
Proof.
  intros Hv HQ Ht. unfold counts, live. cbn [orb].
  assert (E : ended p Q s = false).
  { apply not_true_iff_false. rewrite ended_spec. intros [ _ E ]. rewrite (E v Hv Ht) in HQ. discriminate. }
  assert (B := begun_inter_le S Q s). rewrite E.
  destruct (begun p (inter S Q) s), (begun p S s), (begun p Q s); cbn in *; try lia;
    try (specialize (B eq_refl); discriminate); destruct (ended p (inter S Q) s); cbn; lia.
Qed.

Lemma memory_counts S :
  memory p S = sum (fun s => bytes p s * counts false S s) (ids (storages p)).
Proof.
  unfold memory. apply sum_ext. intros s _. unfold counts. cbn [orb]. destruct (live p S s); lia.
Qed.

Lemma cost_counts S v :
  cost p S v = work p v + sum (fun s => bytes p s * counts (touches p v s) S s) (ids (storages p)).
Proof.
  unfold cost. f_equal. apply sum_ext. intros s _. unfold counts.
  destruct (touches p v s || live p S s); lia.
Qed.

Lemma memory_submodular S Q :
  memory p (union S Q) + memory p (inter S Q) <= memory p S + memory p Q.
Proof.
  rewrite !memory_counts, <- !sum_plus. apply sum_le. intros s _.
  assert (H := live_submodular S Q s). rewrite <- !N.mul_add_distr_l. now apply N.mul_le_mono_l.
Qed.

Lemma cost_submodular S Q v :
  v < statements p -> Q v = false ->
  cost p (union S Q) v + memory p (inter S Q) <= cost p S v + memory p Q.
Proof.
  intros Hv HQ. rewrite !cost_counts, !memory_counts, <- !N.add_assoc, <- !sum_plus.
  apply N.add_le_mono_l, sum_le. intros s _. rewrite <- !N.mul_add_distr_l. apply N.mul_le_mono_l.
  destruct (touches p v s) eqn:Ht; [ | apply live_submodular ].
  assert (H := live_own S Q v s Hv HQ Ht). unfold counts at 1 3. cbn [orb]. lia.
Qed.

(** *** Going on: statements that run one after the other, each below the bound *)

Variable bound : N.

Fixpoint goes (S : state) (path : list N) : Prop :=
  match path with
  | [] => True
  | v :: rest => ready S v /\ cost p S v < bound /\ goes (plus S v) rest
  end.

Fixpoint after (S : state) (path : list N) : state :=
  match path with
  | [] => S
  | v :: rest => after (plus S v) rest
  end.

(** One can go from [S] to [R]. *)
Definition reaches (S R : state) : Prop := exists path, goes S path /\ same p (after S path) R.

Lemma same_sym S S' : same p S S' -> same p S' S.
Proof. intros H u Hu. symmetry. auto. Qed.

Lemma same_trans S S' S'' : same p S S' -> same p S' S'' -> same p S S''.
Proof. intros H H' u Hu. rewrite H by assumption. auto. Qed.

Lemma same_plus S S' v : same p S S' -> same p (plus S v) (plus S' v).
Proof. intros H u Hu. unfold plus. now rewrite H. Qed.

Lemma same_after path : forall S S', same p S S' -> same p (after S path) (after S' path).
Proof. induction path as [ | v path IH ]; cbn; intros S S' H; [ assumption | ]. now apply IH, same_plus. Qed.

Lemma ready_same S S' v : same p S S' -> ready S v -> ready S' v.
Proof.
  intros H (Hv & A & B). split; [ assumption | ]. split; [ now rewrite <- H | ].
  intros u Hu. rewrite <- H; [ auto | ]. now apply before_range in Hu.
Qed.

Lemma goes_same path : forall S S', same p S S' -> goes S path -> goes S' path.
Proof.
  induction path as [ | v path IH ]; cbn; intros S S' H G; [ trivial | ].
  destruct G as (R & C & G). split; [ now apply (ready_same S) | ].
  rewrite <- (cost_same p S S' v H). split; [ assumption | ].
  apply (IH (plus S v)); [ now apply same_plus | assumption ].
Qed.

Lemma down_set_same S S' : same p S S' -> down_set p S -> down_set p S'.
Proof.
  intros H D u x B. destruct (before_range p u x B) as [ Hu Hx ].
  rewrite <- !H by assumption. now apply D.
Qed.

Lemma down_set_after path : forall S, down_set p S -> goes S path -> down_set p (after S path).
Proof.
  induction path as [ | v path IH ]; cbn; intros S H G; [ assumption | ].
  destruct G as (R & _ & G). apply IH; [ now apply down_set_plus | assumption ].
Qed.

Lemma includes_after path : forall S u, S u = true -> after S path u = true.
Proof.
  induction path as [ | v path IH ]; cbn; intros S u H; [ assumption | ].
  apply IH. unfold plus. rewrite H. apply orb_true_r.
Qed.

Lemma after_spec path : forall S u, after S path u = true <-> S u = true \/ In u path.
Proof.
  induction path as [ | v path IH ]; cbn; intros S u; [ tauto | ].
  rewrite IH. unfold plus. rewrite orb_true_iff, N.eqb_eq. intuition.
Qed.

Lemma goes_app l : forall S l', goes S (l ++ l') <-> goes S l /\ goes (after S l) l'.
Proof.
  induction l as [ | v l IH ]; cbn; intros S l'; [ tauto | ]. rewrite IH. tauto.
Qed.

Lemma after_app l : forall S l', after S (l ++ l') = after (after S l) l'.
Proof. induction l as [ | v l IH ]; cbn; intros; auto. Qed.

(** An order below the bound goes from nothing to everything. *)
Theorem order_reaches order :
  legal p order -> peak p order < bound -> reaches nothing (fun _ => true).
Proof.
  intros Hl Hp. exists order. split.
  - assert (H : forall rest done, order = done ++ rest -> goes (state_of done) rest).
    { induction rest as [ | v rest IH ]; intros done E; cbn [goes]; [ trivial | ].
      assert (Hcost : cost p (state_of done) v < bound).
      { destruct (N.lt_ge_cases (cost p (state_of done) v) bound) as [ | F ]; [ assumption | ].
        exfalso. apply (N.lt_irrefl bound). eapply N.le_lt_trans; [ | exact Hp ].
        apply peak_spec. right. eauto. }
      assert (Hfresh : state_of done v = false).
      { apply not_true_iff_false. rewrite state_of_spec. intro F.
        apply (legal_NoDup p) in Hl. rewrite E in Hl. apply NoDup_remove_2 in Hl.
        apply Hl, in_or_app. now left. }
      split; [ | split; [ assumption | ] ].
      - split; [ | split; [ assumption | ] ].
        + apply (legal_range p order v Hl). rewrite E. apply in_elt.
        + intros u Hu. apply state_of_spec. destruct Hl as [ _ Hl ]. eauto.
      - apply goes_same with (state_of (done ++ [ v ])).
        + intros u _. unfold plus. apply eq_iff_eq_true.
          rewrite orb_true_iff, N.eqb_eq, !state_of_spec, in_app_iff. cbn [In]. intuition.
        + apply IH. now rewrite <- app_assoc. }
    apply (goes_same order (state_of [])); [ now intros u _ | ]. now apply H.
  - intros u Hu. apply after_spec. right. now apply (legal_range p order).
Qed.

(** ** The lemma *)

(** No down-set between [S] and [Q] has less memory than [Q]. *)
Definition least (S Q : state) : Prop :=
  forall W, down_set p W -> includes S W -> includes W Q -> memory p Q <= memory p W.

Lemma least_memory S Q U :
  down_set p Q -> includes S Q -> least S Q -> down_set p U -> includes S U ->
  memory p (union U Q) <= memory p U.
Proof.
  intros HQ HSQ H HU HSU. assert (A := memory_submodular U Q).
  assert (B : memory p Q <= memory p (inter U Q)).
  { apply H.
    - now apply down_set_inter.
    - intros u Hu Su. unfold inter. now rewrite HSU, HSQ.
    - intros u Hu. unfold inter. rewrite andb_true_iff. tauto. }
  lia.
Qed.

Lemma least_cost S Q U v :
  down_set p Q -> includes S Q -> least S Q -> down_set p U -> includes S U ->
  v < statements p -> Q v = false ->
  cost p (union U Q) v <= cost p U v.
Proof.
  intros HQ HSQ H HU HSU Hv Qv. assert (A := cost_submodular U Q v Hv Qv).
  assert (B : memory p Q <= memory p (inter U Q)).
  { apply H.
    - now apply down_set_inter.
    - intros u Hu Su. unfold inter. now rewrite HSU, HSQ.
    - intros u Hu. unfold inter. rewrite andb_true_iff. tauto. }
  lia.
Qed.

(** Going on from [S], one may go to [Q] first, and run what remains. *)
Lemma commit_path S Q :
  down_set p S -> down_set p Q -> includes S Q -> least S Q ->
  forall path U, down_set p U -> includes S U -> goes U path ->
  goes (union U Q) (filter (fun u => negb (Q u)) path) /\
  same p (after (union U Q) (filter (fun u => negb (Q u)) path)) (union (after U path) Q).
Proof.
  intros HS HQ HSQ H. induction path as [ | v path IH ]; cbn [goes after filter]; intros U HU HSU G.
  - split; [ trivial | ]. now intros u _.
  - destruct G as (R & C & G).
    destruct (IH (plus U v)) as [ IH1 IH2 ].
    + now apply down_set_plus.
    + intros u Hu Su. unfold plus. rewrite HSU by assumption. apply orb_true_r.
    + assumption.
    + destruct (Q v) eqn:Qv; cbn [negb goes after].
      * assert (E : same p (union (plus U v) Q) (union U Q)).
        { intros u _. unfold union, plus. destruct (N.eqb_spec u v) as [ -> | ]; [ | reflexivity ].
          rewrite Qv, !orb_true_r. reflexivity. }
        split.
        -- now apply (goes_same _ (union (plus U v) Q)).
        -- eapply same_trans; [ | exact IH2 ]. apply same_after. now apply same_sym.
      * assert (E : same p (union (plus U v) Q) (plus (union U Q) v)).
        { intros u _. unfold union, plus. now rewrite orb_assoc. }
        destruct R as (Hv & Uv & Hb). split; [ split; [ | split ] | ].
        -- split; [ assumption | ]. split.
           ++ unfold union. now rewrite Uv, Qv.
           ++ intros u Hu. unfold union. now rewrite Hb.
        -- eapply N.le_lt_trans; [ | exact C ]. now apply (least_cost S).
        -- now apply (goes_same _ (union (plus U v) Q)).
        -- eapply same_trans; [ | exact IH2 ]. apply same_after. now apply same_sym.
Qed.

Theorem commit S Q R :
  down_set p S -> down_set p Q -> includes S Q -> includes Q R -> least S Q ->
  reaches S R -> reaches Q R.
Proof.
  intros HS HQ HSQ HQR H (path & G & E).
  destruct (commit_path S Q HS HQ HSQ H path S) as [ A B ]; auto.
  { now intros u. }
  assert (F : same p (union S Q) Q).
  { intros u Hu. unfold union. destruct (S u) eqn:Su; [ | reflexivity ]. symmetry. now apply HSQ. }
  exists (filter (fun u => negb (Q u)) path). split.
  - now apply (goes_same _ (union S Q)).
  - eapply same_trans; [ apply same_after, same_sym, F | ].
    eapply same_trans; [ exact B | ]. intros u Hu. unfold union. rewrite (E u Hu).
    destruct (Q u) eqn:Qu; [ | apply orb_false_r ]. rewrite (HQR u Hu Qu). reflexivity.
Qed.

(** *** Passing a statement that is comparable with all others *)

Lemma goes_in_order path : forall S u v,
  goes S path -> before p u v -> In v path -> S u = true \/ In u path.
Proof.
  induction path as [ | w path IH ]; cbn; intros S u v G B H; [ easy | ].
  destruct G as (R & _ & G). destruct H as [ <- | H ].
  - left. now apply R.
  - destruct (IH (plus S w) u v G B H) as [ A | A ]; [ | tauto ].
    unfold plus in A. apply orb_true_iff in A. rewrite N.eqb_eq in A. destruct A as [ -> | A ]; tauto.
Qed.

Lemma goes_fresh path : forall S v, goes S path -> In v path -> S v = false.
Proof.
  induction path as [ | w path IH ]; cbn; intros S v G H; [ easy | ].
  destruct G as (R & _ & G). destruct H as [ <- | H ]; [ apply R | ].
  specialize (IH _ _ G H). unfold plus in IH. now apply orb_false_iff in IH.
Qed.

End Commit.
