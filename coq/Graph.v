(** Direct predecessors and ancestors, computed. *)

From Coq Require Import NArith List Bool Lia.
From Peakproof Require Import Sets Program.
Import ListNotations.
Open Scope N_scope.

Definition append {A} (l l' : list A) : list A := rev_append l l'.

Lemma in_append {A} (a : A) l l' : In a (append l l') <-> In a l \/ In a l'.
Proof. unfold append. rewrite rev_append_rev, in_app_iff, <- in_rev. reflexivity. Qed.

Section Graph.

Variable p : program.

(** ** Direct predecessors *)

(** For each storage the accesses, and those that write, of the statements met so far. *)
Record met := Met {
  accessors : table (list (N * access));
  writers : table (list (N * access))
}.

Definition met_none : met := Met (no_rows _) (no_rows _).

Definition meet_access (x : N) (m : met) (a : access) : met :=
  {| accessors := put (on a) ((x, a) :: get [] (on a) (accessors m)) (accessors m);
     writers := if writes a then put (on a) ((x, a) :: get [] (on a) (writers m)) (writers m)
                else writers m |}.

Definition meet (x : N) (m : met) : met := fold_left (meet_access x) (accesses p x) m.

(** The statements met so far that have a conflict with access [b]. *)
Definition conflicts (m : met) (b : access) : list N :=
  let candidates := get [] (on b) (if writes b then accessors m else writers m) in
  fold_left (fun l (c : N * access) => if overlap (snd c) b then fst c :: l else l) candidates [].

(** For each statement those that a pair of the program's order puts before it. *)
Definition pinned : table (list N) :=
  fold_left (fun t (pair : N * N) =>
      let (u, x) := pair in
      if u <? statements p then put x (u :: get [] x t) t else t)
    (pairs p) (no_rows _).

Definition predecessors_of (pins : table (list N)) (m : met) (x : N) : list N :=
  fold_left (fun l b => append (conflicts m b) l) (accesses p x) (get [] x pins).

Fixpoint predecessors_from (pins : table (list N)) (x : N) (count : nat) (m : met)
    (t : table (list N)) : table (list N) :=
  match count with
  | O => t
  | S count' =>
      predecessors_from pins (N.succ x) count' (meet x m) (put x (predecessors_of pins m x) t)
  end.

Definition predecessors : table (list N) :=
  predecessors_from pinned 0 (N.to_nat (statements p)) met_none (no_rows _).

(** *** They are the direct predecessors *)

(** [m] holds the accesses of the statements below [x] that satisfy [P]. *)
Definition holds (P : access -> bool) (x : N) (t : table (list (N * access))) : Prop :=
  forall s u a, In (u, a) (get [] s t) <-> u < x /\ In a (accesses p u) /\ on a = s /\ P a = true.

Lemma meet_accessors x l : forall m s,
  (forall u a, In (u, a) (get [] s (accessors (fold_left (meet_access x) l m))) <->
    In (u, a) (get [] s (accessors m)) \/ (u = x /\ In a l /\ on a = s)) /\
  (forall u a, In (u, a) (get [] s (writers (fold_left (meet_access x) l m))) <->
    In (u, a) (get [] s (writers m)) \/ (u = x /\ In a l /\ on a = s /\ writes a = true)).
Proof.
  induction l as [ | b l IH ]; intros m s; cbn [fold_left].
  - cbn. split; intros; tauto.
  - destruct (IH (meet_access x m b) s) as [ IHa IHw ]. clear IH.
    split; intros u a; [ rewrite IHa | rewrite IHw ]; clear IHa IHw; cbn [In].
    + cbn [meet_access accessors]. rewrite get_put.
      destruct (N.eqb_spec s (on b)) as [ -> | H ]; cbn [In].
      * split.
        -- intros [ [ E | H ] | H ]; [ injection E as <- <- | | ]; tauto.
        -- intros [ H | (-> & [ -> | H ] & E) ]; [ tauto | tauto | tauto ].
      * split; [ tauto | ]. intros [ H' | (-> & [ -> | H' ] & E) ]; [ tauto | congruence | tauto ].
    + cbn [meet_access writers]. destruct (writes b) eqn:W.
      * rewrite get_put. destruct (N.eqb_spec s (on b)) as [ -> | H ]; cbn [In].
        -- split.
           ++ intros [ [ E | H ] | H ]; [ injection E as <- <- | | ]; tauto.
           ++ intros [ H | (-> & [ -> | H ] & E) ]; tauto.
        -- split; [ tauto | ].
           intros [ H' | (-> & [ -> | H' ] & E & F) ]; [ tauto | congruence | tauto ].
      * split; [ tauto | ]. intros [ H' | (-> & [ -> | H' ] & E & F) ]; [ tauto | congruence | tauto ].
