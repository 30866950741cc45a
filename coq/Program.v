(** Programs, dependences and legal orders (THEORY.md 1).

    This file and Cost.v say what is meant. All else is either computed and proved equal to this, or
    proved about it. *)

From Coq Require Import NArith List Bool Lia Permutation.
From Peakproof Require Import Sets.
Import ListNotations.
Open Scope N_scope.

(** An access of the bytes [from <= b < to] of a storage, [None]: of all of it. An access that does
    not write reads. *)
Record access := Access {
  on : N;
  bytes_of : option (N * N);
  writes : bool
}.

Record statement := Statement {
  work_bytes : N;
  access_list : list access
}.

Record storage := Storage {
  size : N;
  live_in : bool;
  live_out : bool
}.

(** Statements [0 .. statements-1] in their original order, storages [0 .. storages-1], and the
    pairs (before, after) of the program's [order]. In a program file before < after; a proof may
    add others (Probe.v). What the two functions give at other indices has no influence. *)
Record program := Program {
  statements : N;
  storages : N;
  statement_of : N -> statement;
  storage_of : N -> storage;
  pairs : list (N * N)
}.

Section Program.

Variable p : program.

Definition accesses (v : N) : list access := access_list (statement_of p v).
Definition work (v : N) : N := work_bytes (statement_of p v).
Definition bytes (s : N) : N := size (storage_of p s).

(** Statement [v] accesses storage [s]. *)
Definition touches (v s : N) : bool := existsb (fun a => on a =? s) (accesses v).

(** Two accesses of one storage are independent only if both give ranges and these are disjoint. *)
Definition overlap (a b : access) : bool :=
  match bytes_of a, bytes_of b with
  | Some (from_a, to_a), Some (from_b, to_b) => (from_a <? to_b) && (from_b <? to_a)
  | _, _ => true
  end.

Definition conflict (a b : access) : bool :=
  (on a =? on b) && (writes a || writes b) && overlap a b.

(** [u] is a direct predecessor of [x]: it must run before [x] in every legal order. *)
Definition before (u x : N) : Prop :=
  u < statements p /\ x < statements p /\
  (In (u, x) (pairs p) \/
   u < x /\ exists a b, In a (accesses u) /\ In b (accesses x) /\ conflict a b = true).

Inductive ancestor : N -> N -> Prop :=
| parent u v : before u v -> ancestor u v
| grandparent u x v : ancestor u x -> before x v -> ancestor u v.

(** A legal order is a permutation of the statements in which the direct predecessors of each
    statement stand before it. *)
Definition legal (order : list N) : Prop :=
  Permutation order (ids (statements p)) /\
  forall done v rest, order = done ++ v :: rest -> forall u, before u v -> In u done.

(** ** First consequences *)

Lemma touches_spec v s : touches v s = true <-> exists a, In a (accesses v) /\ on a = s.
Proof.
  unfold touches. rewrite existsb_exists.
  now setoid_rewrite N.eqb_eq.
Qed.

Lemma before_range u x : before u x -> u < statements p /\ x < statements p.
Proof. unfold before. tauto. Qed.

Lemma ancestor_range u v : ancestor u v -> u < statements p /\ v < statements p.
Proof. induction 1 as [ u v H | u x v H IH H' ]; unfold before in *; tauto. Qed.

Lemma ancestor_trans u x v : ancestor u x -> ancestor x v -> ancestor u v.
Proof.
  intros H1 H2. induction H2 as [ x v H | x y v H IH H' ].
  - now apply grandparent with x.
  - apply grandparent with y; auto.
Qed.

Lemma legal_range order v : legal order -> In v order <-> v < statements p.
Proof.
  intros [ H _ ]. rewrite <- in_ids. split; apply Permutation_in; auto using Permutation_sym.
Qed.

Lemma legal_NoDup order : legal order -> NoDup order.
Proof.
  intros [ H _ ]. apply Permutation_NoDup with (ids (statements p)).
  - now apply Permutation_sym.
  - apply NoDup_ids.
Qed.

(** The original order is legal: what is said of all legal orders is not empty. *)
Lemma original_legal :
  (forall u x, In (u, x) (pairs p) -> u < x) -> legal (ids (statements p)).
Proof.
  intro forward. split; [ apply Permutation_refl | ].
  intros done v rest E u Hu.
  assert (Hin : In u (ids (statements p))) by (apply in_ids; now apply before_range in Hu).
  rewrite E in Hin. apply in_app_or in Hin. destruct Hin as [ | Hin ]; [ assumption | exfalso ].
  assert (H : forall start count l, from start count = l ++ v :: rest -> In u (v :: rest) -> v <= u).
  { intros start count. revert start. induction count as [ | count IH ]; intros start l F G.
    - destruct l; discriminate.
    - destruct l as [ | w l ]; cbn in F; injection F as F F'.
      + subst. assert (K : In u (from v (S count))) by (cbn [from]; assumption).
        apply in_from in K. lia.
      + now apply IH in F'. }
  specialize (H _ _ _ E Hin). destruct Hu as (_ & _ & [ Hu | [ Hu _ ] ]); [ apply forward in Hu | ]; lia.
Qed.

(** What has run before a statement is closed under direct predecessors ... *)
Lemma legal_closed order done rest :
  legal order -> order = done ++ rest -> forall u x, before u x -> In x done -> In u done.
Proof.
  intros [ _ H ] E u x Hux Hx. destruct (in_split _ _ Hx) as (l1 & l2 & ->).
  rewrite <- app_assoc in E. cbn in E.
  specialize (H _ _ _ E u Hux). apply in_or_app. now left.
Qed.

(** ... and holds the ancestors of that statement. *)
Lemma legal_ancestors order done v rest :
  legal order -> order = done ++ v :: rest -> forall u, ancestor u v -> In u done.
Proof.
  intros Hl E u Hu. revert done rest E.
  induction Hu as [ u v H | u x v H IH H' ]; intros done rest E.
  - destruct Hl as [ _ Hl ]. eauto.
  - assert (Hx : In x done) by (destruct Hl as [ _ Hl ]; eauto).
    destruct (in_split _ _ Hx) as (l1 & l2 & ->).
    rewrite <- app_assoc in E. cbn in E.
    apply in_or_app. left. eauto.
Qed.

End Program.

(** ** Programs given as lists *)

Definition program_of (l : list statement) (r : list storage) (order : list (N * N)) : program :=
  let lt := table_of 0 l in
  let rt := table_of 0 r in
  {| statements := N.of_nat (length l);
     storages := N.of_nat (length r);
     statement_of := fun v => get (Statement 0 []) v lt;
     storage_of := fun s => get (Storage 0 false false) s rt;
     pairs := order |}.

Lemma program_of_statement l r order v :
  statement_of (program_of l r order) v = nth (N.to_nat v) l (Statement 0 []).
Proof.
  cbn. rewrite get_table_of, (proj2 (N.ltb_ge v 0)) by lia. now rewrite N.sub_0_r.
Qed.

Lemma program_of_storage l r order s :
  storage_of (program_of l r order) s = nth (N.to_nat s) r (Storage 0 false false).
Proof.
  cbn. rewrite get_table_of, (proj2 (N.ltb_ge s 0)) by lia. now rewrite N.sub_0_r.
Qed.
