(** Trap bounds (THEORY.md 2): why a set of statements and chains of storages prove that no order has
    a lower peak. Nothing here is computed. *)

From Coq Require Import NArith List Bool Lia Permutation.
From Peakproof Require Import Sets Program Cost.
Import ListNotations.
Open Scope N_scope.

Section Trap.

Variable p : program.

(** ** Exits *)

(** [v] is outside [T] and all its direct predecessors are inside. *)
Definition exit (T : state) (v : N) : Prop :=
  v < statements p /\ T v = false /\ forall u, before p u v -> T u = true.

(** [S] may be what has run when [v] is the first statement outside [T]. *)
Record possible (T : state) (v : N) (S : state) : Prop := {
  possible_down_set : down_set p S;
  possible_ancestors : forall u, ancestor p u v -> S u = true;
  possible_inside : forall u, u < statements p -> S u = true -> T u = true
}.

Lemma first_outside (T : state) order :
  (exists v, In v order /\ T v = false) ->
  exists done v rest,
    order = done ++ v :: rest /\ T v = false /\ forall u, In u done -> T u = true.
Proof.
  induction order as [ | w order IH ].
  - intros (v & [] & _).
  - destruct (T w) eqn:Tw.
    + intros (v & [ -> | Hv ] & Tv); [ congruence | ].
      destruct IH as (done & x & rest & -> & Tx & H); [ eauto | ].
      exists (w :: done), x, rest. split; [ reflexivity | ]. split; [ assumption | ].
      intros u [ -> | Hu ]; auto.
    + intros _. exists [], w, order. cbn. intuition.
Qed.

(** Every order has a first statement outside of [T]. It is an exit. *)
Theorem trap_bound (T : state) bound :
  (exists v, v < statements p /\ T v = false) ->
  (forall v, exit T v -> forall S, possible T v S -> bound <= cost p S v) ->
  forall order, legal p order -> bound <= peak p order.
Proof.
  intros (w & Hw & Tw) H order Hl.
  destruct (first_outside T order) as (done & v & rest & E & Tv & Hin).
  { exists w. split; [ now apply (legal_range p) | assumption ]. }
  apply peak_spec. right. exists done, v, rest. split; [ assumption | ].
  apply H.
  - split; [ | split; [ assumption | ] ].
    + apply (legal_range p order); [ assumption | ]. rewrite E. apply in_elt.
    + intros u Hu. apply Hin. destruct Hl as [ _ Hl ]. eauto.
  - constructor; intros u.
    + intros x Hux. rewrite !state_of_spec. now apply (legal_closed p order done (v :: rest)).
    + intro Hu. apply state_of_spec. now apply (legal_ancestors p order done v rest).
    + intros _ Hu. apply Hin. now apply state_of_spec.
Qed.

(** ** Chains *)

(** [u], then [run], each a direct predecessor of the one before; the last one accesses [s]. *)
Fixpoint descends (u : N) (run : list N) (s : N) : Prop :=
  match run with
  | [] => touches p u s = true
  | x :: run' => before p x u /\ descends x run' s
  end.

