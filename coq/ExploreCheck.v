(** Checking how a search proof ends: the middle falls into blocks, one of which cannot be completed
    (doc/certificate.md, from line m on). Why it suffices: Search.v. *)

From Coq Require Import NArith List Bool Lia MSetPositive.
From Peakproof Require Import Sets Program Cost Reverse Commit Search Graph Simulate Trap
  Certificate ChainCheck TrapCheck SearchCheck.
Import ListNotations.
Open Scope N_scope.

Definition equal (S S' : set) : bool := PositiveSet.equal S S'.

Lemma equal_spec S S' : equal S S' = true -> forall i, mem i S = mem i S'.
Proof.
  unfold equal, mem. intros H i. apply PositiveSet.equal_spec in H. apply eq_iff_eq_true.
  exact (H (N.succ_pos i)).
Qed.

Definition subset (S S' : set) : bool := PositiveSet.subset S S'.

Lemma subset_spec S S' : subset S S' = true -> forall i, mem i S = true -> mem i S' = true.
Proof.
  unfold subset, mem. intros H i. apply PositiveSet.subset_spec in H. exact (H (N.succ_pos i)).
Qed.

Section ExploreCheck.

Variable c : scene.
Let p : program := prog c.
Variable bound : N.
Variable S : set.         (* what has run *)
Variable upper : state.   (* what is to be reached *)

Definition is_middle (u : N) : bool := negb (mem u S) && upper u.
Definition middle_list : list N := filter is_middle (ids (statements p)).

(** ** Blocks *)

(** The number of a statement's block. *)
Definition owners := table (option N).

Definition own_statement (line i : N) (t : owners) (v : N) : outcome owners :=
  require ((v <? statements p) && is_middle v) line (Statement_outside v);;
  match get None v t with
  | Some _ => Refuted line (Statement_twice v)
  | None => Accepted (put v (Some i) t)
  end.

Definition own_block (r : owners * N) (b : block_lines) : outcome (owners * N) :=
  let (t, i) := r in
  match block_statements b with
  | [] => Refuted (block_line b) Blocks_empty
  | l => t' <- fold (own_statement (block_line b) i) l t; Accepted (t', N.succ i)
  end.

Section Blocks.

Variable owner : owners.
Variable count : N.       (* of blocks *)
Variable mix : table N.   (* for each statement a random number, to tell states apart *)

Definition block (u : N) : N := match get None u owner with Some i => i | None => count end.

(** The statements of each block. *)
Definition lists : table (list N) :=
  fold_left (fun t u => put (block u) (u :: get [] (block u) t) t) middle_list (no_rows _).

Definition check_dependences (line : N) : outcome unit :=
  fold (fun _ x =>
      require (block x <? count) line (Blocks_miss x);;
      require (forallb (fun u => implb (is_middle u) (block u =? block x)) (get [] x (before_of c)))
        line (Blocks_joined x))
    middle_list tt.

(** Which block a storage belongs to that may change. *)
Definition own_storage (line : N) (constant : N -> bool) (t : owners) (xs : N * N) : outcome owners :=
  let (x, s) := xs in
  if constant s then Accepted t
  else match get None s t with
       | None => Accepted (put s (Some (block x)) t)
       | Some i => require (i =? block x) line (Blocks_joined x);; Accepted t
       end.

Definition uses : list (N * N) := flat_map (fun x => map (pair x) (touched p x)) middle_list.

Definition check_storages (line : N) : outcome unit :=
  let started := started_of c S in
  let lasting := lasting_storages p upper in
  let constant := fun s => (live_in (storage_of p s) || mem s started) && mem s lasting in
  fold (own_storage line constant) uses (no_rows _);; Accepted tt.

(** ** States of one block *)

Variable start : N.       (* the bytes of S *)
Variable i : N.           (* the block *)
Variable l : list N.      (* its statements *)

Record claims := Claims {
  number : N;                        (* of states declared *)
  states : table (set * (N * N));    (* each with S; its bytes; its hash *)
  by_hash : table (list N);
  claimed : set;
  all_claimed : bool                 (* the whole block is claimed *)
}.

Definition state_at (k : claims) (j : N) : set * (N * N) := get (S, (start, 0)) j (states k).
Definition set_at (k : claims) (j : N) : set := fst (state_at k j).
Definition bytes_at (k : claims) (j : N) : N := fst (snd (state_at k j)).
Definition hash_at (k : claims) (j : N) : N := snd (snd (state_at k j)).

(** Any function would do. *)
Definition rehash (h v : N) : N := N.land (h + get 0 v mix) 1073741823.

Definition find (k : claims) (h : N) (W : set) : option N :=
  List.find (fun j => (j <? number k) && equal W (set_at k j)) (get [] h (by_hash k)).

Definition add_state (k : claims) (W : set) (b h : N) : claims :=
  {| number := N.succ (number k);
     states := put (number k) (W, (b, h)) (states k);
     by_hash := put h (number k :: get [] h (by_hash k)) (by_hash k);
     claimed := claimed k;
     all_claimed := all_claimed k |}.

Definition claims_start : claims := add_state (Claims 0 (no_rows _) (no_rows _) empty false) S start 0.

Definition in_block (v : N) : bool := is_middle v && (block v =? i).

(** The bytes when [v] has run too. *)
Definition bytes_plus (W : set) (b v : N) : N := b + fresh c W v - freed c W v.
Definition cost_at (W : set) (b v : N) : N := work p v + (b + fresh c W v).

Definition declare (k : claims) (line j v : N) : outcome claims :=
  let W := set_at k j in
  require (j <? number k) line (State_unknown j);;
  require (in_block v) line (Statement_outside v);;
  require (is_ready c W v) line (Statement_not_ready v);;
  let W' := add v W in
  let h := rehash (hash_at k j) v in
  match find k h W' with
  | Some j' => Refuted line (State_twice j')
  | None => Accepted (add_state k W' (bytes_plus W (bytes_at k j) v) h)
  end.

Definition add_claim (k : claims) (line j : N) : outcome claims :=
  Accepted
    {| number := number k;
       states := states k;
       by_hash := by_hash k;
       claimed := add j (claimed k);
       all_claimed := all_claimed k || forallb (fun u => mem u (set_at k j)) l |}.

Definition may_claim (k : claims) (line j : N) : outcome unit :=
  require (j <? number k) line (State_unknown j);;
  require (negb (mem j (claimed k))) line (State_claimed_twice j);;
  require (start <=? bytes_at k j) line (State_below_start j).

Definition is_claimed (k : claims) (line j : N) : outcome unit :=
  require (j <? number k) line (State_unknown j);;
  require (mem j (claimed k)) line (State_not_claimed j).

Definition leads_on (k : claims) (line j v : N) : outcome unit :=
  let W := set_at k j in
  if is_ready c W v then
    let cost := cost_at W (bytes_at k j) v in
    if bound <=? cost then Accepted tt
    else match find k (rehash (hash_at k j) v) (add v W) with
         | Some j' => require (mem j' (claimed k)) line (State_not_claimed j')
         | None => Refuted line (Statement_outside v)
         end
  else Accepted tt.

Definition step_on (line : N) (r : set * N) (v : N) : outcome (set * N) :=
  let (W, b) := r in
  require (in_block v) line (Statement_outside v);;
  require (is_ready c W v) line (Statement_not_ready v);;
  require (cost_at W b v <? bound) line (Step_costs_too_much v);;
  Accepted (add v W, bytes_plus W b v).

Definition check_state (k : claims) (e : state_line) : outcome claims :=
  match e with
  | Declare line j v => declare k line j v
  | Claim_next line j =>
      may_claim k line j;;
      fold (fun _ v => leads_on k line j v) l tt;;
      add_claim k line j
  | Claim_commit line j to chains =>
      may_claim k line j;;
      is_claimed k line to;;
      let W := set_at k j in
      let U := set_at k to in
      require (subset W U && negb (subset U W)) line (State_not_larger to);;
      check_larger c line W U (filter (fun u => mem u U && negb (mem u W)) l)
        (bytes_at k j) (bytes_at k to) chains;;
      add_claim k line j
  | Claim_reached line j from path =>
      may_claim k line j;;
      is_claimed k line from;;
      r <- fold (step_on line) path (set_at k from, bytes_at k from);
      require (equal (fst r) (set_at k j)) line (State_other j);;
      add_claim k line j
  end.

(** Whether the block cannot be completed. *)
Definition check_block (b : block_lines) : outcome bool :=
  match block_states b with
  | [] => check_least c (block_line b) S (add_all l S) start (block_chains b);; Accepted false
  | lines =>
      match block_chains b with
      | [] =>
          k <- fold check_state lines claims_start;
          require (mem 0 (claimed k)) (block_line b) Start_not_claimed;;
          Accepted (negb (all_claimed k))
      | _ => Refuted (block_line b) Chains_not_needed
      end
  end.

End Blocks.

Definition check_blocks (owner : owners) (count : N) (mix : table N) (start : N) (t : table (list N))
    (r : N * bool) (b : block_lines) : outcome (N * bool) :=
  let (i, stuck) := r in
  found <- check_block owner count mix start i (get [] i t) b;
  Accepted (N.succ i, stuck || found).

(** A linear congruential generator. *)
Fixpoint random (count : nat) (x : N) : list N :=
  match count with
  | O => []
  | Datatypes.S rest => x :: random rest (N.land (x * 1103515245 + 12345) 2147483647)
  end.

(** That there is no way from [S] to [upper] below the bound. *)
Definition check_explore (line last_line : N) (blocks : list block_lines) : outcome unit :=
  r <- fold own_block blocks (no_rows _, 0);
  let (owner, count) := r in
  check_dependences owner count line;;
  check_storages owner count line;;
  let start := memory_of c S in
  let mix := table_of 0 (random (N.to_nat (statements p)) 1) in
  r' <- fold (check_blocks owner count mix start (lists owner count)) blocks (0, false);
  require (snd r') last_line No_block_stuck.

(** *** The first lie

    [check_explore] looks at all blocks before it looks at any state. What a reader from top to bottom
    finds first is found again here, when it is known that there is a lie; no theorem rests on it. *)

Definition first_lie_of_block (mix : table N) (start : N) (r : (owners * N) * bool)
    (b : block_lines) : outcome ((owners * N) * bool) :=
  let '((owner, i), stuck) := r in
  let line := block_line b in
  r' <- own_block (owner, i) b;
  let (owner', count) := r' in
  let mine := fun u => block owner' count u =? i in
  let started := started_of c S in
  let lasting := lasting_storages p upper in
  let constant := fun s => (live_in (storage_of p s) || mem s started) && mem s lasting in
  let together := fun x => forallb (fun u => implb (is_middle u) (eqb (mine u) (mine x))) in
  fold (fun _ x => require (together x (get [] x (before_of c))) line (Blocks_joined x)) middle_list tt;;
  fold (fun _ xs =>
      let (x, s) := xs : N * N in
      require (implb (mine x) (constant s || together x (get [] s (users c)))) line (Blocks_joined x))
    uses tt;;
  match block_states b with
  | [] => Accepted tt
  | _ => check_least c line S (add_all (block_statements b) S) 0 (block_chains b)
  end;;
  found <- check_block owner' count mix start i (block_statements b) b;
  Accepted (owner', count, stuck || found).

Definition first_lie (last_line : N) (blocks : list block_lines) : outcome unit :=
  let mix := table_of 0 (random (N.to_nat (statements p)) 1) in
  r <- fold (first_lie_of_block mix (memory_of c S)) blocks (no_rows _, 0, false);
  let '(owner, count, stuck) := r in
  fold (fun _ x => require (block owner count x <? count) last_line (Blocks_miss x)) middle_list tt;;
  require stuck last_line No_block_stuck.

Definition explore (line last_line : N) (blocks : list block_lines) : outcome unit :=
  match check_explore line last_line blocks with
  | Accepted done => Accepted done
  | Refuted line' l =>
      match first_lie last_line blocks with
      | Accepted _ => Refuted line' l
      | Refuted line'' l' => Refuted line'' l'
      end
  end.

Lemma explore_accepted line last_line blocks :
  explore line last_line blocks = Accepted tt -> check_explore line last_line blocks = Accepted tt.
Proof.
  unfold explore. destruct (check_explore line last_line blocks); [ auto | ].
  destruct (first_lie last_line blocks); discriminate.
Qed.

(** ** Soundness *)

Hypothesis Hc : scene_ok c.
Hypothesis HS : down_set p (in_set S).
Hypothesis HR : down_set p upper.
Hypothesis HSR : includes p (in_set S) upper.

Lemma in_middle_list u : In u middle_list <-> middle p (in_set S) upper u.
Proof.
  unfold middle_list, middle, is_middle, in_set.
  rewrite filter_In, in_ids, andb_true_iff, negb_true_iff. tauto.
Qed.

Section Blocks_sound.

Variable owner : owners.
Variable count : N.
Variable mix : table N.
Let blk := block owner count.

Lemma check_dependences_sound line :
  check_dependences owner count line = Accepted tt ->
  (forall x, middle p (in_set S) upper x -> blk x < count) /\
  forall u x, middle p (in_set S) upper u -> middle p (in_set S) upper x -> before p u x ->
  blk u = blk x.
Proof.
  intro H.
  assert (A : forall x, In x middle_list -> blk x < count /\
    forallb (fun u => implb (is_middle u) (blk u =? blk x)) (get [] x (before_of c)) = true).
  { refine (fold_invariant _ (fun done (_ : unit) => forall x, In x done -> blk x < count /\
      forallb (fun u => implb (is_middle u) (blk u =? blk x)) (get [] x (before_of c)) = true)
      _ _ _ H _ _).
    - intros done v [] [] _ A Hv x Hx. apply in_app_or in Hx.
      destruct Hx as [ Hx | [ <- | [] ] ]; [ auto | ].
      apply bind_accepted in Hv. destruct Hv as ([] & B & C).
      apply require_accepted, N.ltb_lt in B. apply require_accepted in C. auto.
    - easy. }
  split.
  - intros x Hx. now apply A, in_middle_list.
  - intros u x Hu Hx B. apply in_middle_list in Hx. destruct (A x Hx) as [ _ C ].
    rewrite forallb_forall in C. apply in_middle_list in Hx.
    assert (D : In u (get [] x (before_of c))).
    { apply (scene_preds c Hc); [ | assumption ]. now destruct Hx. }
    specialize (C u D). rewrite implb_true_iff, N.eqb_eq in C. apply C.
    destruct Hu as (_ & E & F). unfold is_middle. unfold in_set in E. now rewrite E, F.
Qed.

Lemma check_storages_sound line :
  check_storages owner count line = Accepted tt ->
  forall s, s < storages p ->
  constant p (in_set S) upper s \/
  forall u x, middle p (in_set S) upper u -> middle p (in_set S) upper x ->
  touches p u s = true -> touches p x s = true -> blk u = blk x.
Proof.
  intros H s Hs. unfold check_storages in H.
  set (is_constant := fun s => (_ || _) && _) in H.
  apply bind_accepted in H. destruct H as (t & H & _).
  assert (A : forall x, In (x, s) uses -> is_constant s = false -> get None s t = Some (blk x)).
  { refine (fold_invariant _ (fun done (t : owners) => forall x, In (x, s) done ->
      is_constant s = false -> get None s t = Some (blk x)) _ _ _ H _ _).
    - intros done [ y s' ] t1 t2 _ A Hv x Hx Hcon. apply in_app_or in Hx. unfold own_storage in Hv.
      destruct (is_constant s') eqn:E.
      { injection Hv as <-. destruct Hx as [ Hx | [ Hx | [] ] ]; [ auto | ].
        injection Hx as -> ->. congruence. }
      destruct (get None s' t1) as [ j | ] eqn:G.
      + apply bind_accepted in Hv. destruct Hv as ([] & B & Hv).
        apply require_accepted, N.eqb_eq in B. injection Hv as <-.
        destruct Hx as [ Hx | [ Hx | [] ] ]; [ auto | ]. injection Hx as -> ->. now rewrite G, B.
      + injection Hv as <-. rewrite get_put. destruct (N.eqb_spec s s') as [ <- | N ].
        * destruct Hx as [ Hx | [ Hx | [] ] ]; [ | now injection Hx as -> ].
          rewrite (A x Hx Hcon) in G. discriminate.
        * destruct Hx as [ Hx | [ Hx | [] ] ]; [ auto | injection Hx as -> ->; congruence ].
    - easy. }
  assert (Huses : forall u, middle p (in_set S) upper u -> touches p u s = true -> In (u, s) uses).
  { intros u Hu Ht. unfold uses. apply in_flat_map. exists u. split; [ now apply in_middle_list | ].
    apply in_map. now apply in_touched. }
  destruct (is_constant s) eqn:E; [ left | right ].
  - apply andb_true_iff in E. destruct E as [ E F ]. split.
    + apply begun_spec. apply orb_true_iff in E. destruct E as [ E | E ]; [ now left | right ].
      apply mem_started_of in E. destruct E as (v & A1 & A2 & A3). exists v. auto.
    + apply (lasting_not_ended p upper (lasting_storages p upper)).
      * apply lasting_storages_sound.
      * split; [ assumption | auto ].
      * assumption.
  - intros u x Hu Hx Htu Htx.
    assert (B := A u (Huses u Hu Htu) eq_refl). assert (C := A x (Huses x Hx Htx) eq_refl). congruence.
Qed.

Hypothesis no_dependence : forall u x,
  middle p (in_set S) upper u -> middle p (in_set S) upper x -> before p u x -> blk u = blk x.

Lemma in_lists i u :
  In u (get [] i (lists owner count)) <-> middle p (in_set S) upper u /\ blk u = i.
Proof.
  unfold lists. change (block owner count) with blk.
  assert (H : forall l t,
    In u (get [] i (fold_left (fun t u => put (blk u) (u :: get [] (blk u) t) t) l t)) <->
    In u (get [] i t) \/ (In u l /\ blk u = i)).
  { induction l as [ | x l IH ]; intro t; cbn [fold_left In]; [ tauto | ].
    rewrite IH, get_put. destruct (N.eqb_spec i (blk x)) as [ -> | ]; cbn [In]; intuition congruence. }
  rewrite H, get_no_rows, in_middle_list. cbn [In]. tauto.
Qed.

Variable i : N.
Let l : list N := get [] i (lists owner count).
Let start : N := memory_of c S.

Lemma start_spec : start = memory p (in_set S).
Proof. apply memory_of_correct. Qed.

Let block_state : state -> Prop := state_of_block p (in_set S) upper blk i.
Let claim_of : Prop -> state -> Prop := claim p bound (in_set S) upper blk i.

Record claims_ok (k : claims) : Prop := {
  ok_state : forall j, j < number k -> block_state (in_set (set_at start k j)) /\
    bytes_at start k j = memory p (in_set (set_at start k j));
  ok_claimed : forall j, mem j (claimed k) = true -> j < number k /\
    forall done : Prop, (all_claimed k = true -> done) -> claim_of done (in_set (set_at start k j))
}.

Lemma in_block_spec v : in_block owner count i v = true ->
  v < statements p -> blk v = i /\ upper v = true /\ mem v S = false.
Proof.
  unfold in_block, is_middle. rewrite !andb_true_iff, negb_true_iff, N.eqb_eq. tauto.
Qed.

Lemma block_state_plus W v :
  block_state (in_set W) -> in_block owner count i v = true -> ready p (in_set W) v ->
  block_state (in_set (add v W)).
Proof.
  intros (D & A & B) Hin Hr. assert (Hr' := Hr). destruct Hr' as (Hv & Wv & _).
  destruct (in_block_spec v Hin Hv) as (Hb & Hu & _).
  split; [ | split ].
  - apply (down_set_same p (plus (in_set W) v)); [ apply (same_add c) | now apply down_set_plus ].
  - intros u Hun Su. unfold in_set. rewrite mem_add. specialize (A u Hun Su). unfold in_set in A.
    rewrite A. apply orb_true_r.
  - intros u Hun. unfold in_set at 1. rewrite mem_add, orb_true_iff, N.eqb_eq.
    intros [ -> | C ]; [ right; auto | now apply B ].
Qed.

Lemma bytes_plus_spec W b v :
  v < statements p -> mem v W = false -> b = memory p (in_set W) ->
  bytes_plus W b v = memory p (in_set (add v W)).
Proof.
  intros Hv Hm ->. unfold bytes_plus. assert (A := memory_plus c Hc W v Hv Hm). fold p in A. lia.
Qed.

Lemma cost_at_spec W b v :
  v < statements p -> mem v W = false -> b = memory p (in_set W) ->
  cost_at W b v = cost p (in_set W) v.
Proof. intros Hv Hm ->. unfold cost_at. symmetry. now apply (cost_plus c Hc). Qed.

Lemma find_spec k h W j :
  find start k h W = Some j -> j < number k /\ forall u, mem u W = mem u (set_at start k j).
Proof.
  unfold find. intro H. apply List.find_some in H. destruct H as [ _ H ].
  rewrite andb_true_iff, N.ltb_lt in H. split; [ tauto | ]. now apply equal_spec.
Qed.

Lemma add_state_ok k W b h :
  claims_ok k -> block_state (in_set W) -> b = memory p (in_set W) -> claims_ok (add_state k W b h).
Proof.
  intros Hk HW Hb.
  assert (Hat : forall j, state_at start (add_state k W b h) j =
    if j =? number k then (W, (b, h)) else state_at start k j).
  { intro j. unfold state_at. cbn [add_state states]. apply get_put. }
  constructor.
  - intros j Hj. cbn [add_state number] in Hj. unfold set_at, bytes_at. rewrite Hat.
    destruct (N.eqb_spec j (number k)); cbn [fst snd]; [ auto | ].
    apply (ok_state k Hk). lia.
  - intros j Hj. cbn [add_state number claimed all_claimed] in *.
    apply (ok_claimed k Hk) in Hj. destruct Hj as [ Hj Hcl ]. split; [ lia | ].
    unfold set_at. rewrite Hat. destruct (N.eqb_spec j (number k)); [ lia | assumption ].
Qed.

Lemma claims_start_ok : claims_ok (claims_start start).
Proof.
  apply add_state_ok.
  - constructor; cbn [number claimed]; [ lia | ]. intro j. rewrite mem_empty. discriminate.
  - split; [ assumption | ]. split; [ now intros u | ]. intros u _ Hu. now left.
  - apply start_spec.
Qed.

(** A new claim is right for whatever [done] it must be. *)
Lemma add_claim_ok k line j k' :
  claims_ok k -> j < number k ->
  (forall done : Prop, (all_claimed k' = true -> done) -> claim_of done (in_set (set_at start k j))) ->
  add_claim start l k line j = Accepted k' -> claims_ok k'.
Proof.
  intros Hk Hj Hclaim H. unfold add_claim in H. injection H as <-. constructor.
  - apply (ok_state k Hk).
  - intros j'. cbn [claimed number all_claimed]. rewrite mem_add, orb_true_iff, N.eqb_eq.
    intros [ -> | H ]; [ now split | ]. apply (ok_claimed k Hk) in H. destruct H as [ H H' ].
    split; [ assumption | ]. intros done Hd. apply (H' done). intro E. apply Hd. now rewrite E.
Qed.

Lemma may_claim_spec k line j :
  may_claim start k line j = Accepted tt -> j < number k /\ start <= bytes_at start k j.
Proof.
  unfold may_claim. intro H.
  apply bind_accepted in H. destruct H as ([] & A & H).
  apply bind_accepted in H. destruct H as ([] & _ & H).
  apply require_accepted, N.ltb_lt in A. apply require_accepted, N.leb_le in H. auto.
Qed.

Lemma is_claimed_spec k line j :
  claims_ok k -> is_claimed k line j = Accepted tt ->
  j < number k /\
  forall done : Prop, (all_claimed k = true -> done) -> claim_of done (in_set (set_at start k j)).
Proof.
  unfold is_claimed. intros Hk H.
  apply bind_accepted in H. destruct H as ([] & _ & H). apply require_accepted in H.
  now apply (ok_claimed k Hk).
Qed.

(** A state that is the whole block sets the flag. *)
Lemma whole_flag k line j k' :
  add_claim start l k line j = Accepted k' ->
  whole p (in_set S) upper blk i (in_set (set_at start k j)) -> all_claimed k' = true.
Proof.
  unfold add_claim. intros [= <-] W. cbn [all_claimed]. apply orb_true_iff. right.
  apply forallb_forall. intros u Hu. apply in_lists in Hu. destruct Hu. now apply W.
Qed.

Lemma flag_grows k line j k' :
  add_claim start l k line j = Accepted k' -> all_claimed k = true -> all_claimed k' = true.
Proof. unfold add_claim. intros [= <-] E. cbn [all_claimed]. now rewrite E. Qed.

Lemma same_set W W' : (forall u, mem u W = mem u W') -> same p (in_set W) (in_set W').
Proof. intros H u _. apply H. Qed.

Lemma declare_ok k line j v k' :
  claims_ok k -> declare owner count mix start i k line j v = Accepted k' -> claims_ok k'.
Proof.
  intros Hk H. unfold declare in H.
  apply bind_accepted in H. destruct H as ([] & A & H). apply require_accepted, N.ltb_lt in A.
  apply bind_accepted in H. destruct H as ([] & B & H). apply require_accepted in B.
  apply bind_accepted in H. destruct H as ([] & C & H). apply require_accepted in C.
  apply (is_ready_spec c Hc) in C. fold p in C.
  destruct (find _ _ _ _); [ discriminate | ]. injection H as <-.
  destruct (ok_state k Hk j A) as [ D E ]. assert (C' := C). destruct C' as (Hv & Hm & _).
  apply add_state_ok; [ assumption | now apply block_state_plus | now apply bytes_plus_spec ].
Qed.

Lemma claim_next_ok k line j k' :
  claims_ok k -> check_state owner count mix start i l k (Claim_next line j) = Accepted k' ->
  claims_ok k'.
Proof.
  intros Hk H. cbn [check_state] in H.
  apply bind_accepted in H. destruct H as ([] & A & H). apply may_claim_spec in A. destruct A as [ A M ].
  apply bind_accepted in H. destruct H as ([] & B & H).
  assert (Hall : forall v, In v l -> leads_on mix start k line j v = Accepted tt).
  { refine (fold_invariant _ (fun done (_ : unit) => forall v, In v done ->
      leads_on mix start k line j v = Accepted tt) _ _ _ B _ _).
    - intros done w [] [] _ C Hw v Hv. apply in_app_or in Hv.
      destruct Hv as [ Hv | [ <- | [] ] ]; auto.
    - easy. }
  apply (add_claim_ok k line j k' Hk A); [ | assumption ]. intros done Hd.
  destruct (ok_state k Hk j A) as [ D E ].
  apply claim_next; [ exact D | rewrite <- E, <- start_spec; exact M | | ].
  - intro W. apply Hd. now apply (whole_flag k line j).
  - intros v Hr Hb Hu Hcost. assert (Hr' := Hr). destruct Hr' as (Hv & Hm & _).
    assert (Hin : In v l).
    { apply in_lists. split; [ | assumption ]. split; [ assumption | ]. split; [ | assumption ].
      apply not_true_iff_false. intro F. destruct D as (_ & D & _).
      rewrite (D v Hv F) in Hm. discriminate. }
    specialize (Hall v Hin). unfold leads_on in Hall.
    rewrite (proj2 (is_ready_spec c Hc _ v) Hr) in Hall.
    rewrite cost_at_spec in Hall by assumption.
    destruct (N.leb_spec bound (cost p (in_set (set_at start k j)) v)) as [ F | _ ]; [ lia | ].
    destruct (find start k _ _) as [ j' | ] eqn:F; [ | discriminate ].
    apply require_accepted in Hall. apply find_spec in F. destruct F as [ F F' ].
    destruct (ok_claimed k Hk j' Hall) as [ _ G ].
    refine (claim_same p bound (in_set S) upper blk i done _ _ _ (G done _)).
    + eapply same_trans; [ | apply same_sym, (same_add c) ].
      intros u _. unfold in_set. symmetry. apply F'.
    + intro K. apply Hd. now apply (flag_grows k line j).
Qed.

Lemma claim_commit_ok k line j to chains k' :
  claims_ok k -> check_state owner count mix start i l k (Claim_commit line j to chains) = Accepted k' ->
  claims_ok k'.
Proof.
  intros Hk H. cbn [check_state] in H.
  apply bind_accepted in H. destruct H as ([] & A & H). apply may_claim_spec in A. destruct A as [ A M ].
  apply bind_accepted in H. destruct H as ([] & B & H). apply (is_claimed_spec k) in B; [ | assumption ].
  destruct B as [ B B' ].
  apply bind_accepted in H. destruct H as ([] & C & H). apply require_accepted in C.
  rewrite andb_true_iff in C. destruct C as [ C _ ].
  apply bind_accepted in H. destruct H as ([] & D & H).
  apply (add_claim_ok k line j k' Hk A); [ | assumption ]. intros done Hd.
  destruct (ok_state k Hk j A) as [ E F ]. destruct (ok_state k Hk to B) as [ E' F' ].
  assert (I : includes p (in_set (set_at start k j)) (in_set (set_at start k to))).
  { intros u _. unfold in_set. now apply subset_spec. }
  apply claim_commit with (in_set (set_at start k to)); auto.
  - apply B'. intro K. apply Hd. now apply (flag_grows k line j).
  - apply (check_larger_sound c Hc line (set_at start k j) (set_at start k to) _ _ _ chains) in D; auto.
    intros u Hu Hm. destruct (mem u (set_at start k j)) eqn:G; [ now right | left ].
    apply filter_In. rewrite Hm, G. split; [ | reflexivity ]. apply in_lists.
    destruct E' as (_ & _ & E'). destruct (E' u Hu Hm) as [ K | [ K K' ] ].
    + exfalso. destruct E as (_ & E & _). specialize (E u Hu K). unfold in_set in E. congruence.
    + split; [ | assumption ]. split; [ assumption | ]. split; [ | assumption ].
      apply not_true_iff_false. intro L. destruct E as (_ & E & _). specialize (E u Hu L).
      unfold in_set in E. congruence.
Qed.

Lemma claim_reached_ok k line j from path k' :
  claims_ok k -> check_state owner count mix start i l k (Claim_reached line j from path) = Accepted k' ->
  claims_ok k'.
Proof.
  intros Hk H. cbn [check_state] in H.
  apply bind_accepted in H. destruct H as ([] & A & H). apply may_claim_spec in A. destruct A as [ A M ].
  apply bind_accepted in H. destruct H as ([] & B & H). apply (is_claimed_spec k) in B; [ | assumption ].
  destruct B as [ B B' ].
  apply bind_accepted in H. destruct H as (r & C & H).
  apply bind_accepted in H. destruct H as ([] & D & H). apply require_accepted in D.
  apply (add_claim_ok k line j k' Hk A); [ | assumption ]. intros done Hd.
  destruct (ok_state k Hk from B) as [ E F ].
  assert (G : within upper blk i path /\ goes p bound (in_set (set_at start k from)) path /\
    same p (after (in_set (set_at start k from)) path) (in_set (fst r)) /\
    block_state (in_set (fst r)) /\ snd r = memory p (in_set (fst r))).
  { refine (fold_invariant _ (fun path (r : set * N) => within upper blk i path /\
      goes p bound (in_set (set_at start k from)) path /\
      same p (after (in_set (set_at start k from)) path) (in_set (fst r)) /\
      block_state (in_set (fst r)) /\ snd r = memory p (in_set (fst r))) _ _ _ C _ _).
    - intros done' v [ W b ] [ W' b' ] _ (G1 & G2 & G3 & G4 & G5) Hv. cbn [fst snd] in *.
      unfold step_on in Hv.
      apply bind_accepted in Hv. destruct Hv as ([] & V1 & Hv). apply require_accepted in V1.
      apply bind_accepted in Hv. destruct Hv as ([] & V2 & Hv). apply require_accepted in V2.
      apply bind_accepted in Hv. destruct Hv as ([] & V3 & Hv).
      apply require_accepted, N.ltb_lt in V3. injection Hv as <- <-.
      apply (is_ready_spec c Hc) in V2. fold p in V2. assert (V2' := V2). destruct V2' as (Hv & Hm & _).
      destruct (in_block_spec v V1 Hv) as (Hb & Hu & _).
      rewrite cost_at_spec in V3 by assumption.
      split; [ | split; [ | split; [ | split ] ] ].
      + intros u Hin. apply in_app_or in Hin. destruct Hin as [ Hin | [ <- | [] ] ]; auto.
      + apply goes_app. split; [ assumption | ]. cbn [goes]. split; [ | split; [ | trivial ] ].
        * apply (ready_same p (in_set W)); [ now apply same_sym | assumption ].
        * now rewrite (cost_same p _ _ v G3).
      + rewrite after_app. cbn [after]. eapply same_trans; [ | apply (same_add c) ].
        now apply same_plus.
      + now apply block_state_plus.
      + now apply bytes_plus_spec.
    - cbn [fst snd]. repeat split; auto; try apply E; try easy. }
  destruct G as (G1 & G2 & G3 & _).
  refine (claim_same p bound (in_set S) upper blk i done (after (in_set (set_at start k from)) path)
    _ _ _).
  - eapply same_trans; [ exact G3 | ]. apply same_set. now apply equal_spec.
  - apply claim_reached; [ | assumption | assumption ].
    apply B'. intro K. apply Hd. now apply (flag_grows k line j).
Qed.

Lemma check_state_ok k e k' :
  claims_ok k -> check_state owner count mix start i l k e = Accepted k' -> claims_ok k'.
Proof.
  destruct e.
  - apply declare_ok.
  - apply claim_next_ok.
  - apply claim_commit_ok.
  - apply claim_reached_ok.
Qed.

Lemma check_block_sound b found :
  check_block owner count mix start i l b = Accepted found ->
  keeps p bound (in_set S) upper blk i /\
  (found = true -> stuck p bound (in_set S) upper blk i).
Proof.
  unfold check_block. destruct (block_states b) as [ | e lines ] eqn:Hlines; intro H.
  - apply bind_accepted in H. destruct H as ([] & H & E). injection E as <-.
    split; [ | discriminate ]. apply quiet_keeps; [ assumption | ]. intros W DW IW HW.
    rewrite <- start_spec.
    apply (check_least_sound c Hc (block_line b) S (add_all l S) start (block_chains b) H W DW IW).
    intros u Hu Wu. unfold in_set. rewrite mem_add_all, orb_true_iff, existsb_eqb.
    destruct (HW u Hu Wu) as [ A | [ A B ] ]; [ now right | ].
    destruct (mem u S) eqn:Su; [ now right | left ]. apply in_lists.
    split; [ | assumption ]. split; [ assumption | ]. now split.
  - destruct (block_chains b); [ | discriminate ].
    apply bind_accepted in H. destruct H as (k & H & E).
    apply bind_accepted in E. destruct E as ([] & E & F). apply require_accepted in E.
    injection F as <-.
    assert (Hk : claims_ok k).
    { refine (fold_invariant _ (fun _ k => claims_ok k) _ _ _ H _ _).
      - intros done e' k1 k2 _. apply check_state_ok.
      - apply claims_start_ok. }
    assert (Hstart : set_at start k 0 = S).
    { refine (proj2 (fold_invariant _ (fun _ k => 0 < number k /\ set_at start k 0 = S) _ _ _ H _ _)).
      - intros done e' k1 k2 _ [ A B ] Hs.
        assert (Hadd : forall W b h, 0 < number (add_state k1 W b h) /\
          set_at start (add_state k1 W b h) 0 = S).
        { intros. cbn [add_state number]. split; [ lia | ].
          unfold set_at, state_at. cbn [add_state states]. rewrite get_put.
          destruct (N.eqb_spec 0 (number k1)); [ lia | assumption ]. }
        assert (Hclaim : forall line j k2, add_claim start l k1 line j = Accepted k2 ->
          0 < number k2 /\ set_at start k2 0 = S).
        { intros line j k3 [= <-]. cbn [number]. split; assumption. }
        destruct e'; cbn [check_state] in Hs; unfold declare in Hs;
          repeat (apply bind_accepted in Hs; destruct Hs as (? & _ & Hs)); eauto.
        destruct (find _ _ _ _); [ discriminate | ]. injection Hs as <-. apply Hadd.
      - split; [ cbn; lia | ]. reflexivity. }
    destruct (ok_claimed k Hk 0 E) as [ _ G ]. rewrite Hstart in G. split.
    + apply claim_keeps with (done := True). now apply G.
    + intro A. apply negb_true_iff in A. apply claim_stuck. apply G. congruence.
Qed.

End Blocks_sound.

Theorem check_explore_sound line last_line blocks :
  check_explore line last_line blocks = Accepted tt -> ~ reaches p bound (in_set S) upper.
Proof.
  unfold check_explore. intro H.
  apply bind_accepted in H. destruct H as ([ owner count ] & H1 & H).
  apply bind_accepted in H. destruct H as ([] & H2 & H).
  apply bind_accepted in H. destruct H as ([] & H3 & H).
  apply bind_accepted in H. destruct H as ([ k any ] & H4 & H).
  apply require_accepted in H. cbn [snd] in H.
  destruct (check_dependences_sound owner count line H2) as [ Hcover Hdep ].
  assert (Hstor := check_storages_sound owner count line H3).
  assert (Hcount : count = N.of_nat (length blocks)).
  { enough (A : snd (owner, count) = N.of_nat (length blocks)) by assumption.
    refine (fold_invariant _ (fun done (r : owners * N) => snd r = N.of_nat (length done)) _ _ _ H1 _ _).
    - intros done b [ t j ] [ t' j' ] _ A Hb. cbn [snd] in *. unfold own_block in Hb.
      destruct (block_statements b); [ discriminate | ].
      apply bind_accepted in Hb. destruct Hb as (t2 & _ & Hb). injection Hb as _ <-.
      rewrite app_length. cbn [length]. lia.
    - reflexivity. }
  assert (G : k = N.of_nat (length blocks) /\
    (forall j, j < k -> keeps p bound (in_set S) upper (block owner count) j) /\
    (any = true -> exists j, stuck p bound (in_set S) upper (block owner count) j)).
  { refine (fold_invariant _ (fun done (r : N * bool) => fst r = N.of_nat (length done) /\
      (forall j, j < fst r -> keeps p bound (in_set S) upper (block owner count) j) /\
      (snd r = true -> exists j, stuck p bound (in_set S) upper (block owner count) j)) _ _ _ H4 _ _).
    - intros done b [ j s ] [ j' s' ] _ (A & B & C) Hb. cbn [fst snd] in *. unfold check_blocks in Hb.
      apply bind_accepted in Hb. destruct Hb as (found & Hb & E). injection E as <- <-.
      apply check_block_sound in Hb. destruct Hb as [ D E ].
      rewrite app_length. cbn [length]. split; [ lia | ]. split.
      + intros x Hx. destruct (N.eq_dec x j) as [ -> | ]; [ assumption | ]. apply B. lia.
      + intro F. apply orb_true_iff in F. destruct F; eauto.
    - cbn [fst snd length]. split; [ reflexivity | ]. split; [ lia | discriminate ]. }
  destruct G as (Hk & Hkeeps & Hstuck). destruct (Hstuck H) as (j & Hj).
  apply (no_way p bound (in_set S) upper (block owner count) HSR Hdep Hstor (ids count)
    (NoDup_ids count)) with j.
  - intros u Hu. apply in_ids. now apply Hcover.
  - intros x Hx. apply in_ids in Hx. apply Hkeeps. lia.
  - assumption.
Qed.

End ExploreCheck.
