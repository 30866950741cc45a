"""Meters: count the bytes that exist while something runs.

A meter yields, for each interval between `begin` and `end`, a Reading: bytes before, highest bytes
during and bytes after, all relative to `start`. Two kinds:

- Memtrace reads the preloaded library (memtrace/): every aligned block, requested sizes.
- Profiler uses torch's memory events: the allocator's own blocks, not scratch that bypasses it.
"""

import ctypes
import gc
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """Bytes relative to the meter's start."""

    before: int
    highest: int
    after: int


class MeterError(Exception):
    """The measurement is worthless; the message says why."""


def _library():
    library = ctypes.CDLL(None)
    try:
        if library.pp_memtrace_version() != 1:
            return None
    except AttributeError:
        return None
    for name in ("current", "blocks", "allocations", "lost", "size", "peak"):
        getattr(library, "pp_memtrace_" + name).restype = ctypes.c_int64
    library.pp_memtrace_size.argtypes = [ctypes.c_void_p]
    for name in ("peak", "reset", "close"):
        getattr(library, "pp_memtrace_" + name).argtypes = [ctypes.c_int]
    return library


LIBRARY = _library()


def preloaded():
    """Whether memtrace counts in this process."""
    return LIBRARY is not None


class Memtrace:
    """Reads the preloaded library. Raises MeterError if blocks were lost."""

    name = "memtrace"

    def start(self):
        self._collect = gc.isenabled()
        gc.disable()
        self._interval = LIBRARY.pp_memtrace_open()
        if self._interval < 0:
            self._resume()
            raise MeterError("all intervals of memtrace are in use")
        self._lost = LIBRARY.pp_memtrace_lost()
        self._base = LIBRARY.pp_memtrace_current()
        self.readings = []

    def begin(self):
        LIBRARY.pp_memtrace_reset(self._interval)
        self._before = LIBRARY.pp_memtrace_current()

    def end(self):
        after = LIBRARY.pp_memtrace_current()
        highest = LIBRARY.pp_memtrace_peak(self._interval)
        base = self._base
        self.readings.append(Reading(self._before - base, highest - base, after - base))

    def stop(self):
        """The readings, one per interval."""
        lost = LIBRARY.pp_memtrace_lost() - self._lost
        self.abort()
        if lost:
            raise MeterError(f"memtrace could not record {lost} blocks")
        return self.readings

    def abort(self):
        LIBRARY.pp_memtrace_close(self._interval)
        self._resume()

    def _resume(self):
        if self._collect:
            gc.enable()

    @staticmethod
    def bytes_of(storage):
        """The bytes that were requested for a storage that the allocator made."""
        size = LIBRARY.pp_memtrace_size(storage.data_ptr())
        return size if size >= 0 else storage.nbytes()


class Profiler:
    """Uses the memory events of torch.profiler."""

    name = "profiler"
    MARK = "peakproof:"

    def start(self):
        import torch

        if torch._C._autograd._profiler_enabled():
            raise MeterError("torch.profiler is in use; preload memtrace instead")
        self._collect = gc.isenabled()
        gc.disable()
        self._count = 0
        self._mark = None
        self._profile = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        )
        try:
            self._profile.__enter__()
        except BaseException:
            self._resume()
            raise

    def begin(self):
        import torch

        self._mark = torch.profiler.record_function(f"{self.MARK}{self._count}")
        self._mark.__enter__()

    def end(self):
        self._mark.__exit__(None, None, None)
        self._mark = None
        self._count += 1

    def stop(self):
        """The readings, one per interval."""
        profile = self._profile
        self.abort()
        return self._read(profile.profiler.kineto_results.experimental_event_tree())

    def abort(self):
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None
        try:
            self._profile.__exit__(None, None, None)
        finally:
            self._resume()

    def _resume(self):
        if self._collect:
            gc.enable()

    def _read(self, roots):
        """Sorts allocations and the ends of the marks by time and adds up."""
        marks, events, stack = {}, [], list(roots)
        while stack:
            e = stack.pop()
            stack.extend(e.children)
            name = e.name
            if name.startswith(self.MARK):
                marks[int(name[len(self.MARK) :])] = (e.start_time_ns, e.end_time_ns)
            elif name == "[memory]":
                events.append((e.start_time_ns, e.extra_fields.alloc_size))
        if len(marks) != self._count:
            raise MeterError("torch.profiler lost events")
        events.sort(key=lambda e: e[0])
        readings, now, i = [], 0, 0
        for k in range(self._count):
            start, end = marks[k]
            while i < len(events) and events[i][0] < start:
                now += events[i][1]
                i += 1
            before = highest = now
            while i < len(events) and events[i][0] <= end:
                now += events[i][1]
                highest = max(highest, now)
                i += 1
            readings.append(Reading(before, highest, now))
        return readings

    @staticmethod
    def bytes_of(storage):
        return storage.nbytes()


def meter():
    """The best meter that this process has."""
    return Memtrace() if preloaded() else Profiler()
