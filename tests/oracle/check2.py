#!/usr/bin/env python3
"""A second checker of certificates, written from doc/certificate.md alone.

usage: check2.py PROGRAM.json PROOF.cert

It gives the verdicts, lines and exit codes of peakproof-check; reasons may be worded differently.
Sets of statements are integers, bit v standing for statement v, and the rules are applied as they
are written, so time and memory are quadratic in the statements.
"""

import hashlib
import re
import sys

EFFECTS = ("reads", "writes", "overwrites")
LARGEST = 2**63 - 1
IDS = 2**31 - 3  # there are fewer statements and storages


class Malformed(Exception):
    """The program or the certificate cannot be read: (line, reason)."""


class Refuted(Exception):
    """The certificate is well formed and untrue: (line, reason)."""


class Reader:
    """Reads program JSON; fails at the line that it has come to."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def fail(self, reason):
        raise Malformed(self.text.count("\n", 0, self.at) + 1, "program: " + reason)

    def match(self, pattern, what):
        """Skips white space, and takes what matches."""
        found = re.compile(r"[ \t\r\n]*(" + pattern + ")").match(self.text, self.at)
        if not found:
            self.peek()
            self.fail(f"{what} expected")
        self.at = found.end()
        return found[1]

    def peek(self):
        self.match("", "white space")
        return self.text[self.at : self.at + 1]

    def number(self):
        digits = self.match("0(?![0-9])|[1-9][0-9]*", "a number without sign or leading zeros")
        if len(digits) > 19 or int(digits) > LARGEST:
            self.fail("the number exceeds 2^63-1")
        return int(digits)

    def boolean(self):
        return self.match("true|false", "true or false") == "true"

    def string(self):
        return self.match(r'"(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*"', "a string")[1:-1]

    def items(self, brackets, item):
        """The values of item() for the items of an array or object."""
        values = []
        self.match(re.escape(brackets[0]), brackets[0])
        while self.peek() != brackets[1]:
            if values:
                self.match(",", "a comma")
            values.append(item())
        self.match(re.escape(brackets[1]), brackets[1])
        return values

    def skip(self):
        depth = 0
        while depth > 0 or self.peek() not in (",", "}"):
            character = self.peek()
            if character == '"':
                self.string()
                continue
            if not character:
                self.fail("the file ends too early")
            self.at += 1
            depth += (character in "[{") - (character in "]}")

    def fields(self, known, required=()):
        """The known keys of an object and what known[key]() reads for them, as a dict."""
        found = {}

        def field():
            key = self.string()
            self.match(":", "a colon")
            if "\\" in key or key in found:
                self.fail("a key has an escape, or stands twice")
            if key in known:
                found[key] = known[key]()
            else:
                self.skip()

        self.items("{}", field)
        if not found.keys() >= set(required):
            self.fail("a key is missing")
        return found


class Program:
    """work[v], size[s]: bytes. live_in[s], live_out[s]: bool. uses[v]: set of storages.
    accessors[s], direct[v]: masks of statements; direct[v] holds the direct predecessors of v."""

    def __init__(self, data):
        self.sha256 = hashlib.sha256(data).hexdigest()
        self.reader = reader = Reader(data.decode("latin-1"))
        keys = {"peakproof": reader.number, "order": lambda: reader.items("[]", self.read_pair)}
        keys["statements"] = lambda: reader.items("[]", self.read_statement)
        keys["storages"] = lambda: reader.items("[]", self.read_storage)
        fields = reader.fields(keys, ("peakproof", "statements", "storages"))
        if fields["peakproof"] != 1 or reader.peek():
            reader.fail("not version 1, or something behind the program")
        storages, statements = fields["storages"], fields["statements"]
        self.n, self.m = len(statements), len(storages)
        self.size = [s["bytes"] for s in storages]
        self.live_in = [s.get("live_in", False) for s in storages]
        self.live_out = [s.get("live_out", False) for s in storages]
        self.work = [statement.get("work", 0) for statement in statements]
        if sum(self.size) + max(self.work, default=0) > LARGEST:
            reader.fail("storages and work exceed 2^63-1")
        self.find_dependences(statements)
        for before, after in fields.get("order", []):
            if not before < after < self.n:
                reader.fail("no such order")
            self.direct[after] |= 1 << before

    def read_pair(self, count=2):
        numbers = self.reader.items("[]", self.reader.number)
        if len(numbers) != count:
            self.reader.fail(f"{count} numbers expected")
        return numbers

    def read_storage(self):
        keys = {"live_in": self.reader.boolean, "live_out": self.reader.boolean}
        return self.reader.fields({**keys, "bytes": self.reader.number}, ["bytes"])

    def read_access(self):
        """[storage, from, to]; from and to are None for all of it."""
        ranged = self.reader.peek() == "["
        return self.read_pair(3) if ranged else [self.reader.number(), None, None]

    def read_work(self):
        listed = self.reader.peek() == "["
        work = sum(self.reader.items("[]", self.reader.number)) if listed else self.reader.number()
        if work > LARGEST:
            self.reader.fail("the work exceeds 2^63-1")
        return work

    def read_statement(self):
        accesses = {key: lambda: self.reader.items("[]", self.read_access) for key in EFFECTS}
        return self.reader.fields({**accesses, "work": self.read_work})

    def find_dependences(self, statements):
        self.uses, self.direct, self.accessors = [], [], [0] * self.m
        earlier = [{} for _ in range(self.m)]  # (from, to, writes) -> mask of statements
        for v, fields in enumerate(statements):
            effects = {(*a, key != "reads") for key in EFFECTS for a in fields.get(key, [])}
            direct = 0
            for s, start, end, writes in effects:
                if s >= self.m or (start is not None and not start < end <= self.size[s]):
                    self.reader.fail("no such storage, or no such bytes")
                for (start2, end2, writes2), who in earlier[s].items():
                    apart = None not in (start, start2) and (end <= start2 or end2 <= start)
                    if (writes or writes2) and not apart:
                        direct |= who
            for s, *effect in effects:
                effect = tuple(effect)
                earlier[s][effect] = earlier[s].get(effect, 0) | 1 << v
                self.accessors[s] |= 1 << v
            self.direct.append(direct)
            self.uses.append({effect[0] for effect in effects})

    def peak(self, order):
        """Peak of a legal order, in bytes (THEORY.md 1)."""
        live, done, peak = self.floor(), 0, self.floor()
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

    def floor(self, v=None):
        """Bytes that statement v needs whatever the order; None: the start."""
        if v is None:
            used = [self.live_out[s] or self.accessors[s] for s in range(self.m)]
            return sum(self.size[s] for s in range(self.m) if self.live_in[s] and used[s])
        both = {s for s in range(self.m) if self.live_in[s] and self.live_out[s]}
        return self.own(v) + sum(self.size[s] for s in both - self.uses[v])


FORMS = "p peakproof 1|h [0-9a-f]{64}|n N N|o( N)*|u N|l N|f( N)?|t [fr] N( N)*|b( N)*|"
FORMS += "c N N( N(,N)* N)*|e N|q"
FORM = {form[0]: form.replace("N", "(0|[1-9][0-9]{0,18})") for form in FORMS.split("|")}
FOLLOWS = {"": "p", "p": "h", "h": "n", "n": "o", "o": "u", "u": "l", "l": "ftq", "f": "q"}
FOLLOWS |= {"t": "beq", "b": "bceq", "c": "bceq", "e": "bceq", "q": ""}


def read_certificate(data):
    """A list of (line, letter, arguments): numbers; for h, the digits; runs of c are lists."""
    *texts, unfinished = data.decode("latin-1").split("\n")
    lines, last, sizes = [], "", (0, 0)
    for line, text in enumerate(texts, 1):
        letter = text[:1]
        if not letter or letter not in FOLLOWS[last] or not re.fullmatch(FORM[letter], text):
            raise Malformed(line, "not a line that can stand here")
        last, arguments = letter, text.split(" ")[1:]
        if letter not in "ph":
            arguments = [[int(u) if u.isdigit() else u for u in a.split(",")] for a in arguments]
            if letter == "n":
                sizes = arguments[0][0], arguments[1][0]
            if not in_range(letter, arguments, *sizes):
                raise Malformed(line, "a number is out of range")
            is_run = [letter == "c" and i % 2 == 0 and i > 0 for i in range(len(arguments))]
            arguments = [a if run else a[0] for a, run in zip(arguments, is_run, strict=True)]
        lines.append((line, letter, arguments))
    if last != "q" or unfinished:
        raise Malformed(len(texts) + 1, "the end is missing")
    return lines


def in_range(letter, arguments, n, m):
    """Arguments are lists of one number, or of one word, or of a run's."""
    numbers = [i for argument in arguments for i in argument if isinstance(i, int)]
    if letter == "c":
        storages, runs = sum(arguments[1::2], []), sum(arguments[2::2], [])
        good = 0 < numbers[0] <= LARGEST
        return good and all(s < m for s in storages) and all(u < n for u in runs)
    if letter == "t":
        return numbers[0] <= n and all(v < n for v in numbers[1:])
    return all(i < {"n": IDS, "u": LARGEST + 1, "l": LARGEST + 1}.get(letter, n) for i in numbers)


