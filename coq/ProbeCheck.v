(** Checking probing edges (doc/certificate.md): [u] runs before [v] in every order below the bound,
    so the proof goes on with that as one more dependence. *)

From Coq Require Import NArith List Bool Lia Permutation.
From Peakproof Require Import Sets Program Cost Reverse Graph Simulate Trap Certificate ChainCheck
  TrapCheck.
Import ListNotations.
Open Scope N_scope.

Definition add_pair (p : program) (u v : N) : program :=
  {| statements := statements p;
     storages := storages p;
     statement_of := statement_of p;
     storage_of := storage_of p;
     pairs := (u, v) :: pairs p |}.

Section Pair.

Variable p : program.
Variables u v : N.
Hypothesis Hu : u < statements p.
Hypothesis Hv : v < statements p.

Lemma before_add_pair y x : before (add_pair p u v) y x <-> before p y x \/ (y = u /\ x = v).
Proof.
  unfold before. cbn [add_pair statements pairs In]. split.
  - intros (A & B & [ [ [= -> ->] | C ] | C ]); tauto.
  - intros [ (A & B & [ C | C ]) | [ -> -> ] ]; tauto.
Qed.

Lemma legal_add_pair order done rest :
  legal p order -> order = done ++ v :: rest -> In u done -> legal (add_pair p u v) order.
