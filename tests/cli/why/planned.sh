cp $DATA/programs/googlenet.infer.0.json g.json
peakproof why g.json
