peakproof --help
for verb in plan why convert verify; do
  echo
  peakproof $verb --help
done
