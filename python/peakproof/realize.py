"""Realize: the text of `call` for a new order of its nodes.

Before each node stand the bindings that it needs and that are not made yet; behind it, `del` of
every name with no later use, bindings counted as uses. Statement text stays verbatim.
"""

from . import split as kinds
from .errors import Refusal


class _Sequence:
    """The statements in their new sequence, without frees. Values are (name, version)."""

    def __init__(self, source):
        self.source = source
        self.out = []
        self.placed = set()
        self.version = {}  # while reading the source
        self.definition = {}  # value -> statement index
        self.needs = {}  # statement index -> values
        self.gives = {}  # statement index -> values
        self.asserts = {}  # value -> statement indices
        self.items = {}  # statement index of a tuple -> indices of its item statements
        for s in source.statements:
            if s.kind != kinds.FREE:
                self.read(s)

    def read(self, s):
        needs = [(n, self.version[n]) for n in s.uses if n in self.version]
        if len(needs) != len(s.uses):
            raise Refusal("a name is used before it is bound", s.line, s.text)
        self.needs[s.index] = needs
        if s.kind == kinds.ASSERT:
            subject = s.node.value.args[0].id
            self.asserts.setdefault((subject, self.version[subject]), []).append(s.index)
        if s.kind == kinds.ITEM:
            self.items.setdefault(self.definition[needs[0]], []).append(s.index)
        for n in s.targets:
            self.version[n] = self.version.get(n, -1) + 1
            self.definition[(n, self.version[n])] = s.index
        self.gives[s.index] = [(n, self.version[n]) for n in s.targets]

    def place(self, index):
        """Puts a statement and the assertions about what it binds; what it needs stands already."""
        self.out.append(index)
        self.placed.add(index)
        kind = self.source.statements[index].kind
        if kind == kinds.UNPACK:
            return  # assertions about an argument stand before its first use
        for value in self.gives[index]:
            self.place_asserts(value)
        for item in self.items.get(index, ()):
            self.place(item)

    def place_asserts(self, value):
        for index in self.asserts.pop(value, ()):
            if index not in self.placed:
                self.out.append(index)
                self.placed.add(index)

    def require(self, index):
        """Places what a statement needs, in dependence order, without recursion."""
        stack = [index]
        while stack:
            top = stack[-1]
            missing = []
            for value in self.needs[top]:
                d = self.definition[value]
                if d not in self.placed:
                    missing.append(d)
            if missing:
                kind = self.source.statements[missing[0]].kind
                if kind not in kinds.BINDINGS:
                    s = self.source.statements[top]
                    raise Refusal("the order runs it before what it needs", s.line, s.text)
                stack.append(missing[0])
                continue
            for value in self.needs[top]:
                self.place_asserts(value)
            stack.pop()
            if top != index and top not in self.placed:
                self.place(top)

    def build(self, order):
        statements = self.source.statements
        for s in statements:
            if s.kind in (kinds.UNPACK, kinds.CLEAR):
                self.place(s.index)
        for s in statements:
            if s.kind == kinds.SYMBOL or (s.kind == kinds.ALIAS and self.is_symbol(s)):
                self.require(s.index)
                self.place(s.index)
        self.place_idle_asserts()
        for index in order:
            self.require(index)
            self.place(index)
        self.require(statements[-1].index)
        self.place(statements[-1].index)
        return self.out

    def place_idle_asserts(self):
        """Assertions about arguments that nothing else uses."""
        used = {
            v
            for i, needs in self.needs.items()
            if self.source.statements[i].kind != kinds.ASSERT
            for v in needs
        }
        for value in [v for v in self.asserts if v not in used and self.given(v)]:
            self.place_asserts(value)

    def given(self, value):
        return self.source.statements[self.definition[value]].kind == kinds.UNPACK

    def is_symbol(self, s):
        """An alias whose name serves only symbols: `s0 = arg0_1`."""
        value = self.gives[s.index][0]
        return value[0].startswith(("s", "u", "ps", "ks")) and value[0].lstrip("spuk").isdigit()


def sequence(source, order):
    """Statement indices and `del`s of a new order of nodes: a list of int or list of names."""
    seq = _Sequence(source)
    placed = seq.build(order)
    last, defined = {}, {}
    for position, index in enumerate(placed):
        for value in seq.needs[index]:
            last[value] = position
        for value in seq.gives[index]:
            last.setdefault(value, position)
            defined.setdefault(value[0], []).append((position, value))
    dead = {}
    streams = {n for s in source.statements if s.kind == kinds.STREAM for n in s.targets}
    for value, position in last.items():
        if value[0] in streams:
            continue  # a number, the same each time
        later = [p for p, v in defined[value[0]] if v[1] == value[1] + 1]
        if position == len(placed) - 1 or (later and later[0] == position):
            continue  # returned, or bound again by its last user
        if later and later[0] < position:
            raise Refusal(f"{value[0]} is bound again before its last use")
        dead.setdefault(position, []).append(value[0])
    has_clear = any(s.kind == kinds.CLEAR for s in source.statements)
    out, waiting = [], []
    for position, index in enumerate(placed):
        out.append(index)
        waiting.extend(dead.get(position, ()))
        if source.statements[index].kind == kinds.UNPACK and has_clear:
            continue  # `args.clear()` comes first
        if waiting:
            out.append(sorted(waiting, key=lambda n: (len(n), n)))
            waiting = []
    return out


def realize(source, order):
    """The text of the function `call` (not indented) that runs the nodes in `order`.

    `order` lists statement indices of all nodes. Raises Refusal.
    """
    if sorted(order) != [s.index for s in source.nodes]:
        raise Refusal("the order is not a permutation of the nodes")
    lines, indent = [source.header], "    "
    guard = source.guard
    for item in sequence(source, order):
        kind = source.statements[item].kind if isinstance(item, int) else kinds.FREE
        if kind == kinds.RETURN:
            guard, indent = (), "    "
        elif guard and kind not in (kinds.UNPACK, kinds.CLEAR):
            lines += ["    " + guard[0], "        " + guard[1]]
            guard, indent = (), "        "
        if kind == kinds.FREE:
            lines += [f"{indent}del {name}" for name in item]
            continue
        s = source.statements[item]
        lines += [indent + c for c in s.comments]
        lines.append(indent + s.text)
    return "\n".join(lines) + "\n"
