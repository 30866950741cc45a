(** Checking a forward trap, by the rules of doc/certificate.md. A reverse one is a forward one of
    the reversed program (Check.v).

    What is proved here: what is accepted is a bound. That all that obeys the rules is accepted is
    not proved. *)

From Coq Require Import NArith List Bool Lia.
From Peakproof Require Import Sets Program Cost Graph Simulate Trap Certificate ChainCheck.
Import ListNotations.
Open Scope N_scope.

(** The storages that cannot have ended while only statements of [inside] have run. *)
Definition lasting_storages (p : program) (inside : state) : set :=
  fold_left (fun t v => if inside v then t else add_all (touched p v) t) (ids (statements p))
    (add_all (filter (fun s => live_out (storage_of p s)) (ids (storages p))) empty).

Lemma mem_lasting_storages p inside s :
  mem s (lasting_storages p inside) = true <->
  live_out (storage_of p s) = true /\ s < storages p \/
  exists u, u < statements p /\ inside u = false /\ touches p u s = true.
Proof.
  unfold lasting_storages. setoid_rewrite <- in_ids at 2.
  assert (H : forall l t,
    mem s (fold_left (fun t v => if inside v then t else add_all (touched p v) t) l t) = true <->
    mem s t = true \/ exists u, In u l /\ inside u = false /\ touches p u s = true).
  { induction l as [ | v l IH ]; cbn [fold_left In]; intro t.
    - split; [ tauto | ]. intros [ | (u & [] & _) ]; assumption.
    - rewrite IH. destruct (inside v) eqn:E.
      + split.
        * intros [ A | (u & A & B) ]; eauto 7.
        * intros [ A | (u & [ <- | A ] & B & C) ]; [ auto | congruence | eauto 7 ].
      + rewrite mem_add_all, orb_true_iff, existsb_eqb. unfold touched. rewrite in_touched. split.
        * intros [ [ A | A ] | (u & A & B) ]; eauto 7.
        * intros [ A | (u & [ <- | A ] & B & C) ]; eauto 7. }
  rewrite H, mem_of_list, filter_In, in_ids. tauto.
Qed.

Lemma lasting_storages_sound p inside s :
  mem s (lasting_storages p inside) = true ->
  live_out (storage_of p s) = true \/
  exists u, u < statements p /\ inside u = false /\ touches p u s = true.
Proof. rewrite mem_lasting_storages. tauto. Qed.

Section TrapCheck.

Variable p : program.
Variable preds : table (list N).   (* the direct predecessors *)
Variable inside : state.           (* the trap *)
Variable lasting : set.            (* the storages that cannot have ended *)
Variable bound : N.

(** ** A base: statements that are ancestors of all its exits, and chains *)

Record base := {
  behind : set;                      (* A: the anchors and their ancestors *)
  started : set;                     (* storages accessed in A *)
  fixed : bag;                       (* storages that have begun and cannot have ended *)
  count : N;                         (* of chains *)
  rows : table (N * list N);         (* their weights and storages *)
  through : table (option N);        (* of a storage: the chain through it *)
  excluded : bag;                    (* chains through a fixed storage: these never count *)
  weights : N                        (* of all chains *)
}.

Definition row (b : base) (i : N) : N * list N := get (0, []) i (rows b).
Definition row_weight (b : base) (i : N) : N := fst (row b i).
Definition chain_through (b : base) (s : N) : option N := get None s (through b).

Definition base_of (anchors found : list N) : base :=
  let statements_behind := append anchors found in
  let initially := filter (fun s => live_in (storage_of p s) && mem s lasting) (ids (storages p)) in
  let start := fold_left (fun t v => add_all (touched p v) t) statements_behind empty in
  {| behind := add_all statements_behind empty;
     started := start;
     fixed := fold_left (fun b v => insert_all (bytes p) (filter (fun s => mem s lasting) (touched p v)) b)
                statements_behind (insert_all (bytes p) initially no_bag);
     count := 0;
     rows := no_rows _;
     through := no_rows _;
     excluded := no_bag;
     weights := 0 |}.

(** No storage may be on two chains of a base, nor twice on one, nor smaller than the chain. *)
Definition claim_storage (c : chain) (i : N) (t : table (option N)) (s : N)
    : outcome (table (option N)) :=
  let line := chain_line c in
  require (s <? storages p) line (Storage_unknown s);;
  require (weight c <=? bytes p s) line (Storage_overloaded s);;
  match get None s t with
  | Some _ => Refuted line (Storage_twice s)
  | None => Accepted (put s (Some i) t)
  end.

Definition add_base_chain (b : base) (c : chain) : outcome base :=
  let i := count b in
  let l := chain_storages c in
  through' <- fold (claim_storage c i) l (through b);
  check_chain p preds inside lasting (started b) c;;
  Accepted
    {| behind := behind b;
       started := started b;
       fixed := fixed b;
       count := N.succ i;
       rows := put i (weight c, l) (rows b);
       through := through';
       excluded := if existsb (fun s => mem s (members (fixed b))) l
                   then insert (fun _ => weight c) (excluded b) i else excluded b;
       weights := weight c + weights b |}.

(** ** An exit *)

Record account := {
  has_started : set;      (* storages accessed by an ancestor outside A; see [started] *)
  is_fixed : bag;         (* storages that the exit accesses, or constant for it *)
  is_excluded : bag       (* the chains of the base that do not count *)
}.

Definition fix_storage (b : base) (a : account) (s : N) : account :=
  {| has_started := has_started a;
     is_fixed := insert (bytes p) (is_fixed a) s;
     is_excluded := match chain_through b s with
                    | Some i => insert (row_weight b) (is_excluded a) i
                    | None => is_excluded a
                    end |}.

