"""Recomputation: run statements of a generated program a second time instead of keeping a value.

The core chooses (doc/remat.md); here a profiled program is described to it, and its answer becomes
source text, which is profiled, planned, realized and verified like any other. In that text a value
that is made again has the name `buf3__again1`.

What the core is told, besides the program itself: which nodes are pure, what they overwrite and
their multiply-accumulates. Two things are put in its terms. A node that updates in place the value
that the node before made for it alone is one *unit* with that node. An update in place of a value
that others read first ends one storage and begins another: at that node both count, so what the
core promises is at least what will be measured.
"""

import ast
import re
from dataclasses import dataclass, field

from . import core
from . import split as kinds
from .effects import effect_of
from .errors import Refusal
from .reuse import fills

# Generated kernels that draw random numbers, or add in an order that threads decide.
IMPURE = re.compile(r"atomic_add|normalized_rand|randn?_cpu|randint|philox")
NEVER = {"copy_if_misaligned"}  # may hand out its argument itself


@dataclass
class Unit:
    """Nodes that run together, as positions in the model's program."""

    members: list
    pure: bool
    macs: int | None
    reads: list  # accesses as in the program's JSON
    writes: list
    over: set  # storages that it overwrites whole and does not read
    work: int


@dataclass
class Task:
    """What the core is given, and how its numbers are meant."""

    program: dict
    units: list
    entry: bool  # statement 0 is no node
    heads: dict = field(default_factory=dict)  # storage that an update ends -> the one it begins


@dataclass
class Found:
    """The core's answer. `recipe`: the runs in sequence, as expand takes them."""

    curve: list
    macs: int
    floor: int
    at_floor: bool
    floor_line: int | None
    repeatable: int
    limited: bool
    optimal: bool
    peak: int
    point: dict | None = None  # None: nothing lower
    recipe: list | None = None


# ---- Facts ----


def is_pure(s, source, namespace):
    """Whether a node's results depend on what it reads alone, and nothing else sees that it ran."""
    if s.function in source.kernels:
        return not IMPURE.search(source.kernels[s.function].source)
    if s.function in NEVER or s.function.endswith(".copy_"):
        return False
    effect = effect_of(s, source, namespace)
    return effect.trusted and not effect.ordered


def storages_by_name(profile):
    """{name: number of its storage}, without names of several storages."""
    found, several = {}, set()
    for number, storage in enumerate(profile.storages):
        for name in (storage.name, *storage.others):
            if found.setdefault(name, number) != number:
                several.add(name)
    return {name: n for name, n in found.items() if name not in several}, several


def _storage(access):
    return access if isinstance(access, int) else access[0]


def _out_names(s):
    for k in s.node.value.keywords:
        if k.arg == "out" and isinstance(k.value, ast.Name):
            yield k.value.id


def overwritten(s, source, numbers, profile):
    """Profile's storages that a node makes, or fills without reading them."""
    found = {n for n, x in enumerate(profile.storages) if x.created == s.index and not x.live_in}
    for name in s.uses:
        operator = s.function not in source.kernels and name in _out_names(s)
        if name in numbers and (operator or fills(source, s, name)):
            found.add(numbers[name])
    return found - {a.storage for a in profile.accesses[s.index] if not a.write}


