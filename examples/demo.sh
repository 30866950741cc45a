#!/usr/bin/env bash
# make demo: the main job on a shipped model, and on one that PyTorch compiles. $BUILD: where all is
# built; $TORCH: no leaves PyTorch out.
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
  "$@" 2>&1
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

if [ "${TORCH:-}" != no ]; then
  echo
  echo "A network that PyTorch compiles (examples/inception.py): profiled, planned, run in both orders,"
  echo "compared bit by bit, and only then replaced. Bytes; \"held\" is what the caller holds."
  export PATH=$PWD/$BUILD/venv-torch/bin:$PATH TORCHINDUCTOR_CACHE_DIR=$PWD/$out/inductor
  show python -m peakproof run --out "$out/session" examples/inception.py
  show peakproof-check "$out/session/0_inference.json" "$out/session/0_inference.cert"
fi
