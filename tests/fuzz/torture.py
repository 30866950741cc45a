"""Hostile model files, all of them: what tests/tflite/torture and tests/onnx/torture share.

A model is spoiled in chunks of CHUNK bytes, by a tool whose options torture.h lists, under ASan and
UBSan; then libFuzzer does as it likes. What is done is kept in BUILD/torture-FORMAT.tsv, so that a
run can be stopped at any time and goes on where it was. A line is

    VALUES [PART]   MODEL   FROM   FILES   REFUSED        (with tabs)

the other values that each byte took ("one", "few", "all"), the part if a model has several, the
chunk's first byte, and what came of it.
"""

import argparse
import datetime
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = Path(os.environ.get("PEAKPROOF_SHARED", ROOT.parent / "shared"))
VALUES = {"one": 1, "few": 3, "all": 9}
CHUNK = 1000  # bytes of a model that one process spoils
SEED = 32768  # models of fewer bytes are libFuzzer's seeds
# A small quarantine: freed memory is soon reused, which costs half as much and hides little here.
# No stacks of allocations: who repeats a case gets them.
OPTIONS = {
    "ASAN_OPTIONS": "exitcode=99:quarantine_size_mb=4:malloc_context_size=0",
    "UBSAN_OPTIONS": "halt_on_error=1",
}


def by_size(paths):
    """The paths, small files first."""
    return sorted(paths, key=lambda path: (path.stat().st_size, path.name))


def run(words, **options):
    """Runs a command; returns the process, with stdout and stderr as str."""
    return subprocess.run([str(x) for x in words], capture_output=True, text=True, **options)


@dataclass
class Part:
    """Bytes of each model that are done together, after those of the part before."""

    name: str  # in a line of the state; "" if there is one part
    options: list  # of the tool
    left: str  # "N" and this are said of N chunks that are not done
    columns: str  # the heads of its columns


@dataclass
class Format:
    """What one format has of its own."""

    name: str  # of the folder in tests/, and in the tools' names
    title: str
    rules: str  # where the promises are listed, and what else is to be said
    size: str  # the head of the column of models' sizes
    parts: list  # of Part
    models: object  # a function of (build, tool): the paths of the models, small ones first


