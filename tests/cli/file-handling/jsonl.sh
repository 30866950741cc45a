# batch adds lines to a file of its own, mends its torn last line, and touches no other file.
mkdir d
cp $DATA/tflite/gap_ring.tflite d/m.tflite
cp d/m.tflite other
echo '{"models": 1}' >other.json
printf '{"mod' >torn
for file in other other.json torn new new; do
  peakproof batch -q d --jsonl $file
  echo "$file: exit $?, $(grep -a -c '^{"model": "d/m.tflite"' $file) lines"
done
cmp other d/m.tflite
cat other.json
