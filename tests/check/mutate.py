#!/usr/bin/env python3
"""Runs the mutation attack on the checkers.

usage: mutate.py MUTATE BRUTE [--seed N] [--programs N] [--statements N] [--mutations N]
       [--compare N] [--search PLANNER]

MUTATE and BRUTE are the executables built from mutate.c and ../oracle/brute.c. Certificates are
written by ../oracle/oracle.py for random programs; MUTATE mutates them. With --search they are
search proofs and probing edges, half of them written by brute force (../coq/prove.py), half by
PLANNER, built from ../core/brute.c, for programs of up to 14 statements for which the core needs
them. With --compare N about N
of the mutations are judged by ../oracle/check2.py too, and the verdicts must be the same, with the
lines that they name. A seed stands for its own programs and mutations: different seeds may run on
different days. Exit 1 on any failure.
"""

import argparse
import json
import random
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "coq"))
import check2
import oracle
import prove


def make_corpus(brute, seed, programs, statements):
    """Records for MUTATE, as bytes."""
    first = seed * 1_000_000
    command = [brute, "--json", str(first), str(programs), str(statements)]
    texts = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    records = []
    for i, text in enumerate(texts.splitlines(keepends=True), first):
        rng = random.Random(i)
        p = oracle.Program(json.loads(text))
        kind = rng.choice(["t f", "t f", "t f", "t r", "t r", "t r", "floor"])
        # only below the peak of its order can a false bound be claimed
        order = oracle.random_order(p, rng) if rng.random() < 0.7 else None
        certificate = oracle.certificate(text, kind, order, rng)[0]
        records.append(f"{i} {statements} {len(certificate)}\n{certificate}")
    return "".join(records).encode()


def with_order(text, certificate, rng):
    """The certificate for another order, most often: no bound above the peak is believed."""
    p = oracle.Program(json.loads(text))
    lines = certificate.split("\n")
    if rng.random() < 0.7 and not any(line.startswith("t ") for line in lines):
        order = oracle.random_order(p, rng)
        lines[3:5] = [" ".join(["o", *map(str, order)]), f"u {p.peak(order)}"]
    return "\n".join(lines)


def make_searches(brute, planner, seed, programs, statements):
    """Records for MUTATE, as bytes, of search proofs and probing edges."""
    first = seed * 1_000_000
    command = [brute, "--json", str(first), str(programs), str(statements)]
    texts = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    records = []
    for i, text in enumerate(texts.splitlines(keepends=True), first):
        certificate = prove.certificate(text, random.Random(i)) if i % 2 else None
        if certificate:
            records.append((i, statements, text, certificate))
    command = [planner, "--certificates", str(first), str(programs - len(records)), "14"]
    planned = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    at = 0
    while at < len(planned):
        end = planned.index("\n", at)
        i, size, length = map(int, planned[at:end].split())
        at = end + 1 + length
        command = [brute, "--json", str(i), "1", str(size)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        records.append((i, size, text, planned[end + 1 : at]))
    for k, (i, size, text, certificate) in enumerate(records):
        certificate = with_order(text, certificate, random.Random(i))
        records[k] = f"{i} {size} {len(certificate)}\n{certificate}"
    return "".join(records).encode()


def without_reason(verdict):
    """What both checkers must say: a verdict up to the line that it names."""
    return re.match(rb"s (VERIFIED .*|(REFUTED|MALFORMED) line \d+|)", verdict)[0]


def compare(samples):
    """Counts (samples, differences) between the verdicts of both checkers."""
    at = count = differences = 0
    while at < len(samples):
        end = samples.index(b"\n", at)
        program_size, certificate_size, first = samples[at:end].split(b" ", 2)
        middle = end + 1 + int(program_size)
        at = middle + int(certificate_size)
        program, certificate = samples[end + 1 : middle], samples[middle:at]
        second = check2.verdict(program, certificate)[1].encode()
        count += 1
        if without_reason(first) != without_reason(second):
            differences += 1
            print(f"DIFFERENCE: {first.decode()}, but check2: {second.decode()}")
            print(program.decode(), certificate.decode(), sep="")
    return count, differences


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mutate")
    parser.add_argument("brute")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--mutations", type=int, default=20000)
    parser.add_argument("--compare", type=int, default=0)
    parser.add_argument("--statements", type=int, default=10)
    parser.add_argument("--search")
    options = parser.parse_args()
    size = (options.seed, options.programs, options.statements)
    if options.search:
        corpus = make_searches(options.brute, options.search, *size)
    else:
        corpus = make_corpus(options.brute, *size)
    sample = options.mutations // options.compare if options.compare else 0
    command = [options.mutate, str(options.seed), str(options.mutations), str(sample)]
    run = subprocess.run(command, input=corpus, stdout=subprocess.PIPE)
    if run.returncode:
        return 1
    if options.compare:
        count, differences = compare(run.stdout)
        print(f"compared {count} differences {differences}")
        return differences > 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
