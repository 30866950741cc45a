(* peakproof-check-coq PROGRAM.json PROOF.cert: the checker that is proved sound in Coq. Verdicts and
   exit codes are those of peakproof-check (doc/certificate.md). *)

let usage =
  "usage: peakproof-check-coq [--help | --version] PROGRAM.json PROOF.cert\n\n\
   Verifies a certificate of peakproof with a checker that was extracted from its\n\
   proof in Coq (doc/coq.md). Verdicts and exit codes are those of peakproof-check:\n\n\
  \  s VERIFIED peak P bound L [optimal]   exit 0\n\
  \  s REFUTED line N: reason              exit 1\n\
  \  s MALFORMED line N: reason            exit 65\n\n\
   64: wrong usage; 66: cannot open a file; 71: out of memory; 74: cannot read or write.\n\
   '-' as PROOF.cert is standard input.\n"

let fail status message =
  prerr_endline ("peakproof-check-coq: " ^ message);
  exit status

let read_all name =
  let channel =
    if name = "-" then stdin else try open_in_bin name with Sys_error e -> fail 66 e
  in
  let buffer = Buffer.create 65536 and part = Bytes.create 65536 in
  let rec go () =
    match input channel part 0 65536 with
    | 0 -> Buffer.contents buffer
    | count -> Buffer.add_subbytes buffer part 0 count; go ()
    | exception Sys_error e -> fail 74 e
  in
  set_binary_mode_in channel true;
  go ()

let reason lie =
  let n x = Int64.to_string (Text.n_to x) in
  match lie with
  | Kernel.Access_outside -> "an access of no storage"
  | Order_not_legal -> "the order is not a legal order of all statements"
  | Peak_is x -> "the peak of the order is " ^ n x
  | Bound_above_peak -> "the bound is above the peak of a legal order"
  | Bound_without_proof -> "no proof of this bound"
  | Floor_is x -> "only " ^ n x ^ " bytes are needed there"
  | Trap_statement_twice v -> "statement " ^ n v ^ " stands twice in the trap"
  | Trap_is_everything -> "the trap is all statements"
  | Trap_not_closed v -> "the trap is not closed: statement " ^ n v ^ " is in it"
  | Exit_is_none v -> n v ^ " is not an exit"
  | Exit_twice v -> "exit " ^ n v ^ " is listed twice"
  | Exit_missing v -> "exit " ^ n v ^ " is not listed"
  | Exit_costs (v, x) -> "exit " ^ n v ^ " is shown to cost only " ^ n x
  | Anchor_outside v -> "anchor " ^ n v ^ " is not in the trap"
  | Anchor_twice v -> "anchor " ^ n v ^ " stands twice"
  | Anchor_before_anchor v -> "anchor " ^ n v ^ " is an ancestor of another"
  | Anchor_not_before_exit v -> "an anchor of the base is not an ancestor of " ^ n v
  | Storage_twice s -> "storage " ^ n s ^ " stands twice in the chain or base"
  | Storage_unknown s -> "no storage " ^ n s
  | Storage_not_begun s -> "storage " ^ n s ^ " may not have begun"
  | Storage_ended s -> "storage " ^ n s ^ " may have ended"
  | Storage_fixed s -> "storage " ^ n s ^ " is accessed by the exit, or constant"
  | Storage_overloaded s -> "storage " ^ n s ^ " is overloaded"
  | Run_broken s -> "the run behind storage " ^ n s ^ " is broken"
  | Probe_same v -> "an edge from " ^ n v ^ " to itself"
  | Probe_circle -> "something follows an edge that closes a circle"
  | Statement_not_ready v -> "statement " ^ n v ^ " is not ready"
  | Statement_outside v -> "statement " ^ n v ^ " is outside, or leads to no state"
  | Statement_twice v -> "statement " ^ n v ^ " stands twice"
  | Memory_grows v -> "memory grows by statement " ^ n v
  | Memory_not_least (x, goal) -> "shown are only " ^ n x ^ " of " ^ n goal ^ " bytes"
  | Chains_not_needed -> "chains that prove nothing"
  | Not_comparable (v, u) -> "statement " ^ n v ^ " is not comparable with " ^ n u
  | Pivot_outside v -> "statement " ^ n v ^ " does not lie in the middle"
  | Blocks_empty -> "an empty block"
  | Blocks_joined v -> "something joins the block of " ^ n v ^ " to another"
  | Blocks_miss v -> "statement " ^ n v ^ " is in no block"
  | State_unknown x -> "no state " ^ n x
  | State_twice x -> "the state is state " ^ n x
  | State_not_claimed x -> "state " ^ n x ^ " is not claimed"
  | State_claimed_twice x -> "state " ^ n x ^ " is claimed already"
  | State_below_start x -> "state " ^ n x ^ " has less memory than the start"
  | State_not_larger x -> "state " ^ n x ^ " is not larger"
  | State_other x -> "the statements do not lead to state " ^ n x
  | Step_costs_too_much v -> "the step to statement " ^ n v ^ " is not below the bound"
  | Start_not_claimed -> "state 0 is not claimed"
  | No_block_stuck -> "every block can be completed"

exception Lie of int * string

let verdict program_text certificate_text =
  try
    let program = Json.program program_text in
    let form = Form.read certificate_text in
    let c = form.certificate in
    if form.hash <> Sha256.hex program_text then
      raise (Lie (2, "the program file has another SHA-256"));
    if Text.n_of form.statements <> program.statements
       || Text.n_of form.storages <> program.storages
    then raise (Lie (3, "the program has other sizes"));
    match Kernel.check program c with
    | Refuted (line, lie) -> raise (Lie (Int64.to_int (Text.n_to line), reason lie))
    | Accepted () ->
        ( 0,
          Printf.sprintf "s VERIFIED peak %Ld bound %Ld%s" (Text.n_to c.the_peak)
            (Text.n_to c.the_bound)
            (if c.the_peak = c.the_bound then " optimal" else "") )
  with
  | Text.Malformed (line, why) -> (65, Printf.sprintf "s MALFORMED line %d: %s" line why)
  | Lie (line, why) -> (1, Printf.sprintf "s REFUTED line %d: %s" line why)

let () =
  (* the sets of Coq's library are trees that share their parts: much garbage, little of it lives *)
  Gc.set { (Gc.get ()) with minor_heap_size = 1 lsl 20; space_overhead = 200 };
  match Array.to_list Sys.argv |> List.tl with
  | [ "--help" ] -> print_string usage
  | [ "--version" ] -> print_endline "peakproof-check-coq 0.1.0 (certificates version 1)"
  | [ program; certificate ] -> (
      match verdict (read_all program) (read_all certificate) with
      | exception (Out_of_memory | Stack_overflow) -> fail 71 "out of memory"
      | status, line ->
          (try print_endline line with Sys_error e -> fail 74 e);
          exit status)
  | _ -> prerr_string usage; exit 64
