cp $DATA/tflite/gap_ring.tflite m.tflite
peakproof plan m.tflite -o out.tflite --certificate proof
ls . proof
peakproof-check proof/subgraph0.json proof/subgraph0.cert
cmp m.tflite out.tflite | sed 's/.*differ/differ/;s/:.*//'
