# kill -9 at any moment leaves the old file or the new one, and nothing by its name that is neither.
cp $DATA/programs/googlenet.infer.0.json g.json
peakproof plan -q g.json -o new.json
echo old >out.json
bad=0
for i in $(seq 40); do
  peakproof plan -q g.json -o out.json &
  sleep 0.00$((i % 10))
  kill -9 $! 2>/dev/null
  wait $! 2>/dev/null
  cmp -s out.json new.json || [ "$(cat out.json)" = old ] || bad=$((bad + 1))
done
echo "$bad torn"
