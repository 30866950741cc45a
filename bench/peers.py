#!/usr/bin/env python3
"""bench/peers.py - a certified optimum here, against what others find in the same run.

For generated programs (bench/generate) of growing size, prints seconds and peaks of
  - `peakproof plan --certificate` (reading and writing included), and whether it is certified;
  - the three heuristics that Inductor chooses from (torch._inductor.memory: lpmf, bfs, dfs), called
    on synthetic scheduler nodes, with the time to prepare them; the best of the three peaks counts;
  - CP-SAT (OR-tools): start times, one interval a storage, the load minimised; only up to
    --cp-statements statements and --cp-seconds seconds; a peak that it does not prove is marked.

Needs torch and ortools in the Python that runs it, and $PP_BUILD with the build directory `bench`.
Every order is evaluated by the same simulation (THEORY.md section 1), written here on its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

FAMILIES = ("residual", "inception", "unet", "layered")
SIZES = (50, 500, 5000, 20000)


def accesses(program):
    """Yields (storages read, storages written) of each statement, as lists of indices."""
    for statement in program["statements"]:
        yield statement.get("reads", []), statement.get("writes", [])


def peak(program, order):
    """Returns the peak of a legal order, in bytes."""
    storages = program["storages"]
    touched = [set(r) | set(w) for r, w in accesses(program)]
    left = [0] * len(storages)
    for each in touched:
        for s in each:
            left[s] += 1
    begun = [bool(s.get("live_in")) for s in storages]
    live = sum(
        s["bytes"] for i, s in enumerate(storages) if begun[i] and (left[i] or s.get("live_out"))
    )
    highest = live
    for v in order:
        for s in touched[v]:
            if not begun[s]:
                begun[s] = True
                live += storages[s]["bytes"]
        highest = max(highest, live + program["statements"][v].get("work", 0))
        for s in touched[v]:
            left[s] -= 1
            if not left[s] and not storages[s].get("live_out"):
                live -= storages[s]["bytes"]
    return highest


def run_peakproof(build, path):
    """Returns (seconds of the whole command, peak in bytes, certified)."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            build / "src/peakproof",
            "plan",
            path,
            "--certificate",
            folder,
            "--json",
            "--time-limit",
            "60",
        ]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - start
    report = json.loads(done.stdout)
    return seconds, report["peak_after"], report["optimal"]


class Buffer:
    """What torch's heuristics ask of a SchedulerBuffer."""

    def __init__(self, name):
        self.name = name

    def get_name(self):
        return self.name


class Node:
    """What torch's heuristics ask of a BaseSchedulerNode."""

    def __init__(self, name, outputs, unmet):
        self.name, self.outputs, self.unmet_dependencies = name, outputs, unmet

    def get_outputs(self):
        return self.outputs

    def get_buffer_names(self):
        return [b.name for b in self.outputs]


class Dependency:
    def __init__(self, name):
        self.name = name


def run_torch(program):
    """Returns (seconds of all three heuristics, best peak in bytes, its name).

    The programs have one writer a storage and one input, which may be freed."""
    from torch._inductor import memory
    from torch.utils._ordered_set import OrderedSet

    storages = program["storages"]
    buffers = [Buffer(f"buf{i}") for i in range(len(storages))]
    nodes, readers = [], [[] for _ in storages]
    for v, (reads, writes) in enumerate(accesses(program)):
        unmet = [Dependency(buffers[s].name) for s in reads if not storages[s].get("live_in")]
        nodes.append(Node(f"op{v}", [buffers[s] for s in writes], unmet))
        for s in reads:
            readers[s].append(nodes[v])
    start = time.perf_counter()
    inputs = {}
    for s, buffer in enumerate(buffers):
        buffer.mpi_buffer = memory.MemoryPlanningInfoForBuffer(
            size_alloc=storages[s]["bytes"],
            size_free=storages[s]["bytes"],
            succ_nodes=OrderedSet(readers[s]),
            succ_nodes_for_ordering=OrderedSet(readers[s]),
        )
        if storages[s].get("live_in"):
            inputs[buffer.name] = memory.FreeableInputBuffer(buffer.name, buffer.mpi_buffer)
    names = {b.name: b for i, b in enumerate(buffers) if not storages[i].get("live_in")}
    outputs = OrderedSet(b.name for i, b in enumerate(buffers) if storages[i].get("live_out"))
    memory.assign_memory_planning_info_for_scheduler_nodes(nodes, {}, names, inputs)
    orders = {
        "lpmf": memory.topological_sort_lpmf(nodes, inputs, names, outputs),
        "bfs": memory.topological_sort_bfs(nodes),
        "dfs": memory.topological_sort_dfs(nodes),
    }
    for order in orders.values():
        memory.estimate_peak_memory(order, inputs, outputs)
    seconds = time.perf_counter() - start
    number = {id(node): v for v, node in enumerate(nodes)}
    peaks = {name: peak(program, [number[id(n)] for n in order]) for name, order in orders.items()}
    best = min(peaks, key=peaks.get)
    return seconds, peaks[best], best


