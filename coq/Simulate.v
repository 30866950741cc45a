(** Running an order: is it legal, and what is its peak? *)

From Coq Require Import NArith List Bool Lia Permutation.
From Peakproof Require Import Sets Program Cost Graph.
Import ListNotations.
Open Scope N_scope.

Section Simulate.

Variable p : program.

(** Every access names a storage of the program. *)
Definition well_formed : bool :=
  forallb (fun v => forallb (fun a => on a <? storages p) (accesses p v)) (ids (statements p)).

Lemma well_formed_spec v a :
  well_formed = true -> v < statements p -> In a (accesses p v) -> on a < storages p.
Proof.
  intros H Hv Ha. unfold well_formed in H. rewrite forallb_forall in H.
  specialize (H v (proj2 (in_ids _ _) Hv)). rewrite forallb_forall in H.
  now apply N.ltb_lt, H.
Qed.

Lemma in_touched v s : In s (map on (accesses p v)) <-> touches p v s = true.
Proof. rewrite touches_spec, in_map_iff. firstorder. Qed.

(** ** Legality *)

Fixpoint respects (preds : table (list N)) (order : list N) (done : set) : bool :=
  match order with
  | [] => true
  | v :: rest =>
      (v <? statements p) && negb (mem v done) &&
      forallb (fun u => mem u done) (get [] v preds) && respects preds rest (add v done)
  end.

Definition check_legal (preds : table (list N)) (order : list N) : bool :=
  (N.of_nat (length order) =? statements p) && respects preds order empty.

Lemma respects_sound order : forall done set,
  (forall u, mem u set = true <-> In u done) ->
  NoDup done -> (forall u, In u done -> u < statements p) ->
  respects (predecessors p) order set = true ->
  NoDup (done ++ order) /\
  (forall u, In u (done ++ order) -> u < statements p) /\
  (forall l v l', order = l ++ v :: l' -> forall u, before p u v -> In u (done ++ l)).
