(** Finite sets and tables of indices, lists of indices, and sums of bytes.

    Indices and bytes are [N]: they have no largest value, and take logarithmic space. *)

From Coq Require Import NArith List Bool Lia MSetPositive FMapPositive.
Import ListNotations.
Open Scope N_scope.

(** ** Sets *)

Definition set := PositiveSet.t.
Definition empty : set := PositiveSet.empty.
Definition mem (i : N) (s : set) : bool := PositiveSet.mem (N.succ_pos i) s.
Definition add (i : N) (s : set) : set := PositiveSet.add (N.succ_pos i) s.

Lemma succ_pos_eq i j : N.succ_pos i = N.succ_pos j <-> i = j.
Proof.
  split; [ | congruence ]. intro H.
  apply (f_equal Npos) in H. rewrite !N.succ_pos_spec in H. lia.
Qed.

Lemma mem_empty i : mem i empty = false.
Proof. reflexivity. Qed.

Lemma mem_add i j s : mem i (add j s) = (i =? j) || mem i s.
Proof.
  unfold mem, add. apply eq_iff_eq_true.
  rewrite orb_true_iff, N.eqb_eq, <- succ_pos_eq.
  exact (PositiveSet.add_spec s (N.succ_pos j) (N.succ_pos i)).
Qed.

Definition add_all (l : list N) (s : set) : set := fold_left (fun t i => add i t) l s.

Lemma mem_add_all i l : forall s, mem i (add_all l s) = existsb (N.eqb i) l || mem i s.
Proof.
  induction l as [ | j l IH ]; intro s; [ reflexivity | ].
  change (add_all (j :: l) s) with (add_all l (add j s)).
  rewrite IH, mem_add. cbn [existsb]. destruct (i =? j), (existsb (N.eqb i) l); reflexivity.
Qed.

Lemma existsb_eqb i l : existsb (N.eqb i) l = true <-> In i l.
Proof.
  rewrite existsb_exists. split.
  - intros (x & Hx & E). apply N.eqb_eq in E. congruence.
  - intro H. exists i. rewrite N.eqb_refl. auto.
Qed.

Lemma mem_of_list i l : mem i (add_all l empty) = true <-> In i l.
Proof. rewrite mem_add_all, mem_empty, orb_false_r. apply existsb_eqb. Qed.

(** ** Tables *)

Definition table (A : Type) := PositiveMap.t A.
Definition no_rows (A : Type) : table A := PositiveMap.empty A.
Definition get {A} (default : A) (i : N) (t : table A) : A :=
  match PositiveMap.find (N.succ_pos i) t with Some a => a | None => default end.
Definition put {A} (i : N) (a : A) (t : table A) : table A := PositiveMap.add (N.succ_pos i) a t.

Lemma get_no_rows {A} (d : A) i : get d i (no_rows A) = d.
Proof. unfold get, no_rows. now rewrite PositiveMap.gempty. Qed.

Lemma get_put {A} (d a : A) i j t : get d i (put j a t) = if i =? j then a else get d i t.
Proof.
  unfold get, put. destruct (N.eqb_spec i j) as [ -> | H ].
  - now rewrite PositiveMap.gss.
  - rewrite PositiveMap.gso; [ reflexivity | ]. now rewrite succ_pos_eq.
Qed.

(** [table_of 0 l] holds the list [l], row by row. *)
Fixpoint table_of {A} (i : N) (l : list A) : table A :=
  match l with
  | [] => no_rows A
  | a :: rest => put i a (table_of (N.succ i) rest)
  end.

Lemma get_table_of {A} (d : A) l : forall i k,
  get d k (table_of i l) = if k <? i then d else nth (N.to_nat (k - i)) l d.
Proof.
  induction l as [ | a l IH ]; intros i k; cbn [table_of].
  - rewrite get_no_rows. destruct (k <? i), (N.to_nat (k - i)); reflexivity.
  - rewrite get_put, IH. destruct (N.eqb_spec k i) as [ -> | H ].
    + rewrite (proj2 (N.ltb_ge i i)) by lia. now rewrite N.sub_diag.
    + destruct (N.ltb_spec k i); destruct (N.ltb_spec k (N.succ i)); try lia; [ reflexivity | ].
      replace (N.to_nat (k - i)) with (S (N.to_nat (k - N.succ i))) by lia. reflexivity.
Qed.

(** ** The indices below a number *)

Fixpoint from (start : N) (count : nat) : list N :=
  match count with
  | O => []
  | S rest => start :: from (N.succ start) rest
  end.

Definition ids (k : N) : list N := from 0 (N.to_nat k).

Lemma in_from i count : forall start, In i (from start count) <-> start <= i < start + N.of_nat count.
Proof.
  induction count as [ | count IH ]; intro start; cbn [from In]; [ lia | ].
  rewrite IH. lia.
