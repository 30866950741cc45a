cp $DATA/tflite/gap_ring.tflite m.tflite
touch real
chmod 600 real
ln -s real link
peakproof plan -q m.tflite -o link
stat -c '%F %a' link real
peakproof plan -q m.tflite -o /dev/null
stat -c %F /dev/null
peakproof plan -q m.tflite -o /dev/stdout | cmp - real
# A name may be as long as can be; a link to nothing is not replaced.
long=$(printf '%0255d' 0)
peakproof plan -q m.tflite -o $long
peakproof plan -q m.tflite -o $long
cmp $long real
peakproof plan -q m.tflite -o 0$long 2>/dev/null
echo "exit $?"
ln -s nothing dangling
peakproof plan -q m.tflite -o dangling
echo "exit $?"
ls -F | grep -v 000
