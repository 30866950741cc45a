"""Bad files: a clear error with the byte, exit code 65, no output file (TFLITE.md section 3)."""

import re
import struct

import flat
import pytest
from flat import Model, String, Table, Vector, objects
from harness import ROOT


def simple():
    """x -> relu -> y -> relu -> z; returns (model, graph)."""
    model = Model()
    graph = model.subgraph("main")
    x, y, z = (graph.tensor((4, 4)) for _ in range(3))
    graph.operator(flat.RELU, [x], [y])
    graph.operator(flat.RELU, [y], [z])
    graph.inputs, graph.outputs = [x], [z]
    return model, graph


CASES = {}


def case(reason):
    """Registers a maker of a bad file, and what the error says (a regular expression)."""

    def register(make):
        CASES[make.__name__] = make, reason
        return make

    return register


@case("empty")
def no_bytes():
    return b""


@case("TFL3|neither")
def no_identifier():
    data = simple()[0].bytes()
    data[4:8] = b"TFL4"
    return data


@case("neither|no .tflite")
def seven_bytes():
    return simple()[0].bytes()[:7]


@case("leaves the file")
def root_outside():
    data = simple()[0].bytes()
    struct.pack_into("<I", data, 0, len(data))
    return data


@case("leaves the file")
def root_nowhere():
    data = simple()[0].bytes()
    struct.pack_into("<I", data, 0, 0)
    return data


@case("version 2")
def old_version():
    model, _ = simple()
    root = model.root()
    root.fields[0] = ("I", 2)
    return flat.serialize(root)


@case("buffer 0 is missing")
def no_buffers():
    root = simple()[0].root()
    del root.fields[4]
    return flat.serialize(root)


@case("buffer 0 is missing")
def no_buffer_0():
    root = simple()[0].root()
    root.fields[4] = objects([])
    return flat.serialize(root)


@case("no subgraph")
def no_subgraphs():
    root = simple()[0].root()
    root.fields[2] = objects([])
    return flat.serialize(root)


@case("operator 0 .* reads tensor 1 before")
def unsorted():
    model, graph = simple()
    graph.operators.reverse()
    return model.bytes()


@case("operator 0 .* reads tensor 1 before")
def cyclic():
    model = Model()
    graph = model.subgraph()
    x, y, z = (graph.tensor() for _ in range(3))
    graph.operator(flat.ADD, [x, y], [z])
    graph.operator(flat.RELU, [z], [y])
    graph.inputs, graph.outputs = [x], [z]
    return model.bytes()


@case("operator 1 .* reads tensor 2 before")
def own_output():
    model, graph = simple()
    graph.operators[1].fields[1] = Vector([1, 2])
    return model.bytes()


@case("operator 0 .* reads tensor 3 before")
def never_produced():
    model, graph = simple()
    graph.tensor()
    graph.operators[0].fields[1] = Vector([0, 3])
    return model.bytes()


@case("operator 1 .* writes tensor 1, which was written before")
def written_twice():
    model, graph = simple()
    graph.operators[1].fields[2] = Vector([1])
    return model.bytes()


@case("operator 0 .* writes tensor 1, which was written before")
def written_twice_at_once():
    model, graph = simple()
    graph.operators[0].fields[2] = Vector([1, 1])
    return model.bytes()


@case("operator 0 .* writes tensor 0, which is an input")
def written_input():
    model, graph = simple()
    graph.operators[0].fields[1] = Vector([])
    graph.operators[0].fields[2] = Vector([0, 1])
    return model.bytes()


@case("operator 1 .* writes tensor 3, which is constant")
def written_constant():
    model, graph = simple()
    graph.tensor(data=b"1234")
    graph.operators[1].fields[2] = Vector([2, 3])
    return model.bytes()


@case("input 0 of subgraph 0 is tensor 3")
def bad_graph_input():
    model, graph = simple()
    graph.inputs = [3]
    return model.bytes()


@case("output 1 of subgraph 0 is tensor -2")
def bad_graph_output():
    model, graph = simple()
    graph.outputs = [2, -2]
    return model.bytes()


@case("input 1 of operator 1 of subgraph 0 is tensor 2147483647")
def bad_input():
    model, graph = simple()
    graph.operators[1].fields[1] = Vector([1, 2**31 - 1])
    return model.bytes()


@case("output 0 of operator 1 of subgraph 0 is tensor 3")
def bad_output():
    model, graph = simple()
    graph.operators[1].fields[2] = Vector([3])
    return model.bytes()


@case("intermediate 0 of operator 1 of subgraph 0 is tensor 9")
def bad_intermediate():
    model, graph = simple()
    graph.operators[1].fields[8] = Vector([9])
    return model.bytes()


@case("operator 1 .* has code 1")
def bad_code():
    model, graph = simple()
    graph.operators[1].fields[0] = ("I", 1)
    return model.bytes()


@case("tensor 2 of subgraph 0: buffer 1 does not exist")
def bad_buffer():
    model, graph = simple()
    graph.tensors[2].fields[2] = ("I", 1)
    return model.bytes()


