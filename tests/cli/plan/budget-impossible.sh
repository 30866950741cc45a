cp $DATA/tflite/gap_ring.tflite m.tflite
peakproof plan m.tflite --budget 3KiB -o out.tflite
echo "exit $?"
ls