def run_cp_sat(program, limit):
    """Returns (seconds, peak in bytes or None, proved)."""
    from ortools.sat.python import cp_model

    storages, n = program["storages"], len(program["statements"])
    model = cp_model.CpModel()
    at = [model.new_int_var(0, n - 1, f"t{v}") for v in range(n)]
    model.add_all_different(at)
    users = [[] for _ in storages]
    writer = {}
    for v, (reads, writes) in enumerate(accesses(program)):
        for s in reads:
            users[s].append(v)
            if s in writer:
                model.add(at[writer[s]] < at[v])
        for s in writes:
            users[s].append(v)
            writer[s] = v
    intervals, demands = [], []
    for s, storage in enumerate(storages):
        if not users[s] or not storage["bytes"]:
            continue
        begin = 0 if storage.get("live_in") else model.new_int_var(0, n - 1, f"b{s}")
        end = n if storage.get("live_out") else model.new_int_var(1, n, f"e{s}")
        size = model.new_int_var(1, n, f"d{s}")
        if not storage.get("live_in"):
            model.add_min_equality(begin, [at[v] for v in users[s]])
        if not storage.get("live_out"):
            model.add_max_equality(end, [at[v] + 1 for v in users[s]])
        intervals.append(model.new_interval_var(begin, size, end, f"i{s}"))
        demands.append(storage["bytes"])
    capacity = model.new_int_var(0, sum(demands), "peak")
    model.add_cumulative(intervals, demands, capacity)
    model.minimize(capacity)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit
    solver.parameters.num_workers = 2
    start = time.perf_counter()
    status = solver.solve(model)
    seconds = time.perf_counter() - start
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return seconds, int(solver.objective_value) if found else None, status == cp_model.OPTIMAL


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cp-statements", type=int, default=500)
    parser.add_argument("--cp-seconds", type=float, default=60)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options = parser.parse_args()
    build = Path(os.environ["PP_BUILD"]) / "bench"
    print(
        f"{'family':10} {'size':>6} | {'peakproof s':>11} {'peak':>12} certified"
        f" | {'torch s':>8} {'ratio':>6} {'peak over ours':>14} by  "
        f" | {'CP-SAT s':>8} {'ratio':>8} {'peak over ours':>14}"
    )
    for family in FAMILIES:
        for size in options.sizes:
            text = subprocess.run(
                [build / "bench/generate", family, str(size)], capture_output=True, check=True
            ).stdout
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                file.write(text)
                file.flush()
                seconds, ours, certified = run_peakproof(build, file.name)
            program = json.loads(text)
            torch_seconds, theirs, name = run_torch(program)
            row = (
                f"{family:10} {size:6} | {seconds:11.4f} {ours:12} "
                f"{'yes' if certified else 'NO':9} | {torch_seconds:8.3f} "
                f"{torch_seconds / seconds:6.1f} {(theirs / ours - 1) * 100:13.2f}% {name:4}"
            )
            if size <= options.cp_statements:
                cp_seconds, found, proved = run_cp_sat(program, options.cp_seconds)
                over = "none" if found is None else f"{(found / ours - 1) * 100:.2f}%"
                row += f" | {cp_seconds:8.2f} {cp_seconds / seconds:8.0f} {over:>13}"
                row += " " if proved else "?"
            else:
                row += " | not tried: too large"
            print(row, flush=True)
    print("\nratio: their seconds over ours; ?: not proved optimal within the limit")


if __name__ == "__main__":
    sys.setrecursionlimit(1 << 20)  # torch's dfs is recursive
    threading.stack_size(1 << 29)
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
