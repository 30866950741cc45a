"""Writes FlatBuffers, .tflite models among them, from a description in Python.

Objects are laid out parents first, so that tests know, and may spoil, every byte. Independent of
FlatBuffers' own library, which would refuse to write what hostile files hold.
"""

import struct


class Table:
    """A table: fields {number: value}; a value is (format, number) as for struct, or an object."""

    def __init__(self, **fields):
        self.fields = {int(k[1:]): v for k, v in fields.items() if v is not None}
        self.at = self.vtable = None  # bytes, once laid out


class Vector:
    """A vector of numbers (format: one struct character), or of objects (format None)."""

    def __init__(self, items, format="i", align=4):
        self.items, self.format, self.align = list(items), format, align
        self.at = None


class String:
    """A string: bytes or str."""

    def __init__(self, text):
        self.text = text.encode() if isinstance(text, str) else text
        self.at = None


def objects(items):
    """A vector of tables (or strings)."""
    return Vector(items, None)


def _children(thing):
    if isinstance(thing, Table):
        return [v for v in thing.fields.values() if not isinstance(v, tuple)]
    if isinstance(thing, Vector) and thing.format is None:
        return thing.items
    return []


def _place(out, thing):
    """Appends one object; returns the patches [(position of an offset, object it leads to)]."""

    def pad(align, ahead=0):
        while (len(out) + ahead) % align:
            out.append(0)

    patches = []
    if isinstance(thing, Table):
        offset, places, align = 4, {}, 4
        # Widest fields first, as FlatBuffers' own writers do; order does not matter to readers.
        width = {
            k: struct.calcsize(v[0]) if isinstance(v, tuple) else 4 for k, v in thing.fields.items()
        }
        for k in sorted(thing.fields, key=lambda k: (-width[k], k)):
            offset += -offset % width[k]
            places[k] = offset
            offset += width[k]
            align = max(align, width[k])
        entries = max(thing.fields, default=-1) + 1
        vtable = struct.pack("<HH", 4 + 2 * entries, offset)
        vtable += b"".join(struct.pack("<H", places.get(k, 0)) for k in range(entries))
        pad(2)
        pad(align, len(vtable))
        thing.vtable = len(out)
        out += vtable
        thing.at = len(out)
        out += bytes(offset)
        struct.pack_into("<i", out, thing.at, thing.at - thing.vtable)
        for k, v in thing.fields.items():
            at = thing.at + places[k]
            if isinstance(v, tuple):
                struct.pack_into("<" + v[0], out, at, v[1])
            else:
                patches.append((at, v))
    elif isinstance(thing, Vector):
        pad(thing.align, 4)
        thing.at = len(out)
        out += struct.pack("<I", len(thing.items))
        for item in thing.items:
            if thing.format is None:
                patches.append((len(out), item))
                out += bytes(4)
            else:
                out += struct.pack("<" + thing.format, item)
    else:
        pad(4)
        thing.at = len(out)
        out += struct.pack("<I", len(thing.text)) + thing.text + b"\0"
    return patches


def serialize(root, identifier=b"TFL3"):
    """Returns the bytes (bytearray) of a FlatBuffer; sets `at` of all objects (the position of a
    table, or of a vector's length). Objects that are met twice are written once."""
    out = bytearray(4) + identifier
    patches, queue, seen = [(0, root)], [root], {id(root)}
    for thing in queue:
        patches += _place(out, thing)
        for child in _children(thing):
            if id(child) not in seen:
                seen.add(id(child))
                queue.append(child)
    while len(out) % 4:
        out.append(0)
    for at, thing in patches:
        struct.pack_into("<I", out, at, thing.at - at)
    return out


# ---- .tflite ----

FLOAT32, FLOAT16, INT32, UINT8, INT64, STRING, BOOL, INT16, COMPLEX64, INT8 = range(10)
FLOAT64, COMPLEX128, UINT64, RESOURCE, VARIANT, UINT32, UINT16, INT4, BFLOAT16 = range(10, 19)
INT2, UINT4, FLOAT8_E4M3FN, FLOAT8_E5M2 = range(19, 23)


