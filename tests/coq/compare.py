#!/usr/bin/env python3
"""Compares the checker extracted from Coq with the two others on files and on random programs.

usage: compare.py COQ_CHECKER C_CHECKER SEED COUNT [FOLDER ...]

The checkers must agree on the exit code and, when they refute, on the line. A checker that calls a
true search proof malformed does not know search proofs yet, and is not asked about mutations of
it; what the checker from Coq then accepts must hold by brute force.

FOLDER holds PROGRAM.json and PROOF.cert files: a certificate belongs to the program of its own
name, else to the one whose SHA-256 it names, else to program.json in its folder. COUNT random
programs of the oracle, each with a true certificate and mutations of it, are added, and half as
many with search proofs (prove.py).
"""

import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))

import check2  # noqa: E402
import oracle  # noqa: E402
import prove  # noqa: E402

VERDICT = re.compile(r"s (VERIFIED peak \d+ bound \d+(?: optimal)?|REFUTED line \d+|MALFORMED)")


def shorten(line):
    """The part of a verdict line in which all checkers must agree."""
    match = VERDICT.match(line)
    return match[1] if match else line


def verdict(checker, program, proof):
    """Returns (exit code, shortened verdict) of a checker, a path, on two files."""
    done = subprocess.run([checker, program, proof], capture_output=True, text=True)
    return done.returncode, shorten(done.stdout + done.stderr)


def pairs(folder):
    """Yields (program path, certificate path) of a folder."""
    programs = sorted(folder.rglob("*.json"))
    by_hash = {hashlib.sha256(p.read_bytes()).hexdigest(): p for p in programs}
    for proof in sorted(folder.rglob("*.cert")):
        named = re.search(rb"^h ([0-9a-f]{64})$", proof.read_bytes(), re.M)
        own = proof.with_suffix(".json")
        default = proof.parent / "program.json"
        if own.exists():
            yield own, proof
        elif named and named[1].decode() in by_hash:
            yield by_hash[named[1].decode()], proof
        elif default.exists():
            yield default, proof


def mutate(rng, text):
    """A certificate (str) with one small change, mostly of a number."""
    lines = text.split("\n")
    kind = rng.randrange(6)
    i = rng.randrange(2, len(lines) - 1)
    parts = re.split(r"([ ,])", lines[i])
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(i, lines[rng.randrange(2, len(lines) - 1)])
    elif kind == 2 and len(parts) > 3:
        j = rng.randrange(1, len(parts) // 2) * 2
        del parts[j - 1 : j + 1]
        lines[i] = "".join(parts)
    else:
        j = rng.randrange(len(parts) // 2 + 1) * 2
        if parts[j].isdigit():
            parts[j] = str(max(0, int(parts[j]) + rng.choice([-2, -1, 1, 2])))
        elif parts[j] in ("f", "r") and kind == 3:
            parts[j] = "r" if parts[j] == "f" else "f"
        lines[i] = "".join(parts)
    return "\n".join(lines)


def cases(seed, count, folders, scratch):
    """Yields (name, program path, certificate path, true or None, optimum or None, whether it is a
    search proof)."""
    for folder in folders:
        for program, proof in pairs(Path(folder)):
            yield proof, program, proof, None, None, False
    program, proof = scratch / "program.json", scratch / "proof.cert"
    traps = ((text, cert) for text, cert, _ in oracle.corpus(seed, count))
    for kind, corpus in ("trap", traps), ("search", prove.corpus(seed, count // 2)):
        for i, (text, certificate) in enumerate(corpus):
            rng = random.Random(f"{seed} {i}")
            optimum = oracle.Program(json.loads(text)).optimum()[0]
            program.write_text(text)
            proof.write_text(certificate)
            yield f"{kind} {seed} {i}", program, proof, True, optimum, kind == "search"
            for j in range(5):
                proof.write_text(mutate(rng, certificate))
                name = f"{kind} {seed} {i} mutation {j}"
                yield name, program, proof, None, optimum, kind == "search"


def main(arguments):
    coq, c, seed, count, *folders = arguments
    passed, failed, codes, silent = 0, 0, {}, set()
    checkers = {"python": judge_in_python}
    if c != "-":
        checkers["c"] = lambda program, proof: verdict(c, program, proof)
    with tempfile.TemporaryDirectory() as scratch:
        for name, program, proof, true, optimum, search in cases(
            int(seed), int(count), folders, Path(scratch)
        ):
            found = verdict(coq, program, proof)
            codes[found[0]] = codes.get(found[0], 0) + 1
            others = {who: ask(program, proof) for who, ask in checkers.items()}
            if search and true:
                silent = {who for who, (code, _) in others.items() if code == 65}
            asked = {who: said for who, said in others.items() if not (search and who in silent)}
            good = all(said == found for said in asked.values())
            good &= not true or found[0] == 0
            good &= optimum is None or found[0] != 0 or bound(found[1]) <= optimum
            passed, failed = passed + good, failed + (not good)
            if not good:
                print(f"fail {name}: coq {found}, others {asked}, optimum {optimum}")
                if failed <= 3:
                    print(program.read_text(), proof.read_text(), sep="")
    print("exit codes of the checker from Coq:", dict(sorted(codes.items())))
    if silent:
        print(f"note: no search proofs yet: {', '.join(sorted(silent))}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def judge_in_python(program, proof):
    code, line = check2.verdict(program.read_bytes(), proof.read_bytes())
    return code, shorten(line)


def bound(verdict_line):
    """The bound of a verified certificate, in bytes."""
    return int(re.search(r"bound (\d+)", verdict_line)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
