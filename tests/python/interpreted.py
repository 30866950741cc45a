"""Runs captured CUDA programs with their real triton kernels, in triton's interpreter on the CPU.

    python interpreted.py NAME ...       names of tests/data/inductor-cuda; a line for each

Stock runs twice, then the planned order and two random legal ones; all must give the same bits, and
where EAGER knows what the program computes, the right numbers. Needs triton 3.7. Kernels that call
libdevice (tanh, rsqrt) cannot be interpreted: such programs are skipped with a word.
"""

import importlib.util
import os
import sys
import tempfile
import types

os.environ["TRITON_INTERPRET"] = "1"

import fake_cuda  # noqa: E402
import torch  # noqa: E402
import triton  # noqa: E402
from peakproof import model as models  # noqa: E402
from peakproof import static  # noqa: E402
from peakproof.pipeline import compile_call  # noqa: E402
from peakproof.realize import realize  # noqa: E402
from test_gpu_device import legal_order, outcome, read  # noqa: E402
from torch._inductor.runtime import triton_helpers, triton_heuristics  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.runtime.errors import InterpreterError  # noqa: E402


def branches(x, *p):
    w1, b1, w2, b2, w3, b3, v1, c1, v2, c2, v3, c3 = p
    pairs = ((w1, b1, v1, c1), (w2, b2, v2, c2), (w3, b3, v3, c3))
    return [sum(torch.relu(torch.relu(x @ w.t() + b) @ v.t() + c) for w, b, v, c in pairs)]


def in_place(x, index, values, state):
    y = x.clone().index_put_((index,), values, accumulate=True)
    return [state + y.sum(), y.cumsum(0)]


EAGER = {
    "branches_inference": branches,
    "user_kernel_inference": lambda x: [(x @ x) ** 2 + 1],
    "in_place_inference": in_place,
}


class Launch:
    """What a heuristic's decorator leaves: the kernel and how to launch it."""

    def __init__(self, kernel, heuristic, options):
        self.kernel, self.heuristic, self.options = kernel, heuristic, options


def heuristic(name):
    return lambda *args, **options: lambda kernel: Launch(kernel, name, options)


class Kernel:
    """In the place of fake_cuda.Kernel: interprets, with blocks of its own choice."""

    def __init__(self, name, source, device):
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as f:
            f.write(source)
        spec = importlib.util.spec_from_file_location(name, f.name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        os.unlink(f.name)
        self.launch = next(v for v in vars(module).values() if isinstance(v, Launch))

    def run(self, *args, stream):
        kernel = self.launch.kernel
        if self.launch.heuristic == "user_autotune":
            constants = self.launch.options["triton_meta"]["constants"]
            kernel[args[-3:]](*args[:-3], **constants)
            return
        size = dict(zip(kernel.arg_names, args))
        x, y = size.get("xnumel", 1), size.get("ynumel", 1)
        widest = 1024 if self.launch.heuristic == "pointwise" else 8
        blocks = {"XBLOCK": min(widest, triton.next_power_of_2(x)), "YBLOCK": 16, "R0_BLOCK": 64}
        grid = (-(-x // blocks["XBLOCK"]), -(-y // blocks["YBLOCK"]), 1)
        kernel[grid](*args, **{k: v for k, v in blocks.items() if k in kernel.arg_names})


class Patch:
    """As pytest's monkeypatch, for good."""

    @staticmethod
    def setattr(owner, name, value):
        setattr(owner, name, value)


def prepare():
    target = GPUTarget("cuda", 90, 32)
    driver = types.SimpleNamespace(
        get_current_target=lambda: target,
        get_current_device=lambda: 0,
        get_active_torch_device=lambda: torch.device("cpu"),
    )
    triton.runtime.driver.set_active(driver)
    triton_helpers.set_driver_to_gpu = lambda: None
    for name in ("pointwise", "reduction", "persistent_reduction", "user_autotune"):
        setattr(triton_heuristics, name, heuristic(name))
    fake_cuda.Kernel = Kernel
    fake_cuda.Device().install(Patch)


def check(name):
    """How often the program ran, all bits the same. Raises AssertionError."""
    text = read(name)
    namespace, call = fake_cuda.program(text, None)
    expected = outcome(call, text)
    assert outcome(call, text) == expected, "stock differs from itself"
    if name in EAGER:
        args = fake_cuda.tensors(text)
        for found, right in zip(call(list(args)), EAGER[name](*args)):
            torch.testing.assert_close(found, right)
    planned = static.plan(text, name)
    program = planned.model.program
    orders = [planned.plan["order"], *(legal_order(program, seed) for seed in range(2))]
    for order in orders:
        changed = realize(planned.source, models.statement_order(planned.model, order))
        owner = getattr(call, "__self__", None)
        found = outcome(compile_call(changed, namespace, owner, "<changed>"), text)
        assert found == expected, f"other bits in the order {order}"
    return 2 + len(orders)


def main():
    prepare()
    for name in sys.argv[1:]:
        try:
            right = " and right" if name in EAGER else ""
            print(f"{name}: {check(name)} runs, bitwise equal{right}", flush=True)
        except (InterpreterError, TypeError) as e:
            print(f"{name}: cannot be interpreted: {e}", flush=True)


if __name__ == "__main__":
    main()
