"""Recomputation of real compiled programs: values made again behind a certified optimum."""

import json
import logging

import peakproof
import pytest
import torch
from peakproof import core, meter, profile, remat
from peakproof.errors import Refusal
from peakproof.pipeline import Options
from peakproof.split import split
from test_programs import Writer, arguments, body, optimize
from torch import nn

if not meter.preloaded():
    pytest.skip("memtrace is not preloaded", allow_module_level=True)


class ReDimNetLike(nn.Module):
    """The shape of ReDimNet's problem: the stem's output is small work, large, and read again at
    the very end, over a wide middle. `late`: how it is read there."""

    def __init__(self, late, channels=16, wide=96):
        super().__init__()
        self.late = late
        self.stem = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()
        )
        self.down = nn.Sequential(nn.Conv2d(channels, 4, 3, stride=2, padding=1), nn.ReLU())
        body = [nn.Conv2d(4, wide, 3, padding=1), nn.ReLU()]
        for _ in range(2):
            body += [nn.Conv2d(wide, wide, 3, padding=1), nn.ReLU()]
        self.body = nn.Sequential(*body)
        self.out = nn.Conv2d(wide, channels, 1)
        self.weight = nn.Parameter(torch.randn(2))
        self.last = nn.Conv2d(2 * channels if late == "concatenated" else channels, 4, 1)

    def forward(self, x):
        stem = self.stem(x)
        y = nn.functional.interpolate(self.out(self.body(self.down(stem))), scale_factor=2)
        if self.late == "concatenated":
            return self.last(torch.cat([stem, y], 1))
        w = self.weight.softmax(0)
        return self.last(w[0] * stem + w[1] * y)


def compiled(model, *inputs, freezing=False, **options):
    """Stock's outputs, ours, and the session."""
    with torch.no_grad(), torch._inductor.config.patch(freezing=freezing):
        expected = torch.compile(model)(*inputs)
        torch._dynamo.reset()
        with peakproof.optimize(**options) as session:
            found = torch.compile(model)(*inputs)
    return expected, found, session


def sure(report):
    """What holds of every program that is not refused."""
    assert report.state in ("installed", "kept"), report.reason
    assert report.peak_measured == report.peak and report.bitwise.startswith("yes"), report.reason
    assert report.stock_peak_measured == report.stock_peak_modelled


@pytest.mark.parametrize("freezing", [False, True])
@pytest.mark.parametrize("late", ["concatenated", "summed"])
def test_redimnet_like(late, freezing, tmp_path):
    """The order is optimal and certified; making the stem again goes lower for under 0.4%."""
    torch.manual_seed(0)
    model, x = ReDimNetLike(late).eval(), torch.randn(1, 1, 64, 64)
    expected, found, session = compiled(
        model, x, freezing=freezing, recompute=True, max_extra_macs=0.004
    )
    assert torch.equal(expected, found)
    (result,) = session.results
    report = result.report
    sure(report)
    assert report.state == "installed" and report.recomputed, session.table()
    assert report.optimal and report.peak < report.peak_without_recomputation, session.table()
    assert report.peak_without_recomputation <= report.stock_peak_measured
    assert 0 < report.extra_macs * 1000 < report.macs * 4
    assert "run again" in session.table() and "__again1" in result.permuted_text
    names = [s["name"] for s in result.model.program["statements"]]
    assert sum("~1" in name for name in names) == report.recomputed
    assert "No order" in session.why()
    if freezing:  # the names of frozen constants differ from compilation to compilation
        return
    # Another process does it again, without profiling.
    session.save(tmp_path / "saved")
    torch._dynamo.reset()
    with torch.no_grad(), peakproof.load(tmp_path / "saved") as loaded:
        again = torch.compile(model)(x)
    assert torch.equal(again, expected)
    assert [r.report.state for r in loaded.results] == ["installed"], loaded.table()
    assert loaded.results[0].report.recomputed == report.recomputed


def test_floor_and_off():
    """At the floor it says so, with the line, and does not search; it is off unless asked for."""
    model, x = (
        nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64)).eval(),
        torch.randn(32, 64),
    )
    _, _, session = compiled(model, x, recompute=True)
    report = session.results[0].report
    sure(report)
    assert "recomputation cannot help: line" in report.reason and not report.curve
    _, _, session = compiled(model, x)
    assert "recomputation" not in session.table()


def test_only_behind_a_proof(monkeypatch):
    """Without a proved optimum nothing is recomputed."""
    solve = core.solve
    monkeypatch.setattr(core, "solve", lambda *a: {**solve(*a), "optimal": False})
    model, x = ReDimNetLike("concatenated").eval(), torch.randn(1, 1, 64, 64)
    _, _, session = compiled(model, x, recompute=True, max_extra_macs=None)
    report = session.results[0].report
    assert not report.recomputed and "not proved optimal" in report.reason


