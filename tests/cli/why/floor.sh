cp $DATA/programs/t5.infer.0.json t5.json
peakproof why t5.json
