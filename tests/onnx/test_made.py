"""What the reader makes of models made by hand."""

import json

import made
import onnx
import pytest
from made import FLOAT, INT64, model, node, tensor
from onnx import TensorProto, helper


@pytest.fixture
def read(tools, tmp_path):
    """A function: model -> its programs (dict by name), as `peakproof convert` writes them."""

    def run(proto, *more):
        return tools.programs(tools.save(proto, tmp_path / "m.onnx"), tmp_path, "-q", *more)

    return run


@pytest.fixture
def refuse(tools, tmp_path):
    """A function: model that must be refused -> the message."""

    def run(proto, *more):
        path = tools.save(proto, tmp_path / "m.onnx")
        done = tools.run(tools.peakproof, "plan", path, "-o", tmp_path / "out.onnx", *more)
        assert done.returncode == 65, (done.returncode, done.stderr)
        assert not (tmp_path / "out.onnx").exists()
        return done.stderr.splitlines()[-1]

    return run


def statements(program):
    """{name: (names read, names written)}."""
    name = [storage["name"] for storage in program["storages"]]
    return {
        s["name"]: tuple([name[i] for i in s.get(key, ())] for key in ("reads", "writes"))
        for s in program["statements"]
    }


def sizes(program):
    return {storage["name"]: storage["bytes"] for storage in program["storages"]}


def orders(program):
    """The order edges, by the names of statements."""
    name = [statement["name"] for statement in program["statements"]]
    return [(name[a], name[b]) for a, b in program.get("order", ())]


# ---- Statements and storages ----


def test_diamond(read):
    (program,) = read(made.diamond()).values()
    assert statements(program) == {
        "Abs_0": (["x"], ["b"]),
        "Tile_1": (["x"], ["a0"]),
        "Slice_2": (["a0"], ["a1"]),
        "Add_3": (["a1", "b"], ["y"]),
    }
    assert sizes(program) == {"x": 32, "b": 32, "a0": 3200, "a1": 32, "y": 32}
    flags = {s["name"]: (s.get("live_in"), s.get("live_out")) for s in program["storages"]}
    assert flags["x"] == (True, None) and flags["y"] == (None, True)
    assert all(s["pure"] for s in program["statements"])
    assert all(s["writes"] == s["overwrites"] for s in program["statements"])


def test_names(read):
    """A node's own name, shown in printable ASCII."""
    proto = model(
        [node("Abs", "x", "y", name="a\tb\u00e9")], [tensor("x", [1])], [tensor("y", [1])]
    )
    assert list(statements(read(proto)["main"])) == ["a?b??"]


def test_same_input_twice_and_absent_ones(read):
    proto = model(
        [
            node("Mul", "x x", "y"),
            helper.make_node("Clip", ["y", "", "top"], ["z"]),
            helper.make_node("MaxPool", ["p"], ["q", ""], kernel_shape=[2]),
        ],
        [tensor("x", [2]), tensor("p", [1, 1, 2])],
        [tensor("z", [2]), tensor("q", [1, 1, 1])],
        [tensor("y", [2])],
        [helper.make_tensor("top", FLOAT, [], [1.0])],
    )
    assert statements(read(proto)["main"]) == {
        "Mul_0": (["x"], ["y"]),
        "Clip_1": (["y"], ["z"]),
        "MaxPool_2": (["p"], ["q"]),
    }


def test_folding(tools, read, tmp_path):
    """Constants, shapes, and all that follows from them alone; said in a notice."""
    proto = model(
        [
            node("Shape", "x", "s"),
            helper.make_node("Constant", [], ["one"], value_ints=[1]),
            node("Add", "s one", "t"),
            node("ConstantOfShape", "t", "big"),
            node("ReduceSum", "big", "c", keepdims=0),
            node("Add", "x c", "y"),
            node("Size", "y", "n"),
        ],
        [tensor("x", [4])],
        [tensor("y", [4]), tensor("n", [], INT64)],
    )
    assert statements(read(proto)["main"]) == {"Add_5": (["x"], ["y"])}
    done = tools.run(tools.peakproof, "plan", tmp_path / "m.onnx")
    assert "6 of 7 nodes compute constants or look at shapes only: they are folded" in done.stderr