Qed.

Lemma in_ids i k : In i (ids k) <-> i < k.
Proof. unfold ids. rewrite in_from. lia. Qed.

Lemma NoDup_from count : forall start, NoDup (from start count).
Proof.
  induction count as [ | count IH ]; intro start; cbn; constructor; auto.
  rewrite in_from. lia.
Qed.

Lemma NoDup_ids k : NoDup (ids k).
Proof. apply NoDup_from. Qed.

Lemma length_from count : forall start, length (from start count) = count.
Proof. induction count; intro; cbn; auto. Qed.

Lemma from_last count : forall start,
  from start (S count) = from start count ++ [ start + N.of_nat count ].
Proof.
  induction count as [ | count IH ]; intro start.
  - cbn. now rewrite N.add_0_r.
  - change (from start (S (S count))) with (start :: from (N.succ start) (S count)).
    rewrite IH. cbn [from app]. do 3 f_equal. lia.
Qed.

Lemma length_ids k : length (ids k) = N.to_nat k.
Proof. apply length_from. Qed.

Lemma NoDup_map {A B} (f : A -> B) l :
  (forall a b, In a l -> In b l -> f a = f b -> a = b) -> NoDup l -> NoDup (map f l).
Proof.
  intros H Hl. induction Hl as [ | a l Ha Hl IH ]; cbn; constructor.
  - rewrite in_map_iff. intros (b & E & Hb).
    rewrite (H b a) in Hb; cbn; auto.
  - apply IH. intros. apply H; cbn; auto.
Qed.

Lemma NoDup_app_single {A} (l : list A) a : NoDup l -> ~ In a l -> NoDup (l ++ [ a ]).
Proof.
  intros H Ha. apply NoDup_rev in H. rewrite <- (rev_involutive (l ++ [ a ])), rev_app_distr.
  apply NoDup_rev. cbn. constructor; [ now rewrite <- in_rev | assumption ].
Qed.

(** What stands before an element that occurs once. *)
Lemma NoDup_split {A} (v : A) l1 : forall m1 l2 m2,
  NoDup (l1 ++ v :: l2) -> l1 ++ v :: l2 = m1 ++ v :: m2 -> l1 = m1.
Proof.
  induction l1 as [ | a l1 IH ]; intros m1 l2 m2 Hnd E; destruct m1 as [ | b m1 ]; cbn in *.
  - reflexivity.
  - injection E as -> E. inversion Hnd as [ | ? ? Hn _ ]; subst. exfalso. apply Hn, in_elt.
  - injection E as -> E. inversion Hnd as [ | ? ? Hn _ ]; subst. exfalso. apply Hn, in_elt.
  - injection E as -> E. inversion Hnd; subst. f_equal. eapply IH; eauto.
Qed.

(** ** Sums *)

Fixpoint sum {A} (f : A -> N) (l : list A) : N :=
  match l with
  | [] => 0
  | a :: rest => f a + sum f rest
  end.

Lemma sum_ext {A} (f g : A -> N) l : (forall a, In a l -> f a = g a) -> sum f l = sum g l.
Proof.
  induction l as [ | a l IH ]; cbn; intro H; [ reflexivity | ].
  rewrite (H a), IH; auto.
Qed.

Lemma sum_le {A} (f g : A -> N) l : (forall a, In a l -> f a <= g a) -> sum f l <= sum g l.
Proof.
  induction l as [ | a l IH ]; cbn; intro H; [ lia | ].
  specialize (H a (or_introl eq_refl)) as Ha.
  specialize (IH (fun b Hb => H b (or_intror Hb))). lia.
Qed.

Lemma sum_plus {A} (f g : A -> N) l : sum (fun a => f a + g a) l = sum f l + sum g l.
Proof. induction l as [ | a l IH ]; cbn; [ reflexivity | ]. rewrite IH. lia. Qed.

Lemma sum_zero {A} (l : list A) : sum (fun _ => 0) l = 0.
Proof. induction l; cbn; auto. Qed.

Lemma sum_app {A} (f : A -> N) l l' : sum f (l ++ l') = sum f l + sum f l'.
Proof. induction l as [ | a l IH ]; cbn; [ reflexivity | ]. rewrite IH. lia. Qed.

Lemma sum_map {A B} (f : B -> N) (g : A -> B) l : sum f (map g l) = sum (fun a => f (g a)) l.
Proof. induction l as [ | a l IH ]; cbn; [ reflexivity | ]. now rewrite IH. Qed.

Lemma sum_swap {A B} (f : A -> B -> N) la lb :
  sum (fun a => sum (f a) lb) la = sum (fun b => sum (fun a => f a b) la) lb.
