"""`python -m peakproof onnx-shapes`: writes an ONNX model with the shapes of its values.

The shapes are what onnx's own inference finds. External data stays where it is: it is neither read
nor copied, so the output belongs beside the input if the model has any.
"""

import itertools
import math
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


# Operators that compute shapes of shapes; all are functions of their inputs.
ARITHMETIC = set(
    """Abs Add And Cast CastLike Ceil Concat ConstantOfShape Div Equal Expand Flatten Floor Gather
    Greater GreaterOrEqual Identity Less LessOrEqual Max Min Mod Mul Neg Not Or Range ReduceMax
    ReduceMin ReduceProd ReduceSum Reshape ScatterND Slice Split Sqrt Squeeze Sub Tile Transpose
    Unsqueeze Where""".split()
)
SMALL = 1 << 16  # elements of a value that may say a shape


def is_small(tensor):
    """Is a TensorProto's data in the file, and little?"""
    return not tensor.external_data and math.prod(tensor.dims) <= SMALL


def sizes_of(info):
    """The dimensions (list of int) that a ValueInfoProto says, or None if any is open."""
    if info is None or not info.type.tensor_type.HasField("shape"):
        return None
    dims = info.type.tensor_type.shape.dim
    known = all(d.WhichOneof("value") == "dim_value" and d.dim_value >= 0 for d in dims)
    return [d.dim_value for d in dims] if known else None


def array_of(tensor):
    """The numbers (array) of a TensorProto that is small and whole, or None."""
    from onnx import numpy_helper

    try:
        array = numpy_helper.to_array(tensor) if is_small(tensor) else None
    except Exception:  # data that do not fit the dimensions, of several kinds
        return None
    return array if array is not None and array.dtype.kind in "biuf" else None


def is_cheap(node, values):
    """Is a node's result small enough to be made? values: its inputs (arrays)."""
    sizes = [max(value.size, 1) for value in values]
    if node.op_type == "Concat":
        return sum(sizes) <= SMALL
    if node.op_type == "Range":
        return all(v.dtype.kind == "i" and (abs(v) <= SMALL).all() for v in values)
    if node.op_type in ("ConstantOfShape", "Expand", "Tile"):
        filled = math.prod(map(int, values[-1].flatten()))
        return abs(filled) <= SMALL and math.prod(sizes[:-1]) <= SMALL
    if node.op_type in ("Gather", "Slice", "Reshape", "ScatterND"):
        return math.prod(sizes) <= SMALL**1.5
    shapes = [value.shape for value in values]
    return math.prod(map(max, itertools.zip_longest(*map(reversed, shapes), fillvalue=1))) <= SMALL


def compute(node, values, infos, opset):
    """The results (list of arrays) of a node that only looks at known shapes and `values` (arrays
    by name), or None."""
    import numpy
    import onnx
    from onnx.reference import ReferenceEvaluator

    if node.op_type in ("Shape", "Size"):
        dims = sizes_of(infos.get(node.input[0]))
        if dims is None:
            return None
        ends = {a.name: a.i for a in node.attribute}
        if node.op_type == "Size":
            return [numpy.array(math.prod(dims), numpy.int64)]
        return [numpy.array(dims[ends.get("start", 0) : ends.get("end")], numpy.int64)]
    if node.op_type == "Constant":
        if not all(is_small(a.t) for a in node.attribute if a.HasField("t")):
            return None
    elif node.op_type not in ARITHMETIC or not all(n in values or not n for n in node.input):
        return None
    elif not is_cheap(node, [values[name] for name in node.input if name]):
        return None
    feeds = {name: values[name] for name in node.input if name}
    ends = [[onnx.ValueInfoProto(name=n) for n in names] for names in (feeds, node.output)]
    graph = onnx.helper.make_graph([node], "g", *ends)
    alone = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    return ReferenceEvaluator(alone).run(None, feeds)


def evaluate(node, values, infos, opset):
    """What `compute` says, if it is sound and small."""
    if node.domain not in ("", "ai.onnx") or not node.output:
        return None
    try:
        results = compute(node, values, infos, opset)
        if results is None or len(results) != len(node.output):
            return None
        fine = all(r.size <= SMALL and r.dtype.kind in "biuf" for r in results)
    except Exception:  # the reference's own, of many kinds: then nothing is known
        return None
    return results if fine else None


