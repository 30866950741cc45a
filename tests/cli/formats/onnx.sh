# An ONNX model: plan, certificate, verify; a hostile length; no shapes; --dim.
cp $DATA/onnx/deeploy_TinyViT_Demo.onnx in.onnx
cp $DATA/onnx/light_squeezenet.onnx no-shapes.onnx
peakproof plan in.onnx -o out.onnx --certificate proof
peakproof verify in.onnx out.onnx proof
head -c 3000 in.onnx >cut.onnx
peakproof plan cut.onnx
echo exit $?
peakproof plan no-shapes.onnx
echo exit $?
peakproof plan -q --dim nonsense=3 out.onnx >/dev/null
echo exit $?
peakproof plan --dim nonsense=3 out.onnx >/dev/null
peakproof plan --dim 3 out.onnx
echo exit $?
peakproof plan --dim =3 out.onnx
peakproof plan --dim n=-3 out.onnx
echo exit $?
cat >buffers.csv <<'EOF'
id,lower,upper,size
0,0,1,8
EOF
peakproof plan buffers.csv
echo exit $?
