cp $DATA/tflite/gap_ring.tflite m.tflite
peakproof why --original m.tflite