Proof.
  induction order as [ | w order IH ]; intros done set Hset Hnd Hin H.
  - rewrite app_nil_r. split; [ assumption | ]. split; [ assumption | ].
    intros l v l' E. destruct l; discriminate.
  - cbn in H. rewrite !andb_true_iff, negb_true_iff, N.ltb_lt, forallb_forall in H.
    destruct H as (((Hw & Hn) & Hp) & Hr).
    assert (Hwd : ~ In w done) by (rewrite <- Hset; congruence).
    destruct (IH (done ++ [ w ]) (add w set)) as (A & B & C); auto.
    + intro u. rewrite mem_add, orb_true_iff, N.eqb_eq, Hset, in_app_iff. cbn. intuition.
    + apply NoDup_app_single; assumption.
    + intros u Hu. apply in_app_or in Hu. destruct Hu as [ Hu | [ <- | [] ] ]; auto.
    + rewrite <- app_assoc in A, B. cbn in A, B. split; [ assumption | ]. split; [ assumption | ].
      intros l v l' E u Hu. destruct l as [ | w' l ]; cbn in E; injection E as -> E.
      * rewrite app_nil_r. apply Hset, Hp. apply in_predecessors; assumption.
      * specialize (C l v l' E u Hu). now rewrite <- app_assoc in C.
Qed.

Theorem check_legal_sound order : check_legal (predecessors p) order = true -> legal p order.
Proof.
  unfold check_legal. rewrite andb_true_iff, N.eqb_eq. intros [ Hlen H ].
  destruct (respects_sound order [] empty) as (A & B & C); auto.
  - intro u. rewrite mem_empty. cbn. intuition congruence.
  - constructor.
  - easy.
  - split.
    + apply NoDup_Permutation_bis.
      * assumption.
      * rewrite length_ids. lia.
      * intros u Hu. apply in_ids. now apply B.
    + intros done v rest E u Hu. exact (C done v rest E u Hu).
Qed.

(** ** Peak *)

(** Each statement of the order with the storages that end after it; and all the storages that the
    order accesses. *)
Fixpoint endings (order : list N) : list (N * list N) * set :=
  match order with
  | [] => ([], empty)
  | v :: rest =>
      let (steps, later) := endings rest in
      let touched := map on (accesses p v) in
      ((v, filter (fun s => negb (live_out (storage_of p s)) && negb (mem s later)) touched) :: steps,
       add_all touched later)
  end.

(** [started]: the storages that have begun; [gone]: those of them that have ended. *)
Fixpoint run (steps : list (N * list N)) (started gone : bag) (highest : N) : N :=
  match steps with
  | [] => highest
  | (v, ending) :: steps' =>
      let started' := insert_all (bytes p) (map on (accesses p v)) started in
      run steps' started' (insert_all (bytes p) ending gone)
        (N.max highest (work p v + total started' - total gone))
  end.

(** What has begun, and what of that has ended, before the first statement. *)
Definition start_bags (accessed : set) : bag * bag :=
  let here := filter (fun s => live_in (storage_of p s)) (ids (storages p)) in
  (insert_all (bytes p) here no_bag,
   insert_all (bytes p)
     (filter (fun s => negb (live_out (storage_of p s)) && negb (mem s accessed)) here) no_bag).

(** The bytes before the first statement, and the peak. *)
Definition compute (order : list N) : N * N :=
  let (steps, accessed) := endings order in
  let (started, gone) := start_bags accessed in
  let start := total started - total gone in
  (start, run steps started gone start).

Hypothesis wf : well_formed = true.

Lemma mem_endings order s :
  mem s (snd (endings order)) = true <-> exists u, In u order /\ touches p u s = true.
Proof.
  induction order as [ | v order IH ]; cbn [endings].
  - cbn [snd]. rewrite mem_empty. split; [ discriminate | ]. intros (u & [] & _).
  - destruct (endings order) as [ steps later ]. cbn [snd] in *.
    rewrite mem_add_all, orb_true_iff, existsb_eqb, in_touched, IH. cbn [In].
    split.
    + intros [ H | (u & H & H') ]; eauto.
    + intros (u & [ <- | H ] & H'); eauto.
Qed.

(** What [started] and [gone] hold when the statements of [S] have run. *)
Definition tracks (S : state) (started gone : bag) : Prop :=
  weighed (bytes p) (storages p) started /\ weighed (bytes p) (storages p) gone /\
  forall s, s < storages p ->
    mem s (members started) = begun p S s /\
    mem s (members gone) = begun p S s && ended p S s.

Lemma tracks_memory S started gone :
  tracks S started gone -> total started - total gone = memory p S.
Proof.
  intros (Hs & Hg & H). enough (total started = total gone + memory p S) by lia.
  rewrite (weighed_total _ _ _ Hs), (weighed_total _ _ _ Hg). unfold weigh, memory. rewrite <- sum_plus. apply sum_ext.
  intros s Hin. apply in_ids in Hin. destruct (H s Hin) as [ -> -> ].
  unfold live. destruct (begun p S s), (ended p S s); cbn; lia.
Qed.

Section Step.

Variables (done : list N) (v : N) (rest : list N).
Hypothesis Hl : legal p (done ++ v :: rest).

Lemma step_range : v < statements p.
Proof. apply (legal_range p _ v Hl). apply in_elt. Qed.

Lemma step_fresh : state_of done v = false.
Proof.
  apply not_true_iff_false. rewrite state_of_spec. intro H.
  apply (legal_NoDup p), NoDup_remove_2 in Hl. apply Hl, in_or_app. now left.
Qed.

Lemma step_begun s :
  begun p (state_of (done ++ [ v ])) s = touches p v s || begun p (state_of done) s.
Proof.
  apply eq_iff_eq_true. rewrite orb_true_iff, !begun_spec.
  setoid_rewrite state_of_spec. setoid_rewrite in_app_iff. cbn [In]. split.
  - intros [ H | (u & A & B & [ C | [ -> | [] ] ]) ]; eauto 10.
  - intros [ H | [ H | (u & A & B & C) ] ]; eauto 10 using step_range.
Qed.

Lemma step_not_ended s : touches p v s = true -> ended p (state_of done) s = false.
Proof.
  intro H. apply not_true_iff_false. rewrite ended_spec. intros [ _ E ].
  specialize (E v step_range H). rewrite step_fresh in E. discriminate.
Qed.

(** What remains is what has not run. *)
Lemma step_ended s :
  touches p v s = true ->
  ended p (state_of (done ++ [ v ])) s = true <->
  live_out (storage_of p s) = false /\ ~ exists u, In u rest /\ touches p u s = true.
Proof.
  intro Ht. rewrite ended_spec. setoid_rewrite state_of_spec.
  assert (Hr := fun u => legal_range p _ u Hl).
  assert (Hnd := legal_NoDup p _ Hl).
  split; intros [ A B ]; (split; [ assumption | ]).
  - intros (u & Hu & Hu').
    assert (Hin : In u (done ++ [ v ])).
    { apply B; [ | assumption ]. apply Hr, in_or_app. cbn. auto. }
    apply in_split in Hu. destruct Hu as (l1 & l2 & ->).
    rewrite app_comm_cons, app_assoc in Hnd. apply NoDup_remove_2 in Hnd. apply Hnd.
    apply in_app_or in Hin. apply in_or_app. left. apply in_or_app. cbn in *. tauto.
  - intros u Hu Hu'. apply Hr in Hu. apply in_app_or in Hu. apply in_or_app. cbn in *.
    destruct Hu as [ | [ | ] ]; [ tauto | tauto | ]. exfalso. eauto.
Qed.

Lemma step_ended_other s :
  touches p v s = false -> ended p (state_of (done ++ [ v ])) s = ended p (state_of done) s.
Proof.
  intro Ht. apply eq_iff_eq_true. rewrite !ended_spec.
  setoid_rewrite state_of_spec. setoid_rewrite in_app_iff. cbn [In].
  split; intros [ A B ]; (split; [ assumption | ]); intros u Hu Hu'; specialize (B u Hu Hu'); [ | tauto ].
  destruct B as [ | [ -> | [] ] ]; congruence || assumption.
Qed.

Lemma step_tracks started gone :
  tracks (state_of done) started gone ->
  tracks (state_of (done ++ [ v ]))
    (insert_all (bytes p) (map on (accesses p v)) started)
    (insert_all (bytes p) (snd (hd (v, []) (fst (endings (v :: rest))))) gone) /\
  work p v + total (insert_all (bytes p) (map on (accesses p v)) started) - total gone =
    cost p (state_of done) v.
Proof.
  intros (Hs & Hg & H). assert (Hv := step_range).
  assert (Hin : forall s, In s (map on (accesses p v)) -> s < storages p).
  { intros s Hin. apply in_map_iff in Hin. destruct Hin as (a & <- & Ha).
    now apply (well_formed_spec v a). }
  assert (Hs' : weighed (bytes p) (storages p) (insert_all (bytes p) (map on (accesses p v)) started))
    by (now apply weighed_insert_all).
  assert (Hmem : forall s, s < storages p ->
    mem s (members (insert_all (bytes p) (map on (accesses p v)) started)) =
    touches p v s || begun p (state_of done) s).
  { intros s Hsm. rewrite mem_insert_all. destruct (H s Hsm) as [ -> _ ]. f_equal.
    apply eq_iff_eq_true. now rewrite existsb_eqb, in_touched. }
  cbn [endings]. destruct (endings rest) as [ steps later ] eqn:E. cbn [fst hd snd].
  split; [ split; [ assumption | split ] | ].
  - apply weighed_insert_all; [ | assumption ].
    intros s Hf. apply filter_In in Hf. now apply Hin.
  - intros s Hsm. rewrite Hmem, step_begun by assumption. split; [ reflexivity | ].
    rewrite mem_insert_all. destruct (H s Hsm) as [ _ -> ].
    destruct (touches p v s) eqn:Ht; cbn [orb andb].
    + rewrite step_not_ended by assumption. rewrite andb_false_r, orb_false_r.
      apply eq_iff_eq_true. rewrite existsb_eqb, filter_In, in_touched, step_ended by assumption.
      rewrite <- mem_endings, E. cbn [snd]. rewrite andb_true_iff, !negb_true_iff.
      rewrite not_true_iff_false. tauto.
    + rewrite step_ended_other by assumption.
      enough (existsb (N.eqb s) (filter (fun s0 => negb (live_out (storage_of p s0)) &&
        negb (mem s0 later)) (map on (accesses p v))) = false) as -> by reflexivity.
      apply not_true_iff_false. rewrite existsb_eqb, filter_In, in_touched. intros [ F _ ]. congruence.
  - enough (total (insert_all (bytes p) (map on (accesses p v)) started) = total gone +
      sum (fun s => if touches p v s || live p (state_of done) s then bytes p s else 0)
        (ids (storages p))) by (unfold cost; lia).
    rewrite (weighed_total _ _ _ Hs'), (weighed_total _ _ _ Hg). unfold weigh. rewrite <- sum_plus. apply sum_ext.
    intros s Hsm. apply in_ids in Hsm. rewrite Hmem by assumption.
    destruct (H s Hsm) as [ _ -> ]. unfold live.
    destruct (touches p v s) eqn:Ht; [ rewrite step_not_ended by assumption | ];
      destruct (begun p (state_of done) s); cbn; try lia.
    destruct (ended p (state_of done) s); cbn; lia.
Qed.

End Step.

Lemma run_peak rest : forall done started gone highest,
  legal p (done ++ rest) -> tracks (state_of done) started gone ->
  run (fst (endings rest)) started gone highest = N.max highest (peak_from p done rest).
Proof.
  induction rest as [ | v rest IH ]; intros done started gone highest Hl H.
  - cbn. lia.
  - destruct (step_tracks done v rest Hl started gone H) as [ A B ].
    cbn [endings] in *. destruct (endings rest) as [ steps later ]. cbn [fst hd snd] in *.
    cbn [run peak_from]. rewrite B. rewrite (IH (done ++ [ v ])).
    + lia.
    + now rewrite <- app_assoc.
    + assumption.
Qed.

Lemma tracks_start order :
  legal p order ->
  let (started, gone) := start_bags (snd (endings order)) in tracks nothing started gone.
Proof.
  intro Hl. unfold start_bags. set (here := filter _ (ids (storages p))).
  assert (Hhere : forall s, In s here <-> s < storages p /\ live_in (storage_of p s) = true).
  { intro s. unfold here. now rewrite filter_In, in_ids. }
  split; [ | split ].
  - apply weighed_insert_all; [ | apply weighed_none ]. intros s Hs. now apply Hhere.
  - apply weighed_insert_all; [ | apply weighed_none ].
    intros s Hs. apply filter_In in Hs. now apply Hhere.
  - intros s Hs.
    assert (B : begun p nothing s = live_in (storage_of p s)).
    { apply eq_iff_eq_true. rewrite begun_spec. unfold nothing. split; [ | auto ].
      intros [ | (u & _ & _ & F) ]; [ assumption | discriminate ]. }
    assert (E : ended p nothing s = true <->
      live_out (storage_of p s) = false /\ mem s (snd (endings order)) = false).
    { rewrite ended_spec, <- not_true_iff_false, <- (not_true_iff_false (mem s _)), mem_endings.
      unfold nothing. split; intros [ A F ]; (split; [ assumption | ]).
      - intros (u & Hu & Hu'). apply (legal_range p) in Hu; [ | assumption ].
        specialize (F u Hu Hu'). discriminate.
      - intros u Hu Hu'. exfalso. apply F. exists u.
        split; [ now apply (legal_range p) | assumption ]. }
    rewrite B. rewrite !mem_insert_all. cbn [members no_bag]. rewrite mem_empty, !orb_false_r.
    split; apply eq_iff_eq_true; rewrite existsb_eqb.
    + rewrite Hhere. tauto.
    + rewrite filter_In, Hhere, !andb_true_iff, !negb_true_iff, E. tauto.
Qed.

Theorem compute_correct order :
  legal p order -> compute order = (memory p nothing, peak p order).
Proof.
  intro Hl. unfold compute.
  assert (T := tracks_start order Hl). assert (R := run_peak order []).
  destruct (endings order) as [ steps accessed ]. cbn [fst snd] in *.
  destruct (start_bags accessed) as [ started gone ].
  rewrite (tracks_memory nothing started gone T). f_equal.
  unfold peak. apply R; assumption.
Qed.

End Simulate.
