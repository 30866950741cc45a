(** Checking a search proof (doc/certificate.md, exact search). Why it suffices: Search.v. *)

From Coq Require Import NArith List Bool Lia.
From Peakproof Require Import Sets Program Cost Reverse Commit Search Graph Simulate Trap
  Certificate ChainCheck TrapCheck.
Import ListNotations.
Open Scope N_scope.

(** What does not change in the program, or the reversed one, while it is searched. *)
Record scene := Scene {
  prog : program;
  before_of : table (list N);   (* direct predecessors *)
  users : table (list N)        (* of a storage: the statements that access it, ascending *)
}.

Definition users_of (p : program) : table (list N) :=
  fold_right (fun v t => fold_left (fun t s => put s (v :: get [] s t) t) (touched p v) t)
    (no_rows _) (ids (statements p)).

Lemma in_users_of p s v :
  In v (get [] s (users_of p)) <-> v < statements p /\ touches p v s = true.
Proof.
  unfold users_of. rewrite <- in_ids. generalize (ids (statements p)) as l.
  assert (Inner : forall x k t,
    In v (get [] s (fold_left (fun t s => put s (x :: get [] s t) t) k t)) <->
    In v (get [] s t) \/ (v = x /\ In s k)).
  { intros x. induction k as [ | y k IH ]; intro t; cbn [fold_left In]; [ tauto | ].
    rewrite IH, get_put. destruct (N.eqb_spec s y) as [ -> | ]; cbn [In]; intuition congruence. }
  induction l as [ | x l IH ]; cbn [fold_right In].
  - rewrite get_no_rows. cbn. tauto.
  - rewrite Inner, IH. unfold touched. split.
    + intros [ [ A B ] | [ -> A ] ]; [ tauto | ]. split; [ now left | now apply in_touched ].
    + intros [ [ -> | A ] B ]; [ right | left; tauto ]. split; [ reflexivity | now apply in_touched ].
Qed.

Definition scene_of (p : program) (preds : table (list N)) : scene := Scene p preds (users_of p).

Record scene_ok (c : scene) : Prop := {
  scene_wf : well_formed (prog c) = true;
  scene_preds : forall u x, x < statements (prog c) ->
    In u (get [] x (before_of c)) <-> before (prog c) u x;
  scene_users : forall s v, In v (get [] s (users c)) <->
    v < statements (prog c) /\ touches (prog c) v s = true
}.

Section SearchCheck.

Variable c : scene.
Let p : program := prog c.
Variable bound : N.

Definition in_set (S : set) : state := fun u => mem u S.

(** ** What one more statement does *)

Definition is_begun (S : set) (s : N) : bool :=
  live_in (storage_of p s) || existsb (fun u => mem u S) (get [] s (users c)).

Definition is_ended (S : set) (s : N) : bool :=
  negb (live_out (storage_of p s)) && forallb (fun u => mem u S) (get [] s (users c)).

(** The bytes that begin with [v], and those that end when it has run. *)
Definition fresh (S : set) (v : N) : N :=
  total (insert_all (bytes p) (filter (fun s => negb (is_begun S s)) (touched p v)) no_bag).

Definition freed (S : set) (v : N) : N :=
  total (insert_all (bytes p) (filter (is_ended (add v S)) (touched p v)) no_bag).

Definition is_ready (S : set) (v : N) : bool :=
  (v <? statements p) && negb (mem v S) && forallb (fun u => mem u S) (get [] v (before_of c)).

(** ** Least memory between two states *)

(** All that statements of a set access. *)
Definition started_of (S : set) : set :=
  fold_left (fun t v => if mem v S then add_all (touched p v) t else t) (ids (statements p)) empty.

Definition bag_of (F : N -> bool) : bag :=
  insert_all (bytes p) (filter F (ids (storages p))) no_bag.

(** That no state between [S] and [Q] has less memory than [goal] bytes. *)
Definition check_least (line : N) (S Q : set) (goal : N) (chains : list chain) : outcome unit :=
  let started := started_of S in
  let lasting := lasting_storages p (in_set Q) in
  let fixed := bag_of (fun s => (live_in (storage_of p s) || mem s started) && mem s lasting) in
  w <- check_packing p (before_of c) (in_set Q) lasting started (members fixed) (bytes p) chains;
  require (goal <=? total fixed + w) line (Memory_not_least (total fixed + w) goal).

