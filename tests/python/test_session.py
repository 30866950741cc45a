"""Sessions around programs that need no compiler: threads, interrupts, odd calls, damaged files."""

import gc
import json
import logging
import sys
import threading
import types

import peakproof
import pytest
import torch
from peakproof import meter as meters
from peakproof import session as sessions
from test_programs import A, body, optimize, two


def make(session, text):
    """What Inductor would get: the session's stand-in for `call` of a generated module."""
    module = types.ModuleType("generated")
    exec(compile(text, "<generated>", "exec"), module.__dict__)
    return session.wrap(module, text).call


BETTER = body(
    "buf0 = torch.ops.aten.repeat.default(a, [8, 1])",
    "buf1 = torch.ops.aten.repeat.default(b, [8, 1])",
    "buf2 = torch.ops.aten.sum.default(buf0)",
    "del buf0",
    "buf3 = torch.ops.aten.sum.default(buf1)",
    "del buf1",
    "return (buf2, buf3, )",
)


def operator(name, function):
    """A custom operator `pptest7::name` of one tensor, and a program that calls it."""
    torch.library.custom_op(f"pptest7::{name}", mutates_args=())(function)
    return body(
        "buf0 = torch.ops.aten.repeat.default(a, [8, 1])",
        f"buf1 = torch.ops.pptest7.{name}.default(b)",
        "buf2 = torch.ops.aten.sum.default(buf0)",
        "del buf0",
        "return (buf1, buf2, )",
    )


def equal(found, expected):
    return all(torch.equal(a, b) for a, b in zip(found, expected))


def stock(text, args):
    namespace = {}
    exec(compile(text, "<generated>", "exec"), namespace)
    return namespace["call"](list(args))


def test_better():
    session = peakproof.optimize()
    call, args = make(session, BETTER), two()
    assert equal(call(list(args)), stock(BETTER, args))
    assert session.results[0].report.state == "installed"
    assert session.optimizing is None


def test_calls_of_other_threads_are_noticed():
    """A profile that another thread's call disturbed is tried again; the other call is right."""
    session = peakproof.optimize()
    other, args = make(session, BETTER), two()
    expected = stock(BETTER, args)
    other(list(args))
    kept, found = [], []

    def busy(x: torch.Tensor) -> torch.Tensor:
        if len(found) < 3:
            thread = threading.Thread(target=lambda: found.append(other(list(args))))
            thread.start()
            thread.join()
            kept.append(torch.empty(1000))  # what a call of another thread leaves behind
        return x.clone()

    text = operator("busy", busy)
    call = make(session, text)
    for _ in range(3):
        assert equal(call(list(args)), (args[1], args[0].repeat(8, 1).sum()))
    assert len(found) == 3 and all(equal(f, expected) for f in found)
    assert session.disturbances >= 1
    assert [r.report.state for r in session.results][1] in ("installed", "kept")


def test_interrupt():
    """Ctrl-C in the middle of a profile: nothing is lost, and the next call optimizes."""
    session = peakproof.optimize()
    count = [0]

    def interrupted(x: torch.Tensor) -> torch.Tensor:
        count[0] += 1
        if count[0] == 4:
            raise KeyboardInterrupt
        return x.clone()

    call, args = make(session, operator("interrupted", interrupted)), two()
    before, state = [t.clone() for t in args], torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        call(list(args))
    assert equal(args, before) and torch.equal(state, torch.get_rng_state())
    assert gc.isenabled() and session.optimizing is None and not session.results
    assert equal(call(list(args)), (args[1], args[0].repeat(8, 1).sum()))
    assert session.results[0].report.state in ("installed", "kept")
    assert session.results[0].report.name == "0_forward"


def test_nested():
    """An operator that itself calls a program of the session."""
    session = peakproof.optimize()
    inner = make(session, BETTER)

    def nest(x: torch.Tensor) -> torch.Tensor:
        return inner([x, x])[0] + x

    call, args = make(session, operator("nest", nest)), two()
    for _ in range(2):
        assert equal(call(list(args)), (args[1].repeat(8, 1).sum() + args[1],))
    states = {r.report.statements: r.report.state for r in session.results}
    assert states[4] == "installed" and session.optimizing is None


@pytest.mark.parametrize("odd", [[1], torch.eye(4).to_sparse(), object()])
def test_odd_arguments(odd):
    """What no schedule can be made for runs as it is."""
    text = body("return (a, )")
    session = peakproof.optimize()
    call, x = make(session, text), torch.ones(3)
    for _ in range(2):
        assert call([x, odd])[0] is x
    assert all(r.report.state == "refused" for r in session.results)


