(** Checking a whole search proof: commits from both sides, then the middle. *)

From Coq Require Import NArith List Bool Lia.
From Peakproof Require Import Sets Program Cost Reverse Commit Search Graph Simulate Certificate
  ChainCheck TrapCheck SearchCheck ExploreCheck.
Import ListNotations.
Open Scope N_scope.

(** ** Statements renamed, for the reversed program *)

Definition mirror_chain (f : N -> N) (c : chain) : chain :=
  {| chain_line := chain_line c;
     weight := weight c;
     first := first c;
     links := map (fun l => (map f (fst l), snd l)) (links c) |}.

Definition mirror_state_line (f : N -> N) (e : state_line) : state_line :=
  match e with
  | Declare line state v => Declare line state (f v)
  | Claim_next line state => Claim_next line state
  | Claim_commit line state to chains => Claim_commit line state to (map (mirror_chain f) chains)
  | Claim_reached line state start path => Claim_reached line state start (map f path)
  end.

Definition mirror_block (f : N -> N) (b : block_lines) : block_lines :=
  {| block_line := block_line b;
     block_statements := map f (block_statements b);
     block_chains := map (mirror_chain f) (block_chains b);
     block_states := map (mirror_state_line f) (block_states b) |}.

Definition rename {A} (f : N -> N) (o : outcome A) : outcome A :=
  match o with
  | Accepted a => Accepted a
  | Refuted line l => Refuted line (rename_lie f l)
  end.

Lemma rename_accepted {A} f (o : outcome A) a : rename f o = Accepted a -> o = Accepted a.
Proof. destruct o; cbn; [ auto | discriminate ]. Qed.

(** ** The check *)

Section SearchProof.

Variable p : program.
Variable preds : table (list N).
Variable bound : N.

Let q : program := reverse p.
Let f : N -> N := mirror p.

(** What has run from the start, and from the end backwards. *)
Record sides := Sides { from_start : set; from_end : set }.

(** What the other side has left. *)
Definition left_by (S' : set) : state := fun u => negb (mem (f u) S').

Definition descendants (other : scene) (fuel : nat) (v : N) : N -> bool :=
  let d := seen (search_from (before_of other) empty fuel (get [] (f v) (before_of other)) search_none) in
  fun u => mem (f u) d.