class _Describer:
    """Makes a Task of a model. `peak` is the certified one."""

    def __init__(self, source, profile, model, namespace, variable):
        self.source, self.profile, self.model = source, profile, model
        self.program = model.program
        self.statements = self.program["statements"]
        self.entry = bool(model.nodes) and self.statements[0]["name"] == "arguments"
        self.index_of = {number: i for i, number in enumerate(model.storages)}
        numbers, self.several = storages_by_name(profile)
        self.units = [self.unit(i, numbers, namespace, variable) for i in range(len(model.nodes))]

    def unit(self, i, numbers, namespace, variable):
        d = self.statements[i]
        if self.entry and i == 0:
            return Unit([0], False, None, [], [], set(), d["work"])
        s = self.source.statements[self.model.nodes[i]]
        over = overwritten(s, self.source, numbers, self.profile)
        over = {self.index_of[n] for n in over if n in self.index_of and not self.odd(n)}
        pure = is_pure(s, self.source, namespace) and s.index not in variable
        macs = self.profile.macs[s.index]
        pure = pure and not self.several.intersection([*s.uses, *s.targets])
        return Unit([i], pure, macs, list(d["reads"]), list(d["writes"]), over, d["work"])

    def odd(self, number):
        storage = self.profile.storages[number]
        return storage.live_in or self.several.intersection([storage.name, *storage.others])

    # -- units ---------------------------------------------------------------------------------

    def accessors(self):
        """For each storage the units (places in self.units) that access it, in sequence."""
        found = [[] for _ in self.program["storages"]]
        for place, u in enumerate(self.units):
            for s in {_storage(a) for a in u.reads + u.writes}:
                found[s].append(place)
        return found

    def updates(self, u, storage):
        return any(_storage(a) == storage for a in u.writes) and storage not in u.over

    def merge_all(self):
        """Joins units while one updates in place what another made for it alone."""
        pairs = {tuple(p) for p in self.program["order"]}
        again = True
        while again:
            again = False
            for storage, places in enumerate(self.accessors()):
                if len(places) < 2:
                    continue
                a, b = places[:2]
                u, v = self.units[a], self.units[b]
                if storage not in u.over or not self.updates(v, storage):
                    continue
                if not (u.pure and v.pure) or u.macs is None or v.macs is None:
                    continue
                if self.join(a, b, pairs):
                    again = True
                    break

    def conflicts(self, u, v, pairs):
        writes_u, writes_v = ({_storage(a) for a in x.writes} for x in (u, v))
        all_u = writes_u | {_storage(a) for a in u.reads}
        all_v = writes_v | {_storage(a) for a in v.reads}
        if writes_u & all_v or writes_v & all_u:
            return True
        return any((i, j) in pairs for i in u.members for j in v.members)

    def join(self, a, b, pairs):
        """Makes units a < b one, at the place of either. False if something stands between them."""
        u, v = self.units[a], self.units[b]
        between = self.units[a + 1 : b]
        if not any(self.conflicts(u, x, pairs) for x in between):
            at = b
        elif not any(self.conflicts(x, v, pairs) for x in between):
            at = a
        else:
            return False
        size = {i: s["bytes"] for i, s in enumerate(self.program["storages"])}
        touched = [{_storage(x) for x in w.reads + w.writes} for w in (u, v)]
        both = sum(size[s] for s in touched[0] | touched[1])
        needs = max(w.work + sum(size[s] for s in t) for w, t in zip((u, v), touched))
        writes = u.writes + [x for x in v.writes if x not in u.writes]
        reads = u.reads + [x for x in v.reads if x not in u.reads]
        reads = [x for x in reads if _storage(x) not in u.over]
        one = Unit(
            u.members + v.members,
            True,
            u.macs + v.macs,
            reads,
            writes,
            u.over | (v.over - touched[0]),
            max(0, needs - both),
        )
        self.units[at] = one
        del self.units[b if at == a else a]
        return True

    # -- the program ----------------------------------------------------------------------------

    def head_of(self, storage, places):
        """The place of the unit that ends a value by an update in place after others read it."""
        if len(places) < 3 or storage not in self.units[places[0]].over:
            return None
        for place in places[1:]:
            u = self.units[place]
            if any(_storage(a) == storage for a in u.writes):
                if storage in u.over or place == places[1] or not self.units[places[0]].pure:
                    return None
                return place
        return None

    def task(self, spare):
        """`spare(place)`: bytes that may be added at a unit without setting the peak."""
        storages = [dict(s) for s in self.program["storages"]]
        where = {i: place for place, u in enumerate(self.units) for i in u.members}
        order = {(where[a], where[b]) for a, b in self.program["order"] if self.pins(a, b)}
        heads, renamed, added = {}, {}, {}
        for storage, places in enumerate(self.accessors()):
            end = self.head_of(storage, places)
            size = storages[storage]["bytes"]
            if end is None or added.get(end, 0) + size >= spare(end):
                continue
            added[end] = added.get(end, 0) + size
            number = len(storages)
            storages.append({**storages[storage], "live_in": False, "live_out": False})
            heads[number] = storage
            before = places[: places.index(end)]
            for place in before:
                renamed.setdefault(place, {})[storage] = number
            renamed.setdefault(end, {})[storage] = (number,)
            order |= {(place, end) for place in before[1:]}
        statements = [self.statement(p, u, renamed.get(p, {})) for p, u in enumerate(self.units)]
        if self.entry:  # pairs would pin everything: a storage of 0 bytes says the same
            number = len(storages)
            storages.append({"name": "start", "bytes": 0, "live_in": False, "live_out": False})
            for place, s in enumerate(statements):
                s["writes" if place == 0 else "reads"].append(number)
            statements[0]["overwrites"].append(number)
        program = {
            "peakproof": 1,
            "name": self.program["name"],
            "statements": statements,
            "storages": storages,
            "order": sorted([a, b] for a, b in order if a != b),
        }
        return Task(program, list(self.units), self.entry, heads)

    def pins(self, a, b):
        """Whether an order pair says more than that one reads what the other made."""
        entry = self.entry and a == 0
        nodes = [self.model.nodes[i] for i in (a, b)]
        if entry or all(i in self.profile.ordered for i in nodes):
            return not entry
        made = {_storage(x) for x in self.statements[a]["writes"]}
        return not any(
            _storage(x) in made for k in ("reads", "writes") for x in self.statements[b][k]
        )

    def statement(self, place, u, renamed):
        def put(access):
            new = renamed.get(_storage(access), _storage(access))
            if isinstance(new, tuple):  # the update itself: it reads one and writes the other
                new = _storage(access)
            return new if isinstance(access, int) else [new, *access[1:]]

        ended = {s: n[0] for s, n in renamed.items() if isinstance(n, tuple)}
        reads = [put(a) for a in u.reads if _storage(a) not in ended] + list(ended.values())
        writes = [put(a) for a in u.writes]
        # What an update leaves as it was comes from the storage that it ends.
        writes = [a for a in writes if _storage(a) not in ended] + list(ended)
        over = [w for w, a in zip(writes, writes) if self.is_over(a, u, renamed, ended)]
        first = self.statements[u.members[0]]
        d = {"name": first["name"], "line": first["line"], "work": u.work, "pure": u.pure}
        if u.macs is not None:
            d["macs"] = u.macs
        return {**d, "reads": reads, "writes": writes, "overwrites": over}

    def is_over(self, access, u, renamed, ended):
        names = {n if isinstance(n, int) else s: s for s, n in renamed.items()}
        storage = names.get(_storage(access), _storage(access))
        return storage in u.over or storage in ended


