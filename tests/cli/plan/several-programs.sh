cp $DATA/tflite/litert_multi_signature.tflite m.tflite
peakproof plan m.tflite
