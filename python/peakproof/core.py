"""Programs as dicts (doc/program-json.md) on one side, the C core on the other."""

import json

from . import _core

LIVE_IN, LIVE_OUT = 1, 2
READ, WRITE, OVERWRITE = 1, 2, 4
WHOLE = -1
LIMIT = 2**63 - 1


def _integer(value, what):
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{what} is not an integer")
    if not 0 <= value <= LIMIT:
        raise ValueError(f"{what} is not between 0 and 2^63-1")
    return value


def _typed(value, kind, what):
    if not isinstance(value, kind):
        raise ValueError(f"{what} is not a {kind.__name__}")
    return value


def _access(a, storages, what):
    """(storage, from, to) of an access."""
    whole = not isinstance(a, (list, tuple))
    if not whole and len(a) != 3:
        raise ValueError(f"{what} is not [storage, from, to]")
    number = _integer(a if whole else a[0], what)
    if number >= storages:
        raise ValueError(f"{what} names a storage that does not exist: {number}")
    if whole:
        return number, WHOLE, WHOLE
    return number, _integer(a[1], what), _integer(a[2], what)


def _accesses(s, storages, where):
    """Every access of a statement, with its flags."""
    out = []
    over = {
        _access(a, storages, f"{where}.overwrites")
        for a in _typed(s.get("overwrites", []), list, f"{where}.overwrites")
    }
    for key, flag in (("reads", READ), ("writes", WRITE)):
        for j, a in enumerate(_typed(s.get(key, []), list, f"{where}.{key}")):
            found = _access(a, storages, f"{where}.{key}[{j}]")
            extra = OVERWRITE if flag == WRITE and found in over else 0
            over.discard(found) if extra else None
            out.append((*found, flag | extra))
    for found in sorted(over):
        raise ValueError(f"{where}.overwrites: {found[0]} is not in writes")
    return out


def _statement(s, i, storages):
    where = f"statements[{i}]"
    _typed(s, dict, where)
    work = s.get("work", 0)
    requests = [_integer(w, f"{where}.work") for w in (work if isinstance(work, list) else [work])]
    macs = _integer(s["macs"], f"{where}.macs") if s.get("macs") is not None else -1
    line = _integer(s["line"], f"{where}.line") if s.get("line") is not None else -1
    pure = _typed(s.get("pure", False), bool, f"{where}.pure")
    name = _typed(s.get("name", ""), str, f"{where}.name")
    return name, [r for r in requests if r], _accesses(s, storages, where), macs, pure, line


def _storage(s, i):
    where = f"storages[{i}]"
    _typed(s, dict, where)
    flags = 0
    for key, flag in (("live_in", LIVE_IN), ("live_out", LIVE_OUT)):
        flags |= flag if _typed(s.get(key, False), bool, f"{where}.{key}") else 0
    if "bytes" not in s:
        raise ValueError(f"{where} has no bytes")
    name = _typed(s.get("name", ""), str, f"{where}.name")
    return name, _integer(s["bytes"], f"{where}.bytes"), flags


def tuples(program):
    """What _core takes, from a program dict. Raises ValueError with the place of what is wrong."""
    _typed(program, dict, "the program")
    if program.get("peakproof") != 1:
        raise ValueError('the program is not version 1 ("peakproof": 1)')
    for key in ("statements", "storages"):
        if key not in program:
            raise ValueError(f"the program has no {key}")
        _typed(program[key], list, key)
    storages = [_storage(s, i) for i, s in enumerate(program["storages"])]
    statements = [_statement(s, i, len(storages)) for i, s in enumerate(program["statements"])]
    orders = []
    for i, pair in enumerate(_typed(program.get("order", []), list, "order")):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(f"order[{i}] is not a pair")
        a, b = (_integer(v, f"order[{i}]") for v in pair)
        if not a < b < len(statements):
            raise ValueError(f"order[{i}] is not [before, after] with before < after")
        orders.append((a, b))
    name = _typed(program.get("name", ""), str, "name")
    return name, storages, statements, orders


def text_of(program):
    """The text of the program's file. A certificate is about exactly these bytes (in UTF-8)."""
    return json.dumps(program, separators=(",", ":"), ensure_ascii=False) + "\n"


def solve(program, time_limit=0.0, state_limit=0, sha256=None):
    """The plan of one program dict. `sha256`: of its file, for a certificate (else None)."""
    return _core.solve(*tuples(program), float(time_limit), int(state_limit), sha256)


def simulate(program, order=None):
    """What an order does: peak, bytes at each step and between, first and last step of storages."""
    parts = tuples(program)
    return _core.simulate(*parts, list(range(len(parts[2]))) if order is None else list(order))


def remat(program, *, time_limit=0.0, state_limit=0, cap=2, most=-1, target=-1):
    """The curve of (peak, extra runs) of a program, and a rewriting (doc/remat.md).

    `cap`: how often a statement may run; `most`: extra multiply-accumulates that are too many to
    want more (-1: any). The rewriting is that of the cheapest point of at most `target` bytes, else
    of the lowest: `statements` has the statement of each run, `storages` the storage of each copy,
    `accessed` the copies of each run.
    """
    options = (float(time_limit), int(state_limit), int(cap), int(most), int(target))
    return _core.remat(*tuples(program), *options)


def plan(program, *, time_limit=0.0, state_limit=0):
    """Plans a program given as a dict (doc/program-json.md); needs no torch.

    Returns the dict of `peakproof plan --json` (DESIGN.md 5), bytes and seconds, and besides for
    the one program `certificate`, text about the file `program_json`. Raises ValueError with the
    place for a wrong program, OverflowError if a sum of bytes leaves 64 bits.
    """
    import hashlib

    text = text_of(program)
    p = solve(program, time_limit, state_limit, hashlib.sha256(text.encode()).hexdigest())
    keys = ("peak_before", "peak_after", "lower_bound", "optimal")
    one = {
        "name": program.get("name", ""),
        "statements": len(program["statements"]),
        "storages": len(program["storages"]),
        **{k: p[k] for k in keys},
        **{k: p[k] for k in ("floor", "proof", "order", "seconds", "limited")},
        "certificate": p["certificate"].decode(),
        "program_json": text,
    }
    return {"model": one["name"], **{k: p[k] for k in keys}, "programs": [one]}
