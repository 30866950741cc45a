#!/usr/bin/env python3
"""bench/peers.py - a certified optimum here, against what others find in the same run.

For programs of bench/generate of growing size, one line each in bench/results/peers.jsonl:
  - `peakproof plan --certificate` (reading and writing included), then peakproof-check;
  - the three heuristics that Inductor chooses from (torch._inductor.memory: lpmf, bfs, dfs), called
    on synthetic scheduler nodes, with the time to prepare them; the best of the three peaks counts;
  - CP-SAT (OR-tools): start times, one interval a storage, the load minimised, the original order
    as a hint, two workers, stopped after --cp-seconds; what it finds and what it proves.
Then the table from the lines, bench/results/peers.md. Skips what is there
(--again: what is there at this commit).

Needs torch and ortools in the Python that runs it, and $PP_BUILD with the build directory `bench`.
Seconds are those of the processor, of all threads. Every order is evaluated by the same simulation
(THEORY.md section 1), written here on its own.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from importlib import metadata
from pathlib import Path

import record

FAMILIES = ("residual", "inception", "unet", "layered")
SIZES = (50, 500, 5000, 20000)
CP_MEMORY = 10 << 30  # bytes of address space: the machine is not ours alone


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
    """Returns a dict: seconds of the whole command, peak and bound in bytes, the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        command = [build / "src/peakproof", "plan", path, "--certificate", folder, "--json"]
        ran = record.run([*command, "--time-limit", "60"], 120)
        if ran["code"]:
            return {"error": ran["err"].strip()[-300:]}
        (cert,) = Path(folder).glob("*.cert")
        checked = record.run([build / "check/peakproof-check", cert.with_suffix(".json"), cert])
    report = json.loads(ran["out"])
    return {
        "seconds": ran["user"] + ran["system"],
        "peak": report["peak_after"],
        "bound": report["lower_bound"],
        "before": report["peak_before"],
        "verdict": checked["out"].strip(),
    }


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
    """Returns a dict: seconds of all three heuristics together, the peak of each in bytes.

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
    start, clock = time.process_time(), time.perf_counter()
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
    seconds, clock = time.process_time() - start, time.perf_counter() - clock
    if seconds < 0.1:  # the processor's clock ticks too slowly for that on some systems
        seconds = clock
    number = {id(node): v for v, node in enumerate(nodes)}
    peaks = {name: peak(program, [number[id(n)] for n in order]) for name, order in orders.items()}
    return {"seconds": seconds, "peaks": peaks, "version": metadata.version("torch")}


def run_cp_sat(program, limit):
    """Returns a dict: seconds (building the model apart), wall, peak in bytes or None, proved."""
    from ortools.sat.python import cp_model

    storages, n = program["storages"], len(program["statements"])
    started = time.process_time()
    model = cp_model.CpModel()
    at = [model.new_int_var(0, n - 1, f"t{v}") for v in range(n)]
    model.add_all_different(at)
    for v in range(n):
        model.add_hint(at[v], v)
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
    solver.parameters.num_workers = 2
    built, wall = time.process_time(), time.perf_counter()
    finished = threading.Event()

    def watch():
        while not finished.wait(0.05):
            if time.process_time() - built > limit:
                solver.stop_search()

    watcher = threading.Thread(target=watch)
    watcher.start()
    status = solver.solve(model)
    finished.set()
    watcher.join()
    done = {
        "build_seconds": built - started,
        "seconds": time.process_time() - built,
        "wall": time.perf_counter() - wall,
        "limit": limit,
        "proved": status == cp_model.OPTIMAL,
        "peak": None,
        "version": metadata.version("ortools"),
    }
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        order = sorted(range(n), key=lambda v: solver.value(at[v]))
        done["peak"] = peak(program, order)
        done["objective"] = int(solver.objective_value)
    return done


def run_one(who, path, limit):
    """Runs torch or CP-SAT in a process of its own; returns what it says, or the error."""
    command = [sys.executable, __file__, "--one", who, path, "--cp-seconds", limit]
    ran = record.run(command, 20 * limit + 600)
    try:
        return json.loads(ran["out"])
    except json.JSONDecodeError:
        return {"error": ran["err"].strip().splitlines()[-1:] or f"exit {ran['code']}"}


def one(who, path, limit):
    """The body of that process."""
    program = json.loads(Path(path).read_text())
    if who == "torch":
        return run_torch(program)
    resource.setrlimit(resource.RLIMIT_AS, (CP_MEMORY, CP_MEMORY))
    return run_cp_sat(program, limit)


def measure(build, family, size, limit, peers):
    """Returns the line of one program (dict)."""
    generate = [build / "bench/generate", family, str(size)]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(generate, stdout=file, check=True)
        line = {
            "family": family,
            "size": size,
            "command": f"peers.py --sizes {size} --families {family} --cp-seconds {limit:g}",
            "statements": len(json.loads(Path(file.name).read_text())["statements"]),
            "peakproof": run_peakproof(build, file.name),
        }
        for who in ("torch", "cp_sat"):
            asked = who in peers
            line[who] = run_one(who, file.name, limit) if asked else {"error": ["not asked"]}
    return line | record.stamp(build)


def over(theirs, ours):
    """Returns how far a peak is above ours, as text."""
    return f"+{theirs / ours - 1:.2%}" if theirs >= ours else f"**{theirs / ours - 1:.2%}**"


def table(lines):
    """Returns the table (Markdown) of the lines."""
    head = (
        "family", "statements", "peakproof s", "peak", "certified", "torch s", "torch/ours",
        "its best peak", "by", "CP-SAT s", "CP-SAT/ours", "its peak", "it proves that",
    )  # fmt: skip
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for line in lines:
        ours, torch, cp = line["peakproof"], line["torch"], line["cp_sat"]
        row = [line["family"], f"{line['statements']:,}"]
        if "error" in ours:
            out.append("| " + " | ".join(row + [str(ours["error"])] + ["-"] * 10) + " |")
            continue
        row += [f"{ours['seconds']:.3f}", f"{ours['peak']:,}"]
        row.append("yes" if ours["verdict"].endswith("optimal") else "NO: " + ours["verdict"])
        if "error" in torch:
            row += ["failed: " + " ".join(torch["error"])[:60], "-", "-", "-"]
        else:
            best = min(torch["peaks"], key=torch["peaks"].get)
            row += [f"{torch['seconds']:.3f}", f"{torch['seconds'] / ours['seconds']:.1f}"]
            row += [over(torch["peaks"][best], ours["peak"]), best]
        if "error" in cp:
            row += ["failed: " + " ".join(cp["error"])[:60], "-", "-", "-"]
        else:
            spent = cp["build_seconds"] + cp["seconds"]
            row += [f"{spent:.2f}", f"{spent / ours['seconds']:,.0f}"]
            row.append(over(cp["peak"], ours["peak"]) if cp["peak"] else "none found")
            row.append("yes" if cp["proved"] else "no")
        out.append("| " + " | ".join(row) + " |")
    return "\n".join(out) + "\n"


def page(lines):
    """Returns the text of peers.md."""
    versions = sorted(
        {
            f"{name} {line[key]['version']}"
            for line in lines
            for key, name in (("torch", "torch"), ("cp_sat", "ortools"))
            if "version" in line[key]
        }
    )
    limits = sorted({line["cp_sat"]["limit"] for line in lines if "limit" in line["cp_sat"]})
    limit = " or ".join(f"{seconds:g}" for seconds in limits)
    return (
        "# Beside what others find\n\n"
        "Made by `bench/peers.py` from `peers.jsonl`, all three in the same run on the same "
        "program. Seconds of the processor, of all threads; ours is the whole command, with "
        "reading the JSON and writing program and certificate, which `peakproof-check` then "
        "verified; torch's is that of preparing and running its three heuristics (lpmf, bfs, dfs) "
        "on synthetic nodes, of which the best peak counts; CP-SAT's has two workers, the "
        "original order as a hint, and a limit of "
        f"{limit} s. Peaks are relative to "
        f"the certified one.\n\nMeasured at {record.provenance(lines)}; {', '.join(versions)}."
        "\n\n" + table(lines)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--families", nargs="*", default=FAMILIES)
    parser.add_argument("--cp-seconds", type=float, default=60)
    parser.add_argument("--again", action="store_true", help="measure anew at this commit")
    parser.add_argument(
        "--peers", nargs="*", default=("torch", "cp_sat"), choices=("torch", "cp_sat"), help="these"
    )
    parser.add_argument("--table", action="store_true", help="only the table, from the lines")
    parser.add_argument("--results", type=Path, default=record.RESULTS, help="folder")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*options.one, options.cp_seconds)))
        return
    lines = record.Lines(options.results / "peers.jsonl", ("family", "size"))
    if not options.table:
        build = Path(os.environ.get("PP_BUILD", record.ROOT / "build")).resolve() / "bench"
        if not (build / "bench/generate").exists():
            sys.exit(f"{build} is not built: make build-bench")
        if options.again:
            lines.drop_old()
        for size in options.sizes:
            for family in options.families:
                if not lines.has(family, size):
                    line = measure(build, family, size, options.cp_seconds, options.peers)
                    lines.add(line)
                    print(family, size, "done", flush=True)
        lines = record.Lines(lines.path, lines.fields)
    sizes = sorted({size for _, size in lines.by_key})
    every = [lines.get(f, s) for f in FAMILIES for s in sizes if lines.has(f, s)]
    record.write_whole(options.results / "peers.md", page(every))


if __name__ == "__main__":
    sys.setrecursionlimit(1 << 20)  # torch's dfs is recursive
    threading.stack_size(1 << 29)
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
