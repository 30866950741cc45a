"""Random models: planned, certified, verified, and bitwise the same in onnxruntime, in the planned
order and in others. GENERATED=N tries N of them, GENERATED=A-B those of these seeds."""

import os

import generated
import onnx
import pytest
import wire
from test_runtime import execute

RANGE = os.environ.get("GENERATED", "10").split("-")
SEEDS = range(*map(int, RANGE))


@pytest.mark.parametrize("seed", SEEDS)
def test_generated(tools, tmp_path, seed):
    proto = generated.model(seed)
    onnx.checker.check_model(proto)
    plain, path = tools.save(proto, tmp_path / "plain.onnx"), tmp_path / "m.onnx"
    assert tools.shapes(plain, path).returncode == 0
    output, proof = tmp_path / "out.onnx", tmp_path / "proof"
    report = tools.plan(path, "-o", output, "--certificate", proof)
    command = [tools.peakproof, "verify", "--checker", tools.check]
    command += ["--require-optimal"] if report["optimal"] else []
    done = tools.run(*command, path, output, proof)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = execute(plain)
    assert "outputs" in expected, expected
    for variant in ("planned", "last", 1):
        if variant != "planned":
            tools.permute(path, variant, output)
        onnx.checker.check_model(str(output))
        assert wire.canonical(output.read_bytes()) == wire.canonical(path.read_bytes())
        assert execute(output).get("outputs") == expected["outputs"], variant
