"""make.py - writes forward.json and backward.json, and prints Inductor's own estimate of their
peaks.

They are what `torch._inductor.config.reorder_for_peak_memory_debug` exports, of a small network
whose operators have several outputs (pooling, sorting, attention). Made with torch 2.13.0.
"""

import torch
import torch._inductor.config
import torch._inductor.memory as memory

NAMES = iter(["forward.json", "backward.json"])
export = memory.export_graph_for_simulator


def keep(nodes, inputs, fused, graph_inputs, graph_outputs):
    """Writes the export to a file instead of to the trace."""
    texts = []
    trace = torch._logging.trace_structured
    torch._logging.trace_structured = lambda *_, payload_fn, **__: texts.append(payload_fn())
    try:
        export(nodes, inputs, fused, graph_inputs, graph_outputs)
    finally:
        torch._logging.trace_structured = trace
    name = next(NAMES)
    with open(name, "w") as file:
        file.write(texts[0])
    print(name, memory.estimate_peak_memory(nodes, inputs, graph_outputs)[0])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.c2 = torch.nn.Conv2d(8, 16, 3, padding=1, stride=2)
        self.c3 = torch.nn.Conv2d(8, 16, 3, padding=1, stride=2)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.linear = torch.nn.Linear(16, 10)
        self.pool = torch.nn.MaxPool2d(2, return_indices=True)

    def forward(self, x):
        x = torch.relu(self.c1(x))
        p, i = self.pool(torch.relu(self.c2(x)) + torch.tanh(self.c3(x)))
        q = p.flatten(2).transpose(1, 2)
        q, _ = self.attention(q, q, q)
        v, k = torch.sort(q, dim=1)
        return self.linear(v.mean(1)), k.sum() + i.sum()


if __name__ == "__main__":
    torch._inductor.config.reorder_for_peak_memory_debug = True
    memory.export_graph_for_simulator = keep
    torch.compile(Net())(torch.randn(2, 3, 16, 16))[0].sum().backward()
