"""Permuted models give bitwise the same results in onnxruntime (graph optimisation off, one
thread)."""

import json
import subprocess
import sys
from pathlib import Path

import numpy
import onnx
import pytest
import runtime
from reference import Model

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


def runnable(tools, model, folder):
    """The model with shapes. Where a dimension of 1 does not run, it stays free."""
    if model.stem != "silero_vad_16k_op15":
        return tools.shaped(model)
    assert tools.shapes(model, folder / "shaped.onnx").returncode == 0
    return folder / "shaped.onnx"


def compare_orders(tools, path, expected, seeds, folder):
    """The planned model, and the model in orders drawn with seeds, compute what is expected."""
    for variant in ("planned", *seeds):
        output = folder / f"{variant}.onnx"
        if variant == "planned":
            tools.plan(path, "-o", output)
        else:
            tools.permute(path, variant, output)
        assert execute(output).get("outputs") == expected["outputs"], variant


def test_same_results(tools, model, tmp_path):
    expected = execute(model)
    assert ("refused" in expected) == (model.stem in REFUSED), expected
    if "refused" in expected:
        return
    compare_orders(tools, runnable(tools, model, tmp_path), expected, ("last", 1, 2), tmp_path)


def test_executed_as_written(tools, model, tmp_path):
    """With PRIORITY_BASED, onnxruntime executes the nodes of a planned file in the file's order."""
    if model.stem in REFUSED:
        return
    output = tmp_path / "out.onnx"
    tools.plan(runnable(tools, model, tmp_path), "-o", output)
    graph = onnx.load(output)
    for i, node in enumerate(graph.graph.node):  # names to know them by
        node.name = f"node{i}"
    done = subprocess.run(
        [sys.executable, HERE / "runtime.py", "--order", tools.save(graph, output)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    executed = json.loads(done.stdout.splitlines()[-1])
    # Constants are no nodes to onnxruntime, shapes are looked at as soon as they are there; nodes
    # in bodies run in between.
    free = {"Constant", "Shape", "Size"}
    written = [node.name for node in graph.graph.node if node.op_type not in free]
    executed = [name for name in executed if name in written]
    assert executed == written


@pytest.mark.parametrize("name", ["random", "loop", "branches", "shaped"])
def test_made(tools, tmp_path, name):
    """Models made by hand: random operators, bodies, shapes."""
    import made

    path = tools.save(getattr(made, name)(), tmp_path / "model.onnx")
    expected = execute(path)
    assert "outputs" in expected, expected
    compare_orders(tools, path, expected, ("last", *range(6)), tmp_path)


def test_ifs_are_data(tools, model, tmp_path):
    """Who is right, this reader or OPTIMA.tsv, where they differ: the 13 nodes that the table folds
    and the reader does not (doc/onnx.md) give other results for other inputs."""
    if model.stem != "silero_vad_16k_op15":
        return
    proto = onnx.load(model)
    ours, theirs = (
        {node.output[0] for node in Model(proto, blind=blind).statements[0]}
        for blind in (False, True)
    )
    names = sorted(ours - theirs)
    assert len(ours) == 38 and len(theirs) == 25 and "output" in names
    shown = {value.name for value in proto.graph.output}
    proto.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in shown)
    session = runtime.session_of(str(tools.save(proto, tmp_path / "shown.onnx")))
    results = []
    for seed in (1, 2):
        random = numpy.random.default_rng(seed)
        feed = {a.name: runtime.random_input(a, random) for a in session.get_inputs()}
        results.append(session.run(names, feed))
    assert all((a != b).any() for a, b in zip(*results, strict=True))
