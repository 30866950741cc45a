cat > m.json <<'END'
{"peakproof": 1, "name": "late",
 "statements": [
  {"name": "make", "reads": [0], "writes": [1], "overwrites": [1], "macs": 5, "pure": true},
  {"name": "early", "reads": [1], "writes": [2], "overwrites": [2], "macs": 1000, "pure": true},
  {"name": "wide", "work": 20, "reads": [2], "writes": [3], "overwrites": [3], "macs": 1000, "pure": true},
  {"name": "late", "reads": [1, 3], "writes": [4], "overwrites": [4], "macs": 1000, "pure": true}],
 "storages": [
  {"name": "in", "bytes": 1, "live_in": true}, {"name": "x", "bytes": 10}, {"name": "y", "bytes": 1},
  {"name": "z", "bytes": 1}, {"name": "out", "bytes": 1, "live_out": true}]}
END
peakproof remat m.json --cap 1
echo "make 1 # never again" > caps
peakproof remat m.json --caps caps
echo "nobody 1" > wrong
peakproof remat m.json --caps wrong
echo "exit $?"
printf 'make 1\0 and more\n' > zero
peakproof remat m.json --caps zero
echo "exit $?"
