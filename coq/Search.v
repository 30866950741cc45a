(** Why a search proof shows that no order is below the bound (doc/certificate.md, exact search).
    Nothing here is computed. *)

From Coq Require Import NArith List Bool Lia Permutation.
From Peakproof Require Import Sets Program Cost Reverse Commit.
Import ListNotations.
Open Scope N_scope.

(** ** Both sides: what goes up in the program goes down in the reversed one *)

(** What one side has run the other has not. *)
Definition opposite (p : program) (S S' : state) : Prop :=
  forall u, u < statements p -> S' (mirror p u) = negb (S u).

Section Sides.

Variables p q : program.
Variable bound : N.
Hypothesis Hn : statements q = statements p.
Hypothesis Hbefore : forall u x, u < statements p -> x < statements p ->
  before q (mirror p x) (mirror p u) <-> before p u x.
Hypothesis Hcost : forall S S' v, v < statements p ->
  (forall u, u < statements p -> u <> v -> S' (mirror p u) = negb (S u)) ->
  cost q S' (mirror p v) = cost p S v.

Lemma mirror_inj u v : u < statements p -> v < statements p -> mirror p u = mirror p v -> u = v.
Proof. unfold mirror. lia. Qed.

Lemma goes_opposite path : forall S R',
  down_set p S -> goes p bound S path -> opposite p (after S path) R' ->
  goes q bound R' (backwards p path) /\ opposite p S (after R' (backwards p path)).
Proof.
  induction path as [ | v path IH ]; intros S R' HS G O.
  - cbn in *. split; [ trivial | assumption ].
  - cbn [goes after] in *. destruct G as (R & C & G). destruct R as (Hv & Sv & Hb).
    destruct (IH (plus S v) R') as [ IH1 IH2 ]; auto.
    { apply down_set_plus; [ assumption | ]. split; auto. }
    set (W := after R' (backwards p path)) in *.
    assert (E : backwards p (v :: path) = backwards p path ++ [ mirror p v ]).
    { unfold backwards. cbn [rev]. now rewrite map_app. }
    assert (Hmv : mirror p v < statements p) by (now apply mirror_lt).
    assert (HW : forall u, u < statements p -> u <> v -> W (mirror p u) = negb (S u)).
    { intros u Hu Huv. rewrite IH2 by assumption. unfold plus.
      destruct (N.eqb_spec u v); [ contradiction | reflexivity ]. }
    rewrite E, after_app. fold W. cbn [after]. split.
    + apply goes_app. split; [ assumption | ]. fold W. cbn [goes]. split; [ | split ].
      * split; [ now rewrite Hn | ]. split.
        -- rewrite IH2 by assumption. unfold plus. now rewrite N.eqb_refl.
        -- intros u' Hu'. destruct (before_range q _ _ Hu') as [ Hlt _ ]. rewrite Hn in Hlt.
           rewrite <- (mirror_mirror p u' Hlt) in Hu' |- *.
           set (u := mirror p u') in *. assert (Hu : u < statements p) by (now apply mirror_lt).
           apply Hbefore in Hu'; [ | assumption | assumption ].
           rewrite IH2 by assumption. apply negb_true_iff. unfold plus. apply orb_false_iff. split.
           ++ apply N.eqb_neq. intros ->. rewrite (Hb v Hu') in Sv. discriminate.
           ++ apply not_true_iff_false. intro F. rewrite (HS v u Hu' F) in Sv. discriminate.
      * rewrite (Hcost S W v); assumption.
      * trivial.
    + intros u Hu. unfold plus at 1. destruct (N.eqb_spec (mirror p u) (mirror p v)) as [ F | F ].
      * apply mirror_inj in F; [ | assumption | assumption ]. subst u. cbn [orb]. now rewrite Sv.
      * cbn [orb]. apply HW; [ assumption | ]. intros ->. now apply F.
Qed.

Lemma reaches_opposite S R S' R' :
  down_set p S -> opposite p S S' -> opposite p R R' ->
  reaches p bound S R -> reaches q bound R' S'.
Proof.
  intros HS OS OR (path & G & E).
  destruct (goes_opposite path S R') as [ A B ]; auto.
  { intros u Hu. rewrite OR by assumption. now rewrite E. }
  exists (backwards p path). split; [ assumption | ].
  intros u Hu. rewrite Hn in Hu. rewrite <- (mirror_mirror p u Hu).
  assert (Hmu : mirror p u < statements p) by (now apply mirror_lt).
  now rewrite B, OS.
Qed.

Lemma down_set_opposite R R' : opposite p R R' -> down_set p R -> down_set q R'.
Proof.
  intros O HR u x Hux Hx.
  destruct (before_range q u x Hux) as [ Hu Hx' ]. rewrite Hn in Hu, Hx'.
  rewrite <- (mirror_mirror p u Hu), <- (mirror_mirror p x Hx') in Hux.
  assert (Hmu := mirror_lt p u Hu). assert (Hmx := mirror_lt p x Hx').
  apply Hbefore in Hux; [ | assumption | assumption ].
  rewrite <- (mirror_mirror p x Hx'), O in Hx by assumption.
  rewrite <- (mirror_mirror p u Hu), O by assumption.
  apply negb_true_iff. apply negb_true_iff in Hx. apply not_true_iff_false. intro F.
  rewrite (HR _ _ Hux F) in Hx. discriminate.
Qed.

End Sides.

Section Reversed.

Variable p : program.
Variable bound : N.

Lemma cost_unreverse S S' v :
  v < statements p ->
  (forall u, u < statements p -> u <> v -> S' (mirror p u) = negb (S u)) ->
  cost p S' (mirror p v) = cost (reverse p) S v.
Proof.
  intros Hv H. rewrite <- (cost_reverse p S' S (mirror p v)).
  - now rewrite mirror_mirror.
  - now apply mirror_lt.
  - intros u Hu Huv. rewrite <- (mirror_mirror p u Hu) at 2.
    rewrite H; [ now rewrite negb_involutive | now apply mirror_lt | ].
    intros <-. apply Huv. now rewrite mirror_mirror.
Qed.

Lemma before_unreverse u x :
  u < statements p -> x < statements p ->
  before p (mirror p x) (mirror p u) <-> before (reverse p) u x.
Proof.
  intros Hu Hx. rewrite <- (before_reverse p) by (now apply mirror_lt).
  now rewrite !mirror_mirror.
Qed.

Lemma reaches_reverse S R S' R' :
  down_set p S -> opposite p S S' -> opposite p R R' ->
  reaches p bound S R -> reaches (reverse p) bound R' S'.
Proof.
  apply reaches_opposite; [ reflexivity | apply before_reverse | ].
  intros. now apply cost_reverse.
Qed.

Lemma reaches_unreverse S R S' R' :
  down_set (reverse p) S -> opposite p S S' -> opposite p R R' ->
  reaches (reverse p) bound S R -> reaches p bound R' S'.
Proof.
  apply (reaches_opposite (reverse p) p); [ reflexivity | apply before_unreverse | ].
  intros. now apply cost_unreverse.
Qed.

Lemma down_set_reverse R R' : opposite p R R' -> down_set p R -> down_set (reverse p) R'.
Proof. apply down_set_opposite; [ reflexivity | apply before_reverse ]. Qed.

Lemma down_set_unreverse R R' : opposite p R R' -> down_set (reverse p) R -> down_set p R'.
Proof. apply (down_set_opposite (reverse p) p); [ reflexivity | apply before_unreverse ]. Qed.

End Reversed.

Section Search.

Variable p : program.
Variable bound : N.

(** ** Pivots: a statement that is comparable with all others *)

Lemma down_set_ancestor S u v : down_set p S -> S v = true -> ancestor p u v -> S u = true.
Proof.
  intros HS Hv H. induction H as [ u v H | u x v H IH H' ]; [ eauto | ]. apply IH. eauto.
Qed.

(** Each way goes through the state [Q] in which [v] has just run: all others are its ancestors,
    these are in [Q], or its descendants. *)
Theorem pivot v S Q R :
  down_set p S -> v < statements p -> Q v = true ->
  (forall u, u < statements p -> Q u = true -> u = v \/ ancestor p u v) ->
  (forall u, u < statements p -> Q u = false -> ancestor p v u) ->
  includes p S Q -> includes p Q R ->
  reaches p bound S R -> reaches p bound Q R.
Proof.
  intros HS Hv HQv HQ HQ' HSQ HQR (path & G & E).
  destruct (S v) eqn:Sv.
  - exists path. assert (F : same p S Q).
    { intros u Hu. apply eq_iff_eq_true. split; [ now apply HSQ | ].
      intro A. destruct (HQ u Hu A) as [ -> | B ]; [ assumption | now apply (down_set_ancestor S u v) ]. }
    split; [ now apply (goes_same p bound path S) | ].
    intros u Hu. rewrite <- E by assumption. symmetry. now apply (same_after p path).
  - assert (Hin : In v path).
    { assert (A : after S path v = true).
      { rewrite E by assumption. now apply HQR. }
      apply after_spec in A. destruct A; congruence. }
    apply in_split in Hin. destruct Hin as (l & l' & ->).
    rewrite after_app in E. apply goes_app in G. destruct G as [ G1 G2 ].
    cbn [goes after] in *. destruct G2 as (R2 & _ & G2).
    assert (HU := down_set_after p bound l S HS G1).
    set (U := after S l) in *.
    assert (F : same p (plus U v) Q).
    { intros u Hu. apply eq_iff_eq_true.
      unfold plus. rewrite orb_true_iff, N.eqb_eq. destruct R2 as (_ & Uv & Hb). split.
      - intros [ -> | A ]; [ assumption | ].
        destruct (Q u) eqn:Qu; [ reflexivity | exfalso ].
        rewrite (down_set_ancestor U v u HU A (HQ' u Hu Qu)) in Uv. discriminate.
      - intro Qu. destruct (HQ u Hu Qu) as [ -> | A ]; [ now left | right ].
        inversion A as [ ? ? B | ? x ? B B' ]; subst; [ now apply Hb | ].
        apply (down_set_ancestor U u x); auto. }
    exists l'. split; [ now apply (goes_same p bound l' (plus U v)) | ].
    intros u Hu. rewrite <- E by assumption. symmetry. now apply (same_after p l').
Qed.

(** ** The middle between two down-sets, in independent blocks *)

Variables S R : state.
Variable block : N -> N.
Hypothesis HS : down_set p S.
Hypothesis HR : down_set p R.
Hypothesis HSR : includes p S R.

Definition middle (u : N) : Prop := u < statements p /\ S u = false /\ R u = true.

(** [s] is live whatever has run between [S] and [R]. *)
Definition constant (s : N) : Prop := begun p S s = true /\ ended p R s = false.

Hypothesis no_dependence : forall u x,
  middle u -> middle x -> before p u x -> block u = block x.
Hypothesis no_storage : forall s, s < storages p ->
  constant s \/
  forall u x, middle u -> middle x -> touches p u s = true -> touches p x s = true ->
  block u = block x.

(** The part of a state that lies in some blocks. *)
Definition part (I : N -> bool) (W : state) : state := fun u => S u || (W u && I (block u)).

Lemma live_agree X Y s :
  (forall u, u < statements p -> touches p u s = true -> X u = Y u) -> live p X s = live p Y s.
Proof.
  intro H. unfold live. f_equal; [ | f_equal ]; apply eq_iff_eq_true.
  - rewrite !begun_spec. split; (intros [ A | (u & A & B & C) ]; [ now left | right; exists u ]);
      specialize (H u A B); intuition congruence.
  - rewrite !ended_spec. split; intros [ A B ]; split; auto; intros u C D;
      specialize (H u C D); specialize (B u C D); congruence.
Qed.

Lemma constant_live X s : constant s -> includes p S X -> includes p X R -> live p X s = true.
Proof.
  intros [ A B ] HX HX'. unfold live. rewrite (begun_mono p S X s HX A).
  apply negb_true_iff. apply not_true_iff_false. intro F.
  rewrite (ended_mono p X R s HX' F) in B. discriminate.
Qed.

Section Parts.

Variables I J : N -> bool.
Hypothesis apart : forall i, I i = true -> J i = false.
Variable W : state.
Hypothesis HW : includes p W R.

Let IJ : N -> bool := fun i => I i || J i.

Lemma includes_part K : includes p S (part K W) /\ includes p (part K W) R.
Proof.
  split; intros u Hu.
  - unfold part. now intros ->.
  - unfold part. rewrite orb_true_iff, andb_true_iff. intros [ A | [ A _ ] ]; auto.
Qed.

(** Each storage changes in one of them at most. *)
Lemma live_parts s : s < storages p ->
  (live p (part I W) s = live p S s /\ live p (part IJ W) s = live p (part J W) s \/
   live p (part J W) s = live p S s /\ live p (part IJ W) s = live p (part I W) s) /\
  forall v, middle v -> I (block v) = true -> touches p v s = true ->
    live p (part J W) s = live p S s.
Proof.
  intro Hs. destruct (no_storage s Hs) as [ C | H ].
  { assert (L : forall K, live p (part K W) s = true).
    { intro K. apply constant_live; [ assumption | | ]; apply includes_part. }
    assert (L' : live p S s = true).
    { apply constant_live; [ assumption | now intros u | assumption ]. }
    rewrite !L, L'. auto. }
  assert (Hno : forall K,
    (forall u, middle u -> touches p u s = true -> W u = true -> K (block u) = false) ->
    live p (part K W) s = live p S s).
  { intros K HK. apply live_agree. intros u Hu Ht. unfold part.
    destruct (S u) eqn:Su; [ reflexivity | ]. cbn [orb].
    destruct (W u) eqn:Wu; [ | reflexivity ]. cbn [andb].
    apply HK; auto. split; auto. }
  assert (Hyes : forall K K',
    (forall u, middle u -> touches p u s = true -> W u = true -> K (block u) = K' (block u)) ->
    live p (part K W) s = live p (part K' W) s).
  { intros K K' HK. apply live_agree. intros u Hu Ht. unfold part.
    destruct (S u) eqn:Su; [ reflexivity | ]. cbn [orb].
    destruct (W u) eqn:Wu; [ | reflexivity ]. cbn [andb].
    apply HK; auto. split; auto. }
  split.
  - destruct (existsb (fun u => touches p u s && W u && negb (S u) && I (block u)) (ids (statements p)))
      eqn:E.
    + right. apply existsb_exists in E. destruct E as (u & Hu & E). apply in_ids in Hu.
      rewrite !andb_true_iff, negb_true_iff in E. destruct E as (((Ht & Wu) & Su) & Iu).
      assert (Hm : middle u) by (split; auto).
      split; [ apply Hno | apply Hyes ]; intros x Hx Htx _;
        rewrite <- (H u x Hm Hx Ht Htx); [ now apply apart | ].
      unfold IJ. now rewrite Iu, (apart _ Iu).
    + left.
      assert (F : forall u, middle u -> touches p u s = true -> W u = true -> I (block u) = false).
      { intros u Hm Ht Wu. apply not_true_iff_false. intro Iu.
        apply not_true_iff_false in E. apply E. apply existsb_exists. exists u.
        destruct Hm as (Hu & Su & _). rewrite in_ids, Ht, Wu, Su, Iu. auto. }
      split; [ now apply Hno | apply Hyes ]. intros x Hx Htx Wx. unfold IJ. now rewrite F.
  - intros v Hm Iv Ht. apply Hno. intros x Hx Htx _. rewrite <- (H v x Hm Hx Ht Htx). now apply apart.
Qed.

Lemma memory_parts : memory p (part IJ W) + memory p S = memory p (part I W) + memory p (part J W).
Proof.
  unfold memory. rewrite <- !sum_plus. apply sum_ext. intros s Hs. apply in_ids in Hs.
  destruct (live_parts s Hs) as [ [ [ A B ] | [ A B ] ] _ ]; rewrite A, B; lia.
Qed.

Lemma cost_parts v : middle v -> I (block v) = true ->
  cost p (part IJ W) v + memory p S = cost p (part I W) v + memory p (part J W).
Proof.
  intros Hm Iv. unfold cost, memory. rewrite <- !N.add_assoc, <- !sum_plus. f_equal.
  apply sum_ext. intros s Hs. apply in_ids in Hs.
  destruct (live_parts s Hs) as [ H H' ]. destruct (touches p v s) eqn:Ht; cbn [orb].
  - rewrite (H' v Hm Iv Ht). lia.
  - destruct H as [ [ A B ] | [ A B ] ]; rewrite A, B; lia.
Qed.

End Parts.

Definition only (i : N) : N -> bool := fun j => j =? i.

(** If no block goes below the start, then several together do not. *)
Lemma memory_blocks W l :
  includes p W R -> NoDup l -> (forall i, In i l -> memory p S <= memory p (part (only i) W)) ->
  memory p S <= memory p (part (fun i => existsb (N.eqb i) l) W).
Proof.
  intros HW Hnd. induction Hnd as [ | i l Hi Hnd IH ]; intro H.
  - apply N.eq_le_incl, memory_same. intros u _. unfold part. cbn [existsb]. now rewrite andb_false_r, orb_false_r.
  - assert (A := memory_parts (only i) (fun j => existsb (N.eqb j) l)).
    specialize (IH (fun j Hj => H j (or_intror Hj))). specialize (H i (or_introl eq_refl)).
    rewrite (memory_same p (part (fun j => existsb (N.eqb j) (i :: l)) W)
      (part (fun j => only i j || existsb (N.eqb j) l) W)).
    + enough (memory p (part (fun j => only i j || existsb (N.eqb j) l) W) + memory p S =
        memory p (part (only i) W) + memory p (part (fun j => existsb (N.eqb j) l) W)) by lia.
      apply A; [ | assumption ]. intros j Hj. unfold only in Hj. apply N.eqb_eq in Hj. subst j.
      apply not_true_iff_false. now rewrite existsb_eqb.
    + now intros u _.
Qed.

(** Statements of one block, from [S] or from a state of the block. *)
Definition within (i : N) (path : list N) : Prop :=
  forall v, In v path -> block v = i /\ R v = true.

(** No way through the block alone goes below the start. *)
Definition keeps (i : N) : Prop :=
  forall path, within i path -> goes p bound S path -> memory p S <= memory p (after S path).

(** No way through the block alone comes to its end. *)
Definition stuck (i : N) : Prop :=
  forall path, within i path -> goes p bound S path ->
  exists u, middle u /\ block u = i /\ after S path u = false.

Variable blocks : list N.
Hypothesis Hblocks : NoDup blocks.
Hypothesis cover : forall u, middle u -> In (block u) blocks.
Hypothesis Hkeeps : forall i, In i blocks -> keeps i.

Definition steps_of (i : N) (path : list N) : list N := filter (fun v => block v =? i) path.

Lemma after_steps i path :
  goes p bound S path -> (forall v, In v path -> R v = true) ->
  same p (after S (steps_of i path)) (part (only i) (after S path)).
Proof.
  intros G HRp u Hu. apply eq_iff_eq_true. unfold part, steps_of, only.
  rewrite orb_true_iff, andb_true_iff, !after_spec, filter_In.
  destruct (S u) eqn:Su; intuition congruence.
Qed.

Lemma block_alone path :
  goes p bound S path -> (forall v, In v path -> R v = true) ->
  forall i, goes p bound S (steps_of i path).
Proof.
  induction path as [ | v path IH ] using rev_ind; [ now intros | ].
  intros G HRp i. apply goes_app in G. destruct G as [ G Gv ].
  assert (HRp' : forall w, In w path -> R w = true) by (intros; apply HRp, in_or_app; auto).
  specialize (IH G HRp').
  unfold steps_of. rewrite filter_app. cbn [filter].
  destruct (N.eqb_spec (block v) i) as [ E | ]; [ | rewrite app_nil_r; apply IH ].
  apply goes_app. split; [ apply IH | ]. fold (steps_of i path).
  cbn [goes] in Gv |- *. destruct Gv as (Rv & Cv & _).
  set (W := after S path) in *.
  assert (HW : includes p W R).
  { intros u Hu Wu. apply after_spec in Wu. destruct Wu; auto. }
  assert (HSW : forall u, S u = true -> W u = true) by (intros; now apply includes_after).
  destruct Rv as (Hv & Wv & Hb).
  assert (Hm : middle v).
  { split; [ assumption | ]. split.
    - apply not_true_iff_false. intro F. rewrite (HSW v F) in Wv. discriminate.
    - apply HRp, in_or_app. cbn. auto. }
  assert (Same := after_steps i path G HRp'). fold W in Same.
  split; [ | split; [ | trivial ] ].
  - apply (ready_same p (part (only i) W)); [ now apply same_sym | ].
    split; [ assumption | ]. split.
    + unfold part. rewrite Wv. destruct Hm as (_ & -> & _). reflexivity.
    + intros u Hu. unfold part, only. rewrite (Hb u Hu). destruct (S u) eqn:Su; [ reflexivity | ].
      cbn [orb andb]. apply N.eqb_eq. rewrite <- E.
      destruct (before_range p u v Hu) as [ Hun _ ].
      apply no_dependence; auto. split; [ assumption | ]. split; [ assumption | ].
      apply HW; auto.
  - rewrite (cost_same p _ (part (only i) W) v Same).
    eapply N.le_lt_trans; [ | exact Cv ].
    set (others := filter (fun j => negb (j =? i)) blocks).
    assert (Hothers : memory p S <= memory p (part (fun j => existsb (N.eqb j) others) W)).
    { apply memory_blocks; [ assumption | now apply NoDup_filter | ].
      intros j Hj. apply filter_In in Hj. destruct Hj as [ Hj _ ].
      assert (X := memory_same p _ _ (after_steps j path G HRp')). fold W in X. rewrite <- X.
      apply (Hkeeps j Hj); [ | apply IH ].
      intros w Hw. apply filter_In in Hw. rewrite N.eqb_eq in Hw. split; [ tauto | now apply HRp' ]. }
    assert (A := cost_parts (only i) (fun j => existsb (N.eqb j) others)).
    specialize (A) with (W := W) (v := v).
    rewrite <- (cost_same p (part (fun j => only i j || existsb (N.eqb j) others) W) W v).
    + enough (cost p (part (fun j => only i j || existsb (N.eqb j) others) W) v + memory p S =
        cost p (part (only i) W) v + memory p (part (fun j => existsb (N.eqb j) others) W)) by lia.
      apply A; auto.
      * intros j Hj. unfold only in Hj. apply N.eqb_eq in Hj. subst j.
        apply not_true_iff_false. rewrite existsb_eqb. unfold others. rewrite filter_In, N.eqb_refl.
        intros [ _ F ]. discriminate.
      * unfold only. now apply N.eqb_eq.
    + intros u Hu. unfold part, only. destruct (S u) eqn:Su; [ now rewrite HSW | ]. cbn [orb].
      destruct (W u) eqn:Wu; [ | reflexivity ]. cbn [andb].
      apply orb_true_iff. destruct (N.eqb_spec (block u) i); [ now left | right ].
      apply existsb_eqb. unfold others. apply filter_In. split.
      * apply cover. split; [ assumption | ]. split; [ assumption | now apply HW ].
      * apply negb_true_iff. now apply N.eqb_neq.
Qed.

(** If one block cannot reach its end, there is no way from [S] to [R]. *)
Theorem no_way i : stuck i -> ~ reaches p bound S R.
Proof.
  intros Hi (path & G & E).
  assert (HRp : forall v, In v path -> R v = true).
  { intros v Hv. assert (Hvn : v < statements p).
    { apply in_split in Hv. destruct Hv as (l & l' & ->). apply goes_app in G.
      destruct G as [ _ ((H & _) & _) ]. assumption. }
    rewrite <- E by assumption. apply after_spec. now right. }
  destruct (Hi (steps_of i path)) as (u & Hm & Hb & F).
  - intros v Hv. apply filter_In in Hv. rewrite N.eqb_eq in Hv. split; [ tauto | now apply HRp ].
  - now apply block_alone.
  - destruct Hm as (Hu & _ & Ru).
    rewrite (after_steps i path G HRp u Hu) in F. unfold part, only in F.
    rewrite (E u Hu), Ru, Hb, N.eqb_refl in F. destruct (S u); discriminate.
Qed.

(** ** Claims about the states of one block *)

Section Claims.

Variable i : N.
Variable done : Prop.   (* the whole block is claimed *)

Definition state_of_block (T : state) : Prop :=
  down_set p T /\ includes p S T /\
  forall u, u < statements p -> T u = true -> S u = true \/ (block u = i /\ R u = true).

Definition whole (T : state) : Prop := forall u, middle u -> block u = i -> T u = true.

Definition claim (T : state) : Prop :=
  state_of_block T /\
  forall path, within i path -> goes p bound T path ->
  memory p S <= memory p (after T path) /\ (whole (after T path) -> done).

(** Every statement leads to a claimed state or costs too much. *)
Lemma claim_next T :
  state_of_block T -> memory p S <= memory p T -> (whole T -> done) ->
  (forall v, ready p T v -> block v = i -> R v = true -> cost p T v < bound -> claim (plus T v)) ->
  claim T.
Proof.
  intros HT HM Hd H. split; [ assumption | ]. intros path Hw G.
  destruct path as [ | v path ]; cbn [goes after] in *; [ auto | ].
  destruct G as (Rv & Cv & G). destruct (Hw v) as [ A B ]; [ now left | ].
  apply (H v Rv A B Cv); [ | assumption ]. intros w Hin. apply Hw. now right.
Qed.

(** The state commits to a claimed state. *)
Lemma claim_commit T U :
  state_of_block T -> claim U -> includes p T U -> least p T U -> claim T.
Proof.
  intros HT HU HTU HL. split; [ assumption | ]. intros path Hw G.
  destruct HT as (DT & HST & _). destruct HU as [ (DU & HSU & _) HU ].
  destruct (commit_path p bound T U DT DU HTU HL path T) as [ A B ]; auto.
  { now intros u. }
  assert (F : same p (union T U) U).
  { intros u Hu. unfold union. destruct (T u) eqn:Tu; [ | reflexivity ]. symmetry. now apply HTU. }
  apply (goes_same p bound _ _ U F) in A.
  destruct (HU _ (fun v Hv => Hw v (proj1 (proj1 (filter_In _ _ _) Hv))) A) as [ C D ].
  assert (E : same p (after U (filter (fun u => negb (U u)) path)) (union (after T path) U)).
  { eapply same_trans; [ | exact B ]. apply same_after. now apply same_sym. }
  split.
  - etransitivity; [ exact C | ]. rewrite (memory_same p _ _ E).
    apply (least_memory p T U); auto.
    + now apply (down_set_after p bound).
    + intros u _. apply includes_after.
  - intro W. apply D. intros u Hm Hb. destruct Hm as (Hu & Hm). rewrite E by assumption.
    unfold union. rewrite (W u); [ reflexivity | now split | assumption ].
Qed.

(** The state is reached from a claimed state. *)
Lemma claim_reached A path :
  claim A -> within i path -> goes p bound A path -> claim (after A path).
Proof.
  intros [ (DA & HSA & HA) H ] Hw G. split; [ split; [ | split ] | ].
  - now apply (down_set_after p bound).
  - intros u Hu Su. apply includes_after. now apply HSA.
  - intros u Hu Au. apply after_spec in Au. destruct Au as [ Au | Au ]; [ now apply HA | right ].
    now apply Hw.
  - intros path' Hw' G'. rewrite <- after_app. apply H.
    + intros v Hv. apply in_app_or in Hv. destruct Hv; auto.
    + apply goes_app. auto.
Qed.

Lemma claim_same T T' : same p T T' -> claim T -> claim T'.
Proof.
  intros E [ (D & A & B) H ]. split; [ split; [ | split ] | ].
  - now apply (down_set_same p T).
  - intros u Hu Su. rewrite <- E by assumption. now apply A.
  - intros u Hu. rewrite <- E by assumption. now apply B.
  - intros path Hw G. apply (goes_same p bound path T' T) in G; [ | now apply same_sym ].
    destruct (H path Hw G) as [ C C' ].
    assert (F := same_after p path T T' E). split.
    + now rewrite <- (memory_same p _ _ F).
    + intro W. apply C'. intros u Hm Hb. rewrite F; [ now apply W | now destruct Hm ].
Qed.

End Claims.

Lemma claim_keeps i done : claim i done S -> keeps i.
Proof. intros [ _ H ] path Hw G. now apply H. Qed.

Lemma claim_weaken i (done done' : Prop) T : (done -> done') -> claim i done T -> claim i done' T.
Proof. intros Hd [ A H ]. split; [ assumption | ]. intros path Hw G. destruct (H path Hw G). auto. Qed.

Lemma claim_stuck i : claim i False S -> stuck i.
Proof.
  intros [ _ H ] path Hw G. destruct (H path Hw G) as [ _ F ].
  destruct (existsb (fun u => negb (S u) && R u && (block u =? i) && negb (after S path u))
    (ids (statements p))) eqn:E.
  - apply existsb_exists in E. destruct E as (u & Hu & E). apply in_ids in Hu.
    rewrite !andb_true_iff, !negb_true_iff, N.eqb_eq in E. destruct E as (((A & B) & C) & D).
    exists u. repeat split; auto.
  - exfalso. apply F. intros u (Hu & Su & Ru) Hb.
    destruct (after S path u) eqn:D; [ reflexivity | ].
    apply not_true_iff_false in E. exfalso. apply E. apply existsb_exists. exists u.
    rewrite in_ids, Su, Ru, Hb, D, N.eqb_refl. auto.
Qed.

(** A quiet block: no state of it has less memory than the start. *)
Lemma quiet_keeps i :
  (forall W, down_set p W -> includes p S W ->
     (forall u, u < statements p -> W u = true -> S u = true \/ (block u = i /\ R u = true)) ->
     memory p S <= memory p W) ->
  keeps i.
Proof.
  intros H path Hw G. apply H.
  - now apply (down_set_after p bound).
  - intros u _. apply includes_after.
  - intros u _ Au. apply after_spec in Au. destruct Au as [ | Au ]; [ now left | right; now apply Hw ].
Qed.

End Search.
