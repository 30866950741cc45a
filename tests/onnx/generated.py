"""Random ONNX models that onnx.checker accepts and onnxruntime runs: control flow with captures,
shapes looked at and used elsewhere, sequences, optional values, functions, random operators,
quantization, unused results, folded parts."""

import random

from made import BOOL, FLOAT, INT64, tensor
from onnx import TensorProto, helper

SIZES = (1, 6, 24, 90)


class Scope:
    """A graph under construction: its nodes, and the names of its vectors of floats by size."""

    def __init__(self, pick, prefix, around=None):
        self.pick, self.prefix, self.around = pick, prefix, around
        self.nodes, self.count, self.floats = [], 0, {size: [] for size in SIZES}
        self.depth = around.depth + 1 if around else 0

    def name(self):
        self.count += 1
        return f"{self.prefix}{self.count}"

    def add(self, kind, inputs, outputs=1, **more):
        """Adds a node; returns the name of its only output, or the names."""
        names = [self.name() for _ in range(outputs)]
        named = {"name": f"n{names[0]}"} if self.pick.random() < 0.5 else {}
        self.nodes.append(helper.make_node(kind, inputs, names, **named, **more))
        return names[0] if outputs == 1 else names

    def constant(self, kind, values):
        """The name of a constant: a Constant node, or the sum of two."""
        value = helper.make_tensor("", kind, [len(values)], values)
        if self.pick.random() < 0.7:
            return self.add("Constant", [], value=value)
        zero = helper.make_tensor("", kind, [len(values)], [0] * len(values))
        a, b = (self.add("Constant", [], value=v) for v in (value, zero))
        return self.add("Add", [a, b])

    def any(self, size=None):
        """(name, size) of a vector of this graph or one around it."""
        scope = self
        while scope.around and self.pick.random() < 0.3:
            scope = scope.around
        known = [(name, s) for s in ([size] if size else SIZES) for name in scope.floats[s]]
        if known:
            return self.pick.choice(known)
        size = size or self.pick.choice(SIZES)
        return self.give(self.constant(FLOAT, [0.5] * size), size), size

    def give(self, name, size):
        self.floats[size].append(name)
        return name

    def shape_of(self):
        """(the name of the shape of some vector, its size)."""
        name, size = self.any()
        return self.add("Shape", [name]), size


def unary(scope):
    name, size = scope.any()
    kind = scope.pick.choice(("Abs", "Neg", "Sin", "Sigmoid", "Relu", "Identity", "Softplus"))
    scope.give(scope.add(kind, [name]), size)


def binary(scope):
    name, size = scope.any()
    other, _ = scope.any(size)
    scope.give(scope.add(scope.pick.choice(("Add", "Mul", "Max", "Sub")), [name, other]), size)


def resize(scope):
    """To another size, by the shape of a value that may be far away."""
    name, size = scope.any()
    shape, to = scope.shape_of()
    one = scope.add("ReduceMax", [name], keepdims=1)
    scope.give(one, 1)
    scope.give(scope.add("Expand", [one, shape]), to)


def cut(scope):
    """A piece as long as some other value, wherever that is made."""
    name, size = scope.any(90)
    shape, to = scope.shape_of()
    scope.give(scope.add("Slice", [name, scope.constant(INT64, [0]), shape]), to)


def shape_sum(scope):
    """A size made of two shapes."""
    (a, _), (b, _) = scope.shape_of(), scope.shape_of()
    total = scope.add("Add", [a, b])
    filled = scope.add("ConstantOfShape", [total])
    name, _ = scope.any(1)
    mixed = scope.add("Add", [filled, name])
    scope.give(scope.add("ReduceSum", [mixed], keepdims=1), 1)


def split(scope):
    name, _ = scope.any(24)
    parts = scope.add("Split", [name, scope.constant(INT64, [6, 6, 6, 6])], 4)
    for part in parts:
        scope.give(part, 6)
    scope.give(scope.add("Concat", scope.pick.sample(parts, 4), axis=0), 24)


def drop(scope):
    name, size = scope.any()
    kept = scope.name()
    mask = scope.name() if scope.pick.random() < 0.5 else ""
    scope.nodes.append(helper.make_node("Dropout", [name], [kept, mask] if mask else [kept]))
    scope.give(kept, size)


def noise(scope):
    name, size = scope.any()
    kind = scope.pick.choice(("RandomNormalLike", "RandomUniformLike"))
    scope.give(scope.add(kind, [name], seed=float(scope.pick.randrange(9))), size)


def sequence(scope):
    names, size = [], scope.pick.choice(SIZES)
    for _ in range(3):
        names.append(scope.any(size)[0])
    made = scope.add("SequenceConstruct", names)
    if scope.pick.random() < 0.5:
        made = scope.add("SequenceInsert", [made, scope.any(size)[0]])
    index = scope.add("Constant", [], value_int=scope.pick.randrange(3))
    scope.give(scope.add("SequenceAt", [made, index]), size)


