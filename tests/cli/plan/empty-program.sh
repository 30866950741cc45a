echo '{"peakproof":1,"statements":[],"storages":[{"bytes":7,"live_in":true,"live_out":true}]}' >p.json
peakproof plan p.json --certificate proof
peakproof-check proof/p.json proof/p.cert
peakproof why p.json
