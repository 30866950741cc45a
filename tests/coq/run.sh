#!/bin/sh
# tests/coq/run.sh [BUILD [SEED COUNT]] - builds the proofs in Coq and the checker extracted from them,
# has coqchk check the compiled proofs again, prints what the theorems rest on (nothing but Coq), and
# compares the verdicts of the three checkers on all certificates of the tests and on random ones.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-${PP_BUILD:-/tmp/build}/coq}
seed=${2:-1}
count=${3:-300}
python=${PYTHON:-python3}

if ! command -v coqc >/dev/null || ! command -v ocamlopt >/dev/null; then
  echo "skip coq: coqc and ocamlopt (Debian: coq, ocaml-nox) are not installed"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi

mkdir -p "$build"
if ! make -s -C "$root/coq" BUILD="$build" check >"$build/check.log" 2>&1; then
  cat "$build/check.log"
  echo "0 passed, 1 failed"
  exit 1
fi
cat "$build/check.log"

# "Closed under the global context": no axiom; coqchk says it of the whole.
if [ "$(grep -c '^Closed under the global context' "$build/check.log")" -ne \
  "$(grep -c '^Print Assumptions' "$root/coq/Assumptions.v")" ] ||
  ! grep -q '^\* Axioms: <none>' "$build/check.log" ||
  grep -q -w -e Admitted -e Axiom -e Parameter "$root"/coq/*.v; then
  echo "fail: the proofs rest on more than Coq"
  echo "0 passed, 1 failed"
  exit 1
fi

c=$build/peakproof-check
"${CC:-cc}" -O2 -o "$c" "$root/check/peakproof-check.c"
exec "$python" "$root/tests/coq/compare.py" "$build/peakproof-check-coq" "$c" "$seed" "$count" \
  "$root/tests/check" "$root/tests/fail" "$root/tests/coq"
