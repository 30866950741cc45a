"""Writes search proofs and probing edges for small programs, by brute force, in many random ways.

For tests of the checkers only: it tries what the format allows (doc/certificate.md), not what is
short. Sets of statements are integers, as in oracle.py.
"""

import hashlib
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))

import oracle  # noqa: E402
from oracle import members  # noqa: E402


class Side:
    """A program or its reversed one, with what has run and what is to be reached."""

    def __init__(self, p, letter, bound):
        self.p, self.letter, self.bound = p, letter, bound
        self.S, self.R = 0, (1 << p.n) - 1

    def name(self, v):
        return v if self.letter == "f" else self.p.n - 1 - v

    def names(self, mask):
        return [self.name(v) for v in members(mask)]

    def mirror(self, mask):
        return oracle.mask_of(self.p.n - 1 - v for v in members(mask))

    def ready(self, done):
        return [v for v in self.p.ready(done) if self.R >> v & 1]

    def between(self, low, high):
        """All down-sets between two."""
        layer, seen = {low}, {low}
        while layer:
            layer = {done | 1 << v for done in layer for v in self.p.ready(done) if high >> v & 1}
            seen |= layer
        return seen

    def least(self, low, high):
        memory = self.p.memory(high)
        return all(memory <= self.p.memory(done) for done in self.between(low, high))

    def reachable(self, low, allowed):
        """Down-sets that steps below the bound lead to, through `allowed` statements."""
        seen, todo = {low}, [low]
        while todo:
            done = todo.pop()
            for v in self.ready(done):
                more = done | 1 << v
                if allowed >> v & 1 and more not in seen and self.p.cost(done, v) < self.bound:
                    seen.add(more)
                    todo.append(more)
        return seen

    def chains(self, low, high):
        """Lines that show the least memory between two states."""
        constant = oracle.constants(self.p, high, low, None)
        for chain in oracle.pack(self.p, high, low, constant, self.p.size):
            yield oracle.chain_line(*chain, self.name)


def line(*parts):
    return " ".join(str(part) for part in parts)


def pivots(side):
    p = side.p
    for v in range(p.n):
        after = oracle.mask_of(u for u in range(p.n) if p.ancestors[u] >> v & 1)
        done = p.ancestors[v] | 1 << v
        if done | after == (1 << p.n) - 1 and not side.S & ~done and not done & ~side.R:
            yield v, done


def commits(sides, rng, must):
    """Commits while there are any; yields their lines. `must`: none may be left forward."""
    while True:
        side = rng.choice(sides) if rng.random() < 0.5 else sides[0]
        other = sides[0] if side is sides[1] else sides[1]
        found = [done for done in side.reachable(side.S, side.R) if done != side.S]
        lower = [done for done in found if side.p.memory(done) <= side.p.memory(side.S)]
        pivot = [(v, done) for v, done in pivots(side) if done != side.S]
        single = [
            v for v in side.ready(side.S) if side.p.memory(side.S | 1 << v) <= side.p.memory(side.S)
        ]
        if side is sides[0] and not lower:
            return
        if not must and rng.random() < 0.2:
            return
        if pivot and rng.random() < 0.5:
            v, Q = rng.choice(pivot)
            yield line("y", side.letter, side.name(v))
        elif single and rng.random() < 0.5:
            v = rng.choice(single)
            Q = side.S | 1 << v
            yield line("k", side.letter, side.name(v))
        elif lower:
            target = rng.choice(lower)
            states = side.between(side.S, target)
            memory = min(side.p.memory(done) for done in states)
            Q = rng.choice([s for s in states if side.p.memory(s) == memory and s != side.S] or [0])
            if not Q:
                continue
            more = side.names(Q & ~side.S)
            rng.shuffle(more)
            yield line("K", side.letter, *more)
            if len(more) > 1:
                yield from side.chains(side.S, Q)
        else:
            continue
        side.S = Q
        other.R = side.mirror((1 << side.p.n) - 1 & ~Q)


def components(side):
    """Blocks of the middle, as masks."""
    p, middle = side.p, side.R & ~side.S
    blocks = []
    for v in members(middle):
        joined = 1 << v | (p.direct[v] & middle)
        for s in p.uses[v]:
            begun = p.live_in[s] or p.accessors[s] & side.S
            lasts = p.live_out[s] or p.accessors[s] & ~side.R
            if not (begun and lasts):
                joined |= p.accessors[s] & middle
        for block in [b for b in blocks if b & joined]:
            blocks.remove(block)
            joined |= block
        blocks.append(joined)
    return blocks


