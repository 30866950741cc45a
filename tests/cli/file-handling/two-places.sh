# No two outputs in one place, no output over an input but -o over the model; nothing is left behind.
cp $DATA/tflite/gap_ring.tflite m.tflite
cp m.tflite copy
echo m.tflite >list
echo "0 2" >caps
mkdir rr made
ln -s m.tflite link
try() {
  peakproof "$@"
  echo "exit $?" >&2
  cmp m.tflite copy
}
try arena m.tflite --svg m.tflite
try arena m.tflite --svg ./link
try arena m.tflite --c-header m.tflite
try arena m.tflite -o a.tflite --c-header ./a.tflite
try arena m.tflite -o list --scratch list
try arena m.tflite --reorder --svg rr/subgraph0.json --certificate rr
try remat m.tflite --svg m.tflite
try remat m.tflite --caps caps --svg caps
try remat m.tflite -o x --svg x
try remat m.tflite -o rr/subgraph0.cert --certificate rr
try plan m.tflite --html m.tflite
try plan m.tflite -o x --svg x
try plan m.tflite --trace x --svg rr/../x
try plan m.tflite -o same --certificate same
try plan m.tflite -o same --certificate ./same/
try plan m.tflite -o rr/subgraph0.json --certificate rr
try plan m.tflite --svg new/./subgraph0.cert --certificate new
try plan m.tflite -o x --certificate m.tflite
try plan m.tflite -o x --certificate caps
try why m.tflite --svg x --html x
try why m.tflite --svg m.tflite
try convert m.tflite --program subgraph0 -o rr
cp rr/subgraph0.json made/subgraph0.json
try convert made/subgraph0.json -o made
try batch list --jsonl list
try batch list --jsonl m.tflite
try batch . --jsonl m.tflite
ls
cat list caps
ls rr made
peakproof plan -q m.tflite -o /dev/null --svg /dev/null