Qed.

Definition met_below (x : N) (m : met) : Prop :=
  holds (fun _ => true) x (accessors m) /\ holds writes x (writers m).

Lemma met_below_none : met_below 0 met_none.
Proof.
  split; intros s u a; cbn; rewrite get_no_rows; cbn; (split; [ easy | lia ]).
Qed.

Lemma met_below_meet x m : met_below x m -> met_below (N.succ x) (meet x m).
Proof.
  intros [ HA HW ]. unfold meet.
  split; intros s u a; destruct (meet_accessors x (accesses p x) m s) as [ A W ].
  - rewrite A, (HA s u a). split.
    + intros [ H | (-> & H) ]; intuition lia.
    + intros (H & Ha & E & _). destruct (N.eq_dec u x) as [ -> | ]; [ tauto | left ].
      intuition lia.
  - rewrite W, (HW s u a). split.
    + intros [ H | (-> & H) ]; intuition lia.
    + intros (H & Ha & E & F). destruct (N.eq_dec u x) as [ -> | ]; [ tauto | left ].
      intuition lia.
Qed.

Lemma in_filtered (b : access) u (candidates : list (N * access)) : forall l,
  In u (fold_left (fun l c => if overlap (snd c) b then fst c :: l else l) candidates l) <->
  In u l \/ exists a, In (u, a) candidates /\ overlap a b = true.
Proof.
  induction candidates as [ | [ w a ] candidates IH ]; intro l; cbn [fold_left].
  - split; [ tauto | ]. intros [ | (a & [] & _) ]; assumption.
  - rewrite IH. clear IH. cbn [fst snd In]. split.
    + intros [ H | (a' & H & O) ]; [ | eauto ].
      destruct (overlap a b) eqn:O; [ | tauto ].
      destruct H as [ -> | H ]; eauto.
    + intros [ H | (a' & [ E | H ] & O) ]; [ | injection E as -> -> | eauto ].
      * left. destruct (overlap a b); cbn; tauto.
      * left. rewrite O. cbn. tauto.
Qed.

Lemma in_conflicts x m b u :
  met_below x m ->
  In u (conflicts m b) <-> u < x /\ exists a, In a (accesses p u) /\ conflict a b = true.
Proof.
  intros [ HA HW ]. unfold conflicts. rewrite in_filtered. cbn [In].
  unfold conflict. setoid_rewrite andb_true_iff. setoid_rewrite andb_true_iff.
  setoid_rewrite N.eqb_eq. destruct (writes b).
  - setoid_rewrite (HA (on b)). setoid_rewrite orb_true_r. firstorder.
  - setoid_rewrite (HW (on b)). setoid_rewrite orb_false_r. firstorder.
Qed.

Lemma in_pinned x u : In u (get [] x pinned) <-> u < statements p /\ In (u, x) (pairs p).
Proof.
  unfold pinned.
  assert (H : forall l t,
    In u (get [] x (fold_left (fun t (pair : N * N) => let (u, x) := pair in
      if u <? statements p then put x (u :: get [] x t) t else t) l t)) <->
    In u (get [] x t) \/ (u < statements p /\ In (u, x) l)).
  { induction l as [ | [ w y ] l IH ]; intro t; cbn [fold_left In]; [ tauto | ].
    rewrite IH. clear IH. destruct (N.ltb_spec w (statements p)).
    - rewrite get_put. destruct (N.eqb_spec x y) as [ -> | ]; cbn [In].
      + split.
        * intros [ [ -> | H' ] | H' ]; tauto.
        * intros [ H' | (A & [ E | H' ]) ]; [ tauto | injection E as -> | ]; tauto.
      + split; [ tauto | ]. intros [ H' | (A & [ E | H' ]) ]; [ tauto | congruence | tauto ].
    - split; [ tauto | ]. intros [ H' | (A & [ E | H' ]) ]; [ tauto | | tauto ].
      injection E as -> ->. lia. }
  rewrite H, get_no_rows. cbn. tauto.
Qed.

Lemma in_predecessors_of x m u :
  x < statements p -> met_below x m -> In u (predecessors_of pinned m x) <-> before p u x.
