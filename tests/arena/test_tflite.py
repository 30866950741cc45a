"""Arenas of .tflite models: lifetimes, TFLM's plan in the file, what the runtime makes of it."""

import os
import shutil
import subprocess
import xml.etree.ElementTree

import flatbuffer
import pytest
import tflm
from conftest import buffers, load, used
from harness import models

SLOW = ("mlpm_edsr", "mp_knift", "pinto_unet")  # seconds to minutes an invocation in tflite-micro


@pytest.mark.parametrize("runtime, alignment", [("tflm", 16), ("litert", 64), ("8", 8)])
def test_minimal_in_every_model(tool, model, runtime, alignment):
    report = tool.report(model, "--runtime", runtime)
    for arena in report["arenas"]:
        assert used(buffers(arena), alignment) == arena["arena"]
        assert arena["minimal"], (arena["lower_bound"], arena["arena"])
        assert arena["peak"] == load(buffers(arena)) <= arena["arena"]
        assert arena.get("greedy", arena["arena"]) >= arena["arena"] - alignment + 1


def difference(before, after):
    """The positions (ints) at which bytes `after` differ from the beginning `before` of them."""
    return [i for i in range(len(before)) if before[i] != after[i]]


def test_plan_moves_no_other_byte(tool, tmp_path, model):
    out, again = tmp_path / "out.tflite", tmp_path / "again.tflite"
    report = tool.report(model, "-o", out)
    before, after = model.read_bytes(), out.read_bytes()
    plan = flatbuffer.plan(after)
    offsets = {b["tensor"]: b["offset"] for b in report["arenas"][0]["buffers"]}
    assert len(plan) == sum(len(s["tensors"]) for s in flatbuffer.subgraphs(after))
    kept = [t for t, offset in offsets.items() if plan[t] != offset]
    assert all(plan[t] == -1 for t in kept) and (not kept or len(flatbuffer.subgraphs(after)) > 1)
    assert all(offset == -1 or t in offsets for t, offset in enumerate(plan))
    shift = len(after) - len(before)
    if after[8 + shift :] == before[8:] or flatbuffer.data_behind(before):
        assert shift % 64 == 0 and after[4:8] == before[4:8]
    else:
        # The root's list of metadata, the buffer in the list of buffers, its number in a tensor.
        assert len({i // 4 for i in difference(before, after)}) <= 3
    assert flatbuffer.described(before) == flatbuffer.described(after)
    # Planning the planned file again gives the same plan, and does not let it grow much.
    tool.arena(out, "-o", again)
    assert flatbuffer.plan(again.read_bytes()) == plan


def test_tflm_runs_the_plan(tool, tmp_path, model):
    pytest.importorskip("tflite_micro")
    if model.stem.startswith(SLOW[0]) and "ARENA_SLOW" not in os.environ:
        pytest.skip("takes minutes in tflite-micro's reference kernels: ARENA_SLOW is not set")
    runs = 1 if model.stem.startswith(SLOW) else 3
    stock = tflm.run(model, runs)
    if isinstance(stock, str):
        pytest.skip("tflite-micro refuses it: " + stock.strip().splitlines()[-1])
    table, out = tflm.write_scratch(model, tmp_path / "scratch.csv"), tmp_path / "out.tflite"
    arena = tool.report(model, "--scratch", table, "-o", out)["arenas"][0]
    assert stock["head"] == arena["greedy"]
    planned = tflm.run(out, runs)
    assert planned["outputs"] == stock["outputs"]
    assert planned["head"] == arena["promised"] <= stock["head"]


def some_model(name):
    found = [path for path in models("tflite") if path.stem == name]
    if not found:
        pytest.skip(f"{name} is not there")
    return found[0]


BAD_PLANS = {
    "header-cut-short": lambda plan: plan[:8],
    "last-offset-missing": lambda plan: plan[:-4],
    "half-an-offset-missing": lambda plan: plan[:-2],
    "one-offset-more": lambda plan: plan + plan[-4:],
    "count-too-small": lambda plan: plan[:8] + (1).to_bytes(4, "little") + plan[12:],
    "count-too-large": lambda plan: plan[:8] + (1 << 31).to_bytes(4, "little") + plan[12:],
    "empty": lambda plan: b"",
    "offset-below-minus-one": lambda plan: (
        plan[:12] + (0xFFFFFFFE).to_bytes(4, "little") + plan[16:]
    ),
    "tensors-share-bytes": lambda plan: plan[:12] + b"\0" * (len(plan) - 12),
    "misaligned": lambda plan: plan[:12] + (8).to_bytes(4, "little") + plan[16:],
}


@pytest.mark.parametrize("name", BAD_PLANS)
def test_wrong_plan_is_refused(tool, tmp_path, name):
    good, bad, out = (tmp_path / f"{n}.tflite" for n in ("good", "bad", "out"))
    tool.arena(some_model("gap_ring"), "-o", good)
    data = good.read_bytes()
    at, size = flatbuffer.plan_place(data)
    block = BAD_PLANS[name](data[at : at + size])
    # The block goes to the end of the file, where any length fits.
    bad.write_bytes(flatbuffer.replace_plan(data, block))
    done = tool.arena(bad, "-o", out, code=65)
    assert "OfflineMemoryAllocation" in done.stderr or "offline memory plan" in done.stderr
    assert not out.exists()


def test_scratch(tool, tmp_path):
    model = some_model("gap_ring")
    table, out = tmp_path / "scratch.csv", tmp_path / "out.tflite"
    table.write_text("# measured\nsubgraph,operator,bytes\n0,1,100\n0,1,50\n0,3,1000\n")
    arena = tool.report(model, "--scratch", table, "-o", out)["arenas"][0]
    scratch = [b["bytes"] for b in arena["buffers"] if "tensor" not in b]
    assert scratch == [112 + 64, 1008] and arena["scratch"] == sum(scratch)
    assert arena["arena"] <= arena["promised"] or arena["promised"] <= arena["arena"]
    assert used(buffers(arena), 16) == arena["arena"] >= arena["promised"]


@pytest.mark.parametrize(
    "text",
    ["", "bytes\n", "operator,bytes\n99,5\n", "operator,bytes\n1\n", "operator,bytes\n1,-5\n"],
)
def test_bad_scratch(tool, tmp_path, text):
    table = tmp_path / "scratch.csv"
    table.write_text(text)
    if text == "":
        tool.arena(some_model("gap_ring"), "--scratch", table)
    else:
        tool.arena(some_model("gap_ring"), "--scratch", table, code=65)


COMPILERS = {
    "c": ["gcc", "-std=c99"],
    "cc": ["g++", "-std=c++11"],
    "clang.c": ["clang", "-std=c11"],
}


@pytest.mark.parametrize("name", COMPILERS)
@pytest.mark.parametrize("use", ["table", "size"])
def test_header_compiles(tool, tmp_path, name, use):
    if not shutil.which(COMPILERS[name][0]):
        pytest.skip(f"no {COMPILERS[name][0]}")
    header, source = tmp_path / "arena.h", tmp_path / f"arena.{name}"
    report = tool.report(some_model("gap_ring"), "--c-header", header)
    table = " && peakproof_arena[0].offset % peakproof_arena_ALIGNMENT == 0" * (use == "table")
    source.write_text(
        '#include "arena.h"\n#include "arena.h"\n'
        f"static unsigned char arena[peakproof_arena_BYTES];\n"
        f"int main(void) {{ return sizeof arena == {report['arena']}{table} ? arena[0] : 1; }}\n"
    )
    program = tmp_path / "arena"
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([*COMPILERS[name], *warnings, "-o", program, source], check=True)
    subprocess.run([program], check=True)


def test_picture(tool, tmp_path):
    picture = tmp_path / "arena.svg"
    report = tool.report(some_model("gap_ring"), "--svg", picture)
    root = xml.etree.ElementTree.parse(picture).getroot()
    titles = [e for e in root.iter() if e.tag.endswith("title")]
    assert len(titles) == sum(b["bytes"] > 0 for b in report["arenas"][0]["buffers"])


def test_budget(tool):
    model = some_model("gap_ring")
    assert tool.report(model, "--budget", "4000")["budget"]["fits"]
    assert not tool.report(model, "--budget", "3999", code=1)["budget"]["fits"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--runtime", "cuda"],
        ["--runtime", "0"],
        ["--runtime", "tflm", "--program", "subgraph0"],
        ["--budget", "some"],
        ["--node-limit", "0"],
        [],
    ],
)
def test_usage(tool, arguments):
    tool.arena(*arguments, *([some_model("gap_ring")] if arguments else []), code=64)


def test_missing(tool, tmp_path):
    tool.arena(tmp_path / "none.tflite", code=66)
    tool.arena(some_model("gap_ring"), "-o", tmp_path / "no/such/folder.tflite", code=73)