(** A run of statements between two storages. *)
Definition joins (s : N) (run : list N) (s' : N) : Prop :=
  match run with
  | [] => False
  | u :: run' => u < statements p /\ touches p u s = true /\ descends u run' s'
  end.

(** A chain is a storage and links, each a run and the next storage. *)
Fixpoint follows (s : N) (links : list (list N * N)) : Prop :=
  match links with
  | [] => True
  | (run, s') :: links' => joins s run s' /\ follows s' links'
  end.

Fixpoint last_of (s : N) (links : list (list N * N)) : N :=
  match links with
  | [] => s
  | (_, s') :: links' => last_of s' links'
  end.

Definition storages_of (s : N) (links : list (list N * N)) : list N := s :: map snd links.

Lemma descends_begun S s : forall run u,
  down_set p S -> u < statements p -> S u = true -> descends u run s -> begun p S s = true.
Proof.
  intros run u HS. revert u.
  induction run as [ | x run IH ]; cbn; intros u Hu Su H.
  - apply begun_spec. right. eauto.
  - destruct H as [ Hx H ]. apply (IH x); auto.
    + now apply before_range in Hx.
    + now apply (HS x u).
Qed.

(** If the storage before a run has ended, then the one behind it has begun. *)
Lemma joins_begun S s run s' :
  down_set p S -> joins s run s' -> ended p S s = true -> begun p S s' = true.
Proof.
  intros HS H E. destruct run as [ | u run ]; [ easy | ].
  destruct H as (Hu & Ht & H). apply (descends_begun S s' run u); auto.
  apply ended_spec in E. now apply E.
Qed.

(** A storage of every chain is live. *)
Lemma chain_live S : forall links s,
  down_set p S -> begun p S s = true -> follows s links ->
  ended p S (last_of s links) = false ->
  exists x, In x (storages_of s links) /\ live p S x = true.
Proof.
  unfold storages_of, live.
  induction links as [ | [ run s' ] links IH ]; cbn; intros s HS Hb H He.
  - exists s. rewrite Hb, He. auto.
  - destruct (ended p S s) eqn:E.
    + destruct H as [ Hj Hf ].
      destruct (IH s') as (x & Hx & Hlive); auto.
      * now apply (joins_begun S s run).
      * exists x. auto.
    + exists s. rewrite Hb, E. auto.
Qed.

(** ** Packings *)

(** The weight that chains, each with a weight, put on a storage. *)
Definition load (chains : list (N * list N)) (s : N) : N :=
  sum (fun c => sum (fun x => if x =? s then fst c else 0) (snd c)) chains.

(** The bytes of the storages that are live or satisfy [own]. *)
Definition held (own : N -> bool) (S : state) : N :=
  weigh (bytes p) (storages p) (fun s => own s || live p S s).

Lemma cost_held S v : cost p S v = work p v + held (touches p v) S.
Proof. reflexivity. Qed.

Lemma memory_held S : memory p S = held (fun _ => false) S.
Proof. reflexivity. Qed.

(** Storages that are certainly there, and outside of them a packing of chains that each have a live
    storage, bound what is held from below. *)
Lemma packing_bound S own (F : N -> bool) chains :
  (forall s, F s = true -> own s = true \/ live p S s = true) ->
  (forall c, In c chains ->
     exists x, In x (snd c) /\ x < storages p /\ F x = false /\ live p S x = true) ->
  (forall s, s < storages p -> load chains s <= bytes p s) ->
  weigh (bytes p) (storages p) F + sum fst chains <= held own S.
Proof.
  intros HF Hc Hload.
  set (free := fun s => negb (F s) && live p S s).
  assert (A : sum fst chains <=
    sum (fun s => if free s then load chains s else 0) (ids (storages p))).
  { transitivity (sum (fun s => sum (fun c =>
      if free s then sum (fun x => if x =? s then fst c else 0) (snd c) else 0) chains)
      (ids (storages p))).
    - rewrite sum_swap. apply sum_le. intros c Hin.
      destruct (Hc c Hin) as (x & Hx & Hxm & Fx & Lx).
      etransitivity; [ | apply sum_at_least with (a := x); now apply in_ids ].
      cbn beta. unfold free. rewrite Fx, Lx. cbn [negb andb].
      etransitivity; [ | apply sum_at_least with (a := x); assumption ].
      cbn beta. rewrite N.eqb_refl. lia.
    - apply sum_le. intros s _. destruct (free s); [ reflexivity | ].
      rewrite sum_zero. lia. }
  etransitivity; [ apply N.add_le_mono_l, A | ].
  unfold held, weigh. rewrite <- sum_plus. apply sum_le. intros s Hs. apply in_ids in Hs.
  unfold free. specialize (Hload s Hs). specialize (HF s).
  destruct (F s), (own s), (live p S s); cbn; lia.
Qed.

(** ** Floors *)

(** What [v] needs whatever has run: no order goes below. *)
Definition floor (v : N) : N :=
  work p v +
  sum (fun s => if touches p v s || (live_in (storage_of p s) && live_out (storage_of p s))
                then bytes p s else 0) (ids (storages p)).

Lemma floor_le_cost S v : floor v <= cost p S v.
Proof.
  unfold floor, cost. apply N.add_le_mono_l, sum_le. intros s _.
  unfold live, begun, ended.
  destruct (touches p v s), (live_in (storage_of p s)), (live_out (storage_of p s)); cbn; try lia.
Qed.

Theorem floor_bound v :
  v < statements p -> forall order, legal p order -> floor v <= peak p order.
Proof.
  intros Hv order Hl.
  assert (Hin : In v order) by (now apply (legal_range p)).
  destruct (in_split _ _ Hin) as (done & rest & E).
  apply peak_spec. right. exists done, v, rest. split; [ assumption | apply floor_le_cost ].
Qed.

Theorem start_bound order : memory p nothing <= peak p order.
Proof. apply peak_spec. now left. Qed.

End Trap.
