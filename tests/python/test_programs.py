"""Random programs in the form that Inductor writes, run by the whole pipeline on real torch.

No kernel has to be compiled: the statements are ATen operators. Whatever the program, what is
installed has the same bits and exactly the modelled peak.
"""

import random
import types

import hypothesis
import hypothesis.strategies as st
import peakproof
import pytest
import torch
from peakproof.pipeline import Optimizer, Options

SHAPES = [(8, 8), (32, 8), (16, 16), (64, 4)]
HEAD = """# AOT ID: ['0_forward']
import torch
from torch._inductor.select_algorithm import extern_kernels
aten = torch.ops.aten
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor
"""


class Writer:
    """Writes a random program: operators, reuses, views, concatenations, tuples, updates."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines = []
        self.live = {}  # name -> shape
        self.count = 0
        self.freed_late = self.rng.random() < 0.3

    def name(self):
        self.count += 1
        return f"buf{self.count - 1}"

    def pick(self, shape=None):
        names = [n for n, s in self.live.items() if shape is None or s == shape]
        return self.rng.choice(names) if names else None

    def emit(self, line):
        self.lines.append(line)

    @staticmethod
    def like(shape):
        return f"{shape}, ({shape[1]}, 1), torch.float32"

    def allocate(self, shape):
        n = self.name()
        self.emit(f"{n} = empty_strided_cpu({self.like(shape)})")
        return n

    def step(self):
        a = self.pick()
        shape = self.live[a]
        b = self.pick(shape)
        what = self.rng.choice(
            ["out", "new", "reuse", "inplace", "cat", "mm", "tuple", "view", "free", "list"]
        )
        if what == "out":
            n = self.allocate(shape)
            self.emit(f"aten.add.out({a}, {b}, alpha=2, out={n})")
        elif what == "new":
            n = self.name()
            self.emit(f"{n} = torch.ops.aten.cumsum.default({a}, 1)")
        elif what == "reuse" and a.startswith("buf"):
            n = self.name()
            self.emit(f"{n} = {a}; del {a}  # reuse")
            del self.live[a]
            b = self.pick(shape) or n
            self.emit(f"aten.sin.out({b}, out={n})")
        elif what == "inplace":
            self.emit(f"aten.mul_.Tensor({a}, {b})")
            return
        elif what == "mm":
            n = self.allocate((shape[0], shape[0]))
            transposed = f"reinterpret_tensor({b}, ({shape[1]}, {shape[0]}), (1, {shape[1]}), 0)"
            self.emit(f"extern_kernels.mm({a}, {transposed}, out={n})")
            shape = (shape[0], shape[0])
        elif what == "cat":
            whole = (2 * shape[0], shape[1])
            n = self.allocate(whole)
            for k, source in ((1, a), (0, b)):
                part = self.name()
                offset = k * shape[0] * shape[1]
                self.emit(
                    f"{part} = reinterpret_tensor({n}, {shape}, ({shape[1]}, 1), {offset})  # alias"
                )
                self.emit(f"aten.cos.out({source}, out={part})")
                self.emit(f"del {part}")
            shape = whole
        elif what == "tuple":
            t, n, m = self.name(), self.name(), self.name()
            self.emit(f"{t} = torch.ops.aten.sort.default({a}, 1)")
            self.emit(f"{n} = {t}[0]")
            self.emit(f"assert_size_stride({n}, {shape}, ({shape[1]}, 1), 'a (part) [')")
            if self.rng.random() < 0.5:
                self.emit(f"{m} = {t}[1]")
                self.emit(f"del {t}")
                self.emit(f"del {m}")
            else:
                self.emit(f"del {t}")
        elif what == "list":
            n = self.name()
            self.emit(f"{n} = torch.ops.aten.cat.default([{a}, {b}], 1)")
            shape = (shape[0], 2 * shape[1])
        elif what == "view":
            n = self.name()
            self.emit(f"{n} = reinterpret_tensor({a}, {shape}, ({shape[1]}, 1), 0)  # alias")
        else:
            if a.startswith("buf") and len(self.live) > 3 and not self.freed_late:
                self.emit(f"del {a}")
                del self.live[a]
            return
        self.live[n] = shape

    def write(self, steps, method):
        arguments = [f"arg{i}_1" for i in range(3)]
        for n, shape in zip(arguments, SHAPES):
            self.live[n] = shape
        for _ in range(steps):
            self.step()
        out = [n for n in self.live if n.startswith("buf")][-2:]
        indent = "        " if method else "    "
        lines = [", ".join(arguments) + ", = args", "args.clear()"] + self.lines
        lines.append(f"return ({''.join(n + ', ' for n in out)})")
        head = "class Runner:\n    def call(self, args):\n" if method else "def call(args):\n"
        tail = "call = Runner().call\n" if method else ""
        return HEAD + head + "".join(indent + line + "\n" for line in lines) + tail


def optimize(text, args, **options):
    """Runs the pipeline on a source text; returns the Result and the stock callable."""
    module = types.ModuleType("generated")
    exec(compile(text, "<generated>", "exec"), module.__dict__)
    optimizer = Optimizer("p", text, module.__dict__, module.call, Options(**options))
    return optimizer.run(args), module.call


def arguments(seed, values=1.0):
    g = torch.Generator().manual_seed(seed)
    return [torch.rand(s, generator=g) * values for s in SHAPES[:3]]


@pytest.mark.parametrize("seed", range(120))
def test_random_programs(seed):
    text = Writer(seed).write(4 + seed % 30, seed % 2 == 0)
    args = arguments(seed)
    held = list(args) if seed % 3 else None  # every third: the program may free its arguments
    before = [t.clone() for t in args]
    state = torch.get_rng_state()
    result, stock = optimize(text, args)
    report = result.report
    assert report.state in ("installed", "kept"), f"{report.reason}\n{text}"
    assert report.peak_measured == report.peak and report.bitwise == "yes"
    assert report.stock_peak_measured == report.stock_peak_modelled
    assert report.optimal and report.lower_bound == report.peak
    # The caller's arguments and random numbers are as they were.
    assert all(torch.equal(a, b) for a, b in zip(args, before))
    assert torch.equal(state, torch.get_rng_state())
    if result.function is not None:
        expected = stock([t.clone() for t in before])
        found = result.function([t.clone() for t in before])
        assert all(torch.equal(a, b) for a, b in zip(expected, found))
    del held


@pytest.mark.parametrize("seed", range(40))
def test_split_reuse(seed):
    """Splitting never raises the peak, and the bits stay."""
    text = Writer(seed + 1000).write(24, True)
    plain, _ = optimize(text, arguments(seed))
    split, _ = optimize(text, arguments(seed), split_reuse=True)
    assert split.report.state in ("installed", "kept"), split.report.reason
    assert split.report.peak <= plain.report.peak
    if split.report.splits:
        assert split.report.peak < split.report.peak_without_splits == plain.report.peak


def test_nan_payloads_and_signed_zeros():
    text = HEAD + (
        "def call(args):\n    a, = args\n    args.clear()\n"
        "    buf0 = torch.ops.aten.neg.default(a)\n    return (buf0, )\n"
    )
    bits = torch.tensor([0x7FC00001, 0x7FA12345, -0x80000000, 0], dtype=torch.int32)
    result, _ = optimize(text, [bits.view(torch.float32)])
    assert result.report.bitwise == "yes"
    from peakproof.verify import digest

    zeros = torch.tensor([0.0]), torch.tensor([-0.0])
    assert digest(zeros[0]) != digest(zeros[1])
    nans = [
        torch.tensor([v], dtype=torch.int32).view(torch.float32) for v in (0x7FC00000, 0x7FC00001)
    ]
    assert digest(nans[0]) != digest(nans[1])


def body(*lines, arguments="a, b"):
    text = HEAD + f"def call(args):\n    {arguments} = args\n    args.clear()\n"
    return text + "".join(f"    {line}\n" for line in lines)


A = "empty_strided_cpu((16, 16), (16, 1), torch.float32)"


def two(seed=0):
    g = torch.Generator().manual_seed(seed)
    return [torch.rand(16, 16, generator=g), torch.rand(16, 16, generator=g)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64, torch.int8, torch.bool])
@pytest.mark.parametrize("shape", [(5, 7), (), (0, 3)])
@pytest.mark.parametrize("inference", [True, False])
def test_types_and_shapes(dtype, shape, inference):
    text = HEAD + (
        "def call(args):\n    a, b = args\n    args.clear()\n"
        "    buf0 = torch.ops.aten.clone.default(a)\n"
        "    buf1 = torch.ops.aten.eq.Tensor(a, b)\n"
        "    return (buf0, b, buf1, )\n"
    )
    with torch.inference_mode(inference):
        args = [torch.ones(shape).to(dtype), torch.ones(shape).to(dtype)]
        result, _ = optimize(text, args)
    assert result.report.state in ("kept", "installed"), result.report.reason
    assert result.report.bitwise == "yes"


@hypothesis.given(
    sizes=st.lists(st.integers(1, 4), max_size=4),
    strides=st.lists(st.integers(0, 20), min_size=4, max_size=4),
    offset=st.integers(0, 9),
)
@hypothesis.settings(
    deadline=None,
    max_examples=300,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
def test_pieces(sizes, strides, offset):
    """Ranges hold every byte of a strided tensor, and no other unless they are too many."""
    from peakproof import profile

    x = torch.as_strided(torch.empty(400, dtype=torch.int16), sizes, strides[: len(sizes)], offset)
    own = {offset}
    for n, s in zip(sizes, strides):
        own = {o + s * k for o in own for k in range(n)}
    expected = {2 * o + b for o in own for b in (0, 1)}
    ranges = profile.pieces(x)
    found = {b for low, high in ranges for b in range(low, high)}
    assert expected <= found
    assert expected == found or len(ranges) == 1


def test_random_numbers_keep_their_order():
    text = body(
        f"buf0 = {A}",
        "aten.randint.low_out(0, 1000, [16, 16], out=buf0)",
        f"buf1 = {A}",
        "aten.randint.low_out(0, 1000, [16, 16], out=buf1)",
        "buf2 = torch.ops.aten.sum.default(buf1)",
        "del buf1",
        "buf3 = torch.ops.aten.sum.default(buf0)",
        "del buf0",
        "return (buf2, buf3, )",
    )
    result, stock = optimize(text, two())
    assert result.report.state in ("kept", "installed") and result.report.bitwise == "yes"
    assert [0, 1] in result.model.program["order"]


def test_argument_updates_in_place():
    text = body(
        "buf0 = torch.ops.aten.sum.default(a)",
        "aten.mul_.Tensor(a, b)",
        "buf1 = torch.ops.aten.sum.default(a)",
        "b.copy_(a)",
        "return (buf0, buf1, )",
    )
    args = two()
    before = [t.clone() for t in args]
    held = list(args)
    result, _ = optimize(text, args)
    assert result.report.bitwise == "yes", result.report.reason
    assert all(torch.equal(x, y) for x, y in zip(held, before))


def test_unheld_arguments_are_freed():
    """A backward's saved activations: their bytes count, and an order can use their end."""
    text = body(
        f"buf0 = {A}",
        "aten.add.out(a, a, alpha=1, out=buf0)",
        "buf1 = torch.ops.aten.cat.default([buf0, buf0, buf0, buf0])",
        "buf2 = torch.ops.aten.sum.default(b)",
        "del a, b",
        "return (buf1, buf2, )",
    )
    result, _ = optimize(text, two())
    r = result.report
    assert r.state == "installed" and r.held_bytes == 0
    assert r.stock_peak_measured - r.peak_measured > 1000
    args = two()
    held = list(args)
    result, _ = optimize(text, args)
    assert result.report.held_bytes == 2048
    del held


