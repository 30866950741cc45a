"""Static: the model of a CUDA program from its text alone, where no device is.

The statements of `call` run on meta tensors: allocations, views and operators give shapes, kernels
do nothing. Splitting, effects, the model and realizing are the ones that a profile uses; only the
bytes come from shapes. What shapes do not tell is said in `notes`: the scratch that a library's
operator takes (counted as 0), and whether the caller holds an argument (by its name).
"""

import ast
import hashlib
from dataclasses import dataclass, field

import torch

from . import core
from . import model as models
from . import split as kinds
from .errors import Refusal
from .profile import Profile, Profiler
from .realize import realize
from .split import dotted, split

# By its name an argument is a parameter or an input, which the caller keeps; a backward's saved
# activations and gradients are not.
HELD = ("primals_", "arg")
LIBRARY = ("extern_kernels.", "torch.ops.", "aten.")
# What older releases compute a launch's grid with.
GRIDS = ("grid", "grid_combo_kernels", "split_scan_grid", "cooperative_reduction_grid")
HOST_ALLOCATORS = {"empty_strided_cpu", "empty_strided_cpu_pinned"}


@dataclass
class Argument:
    """An argument as `get_args` of the generated text makes it."""

    name: str
    shape: tuple
    stride: tuple
    dtype: object
    device: str


def arguments(source):
    """The Arguments (or numbers) that the text makes for its benchmark, in order.

    They stand in `get_args`, in older releases in `benchmark_compiled_module`. Raises Refusal.
    """
    functions = {n.name: n for n in ast.parse(source.text).body if isinstance(n, ast.FunctionDef)}
    function = functions.get("get_args") or functions.get("benchmark_compiled_module")
    if function is None:
        raise Refusal("the source does not say what its arguments are like")
    found = {}
    for stmt in function.body:
        if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
            name = stmt.targets[0].id
            try:
                found[name] = _argument(name, stmt.value)
            except (ValueError, KeyError, IndexError, AttributeError):
                if name in source.arguments:
                    raise Refusal("argument of an unknown form", stmt.lineno) from None
    missing = [name for name in source.arguments if name not in found]
    if missing:
        raise Refusal(f"{function.name} does not make {missing[0]}", function.lineno)
    return [found[name] for name in source.arguments]


def _argument(name, value):
    if not isinstance(value, ast.Call):
        return ast.literal_eval(value)
    if dotted(value.func) != "rand_strided":
        raise ValueError(name)
    shape, stride = (tuple(ast.literal_eval(a)) for a in value.args[:2])
    keywords = {k.arg: k.value for k in value.keywords}
    dtype = getattr(torch, dotted(keywords["dtype"]).removeprefix("torch."))
    return Argument(name, shape, stride, dtype, ast.literal_eval(keywords["device"]))


class Shapes:
    """Stands in for a meter: bytes are what shapes and strides say, host memory counts nothing."""

    def __init__(self):
        self.host = {}  # storage -> itself, so that it keeps its identity

    def start(self):
        pass

    begin = end = abort = start

    def stop(self):
        return []

    def bytes_of(self, storage):
        return 0 if storage._cdata in self.host else storage.nbytes()

    def on_host(self, tensor):
        storage = tensor.untyped_storage()
        self.host[storage._cdata] = storage
        return tensor


class _Nothing:
    """A kernel that does nothing, in either way of launching it."""

    def __call__(self, *args, **kwargs):
        pass

    run = __call__