Definition memory_of (S : set) : N :=
  let started := started_of S in
  let lasting := lasting_storages p (in_set S) in
  total (bag_of (fun s => (live_in (storage_of p s) || mem s started) && mem s lasting)).

(** ** Soundness of these *)

Hypothesis Hc : scene_ok c.
Let wf : well_formed p = true := scene_wf c Hc.

Lemma is_begun_spec S s : is_begun S s = begun p (in_set S) s.
Proof.
  unfold is_begun. apply eq_iff_eq_true. rewrite orb_true_iff, begun_spec, existsb_exists.
  setoid_rewrite (scene_users c Hc). unfold in_set. fold p. firstorder.
Qed.

Lemma is_ended_spec S s : is_ended S s = ended p (in_set S) s.
Proof.
  unfold is_ended. apply eq_iff_eq_true. rewrite andb_true_iff, negb_true_iff, ended_spec, forallb_forall.
  setoid_rewrite (scene_users c Hc). unfold in_set. fold p. firstorder.
Qed.

Lemma plus_add S v : forall u, plus (in_set S) v u = in_set (add v S) u.
Proof. intro u. unfold plus, in_set. now rewrite mem_add. Qed.

Lemma same_add S v : same p (plus (in_set S) v) (in_set (add v S)).
Proof. intros u _. apply plus_add. Qed.

Lemma touched_bag v F : v < statements p ->
  total (insert_all (bytes p) (filter F (touched p v)) no_bag) =
  weigh (bytes p) (storages p) (fun s => touches p v s && F s).
Proof.
  intro Hv.
  assert (W : weighed (bytes p) (storages p) (insert_all (bytes p) (filter F (touched p v)) no_bag)).
  { apply weighed_insert_all; [ | apply weighed_none ].
    intros s Hs. apply filter_In in Hs. now apply (in_touched_below p wf v). }
  rewrite (weighed_total _ _ _ W). apply sum_ext. intros s _.
  rewrite mem_insert_all. cbn [members no_bag]. rewrite mem_empty, orb_false_r.
  replace (existsb (N.eqb s) (filter F (touched p v))) with (touches p v s && F s); [ reflexivity | ].
  apply eq_iff_eq_true. now rewrite existsb_eqb, filter_In, andb_true_iff, <- in_touched.
Qed.

Lemma memory_plus S v :
  v < statements p -> mem v S = false ->
  memory p (in_set (add v S)) + freed S v = memory p (in_set S) + fresh S v.
Proof.
  intros Hv Hm. unfold freed, fresh. rewrite !touched_bag by assumption.
  unfold memory, weigh. rewrite <- !sum_plus. apply sum_ext. intros s _.
  rewrite is_begun_spec, is_ended_spec. unfold live.
  destruct (touches p v s) eqn:Ht; cbn [andb].
  - assert (B : begun p (in_set (add v S)) s = true).
    { apply begun_spec. right. exists v. unfold in_set. rewrite mem_add, N.eqb_refl. auto. }
    assert (E : ended p (in_set S) s = false).
    { apply not_true_iff_false. rewrite ended_spec. intros [ _ E ].
      specialize (E v Hv Ht). unfold in_set in E. congruence. }
    rewrite B, E. destruct (begun p (in_set S) s), (ended p (in_set (add v S)) s); cbn; lia.
  - fold (live p (in_set (add v S)) s). fold (live p (in_set S) s).
    rewrite (live_agree p (in_set (add v S)) (in_set S)); [ reflexivity | ].
    intros u Hu Hu'. unfold in_set. rewrite mem_add.
    destruct (N.eqb_spec u v); [ congruence | reflexivity ].
Qed.

Lemma cost_plus S v :
  v < statements p -> mem v S = false ->
  cost p (in_set S) v = work p v + (memory p (in_set S) + fresh S v).
