#!/usr/bin/env python3
"""A second checker of certificates, written from doc/certificate.md alone.

usage: check2.py PROGRAM.json PROOF.cert

Same verdicts and exit codes as peakproof-check; reasons may be worded differently. It is meant to be
read: sets of statements are integers, bit v standing for statement v, and the rules are applied as
they are written. Time and memory are quadratic in the statements.
"""

import hashlib
import re
import sys

LARGEST = 2**63 - 1
IDS = 2**31 - 3  # statements and storages are fewer
NESTED = 64


class Malformed(Exception):
    """(line, reason): the program or the certificate cannot be read."""


class Refuted(Exception):
    """(line, reason): the certificate is well formed and untrue."""


# ---- Program JSON ----

TOKEN = re.compile(
    r'[ \t\r\n]*(?:("(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*")|([0-9a-zE+.-]+)|([\[\]{},:])|($))'
)
NUMBER = re.compile(r"0|[1-9][0-9]*")


class Reader:
    """Reads JSON text into nested values: words and strings stay text, objects are pairs."""

    def __init__(self, text):
        self.text, self.at, self.kind, self.token = text, 0, 0, ""
        self.advance()

    def fail(self, reason):
        raise Malformed(self.text.count("\n", 0, self.at) + 1, "program: " + reason)

    def advance(self):
        match = TOKEN.match(self.text, self.at)
        if not match:
            self.fail("unexpected character")
        self.at, self.kind, self.token = match.end(), match.lastindex, match[match.lastindex]

    def take(self, token):
        if self.token != token or self.kind != 3:
            self.fail(f"{token} expected")
        self.advance()

    def value(self):
        """The value that begins at the current token: str, list, or tuple of (key, value)."""
        if self.kind in (1, 2):
            token = self.token
            self.advance()
            return token
        if self.kind == 4 or self.token not in "[{":
            self.fail("a value expected")
        close = "]" if self.token == "[" else "}"
        items = []
        self.advance()
        while not (self.kind == 3 and self.token == close):
            if items:
                self.take(",")
            if close == "}":
                if self.kind != 1:
                    self.fail("a key expected")
                key = self.token[1:-1]
                self.advance()
                self.take(":")
                items.append((key, self.value()))
            else:
                items.append(self.value())
        self.advance()
        return items if close == "]" else tuple(items)


def height(value):
    """How deeply arrays and objects are nested in a value."""
    if isinstance(value, str):
        return 0
    inner = value if isinstance(value, list) else [item for _, item in value]
    return 1 + max(map(height, inner), default=0)


def fields(value, known, required=()):
    """The known keys of an object, as a dict."""
    if not isinstance(value, tuple):
        raise Malformed(1, "program: an object expected")
    found = {}
    for key, item in value:
        if "\\" in key or key in found:
            raise Malformed(1, f"program: key {key}")
        if key in known:
            found[key] = item
        elif height(item) > NESTED:
            raise Malformed(1, "program: nested too deeply")
    if not set(required) <= set(found):
        raise Malformed(1, "program: a key is missing")
    return found


def integer(value, largest=LARGEST):
    if not isinstance(value, str) or not NUMBER.fullmatch(value) or len(value) > 19:
        raise Malformed(1, "program: an integer expected")
    if int(value) > largest:
        raise Malformed(1, "program: the integer is too large")
    return int(value)


def boolean(value):
    if value not in ("true", "false"):
        raise Malformed(1, "program: true or false expected")
    return value == "true"


def array(value):
    if not isinstance(value, list):
        raise Malformed(1, "program: a list expected")
    return value


