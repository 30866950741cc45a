"""Triton kernels: which arguments of a launch are read and which are written.

Three sources, from the text of the kernel alone: the signature says which parameters are pointers,
`mutated_arg_names` which ones are updated, and Inductor's names (in_ptr, out_ptr, in_out_ptr,
ws_ptr) which ones are inputs. The body has the last word: a parameter that a name calls an input is
one only if the body does nothing but load from it. A kernel of the user's has no such names; there,
as everywhere in doubt, what a pointer points to counts as written (and read).
"""

import ast
import re

from . import split as kinds
from .errors import Refusal

INPUT = re.compile(r"in_ptr\d+|arg_[A-Za-z]\w*")


def _keyword(call, name):
    return next((k.value for k in call.keywords if k.arg == name), None)


def _entry(node, key):
    """The value of a key of a dict that is written out."""
    if isinstance(node, ast.Dict):
        for k, v in zip(node.keys, node.values):
            if isinstance(k, ast.Constant) and k.value == key:
                return v
    return None


def _launched(source):
    """The function that is launched, and the heuristics' call in front of it; None, None."""
    for item in ast.parse(source).body:
        if isinstance(item, ast.FunctionDef):
            for d in item.decorator_list:
                if isinstance(d, ast.Call) and _keyword(d, "triton_meta") is not None:
                    return item, d
    return None, None


def _loads_only(function, name):
    """Whether the body only ever uses a pointer as the first argument of tl.load."""
    allowed = set()
    for n in ast.walk(function):
        if isinstance(n, ast.Call) and ast.unparse(n.func) == "tl.load" and n.args:
            allowed |= {id(x) for x in ast.walk(n.args[0])}
    uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
    return all(id(n) in allowed for n in uses)


def _constexpr(parameter):
    """Whether the compiler puts a parameter in itself (XBLOCK)."""
    note = parameter.annotation
    text = "" if note is None else ast.unparse(note)
    return text.strip("'\"").split(".")[-1] == "constexpr"


class Parameters:
    """`roles`: of pointers, by name: "read" or "write". `names`: what a launch may pass, in order.

    Releases differ in which constants they pass; the number of arguments tells.
    """

    def __init__(self, source):
        function, heuristics = _launched(source)
        if function is None:
            raise ValueError("no kernel with triton_meta")
        meta, inductor = _keyword(heuristics, "triton_meta"), _keyword(heuristics, "inductor_meta")
        signature = ast.literal_eval(_entry(meta, "signature"))
        mutated = _entry(inductor, "mutated_arg_names")
        mutated = ast.literal_eval(mutated) if mutated is not None else None
        self.all = [a.arg for a in function.args.args]
        types = {}
        for key, kind in signature.items():  # by name, or by number in older releases
            types[key if isinstance(key, str) else self.all[key]] = kind
        given = [a.arg for a in function.args.args if not _constexpr(a)]
        # A size of 1 is constant to the compiler, but still passed; another constant is not.
        self.names = [given, [n for n in given if types.get(n) != "constexpr"], self.all]
        extra = _entry(inductor, "extra_launcher_args")  # a grid, behind all others
        self.extra = len(ast.literal_eval(extra)) if extra is not None else 0
        self.roles = {}
        for name in self.all:
            if name in types and not types[name].startswith("*"):
                if "tensordesc" in types[name] or "nvTma" in types[name]:
                    raise ValueError("tensor descriptor")
                continue
            if name in types:
                self.roles[name] = self.role(function, name, mutated)

    @staticmethod
    def role(function, name, mutated):
        if mutated is not None and name not in mutated:
            if INPUT.fullmatch(name) and _loads_only(function, name):
                return "read"
        return "write"


def _tensors(source):
    """Local names that are surely tensors, and those that surely are not."""
    made = {s.targets[0] for s in source.statements if s.kind in (kinds.ALLOCATE, kinds.ITEM)}
    numbers = {s.targets[0] for s in source.statements if s.kind in (kinds.SYMBOL, kinds.STREAM)}
    return made, numbers


def _fits(pairs, roles, source):
    """Whether tensors are passed where pointers are, and numbers elsewhere, as far as one sees."""
    tensors, numbers = _tensors(source)
    for name, arg in pairs:
        view = isinstance(arg, ast.Call) and kinds.dotted(arg.func) in kinds.VIEWS
        named = arg.id if isinstance(arg, ast.Name) else None
        if name in roles and not view and (named is None or named in numbers):
            return False
        if name not in roles and (view or named in tensors):
            return False
    return True


def launch(statement, kernel, source):
    """[(argument, role)] of the pointers that a launch `name.run(...)` passes. Raises Refusal."""

    def refuse(reason):
        raise Refusal(reason, statement.line, statement.text) from None

    call = statement.node.value
    keywords = {k.arg for k in call.keywords}
    if "stream" not in keywords or not keywords <= {"stream", "grid"}:
        refuse("launch of an unknown form")
    try:
        found = Parameters(kernel.source)
    except (ValueError, SyntaxError, TypeError, AttributeError, IndexError) as e:
        refuse(f"triton kernel of an unknown form: {e}")
    for names in found.names:
        pairs = list(zip(names, call.args))
        whole = len(names) + found.extra == len(call.args) and set(found.roles) <= set(names)
        if whole and _fits(pairs, found.roles, source):
            return [(arg, found.roles[name]) for name, arg in pairs if name in found.roles]
    refuse("launch whose arguments do not fit its kernel's parameters")