Definition start_storage (b : base) (a : account) (s : N) : account :=
  let a' := {| has_started := add s (has_started a);
               is_fixed := is_fixed a;
               is_excluded := is_excluded a |} in
  if mem s lasting then fix_storage b a' s else a'.

Definition account_of (b : base) (more_behind : list N) (v : N) : account :=
  let a := {| has_started := started b; is_fixed := fixed b; is_excluded := excluded b |} in
  let a' := fold_left (fun a u => fold_left (start_storage b) (touched p u) a) more_behind a in
  fold_left (fix_storage b) (touched p v) a'.

(** What the base puts on a storage. *)
Definition base_load (b : base) (a : account) (s : N) : N :=
  match chain_through b s with
  | Some i => if mem i (members (is_excluded a)) then 0 else row_weight b i
  | None => 0
  end.

(** What is left for the chains of the exit alone. *)
Definition room_of (b : base) (a : account) (s : N) : N := bytes p s - base_load b a s.

(** The cost that is shown of [v], whatever has run before it. *)
Definition shown_cost (fuel : nat) (b : base) (anchors : list N) (line v : N) (chains : list chain)
    : outcome N :=
  let r := search_from preds (behind b) fuel (get [] v preds) search_none in
  let hit := add_all (edge r) empty in
  require (forallb (fun a => mem a hit) anchors) line (Anchor_not_before_exit v);;
  let a := account_of b (found r) v in
  w <- check_packing p preds inside lasting (has_started a) (members (is_fixed a)) (room_of b a) chains;
  Accepted (work p v + total (is_fixed a) + (weights b - total (is_excluded a)) + w).

Definition check_exit (fuel : nat) (b : base) (anchors : list N) (seen_exits : set) (e : exit_lines)
    : outcome set :=
  let v := exit_statement e in
  let line := exit_line e in
  require ((v <? statements p) && negb (inside v) && forallb inside (get [] v preds))
    line (Exit_is_none v);;
  require (negb (mem v seen_exits)) line (Exit_twice v);;
  sum <- shown_cost fuel b anchors line v (exit_chains e);
  require (bound <=? sum) line (Exit_costs v sum);;
  Accepted (add v seen_exits).

Definition check_anchor (line : N) (seen_anchors : set) (v : N) : outcome set :=
  require ((v <? statements p) && inside v) line (Anchor_outside v);;
  require (negb (mem v seen_anchors)) line (Anchor_twice v);;
  Accepted (add v seen_anchors).

Definition check_base (fuel : nat) (seen_exits : set) (g : base_lines) : outcome set :=
  let anchors := base_anchors g in
  let line := base_line g in
  fold (check_anchor line) anchors empty;;
  let stack := fold_left (fun l a => append (get [] a preds) l) anchors [] in
  let r := search_from preds empty fuel stack search_none in
  fold (fun _ a => require (negb (mem a (seen r))) line (Anchor_before_anchor a)) anchors tt;;
  b <- fold add_base_chain (base_chains g) (base_of anchors (found r));
  fold (check_exit fuel b anchors) (base_exits g) seen_exits.

(** ** Soundness *)

Hypothesis wf : well_formed p = true.
Hypothesis preds_spec : forall u x, x < statements p -> In u (get [] x preds) <-> before p u x.
Hypothesis lasting_spec : forall s, mem s lasting = true ->
  live_out (storage_of p s) = true \/
  exists u, u < statements p /\ inside u = false /\ touches p u s = true.

(** *** Bases *)

(** [S] holds what is behind a base. *)
Definition holds_base (b : base) (S : state) : Prop := forall u, mem u (behind b) = true -> S u = true.

Record base_ok (b : base) : Prop := {
  ok_behind : forall u, mem u (behind b) = true -> u < statements p;
  ok_started : forall s, mem s (started b) = true ->
    exists u, mem u (behind b) = true /\ touches p u s = true;
  ok_fixed : weighed (bytes p) (storages p) (fixed b);
  ok_fixed_spec : forall s, mem s (members (fixed b)) = true ->
    mem s lasting = true /\
    (live_in (storage_of p s) = true \/ exists u, mem u (behind b) = true /\ touches p u s = true);
  ok_through : forall s i, chain_through b s = Some i -> i < count b /\ In s (snd (row b i));
  ok_storages : forall i s, i < count b -> In s (snd (row b i)) ->
    s < storages p /\ chain_through b s = Some i;
  ok_once : forall i, i < count b -> NoDup (snd (row b i));
  ok_live : forall i, i < count b -> forall S, fits p inside S -> holds_base b S ->
    exists x, In x (snd (row b i)) /\ live p S x = true;
  ok_weight : forall i s, i < count b -> In s (snd (row b i)) -> row_weight b i <= bytes p s;
  ok_excluded : weighed (row_weight b) (count b) (excluded b);
  ok_excluded_spec : forall s i, mem s (members (fixed b)) = true -> chain_through b s = Some i ->
    mem i (members (excluded b)) = true;
  ok_weights : weights b = sum (row_weight b) (ids (count b))
}.

Lemma mem_fold_started l : forall t s,
  mem s (fold_left (fun t v => add_all (touched p v) t) l t) = true ->
  mem s t = true \/ exists v, In v l /\ touches p v s = true.
Proof.
  induction l as [ | v l IH ]; cbn; intros t s H; [ now left | ].
  apply IH in H. destruct H as [ H | (w & Hw & H) ]; [ | eauto ].
  rewrite mem_add_all, orb_true_iff, existsb_eqb in H.
  destruct H as [ H | H ]; [ | now left ].
  right. exists v. split; [ now left | now apply in_touched ].
Qed.