@pytest.mark.parametrize("what", ["expand", "name", "poison"])
def test_wrong_recipes_change_nothing(what, monkeypatch, caplog):
    """Whatever goes wrong behind the choice leaves the program that needs no recomputation."""
    torch.manual_seed(0)
    model, x = ReDimNetLike("concatenated").eval(), torch.randn(1, 1, 64, 64)
    recipe_of, expand = remat.recipe_of, remat.expand

    def wrong(*args):
        recipe = recipe_of(*args)
        if what == "name":  # late uses take the first copy: it is alive all the time
            seen = set()
            return [[i, c if i in seen or seen.add(i) else {}] for i, c in recipe]
        return recipe

    def spoiled(source, recipe):
        text = expand(source, recipe)
        if what == "poison":  # the second run is left out: its copies are never filled
            lines = text.split("\n")
            return "\n".join(
                line for line in lines if not ("cpp_fused" in line and "__again1, " in line)
            )
        if what == "expand":
            raise Refusal("as ordered")
        return text

    monkeypatch.setattr(remat, "recipe_of", wrong)
    monkeypatch.setattr(remat, "expand", spoiled)
    with caplog.at_level(logging.WARNING):
        expected, found, session = compiled(model, x, recompute=True, max_extra_macs=None)
    assert torch.equal(expected, found)
    report = session.results[0].report
    sure(report)
    assert not report.recomputed and "not recomputed: " in report.reason
    assert session.results[0].recipe == []


@torch.library.custom_op("ppremat::product", mutates_args=())
def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, y)


# Of each case: how a value is made, what stands behind its first use, whether it may be made again.
MAKE = "buf0 = extern_kernels.mm(a, b)"
AFTER = "after = torch.ops.aten.amax.default(b, [0])"  # wanted before the wide one
FILL = "buf0 = empty_strided_cpu((64, 64), (64, 1), torch.float32)"
CASES = {
    "plain": ([MAKE], [], True),
    "filled": ([FILL, "extern_kernels.mm(a, b, out=buf0)"], [], True),
    "in place, for it alone": ([MAKE, "aten.mul_.Tensor(buf0, a)"], [], True),
    "a view of its input": (
        ["view = reinterpret_tensor(b, (64, 64), (1, 64), 0)"]
        + ["buf0 = extern_kernels.mm(a, view)"],
        [],
        True,
    ),
    "input overwritten": ([MAKE], ["aten.mul_.Scalar(b, 0.5)", AFTER], False),
    "input overwritten through a view": (
        ["half = reinterpret_tensor(b, (32, 64), (64, 1), 0)", MAKE],
        ["aten.mul_.Scalar(half, 0.5)", AFTER],
        False,
    ),
    "input overwritten through another argument": (
        [MAKE],
        ["aten.mul_.Scalar(c, 0.5)", AFTER],
        False,
    ),
    "input copied into": ([MAKE], ["b.copy_(a)", AFTER], False),
    "random": ([MAKE, "aten.bernoulli_.float(buf0, 0.5)"], [], False),
    "random from the start": (["buf0 = torch.ops.aten.rand_like.default(a)"], [], False),
    "custom": (["buf0 = torch.ops.ppremat.product.default(a, b)"], [], False),
    "written by parts": (
        [FILL]
        + ["top = reinterpret_tensor(buf0, (32, 64), (64, 1), 0)"]
        + ["low = reinterpret_tensor(buf0, (32, 64), (64, 1), 2048)"]
        + ["extern_kernels.mm(reinterpret_tensor(a, (32, 64), (64, 1), 0), b, out=top)"]
        + ["extern_kernels.mm(reinterpret_tensor(a, (32, 64), (64, 1), 2048), b, out=low)"],
        [],
        False,
    ),
    "reused": (
        ["old = extern_kernels.mm(b, a)", "sum = torch.ops.aten.sum.default(old)"]
        + ["buf0 = old; del old  # reuse", "extern_kernels.mm(a, b, out=buf0)"],
        ["aten.mul_.Tensor(buf0, sum)"],
        True,  # the reuse is split
    ),
    "updated behind its first use": ([MAKE], ["aten.mul_.Scalar(buf0, 2.0)"], True),
}


