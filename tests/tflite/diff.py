"""Tells, from the bytes of two .tflite files, whether one is the other with operators permuted.

Written from TFLITE.md alone, and from FlatBuffers' format; shares nothing with src/.
"""

import struct


class Reader:
    """Fields of FlatBuffers tables by number."""

    def __init__(self, data):
        self.data = data

    def u32(self, at):
        return struct.unpack_from("<I", self.data, at)[0]

    def field(self, table, number):
        """The position of a field, or None."""
        vtable = table - struct.unpack_from("<i", self.data, table)[0]
        entry = 4 + 2 * number
        if entry >= struct.unpack_from("<H", self.data, vtable)[0]:
            return None
        offset = struct.unpack_from("<H", self.data, vtable + entry)[0]
        return table + offset if offset else None

    def follow(self, at):
        return at + self.u32(at)

    def vector(self, table, number):
        """The positions of a vector's elements (of 4 bytes); [] without one."""
        at = self.field(table, number)
        if at is None:
            return []
        start = self.follow(at)
        return [start + 4 + 4 * i for i in range(self.u32(start))]

    def tables(self, table, number):
        return [self.follow(at) for at in self.vector(table, number)]

    def text(self, table, number):
        """Bytes of a string or a vector of bytes, and where they begin."""
        at = self.field(table, number)
        if at is None:
            return b"", None
        start = self.follow(at)
        return self.data[start + 4 : start + 4 + self.u32(start)], start + 4


def varints(data):
    """Decodes all varints in data (bytes)."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append(value)
            value = shift = 0
    assert shift == 0, "the last varint is cut short"
    return numbers


def edges(data):
    """model_control_dependencies as a list of sorted lists of pairs."""
    numbers = iter(varints(data))
    assert next(numbers) == 1, "version"
    result = []
    for _ in range(next(numbers)):
        count = next(numbers)
        unzigzag = [
            n // 2 if n % 2 == 0 else -(n // 2) - 1
            for n in map(lambda _: next(numbers), range(2 * count))
        ]
        result.append(sorted(zip(unzigzag[::2], unzigzag[1::2], strict=True)))
    assert next(numbers, None) is None, "numbers left over"
    return result


def permutation(before, after):
    """Returns [order of each subgraph] (order[k]: the original operator at place k).

    before, after: bytes. AssertionError if anything else changed.
    """
    old, new = Reader(before), Reader(after)
    root = old.follow(0)
    assert len(after) >= len(before)
    free = set()  # positions whose bytes may differ
    orders = []
    for subgraph in old.tables(root, 2):
        slots = old.vector(subgraph, 3)
        tables = [old.follow(at) for at in slots]
        moved = [new.follow(at) for at in slots]
        assert sorted(tables) == sorted(moved), "the operators are not the same"
        orders.append([tables.index(table) for table in moved])
        for at in slots:
            free.update(range(at, at + 4))
    changed = any(order != sorted(order) for order in orders)
    buffers = old.tables(root, 4)
    entries = old.tables(root, 6)
    kept = [e for e in entries if old.text(e, 0)[0] != b"OfflineMemoryAllocation"]
    if changed and kept != entries:
        slots = old.vector(root, 6)
        free.update(range(slots[0] - 4, slots[-1] + 4))
        assert new.tables(root, 6) == kept, "metadata"
    tail = len(before)
    for entry in entries:
        if old.text(entry, 0)[0] != b"model_control_dependencies":
            continue
        buffer = buffers[old.u32(old.field(entry, 1))]
        old_data, old_at = old.text(buffer, 0)
        new_data, new_at = new.text(buffer, 0)
        place = [{o: k for k, o in enumerate(order)} for order in orders]
        moved = [
            sorted((place[s][a], place[s][b]) for a, b in pairs)
            for s, pairs in enumerate(edges(old_data))
        ]
        assert moved == edges(new_data), "control dependencies"
        if new_at == old_at:
            assert len(old_data) == len(new_data)
            free.update(range(old_at, old_at + len(old_data)))
        else:
            field = old.field(buffer, 0)
            free.update(range(field, field + 4))
            assert new_at >= len(before) + 4 and new_at % 16 == 0, "not behind the original"
            assert not any(after[len(before) : new_at - 4]), "padding"
            tail = new_at + len(new_data)
    assert len(after) == tail, "bytes behind the end"
    for at, (a, b) in enumerate(zip(before, after[: len(before)], strict=True)):
        assert a == b or at in free, f"byte {at} changed"
    return orders