@case("metadata 0 is in buffer 7")
def bad_metadata():
    model, _ = simple()
    model.metadata.append(Table(f0=String("x"), f1=("I", 7)))
    return model.bytes()


@case("signature 0 is of subgraph 1")
def bad_signature():
    model, _ = simple()
    model.signatures.append(Table(f2=String("x"), f4=("I", 1)))
    return model.bytes()


@case("signature 0 names tensor 3")
def bad_signature_tensor():
    model, _ = simple()
    entry = Table(f0=String("in"), f1=("I", 3))
    model.signatures.append(Table(f0=objects([entry]), f2=String("x")))
    return model.bytes()


@case("tensor 1 of subgraph 0: dimension 1 is negative")
def negative_dimension():
    model, graph = simple()
    graph.tensors[1].fields[0] = Vector([4, -1])
    return model.bytes()


@case("tensor 1 of subgraph 0: more than 2\\^63-1")
def too_many_elements():
    model, graph = simple()
    graph.tensors[1].fields[0] = Vector([2**31 - 1] * 3)
    return model.bytes()


@case("tensor 1 of subgraph 0: more than 2\\^63-1 bytes")
def too_many_bytes():
    model, graph = simple()
    graph.tensors[1].fields[0] = Vector([2**31 - 1, 2**31 - 1, 2])
    graph.tensors[1].fields[1] = ("b", flat.INT64)
    return model.bytes()


@case("2\\^63-1")
def too_many_bytes_together():
    model, graph = simple()
    for tensor in graph.tensors:
        tensor.fields[0] = Vector([2**31 - 1, 2**31 - 1, 1])
        tensor.fields[1] = ("b", flat.INT16)
    return model.bytes()


@case("vector of 1073741824 elements leaves the file")
def overflowing_vector():
    """2^30 elements of 4 bytes: 2^32 bytes, which are 0 in 32 bits."""
    model, graph = simple()
    data = model.bytes()
    root = model.root()
    data = flat.serialize(root)
    vector = root.fields[2].items[0].fields[1]  # the subgraph's inputs
    struct.pack_into("<I", data, vector.at, 2**30)
    return data


@case("vector of 4294967295 elements leaves the file")
def huge_vector():
    root = simple()[0].root()
    data = flat.serialize(root)
    struct.pack_into("<I", data, root.fields[2].items[0].fields[2].at, 2**32 - 1)
    return data


@case("overlaps")
def overlapping_vtables():
    """A vtable that begins in the middle of another one."""
    root = simple()[0].root()
    data = flat.serialize(root)
    first, second = root.fields[2].items[0].fields[0].items[:2]
    # Its last entries make a vtable of their own: length 6, table of 4 bytes, no field.
    spoil = first.vtable + 6
    struct.pack_into("<HHH", data, spoil, 6, 4, 0)
    struct.pack_into("<i", data, second.at, second.at - spoil)
    struct.pack_into("<H", data, first.vtable + 4, 0)
    return data


def with_data():
    """A model with 16 bytes of a constant: its root, laid out, its bytes, and where the data is."""
    model, graph = simple()
    graph.tensor(data=struct.pack("<HH", 4, 4) + bytes(12))
    root = model.root()
    data = flat.serialize(root)
    return root, data, model.buffers[1].fields[0].at + 4


@case("overlaps")
def vtable_in_data():
    """A tensor whose vtable lies in the data of a constant (which would do as one)."""
    root, data, inside = with_data()
    tensor = root.fields[2].items[0].fields[0].items[1]
    struct.pack_into("<i", data, tensor.at, tensor.at - inside)
    return data


@case("overlaps")
def table_in_data():
    """A tensor that lies in the data of a constant."""
    root, data, inside = with_data()
    slot = root.fields[2].items[0].fields[0].at + 8
    empty = root.fields[4].items[0].vtable  # of a table without fields
    struct.pack_into("<i", data, inside + 8, inside + 8 - empty)
    struct.pack_into("<I", data, slot, inside + 8 - slot)
    return data


@case("overlaps")
def operators_in_data():
    """Operators that lie in the data of a constant: exchanging them would change it."""
    root, data, inside = with_data()
    graph = root.fields[2].items[0]
    field = struct.unpack_from("<H", data, graph.vtable + 4 + 2 * 3)[0] + graph.at
    struct.pack_into("<I", data, inside, 0)
    struct.pack_into("<I", data, field, inside - field)
    return data


def with_large_data(count=2):
    """A model with constants of 70,000 bytes: its root, laid out, its bytes."""
    model, graph = simple()
    for _ in range(count):
        graph.tensor(data=bytes(70000))
    root = model.root()
    return model, root, flat.serialize(root)


@case("data overlaps")
def large_over_large():
    """Two large vectors, one of which begins 16 bytes after the other."""
    model, _, data = with_large_data()
    first, second = (buffer.fields[0].at for buffer in model.buffers[1:])
    first, second = min(first, second), max(first, second)
    struct.pack_into("<I", data, first + 16, 70000 - 16)
    buffer = next(b for b in model.buffers[1:] if b.fields[0].at == second)
    field = buffer.at + 4
    assert field + struct.unpack_from("<I", data, field)[0] == second
    struct.pack_into("<I", data, field, first + 16 - field)
    return data


