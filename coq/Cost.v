(** Memory, cost and peak (THEORY.md 1). *)

From Coq Require Import NArith List Bool Lia Permutation.
From Peakproof Require Import Sets Program.
Import ListNotations.
Open Scope N_scope.

(** The statements that have run. *)
Definition state := N -> bool.
Definition nothing : state := fun _ => false.
Definition state_of (done : list N) : state := fun u => existsb (N.eqb u) done.

Section Cost.

Variable p : program.

(** [live_in(s) or A(s) meets S] *)
Definition begun (S : state) (s : N) : bool :=
  live_in (storage_of p s) || existsb (fun u => touches p u s && S u) (ids (statements p)).

(** [not live_out(s) and A(s) inside S] *)
Definition ended (S : state) (s : N) : bool :=
  negb (live_out (storage_of p s)) &&
  forallb (fun u => implb (touches p u s) (S u)) (ids (statements p)).

Definition live (S : state) (s : N) : bool := begun S s && negb (ended S s).

(** M(S): the bytes between statements. *)
Definition memory (S : state) : N :=
  sum (fun s => if live S s then bytes p s else 0) (ids (storages p)).

(** c(S,v): the bytes while [v] runs. *)
Definition cost (S : state) (v : N) : N :=
  work p v +
  sum (fun s => if touches p v s || live S s then bytes p s else 0) (ids (storages p)).

(** The largest cost of the statements of [rest], when those of [done] have run. *)
Fixpoint peak_from (done rest : list N) : N :=
  match rest with
  | [] => 0
  | v :: rest' => N.max (cost (state_of done) v) (peak_from (done ++ [v]) rest')
  end.

Definition peak (order : list N) : N := N.max (memory nothing) (peak_from [] order).

(** [order] is legal, and no legal order has a lower peak. *)
Definition optimal (order : list N) : Prop :=
  legal p order /\ forall other, legal p other -> peak order <= peak other.

(** A set of statements that is closed under direct predecessors. *)
Definition down_set (S : state) : Prop := forall u x, before p u x -> S x = true -> S u = true.

(** ** First consequences *)

Lemma begun_spec S s :
  begun S s = true <->
  live_in (storage_of p s) = true \/
  exists u, u < statements p /\ touches p u s = true /\ S u = true.
Proof.
  unfold begun. rewrite orb_true_iff, existsb_exists.
  setoid_rewrite in_ids. setoid_rewrite andb_true_iff. tauto.
Qed.

Lemma ended_spec S s :
  ended S s = true <->
  live_out (storage_of p s) = false /\
  forall u, u < statements p -> touches p u s = true -> S u = true.
Proof.
  unfold ended. rewrite andb_true_iff, negb_true_iff, forallb_forall.
  setoid_rewrite in_ids. setoid_rewrite implb_true_iff. reflexivity.
Qed.

Lemma state_of_spec done u : state_of done u = true <-> In u done.
Proof. apply existsb_eqb. Qed.

(** Only the statements of the program matter. *)
Definition same (S S' : state) : Prop := forall u, u < statements p -> S u = S' u.

Lemma begun_same S S' s : same S S' -> begun S s = begun S' s.
Proof.
  intro H. apply eq_iff_eq_true. rewrite !begun_spec.
  split; (intros [ A | (u & A & B & C) ]; [ now left | right; exists u ]);
    specialize (H u A); intuition congruence.
Qed.

Lemma ended_same S S' s : same S S' -> ended S s = ended S' s.
Proof.
  intro H. apply eq_iff_eq_true. rewrite !ended_spec.
  split; intros [ A B ]; split; auto; intros u C D; specialize (H u C); specialize (B u C D);
    congruence.
Qed.

Lemma live_same S S' s : same S S' -> live S s = live S' s.
Proof. intro H. unfold live. now rewrite (begun_same S S'), (ended_same S S'). Qed.

Lemma memory_same S S' : same S S' -> memory S = memory S'.
Proof. intro H. apply sum_ext. intros s _. now rewrite (live_same S S'). Qed.

Lemma cost_same S S' v : same S S' -> cost S v = cost S' v.
Proof. intro H. unfold cost. f_equal. apply sum_ext. intros s _. now rewrite (live_same S S'). Qed.

(** Memory is never above the cost of the next statement. *)
Lemma memory_le_cost S v : memory S <= cost S v.
Proof.
  unfold cost. enough (memory S <= sum (fun s => if touches p v s || live S s then bytes p s else 0)
    (ids (storages p))) by lia.
  apply sum_le. intros s _. destruct (touches p v s), (live S s); cbn; lia.
Qed.

(** A peak is reached at the start or by a step. *)
Lemma peak_from_spec x rest : forall done,
  x <= peak_from done rest <->
  x = 0 \/ exists l v l', rest = l ++ v :: l' /\ x <= cost (state_of (done ++ l)) v.
Proof.
  induction rest as [ | w rest IH ]; intro done; cbn [peak_from].
  - split; [ left; lia | ]. intros [ -> | (l & v & l' & E & _) ]; [ lia | ].
    destruct l; discriminate.
  - rewrite N.max_le_iff, IH. split.
    + intros [ H | [ H | (l & v & l' & -> & H) ] ].
      * right. exists [], w, rest. now rewrite app_nil_r.
      * now left.
      * right. exists (w :: l), v, l'. split; [ reflexivity | ].
        now rewrite <- app_assoc in H.
    + intros [ H | (l & v & l' & E & H) ]; [ auto | ].
      destruct l as [ | w' l ]; cbn in E; injection E as -> ->.
      * left. now rewrite app_nil_r in H.
      * right. right. exists l, v, l'. split; [ reflexivity | ]. now rewrite <- app_assoc.
Qed.

Lemma peak_spec x order :
  x <= peak order <->
  x <= memory nothing \/
  exists done v rest, order = done ++ v :: rest /\ x <= cost (state_of done) v.
Proof.
  unfold peak. rewrite N.max_le_iff, peak_from_spec. cbn.
  split; [ intros [ H | [ H | H ] ]; auto; left; lia | tauto ].
Qed.

Lemma optimal_of_bound order bound :
  legal p order -> peak order = bound -> (forall o, legal p o -> bound <= peak o) -> optimal order.
Proof. intros H <- H'. now split. Qed.

End Cost.