def fold(model):
    """Replaces nodes of the main graph that look only at known shapes and small constants by their
    results. Returns whether there were any."""
    from onnx import numpy_helper

    graph = model.graph
    opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1)
    infos = {v.name: v for k in (graph.input, graph.output, graph.value_info) for v in k}
    defaults = {v.name for v in graph.input}  # which callers may replace
    values = {t.name: array_of(t) for t in graph.initializer if t.name not in defaults}
    values = {name: value for name, value in values.items() if value is not None}
    kept, shown = [], {v.name for v in graph.output}
    for node in graph.node:
        results = evaluate(node, values, infos, opset)
        if results is None or shown & set(node.output):
            kept.append(node)
            continue
        for name, value in zip(node.output, results, strict=True):
            values[name] = value
            if name:
                graph.initializer.append(numpy_helper.from_array(value, name))
    found = len(kept) < len(graph.node)
    if found:
        copies = [type(node).FromString(node.SerializeToString()) for node in kept]
        del graph.node[:]
        graph.node.extend(copies)
    return found


def pairs(model, other):
    """Yields the graphs of two models that are the same one, where `other` may lack nodes."""
    queue = [(model.graph, other.graph)]
    while queue:
        graph, twin = queue.pop()
        yield graph, twin
        nodes = {node.output[0]: node for node in twin.node if node.output}
        for node in graph.node:
            match = nodes.get(node.output[0]) if node.output else None
            bodies = {a.name: a.g for a in match.attribute if a.HasField("g")} if match else {}
            for attribute in node.attribute:
                if attribute.HasField("g") and attribute.name in bodies:
                    queue.append((attribute.g, bodies[attribute.name]))


def info_of(tensor):
    """A ValueInfoProto of a TensorProto."""
    import onnx

    return onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)


def learn(model, other):
    """Takes over the shapes that `other` knows wholly and `model` does not."""
    for graph, twin in pairs(model, other):
        known = {v.name: v for k in (graph.input, graph.output, graph.value_info) for v in k}
        made = {name for node in graph.node for name in node.output if name}
        for info in (*twin.value_info, *twin.output, *map(info_of, twin.initializer)):
            if info.name not in made or sizes_of(info) is None:
                continue
            mine = known.get(info.name)
            if mine is None:
                graph.value_info.append(info)
            elif sizes_of(mine) is None and mine.type.WhichOneof("value") in (None, "tensor_type"):
                mine.type.CopyFrom(info.type)


def light(model):
    """A copy (ModelProto) without the data of large tensors: shapes do not follow from it."""
    copy = type(model)()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if not is_small(tensor):
            dims, kind, name = list(tensor.dims), tensor.data_type, tensor.name
            tensor.Clear()
            tensor.name, tensor.data_type = name, kind
            tensor.dims.extend(dims)
            tensor.data_location = tensor.EXTERNAL
            tensor.external_data.add(key="location", value="none")
    return copy


def forget(model):
    """Forgets descriptions of values with open dimensions: onnx keeps the names that it gave them
    though it could now say their sizes."""
    for graph in graphs(model.graph):
        known = [info for info in graph.value_info if sizes_of(info) is not None]
        if len(known) < len(graph.value_info):
            copies = [type(info).FromString(info.SerializeToString()) for info in known]
            del graph.value_info[:]
            graph.value_info.extend(copies)


def infer_folded(model):
    """Folds and infers in turns until nothing is new; returns the last model."""
    import onnx

    while fold(model):
        try:
            forget(model)
            model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        except RuntimeError:  # onnx's own inference contradicts itself
            break
    return model


def infer(model, sizes=None):
    """The model (ModelProto) with all shapes that onnx infers, after dimensions got their `sizes`.

    Where they leave shapes open, nodes that compute shapes are evaluated and the shapes inferred
    again, until nothing is new. Returns (model, names of dimensions that `sizes` has and the model
    has not)."""
    import onnx

    found = set_dimensions(model, sizes or {})
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for graph in graphs(model.graph):
        add_masks(graph)
    if any(unknown(model)):
        learn(model, infer_folded(light(model)))
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
