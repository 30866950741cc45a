"""Writes the programs in this directory: what Inductor generates for device cuda, without a device.

Needs torch (a CPU build will do), the triton wheel and g++. Fake tensors stand for the arguments, a
device guard that does nothing for CUDA's, and a record of an H200's properties for the device.
Nothing is run: the wrapper's text is taken where Inductor would compile it.

    python capture.py DIRECTORY
"""

import contextlib
import copy
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import types

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import torch  # noqa: E402
from functorch.compile import min_cut_rematerialization_partition  # noqa: E402
from torch import nn  # noqa: E402
from torch._functorch.aot_autograd import aot_function, make_boxed_func  # noqa: E402
from torch._inductor import config  # noqa: E402
from torch._inductor.decomposition import select_decomp_table  # noqa: E402
from torch._inductor.fx_passes import fuse_attention, misc_patterns, pad_mm  # noqa: E402
from torch._inductor.fx_passes.joint_graph import joint_graph_passes  # noqa: E402
from torch._inductor.graph import GraphLowering  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.passes.fake_tensor_prop import FakeTensorProp  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

GUARD = """#include <c10/core/impl/DeviceGuardImplInterface.h>
static c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> guard;
static int done = (c10::impl::registerDeviceGuard(c10::DeviceType::CUDA, &guard), 0);
"""
PROPERTIES = types.SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    total_memory=139 << 30,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    warp_size=32,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    L2_cache_size=60 << 20,
    gcnArchName="",
)


def register_guard():
    """A device guard for cuda that does nothing, so that fake tensors may live there."""
    home = os.path.dirname(torch.__file__)
    with tempfile.TemporaryDirectory() as d:
        source, library = os.path.join(d, "guard.cpp"), os.path.join(d, "guard.so")
        with open(source, "w") as f:
            f.write(GUARD)
        command = ["g++", "-std=c++20", "-shared", "-fPIC", f"-I{home}/include", source]
        subprocess.run([*command, "-o", library, f"-L{home}/lib", "-lc10"], check=True)
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)


def pretend():
    """Makes torch.cuda answer as if a device were there; nothing may be run on it."""
    from torch._dynamo import device_interface

    answers = {
        "is_available": lambda *a: True,
        "device_count": lambda *a: 1,
        "current_device": lambda *a: 0,
        "is_initialized": lambda *a: True,
        "_lazy_init": lambda *a: None,
        "get_device_properties": lambda *a: PROPERTIES,
        "get_device_capability": lambda *a: (9, 0),
        "get_device_name": lambda *a: PROPERTIES.name,
        "synchronize": lambda *a: None,
        "set_device": lambda *a: None,
        "exchange_device": lambda *a: 0,
        "maybe_exchange_device": lambda *a: 0,
        "_exchange_device": lambda *a: 0,
        "_maybe_exchange_device": lambda *a: 0,
        "memory_allocated": lambda *a: 0,
        "is_bf16_supported": lambda *a, **k: True,
        "get_rng_state": lambda *a: torch.get_rng_state(),
        "set_rng_state": lambda *a: None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
        if hasattr(device_interface.CudaInterface, name):
            setattr(device_interface.CudaInterface, name, staticmethod(answer))

    from torch.utils import _triton

    # The target of triton's driver, and a hash of it; both only end up in kernels' metadata.
    _triton.triton_hash_with_backend = lambda *a: "0" * 64
    import triton
    from triton.backends.compiler import GPUTarget

    target = GPUTarget("cuda", 90, 32)
    triton.runtime.driver.set_active(
        types.SimpleNamespace(
            get_current_target=lambda: target,
            get_current_device=lambda: 0,
            get_device_capability=lambda *a: (9, 0),
        )
    )


class Captured(Exception):
    """Carries the text of a wrapper out of the compiler."""


def stop_at_text(self, wrapper_code):
    raise Captured(wrapper_code.value)


def wrapper_of(graph, inputs, **options):
    """The text that Inductor generates for a graph of aten operators."""
    from torch._inductor.compile_fx import compile_fx_inner

    failure = None
    try:
        with torch.no_grad():
            compile_fx_inner(graph, inputs, **options)
    except Exception as e:
        failure = e
    chain = failure
    while chain is not None and not isinstance(chain, Captured):
        chain = chain.__cause__ or chain.__context__
    if chain is None:
        raise failure or AssertionError("Inductor did not generate a wrapper")
    return chain.args[0]


def on_cuda(graph, inputs):
    """A copy of a graph of aten operators, and its fake inputs, moved from the CPU to cuda.

    Autograd asks a CUDA tensor for its stream, so training is traced on the CPU.
    """
    graph = copy.deepcopy(graph)
    cuda = torch.device("cuda", 0)
    for node in graph.graph.nodes:
        node.args, node.kwargs = pytree.tree_map_only(
            torch.device, lambda d: cuda, (node.args, node.kwargs)
        )
        node.meta.clear()
    graph.recompile()

    def move(t):
        if not isinstance(t, torch.Tensor):
            return t
        return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=cuda)

    moved = [move(t) for t in inputs]
    mode = torch._guards.detect_fake_mode(moved)
    FakeTensorProp(graph, mode).propagate_dont_convert_inputs(*moved)
    return graph, moved


