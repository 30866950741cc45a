cp $DATA/tflite/gap_ring.tflite m.tflite
cp $DATA/programs/googlenet.infer.0.json g.json
peakproof plan -q m.tflite -o p.tflite --certificate proof
peakproof verify m.tflite p.tflite proof
peakproof plan -q g.json -o p.json --certificate proof
peakproof verify g.json p.json proof
peakproof verify -q g.json p.json proof
