"""A sample of hostile files (`torture` does all of them): spoiled and cut ones go through reading,
building, simulating, writing, reading again and comparing, in a build with sanitizers if that is
what --build names."""

import made
import onnx
import pytest

FILES = 400


def tensors(graph):
    """All TensorProtos of a graph and of the bodies in it."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from tensors(attribute.g)


def test_spoiled(tools, model):
    path = tools.shaped(model)
    count = FILES if path.stat().st_size < 1_000_000 else FILES // 8
    done = tools.run(tools.torture, path, "--sample", count, 1)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{count} files, ")


@pytest.mark.parametrize("name", ["diamond", "random", "branches", "loop"])
def test_spoiled_made(tools, tmp_path, name):
    """All of a small file: every byte, every length."""
    path = tools.save(getattr(made, name)(), tmp_path / "m.onnx")
    for options in ([], ["--flips", "all", "--repeats"]):
        done = tools.run(tools.torture, path, *options)
        assert done.returncode == 0, done.stderr


def test_cut(tools, model, tmp_path):
    """What `torture` spoils: the model as onnx reads it, but for the data of its tensors."""
    cut = tmp_path / "cut.onnx"
    assert tools.run(tools.torture, tools.shaped(model), "--cut", cut).returncode == 0
    before, after = onnx.load(tools.shaped(model)), onnx.load(cut)
    assert cut.stat().st_size < 300_000
    for proto in (before, after):
        for tensor in tensors(proto.graph):
            dims = list(tensor.dims)
            name, kind = tensor.name, tensor.data_type
            tensor.Clear()
            tensor.name, tensor.data_type = name, kind
            tensor.dims.extend(dims)
    assert before == after
