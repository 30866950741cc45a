"""arena --reorder: the order of lowest peak, or another of the same peak that packs better."""

import json
import subprocess

import flatbuffer
import pytest
from conftest import HERE, buffers, load, shared, used
from harness import models

JOINT = HERE / "joint.json"  # found by random search: of its orders of lowest peak some pack worse


def check(tool, folder):
    """Runs peakproof-check on every certificate of a folder; returns its verdicts."""
    program = tool.peakproof.parent.parent / "check/peakproof-check"
    verdicts = []
    for path in sorted(folder.glob("*.cert")):
        done = subprocess.run(
            [program, path.with_suffix(".json"), path], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout
        verdicts.append(done.stdout.strip())
    return verdicts


def peak_of(path, order):
    """The peak, in bytes, of a program JSON whose only flag is live_in, without work: counted."""
    program = json.loads(path.read_text())
    statements, storages = program["statements"], program["storages"]
    accessed = [set(statements[v]["reads"]) | set(statements[v]["writes"]) for v in order]
    peak = 0
    for i in range(len(order)):
        before, after = set().union(*accessed[: i + 1]), set().union(*accessed[i:])
        live = [
            s
            for s, storage in enumerate(storages)
            if (s in before or storage.get("live_in")) and s in after
        ]
        peak = max(peak, sum(storages[s]["bytes"] for s in live))
    return peak


def test_another_order_of_the_same_peak_packs_better(tool, tmp_path):
    assert tool.report(JOINT, "--runtime", 1)["arena"] == 10
    proof = tmp_path / "proof"
    report = tool.report(JOINT, "--runtime", 1, "--reorder", "--certificate", proof)
    arena = report["arenas"][0]
    order = report["orders"][0]["order"]
    assert used(buffers(arena)) == report["arena"] == report["peak"] == peak_of(JOINT, order) == 9
    assert arena["minimal"] and arena["certified"] and report["peak_optimal"]
    assert report["orders_packed"] > 1
    assert check(tool, proof) == ["s VERIFIED peak 9 bound 9 optimal"]
    certificate = (proof / "joint.cert").read_text().splitlines()
    assert certificate[3] == "o " + " ".join(map(str, order))


def test_says_what_is_not_certified(tool):
    assert "proved" not in tool.arena(JOINT, "--runtime", 1).stdout
    assert "minimal by exact search, not certified" in tool.arena(JOINT, "--runtime", 1).stdout
    assert not tool.report(JOINT, "--runtime", 1)["arenas"][0]["certified"]


@pytest.mark.parametrize("runtime", ["tflm", "litert", "64"])
def test_models(tool, tmp_path, model, runtime):
    proof = tmp_path / "proof"
    report = tool.report(model, "--runtime", runtime, "--reorder", "--certificate", proof)
    stock = tool.report(model, "--runtime", runtime)
    # LiteRT's lives are not those by which orders are chosen: doc/arena.md names the exception.
    if (model.stem, runtime) != ("dtln_q1", "litert"):
        assert report["arena"] <= stock["arena"]
    for arena in report["arenas"]:
        assert used(buffers(arena)) == arena["arena"]
        assert load(buffers(arena)) == arena["peak"]
    assert len(check(tool, proof)) == len(report["orders"])


def hard():
    """Programs that are hard to order."""
    return shared("programs/hard/*.json")


@pytest.mark.skipif(not hard(), reason="PEAKPROOF_SHARED is not set")
def test_alignment_makes_orders_differ(tool, tmp_path):
    path = next(path for path in hard() if path.stem == "par6x120_3")
    report = tool.report(path, "--runtime", 64, "--reorder", "--certificate", tmp_path / "proof")
    assert report["arena"] < 3716 and report["orders_packed"] > 1  # 3716: that of the first order
    assert used(buffers(report["arenas"][0]), 64) == report["arena"]
    assert check(tool, tmp_path / "proof")[0].endswith("optimal")


def some_model(name):
    found = [path for path in models("tflite") if path.stem == name]
    if not found:
        pytest.skip(f"{name} is not there")
    return found[0]


def test_file_is_in_that_order(tool, tmp_path):
    model, out = some_model("gap_ring"), tmp_path / "out.tflite"
    report = tool.report(model, "--reorder", "-o", out)
    order = report["orders"][0]["order"]
    before = flatbuffer.subgraphs(model.read_bytes())[0]["operators"]
    after = flatbuffer.subgraphs(out.read_bytes())[0]["operators"]
    assert order != sorted(order) and after == [before[v] for v in order]
    again = tool.report(out)
    assert again["arena"] == report["arena"] < tool.report(model)["arena"]
    assert again["arenas"][0]["buffers"] == report["arenas"][0]["buffers"]
    assert flatbuffer.plan(out.read_bytes())


def test_the_order_is_tied_to_its_proof(tool, tmp_path):
    model, proof = some_model("gap_ring"), tmp_path / "proof"
    ordered, out, again = (tmp_path / f"{name}.tflite" for name in ("ordered", "out", "again"))
    more = ["--ordered", ordered, "--certificate", proof]
    tool.arena(model, "--reorder", "-o", out, *more)
    command = [tool.peakproof, "verify", "--require-optimal", model, ordered, proof]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    # The planned file is that one with offsets.
    tool.arena(ordered, "-o", again)
    assert again.read_bytes() == out.read_bytes()


def test_scratch_follows_its_operator(tool, tmp_path):
    model, table = some_model("gap_ring"), tmp_path / "scratch.csv"
    order = tool.report(model, "--reorder")["orders"][0]["order"]
    for operator in range(len(order)):
        table.write_text(f"operator,bytes\n{operator},96\n")
        arena = tool.report(model, "--reorder", "--scratch", table)["arenas"][0]
        scratch = [b for b in arena["buffers"] if "tensor" not in b]
        assert [b["first"] for b in scratch] == [1 + order.index(operator)]


def test_usage(tool, tmp_path):
    table = tmp_path / "in.csv"
    table.write_text("id,lower,upper,size\na,0,4,3\n")
    tool.arena(JOINT, "--runtime", 1, "--certificate", tmp_path / "proof", code=64)
    tool.arena(JOINT, "--runtime", 1, "--ordered", tmp_path / "ordered.json", code=64)
    tool.arena(table, "--reorder", code=64)
    assert not (tmp_path / "proof").exists()
