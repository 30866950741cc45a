#!/usr/bin/env python3
"""bench/page.py [--results FOLDER] [--out FOLDER] - doc/results.md and its pictures from raw lines.

Reads what is kept in bench/results (*.jsonl, one JSON object a measurement), measures nothing, and
is done in a second. A row without data says "not measured"; every number comes from a line that
names commit, machine and command. `make reproduce` runs this; MEASURE=1 measures what is missing.
"""

import argparse
import math
import re
import statistics
import subprocess
import sys
from pathlib import Path

import record
import svg

MISSING = "not measured"


def table(head, rows):
    """Returns a Markdown table."""
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(out + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


def share(part, whole):
    return f"{part} of {whole} ({part / whole:.1%})" if whole else MISSING


def seconds(value):
    return f"{value * 1000:.2g} ms" if value < 0.1 else f"{value:.2f} s"


def percent(value):
    """A saving: 0, or with the digits that tell it from 0."""
    if value == 0:
        return "0"
    return f"{value:.2%}" if abs(value) >= 0.0001 else f"{value:.1g}"


def saved(before, after):
    return 1 - after / before if before else 0.0


def origin(lines, command):
    """The sentence under each table: with what, where, when."""
    lines = list(lines)
    commits = sorted({str(line.get("commit", "not recorded")) for line in lines})
    dates = sorted({str(line["date"])[:10] for line in lines if line.get("date")})
    if len(commits) > 4:
        commits = [f"{len(commits)} commits (each line names its own)"]
    parts = [f"`{command}`", "commit " + ", ".join(commits)]
    for field, word in (("compiler", ""), ("torch", "torch "), ("machine", "")):
        seen = sorted({str(line[field]) for line in lines if line.get(field)})
        if seen:
            parts.append(word + ", ".join(seen))
    parts += [" to ".join(dict.fromkeys((dates[0], dates[-1])))] if dates else []
    return f"*{'; '.join(parts)}.*"


class Results:
    """All raw lines, and the pictures made of them."""

    def __init__(self, folder, out):
        self.folder, self.out, self.pictures = folder, out, {}
        self.inductor = [x for x in self.lines("inductor.jsonl") if x.get("programs")]
        self.certify = [x for x in self.newest("certify.jsonl", "set", "model", "program")]
        self.scaling = self.newest("scaling.jsonl", "family", "size")
        self.families = self.newest("families.jsonl", "family", "seed")
        self.peers = self.newest("peers.jsonl", "family", "size")

    def lines(self, name):
        return list(record.read(self.folder / name))

    def newest(self, name, *fields):
        return list(record.Lines(self.folder / name, fields).by_key.values())

    def programs(self, mode=None):
        """Yields (configuration, program) of the Inductor corpus."""
        for line in self.inductor:
            if mode is None or line["mode"] == mode:
                for program in line["programs"]:
                    yield line, program

    def of(self, kind):
        return [line for line in self.certify if line["set"] == kind]

    def picture(self, name, text):
        """Keeps a picture; returns the Markdown that shows it."""
        self.pictures[name] = text
        title = re.search(r"<title[^>]*>(.*?)</title>", text).group(1)
        return f"![{title}](results/{name})"


# ---- Rows of the table: each returns (what is shown here, section or "") ----


def measured_road(results):
    """Configurations whose regenerated program was measured: [(line, [(program, bytes)])]."""
    found = []
    for line in results.inductor:
        pairs = [(p, p["own_road"]["stock_peak_measured"]) for p in line["programs"] if (
            p.get("own_road") or {}).get("stock_peak_measured")]  # fmt: skip
        if pairs and len(pairs) == len(line["programs"]):
            found.append((line, pairs))
    return found


def regenerate(results):
    road = measured_road(results)
    if not road:
        return MISSING, ""
    above = [x for x in road if any(got > p["peak"] for p, got in x[1])]
    below = [x for x in road if x not in above and any(got < p["peak"] for p, got in x[1])]
    worse = [x for x in road if any(got > p["stock_peak_measured"] for p, got in x[1])]
    rows = []
    for line, pairs in road:
        for p, got in pairs:
            if got != p["peak"]:
                rows.append((
                    f"{line['model']} {line['mode']} {p['kind']}", f"{p['stock_peak_measured']:,}",
                    f"{p['peak']:,}", f"{got:,}", f"{got / p['peak'] - 1:+.2%}",
                    f"{p.get('peak_measured') or p['stock_peak_measured']:,}",
                    "yes" if got > p["stock_peak_measured"] else "",
                ))  # fmt: skip
    rows.sort(key=lambda row: -float(row[4].rstrip("%")))
    missed = len(above) + len(below)
    text = (
        f"{len(road)} configurations: handing the order back to the compiler and generating the "
        f"code again misses the predicted peak in {share(missed, len(road))}: above it in "
        f"{len(above)}, only below it in {len(below)}; worse than stock in {len(worse)}."
    )
    head = (
        "program",
        "stock",
        "predicted",
        "regenerated",
        "off by",
        "permuted",
        "worse than stock",
    )
    section = (
        f"{text} Regenerating decides fusion, reuse of buffers and in-place writes anew, for the "
        "new order: the program is another one, so its peak can fall below as well as rise above "
        "what was predicted for the program that was there. Permuting changes none of that. "
        "Programs that miss (measured bytes):\n\n"
        + table(head, rows) + "\n\n"
        + origin((line for line, _ in road), "bench/inductor_corpus.py run")
    )  # fmt: skip
    short = f"{len(road)} configurations: {missed} miss, {len(worse)} worse than stock"
    return short, section


def permute(results):
    programs = list(results.programs())
    if not programs:
        return MISSING, ""
    ran = [(c, p) for c, p in programs if p.get("peak_measured") is not None]
    exact = [p for _, p in ran if p["peak_measured"] == p["peak"]]
    bitwise = [p for _, p in ran if p.get("bitwise") == "yes"]
    odd = [
        (f"{c['model']} {c['mode']} {p['kind']}", p["state"], p["bitwise"], f"{p['peak']:,}",
         f"{p['peak_measured']:,}", p.get("reason") or "")
        for c, p in ran
        if p["peak_measured"] != p["peak"] or p.get("bitwise") != "yes"
    ]  # fmt: skip
    refused = [(c, p) for c, p in programs if p.get("peak_measured") is None]
    changed = sum(p["state"] == "installed" for _, p in ran)
    section = (
        f"{len(results.inductor)} configurations, {len(programs)} programs; {changed} had a "
        f"better order and were permuted, the others keep theirs. The measured peak is the "
        f"modelled one to the byte in {share(len(exact), len(ran))}, outputs are bitwise equal in "
        f"{share(len(bitwise), len(ran))}."
    )
    if odd:
        head = ("program", "state", "bitwise", "modelled", "measured", "reason")
        section += " The others:\n\n" + table(head, odd)
    if refused:
        rows = [
            (f"{c['model']} {c['mode']} {p['kind']}", p["state"], p.get("reason") or "")
            for c, p in refused
        ]
        section += "\n\nLeft alone, with the reason:\n\n" + table(
            ("program", "state", "reason"), rows
        )
    section += "\n\n" + origin(results.inductor, "bench/inductor_corpus.py run")
    return (
        f"{len(results.inductor)} configurations, {len(ran)} programs: to the byte in "
        f"{len(exact) / len(ran):.1%}, bitwise in {len(bitwise) / len(ran):.1%}"
    ), section


SETS = {
    "inductor": "captured from Inductor (shared)",
    "tflite": ".tflite models",
    "onnx": "ONNX models",
    "trace": "operator traces of torchvision and timm (inference and training)",
    "hard": "random, made to strain a solver (not real)",
}


def verified(line):
    return bool(line.get("optimal")) and line.get("verdict", "").endswith("optimal")


def certified(results):
    rows, real, good, times = [], 0, 0, []
    wrappers = [verified(x) and x["plan"] + x["certify"] < 1 for x in results.of("inductor")]
    for kind, name in SETS.items():
        lines = results.of(kind)
        if not lines:
            rows.append((name, MISSING, "", "", "", ""))
            continue
        took = [x["plan"] + x["certify"] for x in lines if "plan" in x]
        done = sum(verified(x) for x in lines)
        fast = sum(verified(x) and x["plan"] + x["certify"] < 1 for x in lines)
        if kind != "hard":
            real, good, times = real + len(lines), good + fast, times + took
        rows.append((
            name, len(lines), share(done, len(lines)), share(fast, len(lines)),
            seconds(statistics.median(took)), seconds(max(took)),
        ))  # fmt: skip
    corpus = [p for _, p in results.programs() if p.get("optimal") is not None]
    if corpus:
        took = [p["seconds"]["plan"] for p in corpus if "plan" in p.get("seconds", {})]
        done = sum(bool(p["optimal"]) for p in corpus)
        fast = sum(bool(p["optimal"]) and p["seconds"].get("plan", 9) < 1 for p in corpus)
        real, good, times = real + len(corpus), good + fast, times + took
        wrappers += [True] * fast + [False] * (len(corpus) - fast)
        rows.insert(1, (
            "captured from Inductor (this corpus, planned in the session, wall clock)",
            len(corpus), share(done, len(corpus)), share(fast, len(corpus)),
            seconds(statistics.median(took)), seconds(max(took)),
        ))  # fmt: skip
    if not real:
        return MISSING, ""
    left = [
        (x["model"], x.get("program") or "", f"{x.get('statements', 0):,}",
         f"{x.get('peak_after', 0):,}", f"{x.get('lower_bound', 0):,}",
         f"{x.get('plan', 0) + x.get('certify', 0):.2f}", x.get("error") or x.get("verdict"))
        for x in results.certify
        if x["set"] != "hard" and not (verified(x) and x["plan"] + x["certify"] < 1)
    ]  # fmt: skip
    head = ("programs", "number", "certified", "in under 1 s", "median", "maximum")
    section = (
        f"{real} programs of real models, {share(good, real)} certified in under a second, median "
        f"{seconds(statistics.median(times))}, maximum {seconds(max(times))}: processor seconds of "
        "planning and writing the certificate, planning limited to 10 s, each certificate verified "
        "by `peakproof-check` (those of the corpus were proved in its session, and their "
        "certificates not checked again here). An operator trace is what eager PyTorch executes "
        "for a public architecture, recorded on the "
        "meta device by `bench/trace_programs.py`; the published value is about Inductor's wrapper "
        "graphs only.\n\n" + table(head, rows)
    )
    if left:
        head = ("model", "program", "statements", "peak", "bound", "s", "verdict")
        section += "\n\nNot certified in under a second:\n\n" + table(head, left)
    section += "\n\n" + origin(results.certify, "bench/certify --traces FOLDER")
    return (
        f"Inductor's: {share(sum(wrappers), len(wrappers))}; all real programs: "
        f"{share(good, real)}, median {seconds(statistics.median(times))}, maximum "
        f"{seconds(max(times))}"
    ), section


def tflite(results):
    lines = results.of("tflite")
    if not lines:
        return MISSING, ""
    rows = [
        (x["model"], x["program"], x.get("statements"), f"{x.get('peak_before', 0):,}",
         f"{x.get('peak_after', 0):,}", percent(saved(x["peak_before"], x["peak_after"])),
         x.get("proof"), f"`{x.get('verdict')}`")
        for x in lines
    ]  # fmt: skip
    models = {x["model"] for x in lines}
    failed = {x["model"] for x in lines if not verified(x)}
    head = ("model", "subgraph", "operators", "before", "after", "saved", "proof", "verdict")
    section = (
        f"{len(models)} models, {len(lines)} subgraphs; certified: "
        f"{share(len(models) - len(failed), len(models))} models.\n\n"
        + table(head, rows) + "\n\n" + origin(lines, "bench/certify --sets tflite")
    )  # fmt: skip
    return f"{share(len(models) - len(failed), len(models))} models", section


def bucket(value):
    for limit, name in ((0, "0"), (0.01, "to 1%"), (0.05, "1 to 5%"), (0.10, "5 to 10%")):
        if value <= limit:
            return name
    return "over 10%"


BUCKETS = ("0", "to 1%", "1 to 5%", "5 to 10%", "over 10%")


def savings(results):
    groups = {}
    for c, p in results.programs():
        name = {"infer": "Inductor, inference", "frozen": "Inductor, frozen"}.get(c["mode"])
        name = name or f"Inductor, training, {p['kind']}"
        groups.setdefault(name, []).append(
            (f"{c['model']} {c['mode']} {p['kind']}", saved(p["stock_peak_measured"], p["peak"]))
        )
    for kind in ("tflite", "onnx", "trace"):
        for x in results.of(kind):
            if "peak_before" not in x:
                continue
            name = SETS[kind]
            if kind == "trace":
                mode = "training" if ".train" in x["model"] else "inference"
                name = f"operator traces, {mode}"
            groups.setdefault(name, []).append(
                (x["model"], saved(x["peak_before"], x["peak_after"]))
            )
    if not groups:
        return MISSING, ""
    rows = []
    for name, values in groups.items():
        counts = [sum(bucket(v) == b for _, v in values) for b in BUCKETS]
        best = max(values, key=lambda x: x[1])
        rows.append((name, len(values), *counts, f"{best[1]:.1%} ({best[0]})"))
    top = {value for group in groups.values() for value in group if value[1] >= 0.01}
    top = sorted(top, key=lambda x: (-x[1], x[0]))[:40]
    picture = results.picture(
        "savings.svg", svg.bars("The largest savings by order alone", "share of the peak", top)
    )
    inference = [v for n, g in groups.items() if n.startswith("Inductor, in") or "frozen" in n
                 for _, v in g]  # fmt: skip
    best = [(line["model"], saved(p["stock_peak_measured"], p["peak"]))
            for line, p in results.programs() if "deeplab" in line["model"]]  # fmt: skip
    deep = max(best, key=lambda x: x[1]) if best else None
    section = (
        "How many programs save how much of their peak (measured stock against optimum for "
        "Inductor's, original order against optimum for the others):\n\n"
        + table(("programs", "number", *BUCKETS, "most"), rows) + f"\n\n{picture}\n\n"
        + origin([*results.inductor, *results.of("trace")], "bench/inductor_corpus.py run; "
                 "bench/certify")
        + "\n\n" + deeplab(results)
    )  # fmt: skip
    short = f"{share(sum(v == 0 for v in inference), len(inference))} inference programs optimal"
    if not inference:
        short = f"{share(sum(v == 0 for g in groups.values() for _, v in g), sum(map(len, groups.values())))} programs optimal"  # noqa: E501
    return short + (f"; {deep[0]} {deep[1]:.1%} less" if deep else ""), section


# What sets the peak of DeepLabV3 with ResNet: (place, stock, permuted, what the order changes);
# bytes = fixed + slope * a, where a is the pixels of the last feature map. The fixed part of the
# block is as measured where the block sets the peak, at 520 and 552; its scratch varies by 64 KiB.
PLACES = (
    ("last dilated convolution of the head", (37_793_992, 12_288), (37_793_992, 11_264),
     "the branch without a 3x3 comes last: one branch's result (1024 a) less is held"),
    ("first block of the last stage", (8_499_400, 20_480), (4_272_328, 18_432),
     "the projection before the third convolution: the block's input (4096 a) is gone when the "
     "second result comes"),
)  # fmt: skip


def peak_of_resnet(size):
    """Peaks (stock, permuted) that PLACES give for an input of that size, not frozen."""
    a = math.ceil(size / 8) ** 2
    return tuple(max(place[i][0] + place[i][1] * a for place in PLACES) for i in (1, 2))


def deeplab(results):
    """The table of DeepLabV3 over input sizes, and why the size matters."""
    rows, series, exact = [], {}, []
    for c, p in results.programs():
        found = re.search(r"tv_deeplabv3_([a-z0-9]+)_(\d+)$", c["model"])
        if found and c["mode"] != "train":
            backbone, size = found.group(1), int(found.group(2))
            measured = p["stock_peak_measured"], p["peak_measured"]
            gain = saved(*measured)
            rows.append((backbone, c["mode"], size, p["statements"],
                         f"{measured[0]:,}", f"{measured[1]:,}", gain,
                         "yes" if measured[1] == p["peak"] else "NO",
                         p["proof"] if p["optimal"] else "no", p["bitwise"]))  # fmt: skip
            series.setdefault(f"{backbone} {c['mode']}", []).append((size, gain * 100))
            if backbone.startswith("r") and c["mode"] == "infer":
                exact.append(measured == peak_of_resnet(size))
    if not rows:
        return f"DeepLabV3 over input sizes: {MISSING}."
    rows.sort()
    best = max((row for row in rows if row[2] <= 520), key=lambda row: row[6])
    shown = [(*row[:6], f"{row[6]:.2%}", *row[7:]) for row in rows]
    head = ("backbone", "mode", "input", "statements", "stock, measured", "permuted, measured",
            "saved", "as modelled", "optimal", "bitwise")  # fmt: skip
    picture = results.picture(
        "deeplab.svg",
        svg.chart("DeepLabV3: what the order saves", "input size (pixels)", "% of the peak",
                  {k: sorted(v) for k, v in series.items()}, lines=True, x_from_zero=False),
    )  # fmt: skip
    return (
        "### DeepLabV3 over input sizes\n\n"
        f"{len(rows)} configurations. From 128 to 520 pixels the gain is largest at {best[2]} "
        f"({best[0]}, {best[1]}): {best[6]:.2%}.\n\n"
        + table(head, shown) + f"\n\n{picture}\n\n" + why_deeplab(rows, exact)
    )  # fmt: skip


def why_deeplab(rows, exact):
    """Which storages are held at the peak, by size (`peakproof why`)."""
    places = [(name, *(f"{fixed:,} + {slope:,} a" for fixed, slope in sides), why)
              for name, *sides, why in PLACES]  # fmt: skip
    sizes = sorted({row[2] for row in rows} | {128, 520})
    turn = max(range(64, 2049, 8), key=lambda size: saved(*peak_of_resnet(size)))
    forecast = ", ".join(f"{size}: {saved(*peak_of_resnet(size)):.2%}" for size in sizes)
    return (
        "Why: `peakproof why` on the saved programs names the storages at the peak. With ResNet, "
        "not frozen, two places compete, and in both the largest storages are the last stage's, "
        "which grow with `a`, the pixels of its feature map, (size/8)²:\n\n"
        + table(("place", "stock", "permuted", "what the order changes"), places)
        + "\n\nThe 37.8 MB are the repacked weights of the head's dilated convolution and as much "
        "scratch again; they do not depend on the input, count in every order, and hide the gain "
        "of small inputs: up to 472 pixels only one branch's result in the head can be moved away. "
        "From 480 on the block in the backbone is the peak of the stock order, and there the "
        "order takes away a tensor four times as large: the gain leaps. In the permuted order "
        "the head stays the peak up to 544 pixels; beyond, both peaks lie in the block, and the "
        "gain falls slowly towards 10%: 552 is measured to show the turn. The early layers of the "
        "backbone and the upsampling at the end never set the peak here. "
        "These formulas (up to 65,536 bytes of the block's scratch vary with the size; as at 520 "
        f"and 552) give what was measured, to the byte, in {sum(exact)} of {len(exact)} "
        f"configurations; savings by them: {forecast}; the largest of any size is at {turn} "
        f"({saved(*peak_of_resnet(turn)):.2%}). ResNet-101 has the same last stage and the same "
        "bytes as ResNet-50. MobileNetV3 strides by 16 and has no such block: the head sets the "
        "peak at every size (17.7 MB fixed, one branch's result of 1024 a saved). Frozen, nothing "
        "is repacked and the projection adds into the block's result in place, so Inductor's order "
        "is optimal; MobileNetV3's peak is then one statement, the upsampling to the output's size."
    )


def training(results):
    lines = [x for x in results.inductor if x["mode"] == "train"]
    if not lines:
        return MISSING, ""
    rows, best = [], (0.0, "")
    for c in lines:
        for p in c["programs"]:
            gain = saved(p["stock_peak_measured"], p["peak"])
            best = max(best, (gain, f"{c['model']} {p['kind']}"))
            rows.append((c["model"], p["kind"], p["statements"], f"{p['stock_peak_measured']:,}",
                         f"{p['peak']:,}", percent(gain), p["proof"], p["bitwise"]))  # fmt: skip
    head = ("model", "program", "statements", "stock, measured", "optimum", "saved", "proof",
            "bitwise")  # fmt: skip
    steps = [(c["model"], c["step"]["stock"], c["step"]["permuted"]) for c in lines
             if c.get("step") and c["step"].get("stock") and c["step"].get("permuted")]  # fmt: skip
    whole = ""
    if steps:
        whole = (
            f" Whole steps (forward, what is saved, backward): {sum(b < a for _, a, b in steps)} "
            f"of {len(steps)} peak lower, at most "
            f"{max(saved(a, b) for _, a, b in steps):.1%}."
        )
    named = [
        f"{c['model']} {p['kind']} {saved(p['stock_peak_measured'], p['peak']):.2%}"
        for c in lines for p in c["programs"] if re.match("tv_(googlenet|deeplab)", c["model"])
    ]  # fmt: skip
    if named:
        whole += f" GoogLeNet and DeepLabV3: {', '.join(named)}."
    section = (
        f"{len(lines)} models. Largest saving {best[0]:.1%} ({best[1]}).{whole}\n\n"
        + table(head, rows) + "\n\n" + origin(lines, "bench/inductor_corpus.py run --modes train")
    )  # fmt: skip
    return f"{len(lines)} models; up to {best[0]:.1%} less ({best[1]})", section


def floors(results):
    lines = [x for x in results.of("tflite") if x.get("remat")]
    if not lines:
        return MISSING, ""
    rows, at_floor, helped = [], 0, 0
    for x in lines:
        said = x["remat"]
        last = said["last_point"]
        stop = x["floor"] == x["peak_after"]
        at_floor += stop
        gives = "nothing can: the floor is the peak" if stop else "nothing found"
        if last["peak"] < x["peak_after"]:
            helped += 1
            macs = said.get("macs") or 0
            extra = f"{last['extra_macs'] / macs:.2%} MACs" if macs > 0 else "extra MACs unknown"
            gives = (
                f"{saved(x['peak_after'], last['peak']):.1%} less for {extra}"
                f" ({last['status']}" + (", stopped by its limit)" if said["limited"] else ")")
            )
        rows.append((
            x["model"], x["program"], f"{x['peak_after']:,}", f"{x['floor']:,}",
            "yes" if stop else "no", said["floor_statement_name"] or "", gives,
        ))  # fmt: skip
    head = ("model", "subgraph", "optimum", "floor", "floor = peak", "set by", "recomputation")
    section = (
        f"{at_floor} of {len(lines)} subgraphs: the floor is the peak, so no recomputation of "
        f"whole operators helps and the statement named has to be split. In {helped} others "
        "recomputation lowers the peak (lowest point of the curve; `peakproof remat`, 10 s by the "
        "clock a model).\n\n"
        + table(head, rows) + "\n\n" + origin(lines, "bench/certify --sets tflite")
    )  # fmt: skip
    return f"floor = peak in {share(at_floor, len(lines))} subgraphs; {helped} others gain", section


def redimnet(results):
    lines = results.newest("redimnet.jsonl", "model")
    lines = [x for x in lines if "error" not in x]
    if not lines:
        return MISSING, ""
    rows = [
        (x["model"], x["statements"], f"{x['planned']:,}", "yes" if x["planned_optimal"] else "no",
         f"{x['recomputed']:,}", f"{saved(x['planned'], x['recomputed']):.2%}",
         f"{x['extra_macs'] / x['macs']:.3%}", x["extra_runs"], x["status"], f"`{x['verdict']}`",
         "yes" if x["bitwise"] else "NO")
        for x in lines
    ]  # fmt: skip
    head = ("model", "statements", "best order", "proved", "recomputed", "less", "extra MACs",
            "runs", "status", "verdict", "bitwise")  # fmt: skip
    gains = [saved(x["planned"], x["recomputed"]) for x in lines]
    dearest = max(x["extra_macs"] / x["macs"] for x in lines)
    same = sum(x["bitwise"] for x in lines)
    section = (
        "The best order is proved optimal; then the stem (13 small operators from the network's "
        "input) is run a second time before its last use. The written model is run in onnxruntime "
        f"{', '.join(sorted({x['onnxruntime'] for x in lines}))} without graph optimisation.\n\n"
        + table(head, rows) + "\n\nThe whole curve, and a third size: [remat.md](remat.md).\n\n"
        + origin(lines, "bench/redimnet")
    )  # fmt: skip
    return (
        f"{min(gains):.1%} to {max(gains):.1%} for at most {dearest:.2%} extra MACs "
        f"({len(lines)} sizes), bitwise in {same} of {len(lines)}"
    ), section


def hardness(results):
    lines = results.newest("remat_width.jsonl", "family", "n", "k")
    if not lines:
        return MISSING, ""
    rows = [
        (x["family"], x["n"], x["k"], x["width"], x["step"], f"{x['step_labels']:,}",
         f"{x['step_ms']:.1f}", x["walk"], f"{x['walk_labels']:,}", f"{x['walk_ms']:.1f}")
        for x in lines
    ]  # fmt: skip
    series = {}
    for x in lines:
        if x["step"] == "exact" and x["step_labels"]:
            name = f"{x['n']} statements"
            series.setdefault(name, []).append((x["width"], x["step_labels"]))
    pictured = ""
    if series:
        chart = svg.chart("Elimination: labels against width", "width", "labels", series,
                          y_log=True)  # fmt: skip
        pictured = results.picture("width.svg", chart) + "\n\n"
    exact = sum(x["step"] == "exact" for x in lines)
    walked = sum(x["walk"] == "exact" for x in lines)
    head = ("family", "statements", "k", "width", "one step", "labels", "ms", "whole order",
            "labels", "ms")  # fmt: skip
    section = (
        "The generators are `tests/remat/gadgets.c`: KNAPSACK (treewidth 2; reaching peak B + K at "
        "least cost is the knapsack) and 3-PARTITION (each of m peaks must shed B bytes; as a "
        "fixed-order program of treewidth 1); `doc/remat.md` says what is exact. On partial "
        "k-trees, elimination over the width solves one step exactly at every width here, with "
        "n\u00b73^(w+1) sums at most; the walk over the whole order, exact for all repetitions "
        'within the caps, stops at its limit of labels ("limit") once too many values can be open '
        "together, which width alone does not bound.\n\n"
        + table(head, rows) + f"\n\n{pictured}"
        + origin(lines, "bench/width")
    )  # fmt: skip
    return (
        f"one step exact in {share(exact, len(lines))} up to width "
        f"{max(x['width'] for x in lines)}; all steps in {walked}"
    ), section


def gpu(results):
    """What bench/caching keeps: sums of its rows, and its page."""
    path, where = results.folder / "caching-orders.tsv", record.ROOT / "doc/results/caching.md"
    if not path.exists():
        return others(results, "GPU", r"caching|gpu|cuda")
    sums = {}
    for line in path.read_text().splitlines():
        words = line.split("\t")
        entry = sums.setdefault((words[1], words[2]), [0, 0])
        entry[0] += int(words[4])
        entry[1] += int(words[5])
    rows = [
        (f"times {factor}", start, f"{better:,}", f"{worse:,}", f"{worse / better:.1%}")
        for (factor, start), (better, worse) in sums.items() if better
    ]  # fmt: skip
    device = sorted(p.name for p in results.folder.glob("*gpu*") if p.stat().st_size)
    rate = sorted(worse / better for better, worse in sums.values() if better)
    section = (
        "What the model of PyTorch's caching allocator predicts: of the orders that request less "
        "at their peak than the original one, how many reserve more. "
        + (f"All of it: [caching.md](results/{where.name}). " if where.exists() else "")
        + ("Measured on a device: " + ", ".join(f"[{n}](../bench/results/{n})" for n in device)
           if device else "On a device: not measured here.")
        + "\n\n" + table(("sizes", "start", "request less", "reserve more", "share"), rows)
        + "\n\n*`bench/caching`, which keeps caching-orders.tsv.*"
    )  # fmt: skip
    short = "model: no order requests less"
    if rate:
        short = f"model: {rate[0]:.1%} to {rate[-1]:.1%} of better orders reserve more"
    return short + ("" if device else "; on a device: not measured"), section


def others(results, title, pattern, skip=()):
    """Lists what other scripts keep: their tables, linked."""
    names = sorted(
        path.name for path in results.folder.glob("*")
        if re.search(pattern, path.name) and path.name not in skip and path.stat().st_size
    )  # fmt: skip
    pages = sorted(p for p in (record.ROOT / "doc/results").glob("*.md")
                   if re.search(pattern, p.name))  # fmt: skip
    if not names and not pages:
        return MISSING, ""
    links = [f"[{name}](../bench/results/{name})" for name in names]
    links += [f"[{path.name}](results/{path.name})" for path in pages]
    tables = [results.folder / name for name in names if name.endswith(".md")] + pages
    body = "\n\n".join(demoted(path.read_text()) for path in tables)
    return f"see {title}", f"Raw lines and tables: {', '.join(links)}.\n\n{body}"


def demoted(text):
    """Another script's page as a part of this one: its titles two levels lower."""
    text = re.sub(r"^(#+ )", r"###\1", text.strip(), flags=re.M)
    # A picture beside that page stands in doc/results.
    return re.sub(r"\]\((?!\w+://|\.\.|results/)([\w.-]+)\)", r"](results/\1)", text)


def cuts(results):
    # Programs whose best trap took longer than its limit have no count of the plain greedy's cuts.
    lines = [x for x in results.certify if x.get("cuts") and None not in x["cuts"]["plain"]]
    if not lines:
        return MISSING, ""
    plain, solve, needed = [], [], []
    for x in lines:
        n, c = x["statements"], x["cuts"]
        if c["plain"][0]:
            plain.append((n, c["plain"][0]))
        if c["solve"]:
            solve.append((n, c["solve"]))
        if c["needed"] + c["base"]:
            needed.append((n, c["needed"] + c["base"]))
    sizes = [n for n, _ in plain]
    ends = (min(sizes), max(sizes))
    picture = results.picture(
        "cuts.svg",
        svg.chart(
            "Minimum cuts against statements", "statements", "minimum cuts (0 is not drawn)",
            {"plain greedy": plain, "pp_solve, in all": solve, "in the certificate": needed},
            x_log=True, y_log=True,
            guides=[("n\u00b2", [(n, n * n) for n in (ends[0], ends[1])]),
                    ("n", [(n, n) for n in (ends[0], ends[1])])],
        ),
    )  # fmt: skip
    traps = [x for x in lines if x.get("proof") in ("forward-trap", "reverse-trap")]
    without = sum(not x["cuts"]["needed"] and not x["cuts"]["base"] for x in traps)
    none = sum(x["cuts"]["solve"] == 0 for x in lines)
    few = sum(x["cuts"]["solve"] < x["statements"] for x in lines)
    total = sum(sum(x["cuts"]["plain"]) for x in lines)
    spent = sum(x["cuts"]["solve"] for x in lines)
    kept = sum(x["cuts"]["needed"] for x in traps)
    rows = [
        ("n\u00b2, both directions, summed", f"{sum(2 * x['statements'] ** 2 for x in lines):,}"),
        ("plain greedy (every exit, every step), both directions", f"{total:,}"),
        ("computed by `pp_solve` for traps, commits and probing", f"{spent:,}"),
        ("exits with chains of their own in the certificates of traps", f"{kept:,}"),
    ]
    section = (
        f"{len(lines)} programs (those whose cuts were counted in full). "
        f"{share(none, len(lines))} are certified without any minimum cut "
        f"(floor, or every exit is dear enough at once), {share(few, len(lines))} with fewer than "
        f"one a statement. Of the {len(traps)} certificates by a trap, {without} hold no chain: "
        "accessed and constant storages suffice for every exit. The plain greedy computes a cut "
        "for every exit at every step, which is the number of statements times the width of the "
        "graph: n\u00b2 only for graphs as wide as they are long. Searches (hard programs) need "
        "more cuts than a trap: one a commit.\n\n"
        + table(("summed over all programs", "minimum cuts"), rows) + f"\n\n{picture}\n\n"
        + origin(lines, "bench/certify (bench/cuts)")
    )  # fmt: skip
    return (
        f"{spent:,} cuts where the plain greedy needs {total:,}; {kept:,} in certificates",
        section,
    )


def beyond(results):
    """Sections for what is not in the published work."""
    out = []
    checked = [x for x in results.families if "verdict" in x]
    second = [x for x in checked if "second_verdict" in x]
    proofs = [x for x in results.certify if "verdict" in x]
    agreed = sum(x["second_verdict"] == x["verdict"] for x in second)
    fine = sum(x["verdict"].startswith("s VERIFIED") for x in checked + proofs)
    out.append(
        "### Proofs checked by independent code\n\n"
        + (f"{fine} of {len(checked) + len(proofs)} certificates of these measurements were "
           f"verified by `peakproof-check`; the second checker (Python) agreed on {agreed} of "
           f"{len(second)}." if checked + proofs else MISSING)
    )  # fmt: skip
    for title, name in (
        ("Random families: where traps are not tight", "families"),
        ("Beside what others find", "peers"),
        ("A million statements", "scaling"),
    ):
        path = results.folder / f"{name}.md"
        body = demoted(path.read_text().partition("\n\n")[2]) if path.exists() else MISSING
        if name == "scaling" and results.scaling:
            body += "\n\n" + scaling_picture(results)
        if name == "families" and results.families:
            body += "\n\n" + families_picture(results)
        out.append(f"### {title}\n\n{body.strip()}")
    split = [(c, p) for c, p in results.programs() if (p.get("split") or {}).get("splits")]
    if results.inductor:
        rows = [
            (f"{c['model']} {c['mode']} {p['kind']}", p["split"]["splits"], f"{p['peak']:,}",
             f"{p['split']['peak']:,}", percent(saved(p["peak"], p["split"]["peak"])),
             p["split"]["bitwise"])
            for c, p in split
        ]  # fmt: skip
        head = ("program", "reuses split", "optimum", "with splits", "less", "bitwise")
        body = table(head, rows) if rows else "no program of the corpus gains from it"
    else:
        body = MISSING
    out.append(f"### Splitting reuses\n\n{body}")
    _, text = others(results, "Arenas", r"arena")
    out.append(f"### Arenas on a real runtime\n\n{text or 'Not measured.'}")
    pages = sorted((record.ROOT / "doc/results").glob("*.md"))
    links = ", ".join(f"[{p.stem}](results/{p.name})" for p in pages)
    out.append(f"### Further pages\n\n{links or 'None.'}")
    return "\n\n".join(out)


def scaling_picture(results):
    series = {}
    for x in sorted(results.scaling, key=lambda x: x["size"]):
        if "plan" in x:
            took = x["read"] + x["plan"] + x["certify"]
            series.setdefault(x["family"], []).append((x["statements"], took))
    return results.picture(
        "scaling.svg",
        svg.chart("Read, plan, certify", "statements", "seconds", series, True, True, lines=True,
                  guides=[("goal", [(1e5, 1), (1e6, 10)])]),
    )  # fmt: skip


def families_picture(results):
    rows = []
    for family in dict.fromkeys(x["family"] for x in results.families):
        mine = [x for x in results.families if x["family"] == family]
        for limit in (1, 10):
            done = sum(verified(x) and x["plan"] + x["certify"] <= limit for x in mine)
            rows.append((f"{family}, in {limit} s", done / len(mine)))
    return results.picture(
        "families.svg", svg.bars("Random families: share proved", "share of the seeds", rows)
    )


ROWS = (
    ("Regenerate", "regenerating code misses the predicted peak in 22 of 54 CPU configurations, "
     "worse than stock in 9", regenerate),
    ("Permute", "permuting realizes the modelled peak to the byte, bitwise, in all CPU runs",
     permute),
    ("Certified", "94% of held-out wrapper graphs certified in under a second", certified),
    ("Microcontroller models", "all 16 microcontroller-class models certified", tflite),
    ("Savings", "most inference graphs are already optimal; DeepLabV3 10.0% less", savings),
    ("Training", "compiled training up to 7.6% less", training),
    ("Recomputation", "recomputation useless on public tiny models", floors),
    ("ReDimNet", "ReDimNet 5.2-6.1% at under 0.4% extra MACs, bitwise",
     redimnet),
    ("Hardness", "strongly NP-hard at treewidth two, knapsack on series-parallel, exact at bounded "
     "treewidth", hardness),
    ("GPU", "GPU: 19 of 50 worse, results change when regenerated",
     gpu),
    ("Cuts", "forward and reverse bounds with O(n\u00b2) cuts", cuts),
)  # fmt: skip


# Minutes that each step of `make measure` took here from no lines on (one core of two): measured
# by the stamps of its lines. The corpus says itself what each configuration took.
MINUTES = {"scaling": 8, "certify": 37, "width": 1, "families": 60, "caching": 2, "redimnet": 1,
           "peers": 12}  # fmt: skip


def duration(results):
    """Returns how long MEASURE=1 takes from nothing (sentence)."""
    took = sum(
        line["compile_seconds"] + line["our_seconds"]
        + sum(p["seconds"].get("apart", 0) for p in line["programs"])
        for line in results.inductor
    )  # fmt: skip
    steps = ", ".join(f"bench/{name} {minutes}" for name, minutes in MINUTES.items())
    hours = sum(MINUTES.values()) / 60 + took / 3600
    return (
        "what is missing first, can be interrupted and goes on where it stopped. From no lines on "
        f"that is about {hours:.0f} hours of this machine: in minutes {steps}, and for the "
        f"{len(results.inductor)} configurations of bench/inductor_corpus.py kept here "
        f"{took / 60:.0f} (their own road to the same order not counted)."
    )


def page(results):
    """Returns the text of doc/results.md; fills results.pictures."""
    rows, sections = [], []
    for title, published, row in ROWS:
        short, section = row(results)
        link = f"[{title}](#{title.lower().replace(' ', '-')})" if section else title
        rows.append((published, link, short))
        sections.append(f"## {title}\n\nPublished: {published}.\n\n{section or 'Not measured.'}")
    lines = results.certify + results.scaling + results.families
    machines = sorted({x["machine"] for x in lines if x.get("machine")})
    return (
        "# Results\n\n"
        "Made by `make reproduce` from the raw lines in `bench/results`, which name commit, "
        "machine, versions and command of each measurement; `make reproduce MEASURE=1` measures "
        + duration(results) + " Bytes unless said otherwise; seconds are the processor's"
        + (f" ({'; '.join(machines)})" if machines else "")
        + ".\n\n" + table(("published", "here", "in short"), rows) + "\n\n"
        + "\n\n".join(sections) + "\n\n## Beyond the published results\n\n" + beyond(results) + "\n"
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=record.RESULTS)
    parser.add_argument("--out", type=Path, default=record.ROOT / "doc")
    options = parser.parse_args()
    for script in ("scaling", "families", "peers.py"):  # the tables that are part of the page
        if (options.results / script.replace(".py", "")).with_suffix(".jsonl").exists():
            command = [sys.executable, record.ROOT / "bench" / script, "--table"]
            subprocess.run([*command, "--results", options.results], check=True)
    results = Results(options.results, options.out)
    text = page(results)
    for name, picture in results.pictures.items():
        record.write_whole(options.out / "results" / name, picture)
    record.write_whole(options.out / "results.md", text)
    print(f"{options.out / 'results.md'} and {len(results.pictures)} pictures")


if __name__ == "__main__":
    main()
