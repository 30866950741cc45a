"""Profile: run a program statement by statement and see what it does to memory.

A storage is known by its object from its creation to its free, never by its address after a free
or by a name. Sizes are the requested bytes.
"""

import ast
from dataclasses import dataclass, field

import torch

from . import split as kinds
from .effects import effect_of
from .errors import Refusal
from .macs import macs_of, macs_of_kernel
from .reuse import shape_text
from .verify import clone, digest

# An access by ranges is written out piece by piece up to this many pieces, else as one extent.
MAX_PIECES = 32


@dataclass
class Storage:
    """One block. Moments are indices of statements; `held`: the caller or the module keeps it."""

    name: str
    bytes: int
    held: bool = False
    argument: bool = False
    live_in: bool = False
    live_out: bool = False
    created: int = -1  # the statement that created it
    freed: int = -1  # the statement behind which no name is left
    others: list = field(default_factory=list)  # later names of the same block: views, reuses


@dataclass
class Access:
    """A statement's access to a storage, in bytes of the storage; no ranges: all of it."""

    storage: int
    write: bool
    ranges: tuple = ()


@dataclass
class Profile:
    """What one run showed. `accesses[i]` and `work[i]` belong to statement i (nodes only)."""

    storages: list
    accesses: dict
    work: dict
    ordered: set
    readings: list  # one per statement
    tuples: set  # indices of nodes whose result is a tuple
    shapes: dict  # alias statement -> the arguments of an allocation like it, as text
    bound: dict  # alias statement -> its storage
    macs: dict  # node -> its multiply-accumulates, or None

    def comparable(self):
        """What two profiles of one program must agree on."""
        return (
            [(s.name, s.bytes, s.held, s.live_in, s.live_out, s.created) for s in self.storages],
            self.accesses,
            self.ordered,
            self.tuples,
        )


def pieces(tensor):
    """The byte ranges of its storage that a strided tensor occupies; one if they are too many."""
    if tensor.numel() == 0:
        return ()
    item = tensor.element_size()
    dims = sorted((stride, size) for size, stride in zip(tensor.shape, tensor.stride()) if size > 1)
    block = 1  # elements that lie together
    while dims and dims[0][0] <= block:
        stride, size = dims.pop(0)
        block = stride * (size - 1) + block
    starts = [tensor.storage_offset()]
    for stride, size in dims:
        if len(starts) * size > MAX_PIECES:
            low = tensor.storage_offset()
            high = low + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1
            return ((low * item, high * item),)
        starts = [s + stride * k for s in starts for k in range(size)]
    return tuple((s * item, (s + block) * item) for s in sorted(starts))