class Program:
    """work[v], size[s]: bytes. live_in[s], live_out[s]. uses[v]: set of storages. accessors[s], direct[v]
    (direct predecessors): bit masks of statements."""

    def __init__(self, data):
        self.sha256 = hashlib.sha256(data).hexdigest()
        reader = Reader(data.decode("latin-1"))
        try:
            root = reader.value()
        except RecursionError:
            reader.fail("nested too deeply")
        if reader.kind != 4:
            reader.fail("something behind the program")
        keys = ("peakproof", "statements", "storages", "order")
        root = fields(root, keys, keys[:3])
        if integer(root["peakproof"]) != 1:
            raise Malformed(1, "program: not version 1")
        self.read_storages(array(root["storages"]))
        self.read_statements(array(root["statements"]))
        for pair in array(root.get("order", [])):
            before, after = (integer(i, IDS) for i in self.parts(pair, 2))
            if not before < after < self.n:
                raise Malformed(1, "program: order")
            self.direct[after] |= 1 << before
        if sum(self.size) + max(self.work, default=0) > LARGEST:
            raise Malformed(1, "program: storages and work exceed 2^63-1")

    @staticmethod
    def parts(value, count):
        if len(array(value)) != count:
            raise Malformed(1, f"program: {count} numbers expected")
        return value

    def read_storages(self, storages):
        self.m = len(storages)
        self.size, self.live_in, self.live_out = [], [], []
        for storage in storages:
            storage = fields(storage, ("bytes", "live_in", "live_out"), ("bytes",))
            self.size.append(integer(storage["bytes"]))
            self.live_in.append(boolean(storage.get("live_in", "false")))
            self.live_out.append(boolean(storage.get("live_out", "false")))

    def read_access(self, value):
        """Returns (storage, from, to); from and to are None for all of it."""
        if isinstance(value, str):
            access = (integer(value), None, None)
        else:
            access = tuple(integer(i) for i in self.parts(value, 3))
        if access[0] >= self.m:
            raise Malformed(1, "program: no such storage")
        if access[1] is not None and not access[1] < access[2] <= self.size[access[0]]:
            raise Malformed(1, "program: no such bytes")
        return access

    def read_statements(self, statements):
        self.n = len(statements)
        self.work, self.uses, self.direct = [], [], []
        self.accessors = [0] * self.m
        earlier = [{} for _ in range(self.m)]  # (from, to, writes) -> mask of statements
        for v, statement in enumerate(statements):
            statement = fields(statement, ("reads", "writes", "overwrites", "work"))
            work = statement.get("work", "0")
            work = sum(map(integer, work)) if isinstance(work, list) else integer(work)
            if work > LARGEST:
                raise Malformed(1, "program: work")
            self.work.append(work)
            effects = set()
            for key in ("reads", "writes", "overwrites"):
                for value in array(statement.get(key, [])):
                    effects.add((*self.read_access(value), key != "reads"))
            direct = 0
            for s, from_, to, writes in effects:
                for (from2, to2, writes2), who in earlier[s].items():
                    apart = None not in (from_, from2) and (to <= from2 or to2 <= from_)
                    if (writes or writes2) and not apart:
                        direct |= who
            for s, from_, to, writes in effects:
                earlier[s][from_, to, writes] = earlier[s].get((from_, to, writes), 0) | 1 << v
                self.accessors[s] |= 1 << v
            self.direct.append(direct)
            self.uses.append({effect[0] for effect in effects})

    def at_start(self):
        """Bytes that are live before the first statement."""
        return sum(
            self.size[s]
            for s in range(self.m)
            if self.live_in[s] and (self.live_out[s] or self.accessors[s])
        )

    def peak(self, order):
        """Peak of a legal order, in bytes (THEORY.md 1)."""
        live, done, peak = self.at_start(), 0, self.at_start()
        for v in order:
            for s in self.uses[v]:
                if not self.live_in[s] and not self.accessors[s] & done:
                    live += self.size[s]
            peak = max(peak, live + self.work[v])
            done |= 1 << v
            for s in self.uses[v]:
                if not self.live_out[s] and not self.accessors[s] & ~done:
                    live -= self.size[s]
        return peak

    def own(self, v):
        return self.work[v] + sum(self.size[s] for s in self.uses[v])


# ---- Certificate: form ----

N = "(?:0|[1-9][0-9]*)"
FORM = {
    "p": "p peakproof 1",
    "h": "h [0-9a-f]{64}",
    "n": f"n {N} {N}",
    "o": f"o(?: {N})*",
    "u": f"u {N}",
    "l": f"l {N}",
    "f": f"f(?: {N})?",
    "t": f"t [fr] {N}(?: {N})*",
    "b": f"b(?: {N})*",
    "c": f"c {N} {N}(?: {N}(?:,{N})* {N})*",
    "e": f"e {N}",
    "q": "q",
}
FORM = {letter: re.compile(form) for letter, form in FORM.items()}
FOLLOWS = {"": "p", "p": "h", "h": "n", "n": "o", "o": "u", "u": "l", "l": "ftq", "f": "q"}
FOLLOWS |= {"t": "beq", "b": "bceq", "c": "bceq", "e": "bceq", "q": ""}


