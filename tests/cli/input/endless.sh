# Devices and pipes are not read, but what the caller has opened is.
cp $DATA/tflite/gap_ring.tflite m.tflite
mkfifo pipe
echo pipe >list
try() {
  timeout 400 peakproof "$@"
  echo "exit $?" >&2
}
for path in /dev/zero pipe; do
  for verb in plan why convert arena remat batch; do
    try $verb -q $path
  done
  try verify $path $path .
  try remat -q m.tflite --caps $path
  try arena -q m.tflite --scratch $path
done
try batch -q list
try plan -q <(cat m.tflite)
cat m.tflite | try plan -q /dev/stdin
cat m.tflite | try arena -q -
# A pipe or a device that has no end is read to a limit.
try plan - </dev/zero
try remat -q m.tflite --caps /dev/stdin </dev/zero
