"""Models made by hand: what is modelled, in the rules of TFLITE.md section 1."""

import json
import struct
import time
from pathlib import Path

import flat
import made
import pytest
from diff import permutation
from flat import Model, Table, Vector, control_dependencies, objects, offline_plan, options


class Kit:
    """Writes models, and tells what the tools make of them."""

    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder

    def write(self, model, name="model.tflite"):
        path = self.folder / name
        path.write_bytes(model if isinstance(model, (bytes, bytearray)) else model.bytes())
        return path

    def programs(self, model, code=0):
        """The program JSON of every subgraph, in order, and what was said (str)."""
        path = self.write(model)
        out = self.folder / "json"
        out.mkdir(exist_ok=True)
        for old in out.iterdir():
            old.unlink()
        names = [p["name"] for p in self.tools.plan(path)["programs"]]
        done = self.tools.run(self.tools.peakproof, "convert", path, "-o", out)
        assert done.returncode == code, done.stderr
        return [json.loads((out / f"{name}.json").read_text()) for name in names], done.stderr

    def program(self, model):
        """The only subgraph's."""
        programs, said = self.programs(model)
        assert len(programs) == 1
        return programs[0], said

    def permute(self, model, seed=1):
        """The model, permuted with tflite-permute; returns (bytes before, bytes after, orders)."""
        path, output = self.write(model), self.folder / "permuted.tflite"
        entries = self.tools.permute(path, seed, output)
        orders = [entries[i]["order"] for i in range(len(entries))]
        before, after = path.read_bytes(), output.read_bytes()
        assert permutation(before, after) == orders
        done = self.compare(before, after)
        assert done.returncode == 0 and json.loads(done.stdout) == orders
        return before, after, orders

    def compare(self, before, after, *more):
        tool = self.tools.torture.with_name("tflite-compare")
        a, b = self.write(before, "a.tflite"), self.write(after, "b.tflite")
        return self.tools.run(tool, a, b, *more)


@pytest.fixture
def kit(tools, tmp_path):
    return Kit(tools, tmp_path)


def order_pairs(program):
    return {tuple(pair) for pair in program.get("order", [])}


def closure(program):
    """All pairs that the program's `order` implies."""
    n = len(program["statements"])
    after = [set() for _ in range(n)]
    for a, b in order_pairs(program):
        after[a].add(b)
    for a in reversed(range(n)):
        for b in list(after[a]):
            after[a] |= after[b]
    return {(a, b) for a in range(n) for b in after[a]}


def independent(model, count=2, name=None, size=64):
    """A subgraph of `count` operators without dependences: relu of one input each."""
    graph = model.subgraph(name)
    for _ in range(count):
        a, b = graph.tensor((size,)), graph.tensor((size,))
        graph.operator(flat.RELU, [a], [b])
        graph.inputs.append(a)
        graph.outputs.append(b)
    return graph


# ---- Tensors ----

SIZES = {
    flat.FLOAT32: 60,
    flat.FLOAT16: 30,
    flat.INT32: 60,
    flat.UINT8: 15,
    flat.INT64: 120,
    flat.STRING: 0,
    flat.BOOL: 15,
    flat.INT16: 30,
    flat.COMPLEX64: 120,
    flat.INT8: 15,
    flat.FLOAT64: 120,
    flat.COMPLEX128: 240,
    flat.UINT64: 120,
    flat.RESOURCE: 0,
    flat.VARIANT: 0,
    flat.UINT32: 60,
    flat.UINT16: 30,
    flat.INT4: 8,
    flat.BFLOAT16: 30,
    flat.INT2: 4,
    flat.UINT4: 8,
    flat.FLOAT8_E4M3FN: 15,
    flat.FLOAT8_E5M2: 15,
    99: 0,
}


def test_sizes(kit):
    """15 elements of every type; one of unknown size says so."""
    model = Model()
    graph = model.subgraph()
    graph.inputs = [graph.tensor((3, 5), type) for type in SIZES]
    graph.outputs = graph.inputs
    program, said = kit.program(model)
    assert [s["bytes"] for s in program["storages"]] == list(SIZES.values())
    for what in ("string", "resource", "variant", "unknown-type"):
        assert f"1 {what} tensor (first:" in said


@pytest.mark.parametrize(
    "shape, elements",
    [((), 1), ((0,), 0), ((7, 0, 2**31 - 1), 0), ((2**31 - 1,) * 2, (2**31 - 1) ** 2)],
)
def test_shapes(kit, shape, elements):
    model = Model()
    graph = model.subgraph()
    graph.inputs = graph.outputs = [graph.tensor(shape)]
    program, _ = kit.program(model)
    assert [s["bytes"] for s in program["storages"]] == [elements]