def read_certificate(data):
    """Returns a list of (line number, letter, arguments); runs of a chain are lists."""
    lines, last, n, m = [], "", 0, 0
    texts = data.decode("latin-1").split("\n")
    unfinished = texts.pop()
    for number, text in enumerate(texts, 1):
        letter = text[:1]
        if not letter or letter not in FOLLOWS[last] or not FORM[letter].fullmatch(text):
            raise Malformed(number, "not a line that can stand here")
        last = letter
        if letter in "ph":
            lines.append((number, letter, text[2:]))
            continue
        arguments = [
            int(i) if i.isdigit() else [int(u) for u in i.split(",")] if "," in i else i
            for i in text.split(" ")[1:]
        ]
        for i in arguments:
            for j in i if isinstance(i, list) else [i]:
                if isinstance(j, int) and j > LARGEST:
                    raise Malformed(number, "a number exceeds 2^63-1")
        if letter == "c":
            arguments[2::2] = [i if isinstance(i, list) else [i] for i in arguments[2::2]]
        if letter == "n":
            n, m = arguments
            if n >= IDS or m >= IDS:
                raise Malformed(number, "too many")
        if not within(letter, arguments, n, m):
            raise Malformed(number, "out of range")
        lines.append((number, letter, arguments))
    if last != "q" or unfinished:
        raise Malformed(len(texts) + 1, "does not end with q and the end of its line")
    return lines


def within(letter, arguments, n, m):
    if letter == "c":
        runs = all(u < n for run in arguments[2::2] for u in run)
        return runs and arguments[0] > 0 and all(s < m for s in arguments[1::2])
    if letter == "t":
        return arguments[1] <= n and all(v < n for v in arguments[2:])
    return letter not in "ofbe" or all(v < n for v in arguments)


# ---- Certificate: truth ----


def demand(condition, line, reason):
    if not condition:
        raise Refuted(line, reason)


def closure(direct, order):
    """Ancestors (a mask) of every statement; direct predecessors come first in `order`."""
    ancestors = [0] * len(direct)
    for v in order:
        left = direct[v]
        while left:
            u = left.bit_length() - 1 if order.step > 0 else (left & -left).bit_length() - 1
            ancestors[v] |= ancestors[u] | 1 << u
            left &= ~ancestors[v]
    return ancestors


class Trap:
    """A trap proof; a reverse one is a forward one of the reversed program."""

    def __init__(self, program, line, arguments, order, bound):
        self.p, self.bound = program, bound
        n, forward = program.n, arguments[0] == "f"
        self.direct = program.direct
        self.starts, self.stays = program.live_in, program.live_out
        if not forward:
            self.direct = [0] * n
            for v in range(n):
                for u in range(v):
                    if program.direct[v] >> u & 1:
                        self.direct[u] |= 1 << v
            self.starts, self.stays = program.live_out, program.live_in
            order = order[::-1]
        self.ancestors = closure(self.direct, range(n) if forward else range(n - 1, -1, -1))
        listed = order[: arguments[1]] + arguments[2:]
        demand(len(set(listed)) == len(listed), line, "a statement stands twice in T")
        self.T = sum(1 << v for v in listed)
        demand(len(listed) < n, line, "T is everything")
        for v in listed:
            demand(not self.direct[v] & ~self.T, line, "T is not closed")
        outside = [v for v in range(n) if not self.T >> v & 1]
        self.left = {v for v in outside if not self.direct[v] & ~self.T}
        self.anchors, self.A, self.base, self.v = [], 0, [], None

    def begun(self, s, ancestors):
        return self.starts[s] or self.p.accessors[s] & ancestors

    def lasts(self, s):
        return self.stays[s] or self.p.accessors[s] & ~self.T

    def set_base(self, line, anchors):
        self.close()
        self.v, self.anchors, self.base = None, anchors, []
        demand(len(set(anchors)) == len(anchors), line, "an anchor stands twice")
        self.A = 0
        for a in anchors:
            demand(self.T >> a & 1, line, "an anchor outside T")
            demand(not any(self.ancestors[b] >> a & 1 for b in anchors), line, "anchor of anchor")
            self.A |= self.ancestors[a] | 1 << a

    def set_exit(self, line, v):
        self.close()
        demand(v in self.left, line, "not an exit, or listed twice")
        self.left.remove(v)
        self.v, self.line, p = v, line, self.p
        before = self.ancestors[v]
        demand(all(before >> a & 1 for a in self.anchors), line, "an anchor is no ancestor")
        others = set(range(p.m)) - p.uses[v]
        self.constant = {s for s in others if self.begun(s, before) and self.lasts(s)}
        self.sum = p.own(v) + sum(p.size[s] for s in self.constant)
        self.load = [0] * p.m
        for weight, storages in self.base:
            if not set(storages) & (p.uses[v] | self.constant):
                self.sum += weight
                for s in storages:
                    self.load[s] += weight

    def chain(self, line, weight, *chain):
        p, storages, runs = self.p, chain[::2], chain[1::2]
        demand(len(set(storages)) == len(storages), line, "a storage twice in a chain")
        before = self.A if self.v is None else self.ancestors[self.v]
        demand(self.begun(storages[0], before), line, "rule 2")
        demand(self.lasts(storages[-1]), line, "rule 3")
        for i, run in enumerate(runs):
            demand(all(self.T >> u & 1 for u in run), line, "rule 5: outside T")
            demand(storages[i] in p.uses[run[0]], line, "rule 5: first")
            demand(storages[i + 1] in p.uses[run[-1]], line, "rule 5: last")
            for x, u in zip(run, run[1:]):
                demand(self.direct[x] >> u & 1, line, "rule 5: no link")
        if self.v is None:
            used = {s for _, other in self.base for s in other}
            demand(not used & set(storages), line, "a storage twice in the base")
            demand(all(weight <= p.size[s] for s in storages), line, "overloaded")
            self.base.append((weight, storages))
            return
        demand(not set(storages) & p.uses[self.v], line, "rule 1: the exit accesses it")
        demand(not set(storages) & self.constant, line, "rule 4: constant")
        self.sum += weight
        for s in storages:
            self.load[s] += weight
            demand(self.load[s] <= p.size[s], line, "overloaded")

    def close(self):
        if self.v is not None:
            demand(self.sum >= self.bound, self.line, f"exit {self.v} costs {self.sum}")


