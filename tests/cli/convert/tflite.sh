cp $DATA/tflite/litert_topo_fork.tflite m.tflite
peakproof convert m.tflite
