cp $DATA/tflite/gap_ring.tflite m.tflite
touch real
chmod 600 real
ln -s real link
peakproof plan -q m.tflite -o link
stat -c '%F %a' link real
peakproof plan -q m.tflite -o /dev/null
stat -c %F /dev/null
peakproof plan -q m.tflite -o /dev/stdout | cmp - real
