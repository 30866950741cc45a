#!/usr/bin/env python3
"""Oracle for small programs: brute force straight from the definitions of THEORY.md section 1, and
a plain writer of trap certificates. It shares no code with the core or with the checkers.

usage: oracle.py random SEED [STATEMENTS]        prints a random program (JSON)
       oracle.py optimum PROGRAM.json            prints original peak, optimum, floor and best traps
       oracle.py certify PROGRAM.json [KIND]     prints a certificate; KIND: floor, t f, t r, best
       oracle.py corpus SEED COUNT [STATEMENTS]  prints programs with certificates, for mutate

Sets of statements are integers: bit v stands for statement v. All sizes are bytes.
"""

import hashlib
import itertools
import json
import random
import sys
from collections import deque


class Program:
    """A program as in DESIGN.md 3, from the decoded JSON `data`.

    n, m: statements, storages. work[v], size[s]; live_in[s], live_out[s]: bool. uses[v]: sorted
    list of storages. accessors[s]: mask. direct[v]: mask of direct predecessors; ancestors[v] too.
    """

    def __init__(self, data):
        self.n, self.m = len(data["statements"]), len(data["storages"])
        self.size = [s["bytes"] for s in data["storages"]]
        self.live_in = [s.get("live_in", False) for s in data["storages"]]
        self.live_out = [s.get("live_out", False) for s in data["storages"]]
        self.work, effects = [], []
        for statement in data["statements"]:
            work = statement.get("work", 0)
            self.work.append(sum(work) if isinstance(work, list) else work)
            effects.append(
                [(access, kind != "reads") for kind in KINDS for access in statement.get(kind, [])]
            )
        self.uses = [sorted({storage_of(a) for a, _ in e}) for e in effects]
        self.accessors = [0] * self.m
        for v, uses in enumerate(self.uses):
            for s in uses:
                self.accessors[s] |= 1 << v
        self.direct = [0] * self.n
        for u, v in itertools.combinations(range(self.n), 2):
            if any(
                (w1 or w2) and common_byte(a1, a2)
                for (a1, w1), (a2, w2) in itertools.product(effects[u], effects[v])
            ):
                self.direct[v] |= 1 << u
        for before, after in data.get("order", []):
            self.direct[after] |= 1 << before
        self.ancestors = [0] * self.n
        for v in range(self.n):
            for u in members(self.direct[v]):
                self.ancestors[v] |= self.ancestors[u] | 1 << u

    def reversed(self):
        """The reversed program: statement v becomes n - 1 - v (THEORY.md 2)."""
        other = object.__new__(Program)
        n = other.n = self.n
        other.m, other.size = self.m, self.size
        other.live_in, other.live_out = self.live_out, self.live_in
        other.work, other.uses = self.work[::-1], self.uses[::-1]
        other.accessors = [sum(1 << n - 1 - v for v in members(a)) for a in self.accessors]
        other.direct, other.ancestors = [0] * n, [0] * n
        for v in range(n):
            for u in members(self.direct[v]):
                other.direct[n - 1 - u] |= 1 << n - 1 - v
            for u in members(self.ancestors[v]):
                other.ancestors[n - 1 - u] |= 1 << n - 1 - v
        return other

    def live(self, s, done):
        accessors = self.accessors[s]
        return bool(
            (self.live_in[s] or accessors & done) and (self.live_out[s] or accessors & ~done)
        )

    def memory(self, done):
        """M(S)."""
        return sum(self.size[s] for s in range(self.m) if self.live(s, done))

    def cost(self, done, v):
        """c(S, v)."""
        return self.work[v] + sum(
            self.size[s] for s in range(self.m) if s in self.uses[v] or self.live(s, done)
        )

    def peak(self, order):
        """Peak of an order; raises ValueError if it is not legal."""
        if sorted(order) != list(range(self.n)):
            raise ValueError("not a permutation")
        peak, done = self.memory(0), 0
        for v in order:
            if self.direct[v] & ~done:
                raise ValueError(f"statement {v} comes too early")
            peak = max(peak, self.cost(done, v))
            done |= 1 << v
        return peak

    def ready(self, done):
        return [v for v in range(self.n) if not done >> v & 1 and not self.direct[v] & ~done]

    def down_sets(self):
        """All down-sets, smaller ones first."""
        layer = {0}
        while layer:
            yield from sorted(layer)
            layer = {done | 1 << v for done in layer for v in self.ready(done)}

    def optimum(self):
        """(lowest peak, an order that has it), by dynamic programming over all down-sets."""
        best = {0: (self.memory(0), None, 0)}
        for done in self.down_sets():
            for v in self.ready(done):
                peak = max(best[done][0], self.cost(done, v))
                if peak < best.get(done | 1 << v, (peak + 1,))[0]:
                    best[done | 1 << v] = (peak, v, done)
        done, order = (1 << self.n) - 1, []
        peak = best[done][0]
        while done:
            order.append(best[done][1])
            done = best[done][2]
        return peak, order[::-1]

    def floor(self):
        """(bound, statement or None) that holds for every order, and with recomputation."""
        both = [s for s in range(self.m) if self.live_in[s] and self.live_out[s]]
        best = (self.memory(0), None)
        for v in range(self.n):
            need = self.work[v] + sum(self.size[s] for s in {*both, *self.uses[v]})
            if need > best[0]:
                best = (need, v)
        return best

    def best_trap(self):
        """The largest e(T) over all T, by brute force (forward). 0 if there is no statement."""
        sets = list(self.down_sets())
        cheapest = {}  # (T, v) -> min of c(S, v) over down-sets S with anc(v) in S in T
        best = 0
        for trap in sets:
            exits = self.ready(trap)
            for v in range(self.n):
                if trap >> v & 1 or self.ancestors[v] & ~trap:
                    continue
                value = self.cost(trap, v)
                for u in members(trap & ~self.ancestors[v]):
                    smaller = cheapest.get((trap & ~(1 << u), v))
                    if smaller is not None and smaller < value:
                        value = smaller
                cheapest[trap, v] = value
            if exits:
                best = max(best, min(cheapest[trap, v] for v in exits))
        return best


