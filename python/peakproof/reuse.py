"""Splitting a reuse: `buf15 = buf7; del buf7  # reuse` becomes a fresh allocation where it is safe.

Safe means: the first node that touches the new name only writes it, as a pure output that it fills,
and does not touch the old block otherwise. Then, in any order, the split program needs no more than
the reusing one at any step, and it has fewer dependences. Kernels and their arguments stay.
"""

import ast
import re

from . import split as kinds
from .effects import EXTERN
from .errors import Refusal

ALLOCATION = re.compile(r"(\w+) = empty_strided_cpu\(\([\d, ]*\), \([\d, ]*\), torch\.\w+\)")


def reuses(source):
    """(statement, old name) of every reuse: an alias, its base deleted on the same line."""
    for s, following in zip(source.statements, source.statements[1:]):
        if s.kind != kinds.ALIAS or following.kind != kinds.FREE or following.line != s.line:
            continue
        if len(s.uses) == 1 and following.uses == s.uses:
            yield s, s.uses[0]


def first_user(source, s):
    """The first statement that uses the name that `s` binds, not counting assertions."""
    for later in source.statements[s.index + 1 :]:
        if s.targets[0] in later.uses and later.kind not in (kinds.ASSERT, kinds.FREE):
            return later
    return None


def fills(source, node, name):
    """Whether a node takes `name` once, as an output that it fills without reading it."""
    call = node.node.value
    uses = [n for n in ast.walk(node.node) if isinstance(n, ast.Name) and n.id == name]
    if len(uses) != 1:
        return False
    if node.function in source.kernels:
        return _kernel_fills(source.kernels[node.function], call, name)
    if node.function.startswith("extern_kernels.") and node.function.split(".", 1)[1] in EXTERN:
        return any(
            k.arg == "out" and isinstance(k.value, ast.Name) and k.value.id == name
            for k in call.keywords
        )
    return False


def _kernel_fills(kernel, call, name):
    from .effects import c_parameters

    if kernel.language != "cpp":
        return False
    parameters = c_parameters(kernel.source)
    if len(parameters) != len(call.args):
        return False
    places = [i for i, a in enumerate(call.args) if isinstance(a, ast.Name) and a.id == name]
    if len(places) != 1 or not re.fullmatch(r"out_ptr\d+", parameters[places[0]]):
        return False
    pointer = re.escape(parameters[places[0]])
    body = kernel.source.split("{", 1)[1] if "{" in kernel.source else ""
    stores = rf"\.store\({pointer} \+|(?<![\w\]]){pointer}\[[^;=]*\] = "
    stores += rf"|transpose_mxn<[^;]*>\(\w+, [^,;]*, {pointer} \+"  # its third argument
    return len(re.findall(rf"\b{pointer}\b", body)) == len(re.findall(stores, body)) > 0


def shape_text(tensor):
    def tuple_text(values):
        return (
            "(" + "".join(f"{v}, " for v in values).rstrip(" " if len(values) == 1 else ", ") + ")"
        )

    return f"{tuple_text(tuple(tensor.shape))}, {tuple_text(tensor.stride())}, {tensor.dtype}"


def candidates(source, profile):
    """{line: (old text, new text)} of the reuses that may be split, from a profile with shapes."""
    found = {}
    for s, _ in reuses(source):
        user = first_user(source, s)
        tensor = profile.shapes.get(s.index)
        if user is None or tensor is None or user.kind != kinds.NODE:
            continue
        if not fills(source, user, s.targets[0]):
            continue
        number = profile.bound[s.index]
        touching = [a for a in profile.accesses[user.index] if a.storage == number]
        if len(touching) != 1 or profile.storages[number].held:
            continue
        found[s.line] = (s.text, f"{s.targets[0]} = empty_strided_cpu({tensor})")
    return found


def apply(text, splits):
    """The source text with reuses replaced; `splits` is {line: (old, new)}. Raises Refusal."""
    lines = text.split("\n")
    for line, (old, new) in splits.items():
        if not ALLOCATION.fullmatch(new) or not 0 < line <= len(lines):
            raise Refusal("a split of an unknown form", line, new)
        if lines[line - 1].strip().split(";")[0] != old:
            raise Refusal("a split does not fit the source", line, old)
        lines[line - 1] = lines[line - 1].replace(old, new, 1)
    return "\n".join(lines)


def poisoned(namespace, byte):
    """The module's namespace with an allocator that fills new blocks with `byte`."""
    import torch

    make = namespace["empty_strided_cpu"]

    def empty_strided_cpu(size, stride, dtype):
        out = make(size, stride, dtype)
        storage = out.untyped_storage()
        if storage.nbytes():
            torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage).fill_(byte)
        return out

    return {**namespace, "empty_strided_cpu": empty_strided_cpu}
