#!/usr/bin/env python3
"""The corpus on real torch: models in several modes, measured, permuted, verified, compared.

    bench/inductor_corpus.py run [--only NAME ...] [--limit N]   what is recorded is skipped
    bench/inductor_corpus.py table                               writes bench/results/inductor.md

Each configuration runs in its own process with memtrace preloaded and appends one JSON line to
bench/results/inductor.jsonl. Sizes in bytes, times in seconds. `own_road` is the compiler's own
way to the same order: handed back through _post_fusion_custom_pass, the code generated again.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LINES = os.path.join(HERE, "results", "inductor.jsonl")
TABLE = os.path.join(HERE, "results", "inductor.md")
PAIRS, PAIR_SECONDS = 41, 6.0  # interleaved timings of stock and permuted: at most


def configurations():
    """(model, mode), the quick ones to compile first."""
    from models import MODELS, sequence

    first = [name for name in MODELS if name in sequence.MODELS]
    rest = [name for name in MODELS if name not in sequence.MODELS]
    for names, modes in (
        (first, ("infer", "train", "frozen")),
        (rest, ("frozen", "infer", "train")),
    ):
        for mode in modes:
            for name in names:
                yield name, mode


# -- one configuration, in its own process --------------------------------------------------------


def build(name, mode):
    """The model in its mode, and a step: a function without arguments."""
    import torch
    from models import MODELS

    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model = model.train() if mode == "train" else model.eval()
    compiled = torch.compile(model)

    def train():
        compiled(*inputs).square().mean().backward()
        for p in model.parameters():
            p.grad = None

    def infer():
        with torch.no_grad():
            compiled(*inputs)

    return train if mode == "train" else infer


def reset():
    import torch

    torch._dynamo.reset()
    torch._inductor.codecache.PyCodeCache.cache_clear()


def time_pairs(optimizer, originals, held):
    """Interleaved run times of stock and permuted on clones: ratio and its quartiles."""
    from peakproof import verify

    if optimizer.result.function is None:
        return
    stock, permuted = optimizer.stock, optimizer.result.function
    ratios, best, begin = [], {0: float("inf"), 1: float("inf")}, time.perf_counter()
    for k in range(PAIRS):
        if k > 10 and time.perf_counter() - begin > PAIR_SECONDS:
            break
        seconds = {}
        for which, f in ((0, stock), (1, permuted)) if k % 2 else ((1, permuted), (0, stock)):
            args = verify.clone(originals)
            start = time.perf_counter()
            f(args)
            seconds[which] = time.perf_counter() - start
        if k > 1:
            ratios.append(seconds[1] / seconds[0])
            best = {w: min(best[w], seconds[w]) for w in best}
    low, middle, high = statistics.quantiles(ratios, n=4)
    optimizer.report.seconds["ratio"] = [low, middle, high]
    optimizer.report.seconds["best"] = [best[0], best[1]]


def measure(name, mode):
    """Stock compiled, every program optimized and verified; reports and the session."""
    import peakproof
    import torch

    torch._inductor.config.freezing = mode == "frozen"
    step = build(name, mode)
    start = time.perf_counter()
    with peakproof.optimize(inspect=time_pairs) as session:
        step()
    whole = time.perf_counter() - start
    ours = sum(
        v for r in session.results for v in r.report.seconds.values() if isinstance(v, float)
    )
    peaks = session.step_peaks(step)
    return session, {"compile_seconds": whole - ours, "our_seconds": ours, "step": peaks}


def own_road(name, mode, session):
    """The realized peaks, by kind of program, when the scheduler is handed our orders."""
    import peakproof
    import torch

    orders = {r.report.kind: order_of_buffers(r) for r in session.results if r.order}
    handed = []

    def hand_back(nodes):
        from torch._inductor.virtualized import V

        kind = "backward" if V.graph.is_backward else "forward"
        kind = "inference" if V.graph.is_inference else kind
        if kind not in orders or kind in handed:
            return nodes
        handed.append(kind)
        return reorder(nodes, orders[kind])

    reset()
    config = torch._inductor.config
    patches = {
        "_post_fusion_custom_pass": hand_back,
        "reorder_for_peak_memory": False,
        "fx_graph_cache": False,
        "freezing": mode == "frozen",
    }
    with config.patch(patches), torch._functorch.config.patch(enable_autograd_cache=False):
        step = build(name, mode)
        with peakproof.optimize(install=False) as again:
            step()
    return {r.report.kind: vars(r.report) for r in again.results}, handed


def with_splits(name, mode):
    """Reports by kind with reuses split; the compilation comes from the cache."""
    import peakproof

    reset()
    step = build(name, mode)
    with peakproof.optimize(split_reuse=True) as session:
        step()
    return {r.report.kind: vars(r.report) for r in session.results}


def order_of_buffers(result):
    """Buffer name -> place in our order, of every buffer that a statement makes or writes."""
    from peakproof.split import split

    statements = split(result.source_text).statements
    place = {}
    for position, index in enumerate(result.order):
        s = statements[index]
        for n in s.targets + s.uses:
            if n.startswith("buf"):
                place.setdefault(n, position)
    for s in statements:  # parts of tuples
        if s.kind == "item" and s.uses[0] in place:
            place.setdefault(s.targets[0], place[s.uses[0]])
    return place


def reorder(nodes, place):
    """Nodes in the order of `place`, as far as their dependences allow: smallest place first."""
    import heapq

    maker = {b: i for i, n in enumerate(nodes) for b in n.get_buffer_names()}
    keys, last = [], -1
    for i, n in enumerate(nodes):
        known = [place[b] for b in n.get_buffer_names() if b in place]
        last = max(known) if known else last
        keys.append((last, i))
    after, waits = {}, [0] * len(nodes)
    for i, n in enumerate(nodes):
        before = {maker[d.name] for d in n.unmet_dependencies if d.name in maker} - {i}
        waits[i] = len(before)
        for b in before:
            after.setdefault(b, []).append(i)
    ready = [(keys[i], i) for i in range(len(nodes)) if waits[i] == 0]
    heapq.heapify(ready)
    out = []
    while ready:
        _, i = heapq.heappop(ready)
        out.append(nodes[i])
        for j in after.get(i, ()):
            waits[j] -= 1
            if waits[j] == 0:
                heapq.heappush(ready, (keys[j], j))
    return out if len(out) == len(nodes) else nodes


def one(name, mode):
    """The JSON line of one configuration."""
    import torch
    from peakproof.meter import meter

    os.environ["LD_PRELOAD"] = ""  # for compilers that this process starts
    session, facts = measure(name, mode)
    if os.environ.get("CORPUS_SAVE"):
        session.save(os.path.join(os.environ["CORPUS_SAVE"], f"{name}.{mode}"))
    line = {"model": name, "mode": mode, "torch": torch.__version__, "meter": meter().name}
    line["threads"] = torch.get_num_threads()
    line.update(facts)
    line["programs"] = [vars(r.report) for r in session.results]
    keys = (
        "peak",
        "peak_measured",
        "lower_bound",
        "optimal",
        "bitwise",
        "splits",
        "state",
        "reason",
    )
    for p, found in pairs(line["programs"], with_splits(name, mode)):
        p["split"] = {k: found[k] for k in keys}
    try:
        again, handed = own_road(name, mode, session)
    except Exception as e:
        line["own_road_error"] = f"{type(e).__name__}: {e}"[:300]
        again, handed = {}, []
    keys = ("stock_peak_measured", "stock_peak_modelled", "state", "reason")
    for p, found in pairs(line["programs"], again):
        if p["kind"] in handed:
            p["own_road"] = {k: found[k] for k in keys}
    return line


def pairs(programs, by_kind):
    return [(p, by_kind[p["kind"]]) for p in programs if p["kind"] in by_kind]


# -- all configurations ---------------------------------------------------------------------------


def recorded():
    if not os.path.exists(LINES):
        return []
    with open(LINES, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def run(options):
    from peakproof.__main__ import memtrace_path

    os.makedirs(os.path.dirname(LINES), exist_ok=True)
    done = {(r["model"], r["mode"]) for r in recorded()}
    env = dict(os.environ, LD_PRELOAD=memtrace_path() or "", PEAKPROOF_PRELOADED="1")
    env.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # spinning threads hurt on a shared machine
    count = 0
    for name, mode in configurations():
        if (name, mode) in done or (options.only and name not in options.only):
            continue
        if options.limit and count >= options.limit:
            break
        count += 1
        start = time.time()
        command = [sys.executable, os.path.abspath(__file__), "one", name, mode]
        try:
            out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
            lines = [x for x in out.stdout.splitlines() if x.startswith("{")]
            line = (
                lines[-1]
                if lines
                else json.dumps({"model": name, "mode": mode, "error": (out.stderr or "")[-400:]})
            )
        except subprocess.TimeoutExpired:
            line = json.dumps({"model": name, "mode": mode, "error": "over 900 seconds"})
        with open(LINES, "a", encoding="utf-8") as f:
            f.write(line + "\n")
        print(f"{name} {mode} {time.time() - start:.0f} s", flush=True)


# -- the table ------------------------------------------------------------------------------------


def number(n):
    return f"{n:,}" if n is not None else "-"


def rows(lines):
    for line in lines:
        for p in line.get("programs", ()):
            yield line, p


def table(lines):
    """Markdown: one row a program, then totals and everything that needs a word."""
    head = ["program", "n", "stock measured", "stock modelled", "optimum modelled"]
    head += ["permuted measured", "bound", "certified", "bitwise", "own road", "reuses split"]
    head += ["time ratio"]
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for line, p in rows(lines):
        own = p.get("own_road", {}).get("stock_peak_measured")
        ratio = p["seconds"].get("ratio")
        cells = [
            f"{line['model']} {line['mode']} {p['name']}",
            str(p["statements"]),
            number(p["stock_peak_measured"]),
            number(p["stock_peak_modelled"]),
            number(p["peak"]),
            number(p["peak_measured"]),
            number(p["lower_bound"]),
            p["proof"] if p["optimal"] else "no",
            p["bitwise"],
            number(own),
            number(p.get("split", {}).get("peak_measured")),
            f"{ratio[1]:.3f} ({ratio[0]:.3f}-{ratio[2]:.3f})" if ratio else "-",
        ]
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out + [""] + totals(lines)) + "\n"


def totals(lines):
    good = [x for x in lines if "error" not in x]
    programs = [p for _, p in rows(good)]
    checked = [p for p in programs if p["peak_measured"] is not None]
    exact = [p for p in checked if p["peak_measured"] == p["peak"]]
    same = [p for p in checked if p["stock_peak_measured"] == p["stock_peak_modelled"]]
    bitwise = [p for p in checked if p["bitwise"].startswith("yes")]
    planned = [p for p in programs if p["peak"] is not None]
    optimal = [p for p in planned if p["optimal"]]
    quick = [p for p in optimal if p["seconds"].get("plan", 0) < 1]
    better = [p for p in checked if p["peak_measured"] < p["stock_peak_measured"]]
    own = [p for p in programs if p.get("own_road", {}).get("stock_peak_measured") is not None]
    missed = [p for p in own if p["own_road"]["stock_peak_measured"] != p["peak"]]
    lower = [p for p in own if p["own_road"]["stock_peak_measured"] < p["peak"]]
    worse = [p for p in own if p["own_road"]["stock_peak_measured"] > p["stock_peak_measured"]]
    ratios = [p["seconds"]["ratio"][1] for p in checked if p["seconds"].get("ratio")]
    steps = [x for x in good if x.get("step") and x["mode"] == "train"]
    out = [
        f"{len(good)} configurations, {len(programs)} programs, torch {versions(good)}.",
        "",
        f"- permuted measured = modelled: {len(exact)} of {len(checked)}",
        f"- stock measured = modelled: {len(same)} of {len(checked)}",
        f"- bitwise equal: {len(bitwise)} of {len(checked)}"
        f" ({sum(p['bitwise'] != 'yes' for p in bitwise)} of them with one thread)",
        f"- certified optimal: {len(optimal)} of {len(planned)}, {len(quick)} under a second",
        f"- lower than stock: {len(better)}",
        f"- compiler's own road: misses the predicted peak in {len(missed)} of {len(own)},"
        f" worse than stock in {len(worse)}; lower in {len(lower)} (another program: other reuses)",
    ]
    split = [p for p in checked if p.get("split", {}).get("peak_measured") is not None]
    gain = [p for p in split if p["split"]["peak_measured"] < p["peak_measured"]]
    exact = [p for p in split if p["split"]["peak_measured"] == p["split"]["peak"]]
    equal = [p for p in split if p["split"]["bitwise"].startswith("yes")]
    out.append(
        f"- with reuses split: lower still in {len(gain)} of {len(split)}; measured = modelled in"
        f" {len(exact)}, bitwise equal in {len(equal)}"
    )
    if ratios:
        spread = statistics.quantiles(ratios, n=4)
        out.append(
            f"- run time permuted/stock, median: {spread[1]:.3f} ({spread[0]:.3f}-{spread[2]:.3f})"
        )
    compile_seconds = sum(x["compile_seconds"] for x in good)
    our = sum(x["our_seconds"] for x in good)
    if compile_seconds:
        out.append(f"- profile, plan and verify: {our:.0f} s; compilation {compile_seconds:.0f} s")
    out += [
        "",
        "Training steps (forward, saved, backward), bytes above what exists before the step:",
        "",
    ]
    out += ["| model | stock | permuted | saved |", "|---|---|---|---|"]
    for x in steps:
        a, b = x["step"]["stock"], x["step"]["permuted"]
        out.append(f"| {x['model']} | {a:,} | {b:,} | {100 * (a - b) / a:.2f}% |")
    out += ["", "What needs a word:", ""]
    out += [
        f"- {x['model']} {x['mode']} {p['name']}: {words}"
        for x, p in rows(good)
        if (words := p["reason"].removesuffix("stock is optimal").rstrip("; "))
    ]
    out += [f"- {x['model']} {x['mode']}: {x['error'][-200:]!r}" for x in lines if "error" in x]
    return out


def versions(lines):
    return ", ".join(sorted({x["torch"] for x in lines}))


def main():
    sys.path.insert(0, HERE)
    p = argparse.ArgumentParser(description=__doc__)
    verbs = p.add_subparsers(dest="verb", required=True)
    r = verbs.add_parser("run")
    r.add_argument("--only", nargs="*")
    r.add_argument("--limit", type=int, default=0)
    o = verbs.add_parser("one")
    o.add_argument("model")
    o.add_argument("mode")
    verbs.add_parser("table")
    options = p.parse_args()
    if options.verb == "run":
        run(options)
    elif options.verb == "one":
        print(json.dumps(one(options.model, options.mode)))
    else:
        text = table(recorded())
        with open(TABLE, "w", encoding="utf-8") as f:
            f.write(text)
        print("\n".join(totals(recorded())))


if __name__ == "__main__":
    main()
