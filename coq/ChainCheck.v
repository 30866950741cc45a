(** Checking chains and packings of them (doc/certificate.md, rules 2, 3 and 5, and the loads). *)

From Coq Require Import NArith List Bool Lia.
From Peakproof Require Import Sets Program Cost Graph Simulate Trap Certificate.
Import ListNotations.
Open Scope N_scope.

Section ChainCheck.

Variable p : program.
Variable preds : table (list N).   (* the direct predecessors *)
Variable inside : state.           (* where runs must be *)
Variable lasting : set.            (* the storages that cannot have ended *)

Definition touched (v : N) : list N := map on (accesses p v).
Definition is_before (u x : N) : bool := existsb (N.eqb u) (get [] x preds).

(** ** Chains (rules 2, 3 and 5) *)

Fixpoint check_descent (u : N) (run : list N) (s : N) : bool :=
  match run with
  | [] => touches p u s
  | x :: run' => is_before x u && inside x && check_descent x run' s
  end.

Definition check_run (s : N) (run : list N) (s' : N) : bool :=
  match run with
  | [] => false
  | u :: run' => (u <? statements p) && inside u && touches p u s && check_descent u run' s'
  end.

Definition chain_storages (c : chain) : list N := storages_of (first c) (links c).

Fixpoint check_links (line s : N) (l : list (list N * N)) : outcome unit :=
  match l with
  | [] => Accepted tt
  | (run, s') :: l' => require (check_run s run s') line (Run_broken s);; check_links line s' l'
  end.

(** [started] are the storages accessed by what must have run. *)
Definition check_chain (started : set) (c : chain) : outcome unit :=
  let line := chain_line c in
  let last := last_of (first c) (links c) in
  require (live_in (storage_of p (first c)) || mem (first c) started) line (Storage_not_begun (first c));;
  check_links line (first c) (links c);;
  require (mem last lasting) line (Storage_ended last).

(** ** Packings *)

Section Packing.

Variable started : set.   (* storages accessed by what must have run *)
Variable fixed : set.     (* storages that no chain goes through *)
Variable room : N -> N.   (* the bytes of each storage that are left *)

(** The weight that chains put on each storage, and together. *)
Record packing := Packing { loads : table N; packing_weight : N }.

Definition load_storage (c : chain) (l : table N * set) (s : N) : outcome (table N * set) :=
  let (t, seen) := l in
  let line := chain_line c in
  require (s <? storages p) line (Storage_unknown s);;
  require (negb (mem s seen)) line (Storage_twice s);;
  require (negb (mem s fixed)) line (Storage_fixed s);;
  let sum := weight c + get 0 s t in
  require (sum <=? room s) line (Storage_overloaded s);;
  Accepted (put s sum t, add s seen).

Definition add_chain (k : packing) (c : chain) : outcome packing :=
  l <- fold (load_storage c) (chain_storages c) (loads k, empty);
  check_chain started c;;
  Accepted (Packing (fst l) (weight c + packing_weight k)).

(** The sum of the weights. *)
Definition check_packing (chains : list chain) : outcome N :=
  k <- fold add_chain chains (Packing (no_rows _) 0);
  Accepted (packing_weight k).

End Packing.

(** ** Soundness *)

Hypothesis wf : well_formed p = true.
Hypothesis preds_spec : forall u x, x < statements p -> In u (get [] x preds) <-> before p u x.
Hypothesis lasting_spec : forall s, mem s lasting = true ->
  live_out (storage_of p s) = true \/
  exists u, u < statements p /\ inside u = false /\ touches p u s = true.

(** [S] is closed and inside. *)
Definition fits (S : state) : Prop :=
  down_set p S /\ forall u, u < statements p -> S u = true -> inside u = true.

Lemma in_touched_below v s : v < statements p -> In s (touched v) -> s < storages p.
Proof.
  intros Hv H. apply in_map_iff in H. destruct H as (a & <- & Ha). now apply (well_formed_spec p v).
Qed.

Lemma lasting_not_ended S s : fits S -> mem s lasting = true -> ended p S s = false.
Proof.
  intros [ _ Hin ] H. apply not_true_iff_false. rewrite ended_spec. intros [ A B ].
  destruct (lasting_spec s H) as [ C | (u & C & D & E) ]; [ congruence | ].
  specialize (B u C E). specialize (Hin u C B). congruence.
Qed.

Lemma is_before_spec u x : x < statements p -> is_before u x = true <-> before p u x.
Proof. intro H. unfold is_before. rewrite existsb_eqb. now apply preds_spec. Qed.

Lemma check_descent_sound s run : forall u,
  u < statements p -> check_descent u run s = true -> descends p u run s.
Proof.
  induction run as [ | x run IH ]; cbn; intros u Hu H; [ assumption | ].
  rewrite !andb_true_iff in H. destruct H as [ [ Hx _ ] H ].
  apply is_before_spec in Hx; [ | assumption ]. split; [ assumption | ].
  apply IH; [ now apply before_range in Hx | assumption ].
Qed.

Lemma check_run_sound s run s' : check_run s run s' = true -> joins p s run s'.
Proof.
  destruct run as [ | u run ]; cbn; [ discriminate | ].
  rewrite !andb_true_iff, N.ltb_lt. intros (((Hu & _) & Ht) & H).
  repeat split; auto. now apply check_descent_sound.
Qed.

Lemma check_links_sound line l : forall s,
  check_links line s l = Accepted tt -> follows p s l.
Proof.
  induction l as [ | [ run s' ] l IH ]; cbn [check_links follows]; intros s H; [ easy | ].
  apply bind_accepted in H. destruct H as ([] & H & H').
  apply require_accepted in H. split; [ now apply check_run_sound | now apply IH ].
Qed.

Lemma check_chain_sound start c :
  check_chain start c = Accepted tt ->
  forall S, fits S -> (forall s, mem s start = true -> begun p S s = true) ->
  exists x, In x (chain_storages c) /\ live p S x = true.
Proof.
  unfold check_chain. intros H S HS Hstart.
  apply bind_accepted in H. destruct H as ([] & H1 & H).
  apply bind_accepted in H. destruct H as ([] & H2 & H3).
  apply require_accepted in H1. apply require_accepted in H3.
  apply check_links_sound in H2.
  apply chain_live; auto.
  - now destruct HS.
  - apply orb_true_iff in H1. destruct H1 as [ H1 | H1 ]; [ | now apply Hstart ].
    apply begun_spec. now left.
  - now apply lasting_not_ended.
Qed.

(** *** Packings *)

Section Packing_sound.

Variables (start fix_ : set) (room : N -> N).

(** The states in question: all fit, and what has started has begun. *)
Variable P : state -> Prop.
Hypothesis P_fits : forall S, P S -> fits S.
Hypothesis start_spec : forall s, mem s start = true -> forall S, P S -> begun p S s = true.

(** In every state, a storage of the chain is live that is not fixed. *)
Definition packed (c : N * list N) : Prop :=
  forall S, P S ->
  exists x, In x (snd c) /\ x < storages p /\ mem x fix_ = false /\ live p S x = true.

(** [k] accounts for the chains [l]. *)
Record packing_ok (l : list (N * list N)) (k : packing) : Prop := {
  ok_loads : forall s, get 0 s (loads k) = load l s;
  ok_room : forall s, load l s <= room s;
  ok_packing_weight : packing_weight k = sum fst l;
  ok_packed : forall c, In c l -> packed c
}.

Lemma load_storages c l t r :
  (forall s, get 0 s t <= room s) ->
  fold (load_storage fix_ room c) l (t, empty) = Accepted r ->
  (forall s, get 0 s (fst r) = sum (fun x => if x =? s then weight c else 0) l + get 0 s t) /\
  (forall s, get 0 s (fst r) <= room s) /\
  (forall s, In s l -> s < storages p /\ mem s fix_ = false).
Proof.
  intro Ht. generalize empty as seen. revert t Ht.
  induction l as [ | x l IH ]; intros t Ht seen H; cbn [fold] in H.
  - injection H as <-. cbn [fst sum]. split; [ reflexivity | ]. split; [ assumption | easy ].
  - apply bind_accepted in H. destruct H as ([ t1 seen1 ] & H1 & H).
    unfold load_storage in H1.
    apply bind_accepted in H1. destruct H1 as ([] & A & H1).
    apply bind_accepted in H1. destruct H1 as ([] & _ & H1).
    apply bind_accepted in H1. destruct H1 as ([] & B & H1).
    apply bind_accepted in H1. destruct H1 as ([] & C & H1).
    apply require_accepted, N.ltb_lt in A. apply require_accepted, negb_true_iff in B.
    apply require_accepted, N.leb_le in C. injection H1 as <- _.
    destruct (IH (put x (weight c + get 0 x t) t)) with (seen := seen1) as (D & E & F); auto.
    + intro s. rewrite get_put. destruct (N.eqb_spec s x) as [ -> | ]; auto.
    + split; [ | split; [ assumption | ] ].
      * intro s. rewrite D, get_put. cbn [sum]. rewrite (N.eqb_sym x s).
        destruct (N.eqb_spec s x) as [ -> | ]; lia.
      * intros s [ <- | Hs ]; auto.
Qed.

Lemma add_chain_ok l k c k' :
  packing_ok l k -> add_chain start fix_ room k c = Accepted k' ->
  packing_ok ((weight c, chain_storages c) :: l) k'.
Proof.
  intros Hk H. unfold add_chain in H.
  apply bind_accepted in H. destruct H as (r & Hr & H).
  apply bind_accepted in H. destruct H as ([] & Hc & H). injection H as <-.
  apply load_storages in Hr.
  2:{ intro s. rewrite (ok_loads l k Hk). apply Hk. }
  destruct Hr as (A & B & C).
  assert (D : forall s, get 0 s (fst r) = load ((weight c, chain_storages c) :: l) s).
  { intro s. rewrite A, (ok_loads l k Hk). reflexivity. }
  constructor; cbn [loads packing_weight].
  - assumption.
  - intro s. rewrite <- D. apply B.
  - cbn [sum fst]. now rewrite (ok_packing_weight l k Hk).
  - intros c' [ <- | Hin ]; [ | now apply (ok_packed l k Hk) ].
    intros S HS. cbn [snd].
    destruct (check_chain_sound _ _ Hc S) as (x & Hx & Hlive); auto.
    exists x. destruct (C x Hx). auto.
Qed.

Lemma check_packing_sound chains w :
  check_packing start fix_ room chains = Accepted w ->
  exists l, w = sum fst l /\ (forall s, load l s <= room s) /\ (forall c, In c l -> packed c).
Proof.
  unfold check_packing. intro H. apply bind_accepted in H. destruct H as (k & H & E).
  injection E as <-.
  assert (Hl : exists l, packing_ok l k).
  { refine (fold_invariant _ (fun _ k => exists l, packing_ok l k) _ _ _ H _ _).
    - intros done c k1 k2 _ (l & Hl) Hk. eauto using add_chain_ok.
    - exists []. constructor; cbn; try easy; try lia. intro s. now rewrite get_no_rows. }
  destruct Hl as (l & Hl). exists l. split; [ apply Hl | ]. split; apply Hl.
Qed.

End Packing_sound.

End ChainCheck.
