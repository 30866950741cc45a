"""Split: the `call` of a generated program becomes a list of statements.

The text of every statement stays verbatim. A statement whose kind is not known is refused with its
line; nothing is guessed.
"""

import ast
import re
from dataclasses import dataclass, field

from .errors import Refusal

ALLOCATORS = {
    "empty_strided",
    "empty_strided_cpu",
    "empty_strided_cpu_pinned",
    "empty_strided_cuda",
    "empty_strided_xpu",
}
# Views that Inductor writes out as bindings: they create no storage and run no kernel.
VIEWS = {"reinterpret_tensor", "aten.view.dtype", "torch.ops.aten.view.dtype"}
# Functions that may stand inside an argument: they create no storage and have no effect.
PURE = {"reinterpret_tensor", "device", "torch.device", "max", "min", "int", "float", "len", "abs"}
PURE |= {"math." + name for name in ("ceil", "floor", "sqrt", "log", "exp", "trunc", "pow")}
PURE_METHODS = {"size", "stride"}
# Methods of a tensor that work in place, as statements.
IN_PLACE = {"copy_", "zero_"}
# One device, and what older releases of torch give a triton kernel as its grid.
GUARD = re.compile(r"torch\.cuda\._DeviceGuard\((\d+)\)")
GRID = re.compile(r"(\w+\.)*\w*grid")

# Kinds. A NODE is what gets permuted; everything else is placed around the nodes.
UNPACK, CLEAR, SYMBOL, ASSERT, ALLOCATE = "unpack", "clear", "symbol", "assert", "allocate"
ALIAS, ITEM, FREE, NODE, RETURN = "alias", "item", "free", "node", "return"
STREAM = "stream"  # the device's current stream, a number; a name may get it again and again
BINDINGS = {SYMBOL, ALLOCATE, ALIAS, ITEM, STREAM}


@dataclass
class Statement:
    """One statement of `call`. Lines are 1-based lines of the generated source."""

    index: int
    kind: str
    text: str
    line: int
    node: ast.stmt = field(repr=False)
    targets: tuple = ()  # local names that it binds
    uses: tuple = ()  # local names that it reads
    comments: tuple = ()  # comment lines in front of it, stripped
    function: str = ""  # dotted name of what is called, if anything


@dataclass
class Kernel:
    """A kernel that the source defines: language, C types of its parameters (cpp), source text."""

    language: str
    types: list
    source: str


@dataclass
class Source:
    """A generated program, split. `parameter` is the name of the list of arguments."""

    text: str
    header: str  # the def line, verbatim
    parameter: str
    method: bool  # a method of class Runner
    statements: list
    kernels: dict
    aot_id: str
    arguments: tuple  # names of the unpacked arguments, in order
    device: int | None = None  # the CUDA device whose guard all but unpacking stands in
    guard: tuple = ()  # the guard's two lines, verbatim

    @property
    def nodes(self):
        return [s for s in self.statements if s.kind == NODE]


