"""Device: CUDA programs on a CUDA device.

Everything is as on the CPU (pipeline.py) but for two things. Bytes are those that the program
requested of torch's caching allocator; CPU memory counts nothing. And since that allocator rounds,
splits and keeps blocks, an order that requests less may still take more: behind verification both
programs run from an empty cache, and stock stays unless the permuted one is better by what the
allocator itself counts.
"""

import contextlib
import dataclasses
import gc
import re

import torch

from . import meter as meters
from . import verify
from .errors import Refusal
from .pipeline import Optimizer
from .profile import Profiler

GUARD = re.compile(r"\bwith torch\.cuda\._DeviceGuard\((\d+)\):")
# The allocator's three counts, and the names that they have in torch.cuda.memory_stats.
COUNTS = {
    "requested": "requested_bytes.all",
    "allocated": "allocated_bytes.all",
    "reserved": "reserved_bytes.all",
}
REPEATS = 2  # runs of each program from an empty cache, in turn


def concerns(text):
    """Whether a generated source starts kernels on a CUDA device."""
    return GUARD.search(text) is not None


def graphs_wanted():
    """Whether what is compiled now is to be recorded as CUDA graphs."""
    from torch._inductor import config

    return bool(config.triton.cudagraphs)


def require(index):
    """Raises Refusal unless device `index` is there and its memory can be counted."""
    if not torch.cuda.is_available():
        raise Refusal("a CUDA program, and no CUDA device is here")
    if index >= torch.cuda.device_count():
        raise Refusal(f"a program for CUDA device {index}, which is not here")
    if torch.cuda.get_allocator_backend() != "native":
        raise Refusal("the CUDA allocator is not torch's own: it does not count requested bytes")
    if torch.cuda.is_current_stream_capturing():
        raise Refusal("a CUDA graph is being captured")


def require_arguments(args, index):
    """Raises Refusal if an argument lies on another device."""
    for t in args:
        if isinstance(t, torch.Tensor) and t.device.type == "cuda" and t.device.index != index:
            raise Refusal(f"argument on another device: {t.device}")


class Requested:
    """A meter (meter.py) of the bytes requested of the caching allocator of one device.

    The allocator counts on the host when a block is handed out or given back, so nothing has to be
    synchronized.
    """

    name = "cuda"

    def __init__(self, index):
        self.index = index

    def start(self):
        self._count("current")  # raises if it cannot: before anything is to be undone
        self._collect = gc.isenabled()
        gc.disable()
        self._base = self._count("current")
        self.readings = []

    def begin(self):
        torch.cuda.reset_peak_memory_stats(self.index)
        self._before = self._count("current")

    def end(self):
        highest, after = self._count("peak"), self._count("current")
        base = self._base
        self.readings.append(meters.Reading(self._before - base, highest - base, after - base))

    def stop(self):
        """The readings, one per interval."""
        self.abort()
        return self.readings

    def abort(self):
        if self._collect:
            gc.enable()

    def _count(self, which):
        return counts(self.index, which)["requested"]

    @staticmethod
    def bytes_of(storage):
        """The bytes that were requested for a storage; none of the device's for one of the CPU."""
        return storage.nbytes() if storage.device.type == "cuda" else 0


def counts(index, which):
    """{"requested": bytes, ...} of a device; `which` is "current" or "peak"."""
    stats = torch.cuda.memory_stats(index)
    try:
        return {name: stats[f"{key}.{which}"] for name, key in COUNTS.items()}
    except KeyError as e:
        raise meters.MeterError(f"torch.cuda.memory_stats has no {e}") from None


@contextlib.contextmanager
def random_state(index):
    """Leaves the device's generator as it was; yields its state."""
    state = torch.cuda.get_rng_state(index)
    try:
        yield state
    finally:
        torch.cuda.set_rng_state(state, index)


