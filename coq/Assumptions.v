(** Prints what the theorems rest on: nothing but Coq itself. *)

From Peakproof Require Import Program Reverse Commit Check.

Check check_sound.
Check check_optimal.
Check original_legal.
Check peak_reverse.
Check commit.
Print Assumptions check_sound.
Print Assumptions check_optimal.
Print Assumptions original_legal.
Print Assumptions peak_reverse.
Print Assumptions commit.
