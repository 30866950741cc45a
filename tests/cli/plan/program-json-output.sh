# The planned program file has the statements in the new order, and plans to the same peak.
cp $DATA/programs/googlenet.infer.0.json g.json
peakproof plan g.json -o planned.json
peakproof plan planned.json
