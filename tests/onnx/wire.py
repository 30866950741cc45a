"""ONNX files on the wire, for the tests: what protoc --decode_raw says, and in which order."""

import subprocess


def decode(data):
    """protoc --decode_raw of bytes as a tree: a list of lines (str) and (field, tree)."""
    done = subprocess.run(["protoc", "--decode_raw"], input=data, capture_output=True, check=True)
    stack = [[]]
    for line in done.stdout.decode().splitlines():
        text = line.strip()
        if text == "}":
            tree = stack.pop()
            field = stack[-1].pop()
            stack[-1].append((field, tree))
        elif text.endswith(" {") and text[:-2].isdigit():
            stack[-1].append(text[:-2])
            stack.append([])
        else:
            stack[-1].append(text)
    return stack[0]


def canonical_graph(tree):
    """A graph without the order of its nodes: (everything else, sorted nodes)."""
    nodes = [canonical_node(t[1]) for t in tree if isinstance(t, tuple) and t[0] == "1"]
    rest = [t for t in tree if not (isinstance(t, tuple) and t[0] == "1")]
    return rest, sorted(nodes, key=repr)


def canonical_node(tree):
    """A node with its bodies' graphs canonical."""
    out = []
    for item in tree:
        if isinstance(item, tuple) and item[0] == "5":
            inner = [
                (i[0], canonical_graph(i[1])) if isinstance(i, tuple) and i[0] in ("6", "11") else i
                for i in item[1]
            ]
            item = ("5", inner)
        out.append(item)
    return out


def canonical(data):
    """All that decode_raw says of a model, but for the order of nodes."""
    return [
        ("7", canonical_graph(t[1])) if isinstance(t, tuple) and t[0] == "7" else t
        for t in decode(data)
    ]


def varint(value, width=1):
    """A varint; padded to `width` bytes, which is not the shortest form but a valid one."""
    out = bytearray()
    while value > 127 or len(out) + 1 < width:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, payload, width=1):
    """A field: an int (varint) or bytes; tag and length padded to `width` bytes."""
    if isinstance(payload, int):
        return varint(number << 3, width) + varint(payload, width)
    return varint(number << 3 | 2, width) + varint(len(payload), width) + payload