def test_default_device():
    """A default device of the user's does not reach the clones."""
    torch.set_default_device("meta")
    try:
        result, _ = optimize(BETTER, two_cpu())
    finally:
        torch.set_default_device(None)
    assert result.report.state == "installed", result.report.reason


def two_cpu():
    return [torch.rand(16, 16, device="cpu") for _ in range(2)]


def test_profiler_that_cannot_start(monkeypatch):
    """The fallback meter inside a profile of the user's: refused, and the profile goes on."""
    monkeypatch.setattr(meters, "meter", meters.Profiler)
    with torch.profiler.profile() as profile:
        result, _ = optimize(BETTER, two())
        torch.ones(3).sum()
    assert result.report.state == "refused" and "is in use" in result.report.reason
    assert gc.isenabled() and "aten::sum" in {e.key for e in profile.key_averages()}

    def fail(self):
        raise RuntimeError("as ordered")

    monkeypatch.setattr(torch.profiler.profile, "__enter__", fail)
    result, _ = optimize(BETTER, two())
    assert result.report.state == "refused" and "as ordered" in result.report.reason
    assert gc.isenabled()


def test_operator_without_a_schema_that_says(caplog):
    """Refused before it runs; the reason and the line are printed."""
    library = torch.library.Library("pptest8", "DEF")
    library.define("opaque(Any x) -> Tensor")
    ran = []
    library.impl("opaque", lambda x: ran.append(1) or x + 1, "CompositeExplicitAutograd")
    text = body("buf0 = torch.ops.pptest8.opaque.default(a)", "return (buf0, b, )")
    session = peakproof.optimize()
    call, args = make(session, text), two()
    with caplog.at_level(logging.WARNING, "peakproof"):
        assert torch.equal(call(list(args))[0], args[0] + 1)
    r = session.results[0].report
    assert r.state == "refused" and "schema does not say" in r.reason
    assert r.line == text[: text.index("buf0")].count("\n") + 1
    assert f"line {r.line}: operator whose schema does not say" in caplog.text
    assert f"line {r.line}:" in session.table() and len(ran) == 1


def test_not_python(tmp_path, caplog):
    """A module that is not a generated Python program (cpp_wrapper's) is left alone, and said."""
    from torch._inductor.codecache import PyCodeCache

    path = tmp_path / "module.py"
    path.write_text("import torch\ncall = list\n")
    with peakproof.optimize() as session, caplog.at_level(logging.WARNING, "peakproof"):
        module = PyCodeCache.load_by_key_path("key", str(path))
    assert module.call is list and not session.results
    assert "stays as it is" in caplog.text


def test_idle_operators_keep_their_order():
    """Assertions return nothing and write nothing: they are there for their effect."""
    text = body(
        "buf0 = torch.ops.aten.sum.default(a)",
        "torch.ops.aten._assert_async.msg(buf0, 'first')",
        "buf1 = torch.ops.aten.sum.default(b)",
        "torch.ops.aten._assert_async.msg(buf1, 'second')",
        "return (buf0, buf1, )",
    )
    result, _ = optimize(text, two())
    assert result.report.bitwise == "yes", result.report.reason
    assert [1, 3] in result.model.program["order"]


def test_outputs_that_share():
    """One tensor twice, views of it, an argument and a view of an argument as outputs."""
    text = body(
        "buf0 = torch.ops.aten.repeat.default(a, [8, 1])",
        "buf1 = torch.ops.aten.sum.default(buf0)",
        "del buf0",
        f"buf2 = {A}",
        "aten.add.out(a, b, alpha=1, out=buf2)",
        "buf3 = torch.ops.aten.repeat.default(buf2, [8, 1])",
        "buf4 = torch.ops.aten.sum.default(buf3)",
        "del buf3",
        "return (buf2, buf2, reinterpret_tensor(buf2, (8, 16), (16, 1), 128), a,"
        " reinterpret_tensor(b, (16, ), (1, ), 16), buf1, buf4, None, 3, )",
    )
    session = peakproof.optimize()
    call, args = make(session, text), two()
    found = call(list(args))
    r = session.results[0].report
    assert r.bitwise == "yes" and r.peak_measured == r.peak, r.reason
    keys = [t.untyped_storage()._cdata for t in found[:5]]
    assert keys[0] == keys[1] == keys[2] and found[3] is args[0] and found[7:] == (None, 3)
    assert keys[4] == args[1].untyped_storage()._cdata


def where(x: torch.Tensor) -> torch.Tensor:
    """An operator that notes which text called it."""
    frame = sys._getframe()
    while not frame.f_code.co_filename.startswith(("<generated>", "<peakproof")):
        frame = frame.f_back
    ran.append(frame.f_code.co_filename)
    return x.clone()


