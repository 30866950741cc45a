# kill -9 at any moment leaves the old file or the new one, and nothing by its name that is neither.
# Nor does it leave a part of a file by another name, where a file may have none until it is whole.
cp $DATA/programs/googlenet.infer.0.json g.json
peakproof plan -q g.json -o new.json
echo old >out.json
$PYTHON -c 'import os; os.open(".", os.O_TMPFILE | os.O_WRONLY)' 2>/dev/null && nameless=yes || nameless=no
bad=0
for i in $(seq 60); do
  out=out.json
  [ $((i % 3)) = 0 ] && out=none.json && rm -f $out
  peakproof plan -q g.json -o $out &
  sleep 0.00$((i % 10))
  kill -9 $! 2>/dev/null
  wait $! 2>/dev/null
  cmp -s out.json new.json || [ "$(cat out.json)" = old ] || bad=$((bad + 1))
  [ ! -e none.json ] || cmp -s none.json new.json || bad=$((bad + 1))
  for part in peakproof-*.tmp; do
    [ $nameless = no ] || [ ! -e $part ] || cmp -s $part new.json || bad=$((bad + 1))
  done
done
echo "$bad torn"