def test_not_folded(read):
    """Shapes that come from data, random numbers from nothing."""
    proto = model(
        [
            node("ConstantOfShape", "x", "y"),
            helper.make_node("RandomNormal", [], ["z"], shape=[3]),
        ],
        [tensor("x", [1], INT64)],
        [tensor("y", [7]), tensor("z", [3])],
    )
    assert list(statements(read(proto)["main"])) == ["ConstantOfShape_0", "RandomNormal_1"]


def test_initializers(read):
    """In the list of inputs too (before IR version 4), and sparse ones."""
    proto = model(
        [node("Sum", "x w", "t"), node("MatMul", "t v", "y")],
        [tensor("x", [2, 2]), tensor("w", [2, 2])],
        [tensor("y", [2, 2])],
        [tensor("t", [2, 2])],
        [helper.make_tensor("w", FLOAT, [2, 2], [0.0] * 4)],
    )
    values = helper.make_tensor("v", FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", INT64, [1], [0])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 2]))
    assert sizes(read(proto)["main"]) == {"x": 16, "t": 16, "y": 16}


def test_external_data(tools, read, tmp_path):
    """Never loaded: the file is not even there."""
    weights = helper.make_tensor("w", FLOAT, [2], [0.0, 0.0])
    weights.ClearField("float_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="nowhere.bin")
    proto = model(
        [node("Add", "x w", "t"), node("Abs", "t", "y")],
        [tensor("x", [2])],
        [tensor("y", [2])],
        initializer=[weights],
    )
    path = tools.save(proto, tmp_path / "in.onnx")
    done = tools.shapes(path, tmp_path / "out.onnx")
    assert done.returncode == 0, done.stderr
    out = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    assert out.graph.initializer[0] == weights
    assert sizes(read(out)["main"]) == {"x": 8, "t": 8, "y": 8}


# ---- Sizes ----


@pytest.mark.parametrize(
    "kind, elements, expected",
    [
        (TensorProto.FLOAT, 7, 28),
        (TensorProto.DOUBLE, 7, 56),
        (TensorProto.BOOL, 7, 7),
        (TensorProto.BFLOAT16, 7, 14),
        (TensorProto.COMPLEX64, 7, 56),
        (TensorProto.COMPLEX128, 7, 112),
        (TensorProto.FLOAT8E4M3FN, 7, 7),
        (TensorProto.INT4, 7, 4),
        (TensorProto.UINT4, 8, 4),
        (TensorProto.FLOAT4E2M1, 1, 1),
        (TensorProto.UINT2, 5, 2),
        (TensorProto.INT2, 4, 1),
        (TensorProto.FLOAT6E2M3, 5, 4),
        (TensorProto.FLOAT, 0, 0),
    ],
)
def test_types(read, kind, elements, expected):
    proto = model(
        [node("Identity", "x", "y")],
        [tensor("x", [elements], kind)],
        [tensor("y", [elements], kind)],
    )
    assert sizes(read(proto)["main"]) == {"x": expected, "y": expected}


def test_unknown_sizes(tools, read, tmp_path):
    """Text and sequences: counted as 0, and said."""
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, [3])
    proto = model(
        [node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s i", "y")],
        [tensor("x", [3]), tensor("t", [2], TensorProto.STRING)],
        [tensor("y", [3])],
        [sequence],
        [helper.make_tensor("i", INT64, [], [0])],
    )
    assert sizes(read(proto)["main"]) == {"x": 12, "t": 0, "s": 0, "y": 12}
    done = tools.run(tools.peakproof, "plan", tmp_path / "m.onnx")
    assert 'value "t" is text: counted as 0 bytes' in done.stderr
    assert 'value "s" is no tensor: counted as 0 bytes' in done.stderr


def test_optional(read):
    """An optional tensor is counted as if it were there."""
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [3]))
    proto = model(
        [node("Optional", "x", "o"), node("OptionalGetElement", "o", "y")],
        [tensor("x", [3])],
        [tensor("y", [3])],
        [helper.make_value_info("o", kind)],
    )
    assert sizes(read(proto)["main"])["o"] == 12


