#!/usr/bin/env python3
"""The corpus on real torch: models in several modes, measured, permuted, verified, compared.

    bench/inductor_corpus.py run [--only NAME ...] [--limit N] [--again]
    bench/inductor_corpus.py table                      writes bench/results/inductor.md

`run` skips what is recorded; `--again` only what this commit's code recorded. Each configuration
runs in its own process with memtrace preloaded and leaves one JSON line, which replaces its older
one, in bench/results/inductor.jsonl. Sizes in bytes, times in seconds (cpu: of all threads and
child processes). `own_road` is the compiler's own way to the same order: handed back through
_post_fusion_custom_pass, the code generated again.

`commit` in a line is the last commit of the package's sources (CORPUS_COMMIT overrides it: say
what is installed). TORCHINDUCTOR_CACHE_DIR is shared by the configurations: kernels that two have
in common are compiled once, so compile seconds err on the low side.
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
PAIRS, PAIR_SECONDS = 41, 4.0  # interleaved timings of stock and permuted: at most


def configurations():
    """(model, mode): what the issues name first, then the quick ones to compile first."""
    from models import MODELS, public, sequence

    seen = set()
    named = [*FIRST, *TRAINED[:7], *deeplabs(), *TRAINED[7:]]
    for name, mode in named:
        if name in MODELS and (name, mode) not in seen:
            seen.add((name, mode))
            yield name, mode
    first = [name for name in MODELS if name in sequence.MODELS]
    rest = [n for n in MODELS if n not in sequence.MODELS and n not in public.MODELS]
    more = [n for n in public.MODELS if "deeplab" not in n]
    for names, modes in (
        (first, ("infer", "train", "frozen")),
        (rest, ("frozen", "infer", "train")),
        (more, ("frozen", "infer", "train")),
    ):
        for mode in modes:
            for name in names:
                if (name, mode) not in seen:
                    yield name, mode


FIRST = [("tv_deeplabv3_r50_224", "infer"), ("tv_googlenet_224", "infer")]
FIRST += [("tv_resnet18_64", "train"), ("tv_googlenet_224", "frozen")]
TRAINED = ["tv_alexnet_96", "convnext", "hf_bert", "unet", "tv_squeezenet1_1_96", "randwire"]
TRAINED += ["hf_gpt2", "tv_shufflenet_v2_x0_5_96", "hf_t5", "tv_googlenet_64x2", "pnasnet"]
TRAINED += [
    "tv_mobilenet_v3_small_96",
    "nasnet",
    "tv_mnasnet0_5_96",
    "tv_vgg11_bn_64",
    "timm_dla34",
]
TRAINED += ["tv_densenet121_64", "tv_resnet18_96", "tv_deeplabv3_mnv3_64x2"]
TRAINED += ["tv_deeplabv3_r50_64x2"]
TRAINED = [(name, "train") for name in TRAINED]


def deeplabs():
    """The large inputs first: there the order matters."""
    from models.public import BACKBONES, SIZES

    for size in sorted(SIZES, reverse=True):
        for mode in ("infer", "frozen"):
            for backbone in sorted(BACKBONES.values(), key=["r50", "mnv3", "r101"].index):
                yield f"tv_deeplabv3_{backbone}_{size}", mode
    yield "tv_deeplabv3_r50_552", "infer"


def without_own_road(name, mode):
    """What the issues name besides: compiling it a second time takes minutes each."""
    from models import public

    named = name in public.MODELS or (name, mode) in TRAINED
    return named and (name, mode) not in FIRST


def heavy(name):
    """A run takes seconds: no times, no split reuses, no peaks of whole steps."""
    return name.startswith("tv_deeplabv3") and name.endswith(("_320", "_520", "_552"))


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
        if k > 6 and time.perf_counter() - begin > PAIR_SECONDS:
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


def cpu_seconds():
    """Of this process and all that it started: compilers, a pool of compilers."""
    children, used = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(pid))
        used[int(pid)] = sum(map(int, fields[11:15]))
    total, stack = 0, [os.getpid()]
    while stack:
        pid = stack.pop()
        total += used.get(pid, 0)
        stack += children.get(pid, [])
    return total / os.sysconf("SC_CLK_TCK")


def measure(name, mode):
    """Stock compiled, every program optimized and verified; reports and the session."""
    from unittest import mock

    import peakproof
    import torch
    from peakproof import pipeline

    torch._inductor.config.freezing = mode == "frozen"
    step = build(name, mode)
    ours = {"seconds": 0.0, "cpu": 0.0, "all cpu": 0.0}
    start, start_cpu = time.perf_counter(), cpu_seconds()
    splits = {}
    plan = pipeline.Optimizer.plan

    def timed_plan(optimizer, source, model):
        """Without options for more, a report has one plan."""
        begin = time.perf_counter()
        found = plan(optimizer, source, model)
        optimizer.report.seconds["plan"] = time.perf_counter() - begin
        return found

    def inspect(optimizer, originals, held):
        if heavy(name):
            return
        begin, begin_cpu = time.perf_counter(), cpu_seconds()
        time_pairs(optimizer, originals, held)
        splits[optimizer.report.kind] = with_splits(optimizer, originals, held)
        optimizer.report.seconds["apart"] = time.perf_counter() - begin
        ours["cpu"] -= cpu_seconds() - begin_cpu

    timing = mock.patch.object(pipeline.Optimizer, "plan", timed_plan)
    with timing, peakproof.optimize(inspect=inspect) as session:
        optimize = session.optimize

        def timed(dispatcher, args):
            before, before_cpu = time.perf_counter(), cpu_seconds()
            result = optimize(dispatcher, args)
            ours["seconds"] += time.perf_counter() - before
            ours["cpu"] += cpu_seconds() - before_cpu
            ours["all cpu"] += cpu_seconds() - before_cpu
            return result

        session.optimize = timed
        step()
    facts = {
        "compile_seconds": time.perf_counter() - start - ours["seconds"],
        "compile_cpu_seconds": cpu_seconds() - start_cpu - ours["all cpu"],
        "our_seconds": phases(session),
        "our_cpu_seconds": ours["cpu"],
        "splits": splits,
    }
    facts["step"] = None if heavy(name) else session.step_peaks(step)
    return session, facts


def phases(session):
    """Seconds of profiling, planning and verifying, without what `inspect` does besides.

    `plan` is a part of the lap "profile and plan".
    """
    found = [r.report.seconds for r in session.results]
    apart = ("apart", "plan")
    return sum(v for s in found for k, v in s.items() if isinstance(v, float) and k not in apart)


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


def with_splits(optimizer, originals, held):
    """What the same program comes to when its reuses are split."""
    from unittest import mock

    from peakproof import pipeline, verify

    options = pipeline.Options(split_reuse=True)
    name, text = optimizer.report.name, optimizer.result.source_text
    again = pipeline.Optimizer(name, text, optimizer.namespace, optimizer.stock, options)
    with mock.patch.object(verify, "held_arguments", lambda args: held):
        report = vars(again.run(originals).report)
    keys = ("peak", "peak_measured", "lower_bound", "optimal", "bitwise")
    return {k: report[k] for k in (*keys, "splits", "state", "reason")}


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
    from record import machine

    os.environ["LD_PRELOAD"] = ""  # for compilers that this process starts
    session, facts = measure(name, mode)
    if os.environ.get("CORPUS_SAVE"):
        session.save(os.path.join(os.environ["CORPUS_SAVE"], f"{name}.{mode}"))
    line = {"model": name, "mode": mode, "torch": torch.__version__, "meter": meter().name}
    line["commit"] = commit()
    line["date"] = time.strftime("%Y-%m-%d", time.gmtime())
    line["threads"] = torch.get_num_threads()
    line["machine"] = machine()
    splits = facts.pop("splits")
    line.update(facts)
    line["programs"] = [vars(r.report) for r in session.results]
    for p in line["programs"]:
        p["split"] = splits.get(p["kind"], {})
    if without_own_road(name, mode):
        return line
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


def record(line):
    """Adds a line, in the place of the older one. A failure does not replace a result."""
    lines, key = recorded(), (line["model"], line["mode"])
    at = next((i for i, x in enumerate(lines) if (x["model"], x["mode"]) == key), None)
    if at is None:
        lines.append(line)
    elif "error" not in line:
        lines[at] = line
    else:
        lines[at]["retry"] = {"commit": line["commit"], "error": line["error"]}
    temporary = LINES + ".new"
    with open(temporary, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(x) + "\n" for x in lines)
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, LINES)


def commit():
    """The last commit of the sources that make the package."""
    if "CORPUS_COMMIT" in os.environ:
        return os.environ["CORPUS_COMMIT"]
    command = ["git", "-C", HERE, "log", "-1", "--format=%h", "--"]
    command += [os.path.join("..", d) for d in ("python", "src", "include", "memtrace")]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def finished(line, options):
    """Whether a recorded line is to stay: with --again, if this commit's code made or tried it."""
    made = [line.get("commit"), line.get("retry", {}).get("commit")]
    return not options.again or commit() in made