class Claims:
    """The lines of a block; raises Below if it goes below its start."""

    class Below(Exception):
        pass

    def __init__(self, side, block, rng):
        self.side, self.block, self.rng = side, block, rng
        self.number, self.claimed, self.lines = {side.S: 0}, set(), []
        self.start = side.p.memory(side.S)
        self.claim(side.S)

    def declare(self, state):
        if state not in self.number:
            p = self.side.p
            last = [
                v
                for v in members(state & ~self.side.S)
                if not any(p.direct[x] >> v & 1 for x in members(state))
            ]
            v = self.rng.choice(last)
            before = self.declare(state & ~(1 << v))
            self.number[state] = len(self.number)
            self.lines.append(line("s", before, self.side.name(v)))
        return self.number[state]

    def claim(self, state):
        p, side, rng = self.side.p, self.side, self.rng
        if state in self.claimed:
            return
        if p.memory(state) < self.start:
            raise self.Below
        if rng.random() < 0.4:
            larger = [
                u
                for u in side.between(state, state | self.block)
                if u != state
                and self.start <= p.memory(u) <= p.memory(state)
                and side.least(state, u)
            ]
            if larger:
                return self.commit(state, rng.choice(larger))
        for v in side.ready(state):
            if self.block >> v & 1 and p.cost(state, v) < side.bound:
                self.claim(state | 1 << v)
        if state not in self.claimed:
            self.lines.append(line("n", self.declare(state)))
            self.claimed.add(state)

    def commit(self, state, to):
        self.claim(to)
        if state in self.claimed:
            return
        numbers = self.declare(state), self.declare(to)
        self.lines.append(line("d", *numbers))
        if (to & ~state).bit_count() > 1:
            self.lines.extend(self.side.chains(state, to))
        self.claimed.add(state)
        for _ in range(self.rng.choice([0, 0, 1, 3])):
            path, done = [], state
            for _ in range(self.rng.randint(1, 3)):
                steps = [
                    v
                    for v in self.side.ready(done)
                    if self.block >> v & 1 and self.side.p.cost(done, v) < self.side.bound
                ]
                if steps:
                    path.append(self.rng.choice(steps))
                    done |= 1 << path[-1]
            if done not in self.claimed:
                names = map(self.side.name, path)
                self.lines.append(line("r", self.declare(done), self.number[state], *names))
                self.claimed.add(done)


def explore(side, rng):
    """Lines from m on; None if they cannot be had from here."""
    parts = components(side)
    if rng.random() < 0.3 and len(parts) > 1:
        parts = [parts[0] | parts[1], *parts[2:]]
    if rng.random() < 0.1:
        parts = [side.R & ~side.S]
    rng.shuffle(parts)
    for blocks in (parts, [side.R & ~side.S]):
        lines, stuck = [line("m", side.letter)], False
        try:
            for block in blocks:
                names = side.names(block)
                rng.shuffle(names)
                lines.append(line("g", *names))
                least = min(side.p.memory(s) for s in side.between(side.S, side.S | block))
                if least >= side.p.memory(side.S) and rng.random() < 0.4:
                    lines.extend(side.chains(side.S, side.S | block))
                    continue
                claims = Claims(side, block, rng)
                stuck |= side.S | block not in claims.claimed
                lines.extend(claims.lines)
        except Claims.Below:
            continue
        if stuck:
            return lines
    return None


def probes(p, bound, rng):
    """Edges that hold in every order below the bound: (lines, program with them, circle)."""
    lines = []
    for _ in range(rng.choice([0, 0, 1, 2, 4])):
        options = []
        for v in range(p.n):
            for u in range(p.n):
                if u == v or p.ancestors[v] >> u & 1:
                    continue
                after = 1 << u | 1 << v
                for x in range(p.n):
                    if p.ancestors[x] & (1 << u | 1 << v):
                        after |= 1 << x
                trap = (1 << p.n) - 1 & ~after
                if p.ancestors[v] & ~trap:
                    continue
                cost, chains = oracle.exit_cost(p, trap, v)
                if cost >= bound:
                    options.append((u, v, chains))
        if not options:
            break
        u, v, chains = rng.choice(options)
        lines.append(line("a", u, v))
        lines.extend(oracle.chain_line(*c, lambda i: i) for c in chains)
        if p.ancestors[u] >> v & 1:
            return lines, p, True
        p = with_edge(p, u, v)
    return lines, p, False


def with_edge(p, u, v):
    q = object.__new__(oracle.Program)
    q.__dict__.update(p.__dict__)
    q.direct = list(p.direct)
    q.direct[v] |= 1 << u
    q.ancestors = list(p.ancestors)
    for x in range(p.n):
        if x == v or q.ancestors[x] >> v & 1:
            q.ancestors[x] |= q.ancestors[u] | 1 << u
    return q


def trap(p, order, bound, rng):
    """Lines of a trap that proves the bound; [] if the best one does not."""
    if rng.random() < 0.5:
        shown, inside = oracle.greedy_trap(p)
        lines = list(oracle.trap_lines(p, "f", order, inside, bound, rng))
    else:
        back = p.reversed()
        shown, inside = oracle.greedy_trap(back)
        turned = [p.n - 1 - v for v in reversed(order)]
        name = Side(back, "r", bound).name
        lines = list(oracle.trap_lines(back, "r", turned, inside, bound, rng, name))
    return lines if shown >= bound else []


def certificate(text, rng):
    """A search certificate (str) of the optimum of a program, or None if none was found."""
    p = oracle.Program(json.loads(text))
    bound, order = p.optimum()
    if p.n == 0:
        return None
    edges, q, circle = probes(p, bound, rng) if rng.random() < 0.5 else ([], p, False)
    proof = trap(q, order, bound, rng) if edges and not circle and rng.random() < 0.5 else []
    if not circle and not proof:
        sides = [Side(q, "f", bound), Side(q.reversed(), "r", bound)]
        if rng.random() < 0.5:
            sides.reverse()
        end = None
        for must in (False, True):
            if end is None:
                proof.extend(commits(sides, rng, must))
                end = explore(sides[0], rng)
        if end is None:
            return None
        proof = ["x", *proof, *end]
    head = [
        "p peakproof 1",
        "h " + hashlib.sha256(text.encode()).hexdigest(),
        f"n {p.n} {p.m}",
        line("o", *order),
        f"u {bound}",
        f"l {bound}",
    ]
    return "\n".join([*head, *edges, *proof, "q", ""])


def corpus(seed, count, n=None):
    """Yields (program text, certificate text)."""
    i = 0
    while count:
        rng = random.Random(f"search {seed} {i}")
        i += 1
        text = json.dumps(oracle.random_program(rng, n), separators=(",", ":")) + "\n"
        found = certificate(text, rng)
        if found:
            count -= 1
            yield text, found
