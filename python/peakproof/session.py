"""Sessions: which programs are optimized, and what came of it."""

import contextlib
import json
import logging
import os
import re
import threading
import weakref

import torch

from . import device, saved
from . import meter as meters
from . import model as models
from .errors import Refusal
from .pipeline import Optimizer, Options, Report, Result, compile_call, signature
from .verify import Apart

log = logging.getLogger("peakproof")

AOT_ID = re.compile(r"# AOT ID: \['\d+_(\w+)'\]")
# Programs with symbolic sizes get a schedule for each of so many shapes, then run stock.
MAX_SHAPES = 8
# Profiles that other threads' calls of this session disturb are tried again, this often in all.
TRIES = 5


class Dispatcher:
    """Stands in for a program's `call`: optimizes it at the first call, then runs what won.

    A schedule belongs to one input shape. A program without symbols has one shape, which its own
    guards check; one with symbols is looked up by its signature at every call.
    """

    def __init__(self, session, module, text):
        self.session = session
        self.module = module
        self.text = text
        self.stock = module.call
        self.function = None
        self.shapes = None
        self.tries = 0
        self.name = None
        self.graphs = device.graphs_wanted()

    def __call__(self, args):
        function, session = self.function, self.session
        if function is None or session.run_stock or session.optimizing is not None:
            function = self.choose(args)
        return function(args)

    def choose(self, args):
        if self.session.optimizing not in (None, threading.get_ident()):
            self.session.disturbances += 1
        if self.session.run_stock:
            return self.stock
        if self.function is not None:
            return self.function
        if self.shapes is None:
            fixed = all(isinstance(a, torch.Tensor) for a in args)
            if fixed:
                return self.first(args)
            self.shapes = {}
        try:
            key = signature(args)
            hash(key)
        except Exception:  # arguments that no schedule is made for
            return self.stock
        if key in self.shapes:
            return self.shapes[key]
        return self.stock if len(self.shapes) >= MAX_SHAPES else self.first(args, key)

    def first(self, args, key=None):
        """Optimizes, unless another thread is at it: then this call runs stock."""
        session = self.session
        if not session.lock.acquire(blocking=False):
            return self.stock
        outer, session.optimizing = session.optimizing, threading.get_ident()
        try:
            found = self.function if key is None else self.shapes.get(key)
            if found is None:
                before = session.disturbances
                result = session.optimize(self, args)
                found = self.stock if result.function is None else self.guarded(result)
                if result.report.state == "refused" and session.disturbances != before:
                    self.tries += 1
                    if self.tries < TRIES:
                        return self.stock  # memory of other threads' calls: again at a later call
                session.add(result)
                if key is None:
                    self.function = found
                else:
                    self.shapes[key] = found
            return found
        finally:
            session.optimizing = outer
            session.lock.release()

    def guarded(self, result):
        """The permuted function, behind a check of the arguments if it writes some."""
        function, apart, stock = result.function, result.apart, self.stock
        if apart is None:
            return function
        return lambda args: (function if apart.holds(args) else stock)(args)


class ModuleView:
    """A generated module with another `call`; everything else is the module's own.

    The module itself stays as it is: Inductor hands one module to several compilations.
    """

    def __init__(self, module, call):
        self.__dict__["_module"] = module
        self.__dict__["call"] = call

    def __getattr__(self, name):
        return getattr(self.__dict__["_module"], name)

    def __setattr__(self, name, value):
        setattr(self.__dict__["_module"], name, value)


