"""Effects: which tensors a node reads and which it writes.

The sources of truth: the C types in a C++ kernel's binding, the schema of a torch operator, and a
short list of functions of `extern_kernels` with known meaning. Anything else is refused.
"""

import ast
import re
from dataclasses import dataclass, field

import torch

from . import triton
from .errors import Refusal

# Namespaces whose operators do what their schema says, and nothing else.
TRUSTED = {
    "aten",
    "prims",
    "mkldnn",
    "mkl",
    "mkldnn_prepacked",
    "onednn",
    "quantized",
    "_quantized",
}
TRUSTED |= {"inductor"}
# extern_kernels.NAME: read every tensor; write `out` if given, else return a new tensor.
EXTERN = {
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "_int_mm",
    "convolution",
    "bias_addmm",
    "conv1x1_via_mm",
    "mm_plus_mm",
}
# Prims and inductor operators that draw random numbers without the tag.
RANDOM = re.compile(r"rand|bernoulli|dropout|multinomial|normal_|uniform_|exponential_|seed|rng")
COLLECTIVE = {"_c10d_functional", "c10d", "c10d_functional", "symm_mem"}


@dataclass
class Effect:
    """Expressions (ast) whose tensors a node reads and writes."""

    reads: list = field(default_factory=list)
    writes: list = field(default_factory=list)
    ordered: bool = False  # keeps its place among all ordered nodes
    trusted: bool = True  # False: check at run time that what it reads stays as it is
    parameters: list = field(default_factory=list)  # cpp: (C parameter name, ast) of pointers


def resolve(function, namespace, statement):
    """The object that a dotted name means in the module of the program."""
    parts = function.split(".")
    if parts[0] not in namespace:
        raise Refusal("call of an unknown function", statement.line, statement.text)
    found = namespace[parts[0]]
    for part in parts[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Refusal("call of an unknown function", statement.line, statement.text) from None
    return found


def effect_of(statement, source, namespace):
    """The Effect of a node. Raises Refusal."""
    node = statement.node
    call = node.value
    function = statement.function
    if function in source.kernels:
        return _cpp(statement, source.kernels[function], call)
    if function == "copy_if_misaligned":
        return Effect(reads=list(call.args))
    if function.endswith(".copy_") and isinstance(call.func.value, ast.Name):
        others = list(call.args[:1])
        blocking = len(call.args) == 1 or ast.unparse(call.args[1]) == "False"
        if len(call.args) not in (1, 2) or not blocking or call.keywords:
            raise Refusal("copy_ of an unknown form", statement.line, statement.text)
        return Effect(reads=others, writes=[call.func.value])
    if function.endswith(".zero_") and isinstance(call.func.value, ast.Name):
        if call.args or call.keywords:
            raise Refusal("zero_ of an unknown form", statement.line, statement.text)
        return Effect(writes=[call.func.value])
    if function.startswith("extern_kernels."):
        return _extern(statement, call, function.split(".", 1)[1])
    if function.endswith(".run") and function[:-4] in source.kernels:
        return _triton(statement, source, source.kernels[function[:-4]], call)
    found = resolve(function, namespace, statement)
    if isinstance(found, torch._ops.OpOverload):
        return _operator(statement, call, found)
    raise Refusal("call of a function whose effects are not known", statement.line, statement.text)


def _cpp(statement, kernel, call):
    if kernel.language != "cpp" or call.keywords or len(call.args) != len(kernel.types):
        raise Refusal("kernel call of an unknown form", statement.line, statement.text)
    effect = Effect()
    names = c_parameters(kernel.source)
    for i, (ctype, arg) in enumerate(zip(kernel.types, call.args)):
        if not ctype.rstrip().endswith("*"):
            continue
        const = ctype.startswith("const ")
        (effect.reads if const else effect.writes).append(arg)
        effect.parameters.append((names[i] if i < len(names) else "", arg))
    return effect


def _triton(statement, source, kernel, call):
    """A launch. Random numbers come from a seed in memory: the launch itself has no state."""
    if kernel.language != "triton" or source.device is None:
        raise Refusal("GPU kernel without a device guard", statement.line, statement.text)
    effect = Effect()
    for arg, role in triton.launch(statement, kernel, source):
        (effect.reads if role == "read" else effect.writes).append(arg)
    return effect


def c_parameters(source):
    """Names of the parameters of the function `kernel` in C++ source, [] if not understood."""
    match = re.search(r"\bvoid\s+kernel\s*\(([^)]*)\)", source)
    if not match or not match.group(1).strip():
        return []
    return [p.split()[-1].lstrip("*") for p in match.group(1).split(",")]


def _extern(statement, call, name):
    if name not in EXTERN:
        raise Refusal("unknown extern kernel", statement.line, statement.text)
    effect = Effect(reads=list(call.args))
    for k in call.keywords:
        (effect.writes if k.arg == "out" else effect.reads).append(k.value)
    return effect


def _operator(statement, call, operator):
    schema = operator._schema
    namespace = operator.namespace
    if namespace in COLLECTIVE:  # other processes would have to take part in every profile
        raise Refusal("collective operator", statement.line, statement.text)
    effect = Effect(trusted=namespace in TRUSTED)
    by_name = {a.name: a for a in schema.arguments}
    positional = [a for a in schema.arguments if not a.kwarg_only]
    if len(call.args) > len(positional):
        raise Refusal("operator call of an unknown form", statement.line, statement.text)
    pairs = list(zip(positional, call.args))
    for k in call.keywords:
        if k.arg not in by_name:
            raise Refusal("operator call of an unknown form", statement.line, statement.text)
        pairs.append((by_name[k.arg], k.value))
    for argument, value in pairs:
        kind = str(argument.type)
        if "Any" in kind or "__torch__" in kind or "ScriptObject" in kind:
            raise Refusal("operator whose schema does not say", statement.line, statement.text)
        info = argument.alias_info
        if info is not None and info.is_write:
            effect.writes.append(value)
        else:
            effect.reads.append(value)
    seeded = torch.Tag.nondeterministic_seeded in operator.tags
    random = seeded or RANDOM.search(schema.name.split("::")[-1]) is not None
    # An operator of the user's may print, count or lock: it keeps its place among its like. One
    # that neither returns nor writes is there for such an effect: to print, to assert.
    idle = not schema.returns and not effect.writes
    effect.ordered = random or idle or not effect.trusted
    return effect
