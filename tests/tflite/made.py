"""made.py - writes tests/data/tflite/made: small models with what the others lack.

Control flow, state, metadata, odd types: seeds for fuzzing and torture. A test checks that the
files are these.
"""

import struct
from pathlib import Path

import flat
from flat import Model, String, Table, Vector, objects, options, options2


def relu(graph, size=8, source=None):
    """One operator; its input is a new input of the subgraph unless given. Returns its output."""
    if source is None:
        source = graph.tensor((size,))
        graph.inputs.append(source)
    out = graph.tensor((size,))
    graph.operator(flat.RELU, [source], [out])
    return out


def metadata():
    """Control dependencies, an offline memory plan, entries without meaning."""
    model = Model()
    graph = model.subgraph("main")
    graph.outputs = [relu(graph) for _ in range(4)]
    model.add_metadata("min_runtime_version", b"1.5.0".ljust(16, b"\0"))
    model.add_metadata("OfflineMemoryAllocation", flat.offline_plan([-1] * 8))
    model.add_metadata("model_control_dependencies", flat.control_dependencies([[(0, 2), (1, 3)]]))
    model.add_metadata(None, b"nameless")
    return model


def long_control():
    """Control dependencies whose numbers change their length."""
    model = Model()
    graph = model.subgraph("main")
    graph.outputs = [relu(graph, 1) for _ in range(66)]
    edges = [[(0, 65), (1, 2)]]
    model.add_metadata("model_control_dependencies", flat.control_dependencies(edges))
    return model


def control_flow():
    """All operators that call, callees that call, and a callee with state."""
    model = Model()
    graph = model.subgraph("main")
    graph.operator(flat.IF, [], [], **options(92, 1, 2))
    graph.operator(flat.WHILE, [], [], **options(93, 2, 1))
    graph.operator(flat.CALL, [], [], **options(16, 2))
    graph.operator(flat.CALL_ONCE, [], [], **options(103, 3))
    graph.operator(flat.CASE, [], [], **options2(23, Vector([1, 2, 3])))
    graph.operator(flat.COMPOSITE, [], [], **options2(21, String("it"), 1))
    graph.operator(174, [], [], **options2(6, Vector([0], "q"), 2))
    graph.operator(200, [], [], **options2(15, 1, 2))
    graph.operator(199, [], [], f11=("B", 14), f12=Table(f0=("q", 0), f1=("B", 1), f2=("i", 2)))
    graph.outputs = [relu(graph)]
    for size in (8, 16):
        callee = model.subgraph()
        callee.outputs = [relu(callee, size)]
    last = model.subgraph("state")
    last.operator(flat.CALL, [], [], **options(16, 1))
    state, out = last.tensor(variable=True), last.tensor()
    last.operator(flat.SVDF, [relu(last), -1, -1, -1, state], [out])
    last.outputs = [out]
    return model


def resources():
    """Variables, hash tables, random numbers, custom operators."""
    model = Model()
    graph = model.subgraph("main")

    def handle(name):
        out = graph.tensor((), flat.RESOURCE)
        more = {"f3": ("B", 111), "f4": Table(f0=String("box"), f1=String(name))}
        graph.operator(flat.VAR_HANDLE, [], [out], **more)
        return out

    a, b, other = handle("a"), handle("b"), handle("a")
    x = relu(graph)
    graph.operator(flat.ASSIGN_VARIABLE, [a, x], [])
    graph.operator(flat.ASSIGN_VARIABLE, [b, x], [])
    for variable in (other, b):
        y = graph.tensor((8,))
        graph.operator(flat.READ_VARIABLE, [variable], [y])
        graph.outputs.append(y)
    table = graph.tensor((), flat.RESOURCE)
    more = {"f3": ("B", 107), "f4": Table(f0=("i", 5), f1=("b", 5), f2=("b", 4))}
    graph.operator(flat.HASHTABLE, [], [table], **more)
    graph.operator(flat.HASHTABLE_FIND, [table, x, x], [graph.tensor()])
    seeds = {"f3": ("B", 114), "f4": Table(f0=("q", 1), f1=("q", 2))}
    graph.operator(flat.RANDOM_UNIFORM, [x], [graph.tensor()], **seeds)
    graph.operator(flat.CUSTOM, [x], [graph.tensor()], custom="Mystery", f5=Vector(b"abc", "B"))
    return model


def tensors():
    """Tensors of all types, sparse, quantised, of dynamic shape, of external data; a signature."""
    model = Model()
    graph = model.subgraph("main")
    for kind in range(24):
        graph.inputs.append(graph.tensor((3, 5), kind, signature=(-1, 5)))
    block = Table(f0=("i", 0), f1=("i", -1), f2=("i", 4), f3=Vector([1, 4]))
    quantised = Table(f2=Vector([0.5], "f"), f3=Vector([3], "q"), f4=("B", 2), f5=block)
    dense = Table(f0=("b", 0), f1=("i", 4))
    sparse = Table(f0=("b", 1), f2=("B", 3), f3=Table(f0=Vector(b"\0\2", "B")))
    sparse.fields[4], sparse.fields[5] = ("B", 2), Table(f0=Vector([1, 2], "H"))
    sparsity = Table(f0=Vector([0, 1]), f1=Vector([]), f2=objects([dense, sparse]))
    weights = graph.tensor((4, 4), data=bytes(range(2)), f6=sparsity, f4=quantised)
    variant = Table(f0=Vector([2, 2]), f1=("b", 2), f2=("B", 1))
    odd = graph.tensor((), flat.VARIANT, f9=objects([variant]))
    graph.inputs.append(odd)
    out = graph.tensor((4, 4), flat.INT4)
    graph.operator(9, [graph.inputs[0], weights, -1], [out], f7=Vector([0, 0, 0], "B"))
    graph.operator(43, [out], [graph.tensor((16,), flat.INT4)], **options(30, Vector([0, 1])))
    graph.outputs = [out]
    entry = Table(f0=String("out"), f1=("I", out))
    model.signatures.append(
        Table(f0=objects([]), f1=objects([entry]), f2=String("serving_default"), f4=("I", 0))
    )
    return model


def outside():
    """Data behind the FlatBuffer: of a constant, and of a custom operator."""
    model = Model()
    graph = model.subgraph("main")
    model.buffers.append(Table(f1=("Q", 1000), f2=("Q", 24)))
    weights = graph.tensor((24,), buffer=1)
    x = relu(graph)
    graph.operator(flat.ADD, [x, weights], [graph.tensor((24,))])
    graph.operator(flat.CUSTOM, [x], [graph.tensor()], custom="Big", f9=("Q", 1024), f10=("Q", 8))
    data = model.bytes()
    return data + bytes(1000 - len(data)) + struct.pack("<4Q", 1, 2, 3, 4)


MODELS = [metadata, long_control, control_flow, resources, tensors, outside]


def contents():
    """{file name: bytes}"""
    made = {make.__name__ + ".tflite": make() for make in MODELS}
    return {k: bytes(v.bytes() if isinstance(v, Model) else v) for k, v in made.items()}


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent.parent / "data/tflite/made"
    folder.mkdir(exist_ok=True)
    for name, data in contents().items():
        (folder / name).write_bytes(data)