def demand(good, line, reason):
    if not good:
        raise Refuted(line, reason)


def closure(direct, order):
    """Ancestors (a mask) of every statement; in `order` they come before it."""
    ancestors = [0] * len(direct)
    for v in order:
        left = direct[v]
        while left:
            u = (left.bit_length() if order.step > 0 else (left & -left).bit_length()) - 1
            ancestors[v] |= ancestors[u] | 1 << u
            left &= ~ancestors[v]
    return ancestors


class Trap:
    """A trap proof; a reverse one is a forward one of the reversed program."""

    def __init__(self, program, line, arguments, order, bound):
        self.p, self.bound, n = program, bound, program.n
        self.direct, self.starts, self.stays = program.direct, program.live_in, program.live_out
        topological = range(n)
        if arguments[0] == "r":
            successors = [0] * n
            for v in range(n):
                for u in range(v):
                    successors[u] |= (program.direct[v] >> u & 1) << v
            self.direct, self.starts, self.stays = successors, self.stays, self.starts
            order, topological = order[::-1], range(n - 1, -1, -1)
        self.ancestors = closure(self.direct, topological)
        listed = order[: arguments[1]] + arguments[2:]
        demand(len(set(listed)) == len(listed), line, "a statement stands twice in T")
        demand(len(listed) < n, line, "T is everything")
        self.T = sum(1 << v for v in listed)
        closed = [not self.direct[v] & ~self.T for v in range(n)]
        demand(all(closed[v] for v in listed), line, "T is not closed")
        self.left = {v for v in set(range(n)) - set(listed) if closed[v]}
        self.anchors, self.A, self.base, self.v = [], 0, [], None
        stays, accessors = self.stays, program.accessors  # rule 3
        self.lasts = {s for s in range(program.m) if stays[s] or accessors[s] & ~self.T}

    def begun(self, s, ancestors):  # rule 2
        return self.starts[s] or self.p.accessors[s] & ancestors

    def set_base(self, line, *anchors):
        self.close()
        self.v, self.anchors, self.base, self.A = None, anchors, [], 0
        demand(len(set(anchors)) == len(anchors), line, "an anchor stands twice")
        for a in anchors:
            demand(self.T >> a & 1, line, "an anchor outside T")
            demand(not any(self.ancestors[b] >> a & 1 for b in anchors), line, "anchor of anchor")
            self.A |= self.ancestors[a] | 1 << a

    def set_exit(self, line, v):
        self.close()
        demand(v in self.left, line, "not an exit, or listed twice")
        self.left.remove(v)
        self.v, self.line, p, before = v, line, self.p, self.ancestors[v]
        demand(all(before >> a & 1 for a in self.anchors), line, "an anchor is no ancestor")
        others = self.lasts - p.uses[v]
        self.constant = {s for s in others if self.begun(s, before)}
        self.sum = p.own(v) + sum(p.size[s] for s in self.constant)
        self.load = [0] * p.m
        for weight, storages in self.base:
            if not set(storages) & (p.uses[v] | self.constant):
                self.count(weight, storages)

    def count(self, weight, storages):
        self.sum += weight
        for s in storages:
            self.load[s] += weight

    def set_chain(self, line, weight, *chain):
        p, storages, runs = self.p, chain[::2], chain[1::2]
        demand(len(set(storages)) == len(storages), line, "a storage twice in a chain")
        before = self.A if self.v is None else self.ancestors[self.v]
        demand(self.begun(storages[0], before), line, "rule 2")
        demand(storages[-1] in self.lasts, line, "rule 3")
        for s, run, t in zip(storages, runs, storages[1:], strict=False):
            demand(all(self.T >> u & 1 for u in run), line, "rule 5: outside T")
            demand(s in p.uses[run[0]] and t in p.uses[run[-1]], line, "rule 5: no access")
            linked = (self.direct[x] >> u & 1 for x, u in zip(run, run[1:], strict=False))
            demand(all(linked), line, "rule 5: no link")
        if self.v is None:
            used = {s for _, other in self.base for s in other}
            demand(not used & set(storages), line, "a storage twice in the base")
            demand(all(weight <= p.size[s] for s in storages), line, "too heavy")
            self.base.append((weight, storages))
            return
        demand(not set(storages) & p.uses[self.v], line, "rule 1")
        demand(not set(storages) & self.constant, line, "rule 4")
        self.count(weight, storages)
        demand(all(self.load[s] <= p.size[s] for s in storages), line, "overloaded")

    def close(self):
        demand(self.v is None or self.sum >= self.bound, getattr(self, "line", 0), "too cheap")


