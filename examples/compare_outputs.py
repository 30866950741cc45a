"""compare_outputs.py A.tflite B.tflite - runs both in LiteRT on the same random inputs.

Prints whether every output is bitwise equal; exits with 1 if not. Inputs: 5 sets, seeds 0 to 4,
drawn over the whole range of integer types and from the normal distribution for floats.
"""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def random_inputs(details, seed):
    """Returns one array for each input, of its shape and type."""
    rng = np.random.default_rng(seed)
    arrays = []
    for detail in details:
        kind, shape = np.dtype(detail["dtype"]), detail["shape"]
        if kind.kind == "f":
            arrays.append(rng.standard_normal(shape).astype(kind))
        elif kind.kind == "b":
            arrays.append(rng.integers(0, 2, shape).astype(kind))
        else:
            low, high = np.iinfo(kind).min, np.iinfo(kind).max
            arrays.append(rng.integers(low, high, shape, dtype=kind, endpoint=True))
    return arrays


def outputs(path, seed):
    """Returns the outputs of one run, as bytes."""
    # Without delegates the runtime executes the operators one by one, in the file's order.
    kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_path=path, num_threads=1, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    for detail, array in zip(details, random_inputs(details, seed), strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]).tobytes() for d in interpreter.get_output_details()]


def main():
    first, second = sys.argv[1:]
    for seed in range(5):
        a, b = outputs(first, seed), outputs(second, seed)
        if a != b:
            print(f"seed {seed}: outputs differ")
            return 1
    print(f"{len(a)} outputs, 5 sets of inputs: bitwise equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