Proof.
  intros Hx Hm. unfold predecessors_of.
  assert (H : forall bs l,
    In u (fold_left (fun l b => append (conflicts m b) l) bs l) <->
    In u l \/ exists b, In b bs /\ In u (conflicts m b)).
  { induction bs as [ | b bs IH ]; intro l; cbn [fold_left In].
    - split; [ tauto | ]. intros [ | (b & [] & _) ]; assumption.
    - rewrite IH, in_append. split.
      + intros [ [ H | H ] | (c & H & H') ]; eauto.
      + intros [ H | (c & [ <- | H ] & H') ]; eauto. }
  rewrite H, in_pinned. setoid_rewrite (fun b => in_conflicts x m b u Hm).
  unfold before. split.
  - intros [ [ A B ] | (b & A & B & a & C & D) ]; [ tauto | ].
    split; [ lia | ]. split; [ assumption | ]. right. eauto 7.
  - intros (A & _ & [ B | (B & a & b & C & D & E) ]); [ tauto | right; eauto 7 ].
Qed.

Theorem in_predecessors u x :
  x < statements p -> In u (get [] x predecessors) <-> before p u x.
Proof.
  intro Hx. unfold predecessors.
  assert (H : forall count y m t,
    y + N.of_nat count = statements p -> met_below y m ->
    (forall z, z < y -> In u (get [] z t) <-> before p u z) ->
    In u (get [] x (predecessors_from pinned y count m t)) <-> before p u x).
  { induction count as [ | count IH ]; intros y m t E Hm Ht; cbn [predecessors_from].
    - apply Ht. lia.
    - apply IH; [ lia | now apply met_below_meet | ].
      intros z Hz. rewrite get_put. destruct (N.eqb_spec z y) as [ -> | ].
      + apply in_predecessors_of; [ lia | assumption ].
      + apply Ht. lia. }
  apply H; [ lia | apply met_below_none | lia ].
Qed.

(** ** Ancestors *)

(** More than the steps that a search takes: each statement is expanded once. *)
Definition enough_fuel (preds : table (list N)) : nat :=
  fold_left (fun k x => fold_left (fun k _ => S (S k)) (get [] x preds) (S k))
    (ids (statements p)) 1%nat.

Record search := Search {
  seen : set;
  found : list N;  (* the statements seen *)
  edge : list N    (* where it met [stop]; with repetitions *)
}.

(** The statements from which the given ones are reached against the direct predecessors, not going
    through [stop]. (If the fuel ran out too few would be found, and too little accepted.) *)
Fixpoint search_from (preds : table (list N)) (stop : set) (fuel : nat) (stack : list N)
    (found_so_far : search) : search :=
  match fuel, stack with
  | S fuel', u :: stack' =>
      if mem u (seen found_so_far) then search_from preds stop fuel' stack' found_so_far
      else if mem u stop then
        search_from preds stop fuel' stack'
          (Search (seen found_so_far) (found found_so_far) (u :: edge found_so_far))
      else
        search_from preds stop fuel' (append (get [] u preds) stack')
          (Search (add u (seen found_so_far)) (u :: found found_so_far) (edge found_so_far))
  | _, _ => found_so_far
  end.

Definition search_none : search := Search empty [] [].

Lemma search_from_sound preds stop (P : N -> Prop) :
  (forall u x, P x -> In u (get [] x preds) -> P u) ->
  forall fuel stack r,
  (forall u, In u stack -> P u) ->
  (forall u, In u (found r) \/ In u (edge r) -> P u) ->
  forall u, In u (found (search_from preds stop fuel stack r)) \/
            In u (edge (search_from preds stop fuel stack r)) -> P u.
Proof.
  intros Hp. induction fuel as [ | fuel IH ]; intros stack r Hs Hr; [ exact Hr | ].
  destruct stack as [ | w stack ]; [ exact Hr | ]. cbn [search_from].
  assert (Hw : P w) by (apply Hs; now left).
  assert (Hs' : forall u, In u stack -> P u) by (intros; apply Hs; now right).
  destruct (mem w (seen r)); [ now apply IH | ].
  destruct (mem w stop); apply IH; auto; cbn [found edge In].
  - intros u [ H | [ -> | H ] ]; auto.
  - intros u H. apply in_append in H. destruct H; eauto.
  - intros u [ [ -> | H ] | H ]; auto.
Qed.

(** The set that a search has seen is what it has found. *)
Lemma seen_found preds stop fuel : forall stack r,
  (forall u, mem u (seen r) = true -> In u (found r)) ->
  forall u, mem u (seen (search_from preds stop fuel stack r)) = true ->
  In u (found (search_from preds stop fuel stack r)).
Proof.
  induction fuel as [ | fuel IH ]; intros stack r H; [ exact H | ].
  destruct stack as [ | w stack ]; [ exact H | ]. cbn [search_from].
  destruct (mem w (seen r)); [ now apply IH | ].
  destruct (mem w stop); apply IH; cbn [seen found]; [ assumption | ].
  intro u. rewrite mem_add, orb_true_iff, N.eqb_eq. intros [ -> | A ]; [ now left | right; auto ].
Qed.

End Graph.