ran = []


def writer():
    """A program that writes its first argument."""
    if not hasattr(torch.ops.pptest7, "where"):
        operator("where", where)
    return BETTER.replace(
        "    buf0 =",
        "    buf9 = torch.ops.pptest7.where.default(b)\n    aten.mul_.Scalar(a, 2.0)\n    buf0 =",
    )


def rows(total):
    """16 x 16 tensors that start at rows 0, 1 and 16 of one block, and one of another."""
    block = torch.rand(total, 16)
    return block[:16], block[1:17], block[16:32], torch.rand(16, 16)


@pytest.mark.parametrize("loaded", [False, True])
def test_arguments_that_overlap_later(tmp_path, loaded):
    """The order took arguments for separate: where one that is written overlaps, stock runs."""
    text = writer()
    session = peakproof.optimize()
    call = make(session, text)
    call(two())
    assert session.results[0].report.state == "installed"
    if loaded:
        session.save(tmp_path)
        with peakproof.load(tmp_path) as again:
            call = make(again, text)
            call(two())
            assert again.results[0].report.state == "installed"
    for pair, stays in (((0, 3), True), ((3, 1), True), ((0, 2), True), ((0, 1), False)):
        seed = torch.get_rng_state()
        blocks = rows(32)
        args = [blocks[i] for i in pair]
        torch.set_rng_state(seed)
        again = rows(32)
        ran.clear()
        found = call(list(args))
        assert ran[0].startswith("<peakproof" if stays else "<generated>"), pair
        assert equal(found, stock(text, [again[i] for i in pair]))
        assert equal(blocks, again)


def test_arguments_that_overlap_at_first():
    """Sharing that the profile saw is in the model: the order holds for it."""
    text = writer()
    session = peakproof.optimize()
    call = make(session, text)
    a, b, _, _ = rows(32)
    call([a, b])
    r = session.results[0].report
    assert r.state in ("installed", "kept") and r.bitwise == "yes", r.reason
    ran.clear()
    call([a, b])
    assert ran[0].startswith("<peakproof" if r.state == "installed" else "<generated>")


def saved_session(directory):
    session = peakproof.optimize()
    args = two()
    make(session, BETTER)(list(args))
    session.save(directory)
    return args


def load(directory, args):
    """Calls BETTER under a loaded session; its report."""
    with peakproof.load(directory) as session:
        found = make(session, BETTER)(list(args))
    assert equal(found, stock(BETTER, args))
    return session.results[0].report


def test_load(tmp_path):
    args = saved_session(tmp_path)
    assert load(tmp_path, args).state == "installed"


@pytest.mark.parametrize(
    "key, value",
    [
        ("order", None),
        ("order", "abc"),
        ("order", [99, 98]),
        ("order", []),
        ("nodes", None),
        ("program", 7),
        ("splits", [[1, 2]]),
        ("splits", 5),
        ("signature", None),
        ("state", "lost"),
        ("apart", 5),
        ("apart", {"extents": [1, 2, 3, 4], "written": [0], "shared": []}),
    ],
)
def test_load_of_a_damaged_index(tmp_path, key, value):
    """Whatever stands in the index: stock runs, and the report says that it was refused."""
    args = saved_session(tmp_path)
    index = json.loads((tmp_path / "index.json").read_text())
    index["programs"][0][key] = value
    (tmp_path / "index.json").write_text(json.dumps(index))
    report = load(tmp_path, args)
    assert report.state != "installed" and report.reason


@pytest.mark.parametrize(
    "index",
    [
        "[]",
        "3",
        "{",
        '{"peakproof_session": 1}',
        '{"peakproof_session": 1, "torch": "VERSION", "programs": [3]}',
        '{"peakproof_session": 1, "torch": "VERSION", "programs": [{}]}',
        '{"peakproof_session": 1, "torch": "VERSION", "programs": [{"name": "x"}]}',
        '{"peakproof_session": 1, "torch": "VERSION",'
        ' "programs": [{"name": "x", "state": "kept", "source": ""}]}',
        '{"peakproof_session": 1, "torch": "VERSION", "programs": 5}',
        '{"peakproof_session": 1, "torch": "other", "programs": []}',
    ],
)
def test_load_of_a_wrong_index(tmp_path, index):
    (tmp_path / "index.json").write_text(index.replace("VERSION", torch.__version__))
    active = list(sessions._active)
    with pytest.raises(ValueError):
        peakproof.load(tmp_path)
    assert sessions._active == active