Definition check_step (forward backward : scene) (fuel : nat) (s : sides) (e : search_step)
    : outcome sides :=
  let upper := left_by (from_end s) in
  let upper' := left_by (from_start s) in
  let go_forward o := S <- o; Accepted (Sides S (from_end s)) in
  let go_backward o := S' <- rename f o; Accepted (Sides (from_start s) S') in
  match e with
  | Pivot line false v =>
      go_forward (pivot_to forward upper line fuel (descendants backward fuel v) (from_start s) v)
  | Pivot line true v =>
      go_backward (pivot_to backward upper' line fuel (descendants forward fuel (f v)) (from_end s) (f v))
  | Commit_each line false l =>
      go_forward (fold (commit_statement forward upper line) l (from_start s))
  | Commit_each line true l =>
      go_backward (fold (commit_statement backward upper' line) (map f l) (from_end s))
  | Commit_to line false l chains =>
      go_forward (commit_to forward upper line (from_start s) l chains)
  | Commit_to line true l chains =>
      go_backward (commit_to backward upper' line (from_end s) (map f l) (map (mirror_chain f) chains))
  end.

Definition check_search (last_line : N) (s : search_lines) : outcome unit :=
  let forward := scene_of p preds in
  let backward := scene_of q (predecessors q) in
  let fuel := enough_fuel p preds in
  require (well_formed q) 1 Access_outside;;
  sides <- fold (check_step forward backward fuel) (search_steps s) (Sides empty empty);
  if explore_reverse s then
    rename f (explore backward bound (from_end sides) (left_by (from_start sides))
      (explore_line s) last_line (map (mirror_block f) (search_blocks s)))
  else
    explore forward bound (from_start sides) (left_by (from_end sides))
      (explore_line s) last_line (search_blocks s).

(** ** Soundness *)

Hypothesis wf : well_formed p = true.
Hypothesis preds_spec : forall u x, x < statements p -> In u (get [] x preds) <-> before p u x.

Lemma left_by_opposite S' : opposite p (in_set S') (left_by S').
Proof. intros u Hu. unfold left_by, in_set, f. now rewrite mirror_mirror. Qed.

Lemma opposite_left_by S' : opposite p (left_by S') (in_set S').
Proof. intros u _. unfold left_by, in_set, f. now rewrite negb_involutive. Qed.

(** The sides do not overlap, and an order below the bound goes from one to the other. *)
Record sides_ok (s : sides) : Prop := {
  ok_start : down_set p (in_set (from_start s));
  ok_end : down_set q (in_set (from_end s));
  ok_apart : forall u, u < statements p -> mem u (from_start s) = true -> mem (f u) (from_end s) = false;
  ok_reaches : forall order, legal p order -> peak p order < bound ->
    reaches p bound (in_set (from_start s)) (left_by (from_end s))
}.

Lemma sides_start : sides_ok (Sides empty empty).
Proof.
  constructor; cbn [from_start from_end].
  - intros u x _. unfold in_set. rewrite mem_empty. discriminate.
  - intros u x _. unfold in_set. rewrite mem_empty. discriminate.
  - intros u _. rewrite mem_empty. discriminate.
  - intros order Hl Hp. destruct (order_reaches p bound order Hl Hp) as (path & G & E).
    assert (F : same p nothing (in_set empty)) by (intros u _; unfold in_set; now rewrite mem_empty).
    exists path. split; [ now apply (goes_same p bound path nothing) | ].
    intros u Hu. transitivity (after nothing path u).
    + symmetry. now apply (same_after p path).
    + rewrite (E u Hu). unfold left_by. now rewrite mem_empty.
Qed.

Section Step.

Variables forward backward : scene.
Hypothesis Hforward : scene_ok forward.
Hypothesis Hbackward : scene_ok backward.
Hypothesis Hp : prog forward = p.
Hypothesis Hq : prog backward = q.

Lemma position_start s : sides_ok s -> position_ok forward (left_by (from_end s)) (from_start s).
Proof.
  intros [ A B C _ ]. split; rewrite Hp; [ assumption | ].
  intros u Hu Su. unfold left_by. now rewrite C.
Qed.

Lemma position_end s : sides_ok s -> position_ok backward (left_by (from_start s)) (from_end s).
Proof.
  intros [ A B C _ ]. split; rewrite Hq; [ assumption | ].
  intros u Hu Su. cbn in Hu. unfold left_by. apply negb_true_iff, not_true_iff_false. intro F.
  assert (G := C (f u) (mirror_lt p u Hu) F). unfold f in G. rewrite mirror_mirror in G by assumption.
  unfold in_set in Su. congruence.
Qed.

Lemma moves_forward s S :
  sides_ok s -> moves forward bound (left_by (from_end s)) (from_start s) S ->
  sides_ok (Sides S (from_end s)).
Proof.
  intros Hs [ [ A B ] C ]. rewrite Hp in A, B, C. constructor; cbn [from_start from_end].
  - assumption.
  - apply Hs.
  - intros u Hu Su. apply negb_true_iff. now apply B.
  - intros order Hl Hpeak. apply C. now apply (ok_reaches s Hs order).
Qed.

Lemma moves_backward s S' :
  sides_ok s -> moves backward bound (left_by (from_start s)) (from_end s) S' ->
  sides_ok (Sides (from_start s) S').
Proof.
  intros Hs [ [ A B ] C ]. rewrite Hq in A, B, C. constructor; cbn [from_start from_end].
  - apply Hs.
  - assumption.
  - intros u Hu Su. apply not_true_iff_false. intro F.
    assert (G := B (f u)). cbn [q reverse statements] in G. specialize (G (mirror_lt p u Hu) F).
    unfold left_by, f in G. rewrite mirror_mirror, Su in G by assumption. discriminate.
  - intros order Hl Hpeak. assert (D := ok_reaches s Hs order Hl Hpeak).
    apply (reaches_unreverse p bound (in_set S') (left_by (from_start s))).
    + assumption.
    + apply left_by_opposite.
    + apply opposite_left_by.
    + apply C. apply (reaches_reverse p bound (in_set (from_start s)) (left_by (from_end s))).
      * apply Hs.
      * apply left_by_opposite.
      * apply opposite_left_by.
      * assumption.
Qed.

(** Moves one after the other. *)
Lemma moves_each c (Hc : scene_ok c) upper line l S Q :
  position_ok c upper S -> fold (commit_statement c upper line) l S = Accepted Q ->
  moves c bound upper S Q.
Proof.
  intros HS H.
  refine (fold_invariant _ (fun _ Q => moves c bound upper S Q) _ _ _ H _ _).
  - intros done v Q1 Q2 _ [ A B ] Hv.
    destruct (commit_statement_sound c bound Hc upper line Q1 v Q2 A Hv) as [ C D ]. split; auto.
  - split; [ assumption | trivial ].
Qed.

Lemma descendants_forward fuel v u :
  v < statements p -> u < statements p -> descendants backward fuel v u = true -> ancestor p v u.
Proof.
  intros Hv Hu H. unfold descendants in H.
  assert (A : ancestor q (f u) (f v)).
  { refine (seen_sound (before_of backward) (fun u => ancestor q u (f v)) fuel _ _ _ _ H).
    - intros y x Hx Hy. assert (x < statements q) by (now apply ancestor_range in Hx).
      apply (scene_preds backward Hbackward) in Hy; [ | now rewrite Hq ]. rewrite Hq in Hy.
      apply ancestor_trans with x; [ now constructor | assumption ].
    - intros y Hy. apply (scene_preds backward Hbackward) in Hy.
      + rewrite Hq in Hy. now constructor.
      + rewrite Hq. exact (mirror_lt p v Hv). }
  now apply ancestor_reverse in A.
Qed.

Lemma descendants_backward fuel v u :
  v < statements p -> u < statements p -> descendants forward fuel v u = true -> ancestor q v u.
Proof.
  intros Hv Hu H. unfold descendants in H.
  assert (A : ancestor p (f u) (f v)).
  { refine (seen_sound (before_of forward) (fun u => ancestor p u (f v)) fuel _ _ _ _ H).
    - intros y x Hx Hy. assert (x < statements p) by (now apply ancestor_range in Hx).
      apply (scene_preds forward Hforward) in Hy; [ | now rewrite Hp ]. rewrite Hp in Hy.
      apply ancestor_trans with x; [ now constructor | assumption ].
    - intros y Hy. apply (scene_preds forward Hforward) in Hy.
      + rewrite Hp in Hy. now constructor.
      + rewrite Hp. exact (mirror_lt p v Hv). }
  now apply ancestor_unreverse in A.
Qed.

Lemma check_step_sound fuel s e s' :
  sides_ok s -> check_step forward backward fuel s e = Accepted s' -> sides_ok s'.
Proof.
  intros Hs H. unfold check_step in H.
  destruct e as [ line [ | ] v | line [ | ] l | line [ | ] l chains ];
    apply bind_accepted in H; destruct H as (S & H & E); injection E as <-;
    try apply rename_accepted in H; try (apply moves_backward; [ assumption | ]);
    try (apply moves_forward; [ assumption | ]).
  - apply (pivot_to_sound backward bound Hbackward) in H; [ assumption | now apply position_end | ].
    rewrite Hq. intros u Hu Hd. assert (Hfv : f v < statements p).
    { unfold pivot_to in H. apply bind_accepted in H. destruct H as ([] & H & _).
      apply require_accepted, N.ltb_lt in H. now rewrite Hq in H. }
    now apply (descendants_backward fuel).
  - apply (pivot_to_sound forward bound Hforward) in H; [ assumption | now apply position_start | ].
    rewrite Hp. intros u Hu Hd. assert (Hv : v < statements p).
    { unfold pivot_to in H. apply bind_accepted in H. destruct H as ([] & H & _).
      apply require_accepted, N.ltb_lt in H. now rewrite Hp in H. }
    now apply (descendants_forward fuel).
  - apply (moves_each backward Hbackward) in H; [ assumption | now apply position_end ].
  - apply (moves_each forward Hforward) in H; [ assumption | now apply position_start ].
  - apply (commit_to_sound backward bound Hbackward) in H; [ assumption | now apply position_end ].
  - apply (commit_to_sound forward bound Hforward) in H; [ assumption | now apply position_start ].
Qed.

End Step.

Theorem check_search_sound last_line s :
  check_search last_line s = Accepted tt ->
  forall order, legal p order -> bound <= peak p order.
Proof.
  unfold check_search. intros H order Hl.
  apply bind_accepted in H. destruct H as ([] & Hwf & H). apply require_accepted in Hwf.
  set (forward := scene_of p preds) in H. set (backward := scene_of q (predecessors q)) in H.
  assert (Hforward : scene_ok forward).
  { constructor; [ exact wf | exact preds_spec | exact (in_users_of p) ]. }
  assert (Hbackward : scene_ok backward).
  { constructor; [ exact Hwf | intros u x Hx; now apply in_predecessors | exact (in_users_of q) ]. }
  apply bind_accepted in H. destruct H as (s' & H1 & H).
  assert (Hs : sides_ok s').
  { refine (fold_invariant _ (fun _ s => sides_ok s) _ _ _ H1 _ _).
    - intros done e s1 s2 _. apply check_step_sound; auto.
    - apply sides_start. }
  destruct (N.lt_ge_cases (peak p order) bound) as [ F | ]; [ exfalso | assumption ].
  assert (R := ok_reaches s' Hs order Hl F).
  destruct (explore_reverse s).
  - apply rename_accepted, explore_accepted in H.
    apply (check_explore_sound backward bound (from_end s') (left_by (from_start s')) Hbackward) in H.
    + apply H. apply (reaches_reverse p bound (in_set (from_start s')) (left_by (from_end s'))).
      * apply Hs.
      * apply left_by_opposite.
      * apply opposite_left_by.
      * assumption.
    + apply Hs.
    + apply (down_set_reverse p (in_set (from_start s'))); [ apply left_by_opposite | apply Hs ].
    + now apply (position_end backward eq_refl).
  - apply explore_accepted in H.
    apply (check_explore_sound forward bound (from_start s') (left_by (from_end s')) Hforward) in H.
    + now apply H.
    + apply Hs.
    + apply (down_set_unreverse p (in_set (from_end s'))); [ apply left_by_opposite | apply Hs ].
    + now apply (position_start forward eq_refl).
Qed.

End SearchProof.
