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


FORMS = "p peakproof 1|h [0-9a-f]{64}|n N N|o( N)*|u N|l N|f( N)?|t [fr] N( N)*|b( N)*|e N|q|"
FORMS += "c N N( N(,N)* N)*|a N N|x|y [fr] N|k [fr]( N)*|K [fr]( N)*|m [fr]|g( N)*|"
FORMS += "s N N|n N|d N N|r N N( N)*"
FORM = {}  # "n2", of the search, is the second kind of line n
for form in FORMS.split("|"):
    FORM[form[0] + "2" * (form[0] in FORM)] = form.replace("N", "(0|[1-9][0-9]{0,18})")
# What may stand behind a line and its chains; c: it may have chains.
FOLLOWS = {"": "p", "p": "h", "h": "n", "n": "o", "o": "u", "u": "l", "l": "aftxq", "f": "q"}
FOLLOWS |= {"t": "beq", "b": "bceq", "e": "bceq", "a": "actxq", "q": ""}
FOLLOWS |= dict.fromkeys("xyk", "ykKm") | {"K": "cykKm", "m": "gq", "g": "cgsndrq"}
FOLLOWS |= dict.fromkeys(["s", "n2", "r"], "sndrgq") | {"d": "csndrgq"}


def read_certificate(data):
    """A list of (line, kind, arguments): numbers, f, r; for h, the digits; runs of c are lists."""
    *texts, unfinished = data.decode("latin-1").split("\n")
    lines, last, sizes = [], "", (0, 0)
    for line, text in enumerate(texts, 1):
        kind = text[:1]
        good = kind and kind in FOLLOWS[last]
        kind += "2" * (kind == "n" and last != "h")
        if not good or not re.fullmatch(FORM[kind], text):
            raise Malformed(line, "not a line that can stand here")
        last, arguments = last if kind == "c" else kind, text.split(" ")[1:]
        if kind not in "ph":
            arguments = [[int(u) if u.isdigit() else u for u in a.split(",")] for a in arguments]
            if kind == "n":
                sizes = arguments[0][0], arguments[1][0]
            if not in_range(kind, arguments, *sizes):
                raise Malformed(line, "a number is out of range")
            is_run = [kind == "c" and i % 2 == 0 and i > 0 for i in range(len(arguments))]
            arguments = [a if run else a[0] for a, run in zip(arguments, is_run, strict=True)]
        lines.append((line, kind, arguments))
    if last != "q" or unfinished:
        raise Malformed(len(texts) + 1, "the end is missing")
    return lines


def in_range(kind, arguments, n, m):
    """Arguments are lists of one number, or of one word, or of a run's."""
    if kind == "c":
        limits = [LARGEST + 1] + [m, n] * len(arguments)
        if arguments[0] == [0]:
            return False
    else:
        first = {"n": [IDS, IDS], "t": [0, n + 1], "d": [LARGEST + 1] * 2, "r": [LARGEST + 1] * 2}
        first |= dict.fromkeys(["u", "l", "s", "n2"], [LARGEST + 1])
        limits = first.get(kind, []) + [n] * len(arguments)
    words = zip(arguments, limits, strict=False)
    return all(u in ("f", "r") or u < limit for word, limit in words for u in word)


def demand(good, line, reason):
    if not good:
        raise Refuted(line, reason)


class Side:
    """A program or, backward, the reversed one, with the edges that probing added: direct[v] and
    ancestors[v] are masks of statements; storage s exists at the start if starts[s], and at the
    end if stays[s]."""

    def __init__(self, program, edges, way):
        self.p, self.n, self.m = program, program.n, program.m
        self.starts, self.stays, self.direct = program.live_in, program.live_out, program.direct[:]
        for u, v in edges:
            self.direct[v] |= 1 << u
        if way == "r":
            self.starts, self.stays, forward = self.stays, self.starts, self.direct
            self.direct = [0] * self.n
            for v in range(self.n):
                for u in members(forward[v]):
                    self.direct[u] |= 1 << v
        self.ancestors = self.direct[:]
        for u in range(self.n):
            for v in range(self.n):
                if self.ancestors[v] >> u & 1:
                    self.ancestors[v] |= self.ancestors[u]

    def begun(self, s, done):
        return self.starts[s] or self.p.accessors[s] & done

    def lasts(self, s, done):
        return self.stays[s] or self.p.accessors[s] & ~done

    def ready(self, v, done):
        return not done >> v & 1 and not self.direct[v] & ~done

    def memory(self, done):
        live = (s for s in range(self.m) if self.begun(s, done) and self.lasts(s, done))
        return sum(self.p.size[s] for s in live)

    def cost(self, done, v):
        new = (s for s in self.p.uses[v] if not self.begun(s, done))
        return self.memory(done) + self.p.work[v] + sum(self.p.size[s] for s in new)


