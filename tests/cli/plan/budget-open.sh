# Between the bound and the best order: neither found nor impossible.
cp $DATA/programs/hard/layer8x100_2.json p.json
peakproof plan p.json --state-limit 10 --budget 4300 >report
echo "exit $?"
grep budget report
