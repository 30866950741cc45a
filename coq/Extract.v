(** The checker as OCaml. Booleans, lists, options, pairs and unit become OCaml's own (ExtrOcamlBasic);
    numbers stay what they are in Coq. *)

From Coq Require Import Extraction ExtrOcamlBasic.
From Peakproof Require Import Program Certificate Check.

Extraction Language OCaml.
Extraction "kernel.ml" program_of check.
