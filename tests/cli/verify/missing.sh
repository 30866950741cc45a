# A missing certificate is one line, about the certificate.
cp $DATA/tflite/gap_ring.tflite m.tflite
peakproof plan -q m.tflite -o p.tflite --certificate proof
try() {
  peakproof verify m.tflite p.tflite "$1"
  echo "exit $?"
}
try nowhere
mv proof/subgraph0.cert away
try proof
mkfifo proof/subgraph0.cert
try proof
mkdir ended
cp proof/subgraph0.json away ended
ln -s /dev/zero ended/subgraph0.cert
try ended