Proof.
  intros Hv Hm. unfold fresh. rewrite touched_bag by assumption.
  unfold cost, memory, weigh. rewrite <- sum_plus. f_equal. apply sum_ext. intros s _.
  rewrite is_begun_spec. unfold live. destruct (touches p v s) eqn:Ht; cbn [andb orb].
  - assert (E : ended p (in_set S) s = false).
    { apply not_true_iff_false. rewrite ended_spec. intros [ _ E ].
      specialize (E v Hv Ht). unfold in_set in E. congruence. }
    rewrite E. destruct (begun p (in_set S) s); cbn; lia.
  - destruct (begun p (in_set S) s), (ended p (in_set S) s); cbn; lia.
Qed.

Lemma is_ready_spec S v : is_ready S v = true <-> ready p (in_set S) v.
Proof.
  unfold is_ready, ready. rewrite !andb_true_iff, negb_true_iff, N.ltb_lt, forallb_forall.
  split.
  - intros [ [ Hv A ] B ]. repeat split; auto. intros u Hu. apply B. now apply (scene_preds c Hc).
  - intros (Hv & A & B). repeat split; auto. intros u Hu. apply B. now apply (scene_preds c Hc) in Hu.
Qed.

Lemma mem_started_of S s :
  mem s (started_of S) = true <-> exists v, v < statements p /\ mem v S = true /\ touches p v s = true.
Proof.
  unfold started_of. setoid_rewrite <- in_ids. generalize (ids (statements p)) as l.
  assert (H : forall l t, mem s (fold_left (fun t v =>
      if mem v S then add_all (touched p v) t else t) l t) = true <->
    mem s t = true \/ exists v, In v l /\ mem v S = true /\ touches p v s = true).
  { induction l as [ | x l IH ]; intro t; cbn [fold_left In].
    - split; [ tauto | ]. intros [ A | (v & [] & _) ]; assumption.
    - rewrite IH. destruct (mem x S) eqn:E.
      + rewrite mem_add_all, orb_true_iff, existsb_eqb. unfold touched. rewrite in_touched. split.
        * intros [ [ A | A ] | (v & A & B) ]; eauto 7.
        * intros [ A | (v & [ <- | A ] & B & C) ]; eauto 7.
      + split.
        * intros [ A | (v & A & B) ]; eauto 7.
        * intros [ A | (v & [ <- | A ] & B & C) ]; [ auto | congruence | eauto 7 ]. }
  intro l. rewrite H, mem_empty. split; [ intros [ A | A ]; [ discriminate | assumption ] | auto ].
Qed.

Lemma weighed_bag_of F : weighed (bytes p) (storages p) (bag_of F).
Proof.
  apply weighed_insert_all; [ | apply weighed_none ].
  intros s Hs. apply filter_In in Hs. now apply in_ids.
Qed.

Lemma mem_bag_of F s : mem s (members (bag_of F)) = true <-> s < storages p /\ F s = true.
Proof.
  unfold bag_of. rewrite mem_insert_all. cbn [members no_bag].
  now rewrite mem_empty, orb_false_r, existsb_eqb, filter_In, in_ids.
Qed.

Lemma total_bag_of F : total (bag_of F) = weigh (bytes p) (storages p) F.
Proof.
  rewrite (weighed_total _ _ _ (weighed_bag_of F)). apply sum_ext. intros s Hs. apply in_ids in Hs.
  replace (mem s (members (bag_of F))) with (F s); [ reflexivity | ].
  apply eq_iff_eq_true. rewrite mem_bag_of. tauto.
Qed.

Lemma memory_of_correct S : memory_of S = memory p (in_set S).
Proof.
  unfold memory_of. rewrite total_bag_of. apply sum_ext. intros s Hs. apply in_ids in Hs.
  replace (live p (in_set S) s) with
    ((live_in (storage_of p s) || mem s (started_of S)) && mem s (lasting_storages p (in_set S)));
    [ reflexivity | ].
  unfold live. f_equal; apply eq_iff_eq_true.
  - rewrite orb_true_iff, mem_started_of, begun_spec. unfold in_set. firstorder.
  - rewrite mem_lasting_storages, negb_true_iff, <- not_true_iff_false, ended_spec. split.
    + intros [ [ A _ ] | (u & A & B & C) ] [ D E ]; [ congruence | ]. specialize (E u A C). congruence.
    + intro A. destruct (live_out (storage_of p s)); [ now left | right ].
      destruct (existsb (fun u => touches p u s && negb (in_set S u)) (ids (statements p))) eqn:E.
      * apply existsb_exists in E. destruct E as (u & Hu & E). apply in_ids in Hu.
        rewrite andb_true_iff, negb_true_iff in E. exists u. tauto.
      * exfalso. apply A. split; [ reflexivity | ]. intros u Hu Ht.
        destruct (in_set S u) eqn:F; [ reflexivity | ].
        apply not_true_iff_false in E. exfalso. apply E. apply existsb_exists.
        exists u. rewrite in_ids, Ht, F. auto.