def test_shared_storage_among_arguments():
    x = torch.rand(16, 16)
    args = [x[:8], x[4:12].t()]
    text = body(
        "aten.mul_.Scalar(a, 2.0)", "buf0 = torch.ops.aten.clone.default(b)", "return (buf0, )"
    )
    result, stock = optimize(text, args)
    assert result.report.bitwise == "yes"
    assert result.model.program["statements"][1]["reads"] == [0]


def test_rebinding():
    """`a = copy_if_misaligned(a)`: the name has two values, its users keep their sides."""
    text = body(
        "buf0 = torch.ops.aten.sum.default(a)",
        "a = copy_if_misaligned(a)",
        "buf1 = torch.ops.aten.cat.default([a, a, b])",
        "del a",
        "buf2 = torch.ops.aten.sum.default(buf1)",
        "del buf1",
        "return (buf0, buf2, )",
    ).replace("aten =", "from torch._C._dynamo.guards import copy_if_misaligned\naten =")
    storage = torch.rand(257)
    args = [storage[1:].view(16, 16), two()[1]]  # not aligned: it is copied
    result, _ = optimize(text, args)
    assert result.report.bitwise == "yes", result.report.reason
    lines = result.permuted_text.split("\n")
    again = lines.index("    a = copy_if_misaligned(a)")
    assert lines.index("    buf0 = torch.ops.aten.sum.default(a)") < again
    assert "    del a" not in lines[:again]


