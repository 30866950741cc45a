"""A CUDA device that is not there, for programs that Inductor generated for one.

Their statements run on CPU tensors: operators as they are, a triton kernel as a function that mixes
the bits of all it reads into all it writes. An order that runs a kernel before its input is made,
or after it was overwritten, gives other bits. `Device` answers for torch.cuda; its allocator counts
as PyTorch's does (c10/cuda/CUDACachingAllocator.cpp): blocks rounded up to 512 bytes, segments of 2
and 20 MiB, best fit, split and merged.
"""

import ast
import contextlib
import hashlib
import re

import numpy as np
import torch
from peakproof import device as devices
from peakproof import static
from peakproof.split import split
from torch._C._dynamo import guards
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

MIB = 1 << 20


def rounded(size, to):
    return -(-size // to) * to


class Block:
    def __init__(self, segment, offset, size):
        self.segment, self.offset, self.size, self.free = segment, offset, size, True


class Allocator:
    """Counts of a caching allocator. A segment is a list of its blocks, in their order."""

    def __init__(self):
        self.segments = []  # (small, blocks)
        self.now = dict.fromkeys(devices.COUNTS, 0)
        self.peak = dict(self.now)

    def count(self, name, bytes):
        self.now[name] += bytes
        self.peak[name] = max(self.peak[name], self.now[name])

    def allocate(self, size):
        need = max(512, rounded(size, 512))
        small = need <= MIB
        fits = [
            (b.size, i, b.offset, b)
            for i, (kind, blocks) in enumerate(self.segments)
            if kind == small
            for b in blocks
            if b.free and b.size >= need
        ]
        if not fits:
            whole = 2 * MIB if small else 20 * MIB if need < 10 * MIB else rounded(need, 2 * MIB)
            blocks = []
            block = Block(blocks, 0, whole)
            blocks.append(block)
            self.segments.append((small, blocks))
            self.count("reserved", whole)
        else:
            block = min(fits, key=lambda f: f[:3])[3]
        rest = block.size - need
        if rest >= 512 if small else rest > MIB:
            block.size = need
            other = Block(block.segment, block.offset + need, rest)
            block.segment.insert(block.segment.index(block) + 1, other)
        block.free = False
        self.count("requested", size)
        self.count("allocated", block.size)
        return block

    def release(self, block, size):
        block.free = True
        self.count("requested", -size)
        self.count("allocated", -block.size)
        blocks = block.segment
        i = blocks.index(block)
        for j in (i + 1, i):
            if 0 < j < len(blocks) and blocks[j].free and blocks[j - 1].free:
                blocks[j - 1].size += blocks.pop(j).size

    def empty_cache(self):
        for kind, blocks in list(self.segments):
            if len(blocks) == 1 and blocks[0].free:
                self.segments.remove((kind, blocks))
                self.count("reserved", -blocks[0].size)


class Device(TorchDispatchMode):
    """The one device, and the mode that sees every storage that an operator makes."""

    def __init__(self):
        super().__init__()
        self.allocator = Allocator()
        self.blocks = {}  # storage -> (weak reference, block, bytes)
        self.kernels = 0  # launched so far

    def sweep(self):
        for key, (reference, block, size) in list(self.blocks.items()):
            if reference.expired():
                del self.blocks[key]
                self.allocator.release(block, size)

    def see(self, storage):
        size, key = storage.nbytes(), storage._cdata
        self.sweep()
        if key not in self.blocks and size:
            self.blocks[key] = (StorageWeakRef(storage), self.allocator.allocate(size), size)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor):
                self.see(t.untyped_storage())
        return out

    # -- what torch.cuda answers -------------------------------------------------------------

    def memory_stats(self, index=None):
        self.sweep()
        stats = {}
        for name, key in devices.COUNTS.items():
            stats[key + ".current"] = self.allocator.now[name]
            stats[key + ".peak"] = self.allocator.peak[name]
        return stats

    def reset_peak_memory_stats(self, index=None):
        self.sweep()
        self.allocator.peak = dict(self.allocator.now)

    def empty_cache(self):
        self.sweep()
        self.allocator.empty_cache()

    def install(self, monkeypatch):
        """Puts the device behind torch.cuda."""

        @contextlib.contextmanager
        def guard(index):
            yield

        answers = {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "get_device_name": lambda index=None: "a device that is not there",
            "get_allocator_backend": lambda: "native",
            "is_current_stream_capturing": lambda: False,
            "get_rng_state": lambda index=None: torch.get_rng_state(),
            "set_rng_state": lambda state, index=None: None,
            "synchronize": lambda index=None: None,
            "set_device": lambda index: None,
            "_DeviceGuard": guard,
            "memory_stats": self.memory_stats,
            "reset_peak_memory_stats": self.reset_peak_memory_stats,
            "empty_cache": self.empty_cache,
        }
        for name, answer in answers.items():
            monkeypatch.setattr(torch.cuda, name, answer)
        known = self.blocks

        def bytes_of(storage):
            return storage.nbytes() if storage._cdata in known else 0

        monkeypatch.setattr(devices.Requested, "bytes_of", staticmethod(bytes_of))
        return self


