"""Optimize: one generated program from its source to a verified, permuted `call`.

Any doubt raises Refusal; the caller then keeps the stock program. The user's arguments are only
read: everything runs on clones.
"""

import dataclasses
import hashlib
import time
import types
from dataclasses import dataclass, field

import torch

from . import core, remat, reuse, verify
from . import meter as meters
from . import model as models
from .errors import Refusal
from .profile import Profiler
from .realize import realize
from .split import split

WARM_UPS = 2
MORE_PROFILES = 4  # when the first two differ
MORE_STOCK_RUNS = 6  # when permuted differs from stock: does stock differ from itself there too?


@dataclass
class Options:
    """What a session may set. `install` False: measure and prove, but leave stock in place."""

    time_limit: float = 10.0  # seconds for planning one program; 0: none
    state_limit: int = 0  # states of the exact search; 0: the default
    split_reuse: bool = False
    recompute: bool = False  # behind a certified optimum: run statements again to go lower
    max_extra_macs: float | None = 0.01  # as a fraction of the program's; None: any
    cap: int = 2  # how often a statement may run
    install: bool = True
    # Called as inspect(optimizer, originals, held) behind verification; for benchmarks.
    inspect: object = None

    def __post_init__(self):
        if not (isinstance(self.cap, int) and 1 <= self.cap <= 10**6):
            raise ValueError("cap is not a number from 1 to 1000000")
        share = self.max_extra_macs
        if share is not None and not 0 <= share < float("inf"):
            raise ValueError("max_extra_macs is neither None nor a fraction")


@dataclass
class Report:
    """Everything that is known about one program. Sizes in bytes, times in seconds."""

    name: str
    kind: str = ""  # forward, backward, inference
    state: str = "new"  # installed, kept, refused
    reason: str = ""
    line: int | None = None
    statements: int = 0
    storages: int = 0
    stock_peak_measured: int | None = None
    stock_peak_modelled: int | None = None
    original_order_peak: int | None = None
    peak: int | None = None
    reuses: int = 0  # reuses that could be split
    splits: int = 0  # reuses that were split
    peak_without_splits: int | None = None
    recomputed: int = 0  # statements that run again
    extra_macs: int = 0
    macs: int | None = None  # of the whole program, where recomputation was tried
    peak_without_recomputation: int | None = None
    curve: list = field(default_factory=list)  # what recomputation can do: peak, extra_macs, ...
    lower_bound: int | None = None
    optimal: bool = False
    proof: str = "none"
    peak_measured: int | None = None
    bitwise: str = "not compared"  # yes, yes with one thread, no
    held_bytes: int | None = None
    floor: int | None = None
    meter: str = ""
    device: dict = field(default_factory=dict)  # CUDA: its name, peaks by the allocator's counts
    torch: str = torch.__version__
    seconds: dict = field(default_factory=dict)


@dataclass
class Result:
    """A program's report and what was made for it."""

    report: Report
    source_text: str
    model: models.Model | None = None
    order: list | None = None  # statement indices
    permuted_text: str | None = None
    function: object = None
    certificate: bytes | None = None
    signature: tuple = ()
    apart: verify.Apart | None = None  # what the order takes for granted of the arguments
    splits: dict = field(default_factory=dict)  # line -> (old text, new text)
    recipe: list = field(default_factory=list)  # of recomputation (remat.expand), if any


@dataclass
class Variant:
    """A way to run the program: profiled and planned."""

    source: object  # split.Source
    profile: object
    model: models.Model
    plan: dict
    spread: dict  # statement -> lowest and highest work, where these differ
    varies: str  # what to say about it
    splits: dict
    recipe: list

    @property
    def peak(self):
        return self.plan["peak_after"]


def signature(args):
    """What a schedule depends on: shape, strides, type of tensors, and the other arguments."""
    return tuple(
        (tuple(t.shape), t.stride(), t.dtype) if isinstance(t, torch.Tensor) else t for t in args
    )


def compile_call(text, namespace, owner, filename):
    """The function of a realized text, in the module's namespace, so that kernels are its own."""
    import linecache

    local = {}
    exec(compile(text, filename, "exec"), namespace, local)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    function = local["call"]
    return types.MethodType(function, owner) if owner is not None else function


