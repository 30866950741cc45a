#!/usr/bin/env python3
"""Shows both checkers mutated programs, each with a certificate that names the mutation's hash.

usage: programs.py CHECKER SEED COUNT

COUNT programs, with a trap or a search, are mutated ten times each. The checkers must give the same
verdict and, if they refute, the same line; only of what is no JSON inside what is skipped one may
say that it is malformed (doc/certificate.md). Exit 1 on any difference.
"""

import hashlib
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "coq"))
import check2
import oracle
import prove

TOKEN = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|\d+|.', re.S)
VALUES = (
    "0|1|2|3|00|-1|1.0|1e0|+1|9223372036854775807|9223372036854775808|true|false|null|[]|{}|[0]"
)
VALUES += (
    '|""|"a"|[0, 0, 1]|[0, 1, 1]|[0, 0]|[1, 2, 4]|[[0]]|NaN|-0|\t|\x0b|\xa0|\x00|,|:|[|]|{|}|"|\\'
)
FIELDS = '"x": 1.5|"name": "a\\"b"|"by\\u0074es": 3|"bytes": 1|"live_in": true|"live_out": 1|"": 0|'
FIELDS += (
    '"work": [1, 2]|"work": []|"reads": []|"z": [{"a": [1e5, -3]}, null]|"peakproof": 1|"z": {}|'
)
FIELDS += '"order": [[0, 1]]|"overwrites": [0]|"overwrites": [[0, 0, 1]]|"z": "\x7f\xe9"'


def mutate(rng, text):
    """One to three changes of tokens; most leave JSON."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        i = rng.randrange(len(tokens))
        numbers = [k for k, token in enumerate(tokens) if token.isdecimal()] or [0]
        objects = [k for k, token in enumerate(tokens) if token == "{"] or [0]
        kind = rng.randrange(8)
        if kind == 0:
            del tokens[i]
        elif kind == 1:
            tokens.insert(i, rng.choice(tokens))
        elif kind == 2:
            tokens[i] = rng.choice(VALUES.split("|"))
        elif kind == 3:
            tokens.insert(i, rng.choice(VALUES.split("|")))
        elif kind == 4:
            tokens.insert(rng.choice(objects) + 1, rng.choice(FIELDS.split("|")) + ",")
        else:
            tokens[rng.choice(numbers)] = str(rng.choice((0, 1, 2, 3, 4, 5, 6, 10, 100)))
    return "".join(tokens)


def compare(checker, seed, count):
    """Counts (mutations, differences)."""
    corpus = [(text, certificate) for text, certificate, _ in oracle.corpus(seed, count // 2)]
    corpus += list(prove.corpus(seed, count // 2))
    mutations = differences = 0
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("p.json", "p.cert")]
        for i, (text, certificate) in enumerate(corpus):
            rng = random.Random(f"{seed} {i}")
            for _ in range(10):
                program = mutate(rng, text).encode("latin-1")
                own_hash = f"h {hashlib.sha256(program).hexdigest()}"
                proof = re.sub("^h .*$", own_hash, certificate, count=1, flags=re.M).encode()
                files[0].write_bytes(program)
                files[1].write_bytes(proof)
                run = subprocess.run([checker, *files], capture_output=True, text=True)
                first, second = (run.returncode, run.stdout), check2.verdict(program, proof)
                mutations += 1
                if without_reason(*first) == without_reason(*second):
                    continue
                if first[0] == 65 or not second[1].startswith("s MALFORMED program: not JSON"):
                    differences += 1
                    print(f"DIFFERENCE: {first}, but check2: {second}\n{program}\n{proof}")
    return mutations, differences


def without_reason(code, verdict):
    """Exit code and verdict up to the line of a refutation."""
    return code, re.match(r"s VERIFIED .*|s REFUTED line \d+|s MALFORMED|", verdict)[0].strip()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(64)
    found = compare(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print("programs {} differences {}".format(*found))
    sys.exit(found[1] > 0)