def members(mask):
    return [v for v in range(mask.bit_length()) if mask >> v & 1]


class Packing:
    """Chains that show what is live when all of `lower`, and none outside `upper`, has run, and
    `v` (if not None) runs. `sum`: bytes shown."""

    def __init__(self, side, lower, upper, v=None):
        p = side.p
        self.side, self.lower, self.upper = side, lower, upper
        self.uses = set() if v is None else p.uses[v]
        others = set(range(p.m)) - self.uses
        self.lasts = {s for s in range(p.m) if side.lasts(s, upper)}  # rule 3
        self.constant = {s for s in others & self.lasts if side.begun(s, lower)}
        self.sum = (0 if v is None else p.own(v)) + sum(p.size[s] for s in self.constant)
        self.load = [0] * p.m

    def follow(self, line, chain):
        """Rules 2, 3 and 5; returns the storages."""
        storages, runs, uses = chain[::2], chain[1::2], self.side.p.uses
        demand(len(set(storages)) == len(storages), line, "a storage twice in a chain")
        demand(self.side.begun(storages[0], self.lower), line, "rule 2")
        demand(storages[-1] in self.lasts, line, "rule 3")
        for s, run, t in zip(storages, runs, storages[1:], strict=False):
            demand(all(self.upper >> u & 1 for u in run), line, "rule 5: outside T")
            demand(s in uses[run[0]] and t in uses[run[-1]], line, "rule 5: no access")
            links = zip(run, run[1:], strict=False)
            demand(all(self.side.direct[x] >> u & 1 for x, u in links), line, "rule 5: no link")
        return storages

    def count(self, weight, storages):
        self.sum += weight
        for s in storages:
            self.load[s] += weight

    def add(self, line, weight, *chain):
        storages = self.follow(line, chain)
        demand(not set(storages) & self.uses, line, "rule 1")
        demand(not set(storages) & self.constant, line, "rule 4")
        self.count(weight, storages)
        demand(all(self.load[s] <= self.side.p.size[s] for s in storages), line, "overloaded")


class Trap:
    """A trap proof; a reverse one is a forward one of the reversed program."""

    def __init__(self, program, line, edges, order, bound, way, count, *more):
        self.side, self.bound, n = Side(program, edges, way), bound, program.n
        listed = (order if way == "f" else order[::-1])[:count] + list(more)
        demand(len(set(listed)) == len(listed), line, "a statement stands twice in T")
        demand(len(listed) < n, line, "T is everything")
        self.T = sum(1 << v for v in listed)
        closed = [not self.side.direct[v] & ~self.T for v in range(n)]
        demand(all(closed[v] for v in listed), line, "T is not closed")
        self.left = {v for v in set(range(n)) - set(listed) if closed[v]}
        self.anchors, self.chains, self.at, self.packing = (), [], None, None

    def set_base(self, line, *anchors):
        self.close(line)
        self.at, self.anchors, self.chains, lower, ancestors = None, anchors, [], 0, 0
        demand(len(set(anchors)) == len(anchors), line, "an anchor stands twice")
        for a in anchors:
            demand(self.T >> a & 1, line, "an anchor outside T")
            ancestors |= self.side.ancestors[a]
            lower |= self.side.ancestors[a] | 1 << a
        demand(not any(ancestors >> a & 1 for a in anchors), line, "an anchor before another")
        self.packing = Packing(self.side, lower, self.T)

    def set_exit(self, line, v):
        self.close(line)
        demand(v in self.left, line, "not an exit, or listed twice")
        self.left.remove(v)
        before = self.side.ancestors[v]
        demand(all(before >> a & 1 for a in self.anchors), line, "an anchor is no ancestor")
        self.at, self.packing = line, Packing(self.side, before, self.T, v)
        for weight, storages in self.chains:
            if not set(storages) & (self.packing.uses | self.packing.constant):
                self.packing.count(weight, storages)

    def set_chain(self, line, weight, *chain):
        if self.at is not None:
            self.packing.add(line, weight, *chain)
            return
        storages = self.packing.follow(line, chain)
        used = {s for _, other in self.chains for s in other}
        demand(not used & set(storages), line, "a storage twice in the base")
        demand(all(weight <= self.side.p.size[s] for s in storages), line, "too heavy")
        self.chains.append((weight, storages))

    def close(self, line, end=False):
        demand(self.at is None or self.packing.sum >= self.bound, self.at, "too cheap")
        demand(not end or not self.left, line, f"exits that are not listed: {self.left}")