def test_notices(kit):
    """Dynamic and sparse tensors are reported once a subgraph, not once a tensor."""
    model = Model()
    graph = model.subgraph()
    graph.inputs = [graph.tensor((1, 4), signature=(-1, 4)) for _ in range(3)]
    graph.inputs.append(graph.tensor((4, 4), f6=Table(f0=Vector([0, 1]))))
    constant = graph.tensor((4, 4), data=bytes(16), f6=Table(f0=Vector([0, 1])))
    out = graph.tensor((4, 4))
    graph.operator(flat.ADD, [graph.inputs[3], constant], [out])
    _, said = kit.program(model)
    assert "3 dynamic-shape tensors (first: 0)" in said
    assert "1 sparse non-constant tensor (first: 3)" in said
    assert said.count("note:") == 2


def test_constants_and_optional_tensors(kit):
    """Constants, variables and absent tensors are no storages; an operator on constants has an
    output that is. Inputs live in, outputs live out."""
    model = Model()
    graph = model.subgraph("main")
    weights = graph.tensor((8,), data=bytes(8), name="weights")
    state = graph.tensor((100,), variable=True, name="state")
    x, y, z = (graph.tensor((8,), name=n) for n in "xyz")
    graph.operator(flat.RELU, [weights], [y])
    graph.operator(flat.SVDF, [x, y, weights, -1, state], [z])
    graph.inputs, graph.outputs = [x], [z, weights]
    program, _ = kit.program(model)
    assert program["name"] == "main"
    assert [s["name"] for s in program["storages"]] == ["x", "y", "z"]
    assert [s.get("live_in", False) for s in program["storages"]] == [True, False, False]
    assert [s.get("live_out", False) for s in program["storages"]] == [False, False, True]
    assert program["statements"][0]["writes"] == program["statements"][0]["overwrites"] == [1]
    assert sorted(program["statements"][1]["reads"]) == [0, 1]
    assert [s.get("pure", False) for s in program["statements"]] == [True, False]
    assert [s["name"] for s in program["statements"]] == ["relu_0", "svdf_1"]


def test_empty_constant(kit):
    """A constant without elements has no data, and nothing produces it: it runs."""
    model = Model()
    graph = model.subgraph()
    x, y, shape = graph.tensor((1,)), graph.tensor(()), graph.tensor((0,), flat.INT32)
    graph.operator(flat.RESHAPE, [x, shape], [y])
    graph.inputs, graph.outputs = [x], [y]
    program, _ = kit.program(model)
    assert len(program["statements"]) == 1


def test_external_data(kit):
    """Constants whose data lies behind the FlatBuffer, or in another file."""
    model = Model()
    graph = model.subgraph()
    x, y = graph.tensor(), graph.tensor()
    model.buffers.append(Table(f1=("Q", 0), f2=("Q", 0)))
    behind = graph.tensor((64,), buffer=1)
    elsewhere = graph.tensor((64,), f10=("I", 1))
    graph.operator(flat.ADD, [x, behind], [y])
    graph.operator(flat.ADD, [x, elsewhere], [graph.tensor()])
    graph.inputs, graph.outputs = [x], [y]
    data = model.bytes()
    size = len(data)
    model.buffers[1].fields = {1: ("Q", size), 2: ("Q", 64)}
    data = model.bytes() + bytes(range(64))
    assert len(data) == size + 64
    program, _ = kit.program(data)
    assert len(program["storages"]) == 3
    kit.permute(data, "last")
    model.buffers[1].fields = {1: ("Q", size), 2: ("Q", 65)}
    done = kit.tools.run(kit.tools.peakproof, "plan", kit.write(model.bytes() + bytes(64)))
    assert done.returncode == 65


def test_shared_large_data(kit):
    """Two buffers may have the same data, and data of 64 KiB and more is handled apart."""
    model = Model()
    graph = model.subgraph()
    x = graph.tensor((70000,))
    graph.inputs = [x]
    data = Vector(bytes(70000), "B", 16)
    for _ in range(3):
        model.buffers.append(Table(f0=data))
        weights = graph.tensor((70000,), buffer=len(model.buffers) - 1)
        y = graph.tensor((70000,))
        graph.operator(flat.ADD, [x, weights], [y])
        graph.outputs.append(y)
    assert kit.permute(model, "last")[2] == [[2, 1, 0]]


