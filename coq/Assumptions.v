(** Prints what the theorems rest on: nothing but Coq itself. *)

From Peakproof Require Import Reverse Check.

Check check_sound.
Check check_optimal.
Check peak_reverse.
Print Assumptions check_sound.
Print Assumptions check_optimal.
Print Assumptions peak_reverse.