def dotted(node):
    """ "a.b.c" for a chain of names and attributes, else ""."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def names_read(node, local):
    """Local names that an expression or statement reads, in order, without repetition."""
    seen = {}
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in local:
            seen[n.id] = True
    return tuple(seen)


class _Splitter:
    def __init__(self, text):
        self.text = text
        self.lines = text.split("\n")
        try:
            self.module = ast.parse(text)
        except SyntaxError as e:
            raise Refusal(f"the source is not Python: {e.msg}", e.lineno) from None
        self.local = set()
        self.tuples = set()  # local names that item statements index
        self.symbols = set()
        self.device = None
        self.guard = ()

    def refuse(self, reason, node):
        raise Refusal(reason, node.lineno, self.segment(node))

    def segment(self, node):
        """The text of a node. Columns of ast count bytes of UTF-8."""
        first, last = node.lineno - 1, node.end_lineno - 1
        lines = [line.encode() for line in self.lines[first : last + 1]]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b"\n".join(lines).decode()

    def find_call(self):
        """The function to split, and whether it is a method of Runner."""
        for item in self.module.body:
            if isinstance(item, ast.ClassDef) and item.name == "Runner":
                for member in item.body:
                    if isinstance(member, ast.FunctionDef) and member.name == "call":
                        return member, True
        for item in self.module.body:
            if isinstance(item, ast.FunctionDef) and item.name == "call":
                return item, False
        raise Refusal("the source has no function `call`")

    def kernels(self):
        found = {}
        for item in self.module.body:
            if not (isinstance(item, ast.Assign) and isinstance(item.value, ast.Call)):
                continue
            how = dotted(item.value.func)
            if not how.startswith("async_compile.") or not isinstance(item.targets[0], ast.Name):
                continue
            name, args = item.targets[0].id, item.value.args
            try:
                if how == "async_compile.cpp_pybinding":
                    types, source = ast.literal_eval(args[0]), ast.literal_eval(args[1])
                    found[name] = Kernel("cpp", types, source)
                elif how == "async_compile.triton":
                    found[name] = Kernel("triton", [], ast.literal_eval(args[1]))
            except (ValueError, IndexError):
                self.refuse("kernel definition of an unknown form", item)
        return found

    def bound_names(self, body):
        for stmt in body:
            for n in ast.walk(stmt):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                    self.local.add(n.id)

    def pure(self, node):
        """Whether evaluating an argument has no effect and creates no storage."""
        for n in ast.walk(node):
            if isinstance(n, ast.Call):
                f = dotted(n.func)
                method = isinstance(n.func, ast.Attribute) and n.func.attr in PURE_METHODS
                if f not in PURE and f not in VIEWS and not method:
                    return False
            elif isinstance(n, (ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                return False
            elif isinstance(n, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                return False
        return True

    def scalar(self, node):
        """Whether an expression only computes with numbers: symbols, sizes, constants."""
        ok = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.BoolOp, ast.Constant, ast.Name)
        ok += (ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context, ast.Attribute)
        ok += (ast.Call, ast.Subscript)
        return all(isinstance(n, ok) for n in ast.walk(node)) and self.pure(node)

    def grid(self, node):
        """Whether an expression computes a triton kernel's grid, in the way of older releases."""
        if isinstance(node, ast.Call) and GRID.fullmatch(dotted(node.func)):
            return all(self.pure(a) for a in [*node.args, *(k.value for k in node.keywords)])
        return self.pure(node)

    def check_call(self, call, stmt):
        for k in call.keywords:
            if k.arg == "grid" and dotted(call.func).endswith(".run") and self.grid(k.value):
                continue
            if not self.pure(k.value):
                self.refuse("argument of an unknown form", stmt)
        for arg in call.args:
            if isinstance(arg, ast.Starred) or not self.pure(arg):
                self.refuse("argument of an unknown form", stmt)

    def assign(self, stmt):
        if len(stmt.targets) != 1:
            self.refuse("assignment of an unknown form", stmt)
        target, value = stmt.targets[0], stmt.value
        if isinstance(target, (ast.Tuple, ast.List)):
            simple = all(isinstance(t, ast.Name) for t in target.elts)
            if simple and isinstance(value, ast.Name) and value.id == self.parameter:
                return UNPACK, ""
            self.refuse("assignment to several names", stmt)
        if not isinstance(target, ast.Name):
            self.refuse("assignment of an unknown form", stmt)
        if isinstance(value, ast.Constant) and value.value is None:
            return FREE, ""
        if isinstance(value, ast.Name) and value.id in self.local:
            return ALIAS, ""
        if isinstance(value, ast.Call):
            return self.assign_call(stmt, target, value)
        if isinstance(value, ast.List):
            self.refuse("a list, as for a graph partition", stmt)
        if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
            if value.value.id in self.local and isinstance(value.slice, ast.Constant):
                if isinstance(value.slice.value, int) and value.value.id not in self.symbols:
                    self.tuples.add(value.value.id)
                    return ITEM, ""
        if self.scalar(value):
            self.symbols.add(target.id)
            return SYMBOL, ""
        self.refuse("assignment of an unknown form", stmt)

    def assign_call(self, stmt, target, value):
        function = dotted(value.func)
        inner = value.func.value if isinstance(value.func, ast.Attribute) else None
        if isinstance(inner, ast.Call) and value.func.attr == "as_strided":
            if dotted(inner.func) in ALLOCATORS:
                return ALLOCATE, dotted(inner.func)
        if function in ALLOCATORS:
            self.check_call(value, stmt)
            return ALLOCATE, function
        if function in VIEWS:
            self.check_call(value, stmt)
            return ALIAS, function
        if function == "get_raw_stream":
            return self.stream(stmt, value)
        if function == "alloc_from_pool":
            self.refuse("memory pool: lifetimes are frozen into offsets", stmt)
        head = function.split(".")[0]
        if head in self.local:
            if function.split(".")[-1] in PURE_METHODS:
                self.symbols.add(target.id)
                return SYMBOL, function
            self.refuse("method of a tensor that is not known", stmt)
        if function in PURE:
            self.symbols.add(target.id)
            return SYMBOL, function
        if not function:
            self.refuse("call of an unknown form", stmt)
        self.check_call(value, stmt)
        return NODE, function

    def stream(self, stmt, call):
        """`stream0 = get_raw_stream(0)`: of the guarded device, whose current stream stays."""
        if self.device is None or self.segment(call) != f"get_raw_stream({self.device})":
            self.refuse("stream of an unknown form", stmt)
        return STREAM, "get_raw_stream"

    def expression(self, stmt):
        call = stmt.value
        if not isinstance(call, ast.Call):
            self.refuse("expression that is not a call", stmt)
        function = dotted(call.func)
        if function == f"{self.parameter}.clear":
            return CLEAR, ""
        if function in ("assert_size_stride", "assert_alignment"):
            if not (call.args and isinstance(call.args[0], ast.Name)):
                self.refuse("assertion of an unknown form", stmt)
            self.check_call(call, stmt)
            return ASSERT, function
        if not function:
            self.refuse("call of an unknown form", stmt)
        self.check_call(call, stmt)
        head = function.split(".")[0]
        if head in self.local and ".".join(function.split(".")[1:]) not in IN_PLACE:
            self.refuse("method of a tensor that is not known", stmt)
        return NODE, function

    def classify(self, stmt):
        if isinstance(stmt, ast.Assign):
            return self.assign(stmt)
        if isinstance(stmt, ast.Expr):
            return self.expression(stmt)
        if isinstance(stmt, ast.Delete):
            if all(isinstance(t, ast.Name) for t in stmt.targets):
                return FREE, ""
        if isinstance(stmt, ast.Return) and stmt.value is not None:
            if not self.pure(stmt.value):
                self.refuse("return of an unknown form", stmt)
            return RETURN, ""
        if isinstance(stmt, (ast.If, ast.While, ast.For)):
            self.refuse("control flow", stmt)
        if isinstance(stmt, ast.With):
            self.refuse("device guard or context of an unknown form", stmt)
        self.refuse("unknown statement", stmt)

    def guarded(self, stmt):
        """The statements in a device guard that follow torch.cuda.set_device, or None."""
        if not isinstance(stmt, ast.With) or len(stmt.items) != 1 or stmt.items[0].optional_vars:
            return None
        match = GUARD.fullmatch(self.segment(stmt.items[0].context_expr))
        if not match:
            return None
        first = self.segment(stmt.body[0])
        if first != f"torch.cuda.set_device({match[1]})":
            self.refuse("device guard of an unknown form", stmt)
        if self.device not in (None, int(match[1])):
            self.refuse("a second device", stmt)
        self.device = int(match[1])
        self.guard = (self.lines[stmt.lineno - 1].strip(), first)
        return stmt.body[1:]

    def body(self, call):
        """The statements of `call`, those in a device guard among them.

        Whatever stands outside of a guard may as well stand in it: the guard says where kernels
        start, and only those in it start any.
        """
        found = []
        for stmt in call.body:
            inside = self.guarded(stmt)
            if inside is None:
                found.append(stmt)
                continue
            if any(isinstance(s, ast.Return) for s in inside):
                self.refuse("return in a device guard", stmt)
            found.extend(inside)
        return found

    def comments_before(self, first, last):
        """Comment lines of the source between two 1-based lines, both exclusive."""
        inside = (self.lines[i - 1].strip() for i in range(first + 1, last))
        return tuple(line for line in inside if line.startswith("#"))

    def statement(self, index, stmt, comments):
        kind, function = self.classify(stmt)
        targets = ()
        if isinstance(stmt, ast.Assign) and kind != FREE:
            t = stmt.targets[0]
            targets = tuple(e.id for e in t.elts) if kind == UNPACK else (t.id,)
        if kind == FREE:
            which = stmt.targets
            uses = tuple(t.id for t in which)
        else:
            uses = names_read(stmt, self.local)
        return Statement(
            index, kind, self.segment(stmt), stmt.lineno, stmt, targets, uses, comments, function
        )

    def split(self):
        call, method = self.find_call()
        parameters = [a.arg for a in call.args.args]
        if parameters != (["self", parameters[-1]] if method else parameters[-1:]):
            self.refuse("`call` with unknown parameters", call)
        self.parameter = parameters[-1]
        body = self.body(call)
        self.bound_names(body)
        if self.parameter in self.local:
            self.refuse("the list of arguments is bound again", call)
        out, before = [], call.lineno
        for stmt in body:
            comments = self.comments_before(before, stmt.lineno)
            out.append(self.statement(len(out), stmt, comments))
            before = stmt.end_lineno
        self.check_form(call, out)
        aot_id = re.search(r"^# AOT ID: \['(.*)'\]", self.text, re.M)
        unpacked = [s for s in out if s.kind == UNPACK]
        return Source(
            text=self.text,
            header=self.lines[call.lineno - 1].strip(),
            parameter=self.parameter,
            method=method,
            statements=out,
            kernels=self.kernels(),
            aot_id=aot_id.group(1) if aot_id else "",
            arguments=unpacked[0].targets if unpacked else (),
            device=self.device,
            guard=self.guard,
        )

    def check_form(self, call, out):
        if not out or out[-1].kind != RETURN:
            self.refuse("`call` does not end with a return", call)
        for s in out[:-1]:
            if s.kind == RETURN:
                raise Refusal("return in the middle", s.line, s.text)
        unpacks = [s for s in out if s.kind in (UNPACK, CLEAR)]
        if [s.kind for s in unpacks] not in ([UNPACK, CLEAR], [CLEAR], []) or any(
            s.index > 1 for s in unpacks
        ):
            self.refuse("arguments are unpacked in an unknown way", call)
        names = [name for s in out if s.kind == UNPACK for name in s.targets]
        if len(set(names)) != len(names):
            self.refuse("an argument's name occurs twice", call)
        for s in out:
            if s.kind != ITEM and any(
                n in self.tuples for n in s.uses if s.kind not in (FREE, ITEM)
            ):
                raise Refusal("a tuple is used as a whole", s.line, s.text)


def split(text):
    """Split generated source text into a Source. Raises Refusal with the line."""
    return _Splitter(text).split()
