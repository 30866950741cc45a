peakproof plan - <$DATA/programs/hard/layer5x40_1.json --certificate proof
peakproof-check proof/layer5x40_1.json proof/layer5x40_1.cert