def test_many_operators(kit):
    """A vector of operators of 64 KiB and more."""
    model = Model()
    independent(model, 20000, size=1)
    kit.permute(model, 1)


# ---- Multiply-accumulates ----


def test_macs(kit):
    model = Model()
    graph = model.subgraph()
    x = graph.tensor((1, 8, 8, 4))
    graph.inputs = [x]

    def layer(builtin, weights, out, inputs=None, **more):
        w = graph.tensor(weights, data=bytes(4))
        y = graph.tensor(out)
        graph.operator(builtin, inputs(w) if inputs else [x, w, -1], [y], **more)

    layer(3, (16, 3, 3, 4), (1, 8, 8, 16))  # CONV_2D
    layer(4, (1, 3, 3, 4), (1, 8, 8, 4))  # DEPTHWISE_CONV_2D
    layer(9, (10, 256), (1, 10))  # FULLY_CONNECTED
    layer(67, (2, 3, 3, 4), (1, 16, 16, 2), lambda w: [-1, w, x])  # TRANSPOSE_CONV
    y, z, w = graph.tensor((2, 5, 7)), graph.tensor((2, 7, 3)), graph.tensor((2, 5, 3))
    graph.inputs += [y, z]
    graph.operator(126, [y, z], [w])  # BATCH_MATMUL
    v = graph.tensor((2, 7, 5))
    graph.inputs.append(v)
    graph.operator(
        126, [v, z], [graph.tensor((2, 5, 3))], f3=("B", 101), f4=Table(f0=("B", 1))
    )  # transposed
    graph.operator(flat.ADD, [x, x], [graph.tensor((1, 8, 8, 4))])
    program, _ = kit.program(model)
    assert [s.get("macs") for s in program["statements"]] == [
        8 * 8 * 16 * 9 * 4,
        8 * 8 * 4 * 9,
        2560,
        8 * 8 * 4 * 2 * 9,
        2 * 5 * 3 * 7,
        2 * 5 * 3 * 7,
        0,
    ]
    assert program["statements"][-1]["reads"] == [0]


# ---- State ----


def svdf(graph, state):
    x, y = graph.tensor(), graph.tensor()
    graph.inputs.append(x)
    graph.outputs.append(y)
    return graph.operator(flat.SVDF, [x, -1, -1, -1, state], [y])


def test_variable_tensors(kit):
    model = Model()
    graph = model.subgraph()
    a, b = graph.tensor(variable=True), graph.tensor(variable=True)
    for state in (a, b, a, b, a):
        svdf(graph, state)
    program, _ = kit.program(model)
    assert order_pairs(program) == {(0, 2), (2, 4), (1, 3)}


def custom(graph, name="Mystery"):
    x, y = graph.tensor(), graph.tensor()
    graph.inputs.append(x)
    graph.outputs.append(y)
    return graph.operator(flat.CUSTOM, [x], [y], custom=name)


def relu(graph):
    x, y = graph.tensor(), graph.tensor()
    graph.inputs.append(x)
    graph.outputs.append(y)
    return graph.operator(flat.RELU, [x], [y])


def test_custom(kit):
    """Custom operators keep their order among each other and among stateful ones."""
    model = Model()
    graph = model.subgraph()
    a = graph.tensor(variable=True)
    custom(graph)  # 0
    relu(graph)  # 1
    svdf(graph, a)  # 2
    custom(graph, "Other")  # 3
    custom(graph)  # 4
    svdf(graph, a)  # 5
    program, _ = kit.program(model)
    stateful = [0, 2, 3, 4, 5]
    assert closure(program) == {(x, y) for x in stateful for y in stateful if x < y}
    assert [s["name"] for s in program["statements"]][3] == "Other_3"
    assert not any(s.get("pure") for i, s in enumerate(program["statements"]) if i != 1)
    assert "overwrites" not in program["statements"][0]


@pytest.mark.parametrize("builtin", [51, 127, 173, 210, 100000])
def test_unknown_operators(kit, builtin):
    """Delegates, STABLEHLO_CUSTOM_CALL and operators of a newer schema count as custom ones."""
    model = Model()
    graph = model.subgraph()
    custom(graph)
    relu(graph)
    x, y = graph.tensor(), graph.tensor()
    graph.inputs.append(x)
    graph.operator(builtin, [x], [y])
    program, said = kit.program(model)
    assert closure(program) == {(0, 2)}
    assert ("newer than this version" in said) == (builtin >= 210)