Proof.
  intros Hl E Hin. assert (Hnd := legal_NoDup p order Hl). split; [ apply Hl | ].
  intros done' x rest' E' y Hy. apply before_add_pair in Hy.
  destruct Hy as [ Hy | [ -> -> ] ]; [ destruct Hl as [ _ Hl ]; eauto | ].
  rewrite E in Hnd. replace done' with done; [ assumption | ].
  apply NoDup_split with (2 := eq_trans (eq_sym E) E') (1 := Hnd).
Qed.

(** The costs are the same. *)
Lemma peak_add_pair order : peak (add_pair p u v) order = peak p order.
Proof. reflexivity. Qed.

(** [D] holds only [u], [v] and descendants. *)
Variable D : state.
Hypothesis HD : forall x, D x = true -> x = u \/ x = v \/ ancestor p u x \/ ancestor p v x.
Variable bound : N.
Hypothesis Hcostly : forall S, possible p (fun x => negb (D x)) v S -> bound <= cost p S v.

Theorem probe_order order : legal p order -> peak p order < bound -> legal (add_pair p u v) order.
Proof.
  intros Hl Hp.
  assert (Hin : In v order) by (now apply (legal_range p)).
  destruct (in_split _ _ Hin) as (done & rest & E).
  destruct (in_dec N.eq_dec u done) as [ Hd | Hd ]; [ eapply legal_add_pair; eauto | exfalso ].
  apply (N.lt_irrefl bound). eapply N.le_lt_trans; [ | exact Hp ].
  apply peak_spec. right. exists done, v, rest. split; [ assumption | ].
  assert (Hvd : ~ In v done).
  { assert (Hnd := legal_NoDup p order Hl). rewrite E in Hnd. apply NoDup_remove_2 in Hnd.
    intro F. apply Hnd, in_or_app. now left. }
  assert (Hclosed : forall x y, ancestor p x y -> In y done -> In x done).
  { intros x y H. induction H as [ x y H | x z y H IH H' ]; intro Hy.
    - now apply (legal_closed p order done (v :: rest) Hl E x y).
    - apply IH. now apply (legal_closed p order done (v :: rest) Hl E z y). }
  apply Hcostly. constructor; intros x.
  - intros y B. rewrite !state_of_spec. now apply (legal_closed p order done (v :: rest)).
  - intro Hx. apply state_of_spec. now apply (legal_ancestors p order done v rest).
  - intros _ Hx. apply state_of_spec in Hx. apply negb_true_iff, not_true_iff_false. intro F.
    destruct (HD x F) as [ -> | [ -> | [ A | A ] ] ]; [ tauto | tauto | | ];
      apply Hclosed in A; tauto.
Qed.

(** With a circle there is no such order at all. *)
Theorem probe_circle order : ancestor p v u -> legal p order -> bound <= peak p order.
Proof.
  intros Ha Hl. destruct (N.lt_ge_cases (peak p order) bound) as [ F | ]; [ exfalso | assumption ].
  assert (Hl' := probe_order order Hl F).
  assert (Hmore : forall x y, ancestor p x y -> ancestor (add_pair p u v) x y).
  { induction 1 as [ x y H | x z y H IH H' ].
    - apply parent. apply before_add_pair. now left.
    - apply grandparent with z; [ assumption | ]. apply before_add_pair. now left. }
  assert (Ha' : ancestor (add_pair p u v) v v).
  { apply grandparent with u; [ now apply Hmore | ]. apply before_add_pair. now right. }
  assert (Hin : In v order) by (now apply (legal_range p)).
  destruct (in_split _ _ Hin) as (done & rest & E).
  assert (Hd := legal_ancestors _ order done v rest Hl' E v Ha').
  assert (Hnd := legal_NoDup p order Hl). rewrite E in Hnd. apply NoDup_remove_2 in Hnd.
  apply Hnd, in_or_app. now left.
Qed.

End Pair.

(** ** The check *)

(** Direct successors, from direct predecessors. *)
Definition successors (p : program) (preds : table (list N)) : table (list N) :=
  fold_left (fun t x => fold_left (fun t u => put u (x :: get [] u t) t) (get [] x preds) t)
    (ids (statements p)) (no_rows _).

Lemma in_successors p preds u x :
  In x (get [] u (successors p preds)) <-> x < statements p /\ In u (get [] x preds).
Proof.
  unfold successors.
  assert (Inner : forall y l t, In x (get [] u (fold_left (fun t u => put u (y :: get [] u t) t) l t)) <->
    In x (get [] u t) \/ (x = y /\ In u l)).
  { intros y. induction l as [ | w l IH ]; intro t; cbn [fold_left In]; [ tauto | ].
    rewrite IH, get_put. destruct (N.eqb_spec u w) as [ -> | ]; cbn [In]; intuition congruence. }
  assert (Outer : forall l t,
    In x (get [] u (fold_left (fun t y =>
      fold_left (fun t u => put u (y :: get [] u t) t) (get [] y preds) t) l t)) <->
    In x (get [] u t) \/ (In x l /\ In u (get [] x preds))).
  { induction l as [ | y l IH ]; intro t; cbn [fold_left In]; [ tauto | ].
    rewrite IH, Inner. intuition congruence. }
  rewrite Outer, get_no_rows, in_ids. cbn [In]. tauto.
Qed.

(** The program with the edges so far, and its dependences. *)
Record probed := Probed {
  probed_program : program;
  probed_preds : table (list N);
  probed_succs : table (list N);
  fuel : nat;
  circle : bool
}.

Definition check_probe (bound : N) (r : probed) (e : probe_lines) : outcome probed :=
  let p := probed_program r in
  let u := probe_from e in
  let v := probe_to e in
  let line := probe_line e in
  require (negb (circle r)) line Probe_circle;;
  require ((u <? statements p) && (v <? statements p) && negb (u =? v)) line (Probe_same v);;
  let below_v := search_from (probed_succs r) empty (fuel r) (get [] v (probed_succs r)) search_none in
  let below := search_from (probed_succs r) empty (fuel r) (get [] u (probed_succs r)) below_v in
  let D := add u (add v (seen below)) in
  let inside := fun x => negb (mem x D) in
  sum <- shown_cost p (probed_preds r) inside (lasting_storages p inside) (fuel r)
    (base_of p (lasting_storages p inside) [] []) [] line v (probe_chains e);
  require (bound <=? sum) line (Exit_costs v sum);;
  Accepted
    {| probed_program := add_pair p u v;
       probed_preds := put v (u :: get [] v (probed_preds r)) (probed_preds r);
       probed_succs := put u (v :: get [] u (probed_succs r)) (probed_succs r);
       fuel := S (S (fuel r));
       circle := mem u (seen below_v) |}.

(** What holds of a program with edges, against the program [p] without. *)
Record probed_ok (p : program) (bound : N) (r : probed) : Prop := {
  ok_well_formed : well_formed (probed_program r) = true;
  ok_preds : forall u x, x < statements (probed_program r) ->
    In u (get [] x (probed_preds r)) <-> before (probed_program r) u x;
  ok_succs : forall u x, In x (get [] u (probed_succs r)) -> before (probed_program r) u x;
  ok_orders : forall order, legal p order -> peak p order < bound ->
    legal (probed_program r) order /\ peak (probed_program r) order = peak p order;
  ok_memory : memory (probed_program r) nothing = memory p nothing;
  ok_circle : circle r = true -> forall order, legal p order -> bound <= peak p order
}.

Lemma no_edge preds k : forall stack r,
  edge r = [] -> edge (search_from preds empty k stack r) = [].
Proof.
  induction k as [ | k IH ]; intros stack r Hr; [ exact Hr | ].
  destruct stack as [ | w stack ]; [ exact Hr | ]. cbn [search_from].
  destruct (mem w (seen r)); [ now apply IH | ]. rewrite mem_empty. now apply IH.
Qed.

(** What a search along successors from [v] finds. *)
Lemma search_descendants p succs fuel v r :
  (forall u x, In x (get [] u succs) -> before p u x) ->
  forall P : N -> Prop,
  (forall u x, before p u x -> P u -> P x) -> (forall x, before p v x -> P x) ->
  (forall x, In x (found r) \/ In x (edge r) -> P x) ->
  forall x, In x (found (search_from succs empty fuel (get [] v succs) r)) -> P x.
Proof.
  intros Hs P HP Hv Hr x Hx.
  apply (search_from_sound succs empty P) with (fuel := fuel) (stack := get [] v succs) (r := r);
    auto; intros; eauto.
Qed.

Lemma check_probe_sound p bound r e r' :
  probed_ok p bound r -> check_probe bound r e = Accepted r' -> probed_ok p bound r'.
Proof.
  intros Hr H. unfold check_probe in H.
  set (q := probed_program r) in *. set (u := probe_from e) in *. set (v := probe_to e) in *.
  apply bind_accepted in H. destruct H as ([] & _ & H).
  apply bind_accepted in H. destruct H as ([] & H1 & H).
  apply require_accepted in H1. rewrite !andb_true_iff, !N.ltb_lt in H1.
  destruct H1 as ((Hu & Hv) & _).
  set (below_v := search_from _ _ _ (get [] v _) _) in H.
  set (below := search_from _ _ _ _ below_v) in H.
  set (D := add u (add v (seen below))) in H. cbn zeta in H.
  set (inside := fun x => negb (mem x D)) in H.
  apply bind_accepted in H. destruct H as (sum & H2 & H).
  apply bind_accepted in H. destruct H as ([] & H3 & H).
  apply require_accepted, N.leb_le in H3.
  assert (Hbelow_v : forall x, In x (found below_v) -> ancestor q v x).
  { apply (search_descendants q (probed_succs r) (fuel r) v search_none (ok_succs p bound r Hr)).
    - intros y z Hyz Hy. now apply grandparent with y.
    - intros y Hy. now apply parent.
    - cbn. tauto. }
  assert (Hedge_v : forall x, In x (edge below_v) -> False).
  { intros x Hx. unfold below_v in Hx. now rewrite no_edge in Hx. }
  assert (Hbelow : forall x, In x (found below) -> ancestor q u x \/ ancestor q v x).
  { apply (search_descendants q (probed_succs r) (fuel r) u below_v (ok_succs p bound r Hr)).
    - intros y z Hyz [ Hy | Hy ]; [ left | right ]; now apply grandparent with y.
    - intros y Hy. left. now apply parent.
    - intros x [ Hx | Hx ]; [ right; auto | exfalso; eauto ]. }
  assert (Hseen_v : forall x, mem x (seen below_v) = true -> In x (found below_v)).
  { apply seen_found. intro x. cbn [seen search_none]. rewrite mem_empty. discriminate. }
  assert (Hseen : forall x, mem x (seen below) = true -> In x (found below)).
  { apply seen_found. assumption. }
  assert (HD : forall x, mem x D = true -> x = u \/ x = v \/ ancestor q u x \/ ancestor q v x).
  { intros x Hx. unfold D in Hx. rewrite !mem_add, !orb_true_iff, !N.eqb_eq in Hx.
    destruct Hx as [ Hx | [ Hx | Hx ] ]; [ tauto | tauto | ]. apply Hseen, Hbelow in Hx. tauto. }
  assert (Hcostly : forall S, possible q inside v S -> bound <= cost q S v).
  { intros S HS. etransitivity; [ exact H3 | ].
    refine (shown_cost_sound q (probed_preds r) inside (lasting_storages q inside)
      (ok_well_formed p bound r Hr) (ok_preds p bound r Hr) (lasting_storages_sound q inside)
      (fuel r) _ [] (probe_line e) v (probe_chains e) sum _ _ Hv H2 S HS).
    - apply base_of_ok; [ apply Hr | cbn; tauto ].
    - intros x Hx. cbn [behind base_of] in Hx. rewrite mem_add_all, mem_empty in Hx. discriminate. }
  assert (Hprobe := probe_order q u v Hu Hv (fun x => mem x D) HD bound Hcostly).
  assert (Hcircle := probe_circle q u v Hu Hv (fun x => mem x D) HD bound Hcostly).
  injection H as <-. constructor; cbn [probed_program probed_preds probed_succs circle].
  - apply (ok_well_formed p bound r Hr).
  - intros y x Hx. rewrite get_put, before_add_pair by assumption.
    assert (A := ok_preds p bound r Hr y x Hx).
    destruct (N.eqb_spec x v) as [ -> | ]; cbn [In]; [ rewrite A | rewrite A ]; intuition congruence.
  - intros y x. rewrite get_put, before_add_pair by assumption.
    destruct (N.eqb_spec y u) as [ -> | ]; cbn [In].
    + intros [ <- | Hx ]; [ now right | left; now apply (ok_succs p bound r Hr) ].
    + intro Hx. left. now apply (ok_succs p bound r Hr).
  - intros order Hl Hp. destruct (ok_orders p bound r Hr order Hl Hp) as [ A B ].
    fold q in A, B. split.
    + apply Hprobe; [ assumption | now rewrite B ].
    + now rewrite peak_add_pair.
  - rewrite <- (ok_memory p bound r Hr). reflexivity.
  - intros Hc order Hl. destruct (N.lt_ge_cases (peak p order) bound) as [ F | ]; [ | assumption ].
    destruct (ok_orders p bound r Hr order Hl F) as [ A B ]. fold q in A, B. rewrite <- B.
    apply Hcircle; auto.
Qed.

Definition probed_start (p : program) (preds : table (list N)) : probed :=
  {| probed_program := p;
     probed_preds := preds;
     probed_succs := successors p preds;
     fuel := enough_fuel p preds;
     circle := false |}.

Lemma probed_start_ok p preds bound :
  well_formed p = true ->
  (forall u x, x < statements p -> In u (get [] x preds) <-> before p u x) ->
  probed_ok p bound (probed_start p preds).
Proof.
  intros Hwf Hp. constructor; cbn; auto.
  - intros u x Hx. apply in_successors in Hx. destruct Hx as [ A B ]. now apply Hp.
  - discriminate.
Qed.
