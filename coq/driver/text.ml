(* A text that is read character by character, and numbers. *)

exception Malformed of int * string (* line, reason *)

type t = { text : string; mutable next : int; mutable line : int; mutable line_start : int }

let of_string text = { text; next = 0; line = 1; line_start = 0 }
let at_end t = t.next >= String.length t.text

(* The next character; '\000' at the end, which no grammar here has a place for. *)
let peek t = if at_end t then '\000' else t.text.[t.next]

let skip t = t.next <- t.next + 1

let get t =
  let c = peek t in
  if not (at_end t) then skip t;
  c

let new_line t =
  t.line <- t.line + 1;
  t.line_start <- t.next

let is_digit c = '0' <= c && c <= '9'

(* Reads decimal digits, of a number up to 2^63-1 without leading zeros. *)
let number t bad =
  if not (is_digit (peek t)) then bad "a number expected";
  let value = ref 0L in
  let first = t.next in
  while is_digit (peek t) do
    let digit = Int64.of_int (Char.code (peek t) - Char.code '0') in
    if t.next > first && !value = 0L then bad "leading zero";
    if Int64.compare !value (Int64.div (Int64.sub Int64.max_int digit) 10L) > 0 then
      bad "the number exceeds 2^63-1";
    value := Int64.add (Int64.mul !value 10L) digit;
    skip t
  done;
  !value

(* Numbers of Coq. *)
let rec positive_of x =
  if x = 1L then Kernel.XH
  else
    let half = positive_of (Int64.shift_right_logical x 1) in
    if Int64.logand x 1L = 1L then Kernel.XI half else Kernel.XO half

let n_of x = if x = 0L then Kernel.N0 else Kernel.Npos (positive_of x)
let n_of_int i = n_of (Int64.of_int i)

let rec positive_to = function
  | Kernel.XH -> 1L
  | Kernel.XO p -> Int64.mul 2L (positive_to p)
  | Kernel.XI p -> Int64.add 1L (Int64.mul 2L (positive_to p))

let n_to = function Kernel.N0 -> 0L | Kernel.Npos p -> positive_to p
