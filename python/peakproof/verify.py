"""Verify: run programs on clones of the real arguments and compare bit by bit."""

import contextlib
import ctypes
import hashlib
import sys
from dataclasses import dataclass

import torch

from .errors import Refusal

_INTEGER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def held_arguments(args):
    """For each argument whether somebody besides the list `args` holds it."""
    held = []
    for i in range(len(args)):
        t = args[i]
        if not isinstance(t, torch.Tensor):
            held.append(True)
            continue
        # References: the list, `t`, getrefcount's argument; to the storage: `t`, the object asked.
        alone = sys.getrefcount(t) <= 3 and t._use_count() <= 1
        if alone and t.layout == torch.strided:
            count = torch._C._storage_Use_Count(t.untyped_storage()._cdata)
            alone = count <= 2
        held.append(not alone)
    return held


def check_arguments(args):
    """Refuses arguments that cannot be cloned faithfully."""
    for t in args:
        if isinstance(t, torch.Tensor):
            plain = type(t) in (torch.Tensor, torch.nn.Parameter) and t.layout == torch.strided
            if not plain or t.device.type not in ("cpu", "cuda") or t.is_quantized:
                raise Refusal(f"argument that is not a plain tensor: {type(t).__name__}")
            if t.is_conj() or t.is_neg():
                raise Refusal("argument with a conjugate or negative bit")
        elif not isinstance(t, (int, float, bool)) and t is not None:
            raise Refusal(f"argument of an unknown type: {type(t).__name__}")


def clone(args):
    """Clones with the same strides, offsets and sharing of storages. A list."""
    made, out = {}, []
    for t in args:
        if not isinstance(t, torch.Tensor):
            out.append(t)
            continue
        storage = t.untyped_storage()
        if storage._cdata not in made:
            made[storage._cdata] = storage.clone()
        new = torch.empty(0, dtype=t.dtype, device=t.device)
        new.set_(made[storage._cdata], t.storage_offset(), t.shape, t.stride())
        out.append(new)
    return out


@dataclass
class Apart:
    """What an order takes for granted of arguments: those that it writes overlap no other.

    The compiler's guards let some calls through that break this (views of one tensor, for one).
    """

    extents: list  # bytes from each argument's first element to its last; 0 if it is no tensor
    written: list  # positions of those that the program writes
    shared: list  # [i, j], i < j: lay in one storage when the program was profiled

    def holds(self, args):
        """Whether the arguments of a call lie as they did, or further apart."""
        end = 0
        spans = [(args[i].data_ptr(), i) for i, size in enumerate(self.extents) if size]
        for start, i in sorted(spans):
            if start < end:
                return self.closely(dict(map(reversed, spans)))
            end = start + self.extents[i]
        return True

    def closely(self, starts):
        shared = {tuple(pair) for pair in self.shared}
        for i in self.written:
            for j in starts:
                if i in starts and i != j and (min(i, j), max(i, j)) not in shared:
                    first, second = sorted((i, j), key=starts.get)
                    if starts[first] + self.extents[first] > starts[second]:
                        return False
        return True


def apart(source, profile, originals):
    """The Apart of a profiled program, None if it writes no argument."""
    numbers = {a.storage for found in profile.accesses.values() for a in found if a.write}
    names = set()
    for storage in (profile.storages[n] for n in numbers):
        if storage.argument:
            names |= {storage.name, *storage.others}
    written = [i for i, name in enumerate(source.arguments) if name in names]
    if not written:
        return None
    tensors = {i: t for i, t in enumerate(originals) if isinstance(t, torch.Tensor)}
    keys = {i: t.untyped_storage()._cdata for i, t in tensors.items()}
    shared = [[i, j] for i in keys for j in keys if i < j and keys[i] == keys[j]]
    return Apart([extent(t) for t in originals], written, shared)


def extent(tensor):
    """Bytes from a strided tensor's first element to its last; 0 if there is none."""
    if not isinstance(tensor, torch.Tensor) or tensor.numel() == 0:
        return 0
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
    return (last + 1) * tensor.element_size()


def digest(tensor):
    """A digest of shape, strides, type and every bit of the elements."""
    if not isinstance(tensor, torch.Tensor):
        return repr(tensor)
    h = hashlib.blake2b(digest_size=20)
    t = tensor.detach()
    h.update(repr((tuple(t.shape), t.stride(), t.dtype)).encode())
    if t.layout != torch.strided:
        raise Refusal("output that is not strided")
    if t.numel():
        size = t.element_size()
        if size in _INTEGER:
            t = t.view(_INTEGER[size])
        else:  # complex128
            t = torch.view_as_real(t).view(torch.int64)
        h.update(t.contiguous().view(-1).view(torch.uint8).cpu().numpy())
    return h.hexdigest()


@contextlib.contextmanager
def random_state():
    """Leaves torch's generator as it was, and gives every run the same."""
    state = torch.get_rng_state()
    try:
        yield state
    finally:
        torch.set_rng_state(state)


@contextlib.contextmanager
def one_thread():
    """Runs parallel regions with one thread, those with a fixed number too."""
    before = torch.get_num_threads()
    levels = None
    openmp = _openmp()
    torch.set_num_threads(1)
    if openmp is not None:
        levels = openmp.omp_get_max_active_levels()
        openmp.omp_set_max_active_levels(0)
    try:
        yield
    finally:
        if openmp is not None:
            openmp.omp_set_max_active_levels(levels)
        torch.set_num_threads(before)


def _openmp():
    try:
        with open("/proc/self/maps") as f:
            for line in f:
                path = line.split()[-1]
                if "/libgomp" in path or "/libiomp5" in path:
                    return ctypes.CDLL(path)
    except OSError:
        pass
    return None


class Outcome:
    """Digests of outputs and of arguments after a run, and the run's reading of the meter."""

    def __init__(self, outputs, arguments, reading):
        self.outputs = outputs
        self.arguments = arguments
        self.reading = reading

    @property
    def peak(self):
        return self.reading.highest - self.reading.before

    def difference(self, other):
        """Where two outcomes differ: a list of words, empty if bitwise equal."""
        found = []
        if len(self.outputs) != len(other.outputs):
            return ["number of outputs"]
        for i, (a, b) in enumerate(zip(self.outputs, other.outputs)):
            if a != b:
                found.append(f"output {i}")
        for i, (a, b) in enumerate(zip(self.arguments, other.arguments)):
            if a != b:
                found.append(f"argument {i}")
        return found


def run(function, originals, held, meter):
    """Runs `function` on fresh clones. Returns an Outcome.

    Arguments that are not held are handed over: the run may free them. The peak counts from the
    moment before the call, those arguments included.
    """
    meter.start()
    try:
        args = clone(originals)
        keep = [t if h else None for t, h in zip(args, held)]
        # Bytes of the arguments that are handed over exist before the run and count in its peak.
        handed = unheld_bytes(args, held, meter)
        meter.begin()
        outputs = function(args)
        meter.end()
        reading = meter.stop()[0]
    except BaseException:
        meter.abort()
        raise
    reading = type(reading)(reading.before - handed, reading.highest, reading.after)
    digests = [digest(t) for t in outputs]
    del outputs
    return Outcome(digests, [digest(t) if h else "" for t, h in zip(keep, held)], reading)


def unheld_bytes(args, held, meter):
    storages, kept = {}, set()
    for t, h in zip(args, held):
        if isinstance(t, torch.Tensor):
            s = t.untyped_storage()
            storages[s._cdata] = meter.bytes_of(s)
            if h:
                kept.add(s._cdata)
    return sum(size for key, size in storages.items() if key not in kept)
