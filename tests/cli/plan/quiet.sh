peakproof plan -q $DATA/tflite/gap_ring.tflite