KINDS = ("reads", "writes", "overwrites")


def storage_of(access):
    return access[0] if isinstance(access, list) else access


def common_byte(a, b):
    if storage_of(a) != storage_of(b):
        return False
    if not isinstance(a, list) or not isinstance(b, list):
        return True
    return a[1] < b[2] and b[1] < a[2]


def members(mask):
    while mask:
        v = (mask & -mask).bit_length() - 1
        yield v
        mask &= mask - 1


def mask_of(statements):
    return sum(1 << v for v in statements)


# ---- Random programs ----


def random_program(rng, n=None):
    """A random program (JSON data) of n (by default 1 to 10) statements. It has shared,
    multi-writer, partly accessed, live-in, live-out, unused and empty storages, work, and order
    pairs."""
    n = n if n is not None else rng.randint(1, 10)
    storages, statements = [], []
    large = rng.choice([3, 10, 100, 4096])
    style = rng.random()

    def storage(live_in=False):
        size = 0 if rng.random() < 0.05 else rng.randint(1, large)
        storages.append(
            {
                "bytes": size,
                "live_in": live_in,
                "live_out": rng.random() < (0.5 if live_in else 0.1),
            }
        )
        return len(storages) - 1

    def access(s):
        size = storages[s]["bytes"]
        if size < 2 or rng.random() < 0.8:
            return s
        from_ = rng.randrange(size)
        return [s, from_, rng.randint(from_ + 1, size)]

    for _ in range(rng.randint(0, 3)):
        storage(live_in=True)
    for v in range(n):
        reads, writes = [], []
        recent = len(storages) if style < 0.5 else min(len(storages), 4)
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            if recent:
                reads.append(access(len(storages) - 1 - rng.randrange(recent)))
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            old = storages and rng.random() < 0.2
            writes.append(access(rng.randrange(len(storages)) if old else storage()))
        statement = {"name": f"s{v}", "reads": reads, "writes": writes}
        if writes and rng.random() < 0.2:
            statement["overwrites"] = [writes[0]]
        if rng.random() < 0.3:
            work = [rng.randint(0, large) for _ in range(rng.randint(0, 2))]
            statement["work"] = work if rng.random() < 0.5 else sum(work)
        statements.append(statement)
    if rng.random() < 0.3:
        storage(live_in=rng.random() < 0.5)
    data = {"peakproof": 1, "name": "random", "statements": statements, "storages": storages}
    if n > 1 and rng.random() < 0.3:
        pairs = [sorted(rng.sample(range(n), 2)) for _ in range(rng.randint(1, 3))]
        data["order"] = pairs
    return data


# ---- Certificates ----


