"""Recomputation in .tflite models: what is said, what is written, and what it computes."""

import struct

import flat
import pytest
from flat import Model, Table, options
from harness import models

CONCATENATION, REDUCE_MAX = 2, 82

# Of the shared models, subgraph by subgraph: those whose optimum is above the floor. In all others
# recomputation cannot help. (esphome_okay_nabu's optimum is its floor once each of its variables
# has an order of its own.)
ABOVE_FLOOR = {
    ("aeq_toy_kv", 0),
    ("aeq_toy_kv", 1),
    ("basic_pitch", 0),
    ("ddsp_features_micro", 0),
    ("dtln_q1", 0),
    ("gap_expressions", 0),
    ("gap_ring", 0),
    ("litert_topo_fork", 0),
    ("litert_topo_fork_violation", 0),
    ("litert_topo_interleaved", 0),
    ("lyra_quantizer", 0),
    ("lyra_quantizer", 1),
    ("mlpm_edsr_f32b5_int8", 0),
    ("mp_face_det_full_sparse", 0),
    ("mp_selfie_seg_landscape", 0),
    ("silabs_kws_on_off_v3", 0),
    ("tflm_audio_preproc_int8", 0),
}


def late(graph, source=None):
    """x (4 floats) -> big (16) -> small -> wide (64) -> peak (1) -> out = big + peak: big is read
    late over wide, and can be made again from x."""
    model, kind = graph.model, flat.FLOAT32
    axis = graph.tensor((1,), flat.INT32, data=struct.pack("<i", 0))
    if source is None:
        source = graph.tensor((4,), kind)
        graph.inputs.append(source)
    big, small, wide, peak, out = (graph.tensor((n,), kind) for n in (16, 1, 64, 1, 16))

    def joined(tensor, times, result):
        graph.operator(CONCATENATION, [tensor] * times, [result], **options(10, 0, ("b", 0)))

    joined(source, 4, big)
    graph.operator(REDUCE_MAX, [big, axis], [small], **options(27, ("B", 1)))
    joined(small, 64, wide)
    graph.operator(REDUCE_MAX, [wide, axis], [peak], **options(27, ("B", 1)))
    graph.operator(flat.ADD, [big, peak], [out], **options(11, ("b", 0)))
    graph.outputs.append(out)
    return model, big, out


def plain():
    return late(Model().subgraph("main"))[0]


def value_is_output():
    """big is an output too: the copy that is made last must be the one that has its number."""
    graph = Model().subgraph("main")
    model, big, _ = late(graph)
    graph.outputs.append(big)
    return model


def metadata():
    """Control dependencies between others, and an offline plan that becomes stale."""
    graph = Model().subgraph("main")
    model, _, _ = late(graph)
    model.add_metadata("OfflineMemoryAllocation", flat.offline_plan([-1] * len(graph.tensors)))
    model.add_metadata("model_control_dependencies", flat.control_dependencies([[(2, 3)]]))
    model.add_metadata("min_runtime_version", b"1.5.0".ljust(16, b"\0"))
    return model


def two_subgraphs():
    """Both rewritten, with signatures."""
    model = Model()
    for i in range(2):
        graph = model.subgraph(f"s{i}")
        late(graph)
        entries = [
            flat.objects([Table(f0=flat.String("it"), f1=("I", tensors[0]))])
            for tensors in (graph.inputs, graph.outputs)
        ]
        model.signatures.append(
            Table(f0=entries[0], f1=entries[1], f2=flat.String(f"sign{i}"), f4=("I", i))
        )
    return model


def outside():
    """A constant behind the FlatBuffer: its position counts from the file's start."""
    model = Model()
    graph = model.subgraph("main")
    model.buffers.append(Table(f1=("Q", 4096), f2=("Q", 16)))
    weights = graph.tensor((4,), flat.FLOAT32, buffer=len(model.buffers) - 1)
    x, sum_ = (graph.tensor((4,), flat.FLOAT32) for _ in range(2))
    graph.inputs.append(x)
    graph.operator(flat.ADD, [x, weights], [sum_], **options(11, ("b", 0)))
    late(graph, sum_)
    data = model.bytes()
    return data + bytes(4096 - len(data)) + struct.pack("<4f", 1, -2, 3, 0.5)


def bytes_of(made):
    return bytes(made.bytes() if isinstance(made, Model) else made)


@pytest.mark.parametrize(
    "make", [plain, value_is_output, metadata, two_subgraphs, outside], ids=lambda f: f.__name__
)
def test_made(tools, tmp_path, make):
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    before.write_bytes(bytes_of(make()))
    report = tools.remat(before, "-o", after, "--certificate", tmp_path / "proof")
    tools.check_proofs(tmp_path / "proof")
    plan = tools.plan(after)
    for found, planned in zip(report["programs"], plan["programs"], strict=True):
        assert found["points"][-1]["peak"] < found["peak_planned"]
        assert found["chosen"]["again"]
        assert planned["peak_before"] == found["chosen"]["peak"]
        assert planned["lower_bound"] == planned["peak_after"] == planned["peak_before"]
    outputs = tools.litert(before)
    assert "outputs" in outputs and outputs["outputs"] == tools.litert(after)["outputs"]
    assert tools.remat(after)["programs"][0]["peak_planned"] <= plan["peak_before"]


def test_metadata_follows(tools, tmp_path):
    """The plan is gone, the dependence has the new numbers, the rest is there."""
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    before.write_bytes(bytes_of(metadata()))
    tools.remat(before, "-o", after)
    data = after.read_bytes()
    assert data.count(b"OfflineMemoryAllocation") == 1  # in the old bytes, which nothing points to
    assert "offline memory plan" not in tools.said("plan", after)
    program = tools.said("convert", after)
    order = program[program.index('"order"') :]
    names = [line.split('"')[3] for line in program.splitlines() if line.startswith('{"name":')]
    before_, after_ = (
        int(n) for n in order.split("[[")[-1].split("\n[")[-1].split("]")[0].split(",")
    )
    assert names[before_].startswith("concatenation") and names[after_].startswith("reduce_max")


@pytest.mark.parametrize("path", models("tflite"), ids=lambda path: path.stem)
def test_models(tools, tmp_path, path):
    """At the floor nothing is searched and the operator is named; what is written elsewhere
    computes the same."""
    report = tools.remat(path, "--max-extra-macs", "5%")
    for i, program in enumerate(report["programs"]):
        assert program["can_help"] == ((path.stem, i) in ABOVE_FLOOR), program["name"]
        if program["can_help"]:
            assert program["points"][0]["peak"] == program["peak_planned"]
            continue
        assert len(program["points"]) == 1 and program["states"] == 0
        if program["peak_planned"]:
            said = tools.said("remat", path, "--program", program["name"])
            assert f'"{program["floor_statement_name"]}" alone needs' in said
    if not any(len(program["points"]) > 1 for program in report["programs"]):
        return
    out = tmp_path / path.name
    written = tools.remat(
        path, "--max-extra-macs", "5%", "-o", out, "--certificate", tmp_path / "proof"
    )
    tools.check_proofs(tmp_path / "proof")
    assert tools.plan(out)["peak_before"] == written["peak_chosen"] < written["peak_planned"]
    before, after = (tools.litert(it) for it in (path, out))
    if "refused" in before:
        assert "refused" in after
    else:
        assert before["outputs"] == after["outputs"]