@case("data overlaps")
def large_over_small():
    """A large vector that reaches over what comes after it."""
    model, _, data = with_large_data(1)
    at = model.buffers[1].fields[0].at
    struct.pack_into("<I", data, at, len(data) - at - 4)
    return data


@case("vtable of")
def odd_vtable():
    root = simple()[0].root()
    data = flat.serialize(root)
    struct.pack_into("<H", data, root.vtable, 5)
    return data


@case("vtable lies outside")
def vtable_before_the_file():
    root = simple()[0].root()
    data = flat.serialize(root)
    struct.pack_into("<i", data, root.at, 2**31 - 1)
    return data


@case("leaves its table")
def field_outside():
    root = simple()[0].root()
    data = flat.serialize(root)
    struct.pack_into("<H", data, root.vtable + 4, 4000)
    return data


@case("shares its objects too often")
def amplified():
    """One shape of 200,000 dimensions for 2,000 tensors: half a billion dimensions to read."""
    model = Model()
    graph = model.subgraph()
    shape = Vector([1] * 200000)
    for _ in range(2000):
        tensor = graph.tensors[graph.tensor()]
        tensor.fields[0] = shape
    return model.bytes()


@case("data overlaps")
def data_over_structure():
    """Data behind the FlatBuffer, said to lie in the middle of it."""
    model, graph = simple()
    model.buffers.append(Table(f1=("Q", 64), f2=("Q", 16)))
    graph.tensor(buffer=1)
    return model.bytes()


@case("leave the file")
def data_outside():
    model, graph = simple()
    model.buffers.append(Table(f1=("Q", 2**64 - 1), f2=("Q", 2)))
    return model.bytes()


@case("calls subgraph 0, which is recursion")
def recursion():
    model, graph = simple()
    graph.operator(flat.CALL, [], [], **flat.options(16, 0))
    return model.bytes()


@case("which is recursion")
def mutual_recursion():
    model, graph = simple()
    graph.operator(flat.IF, [], [], **flat.options(92, 1, 2))
    model.subgraph().operator(flat.CALL, [], [], **flat.options(16, 2))
    model.subgraph().operator(flat.WHILE, [], [], **flat.options(93, 1, 1))
    return model.bytes()


@case("calls subgraph 5, which does not exist")
def bad_callee():
    model, graph = simple()
    graph.operator(flat.IF, [], [], **flat.options(92, 0, 5))
    return model.bytes()


@case("calls subgraph -1, which does not exist")
def negative_callee():
    model, graph = simple()
    graph.operator(flat.CASE, [], [], **flat.options2(23, Vector([-1])))
    return model.bytes()


@case("does not say which subgraph it calls")
def call_without_options():
    model, graph = simple()
    graph.operator(flat.WHILE, [], [])
    return model.bytes()


@case("does not say which subgraph it calls")
def call_with_other_options():
    model, graph = simple()
    graph.operator(flat.WHILE, [], [], **flat.options(92, 0, 0))
    return model.bytes()


@pytest.mark.parametrize("name", CASES)
def test_bad_file(tools, tmp_path, name):
    make, reason = CASES[name]
    path, output = tmp_path / "bad.tflite", tmp_path / "out.tflite"
    path.write_bytes(make())
    done = tools.run(tools.peakproof, "plan", path, "-o", output, "--certificate", tmp_path / "p")
    assert done.returncode == 65, done.stderr
    assert re.search(reason, done.stderr), done.stderr
    # A sum over many tensors has no byte; everything else has.
    assert re.search(r"byte \d+", done.stderr) or name == "too_many_bytes_together"
    assert not output.exists() and not (tmp_path / "p").exists()


def test_good_file(tools, tmp_path):
    """What the bad files are made from is good."""
    path = tmp_path / "good.tflite"
    path.write_bytes(simple()[0].bytes())
    assert tools.plan(path)["peak_before"] == 32


def test_every_length(tools, tmp_path):
    """Cut short anywhere, a file is refused, by the command too (a sample; torture does all)."""
    data = simple()[0].bytes()
    path, output = tmp_path / "cut.tflite", tmp_path / "out.tflite"
    for length in range(0, len(data) - 4, 29):
        path.write_bytes(data[:length])
        done = tools.run(tools.peakproof, "plan", path, "-o", output)
        assert done.returncode == 65 and not output.exists()


def test_torture_sample(tools, model):
    """A seeded sample of spoiled files of every model (tests/tflite/torture does all of them)."""
    done = tools.run(tools.torture, model, "--sample", 160, 1)
    assert done.returncode == 0, done.stderr
    assert "refused" in done.stdout


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests/data/tflite/found").iterdir()), ids=lambda path: path.stem
)
def test_found_by_fuzzing(tools, tmp_path, path):
    """What once broke a promise is permuted now, or refused."""
    for seed in range(20):
        tools.permute(path, seed, tmp_path / "permuted.tflite")