class Session:
    """Programs that were compiled while it was active, each with its result.

    Options: see peakproof.optimize. `results` holds a pipeline.Result for each, by first call.
    """

    def __init__(self, **options):
        self.options = Options(**options)
        self.results = []
        self.counts = {}  # kind -> number of the last program
        self.run_stock = False
        self.lock = threading.RLock()
        self.optimizing = None  # the thread that optimizes a program now
        self.disturbances = 0  # calls of other threads while one did
        _sessions.add(self)

    def wrap(self, module, text):
        return ModuleView(module, Dispatcher(self, module, text))

    def name_for(self, text):
        """A name like 0_forward: the kind, and how many of it came before.

        The number in a source is not used: a cached source has that of another process.
        """
        match = AOT_ID.match(text)
        kind = match[1] if match else "program"
        number = self.counts[kind] = self.counts.get(kind, -1) + 1
        return f"{number}_{kind}"

    def optimize(self, dispatcher, args):
        """The Result of one program for the arguments of a call, which stay as they are."""
        name = dispatcher.name or self.name_for(dispatcher.text)
        dispatcher.name = name if all(isinstance(a, torch.Tensor) for a in args) else None
        module = dispatcher.module
        given = (name, dispatcher.text, module.__dict__, dispatcher.stock, self.options)
        if device.concerns(dispatcher.text):
            return device.DeviceOptimizer(*given, graphs=dispatcher.graphs).run(args)
        return Optimizer(*given).run(args)

    def add(self, result):
        self.results.append(result)
        r = result.report
        if r.state == "refused":
            log.warning("%s stays as it is: %s", r.name, r.reason)
        elif r.state == "installed":
            log.info("%s: peak %d to %d bytes", r.name, r.stock_peak_measured, r.peak_measured)

    # -- what a session shows ----------------------------------------------------------------

    def table(self):
        """A table of all programs as text. Sizes in bytes, without what the caller holds."""
        head = [
            "program",
            "statements",
            "stock",
            "peak",
            "bound",
            "proof",
            "bitwise",
            "held",
            "state",
        ]
        rows = [head]
        for r in (x.report for x in self.results):
            numbers = [r.stock_peak_measured, r.peak_measured, r.lower_bound]
            sizes = [f"{n:,}" if n is not None else "-" for n in numbers]
            held = f"{r.held_bytes:,}" if r.held_bytes is not None else "-"
            proof = r.proof if r.optimal else "none"
            rows.append([r.name, str(r.statements), *sizes, proof, r.bitwise, held, r.state])
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        left = {0, 5, 6, 8}
        lines = []
        for row in rows:
            cells = [
                c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))
            ]
            lines.append("  ".join(cells).rstrip())
        notes = [
            f"{r.name}: {r.reason}"
            for r in (x.report for x in self.results)
            if r.reason and r.reason != "stock is optimal"
        ]
        used = {r.meter for r in (x.report for x in self.results) if r.meter}
        if "profiler" in used:
            notes.append(
                "memtrace is not preloaded: scratch that bypasses torch's allocator is not seen"
            )
        return "\n".join(lines + notes) + "\n"

    def save(self, directory):
        """Writes programs, certificates, permuted sources and reports into `directory`."""
        saved.save(self.results, directory, torch.__version__)

    def why(self, name=None, stock=False):
        """Explains the peak of one or all programs (text)."""
        from .why import explain, lever

        out = []
        for r in self.results:
            if name not in (None, r.report.name):
                continue
            if r.order is None:
                out.append(f"{r.report.name}: refused: {r.report.reason}\n")
                continue
            order = None if stock else models.program_order(r.model.nodes, r.order)
            out.append(explain(r.model.program, order, r.source_text))
            if not stock:
                out[-1] += "  " + lever(vars(r.report)) + "\n"
        return "\n".join(out)

    @contextlib.contextmanager
    def stock(self):
        """Inside, every program of this session runs as Inductor made it."""
        before, self.run_stock = self.run_stock, True
        try:
            yield self
        finally:
            self.run_stock = before

    def step_peaks(self, step):
        """Peaks of a whole step (a function without arguments), stock and permuted.

        Bytes above what exists before the step. Runs it once to optimize, then twice each way. The
        step decides itself what state it leaves behind.
        """
        step()
        with self.stock():
            before = _step_peak(step, self.meter())
        after = _step_peak(step, self.meter())
        return {"stock": before, "permuted": after, "meter": self.meter().name}

    def meter(self):
        """What counts a step: a device's bytes if any of the programs ran on one."""
        on = [r.report.meter for r in self.results]
        return device.Requested(torch.cuda.current_device()) if "cuda" in on else meters.meter()

    def __enter__(self):
        activate(self)
        return self

    def __exit__(self, *exception):
        self.close()
        return False

    def close(self):
        """Programs compiled from now on are not this session's. Those that it has stay."""
        deactivate(self)


