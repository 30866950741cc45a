"""runtime.py RUNTIME MODEL... - executes .tflite models, prints a line of JSON for each.

RUNTIME is litert (its operators as the file orders them), xnnpack (LiteRT with its default
delegate), or tflm (tflite-micro). Three rounds of random valid inputs, always the same. Prints
{"outputs": [digest, ...], "seconds": s} or {"refused": "why"}. A process of its own, because
runtimes abort on what they do not like.
"""

import hashlib
import json
import sys
import time

import numpy

ROUNDS = 3
SLOW = ("mlpm_edsr", "mp_knift", "pinto_unet")  # seconds to minutes a round: one is enough
ARENA = 1 << 28  # bytes; TFLM's default, ten times the file, is too small for some


def rounds(path):
    """How often a model is executed; copies carry its name in their folder's."""
    return 1 if any(name in path for name in SLOW) else ROUNDS


def random_input(detail, random):
    """A valid input (array) for a tensor as get_input_details describes it. Wide integers may be
    indices: 0 or 1."""
    kind = numpy.dtype(detail["dtype"])
    shape = detail["shape"]
    if kind.kind == "f":
        return random.standard_normal(shape).astype(kind)
    if kind.kind == "b" or kind.itemsize > 2:
        return random.integers(0, 2, shape).astype(kind)
    limits = numpy.iinfo(kind)
    return random.integers(limits.min, limits.max + 1, shape).astype(kind)


def run_litert(path, delegate):
    """Yields the outputs (arrays), of all signatures or of the model."""
    from ai_edge_litert import interpreter as litert

    resolver = litert.OpResolverType
    interpreter = litert.Interpreter(
        model_path=path,
        num_threads=1,
        experimental_op_resolver_type=resolver.AUTO
        if delegate
        else resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    random = numpy.random.default_rng(7)
    runners = [interpreter.get_signature_runner(key) for key in interpreter.get_signature_list()]
    for _ in range(rounds(path)):
        for runner in runners:
            details = sorted(runner.get_input_details().items())
            outputs = runner(**{name: random_input(detail, random) for name, detail in details})
            for _, value in sorted(outputs.items()):
                yield value
        if not runners:
            for detail in interpreter.get_input_details():
                interpreter.set_tensor(detail["index"], random_input(detail, random))
            interpreter.invoke()
            for detail in interpreter.get_output_details():
                yield interpreter.get_tensor(detail["index"])


def count_ends(path):
    """(inputs, outputs) of the first subgraph; tflite-micro crashes when asked for more."""
    from ai_edge_litert import schema_py_generated as schema

    with open(path, "rb") as file:
        subgraph = schema.Model.GetRootAs(file.read(), 0).Subgraphs(0)
    return subgraph.InputsLength(), subgraph.OutputsLength()


def run_tflm(path):
    """Yields the outputs (arrays)."""
    import tflite_micro

    inputs, outputs = count_ends(path)
    interpreter = tflite_micro.runtime.Interpreter.from_file(path, arena_size=ARENA)
    random = numpy.random.default_rng(7)
    for _ in range(rounds(path)):
        for i in range(inputs):
            interpreter.set_input(random_input(interpreter.get_input_details(i), random), i)
        interpreter.invoke()
        for i in range(outputs):
            yield interpreter.get_output(i)


def execute(runtime, path):
    """The line of a model (dict)."""
    begin = time.monotonic()
    try:
        results = run_tflm(path) if runtime == "tflm" else run_litert(path, runtime == "xnnpack")
        outputs = [hashlib.sha256(numpy.asarray(r).tobytes()).hexdigest()[:16] for r in results]
        return {"outputs": outputs, "seconds": time.monotonic() - begin}
    except (RuntimeError, ValueError) as error:
        return {"refused": str(error)}


if __name__ == "__main__":
    for model in sys.argv[2:]:
        print(json.dumps(execute(sys.argv[1], model)), flush=True)