Lemma fold_fixed l : forall b,
  (forall v, In v l -> v < statements p) -> weighed (bytes p) (storages p) b ->
  let b' := fold_left (fun b v =>
    insert_all (bytes p) (filter (fun s => mem s lasting) (touched p v)) b) l b in
  weighed (bytes p) (storages p) b' /\
  forall s, mem s (members b') = true ->
    mem s (members b) = true \/
    (mem s lasting = true /\ exists v, In v l /\ touches p v s = true).
Proof.
  induction l as [ | v l IH ]; cbn [fold_left]; intros b Hl Hb; [ auto | ].
  destruct (IH (insert_all (bytes p) (filter (fun s => mem s lasting) (touched p v)) b)) as [ A B ].
  - intros; apply Hl; now right.
  - apply weighed_insert_all; [ | assumption ].
    intros s H. apply filter_In in H. apply (in_touched_below p wf v); [ apply Hl; now left | tauto ].
  - split; [ exact A | ]. intros s H. apply B in H. destruct H as [ H | (H & w & Hw & H') ].
    + rewrite mem_insert_all, orb_true_iff, existsb_eqb, filter_In in H.
      destruct H as [ [ H H' ] | H ]; [ right | now left ].
      split; [ assumption | ]. exists v. split; [ now left | now apply in_touched ].
    + right. split; [ assumption | ]. exists w. split; [ now right | assumption ].
Qed.

Lemma base_of_ok anchors found :
  (forall u, In u anchors \/ In u found -> u < statements p) -> base_ok (base_of anchors found).
Proof.
  intro H.
  assert (Hl : forall u, In u (append anchors found) -> u < statements p).
  { intros u Hu. apply H. now apply in_append. }
  assert (Hm : forall u, mem u (behind (base_of anchors found)) = true <-> In u (append anchors found)).
  { intro u. apply mem_of_list. }
  assert (Hinit : weighed (bytes p) (storages p) (insert_all (bytes p)
    (filter (fun s => live_in (storage_of p s) && mem s lasting) (ids (storages p))) no_bag)).
  { apply weighed_insert_all; [ | apply weighed_none ].
    intros s Hs. apply filter_In in Hs. now apply in_ids. }
  destruct (fold_fixed (append anchors found) _ Hl Hinit) as [ F1 F2 ].
  constructor.
  - intros u Hu. now apply Hl, Hm.
  - intros s Hs. apply mem_fold_started in Hs. rewrite mem_empty in Hs.
    destruct Hs as [ | (v & Hv & Ht) ]; [ discriminate | ]. exists v. now rewrite Hm.
  - exact F1.
  - intros s Hs. apply F2 in Hs. destruct Hs as [ Hs | (Hs & v & Hv & Ht) ].
    + rewrite mem_insert_all, orb_true_iff, existsb_eqb, filter_In, andb_true_iff in Hs.
      destruct Hs as [ (_ & A & B) | Hs ]; [ tauto | ].
      cbn [members no_bag] in Hs. rewrite mem_empty in Hs. discriminate.
    + split; [ assumption | ]. right. exists v. now rewrite Hm.
  - intros s i. unfold chain_through. cbn [base_of through]. rewrite get_no_rows. discriminate.
  - cbn. lia.
  - cbn. lia.
  - cbn. lia.
  - cbn. lia.
  - apply weighed_none.
  - intros s i _. unfold chain_through. cbn [base_of through]. rewrite get_no_rows. discriminate.
  - reflexivity.
Qed.

(** What [fold claim_storage] did. *)
Lemma claim_storages c i l t t' :
  fold (claim_storage c i) l t = Accepted t' ->
  NoDup l /\
  (forall s, In s l -> s < storages p /\ weight c <= bytes p s /\ get None s t = None) /\
  forall s, get None s t' = if existsb (N.eqb s) l then Some i else get None s t.
Proof.
  revert t. induction l as [ | s l IH ]; intros t H; cbn [fold] in H.
  - injection H as <-. split; [ constructor | ]. split; [ easy | reflexivity ].
  - apply bind_accepted in H. destruct H as (t1 & H1 & H).
    unfold claim_storage in H1.
    apply bind_accepted in H1. destruct H1 as ([] & Hs & H1).
    apply bind_accepted in H1. destruct H1 as ([] & Hw & H1).
    apply require_accepted, N.ltb_lt in Hs. apply require_accepted, N.leb_le in Hw.
    destruct (get None s t) eqn:E; [ discriminate | ]. injection H1 as <-.
    destruct (IH _ H) as (A & B & C).
    assert (Hsl : ~ In s l).
    { intro Hin. apply B in Hin. rewrite get_put, N.eqb_refl in Hin.
      destruct Hin as (_ & _ & F). discriminate. }
    split; [ now constructor | ]. split.
    + intros x [ <- | Hx ]; [ auto | ]. destruct (B x Hx) as (Hx1 & Hx2 & Hx3).
      rewrite get_put in Hx3. destruct (x =? s); [ discriminate | auto ].
    + intro x. rewrite C, get_put. cbn [existsb].
      destruct (N.eqb_spec x s) as [ -> | ]; cbn [orb]; [ | reflexivity ].
      now destruct (existsb (N.eqb s) l).
Qed.

Lemma row_put b i r b' :
  rows b' = put (count b) r (rows b) ->
  row b' i = if i =? count b then r else row b i.
Proof. intro H. unfold row. rewrite H. apply get_put. Qed.

Lemma holds_base_begun b S :
  base_ok b -> fits p inside S -> holds_base b S -> forall s, mem s (started b) = true -> begun p S s = true.
Proof.
  intros Hb HS H s Hs. destruct (ok_started b Hb s Hs) as (u & Hu & Ht).
  apply begun_spec. right. exists u. split; [ now apply (ok_behind b Hb) | auto ].
Qed.

Lemma existsb_false {A} (f : A -> bool) l a : existsb f l = false -> In a l -> f a = false.
Proof.
  intros H Ha. apply not_true_iff_false. intro F. apply not_true_iff_false in H. apply H.
  apply existsb_exists. eauto.
Qed.

Lemma add_base_chain_ok b c b' :
  base_ok b -> add_base_chain b c = Accepted b' ->
  base_ok b' /\ behind b' = behind b.
Proof.
  intros Hb H. unfold add_base_chain in H.
  apply bind_accepted in H. destruct H as (t & Ht & H).
  apply bind_accepted in H. destruct H as ([] & Hc & H).
  apply claim_storages in Ht. destruct Ht as (Hnd & Hfree & Ht).
  set (l := chain_storages c) in *.
  assert (Hrow : forall i, row b' i = if i =? count b then (weight c, l) else row b i).
  { intro i. apply row_put. now injection H as <-. }
  assert (Hthrough : forall s, chain_through b' s =
    if existsb (N.eqb s) l then Some (count b) else chain_through b s).
  { intro s. unfold chain_through. rewrite <- Ht. now injection H as <-. }
  assert (Hcount : count b' = N.succ (count b)) by (now injection H as <-).
  assert (Hbehind : behind b' = behind b) by (now injection H as <-).
  assert (Hstarted : started b' = started b) by (now injection H as <-).
  assert (Hfixed : fixed b' = fixed b) by (now injection H as <-).
  assert (Hexcluded : excluded b' =
    if existsb (fun s => mem s (members (fixed b))) l
    then insert (fun _ => weight c) (excluded b) (count b) else excluded b) by (now injection H as <-).
  assert (Hweights : weights b' = weight c + weights b) by (now injection H as <-).
  clear H Ht t.
  assert (Hold : forall i, i < count b -> row b' i = row b i).
  { intros i Hi. rewrite Hrow. destruct (N.eqb_spec i (count b)); [ lia | reflexivity ]. }
  assert (Hnew : row b' (count b) = (weight c, l)) by (now rewrite Hrow, N.eqb_refl).
  split; [ | assumption ]. constructor.
  - rewrite Hbehind. apply ok_behind, Hb.
  - rewrite Hbehind, Hstarted. apply ok_started, Hb.
  - rewrite Hfixed. apply ok_fixed, Hb.
  - rewrite Hbehind, Hfixed. apply ok_fixed_spec, Hb.
  - intros s i. rewrite Hthrough, Hcount. destruct (existsb (N.eqb s) l) eqn:E.
    + intros [= <-]. rewrite Hnew. split; [ lia | now apply existsb_eqb ].
    + intro H. apply (ok_through b Hb) in H. destruct H as [ H H' ].
      rewrite Hold by assumption. split; [ lia | assumption ].
  - intros i s Hi Hs. rewrite Hcount in Hi. rewrite Hthrough.
    rewrite Hrow in Hs. destruct (N.eqb_spec i (count b)) as [ -> | ]; cbn [snd] in Hs.
    + rewrite (proj2 (existsb_eqb s l) Hs). split; [ now apply Hfree | reflexivity ].
    + destruct (ok_storages b Hb i s) as [ A B ]; [ lia | assumption | ].
      split; [ assumption | ]. destruct (existsb (N.eqb s) l) eqn:E; [ | assumption ].
      apply existsb_eqb, Hfree in E. unfold chain_through in B. destruct E as (_ & _ & E). congruence.
  - intros i Hi. rewrite Hcount in Hi. rewrite Hrow. destruct (N.eqb_spec i (count b)).
    + assumption.
    + apply (ok_once b Hb). lia.
  - intros i Hi S HS HbS. rewrite Hcount in Hi.
    assert (HbS' : holds_base b S) by (unfold holds_base in *; now rewrite <- Hbehind).
    rewrite Hrow. destruct (N.eqb_spec i (count b)); cbn [snd].
    + apply (check_chain_sound p preds inside lasting preds_spec lasting_spec (started b)); auto. now apply holds_base_begun.
    + apply (ok_live b Hb); auto. lia.
  - intros i s Hi Hs. rewrite Hcount in Hi. unfold row_weight.
    rewrite Hrow in Hs |- *. destruct (N.eqb_spec i (count b)); cbn [fst snd] in *.
    + now apply Hfree.
    + apply (ok_weight b Hb); [ lia | assumption ].
  - assert (Hw : weighed (row_weight b') (count b') (excluded b)).
    { destruct (ok_excluded b Hb) as [ A B ]. rewrite Hcount. split.
      - intros i Hi. apply A in Hi. lia.
      - rewrite B. unfold weigh, ids. rewrite N2Nat.inj_succ, from_last, sum_app. cbn [sum].
        destruct (mem (0 + N.of_nat (N.to_nat (count b))) (members (excluded b))) eqn:E.
        { apply A in E. lia. }
        rewrite !N.add_0_r. apply sum_ext. intros i Hi. apply in_from in Hi.
        unfold row_weight. rewrite Hold by lia. reflexivity. }
    rewrite Hexcluded. destruct (existsb (fun s => mem s (members (fixed b))) l); [ | assumption ].
    replace (insert (fun _ => weight c) (excluded b) (count b))
      with (insert (row_weight b') (excluded b) (count b)).
    + apply weighed_insert; [ lia | assumption ].
    + unfold insert, row_weight. now rewrite Hnew.
  - intros s i. rewrite Hfixed, Hthrough, Hexcluded. intros Hs Hi.
    destruct (existsb (N.eqb s) l) eqn:E.
    + injection Hi as <-.
      replace (existsb (fun s => mem s (members (fixed b))) l) with true.
      * rewrite mem_insert, N.eqb_refl. reflexivity.
      * symmetry. apply existsb_exists. exists s. split; [ now apply existsb_eqb | assumption ].
    + assert (F := ok_excluded_spec b Hb s i Hs Hi).
      destruct (existsb (fun s => mem s (members (fixed b))) l); [ | assumption ].
      rewrite mem_insert, F. apply orb_true_r.
  - rewrite Hweights, (ok_weights b Hb), Hcount. unfold ids at 2.
    rewrite N2Nat.inj_succ, from_last, sum_app. cbn [sum].
    replace (0 + N.of_nat (N.to_nat (count b))) with (count b) by lia.
    unfold row_weight at 3. rewrite Hnew. cbn [fst]. fold (ids (count b)).
    rewrite (sum_ext (row_weight b') (row_weight b) (ids (count b))); [ lia | ].
    intros i Hi. apply in_ids in Hi. unfold row_weight. now rewrite Hold.
Qed.

(** *** Exits *)

Section Exit.

Variable b : base.
Hypothesis Hb : base_ok b.
Variable v : N.
Hypothesis Hv : v < statements p.
Hypothesis Hanc : forall u, mem u (behind b) = true -> ancestor p u v.

Let P : state -> Prop := possible p inside v.

Lemma P_fits S : P S -> fits p inside S.
Proof. intros [ A _ C ]. split; assumption. Qed.

Lemma P_begun S u s : P S -> ancestor p u v -> touches p u s = true -> begun p S s = true.
Proof.
  intros HS Hu Ht. apply begun_spec. right. exists u.
  split; [ now apply ancestor_range in Hu | ]. split; [ assumption | ].
  now apply (possible_ancestors _ _ _ _ HS).
Qed.

Record account_ok (a : account) : Prop := {
  ok_has_started : forall s, mem s (has_started a) = true -> forall S, P S -> begun p S s = true;
  ok_is_fixed : weighed (bytes p) (storages p) (is_fixed a);
  ok_is_fixed_spec : forall s, mem s (members (is_fixed a)) = true ->
    touches p v s = true \/ forall S, P S -> live p S s = true;
  ok_is_excluded : weighed (row_weight b) (count b) (is_excluded a);
  ok_is_excluded_spec : forall s i, mem s (members (is_fixed a)) = true ->
    chain_through b s = Some i -> mem i (members (is_excluded a)) = true
}.

Lemma constant_live S s : P S -> begun p S s = true -> mem s lasting = true -> live p S s = true.
Proof.
  intros HS H Hl. unfold live. rewrite H.
  now rewrite (lasting_not_ended p inside lasting lasting_spec S s (P_fits S HS) Hl).
Qed.

Lemma fix_storage_ok a s :
  account_ok a -> s < storages p ->
  touches p v s = true \/ (forall S, P S -> live p S s = true) ->
  account_ok (fix_storage b a s).
Proof.
  intros Ha Hs Hwhy. constructor; cbn [fix_storage has_started is_fixed is_excluded].
  - apply ok_has_started, Ha.
  - apply weighed_insert; [ assumption | apply Ha ].
  - intros x. rewrite mem_insert, orb_true_iff, N.eqb_eq. intros [ -> | H ]; [ assumption | ].
    now apply (ok_is_fixed_spec a Ha).
  - destruct (chain_through b s) as [ i | ] eqn:E; [ | apply Ha ].
    apply weighed_insert; [ now apply (ok_through b Hb s) | apply Ha ].
  - intros x i. rewrite mem_insert, orb_true_iff, N.eqb_eq. intros [ -> | H ] E.
    + rewrite E, mem_insert, N.eqb_refl. reflexivity.
    + assert (F := ok_is_excluded_spec a Ha x i H E).
      destruct (chain_through b s); [ | assumption ]. rewrite mem_insert, F. apply orb_true_r.
Qed.

Lemma start_storage_ok a u s :
  account_ok a -> s < storages p -> ancestor p u v -> touches p u s = true ->
  account_ok (start_storage b a s).
Proof.
  intros Ha Hs Hu Ht. unfold start_storage.
  set (a' := {| has_started := _; is_fixed := _; is_excluded := _ |}).
  assert (Hbegun : forall S, P S -> begun p S s = true) by (intros; now apply (P_begun _ u)).
  assert (Ha' : account_ok a').
  { constructor; cbn [a' has_started is_fixed is_excluded]; try apply Ha.
    intro x. rewrite mem_add, orb_true_iff, N.eqb_eq. intros [ -> | H ]; [ assumption | ].
    now apply (ok_has_started a). }
  destruct (mem s lasting) eqn:E; [ | assumption ].
  apply fix_storage_ok; auto. right. intros. now apply constant_live; auto.
Qed.

Lemma fold_left_keeps {A B} (Q : A -> Prop) (f : A -> B -> A) l : forall a,
  (forall a x, In x l -> Q a -> Q (f a x)) -> Q a -> Q (fold_left f l a).
Proof.
  induction l as [ | x l IH ]; cbn; intros a H Ha; [ assumption | ].
  apply IH; [ intros; apply H; auto | apply H; auto ].
Qed.

Lemma account_of_ok more_behind :
  (forall u, In u more_behind -> ancestor p u v) -> account_ok (account_of b more_behind v).
Proof.
  intro H. unfold account_of. apply fold_left_keeps.
  - intros a s Hs Ha. apply fix_storage_ok; [ assumption | | ].
    + now apply (in_touched_below p wf v).
    + left. now apply in_touched.
  - apply fold_left_keeps.
    + intros a u Hu Ha. apply fold_left_keeps; [ | assumption ].
      intros a' s Hs Ha'. assert (Hu' := H u Hu). apply (start_storage_ok a' u); auto.
      * apply (in_touched_below p wf u); [ | assumption ]. now apply ancestor_range in Hu'.
      * now apply in_touched.
    + constructor; cbn [has_started is_fixed is_excluded].
      * intros s Hs S HS. apply (ok_started b Hb) in Hs. destruct Hs as (u & Hu & Ht).
        now apply (P_begun S u); auto.
      * apply Hb.
      * intros s Hs. right. intros S HS. apply (ok_fixed_spec b Hb) in Hs.
        destruct Hs as (A & B). apply constant_live; auto.
        destruct B as [ B | (u & Hu & Ht) ]; [ apply begun_spec; now left | ].
        now apply (P_begun S u); auto.
      * apply (ok_excluded b Hb).
      * apply (ok_excluded_spec b Hb).
Qed.

Variable a : account.
Hypothesis Ha : account_ok a.

(** The chains of the base that count. *)
Definition counting : list (N * list N) :=
  map (row b) (filter (fun i => negb (mem i (members (is_excluded a)))) (ids (count b))).

Lemma counting_weight : sum fst counting = weights b - total (is_excluded a).
Proof.
  unfold counting. rewrite sum_map. change (fun i => fst (row b i)) with (row_weight b).
  rewrite (weigh_rest _ _ _ (ok_is_excluded a Ha)). now rewrite (ok_weights b Hb).
Qed.

Lemma counting_load s : load counting s <= base_load b a s.
Proof.
  unfold load, counting. rewrite sum_map.
  set (kept := filter _ _).
  assert (Hk : forall i, In i kept <-> i < count b /\ mem i (members (is_excluded a)) = false).
  { intro i. unfold kept. now rewrite filter_In, in_ids, negb_true_iff. }
  assert (Hnd : NoDup kept) by (apply NoDup_filter, NoDup_ids).
  assert (Hi : forall i, In i kept ->
    sum (fun x => if x =? s then fst (row b i) else 0) (snd (row b i)) =
    if existsb (N.eqb s) (snd (row b i)) then row_weight b i else 0).
  { intros i Hi. apply Hk in Hi. destruct (existsb (N.eqb s) (snd (row b i))) eqn:E.
    - apply existsb_eqb in E. apply sum_single; [ now apply (ok_once b Hb) | assumption ].
    - transitivity (sum (fun _ => 0) (snd (row b i))); [ | apply sum_zero ].
      apply sum_ext. intros x Hx.
      apply (existsb_false _ _ x) in E; [ | assumption ]. rewrite N.eqb_sym in E. now rewrite E. }
  rewrite (sum_ext _ _ kept Hi). unfold base_load.
  assert (Hthrough : forall i, In i kept -> existsb (N.eqb s) (snd (row b i)) = true ->
    chain_through b s = Some i).
  { intros i Hin E. apply existsb_eqb in E. apply Hk in Hin. now apply (ok_storages b Hb). }
  destruct (chain_through b s) as [ j | ] eqn:E.
  - destruct (mem j (members (is_excluded a))) eqn:F.
    + transitivity (sum (fun _ => 0) kept); [ | now rewrite sum_zero ]. apply sum_le. intros i Hin.
      destruct (existsb (N.eqb s) (snd (row b i))) eqn:G; [ | lia ].
      specialize (Hthrough i Hin G). apply Hk in Hin. destruct Hin. congruence.
    + assert (Hj : In j kept).
      { apply Hk. split; [ now apply (ok_through b Hb s) | assumption ]. }
      rewrite <- (sum_single kept j (row_weight b j)) by assumption. apply sum_le. intros i Hin.
      destruct (existsb (N.eqb s) (snd (row b i))) eqn:G; [ | lia ].
      specialize (Hthrough i Hin G). injection Hthrough as ->. rewrite N.eqb_refl. lia.
  - transitivity (sum (fun _ => 0) kept); [ | now rewrite sum_zero ]. apply sum_le. intros i Hin.
    destruct (existsb (N.eqb s) (snd (row b i))) eqn:G; [ | lia ].
    specialize (Hthrough i Hin G). discriminate.
Qed.

Lemma base_load_le s : base_load b a s <= bytes p s.
Proof.
  unfold base_load. destruct (chain_through b s) as [ i | ] eqn:E; [ | lia ].
  destruct (mem i (members (is_excluded a))) eqn:F; [ lia | ].
  apply (ok_through b Hb) in E. destruct E as [ E1 E2 ].
  now apply (ok_weight b Hb).
Qed.

Lemma counting_packed c : In c counting -> packed p (members (is_fixed a)) P c.
Proof.
  intros H S HS. unfold counting in H. apply in_map_iff in H. destruct H as (i & <- & H).
  rewrite filter_In, in_ids, negb_true_iff in H. destruct H as [ Hi Hx ].
  destruct (ok_live b Hb i Hi S) as (x & Hin & Hlive).
  - now apply P_fits.
  - intros u Hu. now apply (possible_ancestors _ _ _ _ HS), Hanc.
  - exists x. destruct (ok_storages b Hb i x Hi Hin) as [ Hm Hthrough ].
    repeat split; auto.
    destruct (mem x (members (is_fixed a))) eqn:E; [ | reflexivity ].
    rewrite (ok_is_excluded_spec a Ha x i E Hthrough) in Hx. discriminate.
Qed.

Lemma exit_cost chains w S :
  check_packing p preds inside lasting (has_started a) (members (is_fixed a)) (room_of b a) chains =
    Accepted w ->
  P S ->
  work p v + total (is_fixed a) + (weights b - total (is_excluded a)) + w <= cost p S v.
Proof.
  intros Hw HS. rewrite cost_held.
  apply (check_packing_sound p preds inside lasting preds_spec lasting_spec _ _ _ P P_fits) in Hw.
  2:{ apply (ok_has_started a Ha). }
  destruct Hw as (l & -> & Hroom & Hpacked).
  assert (H := packing_bound p S (touches p v) (fun s => mem s (members (is_fixed a))) (counting ++ l)).
  rewrite sum_app, counting_weight in H.
  rewrite <- (weighed_total _ _ _ (ok_is_fixed a Ha)) in H.
  rewrite <- !N.add_assoc. apply N.add_le_mono_l. apply H.
  - intros s Hs. apply (ok_is_fixed_spec a Ha) in Hs. destruct Hs; auto.
  - intros c Hc. apply in_app_or in Hc. destruct Hc as [ Hc | Hc ].
    + now apply counting_packed.
    + now apply Hpacked.
  - intros s Hs. unfold load. rewrite sum_app. fold (load counting s) (load l s).
    assert (A := counting_load s). assert (B := base_load_le s).
    specialize (Hroom s). unfold room_of in Hroom. lia.
Qed.

End Exit.

(** Whatever has run before [v] costs at least the bound. *)
Definition costly (v : N) : Prop := forall S, possible p inside v S -> bound <= cost p S v.

(** The anchors are in the base or behind it. *)
Definition anchored (b : base) (anchors : list N) : Prop :=
  forall u, mem u (behind b) = true -> exists a, In a anchors /\ (u = a \/ ancestor p u a).

Lemma shown_cost_sound fuel b anchors line v chains sum :
  base_ok b -> anchored b anchors -> v < statements p ->
  shown_cost fuel b anchors line v chains = Accepted sum ->
  forall S, possible p inside v S -> sum <= cost p S v.
Proof.
  intros Hb Hbehind Hv H S HS. unfold shown_cost in H.
  set (r := search_from _ _ _ _ _) in H.
  apply bind_accepted in H. destruct H as ([] & H1 & H).
  set (a := account_of _ _ _) in H.
  apply bind_accepted in H. destruct H as (w & H2 & H). injection H as <-.
  apply require_accepted in H1. rewrite forallb_forall in H1.
  assert (Hr : forall u, In u (found r) \/ In u (edge r) -> ancestor p u v).
  { apply search_from_sound with (preds := preds) (stop := behind b) (fuel := fuel)
      (stack := get [] v preds) (r := search_none).
    - intros u x Hx Hu. assert (x < statements p) by (now apply ancestor_range in Hx).
      apply preds_spec in Hu; [ | assumption ]. apply ancestor_trans with x; [ now constructor | assumption ].
    - intros u Hu. apply preds_spec in Hu; [ now constructor | assumption ].
    - cbn. tauto. }
  assert (Hanc : forall u, mem u (behind b) = true -> ancestor p u v).
  { intros u Hu. destruct (Hbehind u Hu) as (x & Hx & E).
    assert (Hx' : ancestor p x v).
    { apply Hr. right. apply mem_of_list. now apply H1. }
    destruct E as [ -> | E ]; [ assumption | now apply ancestor_trans with x ]. }
  apply (exit_cost b Hb v Hv Hanc a) with (chains := chains); auto.
  apply account_of_ok; auto.
Qed.

Lemma check_exit_sound fuel b anchors seen_exits e seen_exits' :
  base_ok b -> anchored b anchors ->
  check_exit fuel b anchors seen_exits e = Accepted seen_exits' ->
  costly (exit_statement e) /\ seen_exits' = add (exit_statement e) seen_exits.
Proof.
  intros Hb Hbehind H. unfold check_exit in H. set (v := exit_statement e) in *.
  apply bind_accepted in H. destruct H as ([] & H1 & H).
  apply bind_accepted in H. destruct H as ([] & _ & H).
  apply bind_accepted in H. destruct H as (sum & H2 & H).
  apply bind_accepted in H. destruct H as ([] & H3 & H). injection H as <-.
  split; [ | reflexivity ]. intros S HS.
  apply require_accepted in H1. rewrite !andb_true_iff, N.ltb_lt in H1. destruct H1 as [ [ Hv _ ] _ ].
  apply require_accepted, N.leb_le in H3. etransitivity; [ exact H3 | ].
  now apply (shown_cost_sound fuel b anchors (exit_line e) v (exit_chains e)).
Qed.

Lemma in_fold_append l : forall stack u,
  In u (fold_left (fun l a => append (get [] a preds) l) l stack) ->
  In u stack \/ exists a, In a l /\ In u (get [] a preds).
Proof.
  induction l as [ | a l IH ]; cbn; intros stack u H; [ now left | ].
  apply IH in H. destruct H as [ H | (x & Hx & H) ]; [ | eauto ].
  apply in_append in H. destruct H; eauto.
Qed.

Lemma check_base_sound fuel g seen_exits seen_exits' :
  (forall v, mem v seen_exits = true -> costly v) ->
  check_base fuel seen_exits g = Accepted seen_exits' ->
  forall v, mem v seen_exits' = true -> costly v.
Proof.
  intros Hseen H. unfold check_base in H.
  apply bind_accepted in H. destruct H as (t & H1 & H).
  set (r := search_from _ _ _ _ _) in H.
  apply bind_accepted in H. destruct H as ([] & _ & H).
  apply bind_accepted in H. destruct H as (b & H2 & H).
  assert (Hanchors : forall a, In a (base_anchors g) -> a < statements p).
  { refine (fold_invariant _ (fun done (_ : set) => forall a, In a done -> a < statements p)
      _ _ _ H1 _ _).
    - intros done a s s' _ Hdone Hs x Hx. apply in_app_or in Hx.
      destruct Hx as [ Hx | [ <- | [] ] ]; [ auto | ].
      unfold check_anchor in Hs. apply bind_accepted in Hs. destruct Hs as ([] & Hs & _).
      apply require_accepted in Hs. rewrite andb_true_iff, N.ltb_lt in Hs. tauto.
    - easy. }
  assert (Hr : forall u, In u (found r) \/ In u (edge r) ->
    exists a, In a (base_anchors g) /\ ancestor p u a).
  { apply search_from_sound with (preds := preds) (stop := empty) (fuel := fuel)
      (stack := fold_left (fun l a => append (get [] a preds) l) (base_anchors g) [])
      (r := search_none).
    - intros u x (a & Ha & Hx) Hu. assert (x < statements p) by (now apply ancestor_range in Hx).
      apply preds_spec in Hu; [ | assumption ]. exists a. split; [ assumption | ].
      apply ancestor_trans with x; [ now constructor | assumption ].
    - intros u Hu. apply in_fold_append in Hu. destruct Hu as [ [] | (a & Ha & Hu) ].
      apply preds_spec in Hu; [ | now apply Hanchors ]. exists a. split; [ assumption | now constructor ].
    - cbn. tauto. }
  assert (Hbase : base_ok b /\ anchored b (base_anchors g)).
  { refine (fold_invariant _ (fun _ b => base_ok b /\ forall u, mem u (behind b) = true ->
      exists a, In a (base_anchors g) /\ (u = a \/ ancestor p u a)) _ _ _ H2 _ _).
    - intros done c b1 b2 _ [ A B ] Hadd. apply add_base_chain_ok in Hadd; [ | assumption ].
      destruct Hadd as [ C D ]. split; [ assumption | ]. now rewrite D.
    - split.
      + apply base_of_ok. intros u [ Hu | Hu ]; [ auto | ].
        destruct (Hr u (or_introl Hu)) as (a & Ha & Hu'). now apply ancestor_range in Hu'.
      + intros u Hu. apply mem_of_list in Hu. apply in_append in Hu. destruct Hu as [ Hu | Hu ].
        * exists u. auto.
        * destruct (Hr u (or_introl Hu)) as (a & Ha & Hu'). eauto. }
  destruct Hbase as [ Hb Hbehind ].
  refine (fold_invariant _ (fun _ (s : set) => forall v, mem v s = true -> costly v)
    _ _ _ H _ Hseen).
  intros done e s s' _ Hs He v Hv. apply check_exit_sound in He; auto.
  destruct He as [ He -> ]. rewrite mem_add, orb_true_iff, N.eqb_eq in Hv.
  destruct Hv as [ -> | Hv ]; auto.
Qed.

End TrapCheck.

(** ** Traps *)

Definition add_trap_statement (p : program) (line : N) (T : set) (v : N) : outcome set :=
  require (negb (mem v T)) line (Trap_statement_twice v);;
  Accepted (add v T).

(** [order] is a legal order of [p]; its statements are not judged here. *)
Definition check_trap (p : program) (preds : table (list N)) (bound : N) (order : list N)
    (last_line line count : N) (more : list N) (bases : list base_lines) : outcome unit :=
  let statements_in := append (firstn (N.to_nat count) order) more in
  T <- fold (add_trap_statement p line) statements_in empty;
  fold (fun _ v => require (forallb (fun u => mem u T) (get [] v preds)) line (Trap_not_closed v))
    statements_in tt;;
  require (existsb (fun v => negb (mem v T)) (ids (statements p))) line Trap_is_everything;;
  let inside := fun u => mem u T in
  let lasting := lasting_storages p inside in
  let fuel := enough_fuel p preds in
  exits <- fold (check_base p preds inside lasting bound fuel) bases empty;
  fold (fun _ v =>
      require (mem v T || mem v exits || negb (forallb (fun u => mem u T) (get [] v preds)))
        last_line (Exit_missing v))
    (ids (statements p)) tt.

Theorem check_trap_sound p preds bound order last_line line count more bases :
  well_formed p = true ->
  (forall u x, x < statements p -> In u (get [] x preds) <-> before p u x) ->
  check_trap p preds bound order last_line line count more bases = Accepted tt ->
  forall other, legal p other -> bound <= peak p other.
Proof.
  intros Hwf Hpreds H. unfold check_trap in H.
  apply bind_accepted in H. destruct H as (T & _ & H).
  apply bind_accepted in H. destruct H as ([] & _ & H).
  apply bind_accepted in H. destruct H as ([] & Hout & H).
  apply bind_accepted in H. destruct H as (exits & Hexits & H).
  apply require_accepted, existsb_exists in Hout. destruct Hout as (w & Hw & Tw).
  apply in_ids in Hw. apply negb_true_iff in Tw.
  assert (Hcostly : forall v, mem v exits = true -> costly p (fun u => mem u T) bound v).
  { refine (fold_invariant _ (fun _ (s : set) => forall v, mem v s = true -> costly p (fun u => mem u T) bound v)
      _ _ _ Hexits _ _).
    - intros done g s s' _ Hs Hg v Hv. eapply check_base_sound; eauto using lasting_storages_sound.
    - intros v. rewrite mem_empty. discriminate. }
  assert (Hall : forall v, In v (ids (statements p)) ->
    mem v T || mem v exits || negb (forallb (fun u => mem u T) (get [] v preds)) = true).
  { refine (fold_invariant _ (fun done (_ : unit) => forall v, In v done ->
      mem v T || mem v exits || negb (forallb (fun u => mem u T) (get [] v preds)) = true)
      _ _ _ H _ _).
    - intros done v [] [] _ Hdone Hv x Hx. apply in_app_or in Hx.
      destruct Hx as [ Hx | [ <- | [] ] ]; [ auto | ]. now apply require_accepted in Hv.
    - easy. }
  apply trap_bound with (T := fun u => mem u T).
  - exists w. auto.
  - intros v (Hv & Tv & Hin) S HS. apply Hcostly; [ | assumption ].
    specialize (Hall v (proj2 (in_ids _ _) Hv)). rewrite Tv in Hall.
    cbn [orb] in Hall. apply orb_true_iff in Hall. destruct Hall as [ | Hall ]; [ assumption | ].
    apply negb_true_iff, not_true_iff_false in Hall. exfalso. apply Hall.
    apply forallb_forall. intros u Hu. apply Hin. now apply Hpreds in Hu.
Qed.
