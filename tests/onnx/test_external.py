"""onnx-shapes never writes over the files that hold the data of a model's tensors."""

import pytest
from made import model, node, tensor
from onnx import TensorProto, helper


def outside(name, location):
    """A tensor of two floats whose data is said to be in another file."""
    made = helper.make_tensor(name, TensorProto.FLOAT, [2], [0.0, 0.0])
    made.ClearField("float_data")
    made.data_location = TensorProto.EXTERNAL
    made.external_data.add(key="location", value=location)
    return made


@pytest.mark.parametrize("name", ["weights.bin", "constant.bin", "link"])
def test_output(tools, tmp_path, name):
    proto = model(
        [node("Constant", "", "c", value=outside("c", "constant.bin")), node("Add", "x w", "t")]
        + [node("Add", "t c", "y")],
        [tensor("x", [2])],
        [tensor("y", [2])],
        initializer=[outside("w", "weights.bin")],
    )
    path = tools.save(proto, tmp_path / "in.onnx")
    for file in ("weights.bin", "constant.bin"):
        (tmp_path / file).write_text("data")
    (tmp_path / "link").symlink_to("weights.bin")
    done = tools.shapes(path, tmp_path / name)
    assert done.returncode == 73 and "data of the model's tensors" in done.stderr
    assert (tmp_path / name).read_text() == "data"
    assert tools.shapes(path, tmp_path / "out.onnx").returncode == 0