def test_dimensions(tools, read, tmp_path):
    proto = model(
        [node("Abs", "x", "y")], [tensor("x", ["N", "M", 2])], [tensor("y", ["N", "M", None])]
    )
    assert sizes(read(proto)["main"]) == {"x": 8, "y": 4}
    assert sizes(read(proto, "--dim", "N=3")["main"]) == {"x": 24, "y": 12}
    assert sizes(read(proto, "--dim", "*=5", "--dim", "N=3")["main"]) == {"x": 120, "y": 300}
    assert sizes(read(proto, "--dim", "N=0")["main"]) == {"x": 0, "y": 0}
    done = tools.run(tools.peakproof, "plan", tmp_path / "m.onnx", "--dim", "K=1")
    assert 'dimension "N" is not set: counted as 1 (--dim NAME=SIZE sets it)' in done.stderr
    assert "1 dimensions are neither given nor named: counted as 1" in done.stderr
    assert 'no value has a dimension "K"' in done.stderr


def test_too_large(refuse):
    proto = model(
        [node("Abs", "x", "y")],
        [tensor("x", [2**31, 2**31])],
        [tensor("y", [2**31, 2**31])],
    )
    assert 'value "y" has more bytes than 2^60' in refuse(proto)
    proto = model([node("Abs", "x", "y")], [tensor("x", [2**58])], [tensor("y", [2**60])])
    assert refuse(proto)


# ---- State ----


def test_random_order(read):
    assert orders(read(made.random())["main"]) == [
        ("RandomNormalLike_0", "RandomUniformLike_2"),
        ("RandomUniformLike_2", "Bernoulli_4"),
    ]


def test_unknown_operators(tools, read, tmp_path):
    """Custom operators keep their order, random ones with them. Another domain's Relu is custom."""
    proto = model(
        [
            node("Relu", "x", "a", domain="mine"),
            node("Relu", "x", "b"),
            node("RandomNormalLike", "x", "c"),
            node("Nonsense", "x", "d"),
            node("FusedConv", "x", "e", domain="com.microsoft"),
            node("Relu", "x", "f", domain="ai.onnx"),
        ],
        [tensor("x", [2])],
        [tensor(name, [2]) for name in "abcdef"],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)],
    )
    program = read(proto)["main"]
    assert orders(program) == [
        ("Relu_0", "RandomNormalLike_2"),
        ("RandomNormalLike_2", "Nonsense_3"),
    ]
    pure = [statement.get("pure", False) for statement in program["statements"]]
    assert pure == [False, True, False, False, True, True]
    done = tools.run(tools.peakproof, "plan", tmp_path / "m.onnx")
    assert '2 nodes have unknown operators ("Relu" is the first)' in done.stderr


def test_functions(tools, read, tmp_path):
    """Functions of the model are opaque."""
    function = helper.make_function(
        "mine", "F", ["x"], ["y"], [node("Abs", "x", "y")], [helper.make_opsetid("", 17)]
    )
    proto = model(
        [node("F", "x", "a", domain="mine"), node("F", "a", "b", domain="mine")],
        [tensor("x", [2])],
        [tensor("b", [2])],
        [tensor("a", [2])],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)],
        functions=[function],
    )
    assert orders(read(proto)["main"]) == [("F_0", "F_1")]
    done = tools.run(tools.peakproof, "plan", tmp_path / "m.onnx")
    assert '2 nodes call functions of the model ("F_0" is the first)' in done.stderr


