# Whatever is exchanged, it is noticed.
cp $DATA/tflite/gap_ring.tflite m.tflite
peakproof plan -q m.tflite -o p.tflite --certificate proof
try() {
  peakproof verify "$@"
  echo "exit $?"
}
try m.tflite m.tflite proof                     # not the certificate's order
printf x | dd of=p.tflite bs=1 seek=30000 conv=notrunc 2>/dev/null
try m.tflite p.tflite proof                     # a changed weight
peakproof plan -q m.tflite -o p.tflite
cp -r proof other
sed -i 's/"bytes":1600/"bytes":1500/' other/subgraph0.json
try m.tflite p.tflite other                     # another program
cp proof/subgraph0.json other
sed 's/^u .*/u 3100/' proof/subgraph0.cert >other/subgraph0.cert
try m.tflite p.tflite other                     # a false peak
sed 's/^l .*/l 3201/' proof/subgraph0.cert >other/subgraph0.cert
try m.tflite p.tflite other                     # a false bound
rm other/subgraph0.cert
try m.tflite p.tflite other                     # none
try m.tflite other/subgraph0.json proof         # another format
