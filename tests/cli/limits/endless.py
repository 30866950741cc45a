"""Prints a program for which the search does not end: random dependences among unlike values."""

import json
import random

N, WINDOW = 2000, 200
pick = random.Random(1)
statements = [
    {
        "reads": sorted(pick.sample(range(max(0, v - WINDOW), v), min(v, pick.randint(1, 3)))),
        "writes": [v],
    }
    for v in range(N)
]
used = {s for statement in statements for s in statement["reads"]}
storages = [{"bytes": pick.randint(1, 2000), "live_out": s not in used} for s in range(N)]
print(
    json.dumps({"peakproof": 1, "name": "endless", "statements": statements, "storages": storages})
)