def handle(graph, name, container=None):
    out = graph.tensor((), flat.RESOURCE)
    more = options(111)
    more["f4"] = Table(
        f0=flat.String(container) if container else None, f1=flat.String(name) if name else None
    )
    return graph.operator(flat.VAR_HANDLE, [], [out], **more), out


def read(graph, resource):
    y = graph.tensor()
    graph.outputs.append(y)
    return graph.operator(flat.READ_VARIABLE, [resource], [y])


def assign(graph, resource):
    x = graph.tensor()
    graph.inputs.append(x)
    return graph.operator(flat.ASSIGN_VARIABLE, [resource, x], [])


def test_resources(kit):
    """Handles of the same name and container are one resource, whichever operator gives them."""
    model = Model()
    graph = model.subgraph()
    a0, a = handle(graph, "a")
    a1, other_a = handle(graph, "a")
    b0, b = handle(graph, "b")
    c0, c = handle(graph, "a", "box")
    ra = read(graph, a)
    wb = assign(graph, b)
    wa = assign(graph, other_a)
    wc = assign(graph, c)
    rb = read(graph, b)
    rc = read(graph, c)
    program, said = kit.program(model)
    chains = [[a0, a1, ra, wa], [b0, wb, rb], [c0, wc, rc]]
    expected = {(x, y) for chain in chains for i, x in enumerate(chain) for y in chain[i + 1 :]}
    assert closure(program) == expected
    assert "4 resource tensors" in said
    assert not any(s.get("pure") for s in program["statements"])


def test_unknown_handle(kit):
    """A handle that comes from outside may be of any resource."""
    model = Model()
    graph = model.subgraph()
    outside = graph.tensor((), flat.RESOURCE)
    graph.inputs.append(outside)
    a0, a = handle(graph, "a")
    read(graph, a)
    assign(graph, outside)
    read(graph, a)
    relu(graph)
    program, _ = kit.program(model)
    assert closure(program) == {(x, y) for x in range(4) for y in range(4) if x < y}


def test_hash_tables(kit):
    model = Model()
    graph = model.subgraph()

    def table(number):
        out = graph.tensor((), flat.RESOURCE)
        more = {"f3": ("B", 107), "f4": Table(f0=("i", number), f1=("b", 5), f2=("b", 4))}
        return graph.operator(flat.HASHTABLE, [], [out], **more), out

    t0, t = table(1)
    u0, u = table(2)
    values = graph.tensor()
    graph.inputs.append(values)
    ti = graph.operator(flat.HASHTABLE_IMPORT, [t, values, values], [])
    ui = graph.operator(flat.HASHTABLE_IMPORT, [u, values, values], [])
    tf = graph.operator(flat.HASHTABLE_FIND, [t, values, values], [graph.tensor()])
    program, _ = kit.program(model)
    assert closure(program) == {(t0, ti), (t0, tf), (ti, tf), (u0, ui)}


def test_random_numbers(kit):
    model = Model()
    graph = model.subgraph()
    shape = graph.tensor((1,), flat.INT32, data=b"\4\0\0\0")
    for builtin in (flat.RANDOM_UNIFORM, flat.RELU, 146, 149, 204):
        x = graph.tensor()
        graph.inputs.append(x)
        graph.operator(builtin, [shape if builtin != flat.RELU else x], [graph.tensor()])
    program, _ = kit.program(model)
    assert order_pairs(program) == {(0, 2), (2, 3), (3, 4)}
    assert [s.get("pure", False) for s in program["statements"]] == [False, True] + [False] * 3


def test_mutating_input(kit):
    """An input that its operator changes is written: readers stay on their side."""
    model = Model()
    graph = model.subgraph()
    x = graph.tensor()
    graph.inputs = [x]
    graph.operator(flat.RELU, [x], [graph.tensor()])
    graph.operator(flat.RELU, [x], [graph.tensor()], f7=Vector([1], "B"))
    graph.operator(flat.RELU, [x], [graph.tensor()])
    program, _ = kit.program(model)
    assert program["statements"][1]["writes"] == [0, 2] or program["statements"][1]["writes"] == [
        2,
        0,
    ]
    assert kit.permute(model, "last")[2] == [[0, 1, 2]]


# ---- Control flow ----


def identity(model, name, size):
    """A subgraph of one operator that holds 2 * size bytes."""
    graph = model.subgraph(name)
    x, y = graph.tensor((size,)), graph.tensor((size,))
    graph.operator(flat.RELU, [x], [y])
    graph.inputs, graph.outputs = [x], [y]
    return graph


