#!/usr/bin/env python3
"""cpsat_compare.py BUILD COUNT - what the exact search says against OR-tools' CP-SAT.

Random sets of 8 to 40 buffers, made of ones that cannot be packed at their load.
CP-SAT (no overlap of rectangles whose place in time is fixed) gives the smallest arena; the report
of `peakproof arena` must agree wherever it says that its arena is minimal, and be no smaller
anywhere. Needs ortools; exits with 1 at a disagreement.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from ortools.sat.python import cp_model

# Sets (first, last, bytes) that cannot be packed at their load, found by random search.
GAPS = [
    [(0, 2, 4), (0, 3, 3), (3, 5, 3), (3, 4, 1), (4, 5, 2), (4, 4, 1), (5, 6, 2), (6, 6, 4)],
    [
        (0, 0, 3),
        (0, 2, 1),
        (1, 4, 1),
        (1, 1, 2),
        (2, 5, 1),
        (2, 2, 1),
        (3, 3, 2),
        (4, 4, 2),
        (5, 5, 3),
    ],
    [
        (0, 0, 4),
        (0, 1, 3),
        (0, 3, 1),
        (1, 3, 2),
        (1, 2, 1),
        (2, 4, 4),
        (3, 5, 1),
        (4, 4, 3),
        (5, 6, 2),
        (5, 5, 5),
    ],
    [(0, 1, 2), (0, 0, 2), (1, 2, 1), (1, 3, 1), (2, 2, 1), (2, 3, 1), (3, 5, 2), (4, 5, 2)],
    [
        (0, 1, 3),
        (0, 0, 2),
        (1, 4, 1),
        (1, 3, 1),
        (2, 5, 2),
        (2, 4, 1),
        (4, 5, 1),
        (5, 6, 2),
        (6, 6, 3),
    ],
    [
        (0, 0, 4),
        (0, 2, 2),
        (1, 3, 3),
        (2, 4, 1),
        (3, 3, 1),
        (3, 4, 1),
        (4, 5, 2),
        (4, 4, 2),
        (5, 5, 4),
    ],
]


def load_of(buffers):
    """The most bytes that live at one time."""
    return max(sum(c for a, b, c in buffers if a <= at <= b) for at, _, _ in buffers)


def make(generator):
    """Returns 10 to 40 buffers (first, last, bytes), and their load: some of GAPS in a row, turned,
    filled up to one load, a little changed, some joined by what lives across."""
    parts, buffers, start = [], [], 0
    for _ in range(generator.randint(1, 3)):
        part = generator.choice(GAPS)
        if generator.random() < 0.5:
            part = [(-last, -first, size) for first, last, size in part]
        parts.append([(a, b, size * generator.choice([1, 1, 1, 2])) for a, b, size in part])
    most = max(map(load_of, parts))
    for part in parts:
        shift = start - min(first for first, _, _ in part)
        part = [(first + shift, last + shift, size) for first, last, size in part]
        end = max(last for _, last, _ in part)
        fill = most - load_of(part)
        if fill:
            part.append((start - generator.randint(0, 1) * (start > 0), end, fill))
        buffers += part
        start = end + 1
    for _ in range(generator.randrange(5) // 4):
        first = generator.randrange(start)
        buffers.append((first, min(start - 1, first + generator.randrange(3)), 1))
    return buffers, load_of(buffers)


def smallest(buffers, load):
    """The smallest arena in bytes by CP-SAT, or None if it takes too long."""
    model = cp_model.CpModel()
    most = sum(size for _, _, size in buffers)
    height = model.new_int_var(load, most, "height")
    across, up = [], []
    for i, (first, last, size) in enumerate(buffers):
        offset = model.new_int_var(0, most - size, f"offset{i}")
        across.append(model.new_fixed_size_interval_var(first, last - first + 1, f"x{i}"))
        up.append(model.new_fixed_size_interval_var(offset, size, f"y{i}"))
        model.add(offset + size <= height)
    model.add_no_overlap_2d(across, up)
    model.minimize(height)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 20
    return int(solver.objective_value) if solver.solve(model) == cp_model.OPTIMAL else None


def packed(program, buffers, place):
    """The arena of `peakproof arena --json`."""
    lines = [f"{i},{a},{b + 1},{size}" for i, (a, b, size) in enumerate(buffers)]
    place.write_text("\n".join(["id,lower,upper,size", *lines, ""]))
    done = subprocess.run([program, "arena", "--json", "-q", place], capture_output=True, text=True)
    return json.loads(done.stdout)["arenas"][0]


def main():
    program, count = Path(sys.argv[1]).resolve() / "src/peakproof", int(sys.argv[2])
    above, unknown, undecided = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(count):
            buffers, load = make(random.Random(seed))
            arena, best = packed(program, buffers, Path(folder) / "in.csv"), smallest(buffers, load)
            if best is None:
                unknown += 1
                continue
            agreed = arena["arena"] == best if arena["minimal"] else arena["arena"] >= best
            if not agreed or arena["lower_bound"] > best:
                print(
                    f"seed {seed}: {arena['arena']} (bound {arena['lower_bound']}), CP-SAT {best}"
                )
                return 1
            above += best > load
            undecided += not arena["minimal"]
    print(
        f"{count} sets: {above} have no packing at the load and CP-SAT agrees in all; "
        f"{undecided} were left open by peakproof, {unknown} by CP-SAT"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
