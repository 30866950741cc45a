# What convert writes, it reads to the same bytes; and it is what the certificate is about.
for model in $DATA/tflite/gap_ring.tflite $DATA/programs/*.json $DATA/programs/hard/*.json; do
  peakproof convert $model -o a.json
  peakproof convert a.json -o b.json
  cmp a.json b.json
  peakproof plan -q $model --time-limit 0.2 --certificate proof
done
peakproof convert $DATA/tflite/gap_ring.tflite | cmp - proof/subgraph0.json
echo done