@pytest.mark.parametrize(
    "opset, inputs, more, ordered",
    [
        (6, "x", {}, True),
        (6, "x", {"is_test": 1}, False),
        (7, "x", {}, False),
        (13, "x r", {}, False),
        (13, "x r t", {}, True),
    ],
)
def test_dropout(read, opset, inputs, more, ordered):
    """Random only where it trains."""
    proto = model(
        [node("Dropout", inputs, "a", **more), node("Dropout", inputs, "b", **more)],
        [tensor("x", [2])],
        [tensor("a", [2]), tensor("b", [2])],
        initializer=[
            helper.make_tensor("r", FLOAT, [], [0.5]),
            helper.make_tensor("t", TensorProto.BOOL, [], [True]),
        ],
        opset=opset,
    )
    assert bool(orders(read(proto)["main"])) == ordered


# ---- Bodies ----


def test_branches(read):
    programs = read(made.branches())
    assert sorted(programs) == ["body1.If.else_branch", "body2.If.then_branch", "main"]
    body = programs["body2.If.then_branch"]
    assert "t" not in sizes(body)  # captured: the memory of the graph around it
    assert statements(body)["Exp_0"] == ([], ["t0_p"])
    assert statements(programs["main"])["If_3"] == (["c", "t", "u"], ["w"])
    works = {s["name"]: s.get("work", 0) for s in programs["main"]["statements"]}
    # Planned: p, q (192), then q, s (132), then s, r (68) and the result (132).
    assert works == {"Abs_0": 0, "Neg_1": 0, "Sin_2": 0, "If_3": 192, "Sum_4": 0}
    assert not programs["main"]["statements"][3].get("pure")


def test_capture_through_two_graphs(read):
    """What an inner body captures from the outermost graph is read by the outermost node, and by no
    storage of the graph in between."""
    inner = helper.make_graph([node("Neg", "t", "p")], "inner", [], [tensor("p", [4])])
    other = helper.make_graph([node("Abs", "t", "q")], "other", [], [tensor("q", [4])])
    nested = node("If", "c", "r", then_branch=inner, else_branch=other)
    outer = helper.make_graph([nested], "outer", [], [tensor("r", [4])])
    plain = helper.make_graph([node("Abs", "x", "s")], "plain", [], [tensor("s", [4])])
    proto = model(
        [node("Abs", "x", "t"), node("If", "c", "y", then_branch=outer, else_branch=plain)],
        [tensor("x", [4]), tensor("c", [], TensorProto.BOOL)],
        [tensor("y", [4])],
        [tensor("t", [4])],
    )
    programs = read(proto)
    assert statements(programs["main"])["If_1"] == (["c", "t", "x"], ["y"])
    assert sizes(programs["body2.If.then_branch"]) == {"r": 16}
    assert sizes(programs["body4.If.then_branch"]) == {"p": 16}


def test_loop(read):
    programs = read(made.loop())
    body = programs["body1.Loop.body"]
    assert {s["name"] for s in body["storages"] if s.get("live_in")} == {"i", "go", "s0"}
    assert {s["name"] for s in body["storages"] if s.get("live_out")} == {"on", "s1"}
    assert statements(programs["main"])["Loop_2"] == (["z", "k", "x"], ["s"])
    assert orders(programs["main"]) == [
        ("RandomNormalLike_0", "Loop_2"),
        ("Loop_2", "RandomNormalLike_3"),
    ]


def test_body_with_the_same_names(read):
    """A body's own value hides that of the graph around it."""
    body = helper.make_graph(
        [node("Neg", "x", "t"), node("Abs", "t", "y")], "b", [], [tensor("y", [2])]
    )
    body.value_info.append(tensor("t", [100]))
    proto = model(
        [node("Abs", "x", "t"), node("If", "c", "z", then_branch=body, else_branch=body)],
        [tensor("x", [2]), tensor("c", [], TensorProto.BOOL)],
        [tensor("z", [2]), tensor("t", [2])],
    )
    programs = read(proto)
    assert statements(programs["main"])["If_1"] == (["c", "x"], ["z"])
    assert sizes(programs["body2.If.then_branch"]) == {"t": 400, "y": 8}


