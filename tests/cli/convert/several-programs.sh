cp $DATA/tflite/litert_multi_signature.tflite m.tflite
peakproof convert m.tflite -o one.json
echo "exit $?"
peakproof convert m.tflite -o all/
ls all
first=$(ls all | head -n 1)
peakproof convert m.tflite --program ${first%.json} | cmp - all/$first
ls