def describe(source, profile, model, namespace, plan, variable=()):
    """Tasks for the core, the more promising one first. `variable`: nodes whose bytes vary."""
    d = _Describer(source, profile, model, namespace, variable)
    facts = core.simulate(d.program, plan["order"])
    step = {v: facts["step"][i] for i, v in enumerate(plan["order"])}

    def spare(place):
        return plan["peak_after"] - max(step[i] for i in d.units[place].members)

    simple = d.task(lambda place: 0)
    split = d.task(spare)
    d.merge_all()
    return [d.task(spare), split, simple]


# ---- The core's answer ----


def _names(unit, source, model, entry, profile):
    """(statement, {name: profile's storage or None for a tuple}) of a unit's nodes."""
    numbers, _ = storages_by_name(profile)
    for i in unit.members:
        if entry and i == 0:
            continue
        s = source.statements[model.nodes[i]]
        yield s, {n: numbers.get(n) for n in (*s.targets, *s.uses)}


def recipe_of(task, answer, source, profile, model):
    """The runs of the core's answer as a recipe."""
    program_of = dict(enumerate(model.storages))
    copies, count = {}, {}  # number of each copy among those of its storage
    for c, original in enumerate(answer["storages"]):
        copies[c] = 0 if c < len(task.program["storages"]) else count.get(original, 0) + 1
        if copies[c]:
            count[original] = copies[c]
    block, recipe, ran, final = {}, [], {}, {}
    for u, accessed in zip(answer["statements"], answer["accessed"]):
        unit = task.units[u]
        mine = {answer["storages"][c]: copies[c] for c in accessed}
        heads = {task.heads[s]: copy for s, copy in mine.items() if s in task.heads}
        block.update((s, copy) for s, copy in heads.items() if s in mine)  # an update goes on in it
        suffix = {s: block.get(s, copy) for s, copy in mine.items() if s in program_of}
        suffix.update(heads)
        by_number = {program_of[s]: k for s, k in suffix.items() if s in program_of}
        for s, names in _names(unit, source, model, task.entry, profile):
            run = ran[s.index] = ran.get(s.index, -1) + 1
            found = {n: by_number.get(number, 0) for n, number in names.items()}
            if s.index in profile.tuples:
                found[s.targets[0]] = run
                found.update(_items(s, source, profile, by_number))
            recipe.append([s.index, {n: k for n, k in found.items() if k}])
    last = source.statements[-1]
    numbers, _ = storages_by_name(profile)
    position = {number: i for i, number in program_of.items()}
    for name in last.uses:
        storage = position.get(numbers.get(name))
        if block.get(storage):
            final[name] = block[storage]
    recipe.append([last.index, final])
    return recipe