def test_constants_reach_bodies(read):
    body = helper.make_graph([node("Add", "k k", "y")], "b", [], [tensor("y", [2])])
    proto = model(
        [node("Abs", "w", "k"), node("If", "c", "z", then_branch=body, else_branch=body)],
        [tensor("c", [], TensorProto.BOOL)],
        [tensor("z", [2])],
        initializer=[helper.make_tensor("w", FLOAT, [2], [0.0, 1.0])],
    )
    programs = read(proto)
    assert statements(programs["main"]) == {"If_1": (["c"], ["z"])}
    assert statements(programs["body2.If.then_branch"]) == {}


def test_bodies_are_permuted(tools, tmp_path):
    """An order of a body is written into it."""
    path = tools.save(made.branches(), tmp_path / "m.onnx")
    changed = set()
    for seed in range(8):
        tools.permute(path, seed, tmp_path / "out.onnx")
        out = onnx.load(tmp_path / "out.onnx")
        onnx.checker.check_model(out, full_check=True)
        for n in out.graph.node:
            for attribute in n.attribute:
                changed.add(tuple(inner.op_type for inner in attribute.g.node))
    assert len(changed) > 3


# ---- Order of nodes ----


def test_unsorted(tools, tmp_path):
    """Accepted and sorted; the written file is sorted."""
    proto = made.diamond()
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(proto)
    path, output = tools.save(proto, tmp_path / "m.onnx"), tmp_path / "out.onnx"
    done = tools.run(tools.peakproof, "plan", path, "-o", output, "--certificate", tmp_path / "p")
    assert done.returncode == 0
    assert "main: nodes stand before others that they need: sorted" in done.stderr
    onnx.checker.check_model(onnx.load(output))
    command = [tools.peakproof, "verify", "--checker", tools.check, path]
    assert tools.run(*command, output, tmp_path / "p").returncode == 0
    again = tools.plan(output)
    assert again["peak_before"] == again["peak_after"] == tools.plan(path)["peak_after"]


def test_cycle(refuse):
    proto = model(
        [node("Add", "x b", "a"), node("Abs", "a", "b"), node("Abs", "b", "y")],
        [tensor("x", [2])],
        [tensor("y", [2])],
        [tensor("a", [2]), tensor("b", [2])],
    )
    assert 'node "Add_0" waits for itself: the graph has a cycle' in refuse(proto)
    body = helper.make_graph([node("Abs", "y", "p")], "b", [], [tensor("p", [2])])
    proto = model(
        [node("If", "c", "y", then_branch=body, else_branch=body)],
        [tensor("c", [], TensorProto.BOOL)],
        [tensor("y", [2])],
    )
    assert 'node "If_0" waits for itself' in refuse(proto)


def test_shapes_are_looked_at_early(tools, tmp_path):
    """A folded Shape stands behind the node that makes its input, not where it is used: so it does
    not hold that input longer."""
    proto = model(
        [
            node("Abs", "x", "wide", name="wide"),
            node("ReduceSum", "wide", "narrow", keepdims=0, name="narrow"),
            node("Exp", "x", "e0", name="e0"),
            node("Tile", "e0 r", "e1", name="e1"),
            node("Slice", "e1 s e", "e2", name="e2"),
            node("Shape", "wide", "shape", name="shape"),
            node("Expand", "narrow shape", "back", name="back"),
            node("Add", "back e2", "y", name="y"),
        ],
        [tensor("x", [8])],
        [tensor("y", [8])],
        [tensor("wide", [8]), tensor("narrow", []), tensor("e0", [8]), tensor("e1", [800])]
        + [tensor("e2", [8]), tensor("back", [8])],
        [
            helper.make_tensor("r", INT64, [1], [100]),
            helper.make_tensor("s", INT64, [1], [0]),
            helper.make_tensor("e", INT64, [1], [8]),
        ],
    )
    path = tools.save(proto, tmp_path / "m.onnx")
    for seed in range(6):
        tools.permute(path, seed, tmp_path / "out.onnx")
        order = [n.name for n in onnx.load(tmp_path / "out.onnx").graph.node]
        if order != [n.name for n in proto.graph.node]:
            assert order.index("shape") == order.index("wide") + 1, order