def test_exception_in_the_middle():
    text = body(
        "aten.mul_.Tensor(a, b)",
        "buf0 = torch.ops.aten.inverse.default(reinterpret_tensor(a, (8, 16), (16, 1), 0))",
        "return (buf0, )",
    )
    args = two()
    before, held = [t.clone() for t in args], list(args)
    state = torch.get_rng_state()
    result, stock = optimize(text, args)
    assert result.report.state == "refused" and result.function is None
    assert all(torch.equal(x, y) for x, y in zip(held, before))
    assert torch.equal(state, torch.get_rng_state())
    import gc

    assert gc.isenabled()
    with pytest.raises(RuntimeError):
        stock(args)


@pytest.mark.parametrize(
    "lines, says",
    [
        (["buf0 = aten.foo(a)"], "unknown function"),
        (["buf0 = extern_kernels.mystery(a)"], "unknown extern kernel"),
        (["buf0 = torch.ops.aten.clone.default(a)", "aten.resize_.default(buf0, [99, 99])"], ""),
        (["buf0 = torch.sum(a)"], "effects are not known"),
        (["buf0 = torch.ops._c10d_functional.wait_tensor.default(a)"], "collective"),
        (["buf0 = torch.ops.aten.item.default(a)"], ""),
        (["buf0 = torch.ops.aten.unbind.int(a)", "buf1 = buf0[0]", "del buf0"], ""),
        (["buf0 = torch.ops.aten.nonzero.default(b)"], ""),
    ],
)
def test_refused_or_right(lines, says):
    result, _ = optimize(body(*lines, "return (a, )"), two())
    report = result.report
    if says:
        assert report.state == "refused" and says in report.reason
        assert report.line == HEAD.count("\n") + 4 and f"line {report.line}: " in report.reason
    else:
        assert report.state == "refused" or report.bitwise == "yes"