Proof.
  induction la as [ | a la IH ]; cbn.
  - symmetry. apply sum_zero.
  - rewrite IH, <- sum_plus. reflexivity.
Qed.

Lemma sum_at_least {A} (f : A -> N) l a : In a l -> f a <= sum f l.
Proof.
  induction l as [ | b l IH ]; cbn; [ easy | ].
  intros [ -> | H ]; [ lia | ]. specialize (IH H). lia.
Qed.

(** A sum over a list without repetitions that is zero except at [i]. *)
Lemma sum_single l i x : NoDup l -> In i l -> sum (fun j => if j =? i then x else 0) l = x.
Proof.
  induction 1 as [ | j l Hj Hl IH ]; cbn; [ easy | ].
  intros [ -> | H ].
  - rewrite N.eqb_refl, (sum_ext _ (fun _ => 0)), sum_zero; [ lia | ].
    intros k Hk. destruct (N.eqb_spec k i); congruence.
  - rewrite IH by assumption. destruct (N.eqb_spec j i); [ congruence | lia ].
Qed.

(** ** Bags: sets of indices, with the sum of their values *)

Record bag := Bag { members : set; total : N }.

Definition no_bag : bag := Bag empty 0.

Definition weigh (value : N -> N) (k : N) (F : N -> bool) : N :=
  sum (fun i => if F i then value i else 0) (ids k).

Section Bag.

Variable value : N -> N.

Definition insert (b : bag) (i : N) : bag :=
  if mem i (members b) then b else Bag (add i (members b)) (value i + total b).

Definition insert_all : list N -> bag -> bag := fold_left insert.

(** The members are below [k], and their values add up to the total. *)
Record weighed (k : N) (b : bag) : Prop := {
  weighed_below : forall i, mem i (members b) = true -> i < k;
  weighed_total : total b = weigh value k (fun i => mem i (members b))
}.

Lemma weighed_none k : weighed k no_bag.
Proof.
  split.
  - intros i. cbn [members no_bag]. rewrite mem_empty. discriminate.
  - unfold weigh. cbn. symmetry. apply sum_zero.
Qed.

Lemma mem_insert b i j : mem j (members (insert b i)) = (j =? i) || mem j (members b).
Proof.
  unfold insert. destruct (mem i (members b)) eqn:E; cbn [members].
  - destruct (N.eqb_spec j i) as [ -> | ]; [ now rewrite E | reflexivity ].
  - apply mem_add.
Qed.

Lemma weighed_insert k b i : i < k -> weighed k b -> weighed k (insert b i).
Proof.
  intros Hi [ Hbelow Htotal ]. split.
  - intros j. rewrite mem_insert, orb_true_iff, N.eqb_eq. intros [ -> | H ]; auto.
  - unfold insert. destruct (mem i (members b)) eqn:E; [ assumption | ]. cbn [members total].
    rewrite Htotal. unfold weigh.
    rewrite <- (sum_single (ids k) i (value i)) at 1 by (apply NoDup_ids || now apply in_ids).
    rewrite <- sum_plus. apply sum_ext. intros j _. rewrite mem_add.
    destruct (N.eqb_spec j i) as [ -> | ]; cbn [orb]; [ rewrite E | ]; lia.
Qed.

Lemma mem_insert_all l j : forall b,
  mem j (members (insert_all l b)) = existsb (N.eqb j) l || mem j (members b).
Proof.
  induction l as [ | i l IH ]; intro b; [ reflexivity | ].
  change (insert_all (i :: l) b) with (insert_all l (insert b i)).
  rewrite IH, mem_insert. cbn [existsb]. destruct (j =? i), (existsb (N.eqb j) l); reflexivity.
Qed.

Lemma weighed_insert_all k l : forall b,
  (forall i, In i l -> i < k) -> weighed k b -> weighed k (insert_all l b).
Proof.
  induction l as [ | i l IH ]; intros b Hl Hb; cbn; [ assumption | ].
  apply IH; [ intros; apply Hl; now right | ].
  apply weighed_insert; [ apply Hl; now left | assumption ].
Qed.

(** What is not in a bag holds the rest. *)
Lemma weigh_rest k b :
  weighed k b ->
  sum value (filter (fun i => negb (mem i (members b))) (ids k)) =
  sum value (ids k) - total b.
Proof.
  intros [ _ -> ]. unfold weigh. induction (ids k) as [ | i l IH ]; cbn [filter sum]; [ reflexivity | ].
  assert (H : sum (fun i => if mem i (members b) then value i else 0) l <= sum value l).
  { apply sum_le. intros j _. destruct (mem j (members b)); lia. }
  destruct (mem i (members b)); cbn [negb sum]; rewrite IH; lia.
Qed.

End Bag.