def run(options):
    from peakproof.__main__ import memtrace_path

    os.makedirs(os.path.dirname(LINES), exist_ok=True)
    done = {(r["model"], r["mode"]) for r in recorded() if finished(r, options)}
    env = dict(os.environ, LD_PRELOAD=memtrace_path() or "", PEAKPROOF_PRELOADED="1")
    env.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # spinning threads hurt on a shared machine
    count = 0
    for name, mode in configurations():
        if (name, mode) in done or (options.only and name not in options.only):
            continue
        if options.modes and mode not in options.modes:
            continue
        if options.limit and count >= options.limit:
            break
        count += 1
        start = time.time()
        command = [sys.executable, os.path.abspath(__file__), "one", name, mode]
        limit = options.time_limit
        line = {"model": name, "mode": mode, "commit": commit()}
        try:
            out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit)
            lines = [x for x in out.stdout.splitlines() if x.startswith("{")]
            if lines:
                line = json.loads(lines[-1])
            else:
                line["error"] = (out.stderr or "no output")[-400:]
        except subprocess.TimeoutExpired:
            line["error"] = f"over {limit} seconds"
        record(line)
        print(
            f"{name} {mode} {time.time() - start:.0f} s {line.get('error', '')[-80:]}", flush=True
        )


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


def saved(program):
    """Percent of the stock peak that the permuted program saves."""
    return 100 * (1 - program["peak_measured"] / program["stock_peak_measured"])