class Flow:
    """Maximum flow by shortest augmenting paths (Edmonds and Karp) between "source" and "sink"."""

    def __init__(self):
        self.capacity = {}
        self.flow = {}
        self.next = {}

    def arc(self, a, b, capacity=float("inf")):
        for x, y in ((a, b), (b, a)):
            self.next.setdefault(x, []).append(y)
            self.capacity.setdefault((x, y), 0)
            self.flow.setdefault((x, y), 0)
        self.capacity[a, b] += capacity

    def path(self, room):
        """A shortest path from source to sink over arcs with room(a, b) > 0, and its room."""
        parent, queue = {"source": None}, deque(["source"])
        while queue and "sink" not in parent:
            a = queue.popleft()
            for b in self.next.get(a, ()):
                if b not in parent and room(a, b) > 0:
                    parent[b] = a
                    queue.append(b)
        if "sink" not in parent:
            return None, 0
        path = ["sink"]
        while parent[path[-1]] is not None:
            path.append(parent[path[-1]])
        path.reverse()
        return path, min(room(a, b) for a, b in itertools.pairwise(path))

    def solve(self):
        total = 0
        while True:
            path, amount = self.path(lambda a, b: self.capacity[a, b] - self.flow[a, b])
            if not path:
                return total
            total += amount
            for a, b in itertools.pairwise(path):
                self.flow[a, b] += amount
                self.flow[b, a] -= amount

    def paths(self):
        """Decomposes the flow into weighted simple paths; uses the flow up."""
        while True:
            path, amount = self.path(lambda a, b: self.flow[a, b])
            if not path:
                return
            for a, b in itertools.pairwise(path):
                self.flow[a, b] -= amount
                self.flow[b, a] += amount
            yield amount, path


def chains_of(path):
    """The chain (doc/certificate.md) that a path of the network stands for."""
    chain = []
    for kind, index in path[1:-1]:
        if kind == "u":
            if chain[-1][0] == "u":
                chain[-1][1].append(index)
            else:
                chain.append(("u", [index]))
        elif kind == "in":
            chain.append(("s", index))
    return [entry for _, entry in chain]


def pack(p, trap, begun_by, avoid, room):
    """A maximum packing of chains. begun_by: mask of what has run; avoid: storages that no chain
    may go through; room[s]: bytes. Returns [(weight, chain)] (THEORY.md 2)."""
    flow = Flow()
    for s in range(p.m):
        if s in avoid:
            continue
        flow.arc(("in", s), ("out", s), room[s])
        if p.live_in[s] or p.accessors[s] & begun_by:
            flow.arc("source", ("in", s))
        if p.live_out[s] or p.accessors[s] & ~trap:
            flow.arc(("out", s), "sink")
        for u in members(p.accessors[s] & trap):
            flow.arc(("out", s), ("u", u))
            flow.arc(("u", u), ("in", s))
    for x in members(trap):
        for u in members(p.direct[x]):
            flow.arc(("u", x), ("u", u))
    flow.solve()
    return [(weight, chains_of(path)) for weight, path in flow.paths()]


def constants(p, trap, begun_by, v):
    return {
        s
        for s in range(p.m)
        if s not in (p.uses[v] if v is not None else ())
        and (p.live_in[s] or p.accessors[s] & begun_by)
        and (p.live_out[s] or p.accessors[s] & ~trap)
    }


def exit_cost(p, trap, v):
    """(bytes shown for exit v, its chains)."""
    constant = constants(p, trap, p.ancestors[v], v)
    chains = pack(p, trap, p.ancestors[v], constant | set(p.uses[v]), p.size)
    own = p.work[v] + sum(p.size[s] for s in constant | set(p.uses[v]))
    return own + sum(weight for weight, _ in chains), chains


def greedy_trap(p):
    """(bound, T): the best trap, grown by the cheapest exit (THEORY.md 2). T is a mask."""
    trap, best = 0, (-1, 0)
    while trap != (1 << p.n) - 1:
        cost, v = min((exit_cost(p, trap, v)[0], v) for v in p.ready(trap))
        if cost > best[0]:
            best = (cost, trap)
        trap |= 1 << v
    return best


def shared_base(p, trap, exits, rng):
    """A base for the exits: (anchors, chains)."""
    common = (1 << p.n) - 1
    for v in exits:
        common &= p.ancestors[v]
    if rng.random() < 0.3:  # a smaller one is a base too
        common = mask_of([u for u in members(common) if rng.random() < 0.7])
        common = mask_of([u for u in members(common) if not p.ancestors[u] & ~common])
    anchors = [
        u for u in members(common) if not any(p.ancestors[x] >> u & 1 for x in members(common))
    ]
    closed = mask_of(anchors)
    for u in anchors:
        closed |= p.ancestors[u]
    free, base = set(range(p.m)), []
    for _, chain in sorted(
        pack(p, trap, closed, constants(p, trap, closed, None), p.size),
        reverse=True,
        key=lambda c: c[0],
    ):
        storages = set(chain[::2])
        if storages <= free:
            base.append((rng.choice([min(p.size[s] for s in storages), _]), chain))
            free -= storages
    return anchors, base