def test_shapes_are_waited_for(tools, read, tmp_path):
    """A statement that needs a shape stands behind the one that makes the value, though it reads
    nothing of it. Found by `torture`: a flip that made an operator unknown."""
    proto = made.shaped()
    assert orders(read(proto)["main"]) == [("big", "a")]
    path, output = tmp_path / "m.onnx", tmp_path / "out.onnx"
    for seed in ("planned", "last", *range(20)):
        if seed == "planned":
            report = tools.plan(path, "-o", output)
        else:
            tools.permute(path, seed, output)
        onnx.checker.check_model(onnx.load(output), full_check=True)
    # u, b and v at the least; v, a, x, big and b would be 32 bytes less and more.
    assert report["optimal"] and report["peak_after"] == 4 * (8 + 600 + 1600)


# ---- Names that do not fit ----


def test_wrong_names(refuse):
    one = [tensor("x", [2])]
    proto = model([node("Abs", "z", "y")], one, [tensor("y", [2])])
    assert 'node "Abs_0" reads "z", which nothing defines' in refuse(proto)
    proto = model([node("Abs", "x", "y")], one, [tensor("z", [2])])
    assert 'output "z" is defined by nothing' in refuse(proto)
    proto = model([node("Abs", "x", "y"), node("Neg", "x", "y")], one, [tensor("y", [2])])
    assert 'value "y" is defined twice' in refuse(proto)
    proto = model([node("Abs", "x", "x")], one, one)
    assert 'value "x" is defined twice' in refuse(proto)
    proto = model([node("Abs", "x", "y")], one, [tensor("y", [2])])
    proto.graph.node[0].output[0] = "y\0z"
    assert "a zero byte in " in refuse(proto)


def test_missing_shapes(refuse):
    proto = model(
        [node("Abs", "x", "a"), node("Abs", "a", "b"), node("Abs", "b", "y")],
        [tensor("x", [2])],
        [tensor("y", [2])],
    )
    message = refuse(proto)
    assert 'value "a" has no shape (and 1 more): infer shapes with' in message
    assert "python -m peakproof onnx-shapes IN.onnx -o OUT.onnx" in message


def test_element_types(refuse):
    def proto(kind):
        infos = [tensor("a", [2], kind)]
        return model(
            [node("Abs", "x", "a"), node("Abs", "a", "y")],
            [tensor("x", [2])],
            [tensor("y", [2])],
            infos,
        )

    assert 'value "a" has no shape: infer' in refuse(proto(0))
    assert 'value "a" has the element type 99, which is unknown' in refuse(proto(99))


def test_no_graph(refuse):
    proto = onnx.ModelProto(ir_version=8)
    assert "the model has no graph" in refuse(proto)
    proto = made.diamond().SerializeToString()
    assert "the model has two graphs" in refuse(proto + proto)


# ---- Multiply-accumulates ----


def macs_of(read, kind, inputs, outputs, **more):
    """The macs of one node; inputs, outputs: shapes."""
    names = [f"i{i}" for i in range(len(inputs))]
    outs = [f"o{i}" for i in range(len(outputs))]
    proto = model(
        [helper.make_node(kind, names, outs, **more)],
        [tensor(n, s) for n, s in zip(names, inputs)],
        [tensor(n, s) for n, s in zip(outs, outputs)],
        opset=23,
    )
    return read(proto)["main"]["statements"][0].get("macs")