class Torture:
    """All chunks of a format's models, those that are done, and what came of them."""

    def __init__(self, format, arguments):
        self.format = format
        self.arguments = arguments
        self.build = Path(arguments.build).resolve()
        self.tool = self.build / f"sanitize/tests/{format.name}/{format.name}-torture"
        self.models = format.models(self.build, self.tool)
        self.state = self.build / f"torture-{format.name}.tsv"
        self.done = {}  # (part, model, from): (values, files, refused), the most values tried
        if self.state.exists():
            for line in self.state.read_text().splitlines():
                what, name, start, files, refused = line.split("\t")
                values, _, part = what.partition(" ")
                self.note((part, name, int(start)), values, files, refused)
        self.deadline = time.monotonic() + 60 * arguments.minutes

    def note(self, key, values, files, refused):
        """Keeps what came of a chunk."""
        self.done[key] = max(self.done.get(key, (0,)), (VALUES[values], int(files), int(refused)))

    def is_done(self, key):
        """Whether a chunk is done with as many values as asked for, or more."""
        return self.done.get(key, (0,))[0] >= VALUES[self.arguments.flips]

    def keys(self, path, part):
        """The chunks of a part of a model, as in `done`."""
        return [(part.name, path.name, start) for start in range(0, path.stat().st_size, CHUNK)]

    def chunks(self):
        for part in self.format.parts:
            for path in self.models:
                for key in self.keys(path, part):
                    yield path, part, key

    def spoil(self, chunk):
        """Spoils one chunk of a model."""
        path, part, key = chunk
        start, values = key[2], self.arguments.flips
        if self.is_done(key) or time.monotonic() > self.deadline:
            return
        command = [self.tool, path, "--from", start, "--to", start + CHUNK, "--flips", values]
        process = run(command + part.options, env=dict(os.environ, **OPTIONS))
        if process.returncode:
            print(f"{path.name}, bytes from {start}:\n{process.stderr}", file=sys.stderr)
            os._exit(1)
        files, _, refused, _ = process.stdout.split()
        self.note(key, values, files, refused)
        what = f"{values} {part.name}".strip()
        with open(self.state, "a") as file:
            print(what, path.name, start, files, refused, sep="\t", file=file)

    def fuzz(self, seconds):
        """libFuzzer from the small models; returns what it said last."""
        corpus = self.build / f"torture-{self.format.name}-corpus"
        seeds = self.build / f"torture-{self.format.name}-seeds"
        for folder in (corpus, seeds):
            folder.mkdir(exist_ok=True)
        for path in self.models:
            if path.stat().st_size < SEED:
                (seeds / path.name).write_bytes(path.read_bytes())
        command = [self.build / f"fuzz/tests/{self.format.name}/fuzz_{self.format.name}", corpus]
        command += [seeds, f"-max_total_time={seconds}", f"-max_len={SEED}", "-timeout=20"]
        process = run(command, cwd=self.build)
        lines = process.stderr.strip().splitlines()
        if process.returncode:
            print("\n".join(lines[-60:]), file=sys.stderr)
            sys.exit(1)
        return next((line for line in reversed(lines) if line.startswith("Done")), lines[-1])

    def share(self, path, part):
        """([how much of a part of a model is done, values a byte, files, refused], chunks left)."""
        keys = self.keys(path, part)
        found = [self.done[key] for key in keys if self.is_done(key)]
        left = len(keys) - len(found)
        values, files, refused = zip(*found, strict=True) if found else ((), (), ())
        done = "all" if not left else f"{100 * len(found) // len(keys)} %"
        least_and_most = "-".join(
            str(x) for x in sorted({min(values), max(values)} if found else ())
        )
        return [done, least_and_most, sum(files), sum(refused)], left

    def report(self, said):
        """Writes TORTURE.md; `said`: by libFuzzer, or ""."""
        rows, total, todo = [], 0, [0] * len(self.format.parts)
        for path in self.models:
            row = [path.name, path.stat().st_size]
            for i, part in enumerate(self.format.parts):
                cells, left = self.share(path, part)
                row += cells
                total += cells[2]
                todo[i] += left
            rows.append(row)
        left = [f"{n} {part.left}" for n, part in zip(todo, self.format.parts, strict=True)]
        columns = " | ".join(part.columns for part in self.format.parts)
        lines = [
            f"# {self.format.title}: the last result of `make torture`",
            "",
            f"{datetime.date.today().isoformat()}: {total:,} files spoiled (every byte of "
            "structure took so many other *values*; cuts at every length up to 4 KiB), under ASan "
            f"and UBSan: no crash, no report, no broken promise {self.format.rules}",
            "",
            f"Not finished: {', and '.join(left)}." if any(todo) else "Finished.",
            "",
        ]
        if said:
            lines += [f"libFuzzer, {self.arguments.fuzz} seconds: {said}; nothing found.", ""]
        lines += [f"| model | {self.format.size} | {columns} |"]
        lines += ["|---" * len(rows[0]) + "|"]
        lines += ["| " + " | ".join(str(x) for x in row) + " |" for row in rows]
        (ROOT / "tests" / self.format.name / "TORTURE.md").write_text("\n".join(lines) + "\n")


def main(usage, format):
    """The script of a format; usage: its first line."""
    parser = argparse.ArgumentParser(description=usage)
    parser.add_argument("build")
    parser.add_argument("--flips", choices=list(VALUES), default="few")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--fuzz", type=int, default=3600, help="seconds")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this")
    torture = Torture(format, parser.parse_args())
    with ThreadPoolExecutor(torture.arguments.jobs) as pool:
        for _ in pool.map(torture.spoil, torture.chunks()):
            pass
    torture.report(torture.fuzz(torture.arguments.fuzz) if torture.arguments.fuzz else "")
