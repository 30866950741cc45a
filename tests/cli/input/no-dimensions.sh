# --dim where nothing has a name.
cp $DATA/tflite/gap_ring.tflite m.tflite
cp $DATA/programs/hard/layer5x40_1.json g.json
printf 'id,lower,upper,size\na,0,2,8\n' >b.csv
peakproof plan --dim batch=1 m.tflite >/dev/null
peakproof plan --dim batch=1 --json -q m.tflite | grep -o '"notices": [^]]*]'
peakproof why --dim batch=1 g.json >/dev/null
peakproof arena --dim batch=1 m.tflite >/dev/null
peakproof arena --dim batch=1 b.csv >/dev/null
peakproof plan -q --dim batch=1 m.tflite