def test_macs(read):
    def macs(*arguments, **more):
        return macs_of(read, *arguments, **more)

    out = [1, 8, 10, 10]
    assert macs("Conv", [[1, 4, 12, 12], [8, 4, 3, 3]], [out]) == 800 * 36
    assert macs("Conv", [[1, 8, 12, 12], [8, 1, 3, 3]], [out], group=8) == 800 * 9
    transposed = macs("ConvTranspose", [[1, 4, 5, 5], [4, 8, 2, 2]], [out], strides=[2, 2])
    assert transposed == 100 * 32
    assert macs("Gemm", [[3, 5], [5, 7]], [[3, 7]]) == 105
    assert macs("Gemm", [[5, 3], [5, 7]], [[3, 7]], transA=1) == 105
    assert macs("MatMul", [[2, 3, 5], [2, 5, 7]], [[2, 3, 7]]) == 210
    assert macs("MatMul", [[5], [5, 7]], [[7]]) == 35
    lstm = [[11, 2, 3], [1, 16, 3], [1, 16, 4]]
    assert macs("LSTM", lstm, [[11, 1, 2, 4]], hidden_size=4) == 22 * 16 * 7
    gru = [[11, 2, 3], [2, 12, 3], [2, 12, 4]]
    found = macs("GRU", gru, [[11, 2, 2, 4]], hidden_size=4, direction="bidirectional")
    assert found == 22 * 24 * 7
    heads = [[1, 2, 5, 4], [1, 2, 7, 4], [1, 2, 7, 3]]
    assert macs("Attention", heads, [[1, 2, 5, 3]]) == 2 * 5 * 7 * (4 + 3)
    found = macs("Einsum", [[2, 3, 4], [4, 5]], [[2, 3, 5]], equation="abk, kn -> abn")
    assert found == 2 * 3 * 4 * 5
    assert macs("Einsum", [[2, 3], [2, 3]], [[]], equation="...,...") is None
    assert macs("Relu", [[5]], [[5]]) == 0
    assert macs("Det", [[5, 5]], [[]]) is None
    assert macs("Conv", [[1, 4, 1], [1, 2**40, 1]], [[1, 2**30, 1]]) is None


# ---- verify ----


def test_verify_refuses(tools, tmp_path):
    """Another byte, an illegal order, another model: no."""
    path = tools.save(made.diamond(), tmp_path / "m.onnx")
    tools.plan(path, "-o", tmp_path / "good.onnx", "--certificate", tmp_path / "p")

    def verify(data):
        bad = tools.save(data, tmp_path / "bad.onnx")
        command = [tools.peakproof, "verify", "-q", "--checker", tools.check, path, bad]
        done = tools.run(*command, tmp_path / "p")
        return done.returncode, done.stdout

    good = (tmp_path / "good.onnx").read_bytes()
    assert verify(good) == (0, "")
    changed = onnx.load(path)
    changed.graph.doc_string = "x"
    assert verify(changed)[0] == 1
    at = good.rindex(b"Abs")
    code, said = verify(good[:at] + b"Neg" + good[at + 3 :])
    assert code == 1 and f"byte {at}: another byte" in said
    proto = onnx.load(tmp_path / "good.onnx")
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))
    code, said = verify(proto)
    assert code == 1 and "nodes stand before others that they need" in said
    proto = made.diamond()
    proto.graph.node[0].output[0] = "B"
    proto.graph.node[3].input[1] = "B"
    proto.graph.value_info[0].name = "B"
    code, said = verify(proto)
    assert code == 1 and 'node "Abs_0" is none of the original' in said
    # Legal, but not the certificate's order.
    assert verify(path.read_bytes())[0] == (path.read_bytes() != good)


# ---- onnx-shapes ----


