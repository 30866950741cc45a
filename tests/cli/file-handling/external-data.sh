# The files that hold the data of an ONNX model's tensors are inputs, too: no output may hit them.
mkdir -p d e
$PYTHON - <<'END'
def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

def field(number, body):
    if isinstance(body, int):
        return varint(number << 3) + varint(body)
    body = body.encode() if isinstance(body, str) else body
    return varint(number << 3 | 2) + varint(len(body)) + body

def value(name):
    shape = field(1, field(1, 2))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))

def external(number, name, file):
    entry = field(1, "location") + field(2, file)
    return field(number, field(1, 2) + field(2, 1) + field(8, name) + field(13, entry) + field(14, 1))

constant = field(5, field(1, "value") + external(5, "c", "more.bin") + field(20, 4))
nodes = [field(2, "c") + field(4, "Constant") + constant,
         field(1, "x") + field(1, "w") + field(2, "t") + field(4, "Add"),
         field(1, "t") + field(1, "c") + field(2, "y") + field(4, "Add")]
graph = b"".join(field(1, n) for n in nodes) + field(2, "g") + external(5, "w", "weights.bin")
graph += field(11, value("x")) + field(12, value("y")) + field(13, value("t"))
open("d/m.onnx", "wb").write(field(1, 8) + field(7, graph) + field(8, field(2, 13)))
END
echo weights >d/weights.bin
ln -s weights.bin d/link
try() {
  peakproof "$@"
  echo "exit $?"
}
try plan -q d/m.onnx -o d/weights.bin
try plan -q d/m.onnx -o d/../d/link
try plan -q d/m.onnx --svg d/more.bin
try why d/m.onnx --html d/weights.bin
try remat -q d/m.onnx -o d/weights.bin
try arena -q d/m.onnx --runtime 16 --svg d/weights.bin
try convert d/m.onnx -o d/more.bin
cat d/m.onnx | (cd d && try plan -q - --trace weights.bin)
try plan -q d/m.onnx -o d/m2.onnx
try plan -q d/m.onnx -o m2.onnx
try plan d/m.onnx -o e/m2.onnx
cat d/weights.bin
ls -R
