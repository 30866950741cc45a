#!/usr/bin/env python3
"""A second checker of certificates, written from doc/certificate.md alone.

usage: check2.py PROGRAM.json PROOF.cert

It gives the verdicts, lines and exit codes of peakproof-check, but reasons in its own words and no
line of a malformed program. Sets of statements are integers: bit v is statement v. Sizes are bytes.
"""

import copy
import hashlib
import json
import re
import sys

# Kinds of JSON values: type, [kind of items], {key: kind}, and SOME: a number or a list of numbers.
SOME = (int, [int])
STATEMENT = {"work": SOME, "reads": [SOME], "writes": [SOME], "overwrites": [SOME]}
STORAGE = {"bytes": int, "live_in": bool, "live_out": bool}
PROGRAM = {"peakproof": int, "statements": [STATEMENT], "storages": [STORAGE], "order": [[int]]}
REQUIRED = {"peakproof", "statements", "storages", "bytes"}

# Lines as KIND:ARGUMENTS:LETTERS, the letters of what may follow (a line c changes nothing there).
# Arguments, those behind a * any number of times: fixed words, a Direction, Bytes or other numbers,
# a Weight, a sIze, a Prefix, statements V, Storages, Runs. The line n of a search has the kind n2.
LINES = """p:F1:h h:H:n n:II:o o:*V:u u:B:l l:B:aftxq f:*V:q t:DP*V:beq b:*V:bceq e:V:bceq
    a:VV:actxq c:WS*RS: x::ykKm y:DV:ykKm k:D*V:ykKm K:D*V:cykKm m:D:gq g:*V:cgsndrq
    s:BV:sndrgq n2:B:sndrgq d:BB:csndrgq r:BB*V:sndrgq q::"""
FORMS = {kind: (form, set(follow)) for kind, form, follow in (x.split(":") for x in LINES.split())}
LARGEST = 2**63 - 1
NUMBER = "0|[1-9][0-9]{0,18}"
WORDS = {"F": "peakproof", "1": "1", "H": "[0-9a-f]{64}", "D": "[fr]", "W": "[1-9][0-9]{0,18}"}


class Fault(Exception):
    """Exit code, verdict, and reason."""


def require(good, what):
    if not good:
        raise Fault(65, "MALFORMED", "not " + what)


def demand(good, reason):
    if not good:
        raise Fault(1, "REFUTED", reason)


def mask_of(statements):
    demand(len(set(statements)) == len(statements), "a statement stands twice")
    return sum(1 << v for v in statements)


def read_json(data):
    """Objects become tuples of pairs; a key with an escape keeps a backslash."""
    text = re.sub(r"\\[^\x00-\x1f]", r"\\\\", data.decode("latin-1"))
    hooks = ["parse_int", "parse_float", "parse_constant"]
    hooks = dict.fromkeys(hooks, lambda x: int(x) if re.fullmatch(NUMBER, x) else None)
    try:
        return json.loads(text, object_pairs_hook=tuple, **hooks)
    except (ValueError, RecursionError) as error:
        raise Fault(65, "MALFORMED", f"not JSON: {error}") from None


def read_value(value, kind):
    """A value that must be of this kind, without what is not known in it; objects become dicts."""
    kind = SOME[isinstance(value, list)] if kind is SOME else kind
    outer = {list: list, dict: tuple}.get(type(kind), kind)
    require(type(value) is outer, f"a value as {kind}")
    if outer is list:
        return [read_value(item, kind[0]) for item in value]
    if outer is tuple:
        keys = [key for key, _ in value]
        require("\\" not in "".join(keys), "a key without escapes")
        require(all(keys.count(key) <= 1 for key in kind), "a key that stands once")
        require(kind.keys() & REQUIRED <= set(keys), "with all keys")
        return {key: read_value(item, kind[key]) for key, item in value if key in kind}
    return value


