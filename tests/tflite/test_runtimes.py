"""Permuted models give bitwise the same results in LiteRT and TFLM (CPU)."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import flat
import pytest

HERE = Path(__file__).resolve().parent

# What each runtime refuses; anything else must run, so that the comparison means something. Of TFLM
# tflm_table.py gives the reasons; LiteRT lacks the custom operators, and finds fault with the
# quantisation of person_detect.
CUSTOM = {"litert_with_custom_op", "tflm_audio_preproc_int8", "tflm_person_detect"}
REFUSED = {
    "litert": CUSTOM | {"mp_selfie_seg_landscape"},
    "xnnpack": CUSTOM,
    "tflm": {
        "aeq_toy_kv",
        "coral_mbv1_025_128",
        "coral_split_concat",
        "ddsp_features_micro",
        "dtln_q1",
        "gap_visual_wake_quant",
        "litert_with_custom_op",
        "lyra_quantizer",
        "mlperftiny_dscnn_kws_f32",
        "mp_face_det_full_sparse",
        "mp_face_det_short",
        "mp_selfie_seg_landscape",
        "pinto_unet_q",
        "tfls_automl_labeler",
    },
}


# What cannot be tried at all.
SKIPPED = {
    ("litert", "tflm_keyword_scrambled_8bit"): "LiteRT corrupts its heap on it",
    ("xnnpack", "tflm_keyword_scrambled_8bit"): "LiteRT corrupts its heap on it",
    ("tflm", "mlpm_edsr_f32b5_int8"): "TFLM's reference kernels take minutes for it",
}


def execute(runtime, paths):
    """What runtime.py prints of models: a list of dicts. A crash is a refusal."""
    done = subprocess.run(
        [sys.executable, HERE / "runtime.py", runtime, *paths], capture_output=True, text=True
    )
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    last = (done.stderr.strip().splitlines() or ["no output"])[-1]
    missing = {"refused": f"exit code {done.returncode}: {last}"}
    return results + [missing] * (len(paths) - len(results))


@pytest.mark.parametrize("runtime", ["litert", "xnnpack", "tflm"])
def test_same_results(tools, model, runtime, tmp_path_factory):
    package = "tflite_micro" if runtime == "tflm" else "ai_edge_litert"
    if not importlib.util.find_spec(package):
        pytest.skip(f"{package} is not installed")
    if (runtime, model.stem) in SKIPPED:
        pytest.skip(SKIPPED[runtime, model.stem])
    variants = ["planned"] if runtime == "xnnpack" else ["planned", "last", 1]
    folder = tmp_path_factory.mktemp(model.stem)
    paths = [folder / f"{variant}.tflite" for variant in variants]
    for variant, path in zip(variants, paths, strict=True):
        if variant == "planned":
            tools.plan(model, "-o", path)
        else:
            tools.permute(model, variant, path)
    expected, *found = execute(runtime, [model, *paths])
    assert ("refused" in expected) == (model.stem in REFUSED[runtime]), expected
    for result in found:
        assert result.get("outputs") == expected.get("outputs")


def test_metadata(tools, tmp_path):
    """LiteRT loads and runs a model whose control dependencies moved and whose plan went."""
    if not importlib.util.find_spec("ai_edge_litert"):
        pytest.skip("ai_edge_litert is not installed")
    model = flat.Model()
    graph = model.subgraph("main")
    for _ in range(70):
        x, y = graph.tensor((4,), flat.FLOAT32), graph.tensor((4,), flat.FLOAT32)
        graph.operator(flat.RELU, [x], [y])
        graph.inputs.append(x)
        graph.outputs.append(y)
    edges = flat.control_dependencies([[(0, 1), (2, 3), (5, 69)]])
    model.add_metadata("OfflineMemoryAllocation", flat.offline_plan([-1] * 140))
    model.add_metadata("model_control_dependencies", edges)
    original, permuted = tmp_path / "original.tflite", tmp_path / "permuted.tflite"
    original.write_bytes(model.bytes())
    tools.permute(original, "last", permuted)
    assert permuted.stat().st_size > original.stat().st_size
    for runtime in ("litert", "xnnpack"):
        expected, found = execute(runtime, [original, permuted])
        assert expected["outputs"] == found["outputs"] and len(set(expected["outputs"])) > 70
