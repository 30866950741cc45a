"""`python -m peakproof onnx-shapes`: writes an ONNX model with the shapes of its values.

The shapes are what onnx's own inference finds. External data stays where it is: it is neither read
nor copied, so the output belongs beside the input if the model has any.
"""

import os
import sys

from .files import write

MARK = "peakproof.shapes"  # a metadata key that tells peakproof that inference has been here


def dimension(text):
    """NAME=VALUE as (name, size). Raises ValueError unless VALUE is a number from 0."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value.isascii() or not value.isdigit() or int(value) >= 2**63:
        raise ValueError(f"--dim wants NAME=NUMBER, not {text!r}")
    return name, int(value)


def graphs(graph):
    """Yields a GraphProto and all graphs inside its nodes."""
    queue = [graph]
    while queue:
        graph = queue.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    queue.append(attribute.g)
                queue.extend(attribute.graphs)


def set_dimensions(model, sizes):
    """Gives symbolic dimensions their sizes ({name: size}; "*" stands for all others, unnamed ones
    of the model's inputs too). Returns the names that were found (set)."""
    found = set()
    for depth, graph in enumerate(graphs(model.graph)):
        named = {tensor.name for tensor in graph.initializer}
        for kind in ("input", "output", "value_info"):
            for info in getattr(graph, kind):
                if not info.type.HasField("tensor_type"):
                    continue
                free = kind == "input" and depth == 0 and info.name not in named
                for dim in info.type.tensor_type.shape.dim:
                    if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0:
                        continue
                    name = dim.dim_param
                    if name and name in sizes:
                        dim.dim_value = sizes[name]
                        found.add(name)
                    elif "*" in sizes and (name or free):
                        dim.dim_value = sizes["*"]
                        found.add("*")
    return found


def add_masks(graph):
    """Adds the mask of a Dropout that does not train, which onnx leaves out before version 10: it
    has the shape of the data."""
    import onnx

    known = {v.name: v for k in (graph.input, graph.output, graph.value_info) for v in k}
    for node in graph.node:
        if node.op_type != "Dropout" or node.domain or len(node.output) < 2 or not node.output[1]:
            continue
        source = known.get(node.input[0])
        if node.output[1] in known or source is None:
            continue
        info = onnx.ValueInfoProto()
        info.CopyFrom(source)
        info.name = node.output[1]
        graph.value_info.append(info)


def infer(model, sizes=None):
    """The model (ModelProto) with all shapes that onnx infers, after dimensions got their `sizes`.

    Returns (model, names of dimensions that `sizes` has and the model has not)."""
    import onnx

    found = set_dimensions(model, sizes or {})
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for graph in graphs(model.graph):
        add_masks(graph)
    for entry in [entry for entry in model.metadata_props if entry.key == MARK]:
        model.metadata_props.remove(entry)
    model.metadata_props.add(key=MARK, value=f"onnx {onnx.__version__}")
    return model, sorted(set(sizes or {}) - found - {"*"})


def unknown(model):
    """What is still open: (names of node outputs without a shape, names of symbolic dimensions)."""
    values, symbols = [], {}
    for graph in graphs(model.graph):
        known = {v.name: v for k in (graph.input, graph.output, graph.value_info) for v in k}
        for node in graph.node:
            for name in filter(None, node.output):
                info = known.get(name)
                if info is None or not info.type.WhichOneof("value"):
                    values.append(name)
                elif info.type.HasField("tensor_type"):
                    if not info.type.tensor_type.HasField("shape"):
                        values.append(name)
                    for dim in info.type.tensor_type.shape.dim:
                        if dim.WhichOneof("value") != "dim_value":
                            symbols.setdefault(dim.dim_param or "?")
    return values, list(symbols)


def shorten(names, limit=8):
    """Names in one line, the rest counted."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(map(repr, names[:limit])) + more


def say(text):
    print(f"peakproof: {text}", file=sys.stderr)


def data_files(model):
    """Yields the names (str) of the files that hold the data of a ModelProto's tensors."""
    todo = [model]
    while todo:
        for field, value in todo.pop().ListFields():
            if field.name == "external_data":
                yield from (entry.value for entry in value if entry.key == "location")
            elif field.message_type is not None:
                todo += [value] if hasattr(value, "ListFields") else value


def hits_data(output, path, model):
    """Is the path `output` one of the data files of the model that was read from `path`?"""
    places = (os.path.join(os.path.dirname(path), name) for name in set(data_files(model)))
    return os.path.realpath(output) in map(os.path.realpath, places)


def run(options):
    """The verb. Returns the exit code, of sysexits.h."""
    try:
        sizes = dict(map(dimension, options.dim))
    except ValueError as error:
        say(error)
        return 64
    try:
        import onnx
        from google.protobuf.message import DecodeError, EncodeError
    except ImportError as error:
        say(f"onnx-shapes needs the Python package onnx: pip install 'onnx>=1.17' ({error})")
        return 69
    try:
        with open(options.model, "rb") as file:
            data = file.read()
    except OSError as error:
        say(f"cannot read {options.model}: {error.strerror}")
        return 66
    try:
        model = onnx.load_model_from_string(data)
        if not model.HasField("graph"):
            raise ValueError("the model has no graph")
        model, unused = infer(model, sizes)
        data = model.SerializeToString()
    except (DecodeError, EncodeError, ValueError, RuntimeError) as error:
        say(f"{options.model}: {error}")
        return 65
    if hits_data(options.output, options.model, model):
        say(f"{options.output}: -o would overwrite the data of the model's tensors")
        return 73
    try:
        write(options.output, data)
    except OSError as error:
        say(f"cannot create {options.output}: {error.strerror}")
        return 73
    values, symbols = unknown(model)
    if unused:
        say(f"note: no value has a dimension {shorten(unused)}")
    if symbols:
        say(f"note: dimensions are not set, --dim NAME=N sets one: {shorten(symbols)}")
    if values:
        say(f"note: onnx infers no shape for {shorten(values)}")
    return 0


def add_parser(verbs):
    """Adds the verb to argparse's subparsers; returns its parser."""
    p = verbs.add_parser("onnx-shapes", help="write an ONNX model with the shapes of its values")
    p.add_argument("model")
    p.add_argument("-o", "--output", required=True, metavar="OUT.onnx")
    p.add_argument(
        "--dim", action="append", default=[], metavar="NAME=N", help="a dimension's size"
    )
    return p