def check(program, lines):
    """Returns (peak, bound), or raises Refuted."""
    trap = None
    bound_line, proved = 0, False
    for line, letter, arguments in lines:
        if letter == "h":
            demand(arguments == program.sha256, line, "another program")
        elif letter == "n":
            demand(arguments == [program.n, program.m], line, "other sizes")
        elif letter == "o":
            order, done = arguments, 0
            demand(sorted(order) == list(range(program.n)), line, "not a permutation")
            for v in order:
                demand(not program.direct[v] & ~done, line, f"{v} comes too early")
                done |= 1 << v
        elif letter == "u":
            peak = program.peak(order)
            demand(arguments == [peak], line, f"the peak is {peak}")
        elif letter == "l":
            bound, bound_line = arguments[0], line
            demand(bound <= peak, line, "the bound is above the peak")
        elif letter == "f":
            need = program.at_start()
            for v in arguments:
                both = (s for s in range(program.m) if program.live_in[s] and program.live_out[s])
                need = program.own(v) + sum(
                    program.size[s] for s in both if s not in program.uses[v]
                )
            demand(need >= bound, line, f"only {need} bytes")
            proved = True
        elif letter == "t":
            trap, proved = Trap(program, line, arguments, order, bound), True
        elif letter == "b":
            trap.set_base(line, arguments)
        elif letter == "e":
            trap.set_exit(line, arguments[0])
        elif letter == "c":
            trap.chain(line, *arguments)
        elif letter == "q":
            demand(proved or bound == 0, bound_line, "no proof")
            if trap:
                trap.close()
                demand(not trap.left, line, f"exits left: {trap.left}")
    return peak, bound


def verdict(program_data, certificate_data):
    """Returns (exit code, verdict line) for the bytes of the two files."""
    try:
        program = Program(program_data)
        peak, bound = check(program, read_certificate(certificate_data))
    except Malformed as error:
        return 65, "s MALFORMED line %d: %s" % error.args
    except Refuted as error:
        return 1, "s REFUTED line %d: %s" % error.args
    return 0, f"s VERIFIED peak {peak} bound {bound}" + (" optimal" if peak == bound else "")


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 64
    try:
        data = [open(name, "rb").read() for name in arguments]
    except OSError as error:
        print(error, file=sys.stderr)
        return 66
    code, line = verdict(*data)
    print(line)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