class Profiler:
    """Runs one program. `held[i]` says whether the caller holds argument i."""

    devices = ("cpu",)  # whose storages are measured

    def __init__(self, source, namespace, held, meter, owner=None):
        self.source = source
        self.namespace = namespace
        self.held = held
        self.meter = meter
        self.owner = owner
        self.filename = namespace.get("__file__") or "<generated>"
        self.codes = {}
        self.effects = {}
        for s in source.statements:
            self.codes[s.index] = self.compile(s)
            if s.kind == kinds.NODE:
                self.effects[s.index] = effect_of(s, source, namespace)

    def compile(self, s):
        if s.kind == kinds.RETURN:
            body = ast.Expression(s.node.value)
            return compile(body, self.filename, "eval")
        body = ast.Module([s.node], [])
        return compile(body, self.filename, "exec")

    def expression(self, node):
        """The value of an argument expression, now."""
        if isinstance(node, ast.Constant):
            return node.value
        code = compile(ast.Expression(node), self.filename, "eval")
        return eval(code, self.namespace, self.env)

    def tensors(self, value):
        """The tensors in an argument's value."""
        if isinstance(value, torch.Tensor):
            return [value]
        if isinstance(value, (list, tuple)):
            return [t for v in value for t in self.tensors(v)]
        return []

    # -- storages ----------------------------------------------------------------------------

    def identify(self, tensor, name, statement, **fields):
        """The number of a tensor's storage, a new one if it is new. Held ones count 0 bytes."""
        plain = tensor.layout == torch.strided and not tensor.is_quantized
        if plain and tensor.device.type in self.devices:
            storage = tensor.untyped_storage()
            key, size = storage._cdata, self.meter.bytes_of(storage)
        else:  # packed weights of oneDNN, for one: constants only
            key, size = ("object", id(tensor)), 0
            if not fields.get("held") and key not in self.live:
                raise Refusal(
                    "tensor that has no plain CPU storage", statement.line, statement.text
                )
        found = self.live.get(key)
        if found is not None:
            self.storages[found].held |= fields.get("held", False)
            return found
        number = len(self.storages)
        self.storages.append(Storage(name, size, created=statement.index, **fields))
        self.live[key] = number
        self.keys[number] = key
        self.references[number] = 0
        return number

    def bind(self, name, value, statement, **fields):
        """A local name gets a value."""
        numbers = [self.identify(t, name, statement, **fields) for t in self.tensors(value)]
        for n in numbers:
            self.references[n] += 1
            if name not in (self.storages[n].name, *self.storages[n].others):
                self.storages[n].others.append(name)
        self.unbind(name, statement)
        self.names[name] = numbers
        return numbers

    def unbind(self, name, statement):
        for n in self.names.pop(name, ()):
            self.references[n] -= 1
            if self.references[n] == 0 and not self.storages[n].held:
                self.storages[n].freed = statement.index
                del self.live[self.keys[n]]

    # -- running -----------------------------------------------------------------------------

    def run(self, originals):
        """Runs the program on clones of the arguments. Returns a Profile."""
        # The meter starts first: it need not know blocks that are older than itself.
        self.meter.start()
        try:
            args = clone(originals)
            keep = [t for t, held in zip(args, self.held) if held]
            self.steps(args)
            readings = self.meter.stop()
        except BaseException:
            self.meter.abort()
            raise
        finally:
            self.env = None
        del keep
        for number in self.returned:
            self.storages[number].live_out = True
        ordered = {i for i, e in self.effects.items() if e.ordered}
        profile = Profile(
            self.storages,
            self.accesses,
            {},
            ordered,
            readings,
            self.tuples,
            self.shapes,
            self.bound,
            self.macs,
        )
        self.account(profile)
        return profile

    def steps(self, args):
        """Every statement, one by one. Empties `args`."""
        self.env = {self.source.parameter: args}
        if self.source.method:
            self.env["self"] = self.owner
        self.names, self.live, self.keys, self.references = {}, {}, {}, {}
        self.storages, self.accesses = [], {}
        self.module_storages = set()
        self.tuples, self.shapes, self.bound, self.macs = set(), {}, {}, {}
        for s in self.source.statements:
            self.step(s)

    def step(self, s):
        """One statement under the meter; what it did is noted outside of it."""
        effect = self.effects.get(s.index)
        watched = []
        if effect is not None:
            self.note_accesses(s, effect)
            if not effect.trusted:
                watched = [(node, self.digests(node)) for node in effect.reads]
        self.meter.begin()
        if s.kind == kinds.RETURN:
            result = eval(self.codes[s.index], self.namespace, self.env)
        else:
            result = None
            exec(self.codes[s.index], self.namespace, self.env)
        self.meter.end()
        for node, before in watched:
            if self.digests(node) != before:
                raise Refusal("writes an argument that its schema does not name", s.line, s.text)
        self.after(s, result)

    def digests(self, node):
        return [digest(t) for t in self.tensors(self.expression(node))]

    def after(self, s, result):
        if s.kind == kinds.NODE:
            self.macs[s.index] = self.count_macs(s)
        if s.kind == kinds.UNPACK:
            for name, held in zip(s.targets, self.held):
                fields = dict(held=held, live_in=True, live_out=held, argument=True)
                self.bind(name, self.env[name], s, **fields)
        elif s.kind == kinds.FREE:
            for name in s.uses:
                self.unbind(name, s)
        elif s.kind == kinds.RETURN:
            self.returned = [self.identify(t, "return", s) for t in self.tensors(result)]
            if any(self.storages[n].created == s.index for n in self.returned):
                raise Refusal("return creates a tensor", s.line, s.text)
        elif s.kind == kinds.NODE and not s.targets:
            self.check_names(s)
        elif s.targets:
            value = self.env[s.targets[0]]
            if s.kind == kinds.NODE:
                self.note_result(s, value)
                self.check_names(s)
            numbers = self.bind(s.targets[0], value, s)
            if s.kind == kinds.ITEM:
                for n in numbers:  # a part of a tuple gets its own name
                    if self.storages[n].name == s.uses[0]:
                        self.storages[n].name = s.targets[0]
                        self.storages[n].others.remove(s.targets[0])
            if s.kind == kinds.ALIAS and isinstance(value, torch.Tensor):
                self.shapes[s.index] = shape_text(value)
                self.bound[s.index] = numbers[0]
            if s.kind in (kinds.ALIAS, kinds.ITEM):
                created = [
                    n for n in self.names[s.targets[0]] if self.storages[n].created == s.index
                ]
                if created:
                    raise Refusal("binding creates a storage", s.line, s.text)

    def count_macs(self, s):
        if s.function in self.source.kernels:
            return macs_of_kernel(self.source.kernels[s.function].source)
        if s.function == "copy_if_misaligned" or s.function.endswith(".copy_"):
            return None
        args = [self.value(a) for a in s.node.value.args]
        kwargs = {k.arg: self.value(k.value) for k in s.node.value.keywords}
        result = self.env[s.targets[0]] if s.targets else kwargs.get("out")
        return macs_of(s.function, args, kwargs, result)

    def value(self, node):
        """An argument's value; lists of numbers and of names, too."""
        return eval(compile(ast.Expression(node), self.filename, "eval"), self.namespace, self.env)

    def check_names(self, s):
        """No operator may put another storage behind a tensor that it was given."""
        for name in s.uses:
            if name in s.targets:
                continue
            found = [self.identify(t, name, s) for t in self.tensors(self.env[name])]
            if found != self.names[name]:
                raise Refusal(f"changes the storage of {name}", s.line, s.text)

    def note_result(self, s, value):
        if isinstance(value, (tuple, list)):
            self.tuples.add(s.index)
        elif value is not None and not isinstance(value, torch.Tensor):
            raise Refusal("result that is not a tensor", s.line, s.text)
        for t in self.tensors(value):
            number = self.identify(t, s.targets[0], s)
            # Nothing says which bytes a new tensor's operator left out: all are written.
            self.accesses[s.index].append(Access(number, True))

    def note_accesses(self, s, effect):
        found = self.accesses[s.index] = []
        for nodes, write in ((effect.reads, False), (effect.writes, True)):
            for node in nodes:
                constants = self.constants(node, s)
                for t in self.tensors(self.expression(node)):
                    number = self.identify(t, "?", s)
                    storage = self.storages[number]
                    if storage.created == s.index and number not in constants:
                        raise Refusal("argument creates a storage", s.line, s.text)
                    if number in self.module_storages and write:
                        raise Refusal("writes a constant", s.line, s.text)
                    plain = not storage.live_in and t.layout == torch.strided
                    found.append(Access(number, write, pieces(t) if plain else ()))

    def constants(self, node, s):
        """Storages of the module's tensors that an expression names: held as long as it lives."""
        numbers = set()
        for n in ast.walk(node):
            if isinstance(n, ast.Name) and n.id not in self.env:
                value = self.namespace.get(n.id)
                if isinstance(value, torch.Tensor):
                    fields = dict(held=True, live_in=True, live_out=True)
                    numbers.add(self.identify(value, n.id, s, **fields))
        self.module_storages |= numbers
        return numbers

    def account(self, profile):
        """Work of every node; every byte must have a name."""
        for s in self.source.statements:
            r = profile.readings[s.index]
            created = sum(x.bytes for x in self.storages if x.created == s.index and not x.live_in)
            freed = sum(x.bytes for x in self.storages if x.freed == s.index)
            if r.after - r.before != created - freed:
                raise Refusal(
                    f"keeps {r.after - r.before - created + freed} bytes that no name shows",
                    s.line,
                    s.text,
                )
            if s.kind == kinds.NODE:
                profile.work[s.index] = r.highest - r.before - created
            elif r.highest > max(r.before, r.after):
                raise Refusal("binding needs memory of its own", s.line, s.text)
