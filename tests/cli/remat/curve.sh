cp $DATA/remat/late.json m.json
peakproof remat m.json --curve
