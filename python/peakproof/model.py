"""Model: a Source and its Profile become a program (DESIGN.md 3) and the stock placement's peak."""

from dataclasses import dataclass

from . import split as kinds
from .errors import Refusal


@dataclass
class Model:
    """`program` is the dict of the program's JSON; its statement i is the source's `nodes[i]`."""

    program: dict
    nodes: list
    storages: list  # numbers of the profile's storages, in program order
    held_bytes: int  # what the caller and the module hold, not in any peak here
    stock_peak: int  # of the program as it stands, with its own allocations and frees


def data_edges(source, nodes):
    """Pairs of node statements [before, after] that names alone imply.

    A node that uses a value comes after the node that made it, also through bindings. A name that
    is bound a second time by a node separates the users of its two values.
    """
    made_by, users, edges = {}, {}, set()
    for s in source.statements:
        origins = set()
        for name in s.uses if s.kind != kinds.FREE else ():
            origins |= made_by.get(name, set())
            users.setdefault(name, set()).add(s.index)
        if s.kind == kinds.NODE:
            edges |= {(o, s.index) for o in origins}
        for name in s.targets if s.kind != kinds.STREAM else ():
            if s.kind == kinds.NODE and name in made_by:
                edges |= {(u, s.index) for u in users.get(name, ()) if u in nodes and u != s.index}
                users[name] = set()
            elif name in made_by and s.kind != kinds.UNPACK:
                raise Refusal("a name is bound twice", s.line, s.text)
            made_by[name] = {s.index} if s.kind == kinds.NODE else origins
    return edges


def build(source, profile, name):
    """The Model of a profiled program."""
    nodes = [s.index for s in source.statements if s.kind == kinds.NODE]
    entry = unused_arguments(profile, {a.storage for i in nodes for a in profile.accesses[i]})
    position = {index: i for i, index in enumerate(nodes)}
    accessed = {a.storage for index in nodes for a in profile.accesses[index]}
    keep, held_bytes = [], 0
    for number, s in enumerate(profile.storages):
        if s.held:
            held_bytes += s.bytes
        if number in accessed or (s.live_in and s.live_out):
            keep.append(number)
        elif s.live_out and not s.live_in and s.bytes:
            raise Refusal(f"returns {s.name}, which no statement fills")
    index_of = {number: i for i, number in enumerate(keep)}
    program = {
        "peakproof": 1,
        "name": name,
        "statements": [statement_dict(source.statements[i], profile, index_of) for i in nodes],
        "storages": [storage_dict(profile.storages[n]) for n in keep],
    }
    order = set(data_edges(source, position))
    ordered = sorted(profile.ordered)
    order |= set(zip(ordered, ordered[1:]))
    pairs = sorted([position[a], position[b]] for a, b in order)
    shared = implied(program)
    program["order"] = [p for p in pairs if tuple(p) not in shared]
    if entry:
        nodes = add_entry(program, nodes, source, entry)
    return Model(program, nodes, keep, held_bytes, stock_peak(source, profile))


def unused_arguments(profile, accessed):
    """Bytes of arguments that may be freed and are never touched: they exist at the start."""
    return sum(
        s.bytes
        for number, s in enumerate(profile.storages)
        if s.live_in and not s.held and not s.live_out and number not in accessed
    )


def add_entry(program, nodes, source, size):
    """A first statement, before all others: the moment when unused arguments still exist."""
    unpack = source.statements[0]
    first = {"name": "arguments", "line": unpack.line, "work": size, "reads": [], "writes": []}
    program["statements"].insert(0, first)
    order = [[a + 1, b + 1] for a, b in program["order"]]
    program["order"] = [[0, i + 1] for i in range(len(nodes))] + order
    return [unpack.index, *nodes]


def statement_order(model, order):
    """The statements of the source that a program's order runs: an entry statement is no node."""
    entry = bool(model.nodes) and model.program["statements"][0]["name"] == "arguments"
    return [model.nodes[i] for i in order if not (entry and i == 0)]


def program_order(nodes, statements):
    """The inverse of statement_order, from the model's `nodes` and statements of the source."""
    where = {node: i for i, node in enumerate(nodes)}
    order = [where[i] for i in statements]
    return order if len(order) == len(nodes) else [0, *order]


def implied(program):
    """Pairs of statements of which one writes the whole of a storage that the other accesses."""
    pairs, writers = set(), {}
    for i, s in enumerate(program["statements"]):
        for a in s["reads"] + s["writes"]:
            number = a if isinstance(a, int) else a[0]
            if number in writers:
                pairs.add((writers[number], i))
        for a in s["writes"]:
            if isinstance(a, int):
                writers[a] = i
    return pairs


def storage_dict(s):
    live_out = s.live_out or s.held
    names = [s.name, *s.others]
    return {
        # A reuse keeps a block alive under another name: say which.
        "name": "/".join(names if len(names) <= 4 else [*names[:2], "...", names[-1]]),
        "bytes": 0 if s.held else s.bytes,
        "live_in": s.live_in,
        "live_out": live_out,
    }


def statement_dict(s, profile, index_of):
    reads, writes = [], []
    for a in profile.accesses[s.index]:
        number = index_of[a.storage]
        whole = not a.ranges or covers(a.ranges, profile.storages[a.storage])
        listed = [number] if whole else [[number, low, high] for low, high in a.ranges]
        into = writes if a.write else reads
        into.extend(x for x in listed if x not in into)
    return {
        "name": s.function,
        "line": s.line,
        "work": profile.work[s.index],
        "reads": reads,
        "writes": writes,
    }


def covers(ranges, storage):
    return storage.held or (
        len(ranges) == 1 and ranges[0][0] == 0 and ranges[0][1] >= storage.bytes
    )


def stock_peak(source, profile):
    """The peak in bytes of the stock placement, from sizes, work and moments alone."""
    now = sum(s.bytes for s in profile.storages if s.live_in and not s.held)
    peak = now
    created, freed = {}, {}
    for s in profile.storages:
        if s.held:
            continue
        if not s.live_in:
            created[s.created] = created.get(s.created, 0) + s.bytes
        if s.freed >= 0:
            freed[s.freed] = freed.get(s.freed, 0) + s.bytes
    for s in source.statements:
        now += created.get(s.index, 0)
        peak = max(peak, now + profile.work.get(s.index, 0))
        now -= freed.get(s.index, 0)
    return peak
