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
  let numbered () = n_of (number t) in
  let reversed () =
    argument t;
    match get t with 'f' -> false | 'r' -> true | _ -> bad t "f or r expected"
  in
  (* Reads lines that begin with a letter for which [item] knows how to go on. *)
  let lines item =
    let rec go all =
      match item (peek t) with
      | None -> List.rev all
      | Some read ->
          let at = line () in
          skip t;
          go (read at :: all)
    in
    go []
  in
  let the_probes =
    lines (function
      | 'a' ->
          Some (fun probe_line ->
              argument t;
              let probe_from = statement () in
              argument t;
              let probe_to = statement () in
              end_line t;
              { Kernel.probe_line; probe_from; probe_to; probe_chains = chains () })
      | _ -> None)
  in
  let state_lines () =
    lines (function
      | 's' ->
          Some (fun at ->
              argument t;
              let state = numbered () in
              argument t;
              let v = statement () in
              end_line t;
              Kernel.Declare (at, state, v))
      | 'n' ->
          Some (fun at ->
              argument t;
              let state = numbered () in
              end_line t;
              Kernel.Claim_next (at, state))
      | 'd' ->
          Some (fun at ->
              argument t;
              let state = numbered () in
              argument t;
              let larger = numbered () in
              end_line t;
              Kernel.Claim_commit (at, state, larger, chains ()))
      | 'r' ->
          Some (fun at ->
              argument t;
              let state = numbered () in
              argument t;
              let start = numbered () in
              Kernel.Claim_reached (at, state, start, arguments t statement))
      | _ -> None)
  in
  let search search_line =
    end_line t;
    let search_steps =
      lines (function
        | 'y' ->
            Some (fun at ->
                let reverse = reversed () in
                argument t;
                let v = statement () in
                end_line t;
                Kernel.Pivot (at, reverse, v))
        | 'k' ->
            Some (fun at ->
                let reverse = reversed () in
                Kernel.Commit_each (at, reverse, arguments t statement))
        | 'K' ->
            Some (fun at ->
                let reverse = reversed () in
                let more = arguments t statement in
                Kernel.Commit_to (at, reverse, more, chains ()))
        | _ -> None)
    in
    let explore_line = line () in
    letter t 'm';
    let explore_reverse = reversed () in
    end_line t;
    let search_blocks =
      lines (function
        | 'g' ->
            Some (fun block_line ->
                let block_statements = arguments t statement in
                let block_chains = chains () in
                { Kernel.block_line; block_statements; block_chains; block_states = state_lines () })
        | _ -> None)
    in
    { Kernel.search_line; search_steps; explore_line; explore_reverse; search_blocks }
  in
  let trap trap_line =
    let trap_reverse = reversed () in
    argument t;
    let trap_count = below t (Int64.succ statements) "more statements than the program has" in
    let trap_more = arguments t statement in
    let trap_bases = bases trap_line in
    { Kernel.trap_line; trap_reverse; trap_count; trap_more; trap_bases }
  in
  let the_proof =
    let at = line () in
    match peek t with
    | 'f' when the_probes = [] ->
        skip t;
        if more t then begin
          let v = statement () in
          end_line t;
          Kernel.Floor (at, v)
        end
        else Kernel.Start at
    | 't' -> skip t; Kernel.Trap_proof (trap at)
    | 'x' -> skip t; Kernel.Search_proof (search at)
    | _ -> Kernel.No_proof
  in
  let last_line = line () in
  if get t <> 'q' then bad t "a proof, or q, expected";
  end_line t;
  if not (at_end t) then bad t "something after q";
  { hash; statements; storages;
    certificate =
      { Kernel.order_line; the_order; peak_line; the_peak; bound_line; the_bound; the_probes;
        the_proof; last_line } }