class Model:
    """A model under construction. Buffer 0 is the empty one."""

    def __init__(self):
        self.buffers = [Table()]
        self.codes, self.code_of = [], {}
        self.subgraphs, self.metadata, self.signatures = [], [], []

    def buffer(self, data):
        """Adds a buffer with data (bytes); returns its index."""
        self.buffers.append(Table(f0=Vector(data, "B", 16)))
        return len(self.buffers) - 1

    def code(self, builtin, custom=None):
        """The index of an operator code."""
        key = builtin, custom
        if key not in self.code_of:
            self.code_of[key] = len(self.codes)
            self.codes.append(
                Table(
                    f0=("b", min(builtin, 127)),
                    f1=String(custom) if custom else None,
                    f2=("i", 1),
                    f3=("i", builtin),
                )
            )
        return self.code_of[key]

    def add_metadata(self, name, data):
        """Adds metadata with data (bytes)."""
        name = String(name) if name is not None else None
        self.metadata.append(Table(f0=name, f1=("I", self.buffer(data))))

    def subgraph(self, name=None):
        """Adds a subgraph."""
        self.subgraphs.append(Subgraph(self, name))
        return self.subgraphs[-1]

    def root(self):
        """The root table, complete."""
        return Table(
            f0=("I", 3),
            f1=objects(self.codes),
            f2=objects([s.table() for s in self.subgraphs]),
            f3=String("made by a test"),
            f4=objects(self.buffers),
            f6=objects(self.metadata) if self.metadata else None,
            f7=objects(self.signatures) if self.signatures else None,
        )

    def bytes(self):
        """The file."""
        return serialize(self.root())


class Subgraph:
    """A subgraph under construction; tensors and operators are numbered from 0."""

    def __init__(self, model, name):
        self.model, self.name = model, name
        self.tensors, self.operators = [], []
        self.inputs, self.outputs = [], []

    def tensor(self, shape=(16,), type=INT8, name=None, data=None, variable=False, **more):
        """Adds a tensor; returns its index. data: bytes of a constant."""
        signature = more.pop("signature", None)
        self.tensors.append(
            Table(
                f0=Vector(shape),
                f1=("b", type),
                f2=("I", more.pop("buffer", self.model.buffer(data) if data else 0)),
                f3=String(name or f"t{len(self.tensors)}"),
                f5=("B", 1) if variable else None,
                f7=Vector(signature) if signature else None,
                **more,
            )
        )
        return len(self.tensors) - 1

    def operator(self, builtin, inputs, outputs, custom=None, **more):
        """Adds an operator; more: fields of the table."""
        self.operators.append(
            Table(
                f0=("I", self.model.code(builtin, custom)),
                f1=Vector(inputs),
                f2=Vector(outputs),
                **more,
            )
        )
        return len(self.operators) - 1

    def table(self):
        """The table, complete."""
        return Table(
            f0=objects(self.tensors),
            f1=Vector(self.inputs),
            f2=Vector(self.outputs),
            f3=objects(self.operators),
            f4=String(self.name) if self.name is not None else None,
        )


ADD, CUSTOM, RELU, RESHAPE, SVDF, CALL, IF, WHILE = 0, 32, 19, 22, 27, 31, 118, 119
CALL_ONCE, HASHTABLE, HASHTABLE_FIND, HASHTABLE_IMPORT = 129, 136, 137, 138
VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE, RANDOM_UNIFORM = 142, 143, 144, 148
COMPOSITE, CASE = 206, 209


def options(tag, *fields):
    """builtin_options of an operator: the union's tag, and numbers (int32) or objects."""
    return {"f3": ("B", tag), "f4": _options_table(fields)}


def options2(tag, *fields):
    """builtin_options_2, likewise."""
    return {"f11": ("B", tag), "f12": _options_table(fields)}


def _options_table(fields):
    return Table(
        **{f"f{i}": v if not isinstance(v, int) else ("i", v) for i, v in enumerate(fields)}
    )


def varint(value):
    """Protocol-buffer style."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def control_dependencies(subgraphs):
    """The metadata model_control_dependencies of lists of pairs, one list a subgraph."""
    out = varint(1) + varint(len(subgraphs))
    for edges in subgraphs:
        out += varint(len(edges))
        for pair in edges:
            for operator in pair:
                out += varint(operator << 1 if operator >= 0 else (-operator << 1) - 1)
    return out


def offline_plan(offsets):
    """The metadata OfflineMemoryAllocation."""
    return struct.pack(f"<3i{len(offsets)}i", 1, 0, len(offsets), *offsets)