def partition(graph, inputs, **options):
    joint_graph_passes(graph)
    return min_cut_rematerialization_partition(graph, inputs, **options)


def capture(name, function, inputs, train=False, **patches):
    """{NAME_kind: text} of a function of fake tensors: on the CPU if `train`, else on cuda."""
    found = {}

    def compiler(kind):
        def compile(graph, inputs):
            moved, arguments = on_cuda(graph, inputs) if train else (graph, inputs)
            if kind == "inference":
                joint_graph_passes(moved)
            options = {"is_backward": kind == "backward", "is_inference": kind == "inference"}
            context = torch._guards.TracingContext.get()
            context.aot_graph_name = [f"0_{kind}"]
            found[f"{name}_{kind}"] = tidy(wrapper_of(moved, arguments, **options))
            return make_boxed_func(graph.forward)

        return compile

    options = {"compile_threads": 1, "force_disable_caches": True, **patches}
    mode = torch._guards.detect_fake_mode(inputs)
    tracing = torch._guards.tracing(torch._guards.TracingContext(mode))
    with config.patch(options), tracing, V.set_fake_mode(mode):
        compiled = aot_function(
            function,
            fw_compiler=compiler("forward"),
            bw_compiler=compiler("backward"),
            inference_compiler=compiler("inference"),
            partition_fn=partition,
            decompositions=select_decomp_table(),
        )
        with contextlib.nullcontext() if train else torch.no_grad():
            out = compiled(*inputs)
        if train:
            out.sum().backward()
    return found


def tidy(text):
    """Without the names of temporary files."""
    return re.sub(r"^# (kernel path|Original path): .*\n", "", text, flags=re.M)


def module(make, *inputs, train=False):
    """(function, inputs) of a module: a function of its inputs, parameters and buffers."""
    with torch.device("cpu" if train else "cuda"):
        m = make()
        tensors = [t() for t in inputs]
    m.train(train)
    state = {**dict(m.named_parameters()), **dict(m.named_buffers())}

    def function(*arguments):
        given, rest = arguments[: len(tensors)], arguments[len(tensors) :]
        return torch.func.functional_call(m, dict(zip(state, rest)), given)

    return function, [*tensors, *state.values()]


class Cells(nn.Module):
    """An LSTM cell over a few steps."""

    def __init__(self, width=64, steps=4):
        super().__init__()
        self.cell, self.steps = nn.LSTMCell(width, width), steps

    def forward(self, x):
        h = c = torch.zeros_like(x[0])
        for t in range(self.steps):
            h, c = self.cell(x[t], (h, c))
        return h


def concat(x):
    """A buffer whose parts are written through views by extern kernels and triton kernels."""
    parts = [x @ x.t(), torch.relu(x), x.sum(0, keepdim=True).expand(64, 64) * 2, (x @ x) @ x]
    return torch.cat(parts, 1).sort(dim=1).values