def test_onnx_shapes_errors(tools, tmp_path):
    path = tools.save(made.diamond(), tmp_path / "m.onnx")
    out = tmp_path / "out.onnx"
    assert tools.shapes(tmp_path / "none.onnx", out).returncode == 66
    assert tools.shapes(tools.save(b"\xff\xff\xff", tmp_path / "bad.onnx"), out).returncode == 65
    assert tools.shapes(tools.save(b"", tmp_path / "bad.onnx"), out).returncode == 65
    assert tools.shapes(path, out, "--dim", "N").returncode == 64
    assert tools.shapes(path, out, "--dim", "N=-1").returncode == 64
    assert tools.shapes(path, tmp_path / "no/out.onnx").returncode == 73
    assert not out.exists() and not list(tmp_path.glob(".*"))
    done = tools.shapes(path, out, "--dim", "N=2")
    assert done.returncode == 0 and "no value has a dimension 'N'" in done.stderr


def test_onnx_shapes_dimensions(tools, tmp_path):
    """A size that is set reaches all that follows from it."""
    proto = model(
        [node("Concat", "x x", "a", axis=0), node("Abs", "a", "y")],
        [tensor("x", ["N", 3])],
        [tensor("y", ["M", 3])],
    )
    path, out = tools.save(proto, tmp_path / "m.onnx"), tmp_path / "out.onnx"
    done = tools.shapes(path, out, "--dim", "N=4")
    assert done.returncode == 0, done.stderr
    shaped = onnx.load(out).graph
    assert [d.dim_value for d in shaped.value_info[0].type.tensor_type.shape.dim] == [8, 3]
    assert [d.dim_value for d in shaped.output[0].type.tensor_type.shape.dim] == [8, 3]
    done = tools.shapes(path, out)
    assert done.returncode == 0 and "dimensions are not set" in done.stderr


def test_json_is_json(tools, tmp_path):
    path = tools.save(made.branches(), tmp_path / "m.onnx")
    report = tools.plan(path)
    assert json.dumps(report) and [p["name"] for p in report["programs"]][0] == "main"


def test_onnx_shapes_of_computed_shapes(tools, tmp_path):
    """Shapes that onnx alone does not follow: they come from arithmetic on shapes. What would take
    much memory is left alone."""
    proto = model(
        [
            node("Shape", "x", "s"),
            node("Unsqueeze", "x zero", "u"),
            node("ReduceProd", "s", "p"),
            node("ScatterND", "s at p", "t"),
            node("Div", "t s", "q"),
            node("Where", "yes q s", "r"),
            node("Reshape", "u r", "y"),
            node("Range", "from much step", "huge"),
            node("Reshape", "x huge", "z"),
        ],
        [tensor("x", [4, 6])],
        [tensor("y", ["a", "b"]), tensor("z", None)],
        [],
        [
            helper.make_tensor("zero", INT64, [1], [0]),
            helper.make_tensor("at", INT64, [1, 1], [1]),
            helper.make_tensor("yes", TensorProto.BOOL, [2], [False, True]),
            helper.make_tensor("from", INT64, [], [0]),
            helper.make_tensor("much", INT64, [], [10**12]),
            helper.make_tensor("step", INT64, [], [1]),
        ],
    )
    path = tools.save(proto, tmp_path / "m.onnx")
    assert tools.shapes(path, tmp_path / "out.onnx").returncode == 0
    infos = {v.name: v.type.tensor_type for v in onnx.load(tmp_path / "out.onnx").graph.value_info}
    infos |= {v.name: v.type.tensor_type for v in onnx.load(tmp_path / "out.onnx").graph.output}
    found = {n: [d.dim_value for d in infos[n].shape.dim] for n in ("u", "p", "t", "q", "y")}
    assert found == {"u": [1, 4, 6], "p": [1], "t": [2], "q": [2], "y": [4, 4]}
    nodes = [onnx.load(p).graph.node for p in (path, tmp_path / "out.onnx")]
    assert nodes[0] == nodes[1]
