cp $DATA/tflite/gap_ring.tflite m.tflite
peakproof plan m.tflite --budget 4kB