Qed.

Lemma check_least_sound line S Q goal chains :
  check_least line S Q goal chains = Accepted tt ->
  forall W, down_set p W -> includes p (in_set S) W -> includes p W (in_set Q) -> goal <= memory p W.
Proof.
  intros H W HW HSW HWQ. unfold check_least in H.
  set (lasting := lasting_storages p (in_set Q)) in H. set (fixed := bag_of _) in H.
  apply bind_accepted in H. destruct H as (w & H & H'). apply require_accepted, N.leb_le in H'.
  set (P := fun W => down_set p W /\ includes p (in_set S) W /\ includes p W (in_set Q)).
  assert (Hlast : forall s, mem s lasting = true -> live_out (storage_of p s) = true \/
    exists u, u < statements p /\ in_set Q u = false /\ touches p u s = true).
  { intros s. apply lasting_storages_sound. }
  assert (Hstart : forall s, mem s (started_of S) = true -> forall X, P X -> begun p X s = true).
  { intros s Hs X (_ & HX & _). apply mem_started_of in Hs. destruct Hs as (v & A & B & C).
    apply begun_spec. right. exists v. auto. }
  assert (Hfits : forall X, P X -> fits p (in_set Q) X).
  { intros X (A & _ & B). now split. }
  apply (check_packing_sound p (before_of c) (in_set Q) lasting (scene_preds c Hc) Hlast _ _ _ P
    Hfits Hstart) in H.
  destruct H as (l & -> & Hroom & Hpacked).
  etransitivity; [ exact H' | ]. unfold fixed. rewrite total_bag_of, memory_held.
  apply packing_bound.
  - intros s Hs. right. apply andb_true_iff in Hs. destruct Hs as [ A B ].
    unfold live. rewrite (lasting_not_ended p (in_set Q) lasting Hlast W s); auto.
    + rewrite andb_true_r. apply orb_true_iff in A. destruct A as [ A | A ].
      * apply begun_spec. now left.
      * apply (Hstart s A W). repeat split; assumption.
    + apply Hfits. repeat split; assumption.
  - intros k Hk. destruct (Hpacked k Hk W) as (x & A & B & C & D); [ repeat split; assumption | ].
    exists x. repeat split; auto. apply not_true_iff_false in C. apply not_true_iff_false.
    intro F. apply C. apply mem_bag_of. auto.
  - intros s _. apply Hroom.
Qed.

(** ** Commits *)

Section Commits.

Variable upper : state.   (* what is still to be reached *)

(** A position on the way: a down-set below [upper]. *)
Definition position_ok (S : set) : Prop := down_set p (in_set S) /\ includes p (in_set S) upper.

(** [Q] may take the place of [S]. *)
Definition moves (S Q : set) : Prop :=
  position_ok Q /\ (reaches p bound (in_set S) upper -> reaches p bound (in_set Q) upper).

Definition commit_statement (line : N) (S : set) (v : N) : outcome set :=
  require (is_ready S v) line (Statement_not_ready v);;
  require (upper v) line (Statement_outside v);;
  require (fresh S v <=? freed S v) line (Memory_grows v);;
  Accepted (add v S).

Definition add_new (line : N) (allowed : N -> bool) (S : set) (v : N) : outcome set :=
  require ((v <? statements p) && allowed v) line (Statement_outside v);;
  require (negb (mem v S)) line (Statement_twice v);;
  Accepted (add v S).

(** [Q] is [S] and the statements [more]. *)
Definition check_larger (line : N) (S Q : set) (more : list N) (before after : N)
    (chains : list chain) : outcome unit :=
  match more, chains with
  | [ v ], [] => require (after <=? before) line (Memory_grows v)
  | [ v ], _ => Refuted line Chains_not_needed
  | _, _ => check_least line S Q after chains
  end.

Definition commit_to (line : N) (S : set) (l : list N) (chains : list chain) : outcome set :=
  Q <- fold (add_new line upper) l S;
  fold (fun _ v => require (forallb (fun u => mem u Q) (get [] v (before_of c)))
    line (Statement_not_ready v)) l tt;;
  check_larger line S Q l (memory_of S) (memory_of Q) chains;;
  Accepted Q.

Lemma memory_grows_not S v :
  v < statements p -> mem v S = false -> fresh S v <= freed S v ->
  memory p (in_set (add v S)) <= memory p (in_set S).
Proof. intros Hv Hm H. assert (A := memory_plus S v Hv Hm). lia. Qed.

(** With one statement more there is nothing between. *)
Lemma least_single S Q v :
  (forall u, u < statements p -> mem u Q = true -> u = v \/ mem u S = true) ->
  includes p (in_set S) (in_set Q) ->
  memory p (in_set Q) <= memory p (in_set S) -> least p (in_set S) (in_set Q).
Proof.
  intros HQ HSQ HM W HW HSW HWQ.
  destruct (W v) eqn:Wv.
  - rewrite (memory_same p W (in_set Q)); [ reflexivity | ].
    intros u Hu. apply eq_iff_eq_true. split; [ now apply HWQ | ]. intro A.
    destruct (HQ u Hu A) as [ -> | B ]; [ assumption | now apply HSW ].
  - rewrite (memory_same p W (in_set S)); [ assumption | ].
    intros u Hu. apply eq_iff_eq_true. split; [ | now apply HSW ]. intro A.
    destruct (HQ u Hu (HWQ u Hu A)) as [ -> | B ]; [ congruence | assumption ].
Qed.

Lemma commit_statement_sound line S v Q :
  position_ok S -> commit_statement line S v = Accepted Q -> moves S Q.
Proof.
  intros [ HS HSU ] H. unfold commit_statement in H.
  apply bind_accepted in H. destruct H as ([] & H1 & H).
  apply bind_accepted in H. destruct H as ([] & H2 & H).
  apply bind_accepted in H. destruct H as ([] & H3 & H). injection H as <-.
  apply require_accepted, is_ready_spec in H1. apply require_accepted in H2.
  apply require_accepted, N.leb_le in H3.
  destruct H1 as (Hv & Sv & Hb). unfold in_set in Sv.
  assert (DQ : down_set p (in_set (add v S))).
  { apply (down_set_same p (plus (in_set S) v)); [ apply same_add | ].
    apply down_set_plus; [ assumption | split; auto ]. }
  assert (HSQ : includes p (in_set S) (in_set (add v S))).
  { intros u _. unfold in_set. rewrite mem_add. intros ->. apply orb_true_r. }
  assert (HQU : includes p (in_set (add v S)) upper).
  { intros u Hu. unfold in_set. rewrite mem_add, orb_true_iff, N.eqb_eq. intros [ -> | A ]; auto. }
  split; [ split; assumption | ].
  apply commit; auto. apply (least_single S (add v S) v); auto.
  - intros u _. rewrite mem_add, orb_true_iff, N.eqb_eq. tauto.
  - now apply memory_grows_not.
Qed.

Lemma fold_add_new line allowed l S Q :
  fold (add_new line allowed) l S = Accepted Q ->
  forall u, mem u Q = true <-> (In u l \/ mem u S = true) /\
    (In u l -> u < statements p /\ allowed u = true).
Proof.
  intros H. assert (A : (forall u, mem u Q = true <-> In u l \/ mem u S = true) /\
    forall u, In u l -> u < statements p /\ allowed u = true).
  { refine (fold_invariant _ (fun done Q => (forall u, mem u Q = true <-> In u done \/ mem u S = true) /\
      forall u, In u done -> u < statements p /\ allowed u = true) _ _ _ H _ _).
    - intros done v Q1 Q2 _ [ A B ] Hv. unfold add_new in Hv.
      apply bind_accepted in Hv. destruct Hv as ([] & H1 & Hv).
      apply bind_accepted in Hv. destruct Hv as ([] & _ & Hv). injection Hv as <-.
      apply require_accepted in H1. rewrite andb_true_iff, N.ltb_lt in H1. split.
      + intro u. rewrite mem_add, orb_true_iff, N.eqb_eq, A, in_app_iff. cbn. intuition.
      + intros u Hu. apply in_app_or in Hu. destruct Hu as [ Hu | [ <- | [] ] ]; auto.
    - cbn. tauto. }
  destruct A as [ A B ]. intro u. rewrite A. split; [ auto | tauto ].
Qed.

Lemma check_larger_sound line S Q more before after chains :
  (forall u, u < statements p -> mem u Q = true -> In u more \/ mem u S = true) ->
  includes p (in_set S) (in_set Q) ->
  before = memory p (in_set S) -> after = memory p (in_set Q) ->
  check_larger line S Q more before after chains = Accepted tt -> least p (in_set S) (in_set Q).
Proof.
  intros HQ HSQ -> -> H.
  assert (Hleast : check_least line S Q (memory p (in_set Q)) chains = Accepted tt ->
    least p (in_set S) (in_set Q)).
  { intros A W HW HSW HWQ. now apply (check_least_sound line S Q _ chains). }
  destruct more as [ | v [ | w more ] ]; cbn [check_larger] in H; auto.
  destruct chains; [ | discriminate ].
  apply require_accepted, N.leb_le in H. apply (least_single S Q v); auto.
  intros u Hu A. destruct (HQ u Hu A) as [ [ <- | [] ] | B ]; auto.
Qed.

Lemma commit_to_sound line S l chains Q :
  position_ok S -> commit_to line S l chains = Accepted Q -> moves S Q.
Proof.
  intros [ HS HSU ] H. unfold commit_to in H.
  apply bind_accepted in H. destruct H as (Q' & H1 & H).
  apply bind_accepted in H. destruct H as ([] & H2 & H).
  apply bind_accepted in H. destruct H as ([] & H3 & H). injection H as <-.
  assert (HQ := fold_add_new line upper l S Q' H1).
  assert (HSQ : includes p (in_set S) (in_set Q')).
  { intros u Hu Su. apply HQ. split; [ now right | ]. intro Hin.
    (* a statement of l that is in S is refused, but need not be shown to be *)
    split; [ assumption | now apply HSU ]. }
  assert (DQ : down_set p (in_set Q')).
  { intros u x B Hx. apply HQ in Hx. destruct Hx as [ [ Hx | Hx ] _ ].
    - assert (F : forallb (fun u => mem u Q') (get [] x (before_of c)) = true).
      { assert (G : forall x, In x l -> forallb (fun u => mem u Q') (get [] x (before_of c)) = true).
        { refine (fold_invariant _ (fun done (_ : unit) => forall x, In x done ->
            forallb (fun u => mem u Q') (get [] x (before_of c)) = true) _ _ _ H2 _ _).
          - intros done v [] [] _ A Hv y Hy. apply in_app_or in Hy.
            destruct Hy as [ Hy | [ <- | [] ] ]; [ auto | now apply require_accepted in Hv ].
          - easy. }
        now apply G. }
      rewrite forallb_forall in F. apply F. apply (scene_preds c Hc); [ | assumption ].
      now apply before_range in B.
    - apply HSQ; [ now apply before_range in B | ]. now apply (HS u x). }
  assert (HQU : includes p (in_set Q') upper).
  { intros u Hu A. apply HQ in A. destruct A as [ [ A | A ] B ]; [ now apply B | now apply HSU ]. }
  split; [ split; assumption | ]. apply commit; auto.
  apply (check_larger_sound line S Q' l (memory_of S) (memory_of Q') chains); auto.
  - intros u _ A. apply HQ in A. tauto.
  - apply memory_of_correct.
  - apply memory_of_correct.
Qed.

(** *** Pivots *)

(** [is_descendant]: what has been found to run after [v]. *)
Definition pivot_to (line : N) (fuel : nat) (is_descendant : N -> bool) (S : set) (v : N) : outcome set :=
  require (v <? statements p) line (Statement_outside v);;
  let Q := add v (seen (search_from (before_of c) empty fuel (get [] v (before_of c)) search_none)) in
  fold (fun _ u =>
      require (mem u Q || is_descendant u) line (Not_comparable v u);;
      require (implb (mem u Q) (forallb (fun x => mem x Q) (get [] u (before_of c))))
        line (Not_comparable v u);;
      require (implb (mem u S) (mem u Q) && implb (mem u Q) (upper u)) line (Pivot_outside v))
    (ids (statements p)) tt;;
  Accepted Q.

Lemma seen_sound preds (P : N -> Prop) fuel stack :
  (forall u x, P x -> In u (get [] x preds) -> P u) -> (forall u, In u stack -> P u) ->
  forall u, mem u (seen (search_from preds empty fuel stack search_none)) = true -> P u.
Proof.
  intros HP Hs u Hu. apply (search_from_sound preds empty P) with (fuel := fuel) (stack := stack)
    (r := search_none); auto.
  - cbn. tauto.
  - left. apply seen_found; [ | assumption ].
    intro x. cbn [seen search_none]. rewrite mem_empty. discriminate.
Qed.

Lemma pivot_to_sound line fuel is_descendant S v Q :
  position_ok S ->
  (forall u, u < statements p -> is_descendant u = true -> ancestor p v u) ->
  pivot_to line fuel is_descendant S v = Accepted Q -> moves S Q.
Proof.
  intros [ HS HSU ] Hd H. unfold pivot_to in H.
  apply bind_accepted in H. destruct H as ([] & H1 & H). apply require_accepted, N.ltb_lt in H1.
  set (Q' := add v _) in H.
  apply bind_accepted in H. destruct H as ([] & H2 & H). injection H as <-.
  assert (Hall : forall u, u < statements p ->
    (mem u Q' = true \/ ancestor p v u) /\ (mem u S = true -> mem u Q' = true) /\
    (mem u Q' = true -> upper u = true) /\
    (mem u Q' = true -> forall x, before p x u -> mem x Q' = true)).
  { intros u Hu. apply in_ids in Hu as Hu'. revert u Hu' Hu.
    refine (fold_invariant _ (fun done (_ : unit) => forall u, In u done -> u < statements p ->
      (mem u Q' = true \/ ancestor p v u) /\ (mem u S = true -> mem u Q' = true) /\
      (mem u Q' = true -> upper u = true) /\
      (mem u Q' = true -> forall x, before p x u -> mem x Q' = true)) _ _ _ H2 _ _).
    - intros done w [] [] _ A Hw u Hin Hu. apply in_app_or in Hin.
      destruct Hin as [ Hin | [ <- | [] ] ]; [ auto | ].
      apply bind_accepted in Hw. destruct Hw as ([] & B & Hw).
      apply bind_accepted in Hw. destruct Hw as ([] & C & D).
      apply require_accepted, orb_true_iff in B. apply require_accepted in C, D.
      rewrite implb_true_iff, forallb_forall in C. rewrite andb_true_iff, !implb_true_iff in D.
      split; [ destruct B; auto | ]. split; [ tauto | ]. split; [ tauto | ].
      intros E x Hx. apply C; [ assumption | ]. now apply (scene_preds c Hc).
    - easy. }
  assert (DQ : down_set p (in_set Q')).
  { intros u x B A. destruct (before_range p u x B) as [ _ Hx ].
    destruct (Hall x Hx) as (_ & _ & _ & E). now apply E. }
  split; [ split; [ assumption | ] | ].
  - intros u Hu A. now apply Hall.
  - apply (pivot p bound v); auto.
    + unfold in_set, Q'. now rewrite mem_add, N.eqb_refl.
    + intros u Hu A. unfold in_set, Q' in A. rewrite mem_add, orb_true_iff, N.eqb_eq in A.
      destruct A as [ | A ]; [ now left | right ].
      refine (seen_sound (before_of c) (fun u => ancestor p u v) fuel _ _ _ u A).
      * intros y x Hx Hy. assert (x < statements p) by (now apply ancestor_range in Hx).
        apply (scene_preds c Hc) in Hy; [ | assumption ].
        apply ancestor_trans with x; [ now constructor | assumption ].
      * intros y Hy. apply (scene_preds c Hc) in Hy; [ now constructor | assumption ].
    + intros u Hu A. destruct (Hall u Hu) as ([ B | B ] & _); [ unfold in_set in A; congruence | assumption ].
    + intros u Hu A. now apply Hall.
    + intros u Hu A. now apply Hall.
Qed.

End Commits.

End SearchCheck.
