cp $DATA/programs/googlenet.infer.0.json g.json
peakproof why g.json | sed "s,step [0-9]*,step N,g;s,  *$,,"
