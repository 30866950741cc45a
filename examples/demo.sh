#!/usr/bin/env bash
# make demo: the main job on a shipped model. $BUILD: where Meson built.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/$BUILD/release
export PATH=$bin/src:$bin/check:$PATH
out=$BUILD/demo
rm -rf "$out"
mkdir -p "$out"

show() {
  echo
  echo "\$ $*"
  "$@"
}

echo "A model for microcontrollers (tests/data/tflite/gap_ring.tflite): planned, proved, checked, and run"
echo "in both orders in LiteRT, on random inputs."
cp tests/data/tflite/gap_ring.tflite "$out/ring.tflite"
cd "$out"
show peakproof plan ring.tflite -o ring.opt.tflite --certificate proof
show peakproof-check proof/subgraph0.json proof/subgraph0.cert
show peakproof verify ring.tflite ring.opt.tflite proof
cd ../..
show "$BUILD/venv/bin/python" examples/compare_outputs.py "$out/ring.tflite" "$out/ring.opt.tflite"
cd "$out"

echo
echo "A program that PyTorch's compiler made of GoogLeNet (tests/data/programs):"
cp ../../tests/data/programs/googlenet.infer.0.json googlenet.json
show peakproof plan googlenet.json --certificate proof
show peakproof-check proof/googlenet.infer.0.json proof/googlenet.infer.0.cert
