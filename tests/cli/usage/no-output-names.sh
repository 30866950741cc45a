# Outputs need the name of a file; standard output is none.
cp $DATA/tflite/gap_ring.tflite m.tflite
try() {
  peakproof "$@"
  echo "exit $?" >&2
}
for path in "" -; do
  try plan m.tflite -o "$path"
  try plan m.tflite --output="$path"
  try plan m.tflite --certificate "$path"
  for option in --svg --html --trace; do
    try why m.tflite $option "$path"
  done
  try convert m.tflite -o "$path"
  try arena m.tflite -o "$path"
  try arena m.tflite --c-header "$path"
  try remat m.tflite -o "$path"
  try remat m.tflite --svg "$path"
  try batch . --jsonl "$path"
done
ls