class Program:
    """n, m: statements, storages. work[v], size[s]: bytes. uses[v]: set of storages. starts[s],
    stays[s]: does s exist at the start, at the end? accessors[s], direct[v]: masks of statements;
    direct[v] holds the direct predecessors of v. Statement -1 is none, without work and uses."""

    def __init__(self, data):
        self.sha256 = hashlib.sha256(data).hexdigest()
        fields = read_value(read_json(data), PROGRAM)
        require(fields["peakproof"] == 1, "version 1")
        statements, storages = fields["statements"], fields["storages"]
        self.n, self.m, self.all = len(statements), len(storages), (1 << len(statements)) - 1
        self.size = [s["bytes"] for s in storages]
        self.starts = [s.get("live_in", False) for s in storages]
        self.stays = [s.get("live_out", False) for s in storages]
        works = [v.get("work", 0) for v in statements] + [0]
        self.work = [sum(work) if isinstance(work, list) else work for work in works]
        require(sum(self.size) + max(self.work) <= LARGEST, "at most 2^63-1 bytes")
        self.uses, self.direct = [set() for _ in works], [0] * self.n
        self.accessors, self.effects = [0] * self.m, [{} for _ in storages]
        for v, statement in enumerate(statements):
            for key in ("reads", "writes", "overwrites"):
                for access in statement.get(key, []):
                    self.add_access(v, access, key != "reads")
        for pair in fields.get("order", []):
            require(len(pair) == 2 and pair[0] < pair[1] < self.n, "an order")
            self.direct[pair[1]] |= 1 << pair[0]

    def add_access(self, v, access, writes):
        """effects[s] has the mask of statements with an effect (from, to, writes) on s."""
        whole = isinstance(access, int)
        require(whole or len(access) == 3, "an access")
        s, start, end = (access, -1, LARGEST + 1) if whole else access  # may have no bytes at all
        require(s < self.m and (whole or start < end <= self.size[s]), "an access to its bytes")
        for (start2, end2, writes2), who in self.effects[s].items():
            if (writes or writes2) and start < end2 and start2 < end:
                self.direct[v] |= who & ~(1 << v)
        effect = (start, end, writes)
        self.effects[s][effect] = self.effects[s].get(effect, 0) | 1 << v
        self.accessors[s] |= 1 << v
        self.uses[v].add(s)

    def reversed(self):
        """The reversed program, with the same numbers of statements."""
        other, every = copy.copy(self), range(self.n)
        other.starts, other.stays = self.stays, self.starts
        other.direct = [mask_of([x for x in every if self.direct[x] >> v & 1]) for v in every]
        return other

    def ancestors(self, statements):
        """What has to run before any of a mask of statements."""
        found, new = 0, statements
        while new:
            u = new.bit_length() - 1
            new = (new ^ 1 << u) | self.direct[u] & ~found
            found |= self.direct[u]
        return found

    def ready(self, v, done):
        return not done >> v & 1 and not self.direct[v] & ~done

    def cost(self, done, v=-1):
        """Bytes while v runs behind `done`; without v, between two statements."""
        return Packing(self, done, done, v).sum


class Packing:
    """What surely exists while v runs, when all of `lower`, and nothing outside `upper`, has run:
    storages that are present then, and what chains show of others. `sum`: bytes."""

    def __init__(self, p, lower, upper, v=-1, is_base=False):
        self.p, self.upper, self.is_base = p, upper, is_base
        self.begun = {s for s in range(p.m) if p.starts[s] or p.accessors[s] & lower}
        self.lasting = {s for s in range(p.m) if p.stays[s] or p.accessors[s] & ~upper}
        self.present = self.begun & self.lasting | p.uses[v]
        self.sum = p.work[v] + sum(p.size[s] for s in self.present)
        self.room, self.chains = p.size[:], []

    def add(self, weight, *chain):
        """Follows a chain; for a base, rules 1 and 4 are left to the exits."""
        storages, p = chain[::2], self.p
        demand(len(set(storages)) == len(storages), "rule 1: twice")
        demand(storages[0] in self.begun and storages[-1] in self.lasting, "rule 2 or 3")
        for s, run, t in zip(storages, chain[1::2], storages[1:]):
            demand(all(self.upper >> u & 1 for u in run), "rule 5: outside")
            demand(s in p.uses[run[0]] and t in p.uses[run[-1]], "rule 5: no access")
            demand(all(p.direct[x] >> u & 1 for x, u in zip(run, run[1:])), "rule 5: no link")
        demand(self.is_base or self.present.isdisjoint(storages), "rule 1 or 4")
        self.count(weight, storages)

    def count(self, weight, storages):
        self.sum += weight
        self.chains.append((weight, storages))
        for s in storages:
            demand(weight <= self.room[s], "a storage carries more than its size")
            self.room[s] -= self.room[s] if self.is_base else weight


