(* Certificates: their form (doc/certificate.md). What they say is judged by Kernel. *)

open Text

type t = {
  hash : string;
  statements : int64;
  storages : int64;
  certificate : Kernel.certificate;
}

let bad t reason = raise (Malformed (t.line, reason))

(* Whether the line has another argument; its space, or the end of the line, is read. *)
let more t =
  match get t with
  | ' ' -> true
  | '\n' -> new_line t; false
  | _ -> bad t "a space or the end of the line expected"

let argument t = if get t <> ' ' then bad t "a space and an argument expected"
let end_line t = if get t <> '\n' then bad t "the end of the line expected" else new_line t
let number t = number t (bad t)

let below t limit what =
  let value = number t in
  if Int64.compare value limit >= 0 then bad t what;
  n_of value

let letter t c =
  if get t <> c then bad t (Printf.sprintf "line %c expected" c)

(* The rest of the line. *)
let arguments t item =
  let rec go all = if more t then go (item () :: all) else List.rev all in
  go []

let read text =
  let t = of_string text in
  String.iter (fun c -> if get t <> c then bad t "'p peakproof 1' expected") "p peakproof 1\n";
  new_line t;
  letter t 'h';
  argument t;
  let hash =
    String.init 64 (fun _ ->
        match get t with
        | ('0' .. '9' | 'a' .. 'f') as c -> c
        | _ -> bad t "64 lower-case hexadecimal digits expected")
  in
  end_line t;
  letter t 'n';
  argument t;
  let statements = number t in
  argument t;
  let storages = number t in
  if Int64.compare statements Json.max_index >= 0 || Int64.compare storages Json.max_index >= 0 then
    bad t "too many statements or storages";
  end_line t;
  let statement () = below t statements "no such statement" in
  let storage () = below t storages "no such storage" in
  let line () = n_of_int t.line in
  let order_line = line () in
  letter t 'o';
  let the_order = arguments t statement in
  let peak_line = line () in
  letter t 'u';
  argument t;
  let the_peak = n_of (number t) in
  end_line t;
  let bound_line = line () in
  letter t 'l';
  argument t;
  let the_bound = n_of (number t) in
  end_line t;
  let run () =
    let rec go all =
      let all = statement () :: all in
      if peek t = ',' then (skip t; go all) else List.rev all
    in
    go []
  in
  let chain () =
    let chain_line = line () in
    argument t;
    let weight = n_of (number t) in
    if weight = Kernel.N0 then bad t "a weight above 0 expected";
    argument t;
    let first = storage () in
    let links =
      arguments t (fun () ->
          let statements = run () in
          argument t;
          let next = storage () in
          (statements, next))
    in
    { Kernel.chain_line; weight; first; links }
  in
  let chains () =
    let rec go all = if peek t = 'c' then (skip t; go (chain () :: all)) else List.rev all in
    go []
  in
  let exits () =
    let rec go all =
      if peek t <> 'e' then List.rev all
      else begin
        let exit_line = line () in
        skip t;
        argument t;
        let exit_statement = statement () in
        end_line t;
        let exit_chains = chains () in
        go ({ Kernel.exit_line; exit_statement; exit_chains } :: all)
      end
    in
    go []
  in
  (* Before the first line b the base is empty. *)
  let bases trap_line =
    let base_exits = exits () in
    let none = { Kernel.base_line = trap_line; base_anchors = []; base_chains = []; base_exits } in
    let rec go all =
      if peek t <> 'b' then List.rev all
      else begin
        let base_line = line () in
        skip t;
        let base_anchors = arguments t statement in
        let base_chains = chains () in
        let base_exits = exits () in
        go ({ Kernel.base_line; base_anchors; base_chains; base_exits } :: all)
      end
    in
    go [ none ]
  in
  let the_proof =
    let at = line () in
    match peek t with
    | 'f' ->
        skip t;
        if more t then begin
          let v = statement () in
          end_line t;
          Kernel.Floor (at, v)
        end
        else Kernel.Start at
    | 't' ->
        skip t;
        argument t;
        let trap_reverse =
          match get t with 'f' -> false | 'r' -> true | _ -> bad t "f or r expected"
        in
        argument t;
        let trap_count = below t (Int64.succ statements) "more statements than the program has" in
        let trap_more = arguments t statement in
        let trap_bases = bases at in
        Kernel.Trap_proof { Kernel.trap_line = at; trap_reverse; trap_count; trap_more; trap_bases }
    | _ -> Kernel.No_proof
  in
  let last_line = line () in
  if get t <> 'q' then bad t "a proof, or q, expected";
  end_line t;
  if not (at_end t) then bad t "something after q";
  { hash; statements; storages;
    certificate =
      { Kernel.order_line; the_order; peak_line; the_peak; bound_line; the_bound; the_proof;
        last_line } }