CALLS = {
    "IF": (flat.IF, options(92, 1, 2)),
    "WHILE": (flat.WHILE, options(93, 1, 2)),
    "STABLEHLO_CASE": (flat.CASE, flat.options2(23, Vector([1, 2]))),
    "CALL": (flat.CALL, options(16, 2)),
    "CALL_ONCE": (flat.CALL_ONCE, options(103, 2)),
    "STABLEHLO_WHILE": (200, flat.options2(15, 1, 2)),
    "STABLEHLO_COMPOSITE": (flat.COMPOSITE, flat.options2(21, flat.String("x"), 2)),
    "STABLEHLO_REDUCE": (174, flat.options2(6, Vector([], "q"), 2)),
    "STABLEHLO_SORT": (199, {"f11": ("B", 14), "f12": Table(f2=("i", 2))}),
    "STABLEHLO_SCATTER": (190, {"f11": ("B", 7), "f12": Table(f6=("i", 2))}),
    "STABLEHLO_REDUCE_WINDOW": (198, {"f11": ("B", 13), "f12": Table(f5=("i", 2))}),
}


def test_numbers_of_calls():
    """Codes and options are the schema's."""
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    for name, (builtin, more) in CALLS.items():
        assert getattr(schema.BuiltinOperator, name) == builtin
        union = schema.BuiltinOptions2 if "f11" in more else schema.BuiltinOptions
        tag = more.get("f11", more.get("f3"))[1]
        options = "".join(word.capitalize() for word in name.split("_")) + "Options"
        names = {options, options.replace("StablehloC", "StableHLOC")}
        assert tag in [getattr(union, n) for n in names if hasattr(union, n)]


@pytest.mark.parametrize("name", CALLS)
def test_callees(kit, name):
    """The peak of the largest callee is work of the statement that calls."""
    builtin, more = CALLS[name]
    model = Model()
    graph = model.subgraph("main")
    x, y = graph.tensor((10,)), graph.tensor((10,))
    graph.operator(builtin, [x], [y], **more)
    graph.inputs, graph.outputs = [x], [y]
    identity(model, "one", 100)
    identity(model, "two", 300)
    programs, _ = kit.programs(model)
    assert [p["name"] for p in programs] == ["main", "one", "two"]
    assert [s.get("work", 0) for p in programs for s in p["statements"]] == [600, 0, 0]
    assert not programs[0]["statements"][0].get("pure", False)
    before, after, orders = kit.permute(model, "last")
    assert before == after and orders == [[0], [0], [0]]


def test_calls_of_calls(kit):
    """Peaks go up from callee to caller, whatever the numbering; the optimised peak counts."""
    model = Model()
    top = model.subgraph("top")
    top.operator(flat.CALL, [], [], **options(16, 2))
    low = model.subgraph("low")
    x, y = low.tensor((50,)), low.tensor((50,))
    low.operator(flat.RELU, [x], [y])
    low.inputs, low.outputs = [x], [y]
    middle = model.subgraph("middle")
    middle.operator(flat.CALL, [], [], **options(16, 1))
    plan = kit.tools.plan(kit.write(model))
    assert [p["peak_before"] for p in plan["programs"]] == [100, 100, 100]


def test_deep_calls(kit):
    """Ten thousand subgraphs, each calling the next one."""
    model = Model()
    count = 10000
    for i in range(count):
        graph = model.subgraph()
        x = graph.tensor((4,))
        graph.inputs = graph.outputs = [x]
        if i + 1 < count:
            graph.operator(flat.CALL, [x], [], **options(16, i + 1))
    output = kit.folder / "out.tflite"
    kit.tools.permute(kit.write(model), 1, output)
    assert output.read_bytes() == model.bytes()


def least_seconds(call):
    """How long a call takes: the least of three, as others may take the processor for a while."""
    found = []
    for _ in range(3):
        begin = time.monotonic()
        call()
        found.append(time.monotonic() - begin)
    return min(found)


def test_wide_calls(kit):
    """Operators that choose among all of thousands of subgraphs do not cost their square."""

    def seconds(count):
        model = Model()
        graph = model.subgraph("main")
        for _ in range(50):
            graph.operator(flat.CASE, [], [], **flat.options2(23, Vector(range(1, count + 1))))
        for i in range(count):
            identity(model, None, 1 + i % 7)
        path = kit.write(model)
        return least_seconds(lambda: kit.tools.permute(path, 1, kit.folder / "out.tflite"))

    assert seconds(6000) < 40 * seconds(600)  # 10 are linear, 100 the square