class Clock:
    """Adds up the seconds of named phases."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.last = time.perf_counter()

    def lap(self, name):
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self.last
        self.last = now


class Optimizer:
    """Carries one program through all steps. `stock` is the callable that Inductor made."""

    def __init__(self, name, text, namespace, stock, options):
        self.options = options
        self.namespace = namespace
        self.stock = stock
        self.owner = getattr(stock, "__self__", None)
        self.spread = {}  # statement -> lowest and highest work, where these differ
        self.varies = ""  # what to say about it
        self.report = Report(name)
        self.result = Result(self.report, text)

    def run(self, args):
        """Returns the Result; never raises for a program that cannot be handled."""
        report = self.report
        clock = Clock(report.seconds)
        try:
            with torch.no_grad(), verify.random_state() as state:
                self.state = state
                self.steps(args, clock)
        except Refusal as e:
            self.refuse(str(e), e.line)
        except meters.MeterError as e:
            self.refuse(f"the measurement failed: {e}")
        except Exception as e:
            self.refuse(f"{type(e).__name__}: {e}")
        return self.result

    def refuse(self, reason, line=None):
        self.report.state = "refused"
        self.report.reason = reason
        self.report.line = line
        self.result.function = None

    def note(self, text):
        """Adds to the report's reason."""
        self.report.reason = f"{self.report.reason}; {text}" if self.report.reason else text

    def steps(self, args, clock):
        held = verify.held_arguments(args)
        source = split(self.result.source_text)
        self.report.kind = source.aot_id.split("_", 1)[-1] if "_" in source.aot_id else ""
        if source.arguments and len(source.arguments) != len(args):
            raise Refusal("number of arguments differs from the source")
        verify.check_arguments(args)
        self.result.signature = signature(args)
        originals = list(args)
        self.meter = self.choose_meter()
        self.report.meter = self.meter.name
        self.profiler(source, held)  # refuses what it does not know before anything runs
        clock.lap("split")
        for _ in range(WARM_UPS):
            self.measure(self.stock, originals, held)
        clock.lap("warm up")
        plain = self.variant(source, originals, held)
        self.report.stock_peak_modelled = plain.model.stock_peak
        clock.lap("profile and plan")
        self.improve(plain, originals, held)
        clock.lap("realize and verify")
        if self.options.inspect is not None:
            self.options.inspect(self, originals, held)
        del originals
        self.decide()

    def variant(self, source, originals, held, splits=None, recipe=None, original=None):
        """Profiles and plans a source, made of the program's by `splits`, and by `recipe` from
        `original`."""
        self.spread, self.varies = {}, ""
        profile = self.profile(source, originals, held)
        model = models.build(source, profile, self.report.name)
        if recipe:
            remat.mark(model, recipe, original)
        plan = self.plan(source, model)
        return Variant(
            source, profile, model, plan, self.spread, self.varies, splits or {}, recipe or []
        )

    def improve(self, plain, originals, held):
        """Realizes and verifies the lowest variant that the options allow."""
        r, options = self.report, self.options
        fixed = all(isinstance(t, torch.Tensor) for t in originals)
        splits = reuse.candidates(plain.source, plain.profile) if fixed else {}
        r.reuses = len(splits)
        base = best = plain
        if (options.split_reuse or options.recompute) and splits:
            source = split(reuse.apply(plain.source.text, splits))
            base = self.variant(source, originals, held, splits)
            best = base if base.peak < plain.peak else plain
        if best is not plain:
            r.peak_without_splits = plain.peak
        if options.recompute and self.recompute(base, best, originals, held):
            return
        self.finish(best, originals, held)

    def finish(self, variant, originals, held):
        """Realizes and verifies."""
        self.result.splits, self.result.recipe = variant.splits, variant.recipe
        self.report.splits = len(variant.splits)
        self.adopt(variant.model, variant.plan)
        if variant.spread:
            self.note(variant.varies)
        self.realize(variant.source)
        self.check(originals, held)

    def choose_meter(self):
        return meters.meter()

    def measure(self, function, originals, held):
        torch.set_rng_state(self.state)
        return verify.run(function, originals, held, self.meter)

    def profile(self, source, originals, held):
        profiler = self.profiler(source, held)
        profiles = []
        for count in (2, MORE_PROFILES):
            for _ in range(count):
                torch.set_rng_state(self.state)
                profiles.append(profiler.run(originals))
            if any(p.comparable() != profiles[0].comparable() for p in profiles):
                raise Refusal("two profiles show different storages or effects")
            self.result.apart = verify.apart(source, profiles[0], originals)
            if all(p.work == profiles[0].work for p in profiles):
                return profiles[0]
        return self.reconcile(profiles)

    def profiler(self, source, held):
        return Profiler(source, self.namespace, held, self.meter, self.owner)

    def reconcile(self, profiles):
        """One profile of several whose work differs: the highest, if the difference cannot matter.

        Threads that each take scratch overlap differently from run to run. `spread` remembers by
        how much, for `settle`.
        """
        last = profiles[-1]
        for index in last.work:
            seen = [p.work[index] for p in profiles]
            last.work[index] = max(seen)
            if min(seen) != max(seen):
                self.spread[index] = (min(seen), max(seen))
        return last

    def settle(self, source, model, plan):
        """Refuses if a statement whose bytes vary, and twice as much, could set the peak."""
        if not self.spread:
            return
        program = model.program
        stock, permuted = core.simulate(program), core.simulate(program, plan["order"])
        step = {v: i for i, v in enumerate(plan["order"])}
        for index, (low, high) in self.spread.items():
            v = model.nodes.index(index)
            for facts, at in ((stock, v), (permuted, step[v])):
                if facts["step"][at] + high - low >= facts["peak"]:
                    s = source.statements[index]
                    raise Refusal(
                        f"its bytes depend on history or threads: {low} to {high}", s.line, s.text
                    )
        names = ", ".join(f"line {source.statements[i].line}" for i in sorted(self.spread))
        self.varies = f"scratch varies from run to run, below the peak: {names}"

    def plan(self, source, model):
        """The core's plan of a model."""
        plan = core.solve(
            model.program,
            self.options.time_limit,
            self.options.state_limit,
            hashlib.sha256(core.text_of(model.program).encode()).hexdigest(),
        )
        self.settle(source, model, plan)
        return plan

    def recompute(self, base, best, originals, held):
        """Realizes and verifies `base` with values made again, if that goes below `best`.

        Else False; nothing that goes wrong here harms the program without recomputation.
        """
        r = self.report
        before = dataclasses.replace(r)
        try:
            found = self.choose(base, originals)
            if found is None:
                return False
            before.curve, before.macs = r.curve, r.macs
            source = split(remat.expand(base.source, found.recipe))
            made = self.variant(source, originals, held, base.splits, found.recipe, base.source)
            if made.peak >= best.peak:
                raise Refusal("the peak is not lower")
            self.finish(made, originals, held)
        except Exception as e:
            for f in dataclasses.fields(r):
                setattr(r, f.name, getattr(before, f.name))
            what = str(e) if isinstance(e, Refusal) else f"{type(e).__name__}: {e}"
            self.note(f"not recomputed: {what}")
            return False
        self.note(self.recomputed(found, best))
        return True

    def choose(self, base, originals):
        """The core's answer if it has a lower peak; else None, and a note that says why."""
        r, plan = self.report, base.plan
        if not plan["optimal"]:
            raise Refusal("the order is not proved optimal")
        if base.peak == plan["floor"]:
            v = plan["floor_statement"]
            what = "what is there before it starts is"
            if v >= 0:
                what = f"line {base.model.program['statements'][v]['line']} alone needs"
            self.note(f"recomputation cannot help: {what} {base.peak:,} bytes")
            return None
        if not all(isinstance(t, torch.Tensor) for t in originals):
            raise Refusal("sizes are symbols")
        limits = {
            "time_limit": self.options.time_limit,
            "state_limit": self.options.state_limit,
            "cap": self.options.cap,
            "extra": self.options.max_extra_macs,
        }
        found = remat.best(base, self.namespace, limits)
        r.curve, r.macs = found.curve, found.macs
        if found.recipe is None:
            limited = ", within the time limit" if found.limited else ""
            self.note(f"recomputation found nothing{limited}")
            return None
        return found

    def recomputed(self, found, best):
        """What to say about it."""
        r, point = self.report, found.point
        r.recomputed = point["extra_runs"]
        r.extra_macs = point["extra_macs"]
        r.peak_without_recomputation = best.peak
        share = 100 * point["extra_macs"] / found.macs if found.macs else 0.0
        return (
            f"{point['extra_runs']} statements run again (+{share:.2g}% multiply-accumulates): "
            f"{best.peak:,} to {r.peak:,} bytes"
        )

    def adopt(self, model, plan):
        """Notes the model and the plan that are to be realized."""
        self.result.model = model
        r = self.report
        r.statements = len(model.program["statements"])
        r.storages = len(model.program["storages"])
        r.held_bytes = model.held_bytes
        r.original_order_peak = plan["peak_before"]
        r.peak = plan["peak_after"]
        for key in ("lower_bound", "optimal", "proof", "floor"):
            setattr(r, key, plan[key])
        self.result.certificate = plan["certificate"]
        self.result.order = models.statement_order(model, plan["order"])

    def realize(self, source):
        text = self.result.permuted_text = realize(source, self.result.order)
        filename = f"<peakproof {self.report.name}>"
        self.result.function = compile_call(text, self.namespace, self.owner, filename)

    def check(self, originals, held):
        r = self.report
        first = self.measure(self.stock, originals, held)
        second = self.measure(self.stock, originals, held)
        r.stock_peak_measured = second.peak
        if first.peak != second.peak:
            raise Refusal(
                f"stock's peak differs from run to run: {first.peak}, {second.peak} bytes"
            )
        if second.peak != r.stock_peak_modelled:
            raise Refusal(
                f"stock's peak is {second.peak} bytes, its model's {r.stock_peak_modelled}"
            )
        permuted = self.measure(self.result.function, originals, held)
        r.peak_measured = permuted.peak
        self.compare(first, second, permuted, originals, held)
        if self.result.splits or self.result.recipe:
            self.poison(first, second, originals, held)
        if permuted.peak != r.peak:
            raise Refusal(f"the permuted peak is {permuted.peak} bytes, its model's {r.peak}")

    def compare(self, first, second, permuted, originals, held):
        r = self.report
        unstable = set(first.difference(second))
        differs = set(first.difference(permuted)) - unstable
        for _ in range(MORE_STOCK_RUNS if differs else 0):
            unstable |= set(first.difference(self.measure(self.stock, originals, held)))
        differs -= unstable
        if differs:
            r.bitwise = "no"
            raise Refusal(f"results differ: {', '.join(sorted(differs))}")
        r.bitwise = "yes"
        if not unstable:
            return
        r.bitwise = "no"
        with verify.one_thread():
            first = self.measure(self.stock, originals, held)
            second = self.measure(self.stock, originals, held)
            permuted = self.measure(self.result.function, originals, held)
        if first.difference(second):
            names = ", ".join(first.difference(second))
            raise Refusal(f"stock differs from itself, with one thread too: {names}")
        if first.difference(permuted):
            raise Refusal(f"results differ: {', '.join(first.difference(permuted))}")
        r.bitwise = "yes with one thread"
        self.note(f"stock differs from itself with several threads: {', '.join(sorted(unstable))}")

    def poison(self, first, second, originals, held):
        """A fresh block must be filled before it is read: whatever lies in it changes nothing."""
        unstable = set(first.difference(second))
        for byte in (0x00, 0xFF):
            function = compile_call(
                self.result.permuted_text,
                reuse.poisoned(self.namespace, byte),
                self.owner,
                f"<peakproof {self.report.name} poisoned>",
            )
            found = self.measure(function, originals, held)
            differs = set(first.difference(found)) - unstable
            if differs:  # with several threads stock may differ from itself now and then
                with verify.one_thread():
                    stock = self.measure(self.stock, originals, held)
                    differs = stock.difference(self.measure(function, originals, held))
            if differs:
                raise Refusal(f"a new block is read before it is filled: {sorted(differs)}")

    def decide(self):
        r = self.report
        if r.peak_measured >= r.stock_peak_measured:
            r.state = "kept"
            self.note("stock is optimal" if r.optimal else "nothing better was found")
            self.result.function = None
        elif not self.options.install:
            r.state = "kept"
            self.note("not to be installed")
            self.result.function = None
        else:
            r.state = "installed"
