"""Permuted models give bitwise the same results in onnxruntime (graph optimisation off, one
thread)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
# Custom operators; anything else must run, so that the comparison means something.
REFUSED = {"deeploy_MLPerf_ImageClassification", "deeploy_miniMobileNetv2"}


def execute(path):
    """What runtime.py prints of a model (dict)."""
    done = subprocess.run(
        [sys.executable, HERE / "runtime.py", path], capture_output=True, text=True
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"refused": f"exit code {done.returncode}: {last}"}
    return json.loads(lines[-1])


def test_same_results(tools, model, tmp_path):
    expected = execute(model)
    assert ("refused" in expected) == (model.stem in REFUSED), expected
    if "refused" in expected:
        return
    path = tools.shaped(model) if model.stem != "silero_vad_16k_op15" else tmp_path / "shaped.onnx"
    if path.parent == tmp_path:  # its dimensions must stay free
        assert tools.shapes(model, path).returncode == 0
    for variant in ("planned", "last", 1, 2):
        output = tmp_path / f"{variant}.onnx"
        if variant == "planned":
            tools.plan(path, "-o", output)
        else:
            tools.permute(path, variant, output)
        assert execute(output).get("outputs") == expected["outputs"], variant


@pytest.mark.parametrize("name", ["random", "loop", "branches"])
def test_made(tools, tmp_path, name):
    """Models made by hand: random operators, bodies."""
    import made

    path = tools.save(getattr(made, name)(), tmp_path / "model.onnx")
    expected = execute(path)
    assert "outputs" in expected, expected
    for variant in ("planned", "last", *range(6)):
        output = tmp_path / f"{variant}.onnx"
        if variant == "planned":
            tools.plan(path, "-o", output)
        else:
            tools.permute(path, variant, output)
        assert execute(output).get("outputs") == expected["outputs"], variant
