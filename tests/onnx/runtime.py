"""runtime.py [--dim NAME=N]... [--order] MODEL - executes an ONNX model in onnxruntime and prints
what came out, as one JSON line: graph optimisation off, one thread, three rounds of random inputs,
always the same.

Prints {"outputs": [digest, ...], "seconds": s} or {"refused": "why"}. With --order it executes the
model once, as its file orders it, and prints the names of the nodes as they ran. A process of its
own, because runtimes abort on what they do not like.
"""

import hashlib
import json
import sys
import time

import numpy

ROUNDS = 3
TYPES = {
    "tensor(float)": numpy.float32,
    "tensor(double)": numpy.float64,
    "tensor(float16)": numpy.float16,
    "tensor(int8)": numpy.int8,
    "tensor(uint8)": numpy.uint8,
    "tensor(int32)": numpy.int32,
    "tensor(int64)": numpy.int64,
    "tensor(bool)": numpy.bool_,
}
# Sizes of dimensions that are not numbers, and values of inputs that are no data.
SIZES = {"sequence": 512}
VALUES = {"sr": 16000}


def random_input(argument, random):
    """A value (array) for an input of the session."""
    shape = [d if isinstance(d, int) else SIZES.get(d, 1) for d in argument.shape]
    kind = numpy.dtype(TYPES[argument.type])
    if argument.name in VALUES:
        return numpy.full(shape, VALUES[argument.name], kind)
    if kind.kind == "f":
        return random.standard_normal(shape).astype(kind)
    return random.integers(0, 2 if kind.itemsize > 1 or kind.kind == "b" else 100, shape).astype(
        kind
    )


def session_of(path, profile=False):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if profile:
        options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
        options.enable_profiling = True
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def digest(value):
    """A digest of an output: an array, or a list of arrays."""
    if isinstance(value, list):
        return "/".join(map(digest, value))
    array = numpy.ascontiguousarray(value)
    text = f"{array.dtype}{array.shape}".encode()
    return hashlib.sha256(text + array.tobytes()).hexdigest()[:16]


def execution_order(path):
    """The names of the nodes (list of str) as they are executed."""
    session = session_of(path, profile=True)
    random = numpy.random.default_rng(7)
    session.run(None, {a.name: random_input(a, random) for a in session.get_inputs()})
    suffix = "_kernel_time"
    with open(session.end_profiling()) as file:
        events = [e for e in json.load(file) if e["name"].endswith(suffix)]
    return [e["name"].removesuffix(suffix) for e in sorted(events, key=lambda e: e["ts"])]


def main():
    while sys.argv[1] == "--dim":
        name, _, size = sys.argv[2].partition("=")
        SIZES[name] = int(size)
        del sys.argv[1:3]
    if sys.argv[1] == "--order":
        print(json.dumps(execution_order(sys.argv[2])))
        return
    begin = time.monotonic()
    try:
        session = session_of(sys.argv[1])
        random = numpy.random.default_rng(7)
        outputs = []
        for _ in range(ROUNDS):
            feed = {a.name: random_input(a, random) for a in session.get_inputs()}
            outputs += [digest(value) for value in session.run(None, feed)]
        print(json.dumps({"outputs": outputs, "seconds": time.monotonic() - begin}))
    except Exception as error:  # onnxruntime's own classes have no common public base
        print(json.dumps({"refused": str(error)}))


if __name__ == "__main__":
    main()