# -- programs --------------------------------------------------------------------------------


class Kernel:
    """Mixes the bits of what a triton kernel reads into what it writes, by Inductor's names."""

    def __init__(self, name, source, device):
        self.name, self.device = name, device
        # Helpers come first, the kernel last.
        function = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)][-1]
        self.names = [a.arg for a in function.args.args if a.annotation is None]
        found = re.search(r"'mutated_arg_names': (\[.*?\])", source)
        self.mutated = ast.literal_eval(found[1]) if found else None

    def run(self, *args, stream, grid=None):
        self.device.kernels += 1
        with torch._C._DisableTorchDispatch():
            self.mix(dict(zip(self.names, args)))

    def mix(self, given):
        tensors = {n: t for n, t in given.items() if isinstance(t, torch.Tensor)}
        h = hashlib.blake2b(self.name.encode())
        for name, value in given.items():
            if name not in tensors:
                h.update(repr(value).encode())
            elif self.mutated is None or name.startswith("in_") or name in self.mutated:
                h.update(value.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        for name, value in tensors.items():
            if self.mutated is None or not name.startswith("in_ptr"):
                h.update(name.encode())
                random = np.random.default_rng(int.from_bytes(h.digest()[:8], "little"))
                bits = torch.from_numpy(random.random(tuple(value.shape)))
                value.copy_(bits * 2 - 1 if value.is_floating_point() else bits * 4)


class Extern:
    """torch's operators, on the CPU; a convolution's result has the strides that a device gives."""

    def __init__(self, extern_kernels):
        self.extern_kernels = extern_kernels

    def __getattr__(self, name):
        return getattr(self.extern_kernels, name)

    def convolution(self, *args, **kwargs):
        with torch._C._DisableTorchDispatch():
            value = self.extern_kernels.convolution(*args, **kwargs)
            args, kwargs = tree_map_only(torch.Tensor, lambda t: t.to("meta"), (args, kwargs))
            shape = self.extern_kernels.convolution(*args, **kwargs)
        out = torch.empty_strided(shape.shape, shape.stride(), dtype=shape.dtype)
        with torch._C._DisableTorchDispatch():
            return out.copy_(value)


def program(text, device):
    """(namespace, call) of a generated text: its `call` alone, everything else is stood in for."""
    source = split(text)
    namespace = static.names(source)

    def empty_strided_cuda(size, stride, dtype):
        return torch.empty_strided(size, stride, dtype=dtype).zero_()

    namespace |= {
        "empty_strided_cuda": empty_strided_cuda,
        "extern_kernels": Extern(namespace["extern_kernels"]),
        "copy_if_misaligned": guards.copy_if_misaligned,
        "assert_size_stride": guards.assert_size_stride,
        "assert_alignment": guards.assert_alignment,
        "device": lambda *a, **k: torch.device("cpu"),
    }
    for name, kernel in source.kernels.items():
        namespace[name] = Kernel(name, kernel.source, device)
    tree = ast.parse(text)
    keep = [n for n in tree.body if getattr(n, "name", None) in ("Runner", "call")]
    exec(compile(ast.Module(keep, []), "<generated>", "exec"), namespace)
    if source.method:
        return namespace, namespace["Runner"](partitions=[]).call
    return namespace, namespace["call"]


def tensors(text, seed=0):
    """Arguments like those of `get_args`, on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for a in static.arguments(split(text)):
        if not isinstance(a, static.Argument):
            made.append(a)
            continue
        t = torch.empty_strided(a.shape, a.stride, dtype=a.dtype)
        if a.dtype.is_floating_point:
            t.copy_(torch.rand(a.shape, generator=generator) * 2 - 1)
        else:
            t.copy_(torch.randint(0, 2, a.shape, generator=generator))
        made.append(t)
    return made
