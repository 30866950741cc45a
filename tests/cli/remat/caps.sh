cp $DATA/remat/late.json m.json
peakproof remat m.json --cap 1
echo "make 1 # never again" > caps
peakproof remat m.json --caps caps
echo "nobody 1" > wrong
peakproof remat m.json --caps wrong
echo "exit $?"
printf 'make 1\0 and more\n' > zero
peakproof remat m.json --caps zero
echo "exit $?"
