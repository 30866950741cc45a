"""A second model of ONNX memory, from doc/onnx.md and with the onnx package alone: what the reader
in C must agree with. Nothing here is shared with it."""

import math

import onnx

# Bits of an element, by TensorProto.DataType.
BITS = dict(zip(range(1, 17), (32, 8, 8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64, 64, 128, 16)))
BITS.update({17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2})
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
RANDOM |= {"Multinomial", "Bernoulli"}


def bodies(node):
    """The graphs in a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def captures(graph):
    """Names that a graph uses and does not define, with those of its bodies."""
    own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    own |= {o for node in graph.node for o in node.output}
    used = {v.name for v in graph.output}
    for node in graph.node:
        used |= set(node.input)
        for body in bodies(node):
            used |= captures(body)
    return used - own - {""}


class Model:
    """Statements and peaks (bytes) of the original order, as doc/onnx.md counts.

    blind: do as the table OPTIMA.tsv did, which overlooks what bodies capture (and their peaks)."""

    def __init__(self, model, blind=False):
        self.blind = blind
        self.standard = {schema.name for schema in onnx.defs.get_all_schemas_with_history()}
        self.graphs = [(model.graph, set())]  # with the names of constants around it
        self.callees = {}  # (graph, statement): its bodies
        self.statements = []  # of each graph
        self.constants = []
        for i, (graph, around) in enumerate(self.graphs):  # grows meanwhile
            self.split(i, graph, around)

    def reads(self, node):
        """Names that a node reads."""
        names = [name for name in node.input if name]
        if not self.blind:
            for body in bodies(node):
                names += sorted(captures(body))
        return names

    def folds(self, node, constant):
        """Is a node's result known without data?"""
        constants_only = all(name in constant for name in node.input if name)
        if self.blind:
            return constants_only or node.op_type == "Shape"
        if node.domain or node.op_type in RANDOM or node.op_type not in self.standard:
            return False
        if any(True for _ in bodies(node)):
            return False
        return constants_only or node.op_type in ("Shape", "Size")

    def split(self, index, graph, around):
        """Finds constants and statements of a graph, and its bodies."""
        constant = around - {o for node in graph.node for o in node.output}
        constant -= {v.name for v in graph.input}
        constant |= {t.name for t in graph.initializer}
        statements = []
        for node in graph.node:
            if self.folds(node, constant):
                constant |= set(node.output)
            else:
                statements.append(node)
        for node in graph.node:
            first = len(self.graphs)
            self.graphs += [(body, constant) for body in bodies(node)]
            if node in statements:
                self.callees[index, node.output[0]] = range(first, len(self.graphs))
        self.statements.append(statements)
        self.constants.append(constant)

    def size(self, infos, name):
        """Bytes of a value; 0 if unknown."""
        info = infos.get(name)
        if info is None or not info.type.HasField("tensor_type"):
            return 0
        tensor = info.type.tensor_type
        if not tensor.HasField("shape") or not tensor.elem_type:
            return 0
        dims = [
            d.dim_value if d.WhichOneof("value") == "dim_value" else 1 for d in tensor.shape.dim
        ]
        return (math.prod(dims) * BITS.get(tensor.elem_type, 0) + 7) // 8

    def peak(self, index, peaks=None):
        """The peak of a graph's original order; peaks: those of all graphs, for its callees."""
        graph, statements = self.graphs[index][0], self.statements[index]
        constant = self.constants[index]
        infos = {v.name: v for k in (graph.output, graph.input, graph.value_info) for v in k}
        own = {v.name for v in graph.input} | {o for node in graph.node for o in node.output}
        last = {}
        for i, node in enumerate(statements):
            for name in (*self.reads(node), *filter(None, node.output)):
                if name in own and name not in constant:
                    last[name] = i
        for info in graph.output:
            if info.name in own and info.name not in constant:
                last[info.name] = len(statements)
        live = {v.name for v in graph.input if v.name in last}
        peak = sum(self.size(infos, name) for name in live)
        for i, node in enumerate(statements):
            work = 0
            if peaks:
                work = max((peaks[j] for j in self.callees[index, node.output[0]]), default=0)
            live |= {name for name in node.output if name}
            peak = max(peak, work + sum(self.size(infos, name) for name in live))
            live = {name for name in live if last[name] > i}
        return peak
