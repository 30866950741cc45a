#!/usr/bin/env python3
"""arena_table.py BUILD >doc/results/arena-models.md - arenas of all .tflite models, worst first.

Each model of tests/data/tflite and $PEAKPROOF_SHARED/models/tflite, in the order of its file and
in the order of lowest peak (--reorder), by the rules of TFLM and of LiteRT; and, where tflite-micro
is installed and runs the model, the head of its arena without and with our plan in the file, and
whether the outputs are bitwise equal. Takes some minutes (mlpm_edsr: four).
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import tflm
from conftest import buffers, used
from harness import models


def load(buffers, alignment):
    """The most bytes that live at one time, sizes rounded up to the alignment but for the buffer
    on top."""
    most = 0
    for at in {b["first"] for b in buffers}:
        live = [b["bytes"] for b in buffers if b["first"] <= at <= b["last"] and b["bytes"]]
        pads = [-size % alignment for size in live]
        most = max(most, sum(live) + sum(pads) - max(pads, default=0))
    return most


def arenas(build, model, runtime, *more):
    """Returns the arenas of a report, each checked and with `load`, in bytes."""
    command = [build / "src/peakproof", "arena", "--json", "-q", "--runtime", runtime, *more, model]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for arena in report["arenas"]:
        assert used(buffers(arena), report["alignment"]) == arena["arena"]
        arena["load"] = load(arena["buffers"], report["alignment"])
        assert arena["lower_bound"] >= arena["load"] or not arena["certified"]
    return report["arenas"]


def measure(build, model, place):
    """Returns (head without, head with the plan, promised, equal) or None."""
    stock = tflm.run(model, 1)
    if isinstance(stock, str):
        return None
    out = place / "out.tflite"
    scratch = tflm.write_scratch(model, place / "scratch.csv")
    arena = arenas(build, model, "tflm", "--scratch", scratch, "-o", out)[0]
    planned = tflm.run(out, 1)
    return stock["head"], planned["head"], arena["promised"], stock["outputs"] == planned["outputs"]


def excess(arena):
    return (
        100 * (arena["greedy"] - arena["promised"]) / arena["promised"] if arena["promised"] else 0
    )


def print_rules(build, runtime, title):
    """Prints a table of the models' arenas by one runtime's rules."""
    rows = []
    for model in models("tflite"):
        for order, more in (("file", []), ("lowest peak", ["--reorder"])):
            for arena in arenas(build, model, runtime, *more):
                name = " ".join(filter(None, [model.stem, arena["name"]]))
                rows.append((excess(arena), name, order, arena))
    minimal = sum(arena["arena"] == arena["load"] for *_, arena in rows)
    more = [row for row in rows if row[0] > 0]
    print(f"\n## {title}\n")
    print(f"{len(rows)} arenas (each model in both orders): {minimal} equal the load, so they are")
    print(f"proved minimal. The runtime's planner needs more in {len(more)}, worst first:\n")
    print("| model | order | peak | load | arena | planner | more |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for percent, name, order, a in sorted(more, key=lambda row: (-row[0], row[1], row[2])):
        print(
            f"| {name} | {order} | {a['peak']:,} | {a['load']:,} | {a['arena']:,} | "
            f"{a['greedy']:,} | {percent:.1f}% |"
        )
    for _, name, order, a in rows:
        if a["arena"] != a["load"]:
            print(f"\nNot equal: {name}, {order}: {a['arena']:,}, load {a['load']:,}")


def print_runs(build):
    """Prints what tflite-micro makes of the plans."""
    refused, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        for model in models("tflite"):
            measured = measure(build, model, Path(folder))
            (rows if measured else refused).append((model.stem, measured))
    kept = sum(head == promised for _, (_, head, promised, _) in rows)
    equal = sum(same for *_, (_, _, _, same) in rows)
    print("\n## Run by tflite-micro, planned and not\n")
    print(f"{len(rows)} models run: outputs bitwise equal in {equal}, head as promised in {kept}.")
    print("(The scratch of four is given, as their kernels ask for it.)\n")
    print("| model | head | head with the plan | promised | outputs |\n|---|---:|---:|---:|---|")
    for name, (stock, planned, promised, same) in sorted(
        rows, key=lambda row: (row[1][1] / max(row[1][0], 1), row[0])
    ):
        verdict = "equal" if same else "DIFFERENT"
        print(f"| {name} | {stock:,} | {planned:,} | {promised:,} | {verdict} |")
    print(f"\nRefused by tflite-micro: {', '.join(name for name, _ in refused)}.")


def main():
    build = Path(sys.argv[1]).resolve()
    print("# Arenas of the .tflite models\n")
    print(
        "Made by tests/arena/arena_table.py. Bytes. *Load*: what lives at one time, sizes rounded"
    )
    print("up to the alignment but for the buffer on top. No arena is smaller. Offsets are checked")
    print("and loads added up here anew.")
    print_rules(build, "tflm", "TensorFlow Lite Micro's rules, without scratch")
    print_rules(build, "litert", "LiteRT's rules")
    try:
        import tflite_micro  # noqa: F401
    except ImportError:
        return
    sys.stdout.flush()
    print_runs(build)


if __name__ == "__main__":
    main()
