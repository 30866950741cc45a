cat >p.json <<END
{"peakproof": 1, "device": "cpu", "statements": [{"name": "a", "writes": [0], "color": 1}],
 "storages": [{"bytes": 1}, {"bytes": 2}]}
END
peakproof plan p.json
peakproof plan -q p.json
