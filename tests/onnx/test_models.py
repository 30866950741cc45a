"""The models as a whole: peaks, proofs, and what a written file changes."""

import onnx
import pytest
import wire
from conftest import optima
from peakproof import onnx_shapes
from reference import Model

# OPTIMA.tsv takes an If for a function of its condition alone, so it folds these away and all that
# follows; they also read what their bodies capture, and need their bodies' memory.
CONTROL_FLOW = {"silero_vad_16k_op15.onnx"}
# What `plan` asks to infer first.
UNSHAPED = """basic_pitch light_bvlc_alexnet light_densenet121 light_inception_v1 light_resnet50
light_squeezenet redimnet_b0 redimnet_b1 silero_vad_16k_op15 sinet ultraface_RFB-320_simplified"""
# Whose operators onnx does not know.
CUSTOM = {"deeploy_MLPerf_ImageClassification", "deeploy_miniMobileNetv2"}


def test_shapes_needed(tools, model):
    """A model without shapes is refused by the name of a value and the command that helps."""
    done = tools.run(tools.peakproof, "plan", "-q", model)
    if model.stem in UNSHAPED.split():
        assert done.returncode == 65
        assert 'value "' in done.stderr and "python -m peakproof onnx-shapes" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_peaks(tools, model):
    path = tools.shaped(model)
    report = tools.plan(path)
    program = report["programs"][0]
    statements, before, optimum = optima(model)
    found = program["statements"], program["peak_before"], program["peak_after"]
    if model.name in CONTROL_FLOW:
        blind = onnx.load(model)  # its shapes are those that onnx alone infers
        onnx_shapes.set_dimensions(blind, {"*": 1})
        blind = Model(onnx.shape_inference.infer_shapes(blind, data_prop=True), blind=True)
        assert (len(blind.statements[0]), blind.peak(0)) == (statements, before)
        assert found > (statements, before, optimum)
    else:
        assert found == (statements, before, optimum)
    assert all(p["optimal"] and p["lower_bound"] == p["peak_after"] for p in report["programs"])


def test_reference(tools, model):
    """Statements and peaks of the original orders, computed a second time."""
    path = tools.shaped(model)
    programs = tools.plan(path)["programs"]
    reference = Model(onnx.load(path))
    peaks = [program["peak_after"] for program in programs]
    assert len(programs) == len(reference.graphs)
    for i, program in enumerate(programs):
        assert program["statements"] == len(reference.statements[i]), program["name"]
        assert program["peak_before"] == reference.peak(i, peaks), program["name"]


def test_certified(tools, model, tmp_path):
    """plan, peakproof-check, verify; and the planned file is optimal as it stands."""
    path, output = tools.shaped(model), tmp_path / "out.onnx"
    report = tools.plan(path, "-o", output, "--certificate", tmp_path / "proof")
    assert len(list((tmp_path / "proof").glob("*.cert"))) == len(report["programs"])
    for certificate in (tmp_path / "proof").glob("*.cert"):
        done = tools.run(tools.check, certificate.with_suffix(".json"), certificate)
        assert done.returncode == 0 and "s VERIFIED" in done.stdout, done.stdout
    command = [tools.peakproof, "verify", "--checker", tools.check]
    done = tools.run(*command, path, output, tmp_path / "proof")
    assert done.returncode == 0, done.stdout + done.stderr
    again = tools.plan(output)
    assert [p["peak_before"] for p in again["programs"]][0] == report["programs"][0]["peak_after"]
    if report["peak_after"] < report["peak_before"]:
        done = tools.run(*command, path, path, tmp_path / "proof")
        assert done.returncode == 1 and "not verified" in done.stdout


@pytest.mark.parametrize("seed", ["planned", "last", 1, 2])
def test_written(tools, model, tmp_path, seed):
    """Only the order of nodes changes, on the wire; the file stays as valid as it was."""
    path, output = tools.shaped(model), tmp_path / "out.onnx"
    if seed == "planned":
        tools.plan(path, "-o", output)
    else:
        tools.permute(path, seed, output)
    before, after = path.read_bytes(), output.read_bytes()
    assert len(before) == len(after)
    assert wire.canonical(before) == wire.canonical(after)
    if model.stem in CUSTOM:
        with pytest.raises(onnx.checker.ValidationError):
            onnx.checker.check_model(str(path))
        return
    onnx.checker.check_model(str(path))
    onnx.checker.check_model(str(output), full_check=True)


def test_written_original(tools, model, tmp_path):
    """The shipped file itself, no shapes added, survives too (where it can be planned)."""
    if model.stem in UNSHAPED.split():
        return
    output = tmp_path / "out.onnx"
    tools.plan(model, "-o", output)
    assert wire.canonical(model.read_bytes()) == wire.canonical(output.read_bytes())


def test_unchanged(tools, model, tmp_path):
    """A planned file is written as it is when it is planned again."""
    first, second = tmp_path / "1.onnx", tmp_path / "2.onnx"
    tools.plan(tools.shaped(model), "-o", first)
    tools.plan(first, "-o", second)
    assert first.read_bytes() == second.read_bytes()


def test_shapes_add_nothing_else(tools, model):
    """onnx-shapes adds value descriptions, sizes of dimensions, and its mark."""
    before = onnx.load(model)
    after = onnx.load(tools.shaped(model))
    assert [n.SerializeToString() for n in before.graph.initializer] == [
        n.SerializeToString() for n in after.graph.initializer
    ]
    assert [(n.op_type, n.input, n.output) for n in before.graph.node] == [
        (n.op_type, n.input, n.output) for n in after.graph.node
    ]
    assert {p.key for p in after.metadata_props} - {p.key for p in before.metadata_props} == {
        "peakproof.shapes"
    }