class StaticProfiler(Profiler):
    """Runs a program on meta tensors. `originals` of `run` are Arguments and numbers."""

    devices = ("meta",)

    def __init__(self, source, held):
        self.scratch = []  # statements whose scratch shapes do not tell
        super().__init__(source, names(source), held, Shapes())
        for name in kinds.ALLOCATORS:
            self.namespace[name] = self.allocator(name in HOST_ALLOCATORS)

    def allocator(self, host):
        def empty_strided(size, stride, dtype=None, device=None):
            on_host = host or (device is not None and torch.device(device).type == "cpu")
            made = torch.empty_strided(size, stride, dtype=dtype, device="meta")
            return self.meter.on_host(made) if on_host else made

        return empty_strided

    def make(self, argument):
        if not isinstance(argument, Argument):
            return argument
        made = torch.empty_strided(
            argument.shape, argument.stride, dtype=argument.dtype, device="meta"
        )
        return self.meter.on_host(made) if argument.device == "cpu" else made

    def run(self, originals):
        """The Profile: as of a run, without readings, with no work."""
        made = [self.make(a) for a in originals]
        keep = [t for t, held in zip(made, self.held) if held]
        with torch.no_grad():
            self.steps(made)
        del keep
        for number in self.returned:
            self.storages[number].live_out = True
        values = {
            "storages": self.storages,
            "accesses": self.accesses,
            "work": {s.index: 0 for s in self.source.statements if s.kind == kinds.NODE},
            "ordered": {i for i, e in self.effects.items() if e.ordered},
            "readings": [],
            "tuples": self.tuples,
            "shapes": self.shapes,
            "bound": self.bound,
        }
        rest = set(Profile.__dataclass_fields__) - set(values)
        values |= {name: getattr(self, name) for name in rest}
        return Profile(**values)

    def step(self, s):
        if s.kind == kinds.ASSERT:
            return self.assertion(s)
        if s.kind == kinds.NODE and s.function.startswith(
            ("extern_kernels.", "torch.ops.", "aten.")
        ):
            self.scratch.append(s)
        try:
            super().step(s)
        except Refusal:
            raise
        except Exception as e:
            what = str(e).split("\n")[0]
            raise Refusal(
                f"no shape without a device: {type(e).__name__}: {what}", s.line, s.text
            ) from None
        if s.kind == kinds.NODE and s.targets:
            self.check_host(s)

    def check_host(self, s):
        """An operator's result lies where its arguments lie: on the device, all of them."""
        fresh = [a.storage for a in self.accesses[s.index] if self.made_here(a.storage, s)]
        others = [a.storage for a in self.accesses[s.index] if not self.made_here(a.storage, s)]
        host = any(self.keys[n] in self.meter.host for n in others if n in self.keys)
        if fresh and host:
            raise Refusal("work on the CPU within a CUDA program", s.line, s.text)

    def made_here(self, number, s):
        return self.storages[number].created == s.index

    def assertion(self, s):
        """Checks a size and strides against what the shapes gave; alignment is the device's."""
        if s.function != "assert_size_stride":
            return
        call = s.node.value
        tensor, size, stride = (self.expression(a) for a in call.args[:3])
        same = tuple(tensor.shape) == tuple(size) and all(
            n <= 1 or a == b for n, a, b in zip(size, tensor.stride(), stride)
        )
        if not same:
            raise Refusal(
                f"shapes give {tuple(tensor.shape)}, {tensor.stride()} without a device",
                s.line,
                s.text,
            )


def names(source):
    """The namespace that the statements of a generated program run in."""
    from torch._inductor.select_algorithm import extern_kernels

    made = {
        "torch": torch,
        "aten": torch.ops.aten,
        "prims": torch.ops.prims,
        "inductor_ops": torch.ops.inductor,
        "_quantized": torch.ops._quantized,
        "extern_kernels": extern_kernels,
        "device": lambda *a, **k: torch.device("meta"),
        "reinterpret_tensor": torch._C._dynamo.guards._reinterpret_tensor,
        "copy_if_misaligned": lambda t: t,  # arguments are aligned, or the device's run will tell
        "get_raw_stream": lambda index: 0,
        "math": __import__("math"),
    }
    for name in source.kernels:
        made[name] = _Nothing()
    for name in GRIDS:
        made[name] = _Nothing()
    return made


@dataclass
class Planned:
    """A program planned from its text. `order` lists statements of the source, `text` is the
    permuted `call`; peaks in bytes as modelled."""

    source: object
    profile: Profile
    model: models.Model
    plan: dict
    order: list
    text: str
    notes: list = field(default_factory=list)


def held_by_name(source):
    return [name.startswith(HELD) for name in source.arguments]


def plan(text, name="program", held=None, time_limit=10.0, state_limit=0):
    """Plans a generated CUDA program from its text. Raises Refusal with the line.

    `held`: for each argument whether the caller keeps it; None: as the names say.
    """
    source = split(text)
    if source.device is None:
        raise Refusal("not a CUDA program: no device guard")
    given = arguments(source)
    held = held_by_name(source) if held is None else list(held)
    # What is no tensor has nothing to hold.
    held = [h or not isinstance(a, Argument) for h, a in zip(held, given)]
    profiler = StaticProfiler(source, held)
    profile = profiler.run(given)
    model = models.build(source, profile, name)
    digest = hashlib.sha256(core.text_of(model.program).encode()).hexdigest()
    found = core.solve(model.program, time_limit, state_limit, digest)
    order = models.statement_order(model, found["order"])
    notes = [
        f"line {s.line}: the scratch of {s.function} is not known without a device, 0 is assumed"
        for s in profiler.scratch
        if "out" not in [k.arg for k in s.node.value.keywords]
    ]
    return Planned(source, profile, model, found, order, realize(source, order), notes)