def distribution(programs):
    """How many programs save how much, by kind, and the largest savings."""
    checked = [(x, p) for x, p in programs if p["peak_measured"] and p["stock_peak_measured"]]
    kinds = {"inference": "infer", "frozen inference": "frozen", "forward": "", "backward": ""}
    head = ["0", "to 1%", "1 to 5%", "5 to 10%", "over 10%"]
    out = ["| saved of the stock peak | " + " | ".join(head) + " |", "|---" * 6 + "|"]
    for name, mode in kinds.items():
        seen = [saved(p) for x, p in checked if mode == x["mode"] or p["kind"] == name and not mode]
        bins = [0] * 5
        for v in seen:
            bins[0 if v <= 0 else 1 + sum(v > limit for limit in (1, 5, 10))] += 1
        out.append(f"| {len(seen)} programs, {name} | " + " | ".join(map(str, bins)) + " |")
    best = sorted(((saved(p), x, p) for x, p in checked), key=lambda t: -t[0])[:8]
    out += [
        "",
        "Largest: "
        + "; ".join(f"{x['model']} {x['mode']} {p['kind']} {v:.1f}%" for v, x, p in best),
    ]
    return out


def deeplab_table(lines):
    """DeepLabV3 by backbone and size of the input: stock peak, permuted, percent saved."""
    from models import public

    found = {(x["model"], x["mode"]): x for x in lines}
    out = ["| backbone, mode | " + " | ".join(map(str, public.SIZES)) + " |"]
    out.append("|---" * (1 + len(public.SIZES)) + "|")
    for long, short in public.BACKBONES.items():
        for mode in ("infer", "frozen"):
            cells = []
            for size in public.SIZES:
                x = found.get((f"tv_deeplabv3_{short}_{size}", mode))
                if x is None or "error" in x:
                    cells.append(x["error"] if x else "-")
                    continue
                p = x["programs"][0]
                a, b = p["stock_peak_measured"], p["peak_measured"]
                cells.append(f"{a:,} to {b:,}, {saved(p):.2f}%" if b < a else f"{a:,}, optimal")
            out.append(f"| {long} {mode} | " + " | ".join(cells) + " |")
    return out


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
        f"- compiler's own road: misses the predicted peak in {len(missed)} of {len(own)} programs"
        f" ({configurations_of(good, missed)} of {configurations_of(good, own)} configurations),"
        f" worse than stock in {len(worse)} ({configurations_of(good, worse)});"
        f" lower in {len(lower)} (another program: other reuses)",
    ]
    certified = [p["seconds"]["plan"] for p in optimal if "plan" in p["seconds"]]
    if certified:
        out.append(
            f"- seconds to plan and certify: median {statistics.median(certified):.4f},"
            f" largest {max(certified):.3f}"
        )
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
    out += costs(good)
    out += ["", *distribution(list(rows(good))), "", "DeepLabV3 over input sizes:", ""]
    out += deeplab_table(lines)
    out += [
        "",
        "Training steps (forward, saved, backward), bytes above what exists before the step:",
        "",
    ]
    out += ["| model | stock | permuted | saved |", "|---|---|---|---|"]
    for x in sorted(steps, key=lambda x: x["model"]):
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


