# Only when it is named as the output.
cp $DATA/programs/hard/layer5x40_1.json layer5x40_1.json
cp layer5x40_1.json copy
peakproof plan -q layer5x40_1.json --certificate .
echo "exit $?"
cmp layer5x40_1.json copy
peakproof plan -q copy -o copy --certificate proof
peakproof verify -q layer5x40_1.json copy proof
echo "exit $?"
peakproof plan -q layer5x40_1.json -o proof/layer5x40_1.json --certificate proof
echo "exit $?"
peakproof convert layer5x40_1.json -o ./
echo "exit $?"
cmp layer5x40_1.json $DATA/programs/hard/layer5x40_1.json