def test_effects_of_callees(kit):
    """A caller has the effects of what it calls: here two resources in two callees."""
    model = Model()
    graph = model.subgraph("main")
    _, a = handle(graph, "a")  # 0
    _, b = handle(graph, "b")  # 1
    graph.operator(flat.CALL, [], [], **options(16, 1))  # 2: a
    graph.operator(flat.CALL, [], [], **options(16, 2))  # 3: b
    read(graph, b)  # 4
    read(graph, a)  # 5
    graph.operator(flat.CALL_ONCE, [], [], **options(103, 1))  # 6: a
    graph.operator(flat.CALL, [], [], **options(16, 3))  # 7: a variable of its own
    graph.operator(flat.CALL, [], [], **options(16, 3))  # 8
    graph.operator(flat.CALL, [], [], **options(16, 4))  # 9: nothing
    for name in "ab":
        callee = model.subgraph()
        _, resource = handle(callee, name)
        assign(callee, resource)
    own = model.subgraph()
    svdf(own, own.tensor(variable=True))
    identity(model, None, 1)
    programs, _ = kit.programs(model)
    chains = [[0, 2, 5, 6], [1, 3, 4], [7, 8]]
    expected = {(x, y) for chain in chains for i, x in enumerate(chain) for y in chain[i + 1 :]}
    assert closure(programs[0]) == expected


def test_unknown_callee(kit):
    """A callee with a custom operator makes its caller one."""
    model = Model()
    graph = model.subgraph()
    custom(graph)
    graph.operator(flat.IF, [], [], **options(92, 1, 2))
    graph.operator(flat.IF, [], [], **options(92, 2, 2))
    custom(model.subgraph())
    identity(model, None, 1)
    programs, _ = kit.programs(model)
    assert closure(programs[0]) == {(0, 1)}


def test_many_resources(kit):
    """More state than is kept apart: any order that the file had is kept."""
    model = Model()
    graph = model.subgraph()
    graph.operator(flat.CALL, [], [], **options(16, 1))
    _, a = handle(graph, "17")
    graph.operator(flat.CALL, [], [], **options(16, 1))
    callee = model.subgraph()
    for i in range(100):
        assign(callee, handle(callee, str(i))[1])
    programs, _ = kit.programs(model)
    assert closure(programs[0]) == {(0, 1), (0, 2), (1, 2)}


# ---- Metadata ----


def with_edges(count, pairs, padding=0):
    model = Model()
    independent(model, count)
    if padding:
        model.add_metadata("min_runtime_version", b"1.5.0".ljust(padding, b"\0"))
    model.add_metadata("model_control_dependencies", control_dependencies([pairs]))
    return model


def test_control_dependencies(kit):
    """They are obeyed, and renumbered in place where the bytes suffice."""
    pairs = [(0, 3), (1, 2), (2, 4)]
    program, _ = kit.program(with_edges(6, pairs))
    assert order_pairs(program) == set(pairs)
    moved = 0
    for seed in range(20):
        before, after, orders = kit.permute(with_edges(6, pairs, 16), seed)
        assert len(before) == len(after)
        moved += before != after
    assert moved


def test_control_dependencies_grow(kit):
    """Operator 64 and later ones need two bytes: the list moves to the end of the file."""
    pairs = [(0, 1), (2, 3), (98, 99)]
    sizes = set()
    for seed in range(10):
        before, after, _ = kit.permute(with_edges(100, pairs), seed)
        sizes.add(len(after) - len(before))
    assert len(sizes) > 1 and min(sizes) >= 0


def test_control_dependencies_fewer_lists(kit):
    """Lists for the first subgraphs only; the others have none."""
    model = with_edges(3, [(0, 2)])
    independent(model, 4)
    before, after, orders = kit.permute(model, 3)
    assert len(orders) == 2


