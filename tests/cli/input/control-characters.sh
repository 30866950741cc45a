# Names and paths do not reach a terminal raw: no line ends, no escape sequences, C1 neither.
$PYTHON - <<'END'
import json

NAME = "a\n\x1b[31m\x7f\u009b2J\u00e9"
program = {
    "peakproof": 1,
    "storages": [{"name": NAME, "bytes": 8}, {"name": NAME, "bytes": 4, "live_out": True}],
    "statements": [
        {"name": NAME, "writes": [0]},
        {"name": NAME, "reads": [0], "writes": [1]},
    ],
}
json.dump(program, open("n\n\x1b[1m.json", "w"))
END
model=$(echo *.json)
raw() { LC_ALL=C grep -c -P '[\x00-\x1f\x7f]|\xc2[\x80-\x9f]' "$1"; }
try() {
  peakproof "$@" >out 2>err
  echo "exit $?, raw lines: $(raw out) $(raw err)"
  cat out
  cat err
}
try plan "$model" -o "$model.new" --svg "$model.svg" --certificate "$model.proof"
try why "$model"
try remat "$model" -o "$model.again"
try arena --runtime 8 "$model" -o "$model.csv"
try batch . | sed 's/  [0-9.]* s$//'
try verify "$model" "$model.new" "$model.proof"
try verify "$model" "$model" "$model.proof"
try plan "$model/none"
try why --program "$model" "$model"
try plan --threads "$model" "$model"
try "$model"
