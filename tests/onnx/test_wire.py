"""Files that no library writes but protobuf allows: what is unknown or oddly encoded survives."""

import itertools

import made
import onnx
import pytest
import wire
from wire import field


def odd_node(proto, i):
    """A node's record with a padded length, an unknown field, and its fields turned around."""
    parts = [
        field(n, text.encode())
        for n, key in ((1, "input"), (2, "output"))
        for text in getattr(proto, key)
    ]
    parts += [field(4, proto.op_type.encode(), 3), field(77, b"unknown" * (i + 1)), field(78, i)]
    parts += [field(5, a.SerializeToString()) for a in proto.attribute]
    return field(1, b"".join(reversed(parts)) if i % 2 else b"".join(parts), 1 + i % 5)


def odd_model(proto):
    """The model's bytes: other fields stand between the nodes, some unknown, the inputs last."""
    graph = proto.graph
    others = [field(13, v.SerializeToString(), 2) for v in graph.value_info]
    others += [field(5, v.SerializeToString()) for v in graph.initializer]
    others += [
        field(2, b"name"),
        field(99, b"between"),
        field(98, 7, 4),
        b"\x95\x06abcd",
        b"\x99\x06abcdefgh",
    ]
    body = b""
    for i, node in enumerate(graph.node):
        body += b"".join(others[i :: len(graph.node)]) + odd_node(node, i)
    body += b"".join(field(12, v.SerializeToString()) for v in graph.output)
    body += b"".join(field(11, v.SerializeToString()) for v in graph.input)
    opset = field(8, proto.opset_import[0].SerializeToString())
    return field(1, 8, 2) + field(7, body, 5) + field(200, b"end") + opset


@pytest.mark.parametrize("name", ["diamond", "random", "branches", "loop"])
def test_odd(tools, tmp_path, name):
    data = odd_model(getattr(made, name)())
    onnx.checker.check_model(onnx.load_model_from_string(data))
    path = tools.save(data, tmp_path / "m.onnx")
    plain = tools.save(getattr(made, name)(), tmp_path / "plain.onnx")
    report, expected = tools.plan(path), tools.plan(plain)
    assert [p["peak_after"] for p in report["programs"]] == [
        p["peak_after"] for p in expected["programs"]
    ]
    changed = 0
    for seed in ("last", *range(5)):
        output = tmp_path / "out.onnx"
        tools.permute(path, seed, output)
        after = output.read_bytes()
        changed += after != data
        assert len(after) == len(data) and sorted(after) == sorted(data)
        assert wire.canonical(after) == wire.canonical(data)
        onnx.checker.check_model(onnx.load_model_from_string(after))
        tools.plan(output)
    assert changed


def test_all_orders(tools, tmp_path):
    """Exactly the legal orders of the nodes are what the tool draws."""
    proto = made.diamond()
    path = tools.save(proto, tmp_path / "m.onnx")
    found = set()
    for seed in range(60):
        tools.permute(path, seed, tmp_path / "out.onnx")
        found.add(tuple(n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node))
    legal = set()
    for order in itertools.permutations(proto.graph.node):
        trial = made.diamond()
        del trial.graph.node[:]
        trial.graph.node.extend(order)
        try:
            onnx.checker.check_model(trial)
        except onnx.checker.ValidationError:
            continue
        legal.add(tuple(n.op_type for n in order))
    assert found == legal and len(legal) == 3


def bad(data):
    """(what is wrong, bytes, message) of a model's bytes made wrong."""
    end = len(data)
    yield "empty length", data + b"\x3a", "a length does not end"
    yield "too long", data + field(2, b"abc")[:-1], "bytes in a message that has 2 left"
    yield "endless number", data + b"\x08" + b"\xff" * 10 + b"\x01", "a number does not end"
    yield "endless tag", data + b"\xff" * 11, "the tag of a field does not end"
    yield "field 0", data + b"\x00\x00", "a field has number 0"
    yield "field 2^29", data + b"\xf8\xff\xff\xff\x1f\x00", "a field has number"
    yield "group", data + b"\x0b\x0c", "wire type 3 in field 1"
    yield "wire type 6", data + b"\x0e", "wire type 6 in field 1"
    yield "wrong wire type", data + field(7, 1), '"graph" has wire type 0 instead of 2'
    yield "cut", data[: end - 1], "bytes in a message"
    deep = b""
    for _ in range(60):
        deep = field(9, field(1, deep))  # optional of optional of ...
    deep = field(7, field(13, field(1, b"x") + field(2, deep)))
    yield "deep", data + deep, "more than 100 messages inside each other"
    yield "packed", data + field(7, field(5, field(1, b"\xff"))), "a packed number does not end"
    yield "floats", data + field(7, field(5, field(4, b"abc"))), "packed numbers of 4 bytes fill 3"


@pytest.mark.parametrize("which", range(13))
def test_bad(tools, tmp_path, which):
    data = made.diamond().SerializeToString()
    _, spoiled, message = list(bad(data))[which]
    path = tools.save(spoiled, tmp_path / "m.onnx")
    done = tools.run(tools.peakproof, "plan", path, "-o", tmp_path / "out.onnx")
    assert done.returncode == 65 and message in done.stderr, done.stderr
    assert "byte " in done.stderr and not (tmp_path / "out.onnx").exists()


def test_deep_bodies(tools, tmp_path):
    """As many bodies in bodies as protobuf's parsers let through, and no crash beyond."""
    from onnx import TensorProto, helper

    def nest(depth):
        graph = helper.make_graph(
            [made.node("Abs", "x", f"v{depth}")], "b", [], [made.tensor(f"v{depth}", [2])]
        )
        for i in reversed(range(depth)):
            graph = helper.make_graph(
                [made.node("If", "c", f"v{i}", then_branch=graph, else_branch=graph)]
                if i % 16 == 0
                else [made.node("If", "c", f"v{i}", then_branch=graph)],
                "b",
                [],
                [made.tensor(f"v{i}", [2])],
            )
        graph.input.extend([made.tensor("x", [2]), made.tensor("c", [], TensorProto.BOOL)])
        return helper.make_model(graph, ir_version=8)

    path = tools.save(nest(30), tmp_path / "m.onnx")
    report = tools.plan(path)
    assert report["peak_after"] == 9 + 31 * 8
    assert tools.run(tools.peakproof, "plan", "-q", path).returncode == 0
    data = b""
    for _ in range(40):
        data = field(1, field(5, field(6, data)))
    path = tools.save(field(1, 8) + field(7, data), tmp_path / "m.onnx")
    done = tools.run(tools.peakproof, "plan", path)
    assert done.returncode == 65 and "more than 100 messages" in done.stderr


def test_empty_graph(tools, tmp_path):
    """Two bytes are a model; found by libFuzzer (an offset from no nodes at all)."""
    path, output = tools.save(b"\x3a\x00", tmp_path / "m.onnx"), tmp_path / "out.onnx"
    report = tools.plan(path, "-o", output)
    assert report["programs"][0]["statements"] == 0
    tools.permute(path, 1, output)
    assert output.read_bytes() == b"\x3a\x00"