def quantized(scope):
    name, size = scope.any()
    scale = scope.add("Constant", [], value_float=0.125)
    kind = scope.pick.choice((TensorProto.INT8, TensorProto.UINT8))
    zero = scope.add("Constant", [], value=helper.make_tensor("", kind, [], [1]))
    small = scope.add("QuantizeLinear", [name, scale, zero])
    scope.give(scope.add("DequantizeLinear", [small, scale, zero]), size)


def half(scope):
    name, size = scope.any()
    small = scope.add("Cast", [name], to=TensorProto.FLOAT16)
    scope.give(scope.add("Cast", [small], to=FLOAT), size)


def call(scope):
    """A function of the model (see `model`)."""
    name, size = scope.any()
    scope.give(scope.add("Twice", [name], domain="local"), size)


def choice(scope):
    """An If whose bodies capture; its condition is data or, now and then, known."""
    size = scope.pick.choice(SIZES)
    flag, _ = scope.any(1)
    compared = scope.add("Greater", [flag, scope.constant(FLOAT, [0.1])])
    condition = scope.add("Reshape", [compared, scope.add("Constant", [], value_ints=[1])])
    bodies = {
        key: body(scope, f"{scope.name()}{key[0]}_", size) for key in ("then_branch", "else_branch")
    }
    scope.give(scope.add("If", [condition], **bodies), size)


def body(scope, prefix, size):
    inner = Scope(scope.pick, prefix, scope)
    grow(inner, scope.pick.randrange(2, 6))
    result = inner.add("Identity", [inner.any(size)[0]])
    return helper.make_graph(inner.nodes, prefix, [], [tensor(result, [size])])


def loop(scope):
    start, size = scope.any()
    prefix = f"{scope.name()}l_"
    inner = Scope(scope.pick, prefix, scope)
    state = inner.give(f"{prefix}state", size)
    grow(inner, scope.pick.randrange(2, 6))
    after = inner.add("Add", [state, inner.any(size)[0]])
    scanned = inner.add("Identity", [inner.any(6)[0]])
    on = inner.add("Identity", [f"{prefix}go"])
    graph = helper.make_graph(
        inner.nodes,
        prefix,
        [tensor(f"{prefix}i", [], INT64), tensor(f"{prefix}go", [], BOOL), tensor(state, [size])],
        [tensor(on, [], BOOL), tensor(after, [size]), tensor(scanned, [6])],
    )
    trips = scope.add("Constant", [], value_int=4)
    last, all_of_them = scope.add("Loop", [trips, "", start], 2, body=graph)
    scope.give(last, size)
    flat = scope.add("Reshape", [all_of_them, scope.constant(INT64, [-1])])
    scope.give(flat, 24)


def scan(scope):
    """Sums over 24 = 4 * 6 floats."""
    name, _ = scope.any(24)
    rows = scope.add("Reshape", [name, scope.constant(INT64, [4, 6])])
    start, _ = scope.any(6)
    prefix = f"{scope.name()}s_"
    inner = Scope(scope.pick, prefix, scope)
    state, row = (inner.give(f"{prefix}{key}", 6) for key in ("state", "row"))
    grow(inner, scope.pick.randrange(1, 4))
    after = inner.add("Add", [state, row])
    out = inner.add("Mul", [after, inner.any(6)[0]])
    ends = [[tensor(a, [6]), tensor(b, [6])] for a, b in ((state, row), (after, out))]
    graph = helper.make_graph(inner.nodes, prefix, *ends)
    last, made = scope.add("Scan", [start, rows], 2, body=graph, num_scan_inputs=1)
    scope.give(last, 6)
    scope.give(scope.add("Reshape", [made, scope.constant(INT64, [24])]), 24)


PLAIN = (unary, binary, resize, cut, shape_sum, split, drop, noise, sequence, quantized, half, call)
CONTROL = (choice, loop, scan)


def grow(scope, count):
    for _ in range(count):
        kinds = PLAIN * 2 + CONTROL if scope.depth < 2 else PLAIN
        scope.pick.choice(kinds)(scope)


def model(seed):
    """A ModelProto drawn with `seed` (int)."""
    pick = random.Random(seed)
    scope = Scope(pick, "v")
    inputs = [tensor(scope.give(f"x{size}", size), [size]) for size in SIZES]
    grow(scope, pick.randrange(8, 30))
    known = [(name, size) for size in SIZES for name in scope.floats[size]]
    made = {name for node in scope.nodes for name in node.output}
    made = [(name, size) for name, size in known if name in made]
    results = pick.sample(made, min(len(made), pick.randrange(1, 5)))
    graph = helper.make_graph(
        scope.nodes, "g", inputs, [tensor(name, [size]) for name, size in results]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    twice = helper.make_function(
        "local",
        "Twice",
        ["p"],
        ["q"],
        [helper.make_node("Add", ["p", "p"], ["t"]), helper.make_node("Tanh", ["t"], ["q"])],
        opsets[:1],
    )
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=[twice])