def _items(s, source, profile, by_number):
    numbers, _ = storages_by_name(profile)
    for item in source.statements:
        if item.kind == kinds.ITEM and item.uses[0] == s.targets[0]:
            yield item.targets[0], by_number.get(numbers.get(item.targets[0]), 0)


def choose(task, source, profile, model, limits):
    """A Found: the curve, and the recipe of its lowest point (or of the cheapest within target)."""
    macs = sum(u.macs or 0 for u in task.units)
    most = -1 if limits["extra"] is None else int(macs * limits["extra"])
    answer = core.remat(task.program, most=most, **{k: limits[k] for k in limits if k != "extra"})
    line = None
    if answer["floor_statement"] >= 0:
        line = task.program["statements"][answer["floor_statement"]]["line"]
    found = Found(
        answer["points"],
        macs,
        answer["floor"],
        answer["at_floor"],
        line,
        answer["repeatable"],
        answer["limited"],
        answer["optimal"],
        answer["peak"],
    )
    point = answer["points"][answer["chosen"]]
    if point["extra_runs"]:
        found.point = point
        found.recipe = recipe_of(task, answer, source, profile, model)
    return found


def best(variant, namespace, limits):
    """The Found of the task that goes lowest; `recipe` is None if none goes below the plan."""
    v, chosen = variant, None
    for task in describe(v.source, v.profile, v.model, namespace, v.plan, v.spread):
        found = choose(task, v.source, v.profile, v.model, limits)
        if found.point is not None and found.point["peak"] >= v.peak:
            found.point = found.recipe = None
        if chosen is None or lower(found, chosen):
            chosen = found
    return chosen


def lower(a, b):
    def key(found):
        p = found.point
        return (p is None, p and (p["peak"], p["extra_macs"], p["extra_bytes"]))

    return key(a) < key(b)


# ---- Text ----


def copy_name(name, copy):
    return f"{name}__again{copy}" if copy else name


def rename(s, copies):
    """The text of a statement with local names replaced: {name: copy}."""
    lines = [line.encode() for line in s.text.split("\n")]
    places = [
        (n.lineno - 1, n.col_offset, n.id)
        for n in ast.walk(ast.parse(s.text))
        if isinstance(n, ast.Name) and copies.get(n.id)
    ]
    for line, column, name in sorted(places, reverse=True):
        old, text = name.encode(), lines[line]
        new = copy_name(name, copies[name]).encode()
        if text[column : column + len(old)] != old:
            raise Refusal("a name is not where it should be", s.line, s.text)
        lines[line] = text[:column] + new + text[column + len(old) :]
    return b"\n".join(lines).decode()