class Proof:
    """A certificate, read for its form first, then from top to bottom; `place` was read last."""

    def __init__(self):
        self.place, self.lines = "program", []
        self.limits = {"I": 2**31 - 3, "B": LARGEST + 1, "W": LARGEST + 1}

    def read_lines(self, data):
        *texts, unfinished = data.decode("latin-1").split("\n")
        follow = {"p"}
        for number, text in enumerate(texts, 1):
            self.place, (letter, *words) = f"line {number}", text.split(" ")
            require(letter in follow, "a line that can stand here")
            kind = "n2" if letter == "n" and len(follow) > 1 else letter
            head, _, tail = FORMS[kind][0].partition("*")
            kinds = head + tail * ((len(words) - len(head)) // (len(tail) or 1))
            require(len(words) == len(kinds) and (kind != "f" or len(words) < 2), "its arguments")
            arguments = [self.read_word(*each) for each in zip(kinds, words)]
            if kind == "n":
                self.limits |= {"V": arguments[0], "S": arguments[1], "P": arguments[0] + 1}
            follow = follow if kind == "c" else FORMS[kind][1]
            self.lines.append((self.place, letter, arguments))
        self.place = f"line {len(texts) + 1}"
        require(not follow and not unfinished, "a whole certificate")
        self.lines.reverse()

    def read_word(self, kind, word):
        if kind == "R":
            return [self.read_word("V", part) for part in word.split(",")]
        require(re.fullmatch(WORDS.get(kind, NUMBER), word), "a proper argument")
        if kind in self.limits:
            require(int(word) < self.limits[kind], "within its limits")
        return int(word) if kind in self.limits else word

    def next(self):
        return self.lines[-1][1]

    def take(self):
        self.place, _, arguments = self.lines.pop()
        return arguments

    def follow_chains(self, packing, goal):
        """What the chains show is named by the line that they stand behind."""
        place = self.place
        while self.next() == "c":
            packing.add(*self.take())
        self.place = place
        demand(packing.sum >= goal, "too little is shown")

    def expect_least(self, p, lower, upper):
        """Chains show that M is smallest at `upper`; one statement needs none."""
        if (upper & ~lower).bit_count() != 1:
            self.follow_chains(Packing(p, lower, upper), p.cost(upper))
        else:
            demand(p.cost(upper) <= p.cost(lower) and self.next() != "c", "grows, or has chains")

    def check(self, p):
        """Returns the verdict on what is true of this program."""
        self.take()
        demand(self.take() == [p.sha256], "another program")
        demand(self.take() == [p.n, p.m], "other sizes")
        order, done, peak = self.take(), 0, p.cost(0)
        demand(sorted(order) == list(range(p.n)), "not a permutation")
        for v in order:
            demand(p.ready(v, done), f"{v} comes too early")
            peak = max(peak, p.cost(done, v))
            done |= 1 << v
        demand(self.take() == [peak], f"the peak is {peak}")
        [self.bound] = self.take()
        demand(self.bound <= peak, "the bound is above the peak")
        self.ways, circle = {"f": p, "r": p.reversed()}, False
        while self.next() == "a" and not circle:
            u, v = self.take()
            demand(u != v, "an edge to itself")
            later = self.ways["r"].ancestors(1 << u | 1 << v) | 1 << u | 1 << v
            self.follow_chains(Packing(p, p.ancestors(1 << v), p.all & ~later, v), self.bound)
            circle = p.ancestors(1 << u) >> v & 1
            p.direct[v] |= 1 << u
            self.ways["r"].direct[u] |= 1 << v
        kind, arguments = self.next(), self.take()
        demand(kind == "q" or not circle, "behind an edge that closes a circle")
        if kind == "f":
            need = Packing(p, 0, p.all if arguments else 0, *arguments).sum
            demand(need >= self.bound, f"only {need} bytes")
        elif kind == "t":
            self.check_trap(order, *arguments)
        elif kind == "x":
            self.check_search()
        else:
            demand(circle or self.bound == 0, "no proof")
        optimal = " optimal" if peak == self.bound else ""
        return f"s VERIFIED peak {peak} bound {self.bound}{optimal}"

    def check_trap(self, order, way, count, *more):
        p = self.ways[way]
        listed = [*(order if way == "f" else order[::-1])[:count], *more]
        trap = mask_of(listed)
        demand(trap != p.all, "T is everything")
        demand(not any(p.direct[v] & ~trap for v in listed), "T is not closed")
        left = mask_of([v for v in range(p.n) if p.ready(v, trap)])
        base, anchors = Packing(p, 0, trap, is_base=True), 0
        while self.next() != "q":
            if self.next() == "b":
                anchors = mask_of(self.take())
                before = p.ancestors(anchors)
                demand(not anchors & (~trap | before), "an anchor outside T, or before another")
                base = Packing(p, before | anchors, trap, is_base=True)
                self.follow_chains(base, 0)
                continue
            [v] = self.take()
            demand(left >> v & 1, "not an exit, or listed already")
            left ^= 1 << v
            before = p.ancestors(1 << v)
            demand(not anchors & ~before, "an anchor is no ancestor")
            packing = Packing(p, before, trap, v)
            for weight, storages in base.chains:
                if packing.present.isdisjoint(storages):
                    packing.count(weight, storages)
            self.follow_chains(packing, self.bound)
        self.take()
        demand(not left, "exits are left out")

    def check_search(self):
        ran = {"f": 0, "r": 0}
        while self.next() != "m":
            kind, (way, *listed) = self.next(), self.take()
            p, other = self.ways[way], "r" if way == "f" else "f"
            if kind == "y":
                upper = p.ancestors(1 << listed[0]) | 1 << listed[0]
                demand(not ran[way] & ~upper and not upper & ran[other], "not in the middle")
                demand(upper | self.ways[other].ancestors(1 << listed[0]) == p.all, "incomparable")
                ran[way] = upper
                continue
            for added in [listed] if kind == "K" else [[v] for v in listed]:
                upper = ran[way] | mask_of(added)
                demand(not mask_of(added) & (ran["f"] | ran["r"]), "not in the middle")
                demand(not any(p.direct[v] & ~upper for v in added), "not a down-set")
                self.expect_least(p, ran[way], upper)
                ran[way] = upper
        [way] = self.take()
        p, start, middle = self.ways[way], ran[way], self.ways[way].all & ~ran["f"] & ~ran["r"]
        left, stuck = middle, False
        while self.next() == "g":
            block = mask_of(self.take())
            demand(block and not block & ~left, "empty, not in the middle, or in a block already")
            left ^= block
            stuck |= self.check_block(p, start, block, middle ^ block)
        self.take()
        demand(not left, "statements that are in no block")
        demand(stuck, "all blocks can be completed")

    def check_block(self, p, start, block, rest):
        """Is the block stuck? `rest` is all else of the middle."""
        fixed = Packing(p, start, start | block | rest).present
        groups = [p.accessors[s] for s in range(p.m) if s not in fixed]
        groups += [p.direct[v] | 1 << v for v in range(p.n) if (block | rest) >> v & 1]
        joined = any(who & block and who & rest for who in groups)
        demand(not joined, "a dependence or a storage joins blocks")
        if self.next() in "sndr":
            return self.check_states(p, start, block)
        self.follow_chains(Packing(p, start, start | block), p.cost(start))
        demand(self.next() not in "sndr", "states behind chains of the block")
        return False

    def check_states(self, p, start, block):
        """Can no steps below the bound complete the block?"""
        place, states, claimed = self.place, [start], {start: False}
        members, least = [v for v in range(p.n) if block >> v & 1], p.cost(start)
        while self.next() in "sndr":
            kind, (i, *more) = self.next(), self.take()
            demand(i < len(states), "no such state")
            state = states[i]
            if kind == "s":
                demand(more[0] in members and p.ready(more[0], state), "not ready")
                state |= 1 << more[0]
                demand(state not in claimed, "declared already")
                claimed[state] = False
                states.append(state)
                continue
            demand(not claimed[state] and p.cost(state) >= least, "claimed, or below the start")
            if kind == "n":
                for v in members:
                    if p.ready(v, state) and not claimed.get(state | 1 << v):
                        demand(p.cost(state, v) >= self.bound, "it leads to an unclaimed state")
            else:
                demand(more[0] < len(states) and claimed[states[more[0]]], "to no claimed state")
                other = states[more[0]]
                for v in more[1:]:
                    demand(v in members and p.ready(v, other), "not ready")
                    demand(p.cost(other, v) < self.bound, "a step that is not below the bound")
                    other |= 1 << v
                if kind == "r":
                    demand(other == state, "another state is reached")
                else:
                    demand(state != other and not state & ~other, "not larger")
                    self.expect_least(p, state, other)
            claimed[state] = True
        self.place = place
        demand(claimed[start], "state 0 is not claimed")
        return not claimed.get(start | block)


def verdict(program_data, certificate_data):
    """(exit code, verdict line) for the bytes of the two files."""
    proof = Proof()
    try:
        program = Program(program_data)
        proof.read_lines(certificate_data)
        return 0, proof.check(program)
    except Fault as fault:
        code, word, reason = fault.args
        return code, f"s {word} {proof.place}: {reason}"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(64)
    code, message = verdict(*(open(name, "rb").read() for name in sys.argv[1:]))
    print(message)
    sys.exit(code)
