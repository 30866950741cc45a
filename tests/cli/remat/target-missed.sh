cp $DATA/remat/late.json m.json
peakproof remat m.json --target 5
echo "exit $?"