def trap_lines(p, kind, order, trap, bound, rng, name=lambda v: v):
    """Lines t, b, c, e that prove `bound`. name() maps statements back to the program's."""
    prefix = 0
    while prefix < p.n and trap >> order[prefix] & 1:
        prefix += 1
    rest = [name(v) for v in members(trap & ~mask_of(order[:prefix]))]
    rng.shuffle(rest)
    yield " ".join(map(str, ["t", kind, prefix, *rest]))
    exits = p.ready(trap)
    rng.shuffle(exits)
    while exits:
        group = [exits.pop() for _ in range(min(len(exits), rng.choice([1, 2, 3, 8])))]
        anchors, base = [], []
        if rng.random() < 0.7:
            anchors, base = shared_base(p, trap, group, rng)
        yield " ".join(map(str, ["b", *map(name, anchors)]))
        yield from (chain_line(weight, chain, name) for weight, chain in base)
        later = []
        for v in group:
            constant = constants(p, trap, p.ancestors[v], v)
            avoid, room = constant | set(p.uses[v]), list(p.size)
            shown = p.work[v] + sum(p.size[s] for s in avoid)
            for weight, chain in base:
                if not avoid & set(chain[::2]):
                    shown += weight
                    for s in chain[::2]:
                        room[s] -= weight
            own = pack(p, trap, p.ancestors[v], avoid, room)
            if shown + sum(weight for weight, _ in own) < bound:
                later.append(v)
                continue
            yield f"e {name(v)}"
            for weight, chain in own:
                if shown >= bound:
                    break
                shown += weight
                yield chain_line(weight, chain, name)
        if later:
            yield "b"
        for v in later:
            yield f"e {name(v)}"
            yield from (chain_line(*c, name) for c in exit_cost(p, trap, v)[1])


def chain_line(weight, chain, name):
    parts = [",".join(str(name(u)) for u in i) if isinstance(i, list) else str(i) for i in chain]
    return " ".join(["c", str(weight), *parts])


def certificate(text, kind="best", order=None, rng=None):
    """A certificate (text) for program JSON `text`. kind: "floor", "t f", "t r", "nothing", "best".
    order: an optimal one by default (brute force). Returns (certificate, bound, peak)."""
    rng = rng or random.Random(0)
    p = Program(json.loads(text))
    if order is None:
        order = p.optimum()[1]
    back = p.reversed()
    floor, statement = p.floor()
    forward, reverse = greedy_trap(p), greedy_trap(back)
    if kind == "best" or (kind in ("t f", "t r") and p.n == 0):
        best = max(floor, forward[0], reverse[0])
        kind = "floor" if floor == best else "t f" if forward[0] == best else "t r"
    if kind == "nothing":
        bound, lines = 0, []
    elif kind == "floor":
        bound, lines = floor, ["f" if statement is None else f"f {statement}"]
    elif kind == "t f":
        bound = forward[0]
        lines = trap_lines(p, "f", order, forward[1], bound, rng)
    else:
        bound = reverse[0]
        turned = [p.n - 1 - v for v in reversed(order)]
        lines = trap_lines(back, "r", turned, reverse[1], bound, rng, lambda v: p.n - 1 - v)
    peak = p.peak(order)
    head = [
        "p peakproof 1",
        "h " + hashlib.sha256(text.encode()).hexdigest(),
        f"n {p.n} {p.m}",
        " ".join(map(str, ["o", *order])),
        f"u {peak}",
        f"l {bound}",
    ]
    return "\n".join([*head, *lines, "q", ""]), bound, peak


def random_order(p, rng):
    order, done = [], 0
    while len(order) < p.n:
        order.append(rng.choice(p.ready(done)))
        done |= 1 << order[-1]
    return order


def corpus(seed, count, n=None):
    """Yields (program text, certificate text, optimum)."""
    for i in range(count):
        rng = random.Random(f"{seed} {i}")
        data = random_program(rng, n)
        text = json.dumps(data, separators=(",", ":")) + "\n"
        p = Program(data)
        kind = rng.choice(["t f", "t f", "t f", "t r", "t r", "floor", "best"])
        optimum, order = p.optimum()
        if rng.random() < 0.3:
            order = random_order(p, rng)
        yield text, certificate(text, kind, order, rng)[0], optimum


def main(arguments):
    match arguments:
        case ["random", seed, *n]:
            print(json.dumps(random_program(random.Random(int(seed)), *map(int, n))))
        case ["optimum", path]:
            p = Program(json.load(open(path)))
            print("original", p.peak(range(p.n)), "optimum", p.optimum()[0], "floor", p.floor()[0])
            print("forward", p.best_trap(), "reverse", p.reversed().best_trap())
        case ["certify", path, *kind]:
            print(certificate(open(path).read(), " ".join(kind) or "best")[0], end="")
        case ["corpus", seed, count, *n]:
            for text, cert, optimum in corpus(int(seed), int(count), *map(int, n)):
                print(optimum, len(text), len(cert))
                print(text, cert, sep="", end="")
        case _:
            print(__doc__.strip(), file=sys.stderr)
            return 64
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
