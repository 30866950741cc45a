"""tflm_table.py BUILD - writes doc/results/tflm-arena.md: TFLM's arena before and after planning.

For every model (tests/data/tflite, and the corpus in PEAKPROOF_SHARED) that tflite-micro's Python
interpreter accepts: the modelled peaks, what its greedy planner makes of the tensors alone
(tflm_planner.py), and the head of the arena as tflite-micro prints it (bytes), of the original file
and of `peakproof plan`'s. Exits with 1 if a head grew that the greedy planner does not explain.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness import ROOT, ModelTools, models  # noqa: E402
from tflm_planner import greedy  # noqa: E402

# A process of its own for every model: tflite-micro aborts on what it does not like.
LOAD = """
import sys, tflite_micro
interpreter = tflite_micro.runtime.Interpreter.from_file(sys.argv[1], arena_size=1 << 28)
interpreter.print_allocations()
"""


def head(path):
    """(bytes of the head, "") of a model, or (None, why TFLM refuses it)."""
    done = subprocess.run([sys.executable, "-c", LOAD, path], capture_output=True, text=True)
    said = done.stdout + done.stderr
    found = re.search(r"Arena allocation head (\d+) bytes", said)
    if found:
        return int(found[1]), ""
    missing = re.search(r"Failed to get registration from op code (\w+)", said)
    if missing:
        return None, f"operator {missing[1]} is missing in the pip build"
    failed = re.search(r"Node (\w+) \(number (\d+)\) failed to prepare", said)
    lines = [
        line.split(" ", 1)[1] if line.startswith("tensorflow/") and " " in line else line
        for line in said.splitlines()
        if failed and not line.startswith(("Node ", "Traceback", " ", "RuntimeError"))
    ]
    if failed and lines:
        return None, f"{failed[1]} {failed[2]}: {lines[-1].strip()}"
    return None, (said.strip().splitlines() or ["no reason given"])[-1]


def measure(tools, path, folder):
    """The row of a model: a dict."""
    output = Path(folder) / path.name
    plan = tools.plan(path, "-o", output)
    before, reason = head(path)
    after, _ = head(output) if before is not None else (None, "")
    return {
        "name": path.stem,
        "peak": (plan["peak_before"], plan["peak_after"]),
        "head": (before, after),
        "greedy": (greedy(path), greedy(output)) if before is not None else None,
        "reason": reason,
        "same": output.read_bytes() == path.read_bytes(),
    }


HEADER = """# TFLM's arena before and after

Measured by tests/tflite/tflm_table.py with tflite-micro {version}; all numbers are bytes.

- *Peak* is modelled: the tensors that exist at once, the least that any arena needs in this order.
- *Greedy* is what TFLM's planner makes of the tensors alone (tests/tflite/tflm_planner.py): sizes
  rounded up to 16 bytes, big ones first, each into the lowest gap. Beyond the peak: what the
  planner adds.
- *Head* is what tflite-micro prints for the planned part of its arena. Beyond greedy: what the
  scratch of its kernels adds. (Less: tensors that share memory.)

Each for the original file, and for the one that `peakproof plan` writes (*planned*). The last two
columns are about the planned file.

| model | peak | planned | greedy | planned | head | planned | planner adds | scratch adds |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""


def explain(row):
    """Why a head grew (str), or "" if nothing explains it."""
    packed, peak, head = row["greedy"], row["peak"], row["head"]
    if packed[1] - packed[0] < head[1] - head[0]:
        return ""
    return (
        f"- {row['name']}: the head grows from {head[0]:,} to {head[1]:,}, while the peak falls "
        f"from {peak[0]:,} to {peak[1]:,}. TFLM's greedy planner packs the tensors of the new "
        f"order into {packed[1]:,} bytes, those of the old one into {packed[0]:,}: it leaves gaps; "
        "scratch has no part in it. Offsets in the file would take the greedy planner's place.\n"
    )


def table(rows, version):
    """The page (str), and the names of models whose head grew without a reason."""
    page = HEADER.format(version=version)
    accepted = [row for row in rows if row["head"][0] is not None]
    for row in sorted(accepted, key=lambda r: (r["head"][0] == r["head"][1], r["name"])):
        numbers = [*row["peak"], *row["greedy"], *row["head"]]
        numbers += [row["greedy"][1] - row["peak"][1], row["head"][1] - row["greedy"][1]]
        page += f"| {row['name']} | " + " | ".join(f"{n:,}" for n in numbers) + " |\n"
    lower = sum(row["head"][1] < row["head"][0] for row in accepted)
    grown = [row for row in accepted if row["head"][1] > row["head"][0]]
    page += f"\n{len(accepted)} models; the head is lower for {lower}, higher for {len(grown)}.\n"
    if grown:
        page += "\n## Higher, and why\n\n" + "".join(map(explain, grown))
    page += "\n## Refused by tflite-micro's Python interpreter\n\n"
    for row in rows:
        if row["head"][0] is None:
            page += f"- {row['name']}: {row['reason']}\n"
    return page, [row["name"] for row in grown if not explain(row)]


def main():
    from importlib.metadata import version

    tools = ModelTools(sys.argv[1], "tflite")
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(tools, path, folder) for path in models("tflite")]
    page, unexplained = table(rows, version("tflite-micro"))
    target = ROOT / "doc/results/tflm-arena.md"
    target.parent.mkdir(exist_ok=True)
    if "PEAKPROOF_SHARED" in os.environ:
        target.write_text(page)
    print(page)
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
