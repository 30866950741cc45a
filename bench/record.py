"""Raw lines of measurements: one JSON object a line in bench/results, kept for ever.

Each line carries what is needed to measure it again: the command, the commit, the compiler, the
machine. Scripts append one line as soon as it is measured and skip what is there, so they can be
interrupted and started again; of several lines with the same key the last one counts.
"""

import datetime
import functools
import json
import os
import platform
import resource
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"


@functools.cache
def _git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


@functools.cache
def machine():
    """Returns what the machine is, as "processor, cores, system"."""
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{name}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


@functools.cache
def compiler(build):
    """Returns the C compiler of a Meson build directory, as "gcc 12.2.0"."""
    try:
        about = json.loads((Path(build) / "meson-info/intro-compilers.json").read_text())
        c = about["host"]["c"]
        return f"{c['id']} {c['version']}"
    except (OSError, KeyError, ValueError):
        return "unknown"


def commit():
    """Returns the commit that is checked out; "+" behind it: the core differs from it."""
    changed = _git("status", "--porcelain", "--", "src", "check", "include")
    return _git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")


def stamp(build):
    """Returns the fields that say where and with what a line was measured."""
    return {
        "commit": commit(),
        "compiler": compiler(str(build)),
        "machine": machine(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
    }


class Lines:
    """The lines of one file, by key (the values of `fields`, in order)."""

    def __init__(self, path, fields):
        self.path, self.fields, self.by_key = Path(path), fields, {}
        for line in read(self.path):
            self.by_key[self.key(line)] = line

    def key(self, line):
        return tuple(line.get(field) for field in self.fields)

    def has(self, *key):
        return key in self.by_key

    def get(self, *key):
        return self.by_key.get(key)

    def drop_old(self):
        """Forgets (in memory) what was measured at another commit: it will be measured again."""
        self.by_key = {k: v for k, v in self.by_key.items() if v.get("commit") == commit()}

    def add(self, *lines):
        """Appends lines, all and whole or none: what belongs together is not kept by halves."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab", buffering=0) as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
            os.fsync(file.fileno())
        self.by_key.update((self.key(line), line) for line in lines)


def read(path):
    """Yields the lines of a file as dicts; none if there is no file, not a last one cut short."""
    try:
        text = Path(path).read_text()
    except FileNotFoundError:
        return
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def run(command, seconds=None, **options):
    """Runs a command to its end; returns a dict: code, out, err (text), user and system (seconds
    of the processor), wall (seconds), rss_kib (peak memory). `seconds` limits processor time."""

    def limit():
        if seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))

    command = [str(part) for part in command]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, preexec_fn=limit, **options)
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - begin
        text = []
        for file in (out, err):
            file.seek(0)
            text.append(file.read().decode(errors="replace"))
    return {
        "code": process.returncode,
        "out": text[0],
        "err": text[1],
        "user": used.ru_utime,
        "system": used.ru_stime,
        "wall": wall,
        "rss_kib": used.ru_maxrss,
    }


def write_whole(path, text):
    """Writes a file whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    os.replace(fresh, path)


def provenance(lines):
    """Returns a sentence: where and with what the lines were measured."""
    seen = {}
    for line in lines:
        key = (line.get("commit"), line.get("compiler"), line.get("machine"))
        seen[key] = max(seen.get(key, ""), line.get("date", ""))
    return "; ".join(
        f"commit {c}, {compiled}, {where} ({date[:10]})"
        for (c, compiled, where), date in seen.items()
    )
