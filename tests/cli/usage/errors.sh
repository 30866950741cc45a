try() {
  peakproof "$@"
  echo "exit $?" >&2
}
try
try nonsense
try plan
try plan a b
try plan --nonsense a
try plan -x a
try plan -o
try plan --time-limit 0 a
try plan --time-limit nan a
try plan --state-limit -1 a
try plan --threads 0 a
try plan --budget 64k a
try plan --json=3 a
try why
try convert a b
try verify a b
