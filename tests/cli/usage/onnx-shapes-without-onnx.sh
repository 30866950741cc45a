# The package onnx is not needed for anything else: without it the verb says how to get it.
echo 'raise ImportError("No module named onnx")' >onnx.py
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=.:$DATA/../../python $PYTHON -m peakproof onnx-shapes $DATA/onnx/basic_pitch.onnx -o out.onnx
echo "exit $?"
ls