@pytest.mark.parametrize("case", CASES)
def test_what_runs_again_and_what_never(case, monkeypatch):
    """buf0 is read early, then not before the end, over something wide. `c` shares b's storage."""
    monkeypatch.setattr(profile, "macs_of", lambda *a: 1)
    make, behind, may = CASES[case]
    first = ["early = torch.ops.aten.amax.default(buf0, [0])"]
    many = ["early"] * 511 + ["after" if AFTER in behind else "early"]
    wide = [
        f"wide = torch.ops.aten.cat.default([{', '.join(many)}])",
        "aten.mul_.Scalar(wide, 0.5)",
        "thin = torch.ops.aten.amax.default(wide)",
        "del wide, early",
    ]
    last = ["out = torch.ops.aten.add.Tensor(buf0, thin)", "del buf0", "return (out, )"]
    text = body(*make, *first, *behind, *wide, *last, arguments="a, b, c")
    a, b = two_matrices()
    args = [a, b, b[:32]]
    held = list(args)
    before = [t.clone() for t in args]
    result, stock = optimize(text, args, recompute=True, max_extra_macs=None, cap=3)
    report = result.report
    sure(report)
    assert report.bitwise == "yes" and all(torch.equal(x, y) for x, y in zip(held, before))
    assert bool(report.recomputed) == may, report.reason


def two_matrices():
    g = torch.Generator().manual_seed(0)
    return [torch.rand(64, 64, generator=g), torch.rand(64, 64, generator=g)]


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed, monkeypatch):
    """Whatever the program, what is installed has the same bits and exactly the modelled peak; and
    nothing that was chosen fails later."""
    monkeypatch.setattr(profile, "macs_of", lambda *a: 1)
    text = Writer(seed).write(4 + seed % 40, seed % 2 == 0)
    args = arguments(seed)
    held = list(args) if seed % 3 else None
    result, stock = optimize(text, args, recompute=True, max_extra_macs=None, cap=1 + seed % 3)
    report = result.report
    sure(report)
    assert "not recomputed" not in report.reason
    assert report.optimal and report.peak <= (report.peak_without_recomputation or report.peak)
    assert report.recomputed == 0 or seed % 3  # a cap of 1 is none
    if result.function is not None:
        found, expected = result.function(arguments(seed)), stock(arguments(seed))
        assert all(torch.equal(x, y) for x, y in zip(expected, found))
    del held


def test_training():
    """Forward and backward with recomputation: gradients bitwise the same."""
    torch.manual_seed(0)
    model, x = ReDimNetLike("summed", 8, 16).train(), torch.randn(2, 1, 32, 32)
    saved = {k: v.clone() for k, v in model.state_dict().items()}

    def step():
        torch._dynamo.reset()
        model.load_state_dict(saved)
        model.zero_grad()
        y = torch.compile(model)(x)
        y.square().sum().backward()
        return [y.detach(), *(p.grad.clone() for p in model.parameters())]

    expected = step()
    with peakproof.optimize(recompute=True, max_extra_macs=None) as session:
        found = step()
    for r in session.results:
        sure(r.report)
    assert all(torch.equal(a, b) for a, b in zip(expected, found)), session.table()


SOURCE = """
def call(args):
    x, = args
    args.clear()
    buf0 = extern_kernels.mm(x, x)
    buf1 = reinterpret_tensor(buf0, (4, ), (1, ), 0)
    buf2 = extern_kernels.mm(buf0, buf1)
    del buf0
    return (buf2, )
"""


def test_recipes():
    """The text of a recipe, and recipes that say something else."""
    source = split(SOURCE)
    first, second, last = (s.index for s in source.statements if s.kind in ("node", "return"))
    copies = {"buf0": 1, "buf1": 1}
    text = remat.expand(source, [[first, {}], [first, copies], [second, copies], [last, {}]])
    assert "buf0__again1 = extern_kernels.mm(x, x)" in text
    assert "buf1__again1 = reinterpret_tensor(buf0__again1, (4, ), (1, ), 0)" in text
    assert "buf2 = extern_kernels.mm(buf0__again1, buf1__again1)" in text
    for recipe, says in (
        ([[first, {}], [last, {}]], "leaves out"),
        ([[first, {}], [second, {}], [last, {}], [last, {}]], "end with the return"),
        ([[first, {}], [last, {}], [second, {}]], "end with the return"),
        ([[99, {}]], "does not exist"),
        ([[first, {"buf0": "1; import os"}], [second, {}], [last, {}]], "unknown form"),
        ([[first, {"buf0": -1}], [second, {}], [last, {}]], "unknown form"),
        ([[second, {}], [first, {}], [last, {}]], "needs what is not there"),
        ([[first, {}], [second, {"buf0": 2}], [last, {}]], "needs what is not there"),
        ([[first, {}], [second, {}], [last, {"buf2": 1}]], "needs what is not there"),
    ):
        with pytest.raises(Refusal, match=says):
            remat.expand(source, recipe)
    with pytest.raises(Refusal, match="looks like one of ours"):
        odd = split(SOURCE.replace("buf1", "buf0__again1"))
        remat.expand(odd, [[first, {}], [second, {}], [last, {}]])


def test_options():
    for wrong in ({"cap": 0}, {"cap": 1.5}, {"max_extra_macs": -0.1}, {"max_extra_macs": 1e999}):
        with pytest.raises(ValueError):
            Options(**wrong)
    assert json.loads(json.dumps(Options().cap)) == 2
