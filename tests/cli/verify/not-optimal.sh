# A certificate whose bound is below its peak is a true one, and says less.
cp $DATA/programs/hard/layer8x100_2.json g.json
peakproof plan -q --state-limit 10 g.json -o p.json --certificate proof
try() {
  peakproof verify "$@" g.json p.json proof
  echo "exit $?"
}
try
try -q
try --require-optimal
try -q --require-optimal
cp $DATA/tflite/gap_ring.tflite m.tflite
peakproof plan -q m.tflite -o p.tflite --certificate proof
peakproof verify --require-optimal m.tflite p.tflite proof
