cp $DATA/tflite/gap_ring.tflite m.tflite
peakproof why --json m.tflite
peakproof why --json --original m.tflite | $PYTHON -m json.tool >/dev/null && echo valid