def figures(function, originals, held, index):
    """{"requested": bytes, ...}: peaks of one run on clones, from an empty cache.

    Above what exists when it is called, arguments that it may free among that.
    """
    collect = gc.isenabled()
    gc.disable()
    try:
        args = verify.clone(originals)
        keep = [t for t, h in zip(args, held) if h]
        torch.cuda.synchronize(index)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(index)
        before = counts(index, "current")
        outputs = function(args)
        torch.cuda.synchronize(index)
        peak = counts(index, "peak")
        del outputs, keep, args
        return {name: peak[name] - before[name] for name in COUNTS}
    finally:
        if collect:
            gc.enable()


def verdict(stock, permuted):
    """Why stock is to be kept, given figures of both; "" if the permuted program is better.

    Better: by no count worse, and the allocator handed out or reserved less.
    """
    for name in COUNTS:
        if permuted[name] > stock[name]:
            return (
                f"on the device the {name} peak would rise from {stock[name]:,} "
                f"to {permuted[name]:,} bytes"
            )
    if all(permuted[name] == stock[name] for name in ("allocated", "reserved")):
        return "fewer bytes are requested, but the allocator's rounding hides that"
    return ""


class DeviceProfiler(Profiler):
    """A Profiler whose statements run with the program's device as the current one."""

    devices = ("cpu", "cuda")

    def __init__(self, source, namespace, held, meter, owner, state):
        super().__init__(source, namespace, held, meter, owner)
        self.state = state

    def run(self, originals):
        torch.cuda.set_rng_state(self.state, self.source.device)
        with torch.cuda._DeviceGuard(self.source.device):
            return super().run(originals)


class DeviceOptimizer(Optimizer):
    """Carries one CUDA program through all steps. `graphs`: it is to become a CUDA graph.

    Whatever changes more than the order (reuses, recomputation) is left out.
    """

    def __init__(self, name, text, namespace, stock, options, graphs=False):
        off = {"split_reuse": False, "recompute": False}
        known = {f.name for f in dataclasses.fields(options)}
        options = dataclasses.replace(options, **{k: v for k, v in off.items() if k in known})
        super().__init__(name, text, namespace, stock, options)
        self.index = int(GUARD.search(text)[1])
        self.graphs = graphs

    def run(self, args):
        try:
            if self.graphs:
                raise Refusal("to be recorded as CUDA graphs, whose memory is a pool of their own")
            require(self.index)
            require_arguments(args, self.index)
        except Refusal as e:
            self.refuse(str(e))
            return self.result
        with random_state(self.index) as self.device_state:
            try:
                return super().run(args)
            finally:
                torch.cuda.empty_cache()  # of what profiling left behind

    def choose_meter(self):
        return Requested(self.index)

    def profiler(self, source, held):
        return DeviceProfiler(
            source, self.namespace, held, self.meter, self.owner, self.device_state
        )

    def measure(self, function, originals, held):
        torch.cuda.set_rng_state(self.device_state, self.index)
        return super().measure(function, originals, held)

    def check(self, originals, held):
        super().check(originals, held)
        self.report.reuses = 0  # nothing says what a triton kernel fills
        self.report.device = self.compare_figures(originals, held)

    def compare_figures(self, originals, held):
        """Peaks of stock and permuted by the allocator's counts: stock's least, permuted's most."""
        runs = {"stock": [], "permuted": []}
        for _ in range(REPEATS):
            for which, function in (("stock", self.stock), ("permuted", self.result.function)):
                torch.cuda.set_rng_state(self.device_state, self.index)
                runs[which].append(figures(function, originals, held, self.index))
        for which, found in runs.items():
            if any(f != found[0] for f in found):
                self.note(f"{which}'s peaks on the device depend on history")
        return {
            "name": torch.cuda.get_device_name(self.index),
            "stock": {c: min(f[c] for f in runs["stock"]) for c in COUNTS},
            "permuted": {c: max(f[c] for f in runs["permuted"]) for c in COUNTS},
        }

    def decide(self):
        super().decide()
        r = self.report
        stock, permuted = r.device["stock"], r.device["permuted"]
        if r.state == "installed":
            reason = verdict(stock, permuted)
            if reason:
                r.state = "kept"
                self.result.function = None
                self.note(reason)
            else:
                pairs = (f"{c} {stock[c]:,} to {permuted[c]:,}" for c in COUNTS)
                self.note(f"on {r.device['name']}: {', '.join(pairs)} bytes")
