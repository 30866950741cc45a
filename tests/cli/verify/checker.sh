cp $DATA/tflite/gap_ring.tflite m.tflite
peakproof plan -q m.tflite -o p.tflite --certificate proof
peakproof verify --checker /no/such/checker m.tflite p.tflite proof
echo "exit $?"
peakproof verify --checker /bin/true m.tflite p.tflite proof
echo "exit $?"
peakproof verify --checker /bin/false m.tflite p.tflite proof
echo "exit $?"