class _Expander:
    """Writes the statements of a recipe, each after the bindings that it needs."""

    def __init__(self, source):
        self.source = source
        self.lines = []
        self.made = set()  # (name, copy)
        self.definition, self.asserts, self.items, names = {}, {}, {}, set()
        for s in source.statements:
            if s.kind == kinds.FREE:
                continue
            names.update(s.targets, s.uses)
            for name in s.targets:
                if self.definition.setdefault(name, s) is not s:
                    raise Refusal("a name is bound twice", s.line, s.text)
            if s.kind == kinds.ASSERT:
                self.asserts.setdefault(s.node.value.args[0].id, []).append(s)
            if s.kind == kinds.ITEM:
                self.items.setdefault(s.uses[0], []).append(s)
        if any("__again" in name for name in names):
            raise Refusal("a name of the program looks like one of ours")

    def emit(self, s, copies):
        self.lines += [*s.comments, rename(s, copies)]

    def bind(self, name, copy):
        """Makes (name, copy) exist, and before it what it is made of."""
        stack = [(name, copy)]
        while stack:
            top, k = stack[-1]
            s = self.definition.get(top)
            if (top, k) in self.made or s is None:
                stack.pop()
                continue
            if s.kind not in (kinds.ALLOCATE, kinds.ALIAS, kinds.SYMBOL) or (
                k and s.kind == kinds.SYMBOL
            ):
                raise Refusal("a repeated run needs what is not there", s.line, s.text)
            needs = {n: self.copy_for(n, k) for n in s.uses}
            missing = [(n, c) for n, c in needs.items() if (n, c) not in self.made]
            missing = [(n, c) for n, c in missing if n in self.definition]
            if missing:
                stack.append(missing[0])
                continue
            self.emit(s, {**needs, top: k})
            self.finish(top, k)
            stack.pop()

    def copy_for(self, name, copy):
        """An alias is of the same copy; symbols have no copies."""
        d = self.definition.get(name)
        plain = d is None or d.kind in (kinds.UNPACK, kinds.SYMBOL)
        return 0 if plain else copy

    def finish(self, name, copy):
        self.made.add((name, copy))
        for s in self.asserts.get(name, ()):
            self.emit(s, {name: copy})

    def node(self, s, copies):
        for name in s.uses:
            if name not in s.targets:
                self.bind(name, copies.get(name, 0))
        self.emit(s, copies)
        for name in s.targets:
            self.finish(name, copies.get(name, 0))
            for item in self.items.get(name, ()):
                target = item.targets[0]
                self.emit(item, {name: copies.get(name, 0), target: copies.get(target, 0)})
                self.finish(target, copies.get(target, 0))

    def write(self, recipe):
        for s in self.source.statements:
            if s.kind in (kinds.UNPACK, kinds.CLEAR):
                self.emit(s, {})
                self.made.update((name, 0) for name in s.targets)
        for name in self.source.arguments:
            self.finish(name, 0)
        for index, copies in recipe:
            s = self.source.statements[index]
            self.node(s, copies)
        return self.lines


def embed(source, lines):
    """The source's text with another body of `call`: statements, not indented."""
    splitter = kinds._Splitter(source.text)
    call, _ = splitter.find_call()
    text = source.text.split("\n")
    pad = " " * (call.body[0].col_offset)
    body = [pad + line for item in lines for line in item.split("\n")]
    first = call.lineno  # the line behind `def`
    return "\n".join(text[:first] + body + text[call.end_lineno :])


def check_recipe(source, recipe):
    """Raises Refusal unless the recipe runs every node, and the return last."""
    runs = {}
    for index, copies in recipe:
        if not isinstance(index, int) or not 0 <= index < len(source.statements):
            raise Refusal("a recipe names a statement that does not exist")
        for name, copy in copies.items():
            if not isinstance(name, str) or not isinstance(copy, int) or copy < 0:
                raise Refusal("a recipe of an unknown form")
        runs[index] = runs.get(index, 0) + 1
    last = source.statements[-1].index
    if set(runs) != {s.index for s in source.nodes} | {last}:
        raise Refusal("a recipe leaves out a statement")
    if runs[last] != 1 or recipe[-1][0] != last:
        raise Refusal("a recipe does not end with the return")


def expand(source, recipe):
    """The text of the generated source in which the runs of `recipe` stand in its sequence.

    `recipe` is a list of [statement, {name: copy}]: a node with the copies of local names that this
    run means (0, where not listed: the one that has the name itself), the return last. Raises
    Refusal.
    """
    from .realize import realize

    check_recipe(source, recipe)
    other = kinds.split(embed(source, _Expander(source).write(recipe)))
    text = realize(other, [s.index for s in other.nodes])
    return embed(source, [line.strip() for line in text.split("\n")[1:] if line])


def mark(model, recipe, original):
    """Gives the statements of a model of expanded text the lines of the text that was expanded."""
    nodes = [index for index, _ in recipe[:-1]]
    statements = model.program["statements"]
    skip = len(statements) - len(nodes)
    ran = {}
    for d, index in zip(statements[skip:], nodes):
        again = ran[index] = ran.get(index, -1) + 1
        d["line"] = original.statements[index].line
        if again:
            d["name"] += f"~{again}"