def configurations_of(lines, programs):
    chosen = {id(p) for p in programs}
    return sum(any(id(p) in chosen for p in x["programs"]) for x in lines)


def costs(lines):
    """What profiling, planning and verifying costs against the compilation."""
    ours, compiled = sum(x["our_seconds"] for x in lines), sum(x["compile_seconds"] for x in lines)
    out = [f"- profile, plan and verify: {ours:.0f} s; compilation {compiled:.0f} s (wall)"]
    timed = [x for x in lines if "our_cpu_seconds" in x]
    if timed:
        ratios = [x["our_cpu_seconds"] / x["compile_cpu_seconds"] for x in timed]
        out.append(
            f"- the same in seconds of CPU, {len(timed)} configurations:"
            f" {sum(x['our_cpu_seconds'] for x in timed):.0f} s;"
            f" {sum(x['compile_cpu_seconds'] for x in timed):.0f} s;"
            f" median ratio {statistics.median(ratios):.3f}"
        )
    return out


def versions(lines):
    made = sorted({x.get("commit", "before e826b85") for x in lines})
    return f"{', '.join(sorted({x['torch'] for x in lines}))}; code: {', '.join(made)}"


def main():
    sys.path.insert(0, HERE)
    p = argparse.ArgumentParser(description=__doc__)
    verbs = p.add_subparsers(dest="verb", required=True)
    r = verbs.add_parser("run")
    r.add_argument("--only", nargs="*")
    r.add_argument("--modes", nargs="*")
    r.add_argument("--limit", type=int, default=0)
    r.add_argument("--again", action="store_true")
    r.add_argument("--time-limit", type=int, default=900, help="seconds for a configuration")
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
