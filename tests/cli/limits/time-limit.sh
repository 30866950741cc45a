$PYTHON $DATA/../cli/limits/endless.py >p.json
begin=$(date +%s%N)
peakproof plan p.json --time-limit 0.5 -q
echo "exit $?"
[ $((($(date +%s%N) - begin) / 1000000)) -lt 5000 ] && echo "in time"
