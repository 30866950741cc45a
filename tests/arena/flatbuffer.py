"""Reads as much of a .tflite file as the tests of plans need, with nothing but struct."""

import struct

NAME = b"OfflineMemoryAllocation"


def u16(data, at):
    return struct.unpack_from("<H", data, at)[0]


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def i32(data, at):
    return struct.unpack_from("<i", data, at)[0]


def field(data, table, i):
    """The place of a table's field, or 0."""
    vtable = table - i32(data, table)
    if u16(data, vtable) < 6 + 2 * i:
        return 0
    offset = u16(data, vtable + 4 + 2 * i)
    return offset and table + offset


def vector(data, table, i):
    """(place of the first element, count) of a field that is a vector or a string."""
    at = field(data, table, i)
    if not at:
        return 0, 0
    at += u32(data, at)
    return at + 4, u32(data, at)


def tables(data, table, i):
    """The places of the tables in a field that is a vector of tables."""
    at, count = vector(data, table, i)
    return [at + 4 * k + u32(data, at + 4 * k) for k in range(count)]


def root(data):
    return u32(data, 0)


def text(data, table, i):
    at, count = vector(data, table, i)
    return bytes(data[at : at + count])


def scalar(data, table, i):
    at = field(data, table, i)
    return u32(data, at) if at else 0


def byte(data, table, i):
    at = field(data, table, i)
    return data[at] if at else 0


def plan_buffer(data):
    """The place of the plan's buffer table."""
    found = [m for m in tables(data, root(data), 6) if text(data, m, 0) == NAME]
    assert len(found) == 1
    return tables(data, root(data), 4)[scalar(data, found[0], 1)]


def plan_place(data):
    """(place, bytes) of the plan's data."""
    return vector(data, plan_buffer(data), 0)


def plan(data):
    """The plan's offsets, one a tensor."""
    at, size = plan_place(data)
    version, subgraph, count = struct.unpack_from("<iii", data, at)
    assert (version, subgraph, size) == (1, 0, 12 + 4 * count) and at % 16 == 0
    return list(struct.unpack_from(f"<{count}i", data, at + 12))


def replace_plan(data, block):
    """The file with other bytes as its plan's data, appended."""
    out = bytearray(data)
    while (len(out) + 4) % 16:
        out.append(0)
    at = field(data, plan_buffer(data), 0)
    struct.pack_into("<I", out, at, len(out) - at)
    return bytes(out + struct.pack("<I", len(block)) + block)


def data_behind(data):
    """Whether some buffer's data lies behind the FlatBuffer."""
    return any(field(data, b, 1) for b in tables(data, root(data), 4))


def subgraphs(data):
    """The subgraphs: tensors (shape, type, data, name, variable), inputs, outputs, operators."""

    def ints(table, i):
        at, count = vector(data, table, i)
        return list(struct.unpack_from(f"<{count}i", data, at))

    buffers = tables(data, root(data), 4)

    def tensor(table):
        kind = field(data, table, 1)
        variable = field(data, table, 5)
        return (
            ints(table, 0),
            data[kind] if kind else 0,
            hash(text(data, buffers[scalar(data, table, 2)], 0)),
            text(data, table, 3),
            data[variable] if variable else 0,
        )

    return [
        {
            "tensors": [tensor(t) for t in tables(data, s, 0)],
            "inputs": ints(s, 1),
            "outputs": ints(s, 2),
            "operators": [(scalar(data, o, 0), ints(o, 1), ints(o, 2)) for o in tables(data, s, 3)],
            "name": text(data, s, 4),
        }
        for s in tables(data, root(data), 2)
    ]


def described(data):
    """What the file says, but for the plan."""
    buffers = tables(data, root(data), 4)
    return {
        "version": scalar(data, root(data), 0),
        "codes": [
            (byte(data, c, 0), scalar(data, c, 3), text(data, c, 1))
            for c in tables(data, root(data), 1)
        ],
        "subgraphs": subgraphs(data),
        "description": text(data, root(data), 3),
        "metadata": [
            (text(data, m, 0), text(data, buffers[scalar(data, m, 1)], 0))
            for m in tables(data, root(data), 6)
            if text(data, m, 0) != NAME
        ],
        "signatures": [text(data, s, 2) for s in tables(data, root(data), 7)],
    }
