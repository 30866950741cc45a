#!/usr/bin/env python3
"""Compares the checker extracted from Coq with the two others on files and on random programs.

usage: compare.py COQ_CHECKER C_CHECKER SEED COUNT [FOLDER ...]

The checkers must agree on the exit code and, when they refute, on the line. FOLDER holds PROGRAM.json
and PROOF.cert files: a certificate belongs to the program of its own name, else to the one whose SHA-256 it names, else to
program.json in its folder. COUNT random programs of the oracle, each with a true
certificate and mutations of it, are added.
"""

import hashlib
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))

import check2  # noqa: E402
import oracle  # noqa: E402

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
    """Yields (name, program path, certificate path, whether the certificate is true or None)."""
    for folder in folders:
        for program, proof in pairs(Path(folder)):
            yield proof, program, proof, None
    program, proof = scratch / "program.json", scratch / "proof.cert"
    for i, (text, certificate, _) in enumerate(oracle.corpus(seed, count)):
        rng = random.Random(f"{seed} {i}")
        program.write_text(text)
        proof.write_text(certificate)
        yield f"corpus {seed} {i}", program, proof, True
        for j in range(5):
            proof.write_text(mutate(rng, certificate))
            yield f"corpus {seed} {i} mutation {j}", program, proof, None


def main(arguments):
    coq, c, seed, count, *folders = arguments
    passed, failed, codes = 0, 0, {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, program, proof, true in cases(int(seed), int(count), folders, Path(scratch)):
            found = verdict(coq, program, proof)
            code, line = check2.verdict(program.read_bytes(), proof.read_bytes())
            others = [(code, shorten(line))]
            if c != "-":
                others.append(verdict(c, program, proof))
            codes[found[0]] = codes.get(found[0], 0) + 1
            if any(found != other for other in others) or (true and found[0] != 0):
                failed += 1
                print(f"fail {name}: coq {found}, python and c {others}")
                if failed <= 3:
                    print(program.read_text(), proof.read_text(), sep="")
            else:
                passed += 1
    print("exit codes of the checker from Coq:", dict(sorted(codes.items())))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