def _step_peak(step, meter):
    step()
    meter.start()
    try:
        meter.begin()
        step()
        meter.end()
        reading = meter.stop()[0]
    except BaseException:
        meter.abort()
        raise
    return reading.highest - reading.before


class LoadedSession(Session):
    """Applies saved schedules without profiling where source, shapes and torch are the same."""

    def __init__(self, programs):
        super().__init__()
        self.programs = {}
        for p in programs:
            self.programs.setdefault(p.entry["source"], []).append(p)

    def optimize(self, dispatcher, args):
        name = self.name_for(dispatcher.text)
        result = Result(Report(name), dispatcher.text)
        report = result.report
        try:
            found = self.find(dispatcher.text, args)
            if found.entry["state"] != "installed":
                report.state, report.reason = "kept", f"saved as {found.entry['state']}"
            else:
                self.apply(found, dispatcher, result, args)
        except Refusal as e:
            report.state, report.reason, report.line = "refused", str(e), e.line
        except Exception as e:
            report.state = "refused"
            report.reason = f"the saved session is damaged: {type(e).__name__}: {e}"
            result.function = None
        return result

    def find(self, text, args):
        candidates = self.programs.get(saved.source_hash(text))
        if not candidates:
            raise Refusal("the saved session has no program with this source")
        shapes = json.loads(json.dumps(saved.plain_signature(signature(args))))
        for p in candidates:
            if p.entry.get("signature") == shapes:
                return p
        if all(p.entry["state"] == "refused" for p in candidates):
            return candidates[0]
        raise Refusal("the saved session has this program for other argument sizes")

    def apply(self, found, dispatcher, result, args):
        text = found.text(dispatcher.text)
        stock = dispatcher.stock
        result.permuted_text = text
        if found.entry["apart"] is not None:
            result.apart = Apart(**found.entry["apart"])
            result.apart.holds(args)  # raises if the file is damaged
        result.function = compile_call(
            text,
            dispatcher.module.__dict__,
            getattr(stock, "__self__", None),
            f"<peakproof {result.report.name}>",
        )
        for key, value in found.report.items():
            if hasattr(result.report, key) and key != "name":
                setattr(result.report, key, value)
        result.report.reason = "from a saved session"


_active = []
_original = None
_sessions = weakref.WeakSet()


def _after_fork():
    """A thread that held a session's lock does not exist in the child."""
    for session in _sessions:
        session.lock = threading.RLock()
        session.optimizing = None


os.register_at_fork(after_in_child=_after_fork)


def activate(session):
    """Programs that become modules from now on belong to `session`, the newest one first."""
    _install_hook()
    _active.append(session)


def deactivate(session):
    if session in _active:
        _active.remove(session)


@contextlib.contextmanager
def active(session):
    activate(session)
    try:
        yield session
    finally:
        deactivate(session)


def _install_hook():
    """Wraps the one function through which fresh and cached programs become modules."""
    global _original
    if _original is not None:
        return
    from torch._inductor.codecache import PyCodeCache

    _original = PyCodeCache.load_by_key_path.__func__

    def load_by_key_path(cls, key, path, *args, **kwargs):
        module = _original(cls, key, path, *args, **kwargs)
        if not _active or not hasattr(module, "call"):
            return module
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if not text.startswith("# AOT ID:"):
            log.warning("a program stays as it is: it is not Python text (cpp_wrapper): %s", path)
            return module
        return _active[-1].wrap(module, text)

    PyCodeCache.load_by_key_path = classmethod(load_by_key_path)