class Probes:
    """Edges that hold in every order below the bound."""

    def __init__(self, program, bound):
        self.p, self.bound, self.edges, self.circle, self.at = program, bound, [], False, None

    def set_edge(self, line, u, v):
        self.close(line)
        demand(not self.circle, line, "behind an edge that closes a circle")
        demand(u != v, line, "an edge to itself")
        side = Side(self.p, self.edges, "f")
        later = {x for x in range(self.p.n) if side.ancestors[x] & (1 << u | 1 << v)} | {u, v}
        trap = sum(1 << x for x in set(range(self.p.n)) - later)
        self.at, self.packing = line, Packing(side, side.ancestors[v], trap, v)
        self.circle = side.ancestors[u] >> v & 1
        self.edges.append((u, v))

    def set_chain(self, line, weight, *chain):
        self.packing.add(line, weight, *chain)

    def close(self, line):
        demand(self.at is None or self.packing.sum >= self.bound, self.at, "too cheap")


class Search:
    """An exact search. ran[way]: what has run from the start (f), from the end (r)."""

    def __init__(self, program, edges, bound):
        self.p, self.bound, self.all = program, bound, (1 << program.n) - 1
        self.sides = {way: Side(program, edges, way) for way in "fr"}
        self.ran = {"f": 0, "r": 0}
        self.stuck, self.states, self.at, self.packing, self.goal = False, None, None, None, 0

    def middle(self):
        return self.all & ~self.ran["f"] & ~self.ran["r"]

    def expect(self, line, side, lower, upper, goal=None):
        """The chains to come show the least memory between two sets; one step needs none."""
        self.at, self.packing, self.goal, self.chained = line, None, goal, False
        if goal is None and (upper & ~lower).bit_count() == 1:
            demand(side.memory(upper) <= side.memory(lower), line, "memory grows")
            return
        self.packing = Packing(side, lower, upper)
        self.goal = side.memory(upper) if goal is None else goal

    def set_chain(self, line, weight, *chain):
        demand(self.packing, self.at, "no chains are needed")
        self.packing.add(line, weight, *chain)
        self.chained = True

    def close(self, line):
        """All chains were read."""
        if self.packing:
            demand(self.packing.sum >= self.goal, self.at, "not shown to be least")
        self.packing = None

    def pivot(self, line, way, v):
        side, other = self.sides[way], self.sides["fr".replace(way, "")]
        reached = side.ancestors[v] | 1 << v
        demand(reached | other.ancestors[v] == self.all, line, "not comparable with all")
        demand(not self.ran[way] & ~reached, line, "what has run is not before it")
        demand(not reached & ~(self.ran[way] | self.middle()), line, "outside the middle")
        self.ran[way] = reached

    def commit_each(self, line, way, *listed):
        side = self.sides[way]
        for v in listed:
            ran = self.ran[way]
            demand(self.middle() >> v & 1 and side.ready(v, ran), line, "not ready")
            demand(side.memory(ran | 1 << v) <= side.memory(ran), line, "memory grows")
            self.ran[way] |= 1 << v

    def commit(self, line, way, *listed):
        side, lower = self.sides[way], self.ran[way]
        for v in listed:
            demand(self.middle() >> v & 1, line, "not in the middle, or twice")
            self.ran[way] |= 1 << v
        upper = self.ran[way]
        demand(all(not side.direct[v] & ~upper for v in listed), line, "not a down-set")
        self.expect(line, side, lower, upper)

    def explore(self, line, way):
        self.side, self.S, self.R = self.sides[way], self.ran[way], self.ran[way] | self.middle()
        self.left = self.middle()

    def set_block(self, line, *listed):
        self.close_block()
        side, self.block, middle = self.side, 0, self.R & ~self.S
        demand(listed, line, "an empty block")
        for v in listed:
            demand(self.left >> v & 1, line, "not in the middle, or in a block already")
            self.block |= 1 << v
            self.left &= ~(1 << v)
        rest = middle & ~self.block
        for v in members(middle):
            other = self.block if rest >> v & 1 else rest
            demand(not side.direct[v] & other, line, "a dependence joins blocks")
        for s in range(self.p.m):
            both = self.p.accessors[s] & self.block and self.p.accessors[s] & rest
            constant = side.begun(s, self.S) and side.lasts(s, self.R)
            demand(not both or constant, line, "a storage joins blocks")
        self.line, self.states = line, None
        self.expect(line, side, self.S, self.S | self.block, side.memory(self.S))

    def close_block(self):
        if self.states:
            demand(0 in self.claimed, self.line, "state 0 is not claimed")
            self.stuck |= all(self.states[i] != self.S | self.block for i in self.claimed)

    def state(self, line, i):
        demand(i < len(self.states), line, "no such state")
        return self.states[i]

    def steps(self, state):
        return [v for v in members(self.block) if self.side.ready(v, state)]

    def set_state(self, line, i, v):
        state = self.state(line, i)
        demand(v in self.steps(state), line, "not ready")
        demand(state | 1 << v not in self.number, line, "the state is declared already")
        self.number[state | 1 << v] = len(self.states)
        self.states.append(state | 1 << v)

    def claim(self, line, i):
        """State i, which may be claimed."""
        state = self.state(line, i)
        demand(i not in self.claimed, line, "the state is claimed already")
        demand(self.side.memory(state) >= self.side.memory(self.S), line, "below the start")
        return state

    def claimed_state(self, line, i):
        state = self.state(line, i)
        demand(i in self.claimed, line, "the state is not claimed")
        return state

    def claim_next(self, line, i):
        state = self.claim(line, i)
        for v in self.steps(state):
            to = self.number.get(state | 1 << v)
            high = self.side.cost(state, v) >= self.bound
            demand(high or to in self.claimed, line, "what it leads to is not claimed")
        self.claimed.add(i)

    def claim_larger(self, line, i, larger):
        state, upper = self.claim(line, i), self.claimed_state(line, larger)
        demand(not state & ~upper and state != upper, line, "not larger")
        self.claimed.add(i)
        self.expect(line, self.side, state, upper)

    def claim_reached(self, line, i, start, *steps):
        state, at = self.claim(line, i), self.claimed_state(line, start)
        for v in steps:
            demand(v in self.steps(at), line, "not ready")
            demand(self.side.cost(at, v) < self.bound, line, "the step is not below the bound")
            at |= 1 << v
        demand(at == state, line, "another state is reached")
        self.claimed.add(i)

    def read(self, line, kind, arguments):
        if kind in ("s", "n2", "d", "r") and self.states is None:
            demand(not self.chained, self.line, "states behind chains of the block")
            self.packing, self.states, self.claimed = None, [self.S], set()
            self.number = {self.S: 0}
        if kind != "c":
            self.close(line)
        reader = {"y": self.pivot, "k": self.commit_each, "K": self.commit, "m": self.explore}
        reader |= {"g": self.set_block, "s": self.set_state, "n2": self.claim_next}
        reader |= {"d": self.claim_larger, "r": self.claim_reached, "c": self.set_chain}
        if kind != "q":
            reader[kind](line, *arguments)
            return
        self.close_block()
        demand(not self.left, line, "statements that are in no block")
        demand(self.stuck, line, "all blocks can be completed")