def test_control_dependencies_shared(kit):
    """A buffer that serves something else too cannot be rewritten, and is not."""
    model = with_edges(6, [(0, 5), (1, 4)])
    model.metadata.append(Table(f0=flat.String("copy"), f1=("I", len(model.buffers) - 1)))
    path, output = kit.write(model), kit.folder / "out.tflite"
    done = kit.tools.run(kit.tools.permute_tool, path, "last", output)
    assert done.returncode == 65 and "serves something else" in done.stderr
    assert output.read_bytes() == b""


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", "no data"),
        (b"\2\1\0", "version"),
        (b"\1", "subgraphs"),
        (b"\1\2\0\0", "more subgraphs"),
        (b"\1\1\1\0", "cut short"),
        (b"\1\1\1\0\x80", "cut short"),
        (b"\1\1\1\0\xff\xff\xff\xff\x7f", "cut short"),
        (b"\1\1\1\0\6", "do not both exist"),
        (b"\1\1\1\0\3", "do not both exist"),
        (b"\1\1\1\2\0", "must run before"),
        (b"\1\1\1\2\2", "must run before"),
        (b"\1\1\0\0", "left over"),
        (b"\1\1\xff\xff\xff\xff\x0f", "cut short"),
    ],
)
def test_bad_control_dependencies(kit, data, reason):
    model = Model()
    independent(model, 3)
    model.buffers.append(Table(f0=Vector(data, "B", 16)))
    name = flat.String("model_control_dependencies")
    model.metadata.append(Table(f0=name, f1=("I", 1)))
    done = kit.tools.run(kit.tools.peakproof, "plan", kit.write(model))
    assert done.returncode == 65 and reason in done.stderr and "byte" in done.stderr


def test_control_dependencies_twice(kit):
    model = with_edges(3, [(0, 1)])
    model.add_metadata("model_control_dependencies", control_dependencies([[(1, 2)]]))
    done = kit.tools.run(kit.tools.peakproof, "plan", kit.write(model))
    assert done.returncode == 65 and "twice" in done.stderr


@pytest.mark.parametrize("place", [0, 1, 2])
def test_offline_plan(kit, place):
    """Removed when the order changed, wherever it stands; kept else. A notice says so."""
    model = Model()
    graph = independent(model, 4)
    names = ["one", "", "two"]
    names.insert(place, "OfflineMemoryAllocation")
    for name in names:
        plan = offline_plan([-1] * len(graph.tensors))
        model.add_metadata(name, plan if name.startswith("Off") else b"data")
    before, after, orders = kit.permute(model, "last")
    assert orders[0] != sorted(orders[0]) and len(before) == len(after)
    done = kit.tools.run(kit.tools.peakproof, "plan", kit.folder / "permuted.tflite")
    assert "offline memory plan" not in done.stderr
    program, said = kit.program(model)
    assert "offline memory plan (OfflineMemoryAllocation)" in said
    output = kit.folder / "same.tflite"
    kit.tools.plan(kit.write(model), "-o", output)
    assert output.read_bytes() == before  # nothing to gain, so nothing changed


def test_broken_offline_plan(kit):
    model = Model()
    independent(model, 4)
    model.add_metadata("OfflineMemoryAllocation", offline_plan([0, 64])[:-3])
    _, said = kit.program(model)
    assert "does not have one offset for each of the 8 tensors" in said
    kit.permute(model, "last")


def test_everything_at_once(kit):
    """Control dependencies that move, a plan that goes, three subgraphs, other metadata."""
    model = Model()
    graph = independent(model, 80)
    graph.operator(flat.CALL, [], [], **options(16, 2))
    independent(model, 5)
    independent(model, 3, "callee")
    model.add_metadata("first", b"1")
    model.add_metadata("OfflineMemoryAllocation", offline_plan([-1] * 176))
    model.add_metadata(
        "model_control_dependencies",
        control_dependencies([[(0, 79), (3, 70), (5, 80)], [(0, 4)], []]),
    )
    model.add_metadata("last", b"2")
    for seed in range(5):
        kit.permute(model, seed)


# ---- Names ----


def test_names(kit):
    """Programs are called as the subgraphs, made fit for files; all subgraphN if two agree."""
    model = Model()
    for name in ("a/b c", "../x", "-é", None, ""):
        identity(model, name, 1)
    names = [p["name"] for p in kit.programs(model)[0]]
    assert names == ["a_b_c", "_._x", "-__", "subgraph3", "subgraph4"]
    identity(model, "a b/c", 1)
    names = [p["name"] for p in kit.programs(model)[0]]
    assert names == [f"subgraph{i}" for i in range(6)]


def test_long_name(kit):
    model = Model()
    identity(model, "n" * 5000, 1)
    program, _ = kit.program(model)
    assert program["name"] == "n" * 100


# ---- Comparing ----


def with_all_metadata(count):
    """Independent operators, and all metadata that a permutation touches."""
    model = Model()
    graph = independent(model, count, size=4)
    model.add_metadata("x", b"1")
    model.add_metadata("OfflineMemoryAllocation", offline_plan([-1] * len(graph.tensors)))
    model.add_metadata("model_control_dependencies", control_dependencies([[(0, 1)]]))
    return model


