cp $DATA/tflite/gap_ring.tflite m.tflite
peakproof plan m.tflite -o no/such/folder/out.tflite
echo "exit $?"
peakproof plan m.tflite -o .
echo "exit $?"
peakproof plan m.tflite -o /dev/full
echo "exit $?"
peakproof plan m.tflite >/dev/full
echo "exit $?"
peakproof plan m.tflite >&-
echo "exit $?"
peakproof plan m.tflite --certificate m.tflite
echo "exit $?"
ls