def check(program, lines):
    """(peak, bound), or raises Refuted."""
    trap = probes = search = order = None
    proved = False
    for line, kind, arguments in lines:
        if kind in "tx" and probes:
            probes.close(line)
            demand(not probes.circle, line, "behind an edge that closes a circle")
        if search:
            search.read(line, kind, arguments)
        elif kind == "h":
            demand(arguments == [program.sha256], line, "another program")
        elif kind == "n":
            demand(arguments == [program.n, program.m], line, "other sizes")
        elif kind == "o":
            order, done = arguments, 0
            demand(sorted(order) == list(range(program.n)), line, "not a permutation")
            for v in order:
                demand(not program.direct[v] & ~done, line, f"{v} comes too early")
                done |= 1 << v
        elif kind == "u":
            peak = program.peak(order)
            demand(arguments == [peak], line, f"the peak is {peak}")
        elif kind == "l":
            bound = arguments[0]
            demand(bound <= peak, line, "the bound is above the peak")
        elif kind == "f":
            need, proved = program.floor(*arguments), True
            demand(need >= bound, line, f"only {need} bytes")
        elif kind == "a":
            probes = probes or Probes(program, bound)
            probes.set_edge(line, *arguments)
            proved = probes.circle
        elif kind == "t":
            edges, proved = probes.edges if probes else [], True
            trap = Trap(program, line, edges, order, bound, *arguments)
        elif kind == "x":
            search = Search(program, probes.edges if probes else [], bound)
            proved = True
        elif kind == "c":
            (trap or probes).set_chain(line, *arguments)
        elif kind in "be":
            (trap.set_base if kind == "b" else trap.set_exit)(line, *arguments)
        elif kind == "q":
            if trap:
                trap.close(line, end=True)
            elif probes:
                probes.close(line)
            demand(proved or bound == 0, line, "no proof")
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
