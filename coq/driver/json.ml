(* Program files: JSON, version 1 (doc/program-json.md). *)

open Text

let max_index = 2147483645L (* 2^31 - 3 *)

let bad t reason =
  let reason = if at_end t then reason ^ " (the file ends)" else reason in
  raise
    (Malformed
       (t.line, Printf.sprintf "program, column %d: %s" (t.next - t.line_start + 1) reason))

let rec token t =
  match peek t with
  | ' ' | '\t' | '\r' -> skip t; token t
  | '\n' -> skip t; new_line t; token t
  | c -> c

let expect t c reason =
  if token t <> c then bad t reason;
  skip t

let boolean t =
  let value = token t = 't' in
  String.iter
    (fun c -> if get t <> c then bad t "true or false expected")
    (if value then "true" else "false");
  value

let integer t =
  ignore (token t);
  let value = number t (bad t) in
  (match peek t with
   | '.' | 'e' | 'E' -> bad t "an integer without fraction or exponent expected"
   | _ -> ());
  value

let index t =
  let value = integer t in
  if Int64.compare value max_index >= 0 then bad t "the index is too large";
  value

(* Reads a string and returns what stands between its quotes, escapes as they are. *)
let string t =
  expect t '"' "a string expected";
  let first = t.next in
  let character () =
    if at_end t then bad t "the file ends in a string";
    let c = get t in
    if c < ' ' then bad t "a control character in a string";
    c
  in
  let rec go () =
    match character () with
    | '"' -> String.sub t.text first (t.next - 1 - first)
    | '\\' -> ignore (character ()); go ()
    | _ -> go ()
  in
  go ()

(* Reads the items of an array or the members of an object, whose opening has been read. *)
let items t close item =
  let rec go first =
    if token t = close then skip t
    else begin
      if not first then expect t ',' (Printf.sprintf "',' or '%c' expected" close);
      item ();
      go false
    end
  in
  go true

let max_depth = 64

(* Skips a value that says nothing here: it need not be good JSON, as long as it is clear where it
   ends. *)
let rec any t depth =
  let is_word = function '0' .. '9' | 'a' .. 'z' | 'E' | '+' | '-' | '.' -> true | _ -> false in
  match token t with
  | ('[' | '{') when depth = max_depth -> bad t "nested too deeply"
  | '[' -> skip t; items t ']' (fun () -> any t (depth + 1))
  | '{' ->
      skip t;
      items t '}' (fun () ->
          ignore (string t);
          expect t ':' "':' expected";
          any t (depth + 1))
  | '"' -> ignore (string t)
  | c ->
      if not (is_word c) then bad t "a value expected";
      while is_word (peek t) do skip t done

(* Reads an object; [member] reads the value of a known key and says so. Returns the known keys. *)
let members t what member =
  expect t '{' (what ^ " expected");
  let seen = Hashtbl.create 8 in
  items t '}' (fun () ->
      let key = string t in
      expect t ':' "':' expected";
      if String.contains key '\\' then bad t "a key has an escape";
      if Hashtbl.mem seen key then bad t "the key stands twice";
      if member key then Hashtbl.add seen key () else any t 0);
  seen

let list t item =
  expect t '[' "'[' expected";
  let all = ref [] in
  items t ']' (fun () -> all := item () :: !all);
  List.rev !all

(* Accesses as (storage, range, writes). *)
let access t writes =
  if token t <> '[' then (index t, None, writes)
  else begin
    skip t;
    let what = "[storage, from, to] expected" in
    let storage = index t in
    expect t ',' what;
    let from = integer t in
    expect t ',' what;
    let upto = integer t in
    expect t ']' what;
    if Int64.compare from upto >= 0 then bad t "the range is empty";
    (storage, Some (from, upto), writes)
  end

let add t what a b =
  if Int64.compare b (Int64.sub Int64.max_int a) > 0 then bad t (what ^ " exceeds 2^63-1");
  Int64.add a b

let work t =
  if token t <> '[' then integer t
  else List.fold_left (add t "the work") 0L (list t (fun () -> integer t))

