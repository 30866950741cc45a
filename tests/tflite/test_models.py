"""The models as a whole: peaks and optima as in OPTIMA.tsv, and what a written file changes."""

import csv
import json

from diff import permutation

# OPTIMA.tsv keeps all stateful operators of a subgraph in one order; TFLITE.md asks for that per
# resource only. That leaves more orders, and a lower optimum here (which its certificate proves).
LOWER = {("esphome_okay_nabu.tflite", 0): 2944}


def optima(model):
    """The rows of a model: lists of (original peak, optimum) by subgraph."""
    for folder in (model.parent, model.parent.parent):
        if (folder / "OPTIMA.tsv").exists():
            with open(folder / "OPTIMA.tsv") as file:
                lines = [line for line in file if line.count("\t") == 5]
            rows = [r for r in csv.DictReader(lines, delimiter="\t") if r["file"] == model.name]
            return [(int(r["original_peak"]), int(r["optimum"]), int(r["operators"])) for r in rows]
    raise AssertionError(f"no OPTIMA.tsv for {model}")


def test_peaks(tools, model):
    rows = optima(model)
    programs = tools.plan(model)["programs"]
    assert len(programs) == len(rows)
    for i, (program, (before, optimum, operators)) in enumerate(zip(programs, rows, strict=True)):
        assert program["peak_before"] == before
        assert program["statements"] == operators
        assert program["peak_after"] == LOWER.get((model.name, i), optimum)
        assert program["lower_bound"] == program["peak_after"] and program["optimal"]


def test_planned_file(tools, model, tmp_path):
    """The solver's order is in the file, and only it."""
    output = tmp_path / "out.tflite"
    programs = tools.plan(model, "-o", output)["programs"]
    orders = permutation(model.read_bytes(), output.read_bytes())
    assert orders == [program["order"] for program in programs]
    again = tools.plan(output)["programs"]
    for program, other in zip(programs, again, strict=True):
        assert other["peak_before"] == program["peak_after"] == other["peak_after"]


def test_random_orders(tools, model, tmp_path):
    for seed in ("last", 1, 2):
        output = tmp_path / f"{seed}.tflite"
        entries = tools.permute(model, seed, output)
        orders = permutation(model.read_bytes(), output.read_bytes())
        assert orders == [entries[i]["order"] for i in range(len(orders))]
        for i, program in enumerate(tools.plan(output)["programs"]):
            assert program["peak_before"] == entries[i]["after"]


def test_unchanged(tools, model, tmp_path):
    """A model that is optimal already is written as it is; so is the output of a plan."""
    first, second = tmp_path / "1.tflite", tmp_path / "2.tflite"
    tools.plan(model, "-o", first)
    tools.plan(first, "-o", second)
    assert first.read_bytes() == second.read_bytes()


def test_convert(tools, model, tmp_path):
    """All programs can be written as JSON, with unique names."""
    done = tools.run(tools.peakproof, "convert", model, "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    files = sorted(tmp_path.glob("*.json"))
    assert len(files) == len(optima(model))
    for file in files:
        assert json.loads(file.read_text())["peakproof"] == 1