@pytest.mark.parametrize("count, appended", [(3, False), (70, True)])
def test_compare_every_bit(kit, count, appended):
    """No file that differs from a permuted one in one bit passes for a permutation."""
    model = with_all_metadata(count)
    before, after, _ = kit.permute(model, "last")
    assert (len(after) > len(before)) == appended
    done = kit.compare(before, after, "flip")
    assert done.returncode == 0, done.stdout
    assert kit.compare(before, after + b"\0").returncode == 1
    assert kit.compare(before, after[:-1]).returncode in (1, 65)
    assert kit.compare(after, before).returncode in (0, 1)


def test_compare_illegal_order(kit):
    """Two dependent operators, exchanged: the file can be read if nothing else speaks against it,
    but its order is not legal."""
    model = Model()
    graph = model.subgraph()
    a = graph.tensor(variable=True)
    for _ in range(2):
        svdf(graph, a)
    data = model.bytes()
    vector = model_vector(data)
    after = bytearray(data)
    first, second = struct.unpack_from("<2I", data, vector)
    struct.pack_into("<2I", after, vector, second + 4, first - 4)
    assert permutation(bytes(data), bytes(after)) == [[1, 0]]
    done = kit.compare(data, after)
    assert done.returncode == 1 and "subgraph0: " in done.stdout


def model_vector(data):
    """Where the elements of subgraph 0's vector of operators begin."""
    from diff import Reader

    reader = Reader(bytes(data))
    return reader.vector(reader.tables(reader.follow(0), 2)[0], 3)[0]


def test_compare_stale_plan(kit):
    """A plan for another order may not stay."""
    model = Model()
    graph = independent(model, 2)
    model.add_metadata("OfflineMemoryAllocation", offline_plan([-1] * len(graph.tensors)))
    data = model.bytes()
    vector = model_vector(data)
    after = bytearray(data)
    first, second = struct.unpack_from("<2I", data, vector)
    struct.pack_into("<2I", after, vector, second + 4, first - 4)
    done = kit.compare(data, after)
    assert done.returncode == 1 and "offline memory plan" in done.stdout


def test_compare_stale_control_dependencies(kit):
    model = with_edges(3, [(0, 1)])
    data = model.bytes()
    vector = model_vector(data)
    after = bytearray(data)
    slots = struct.unpack_from("<3I", data, vector)
    struct.pack_into("<3I", after, vector, slots[2] + 8, slots[0] - 4, slots[1] - 4)
    done = kit.compare(data, after)
    assert done.returncode == 1 and "control dependencies" in done.stdout


def test_shared_operators(kit):
    """Two subgraphs with one vector of operators: neither can be permuted alone."""
    model = Model()
    first = independent(model, 2)
    root = model.root()
    shared = first.table()
    twin = Table(**{f"f{k}": v for k, v in shared.fields.items()})
    root.fields[2] = objects([shared, twin])
    data = flat.serialize(root)
    path, output = kit.write(data), kit.folder / "out.tflite"
    done = kit.tools.run(kit.tools.permute_tool, path, "last", output)
    assert done.returncode == 65 and "shares its operators" in done.stderr
    assert kit.tools.plan(path)["programs"][1]["peak_before"] == 192


# ---- The models that are kept ----


@pytest.mark.parametrize("name", made.contents())
def test_made_models(kit, name):
    """tests/data/tflite/made holds what made.py makes, and all of it can be permuted."""
    data = made.contents()[name]
    kept = Path(__file__).resolve().parent.parent / "data/tflite/made" / name
    assert kept.read_bytes() == data
    for seed in ("last", 1, 2, 3):
        kit.permute(data, seed)
    done = kit.tools.run(kit.tools.torture, kept, "--sample", 2000, 1)
    assert done.returncode == 0, done.stderr


# ---- Speed ----


def test_large(kit):
    """The time for 100,000 operators (the converter writes them too) does not grow as a square."""

    def convert(path):
        done = kit.tools.run(kit.tools.peakproof, "convert", path, "-o", kit.folder / "out.json")
        assert done.returncode == 0, done.stderr

    def seconds(count):
        model = Model()
        graph = model.subgraph("main")
        a = graph.tensor()
        graph.inputs = [a]
        for _ in range(count):
            b = graph.tensor()
            graph.operator(flat.ADD, [a, max(a - 7, 0)], [b])
            a = b
        graph.outputs = [a]
        path = kit.write(model)
        return least_seconds(lambda: convert(path))

    assert seconds(100_000) < 40 * seconds(10_000)  # 10 are linear, 100 the square