def check(program, lines):
    """(peak, bound), or raises Refuted."""
    trap, proved = None, False
    for line, letter, arguments in lines:
        if letter == "h":
            demand(arguments == [program.sha256], line, "another program")
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
            bound = arguments[0]
            demand(bound <= peak, line, "the bound is above the peak")
        elif letter == "f":
            need, proved = program.floor(*arguments), True
            demand(need >= bound, line, f"only {need} bytes")
        elif letter == "t":
            trap, proved = Trap(program, line, arguments, order, bound), True
        elif letter in "bec":
            {"b": trap.set_base, "e": trap.set_exit, "c": trap.set_chain}[letter](line, *arguments)
        elif letter == "q":
            demand(proved or bound == 0, line, "no proof")
            if trap:
                trap.close()
                demand(not trap.left, line, f"exits that are not listed: {trap.left}")
    return peak, bound


def verdict(program_data, certificate_data):
    """(exit code, verdict line) for the bytes of the two files."""
    try:
        program = Program(program_data)
        peak, bound = check(program, read_certificate(certificate_data))
    except Malformed as error:
        return 65, "s MALFORMED line {}: {}".format(*error.args)
    except Refuted as error:
        return 1, "s REFUTED line {}: {}".format(*error.args)
    return 0, f"s VERIFIED peak {peak} bound {bound}" + (" optimal" if peak == bound else "")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(64)
    code, message = verdict(*(open(name, "rb").read() for name in sys.argv[1:]))
    print(message)
    sys.exit(code)
