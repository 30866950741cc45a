"""A network with branches, compiled by PyTorch: python -m peakproof run examples/inception.py

Each block computes four branches and concatenates them, as GoogLeNet does; the order of the
branches decides how much memory they need together.
"""

import torch
from torch import nn


class Block(nn.Module):
    """Four branches over one input, concatenated: `inputs` channels in, `sum(widths)` out."""

    def __init__(self, inputs, widths, narrow):
        super().__init__()
        one, three, five, pooled = widths
        self.branches = nn.ModuleList(
            [
                nn.Conv2d(inputs, one, 1),
                nn.Sequential(
                    nn.Conv2d(inputs, narrow, 1), nn.ReLU(), nn.Conv2d(narrow, three, 3, padding=1)
                ),
                nn.Sequential(
                    nn.Conv2d(inputs, narrow, 1), nn.ReLU(), nn.Conv2d(narrow, five, 5, padding=2)
                ),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(inputs, pooled, 1)),
            ]
        )

    def forward(self, x):
        return torch.relu(torch.cat([branch(x) for branch in self.branches], 1))


def network():
    """Two such blocks between a convolution and a classifier."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        Block(16, (64, 32, 32, 32), 96),
        Block(160, (96, 64, 48, 32), 128),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(240, 10),
    )


def main():
    torch.manual_seed(0)
    model = network().eval()
    with torch.no_grad():
        print("output of shape", tuple(torch.compile(model)(torch.randn(1, 3, 96, 96)).shape))


if __name__ == "__main__":
    main()