type statement = { at : int; work : int64; accesses : (int64 * (int64 * int64) option * bool) list }
type storage = { bytes : int64; live_in : bool; live_out : bool }

let statement t =
  ignore (token t);
  let at = t.line in
  let r = ref { at; work = 0L; accesses = [] } in
  let accesses writes =
    let more = list t (fun () -> access t writes) in
    r := { !r with accesses = List.rev_append more !r.accesses }
  in
  let member = function
    | "reads" -> accesses false; true
    | "writes" | "overwrites" -> accesses true; true
    | "work" -> r := { !r with work = work t }; true
    | _ -> false
  in
  ignore (members t "a statement" member);
  !r

let storage t =
  let r = ref { bytes = 0L; live_in = false; live_out = false } in
  let member = function
    | "bytes" -> r := { !r with bytes = integer t }; true
    | "live_in" -> r := { !r with live_in = boolean t }; true
    | "live_out" -> r := { !r with live_out = boolean t }; true
    | _ -> false
  in
  let seen = members t "a storage" member in
  if not (Hashtbl.mem seen "bytes") then bad t "a storage without bytes";
  !r

let pair t =
  let what = "[before, after] expected" in
  expect t '[' what;
  let before = index t in
  expect t ',' what;
  let after = index t in
  expect t ']' what;
  if Int64.compare before after >= 0 then bad t "the order does not go forward";
  (t.line, before, after)

(* What can be judged only when all of the file has been read. *)
let judge last_line statements storages pairs =
  let malformed line reason = raise (Malformed (line, "program: " ^ reason)) in
  let fits sum more line reason =
    if Int64.compare more (Int64.sub Int64.max_int sum) > 0 then malformed line reason
  in
  let sum =
    List.fold_left
      (fun sum s ->
        fits sum s.bytes last_line "the storages exceed 2^63-1 bytes";
        Int64.add sum s.bytes)
      0L storages
  in
  let sizes = Array.of_list (List.map (fun s -> s.bytes) storages) in
  let count = Int64.of_int (Array.length sizes) in
  let exists (s, range, _) =
    Int64.compare s count < 0
    && match range with
       | None -> true
       | Some (_, upto) -> Int64.compare upto sizes.(Int64.to_int s) <= 0
  in
  List.iter
    (fun v ->
      fits sum v.work v.at "storages and work exceed 2^63-1 bytes";
      if not (List.for_all exists v.accesses) then
        malformed v.at "an access of a storage, or of bytes of it, that do not exist")
    statements;
  let count = Int64.of_int (List.length statements) in
  List.iter
    (fun (line, _, after) ->
      if Int64.compare after count >= 0 then malformed line "the order names no statement")
    pairs

let to_kernel statements storages pairs =
  let access (s, range, writes) =
    { Kernel.on = n_of s;
      bytes_of = Option.map (fun (from, upto) -> (n_of from, n_of upto)) range;
      writes }
  in
  let statement (v : statement) =
    { Kernel.work_bytes = n_of v.work; access_list = List.map access v.accesses }
  in
  let storage (s : storage) =
    { Kernel.size = n_of s.bytes; live_in = s.live_in; live_out = s.live_out }
  in
  Kernel.program_of
    (List.rev (List.rev_map statement statements))
    (List.rev (List.rev_map storage storages))
    (List.rev_map (fun (_, before, after) -> (n_of before, n_of after)) pairs)

let program text =
  let t = of_string text in
  let statements = ref [] and storages = ref [] and pairs = ref [] in
  let member = function
    | "peakproof" -> if integer t <> 1L then bad t "not version 1"; true
    | "statements" -> statements := list t (fun () -> statement t); true
    | "storages" -> storages := list t (fun () -> storage t); true
    | "order" -> pairs := list t (fun () -> pair t); true
    | _ -> false
  in
  let seen = members t "a program" member in
  List.iter
    (fun key -> if not (Hashtbl.mem seen key) then bad t (key ^ " is missing"))
    [ "peakproof"; "statements"; "storages" ];
  ignore (token t);
  if not (at_end t) then bad t "something after the program";
  judge t.line !statements !storages !pairs;
  to_kernel !statements !storages !pairs
