"""CUDA programs on a device that is not there (fake_cuda.py): measured, compared, decided."""

import gc
import glob
import os
import random

import fake_cuda
import pytest
import torch
from peakproof import core, device, static, verify
from peakproof import model as models
from peakproof.pipeline import Options, compile_call
from peakproof.realize import realize

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "inductor-cuda")
# What the CPU cannot stand in for: copies between devices, flash attention, a list of arguments.
WITHOUT = ("from_cpu", "partitions", "attention")
NAMES = [os.path.basename(p)[:-7] for p in sorted(glob.glob(os.path.join(DATA, "*.py.txt")))]
NAMES = ["hand/old_inference", *(n for n in NAMES if not n.startswith(WITHOUT))]
SMALL = "hand/old_inference"


def read(name):
    with open(os.path.join(DATA, name + ".py.txt"), encoding="utf-8") as f:
        return f.read()


@pytest.fixture
def fake(monkeypatch):
    return fake_cuda.Device().install(monkeypatch)


def optimize(name, fake, **options):
    """(result, static plan) of a captured program on the fake device."""
    text = read(name)
    namespace, call = fake_cuda.program(text, fake)
    held = static.held_by_name(fake_cuda.split(text))
    with fake:
        args = fake_cuda.tensors(text)
        keep = [t for t, h in zip(args, held) if h]
        optimizer = device.DeviceOptimizer(name, text, namespace, call, Options(**options))
        result = optimizer.run(args)
        del keep
    return result, static.plan(text, name, held)


@pytest.mark.parametrize("name", NAMES)
def test_measured_as_modelled(name, fake):
    """What the device counts is what the text alone gives, for stock and permuted, to the byte."""
    result, planned = optimize(name, fake)
    r = result.report
    assert r.state in ("installed", "kept"), r.reason
    assert r.meter == "cuda" and r.bitwise == "yes" and fake.kernels
    assert r.peak_measured == r.peak == planned.plan["peak_after"]
    assert r.stock_peak_measured == planned.model.stock_peak
    assert result.model.program == planned.model.program
    assert result.permuted_text == planned.text


def legal_order(program, seed):
    """A random order that the program's dependences allow."""
    n = len(program["statements"])
    writes, reads, before = {}, {}, [set() for _ in range(n)]
    for a, b in program["order"]:
        before[b].add(a)
    for i, s in enumerate(program["statements"]):
        for kind in ("reads", "writes"):
            for access in s[kind]:
                number, low, high = (access, 0, 1 << 62) if isinstance(access, int) else access
                for store in (writes, reads) if kind == "writes" else (writes,):
                    for j, a, b in store.get(number, ()):
                        if j != i and a < high and low < b:
                            before[i].add(j)
        for kind, store in (("reads", reads), ("writes", writes)):
            for access in s[kind]:
                number, low, high = (access, 0, 1 << 62) if isinstance(access, int) else access
                store.setdefault(number, []).append((i, low, high))
    chance, order, left = random.Random(seed), [], set(range(n))
    while left:
        ready = sorted(i for i in left if not before[i] & left)
        order.append(chance.choice(ready))
        left.discard(order[-1])
    return order


def outcome(call, text):
    """Digests of outputs and of arguments, from fresh arguments."""
    args = fake_cuda.tensors(text)
    keep = list(args)
    torch.manual_seed(0)
    outputs = call(args)
    return [verify.digest(t) for t in outputs], [verify.digest(t) for t in keep]


@pytest.mark.parametrize("name", NAMES)
def test_any_legal_order_gives_the_same_bits(name, fake):
    """Orders that the model allows, drawn at random, realized and run: the effects are right."""
    text = read(name)
    namespace, call = fake_cuda.program(text, fake)
    expected = outcome(call, text)
    planned = static.plan(text, name)
    orders, texts = set(), set()
    for seed in range(4):
        order = legal_order(planned.model.program, seed)
        core.simulate(planned.model.program, order)  # raises if it is not legal
        changed = realize(planned.source, models.statement_order(planned.model, order))
        orders.add(tuple(order))
        texts.add(changed)
        owner = getattr(call, "__self__", None)
        assert outcome(compile_call(changed, namespace, owner, "<changed>"), text) == expected
    assert len(texts) == len(orders)


def test_an_illegal_order_is_noticed(fake):
    """The other way round: with a dependence left out, bits differ."""
    text = read(SMALL)
    namespace, call = fake_cuda.program(text, fake)
    expected = outcome(call, text)
    planned = static.plan(text)
    owner, differing = getattr(call, "__self__", None), 0
    program = planned.model.program
    for i in range(len(program["statements"]) - 1):
        order = list(range(len(program["statements"])))
        order[i], order[i + 1] = order[i + 1], order[i]
        try:
            core.simulate(program, order)
            continue  # legal
        except ValueError:
            pass
        try:
            changed = realize(planned.source, models.statement_order(planned.model, order))
        except device.Refusal:
            continue  # names alone forbid it
        differing += outcome(compile_call(changed, namespace, owner, "<wrong>"), text) != expected
    assert differing


def test_installed(fake):
    """The whole way, to what the report says; recomputation and splitting of reuses stay off."""
    result, _ = optimize(SMALL, fake, split_reuse=True)
    r = result.report
    assert r.state == "installed" and r.peak < r.stock_peak_measured
    assert result.function is not None and not r.splits and not r.reuses
    assert r.device["name"] == "a device that is not there"
    assert r.device["stock"]["requested"] == r.stock_peak_measured
    assert r.device["permuted"]["requested"] == r.peak
    assert r.device["permuted"]["allocated"] < r.device["stock"]["allocated"]
    assert "requested" in r.reason and "reserved" in r.reason


