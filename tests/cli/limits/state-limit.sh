cp $DATA/programs/hard/layer8x100_2.json p.json
peakproof plan p.json --state-limit 100 --certificate proof --json |
  $PYTHON -c 'import json, sys; r = json.load(sys.stdin); print(r["optimal"], r["limited"], r["lower_bound"] <= r["peak_after"] <= r["peak_before"])'
peakproof-check proof/*.json proof/*.cert | sed 's/[0-9]* bound [0-9]*/P bound L/'
