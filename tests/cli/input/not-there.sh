peakproof plan nothing.tflite
echo "exit $?"
peakproof plan .
echo "exit $?"