WORSE = [
    ({}, "the allocator's rounding hides that"),
    ({"allocated": 1}, "the allocated peak would rise"),
    ({"reserved": 1, "allocated": -512}, "the reserved peak would rise"),
    ({"requested": 1, "allocated": -512}, "the requested peak would rise"),
]


@pytest.mark.parametrize("change, reason", WORSE)
def test_stock_is_kept_when_permuted_is_not_better(change, reason, fake, monkeypatch):
    """An order with a lower requested peak stays out if the allocator does not agree."""

    def figures(function, originals, held, index):
        stock = {"requested": 10000, "allocated": 10240, "reserved": 2 << 20}
        if "peakproof" not in getattr(function, "__func__", function).__code__.co_filename:
            return stock
        return {k: v + change.get(k, 0) for k, v in stock.items()}

    monkeypatch.setattr(device, "figures", figures)
    result, _ = optimize(SMALL, fake)
    assert result.report.state == "kept" and reason in result.report.reason
    assert result.function is None and result.report.peak < result.report.stock_peak_measured


def test_verdict():
    stock = {"requested": 100, "allocated": 512, "reserved": 2048}
    assert device.verdict(stock, {**stock, "allocated": 0}) == ""
    assert device.verdict(stock, {**stock, "reserved": 0}) == ""
    assert "rounding" in device.verdict(stock, {**stock, "requested": 0})
    assert "rise" in device.verdict(stock, {"requested": 0, "allocated": 0, "reserved": 4096})


def test_figures_depend_on_history(fake, monkeypatch):
    """Stock's least is compared with permuted's most."""
    runs = iter([1, 5, 2, 4])

    def figures(*args):
        return dict.fromkeys(device.COUNTS, next(runs))

    monkeypatch.setattr(device, "figures", figures)
    result, _ = optimize(SMALL, fake)
    assert result.report.device["stock"]["reserved"] == 1
    assert result.report.device["permuted"]["reserved"] == 5
    assert "depend on history" in result.report.reason and result.report.state == "kept"


def test_wrong_bits_are_refused(fake, monkeypatch):
    """A program whose results differ is never installed, whatever it would save."""
    broken = realize

    def wrong(source, order):
        return broken(source, order).replace("torch.float32)", "torch.float32).fill_(1)", 1)

    from peakproof import pipeline

    text = read(SMALL)
    monkeypatch.setattr(pipeline, "realize", wrong)
    namespace, call = fake_cuda.program(text, fake)
    for value in namespace.values():
        if isinstance(value, fake_cuda.Kernel):
            value.mutated = [*(value.mutated or []), *value.names]
    with fake:
        args = fake_cuda.tensors(text)
        result = device.DeviceOptimizer("x", text, namespace, call, Options()).run(args)
    assert result.report.state == "refused" and "results differ" in result.report.reason


# -- refusals --------------------------------------------------------------------------------


def refused(fake=None, **options):
    text = read(SMALL)
    namespace, call = fake_cuda.program(text, fake)
    args = fake_cuda.tensors(text)
    result = device.DeviceOptimizer("x", text, namespace, call, Options(), **options).run(args)
    assert result.report.state == "refused" and result.function is None
    return result.report.reason


@pytest.mark.skipif(torch.cuda.is_available(), reason="a device is here")
def test_no_device():
    assert refused() == "a CUDA program, and no CUDA device is here"


REFUSALS = [
    ("device_count", lambda: 0, "device 0, which is not here"),
    ("get_allocator_backend", lambda: "cudaMallocAsync", "not torch's own"),
    ("is_current_stream_capturing", lambda: True, "being captured"),
    ("memory_stats", lambda index=None: {}, "has no 'requested_bytes.all.current'"),
]


@pytest.mark.parametrize("name, answer, reason", REFUSALS)
def test_refused(name, answer, reason, fake, monkeypatch):
    monkeypatch.setattr(torch.cuda, name, answer)
    assert reason in refused(fake)
    assert gc.isenabled()


def test_cuda_graphs_are_refused(fake):
    assert "CUDA graphs" in refused(fake, graphs=True)


def test_session_takes_the_device_road(monkeypatch):
    """A session hands a program with a device guard to the device's optimizer, and only that."""
    from types import SimpleNamespace

    from peakproof.session import Dispatcher, Session

    session = Session()
    module = SimpleNamespace(call=lambda args: args)
    dispatcher = Dispatcher(session, module, read(SMALL))
    assert not dispatcher.graphs
    if not torch.cuda.is_available():
        assert dispatcher([torch.ones(2)])[0].sum() == 2
        assert "no CUDA device" in session.results[0].report.reason
    with torch._inductor.config.patch({"triton.cudagraphs": True}):
        assert Dispatcher(session, module, "").graphs


# -- a real device ---------------------------------------------------------------------------


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_real_device():
    """Compiled, measured and decided on the device."""
    import peakproof
    from small import Branches

    model, x = Branches(4096).cuda(), torch.randn(512, 8, device="cuda")
    expected = torch.compile(model)(x)
    torch._dynamo.reset()
    with torch.no_grad(), peakproof.optimize() as session:
        found = torch.compile(model)(x)
    r = session.results[0].report
    assert r.state in ("installed", "kept"), r.reason
    assert r.peak_measured == r.peak and r.meter == "cuda" and torch.equal(expected, found)
