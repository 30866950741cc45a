"""What tflite-micro's planner makes of a model's tensors alone.

Its lifetimes and its greedy packing, written anew from what micro_allocation_info.cc and
greedy_memory_planner.cc do. Scratch buffers, which kernels ask for at run time, are not in the file
and not in here.
"""

from ai_edge_litert import schema_py_generated as schema

BITS = {0: 32, 1: 16, 2: 32, 3: 8, 4: 64, 6: 8, 7: 16, 8: 64, 9: 8, 10: 64, 13: 32, 15: 32, 16: 16}
BITS |= {17: 4}
ALIGNMENT = 16


def size_of(tensor):
    """Bytes of a tensor, before rounding."""
    elements = 1
    for i in range(tensor.ShapeLength()):
        elements *= tensor.Shape(i)
    return (elements * BITS.get(tensor.Type(), 0) + 7) // 8


class Lifetimes:
    """First and last scope of every tensor of the model, as TFLM counts them."""

    def __init__(self, model):
        self.model, self.scope = model, 0
        self.first, self.last = {}, {}
        self.walk(0)

    def create(self, s, tensor):
        self.first[s, tensor] = self.last[s, tensor] = self.scope

    def callees(self, operator):
        """The subgraphs that an operator executes inside its scope."""
        code = self.model.OperatorCodes(operator.OpcodeIndex())
        builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        kind = {118: schema.IfOptions, 119: schema.WhileOptions, 129: schema.CallOnceOptions}
        if builtin not in kind:
            return []
        options = kind[builtin]()
        table = operator.BuiltinOptions()
        options.Init(table.Bytes, table.Pos)
        if builtin == 118:
            return [options.ThenSubgraphIndex(), options.ElseSubgraphIndex()]
        if builtin == 119:
            return [options.CondSubgraphIndex(), options.BodySubgraphIndex()]
        return [options.InitSubgraphIndex()]

    def walk(self, s):
        graph = self.model.Subgraphs(s)
        for i in range(graph.InputsLength()):
            self.create(s, graph.Inputs(i))
        for i in range(graph.OutputsLength()):
            self.create(s, graph.Outputs(i))
        for k in range(graph.OperatorsLength()):
            self.scope += 1
            operator = graph.Operators(k)
            for i in range(operator.OutputsLength()):
                self.create(s, operator.Outputs(i))
            for callee in self.callees(operator):
                self.scope += 1
                self.walk(callee)
            for i in range(operator.InputsLength()):
                self.last[s, operator.Inputs(i)] = self.scope
            for i in range(operator.OutputsLength()):
                self.last[s, operator.Outputs(i)] = self.scope
        for i in range(graph.OutputsLength()):
            self.last[s, graph.Outputs(i)] = self.scope


def pack(buffers):
    """The size of an arena: buffers [(bytes, first, last)], big ones first, each into the lowest
    gap between those that are already there and live at the same time."""
    placed, top = [], 0
    for size, first, last in sorted(buffers, key=lambda b: -b[0]):
        at = 0
        for start, end in sorted((o, o + s) for o, s, f, t in placed if f <= last and first <= t):
            if start - at >= size:
                break
            at = max(at, end)
        placed.append((at, size, first, last))
        top = max(top, at + size)
    return top


def greedy(path):
    """Bytes of the arena that holds the tensors of a .tflite file, packed as TFLM does."""
    with open(path, "rb") as file:
        model = schema.Model.GetRootAs(file.read(), 0)
    lifetimes, buffers = Lifetimes(model), []
    for s in range(model.SubgraphsLength()):
        graph = model.Subgraphs(s)
        for i in range(graph.TensorsLength()):
            tensor = graph.Tensors(i)
            constant = model.Buffers(tensor.Buffer()).DataLength()
            if (s, i) not in lifetimes.first or tensor.IsVariable() or constant:
                continue
            size = -(-size_of(tensor) // ALIGNMENT) * ALIGNMENT
            if size:
                buffers.append((size, lifetimes.first[s, i], lifetimes.last[s, i]))
    return pack(buffers)
