"""Sessions on disk: save, load, explain.

A directory holds `index.json` and for each program NAME.source.py (as generated) and
NAME.report.json, and unless it was refused NAME.json (the program), NAME.cert (the certificate) and
NAME.py (the permuted `call`). Loading takes only the order from there; the text is made again and
has to be the same.
"""

import hashlib
import json
import os
from dataclasses import asdict

from . import core
from .errors import Refusal
from .files import write
from .model import program_order
from .why import explain, lever

VERSION = 1


def source_hash(text):
    """SHA-256 of a generated source without its first line, which only numbers the compilation."""
    head, _, rest = text.partition("\n")
    return hashlib.sha256((rest if head.startswith("# AOT ID") else text).encode()).hexdigest()


def plain_signature(signature):
    """A signature as JSON: [shape, strides, type] of tensors, numbers as they are."""
    return [[list(s[0]), list(s[1]), str(s[2])] if isinstance(s, tuple) else s for s in signature]


def save(results, directory, torch_version):
    """Writes everything that is known about `results` (pipeline.Result) into `directory`."""
    os.makedirs(directory, exist_ok=True)
    index = {"peakproof_session": VERSION, "torch": torch_version, "programs": []}
    for r in results:
        name = r.report.name
        base = os.path.join(directory, name)
        write(base + ".source.py", r.source_text)
        write(base + ".report.json", json.dumps(asdict(r.report), indent=1) + "\n")
        entry = {"name": name, "state": r.report.state, "source": source_hash(r.source_text)}
        if r.model is not None and r.order is not None:
            text = core.text_of(r.model.program)
            write(base + ".json", text)
            if r.certificate:
                write(base + ".cert", r.certificate)
            if r.permuted_text:
                write(base + ".py", r.permuted_text)
            entry["program"] = hashlib.sha256(text.encode()).hexdigest()
            entry["order"] = r.order
            entry["nodes"] = r.model.nodes
            entry["recipe"] = r.recipe
            entry["splits"] = [[line, *texts] for line, texts in r.splits.items()]
            entry["signature"] = plain_signature(r.signature)
            entry["apart"] = asdict(r.apart) if r.apart is not None else None
        index["programs"].append(entry)
    write(os.path.join(directory, "index.json"), json.dumps(index, indent=1) + "\n")


def read_index(directory):
    """The index of a saved session. Raises ValueError if it is none."""
    path = os.path.join(directory, "index.json")
    try:
        with open(path, encoding="utf-8") as f:
            index = json.load(f)
    except (OSError, ValueError) as e:
        raise ValueError(f"{directory} is not a saved session: {e}") from None
    if not isinstance(index, dict) or index.get("peakproof_session") != VERSION:
        raise ValueError(f"{path} is not the index of a saved session, version {VERSION}")
    programs = index.get("programs")
    entries = programs if isinstance(programs, list) else [None]
    keys = ("name", "state", "source")
    for e in entries:
        known = isinstance(e, dict) and all(isinstance(e.get(k), str) for k in keys)
        if not known or os.path.basename(e["name"]) != e["name"]:
            raise ValueError(f"{path} is damaged")
    return index


def _read(directory, name):
    with open(os.path.join(directory, name), encoding="utf-8") as f:
        return f.read()


class Saved:
    """One program of a saved session."""

    def __init__(self, directory, entry):
        self.directory = directory
        self.entry = entry
        self.name = entry["name"]
        try:
            self.report = dict(json.loads(_read(directory, self.name + ".report.json")))
        except (OSError, ValueError, TypeError) as e:
            raise ValueError(f"{directory} has no report of {self.name}: {e}") from None

    def program(self):
        """The program's dict; ValueError if the file is not the one that was saved."""
        text = _read(self.directory, self.name + ".json")
        if hashlib.sha256(text.encode()).hexdigest() != self.entry["program"]:
            raise ValueError(f"{self.name}.json is not the program that was saved")
        return json.loads(text)

    def positions(self):
        """The saved order in indices of the program's statements."""
        return program_order(self.entry["nodes"], self.entry["order"])

    def text(self, source_text):
        """The permuted `call`, made again from a source. Raises Refusal on any difference."""
        from .realize import realize
        from .remat import expand
        from .reuse import apply
        from .split import split

        splits = {line: (old, new) for line, old, new in self.entry.get("splits", ())}
        source = split(apply(source_text, splits))
        if self.entry.get("recipe"):
            source = split(expand(source, self.entry["recipe"]))

        facts = core.simulate(self.program(), self.positions())
        if facts["peak"] != self.report["peak"]:
            raise Refusal("the saved order does not have the saved peak")
        text = realize(source, self.entry["order"])
        if text != _read(self.directory, self.name + ".py"):
            raise Refusal("the saved text is not what the saved order gives")
        return text

    def why(self, stock=False):
        """The explanation of the peak, after (or before) planning."""
        if "order" not in self.entry:
            return f"{self.name}: refused: {self.report['reason']}\n"
        order = None if stock else self.positions()
        text = explain(self.program(), order, _read(self.directory, self.name + ".source.py"))
        return text + ("" if stock else "  " + lever(self.report) + "\n")


def load(directory):
    """An active session that applies what was saved."""
    import torch

    from .session import LoadedSession, activate

    index = read_index(directory)
    if index.get("torch") != torch.__version__:
        raise ValueError(f"saved with torch {index.get('torch')}, this is {torch.__version__}")
    session = LoadedSession([Saved(directory, e) for e in index["programs"]])
    activate(session)
    return session


def why(directory, name=None, stock=False):
    """Explanations of one or all programs of a saved session. ValueError for an unknown name."""
    entries = [e for e in read_index(directory)["programs"] if name in (None, e["name"])]
    if not entries:
        raise ValueError(f"{directory} has no program {name}")
    return "\n".join(Saved(directory, e).why(stock) for e in entries)
