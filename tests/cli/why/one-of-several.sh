cp $DATA/tflite/litert_multi_signature.tflite m.tflite
peakproof why m.tflite --program $(peakproof plan --json m.tflite | $PYTHON -c 'import json,sys; print(json.load(sys.stdin)["programs"][1]["name"])')
peakproof why m.tflite --program none
echo "exit $?"
