cp $DATA/programs/hard/layer5x40_1.json p.json
peakproof plan p.json --require-optimal -q
echo "exit $?"
peakproof plan $DATA/programs/hard/layer8x100_2.json --state-limit 10 --require-optimal -q
echo "exit $?"
