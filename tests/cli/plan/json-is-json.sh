cp $DATA/programs/googlenet.infer.0.json g.json
peakproof plan g.json --json --budget 5MB | $PYTHON -c '
import json, sys
report = json.load(sys.stdin)
(program,) = report["programs"]
print(report["peak_before"], report["peak_after"], report["lower_bound"], report["optimal"], report["budget"])
print(sorted(program["order"]) == list(range(program["statements"])), program["proof"])'