def test_history_is_noticed():
    """An operator that keeps memory from call to call has no model."""
    kept = []

    @torch.library.custom_op("pptest::hoard", mutates_args=())
    def hoard(x: torch.Tensor) -> torch.Tensor:
        kept.append(torch.empty(1000 * (len(kept) + 1)))
        return x.clone()

    text = body("buf0 = torch.ops.pptest.hoard.default(a)", "return (buf0, )")
    result, _ = optimize(text, two())
    assert result.report.state == "refused" and "no name shows" in result.report.reason
    assert result.report.line == HEAD.count("\n") + 4


def lying(namespace):
    """Defines torch.ops.NAMESPACE.liar, which writes what its schema says it reads; returns the
    library: the operator is there as long as that is held."""

    def liar(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x.sum()

    library = torch.library.Library(namespace, "DEF")
    library.define("liar(Tensor x) -> Tensor")
    library.impl("liar", liar, "CPU")
    return library


def test_wrong_schema_is_caught():
    library = lying("pptest2")  # noqa: F841
    text = body(
        "buf0 = torch.ops.aten.clone.default(a)",
        "buf1 = torch.ops.pptest2.liar.default(buf0)",
        "buf2 = torch.ops.aten.sum.default(buf0)",
        "return (buf1, buf2, )",
    )
    args = two()
    result, _ = optimize(text, args)
    assert result.report.state == "refused" and "schema does not name" in result.report.reason
    assert result.report.line == HEAD.count("\n") + 5


def test_verification_catches_a_wrong_model(monkeypatch):
    """With the watch off, a lying schema is still caught, bit by bit, when the order exposes it."""
    from peakproof import effects

    monkeypatch.setattr(effects, "TRUSTED", effects.TRUSTED | {"pptest3"})
    library = lying("pptest3")  # noqa: F841
    # Lowest peak: read the big block for the first time last. The lie makes that order differ.
    text = body(
        "buf0 = torch.ops.aten.repeat.default(a, [64, 1])",
        "buf1 = torch.ops.aten.sum.default(buf0)",
        "buf2 = torch.ops.aten.repeat.default(b, [64, 1])",
        "buf3 = torch.ops.pptest3.liar.default(b)",
        "buf4 = torch.ops.aten.sum.default(buf2)",
        "del buf2",
        "buf5 = torch.ops.aten.mul.Tensor(buf0, 2.0)",
        "del buf0",
        "buf6 = torch.ops.aten.sum.default(buf5)",
        "del buf5",
        "buf7 = torch.ops.aten.sum.default(b)",
        "return (buf1, buf3, buf4, buf6, buf7, )",
    )
    args = two()
    before, held = [t.clone() for t in args], list(args)
    result, _ = optimize(text, args)
    assert all(torch.equal(x, y) for x, y in zip(held, before))
    r = result.report
    order = [result.model.nodes.index(i) for i in result.order]
    moved = (order.index(3) < order.index(2)) or (order.index(7 - 1) < order.index(3))
    assert (r.state == "refused" and "differ" in r.reason) if moved else r.bitwise == "yes"


def test_plan_agrees_with_the_pipeline():
    text = Writer(7).write(30, False)
    result, _ = optimize(text, arguments(7))
    plan = peakproof.plan(result.model.program)
    assert plan["peak_after"] == result.report.peak
    assert plan["programs"][0]["certificate"].encode() == result.certificate
