peakproof plan $DATA/tflite/gap_ring.tflite | sed "s,$DATA,DATA,"
