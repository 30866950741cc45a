"""Models made by hand, each for one question."""

from onnx import TensorProto, helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def tensor(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, infos=(), initializer=(), opset=17, **more):
    """A ModelProto; infos: the other values."""
    graph = helper.make_graph(
        nodes, "g", inputs, outputs, list(initializer), value_info=list(infos)
    )
    opsets = more.pop("opset_imports", [helper.make_opsetid("", opset)])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, **more)


def node(kind, inputs, outputs, **more):
    return helper.make_node(kind, inputs.split(), outputs.split(), **more)


def diamond():
    """x (8 floats) feeds a0 (800 floats), then a1 (8), and b (8): b first costs more."""
    return model(
        [
            node("Abs", "x", "b"),
            node("Tile", "x r", "a0"),
            node("Slice", "a0 s e", "a1"),
            node("Add", "a1 b", "y"),
        ],
        [tensor("x", [8])],
        [tensor("y", [8])],
        [tensor("b", [8]), tensor("a0", [800]), tensor("a1", [8])],
        [
            helper.make_tensor("r", INT64, [1], [100]),
            helper.make_tensor("s", INT64, [1], [0]),
            helper.make_tensor("e", INT64, [1], [8]),
        ],
    )


def random():
    """Two random operators and others between: the random ones keep their order."""
    return model(
        [
            node("RandomNormalLike", "x", "a", seed=1.0),
            node("Neg", "x", "c"),
            node("RandomUniformLike", "x", "b", seed=2.0),
            node("Abs", "x", "d"),
            node("Bernoulli", "d", "e", seed=3.0),
            node("Sum", "a b c d e", "y"),
        ],
        [tensor("x", [4])],
        [tensor("y", [4])],
        [tensor(name, [4]) for name in "abcde"],
    )


def branch(name, result, *, captured, size):
    """A body for If: some work on a captured value."""
    return helper.make_graph(
        [
            node("Exp", captured, f"{name}_p"),
            node("Concat", f"{name}_p {name}_p", f"{name}_q", axis=0),
            node("Neg", captured, f"{name}_r"),
            node("ReduceSum", f"{name}_q", f"{name}_s", keepdims=1),
            node("Add", f"{name}_r {name}_s", result),
        ],
        name,
        [],
        [tensor(result, [size])],
        value_info=[
            tensor(f"{name}_p", [size]),
            tensor(f"{name}_q", [2 * size]),
            tensor(f"{name}_r", [size]),
            tensor(f"{name}_s", [1]),
        ],
    )


def branches():
    """An If whose bodies capture values of the graph around it (t and u are seen in no input)."""
    return model(
        [
            node("Abs", "x", "t"),
            node("Neg", "x", "u"),
            node("Sin", "x", "v"),
            node(
                "If",
                "c",
                "w",
                then_branch=branch("t0", "w0", captured="t", size=16),
                else_branch=branch("e0", "w1", captured="u", size=16),
            ),
            node("Sum", "v w x", "y"),
        ],
        [tensor("x", [16]), tensor("c", [], BOOL)],
        [tensor("y", [16])],
        [tensor(name, [16]) for name in "tuvw"],
    )


def loop():
    """A Loop that sums, with a random operator inside: it keeps its order with the one outside."""
    body = helper.make_graph(
        [
            node("RandomUniformLike", "x", "n", seed=4.0),
            node("Mul", "n k", "m"),
            node("Neg", "s0", "p"),
            node("Neg", "p", "q"),
            node("Add", "q m", "s1"),
            node("Identity", "go", "on"),
        ],
        "body",
        [tensor("i", [], INT64), tensor("go", [], BOOL), tensor("s0", [32])],
        [tensor("on", [], BOOL), tensor("s1", [32])],
        value_info=[tensor(name, [32]) for name in "nmpq"],
    )
    return model(
        [
            node("RandomNormalLike", "x", "k", seed=5.0),
            node("Abs", "x", "z"),
            node("Loop", "three yes z", "s", body=body),
            node("RandomNormalLike", "x", "l", seed=6.0),
            node("Sum", "s l", "y"),
        ],
        [tensor("x", [32])],
        [tensor("y", [32])],
        [tensor(name, [32]) for name in "kzsl"],
        [
            helper.make_tensor("three", INT64, [], [3]),
            helper.make_tensor("yes", BOOL, [], [True]),
        ],
    )


def shaped():
    """a is cut from v at the size of big, which nobody knows before big is there: to make a (and
    be rid of v) first would cost less. z has the shape of y, from which it is made anyway."""
    return model(
        [
            node("Tile", "u r200", "v", name="v"),
            node("Tile", "x r100", "big", name="big"),
            node("Slice", "big from to", "b", name="b"),
            node("Shape", "big", "s", name="s"),
            node("Add", "s eight", "e", name="e"),
            node("Slice", "v s e", "a", name="a"),
            node("Concat", "a b", "y", axis=0, name="y"),
            node("Shape", "y", "n", name="n"),
            node("Neg", "y", "m", name="m"),
            node("Reshape", "m n", "z", name="z"),
        ],
        [tensor("x", [8]), tensor("u", [8])],
        [tensor("z", [608])],
        [
            tensor(name, [size])
            for name, size in dict(v=1600, big=800, b=600, a=8, y=608, m=608).items()
        ],
        [
            helper.make_tensor(name, INT64, [1], [value])
            for name, value in dict(r100=100, r200=200, eight=8, to=600).items()
        ]
        + [helper.make_tensor("from", INT64, [1], [0])],
    )
