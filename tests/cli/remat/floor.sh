cp $DATA/tflite/tflm_micro_speech.tflite m.tflite
peakproof remat m.tflite