class Words(nn.Module):
    """The gradient of an embedding is accumulated with atomics."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(1000, 32)
        self.out = nn.Linear(32, 8)

    def forward(self, words):
        return self.out(nn.functional.dropout(self.table(words), 0.5, True))


def attention(q, k, v, w):
    y = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v)[0]
    return y.transpose(1, 2).reshape(2, 128, 256) @ w


def in_place(x, index, values, state):
    """index_put_ and an argument that is updated."""
    y = x.clone().index_put_((index,), values, accumulate=True)
    state.add_(y.sum())
    return y.cumsum(0)


def from_cpu(x, y):
    """One argument comes from the CPU: a copy between devices."""
    return torch.relu(x) @ y.to("cuda").exp()


def scan(x):
    for _ in range(2):
        x = torch.softmax(x, -1) @ x
    return x, x.var(1), x.argmax(1)


def square():
    """An operator that launches a user's own triton kernel."""
    import triton
    import triton.language as tl

    globals()["tl"] = tl

    @triton.jit
    def square_kernel(source, target, count, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(source + at, at < count)
        tl.store(target + at, value * value, at < count)

    @torch.library.triton_op("peakproof_capture::square", mutates_args={})
    def op(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        launch = torch.library.wrap_triton(square_kernel)
        launch[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

    return lambda x: op(x @ x) + 1


def programs():
    def cuda(*shape, dtype=torch.float32):
        return torch.empty(shape, device="cuda", dtype=dtype)

    from inception import network
    from small import Branches, convolutional

    def branches():
        return Branches(thin=64)

    yield "branches", *module(branches, lambda: torch.randn(256, 64)), {}
    train = {"train": True}
    yield "branches_train", *module(branches, lambda: torch.randn(256, 64), **train), train
    yield "conv", *module(convolutional, lambda: torch.randn(2, 3, 32, 32), **train), train
    yield "cells", *module(Cells, lambda: torch.randn(4, 32, 64), **train), train
    yield "inception", *module(network, lambda: torch.randn(1, 3, 96, 96)), {}
    yield "concat", concat, [cuda(64, 64)], {}
    words = module(Words, lambda: torch.zeros(16, 20, dtype=torch.int64), **train)
    yield "words", *words, train
    heads = [cuda(2, 4, 128, 64, dtype=torch.float16) for _ in range(3)]
    yield "attention", attention, [*heads, cuda(256, 64, dtype=torch.float16)], {}
    index = cuda(32, dtype=torch.int64)
    yield "in_place", in_place, [cuda(64, 16), index, cuda(32, 16), cuda()], {}
    yield "from_cpu", from_cpu, [cuda(32, 64), torch.empty(64, 16)], {}
    partitions = {"graph_partition": True, "triton.cudagraphs": True}
    yield "partitions", from_cpu, [cuda(32, 64), torch.empty(64, 16)], partitions
    yield "user_kernel", square(), [cuda(128, 128)], {}
    yield "scan", scan, [cuda(128, 128)], {}


def main():
    directory = sys.argv[1]
    root = os.path.join(os.path.dirname(__file__), "..", "..", "..")
    sys.path[:0] = [os.path.join(root, "examples"), os.path.join(root, "tests", "python")]
    # Patterns for cuda would be traced on a device.
    for name in ("_pad_mm_init", "_sfdp_init", "_misc_patterns_init"):
        for owner in (pad_mm, fuse_attention, misc_patterns):
            if hasattr(owner, name):
                setattr(owner, name, lambda *a: None)
    register_guard()
    pretend()
    GraphLowering._compile_to_module_lines = stop_at_text
    with FakeTensorMode():
        for name, function, inputs, options in programs():
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            for file, text in capture(name, function, inputs, **options).items():
                with open(os.path.join(directory, file + ".py.txt"), "w") as f:
                    f.write(text)


if __name__ == "__main__":
    main()
