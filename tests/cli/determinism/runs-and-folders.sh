mkdir a b
for folder in a b; do
  (
    cd $folder
    for model in $DATA/tflite/gap_ring.tflite $DATA/tflite/litert_multi_signature.tflite \
      $DATA/programs/googlenet.infer.0.json $DATA/programs/hard/layer5x40_2.json; do
      peakproof plan $model --certificate $(basename $model) -o $(basename $model).out --json |
        sed 's/"seconds": [0-9.]*//'
    done >report
    peakproof why $DATA/programs/googlenet.infer.0.json >why
  )
done
diff -r a b && echo same
