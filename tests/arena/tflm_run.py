"""Runs one .tflite model with tflite-micro and prints what it does as JSON.

Usage: tflm_run.py MODEL SEED RUNS

Prints {"head": N, "outputs": [[SHA-256 of every output], ...]}: the bytes of the planned part of
the arena, and the outputs of RUNS invocations on inputs from a generator seeded with SEED. A crash
of the interpreter ends this process alone, which is why it is one.
"""

import hashlib
import json
import os
import re
import sys
import tempfile

import numpy as np
from tflite_micro import runtime


def captured(function):
    """Returns what function() prints on the C level (str): the interpreter logs to stderr."""
    with tempfile.TemporaryFile() as file:
        saved = [os.dup(1), os.dup(2)]
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            function()
        finally:
            for fd, old in zip((1, 2), saved):
                os.dup2(old, fd)
                os.close(old)
        file.seek(0)
        return file.read().decode(errors="replace")


def random_input(details, generator):
    """Returns an array of the input's shape and type; integers stay small enough to be indices."""
    shape, dtype = details["shape"], np.dtype(details["dtype"])
    if dtype.kind == "f":
        return generator.uniform(-1, 1, shape).astype(dtype)
    if dtype == np.int8:
        return generator.integers(-128, 128, shape).astype(dtype)
    if dtype == np.uint8:
        return generator.integers(0, 256, shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def count(function):
    """Returns how many indices function (of an index) accepts."""
    n = 0
    try:
        while n < 64:
            function(n)
            n += 1
    except (IndexError, ValueError, RuntimeError):
        pass
    return n


def main():
    """Prints the JSON; exits with 3 if the runtime refuses the model, with its log on stderr."""
    path, seed, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    generator = np.random.default_rng(seed)
    try:
        interpreter = runtime.Interpreter.from_file(path, arena_size=1 << 28)
    except Exception as error:
        print(error, file=sys.stderr)
        return 3
    log = captured(interpreter.print_allocations)
    head = re.search(r"head (\d+) bytes", log)
    inputs = count(interpreter.get_input_details)
    outputs = count(interpreter.get_output_details)
    digests = []
    for _ in range(runs):
        for i in range(inputs):
            interpreter.set_input(random_input(interpreter.get_input_details(i), generator), i)
        interpreter.invoke()
        digests.append(
            [
                hashlib.sha256(
                    np.ascontiguousarray(interpreter.get_output(i)).tobytes()
                ).hexdigest()
                for i in range(outputs)
            ]
        )
    print(json.dumps({"head": int(head.group(1)) if head else -1, "outputs": digests}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
