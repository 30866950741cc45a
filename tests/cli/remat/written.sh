cp $DATA/remat/late.json m.json
peakproof remat m.json --target 23 -o out.json --certificate proof
peakproof-check proof/late.json proof/late.cert
peakproof plan out.json
