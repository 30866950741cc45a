"""Small models for the tests, and for tests/data/inductor-cuda/capture.py."""

import torch
from torch import nn


class Branches(nn.Module):
    """Three branches that grow and shrink, into a sum: the order of their statements matters."""

    def __init__(self, width=256, thin=8):
        super().__init__()
        self.wide = nn.ModuleList(nn.Linear(thin, width) for _ in range(3))
        self.thin = nn.ModuleList(nn.Linear(width, thin) for _ in range(3))

    def forward(self, x):
        return sum(torch.relu(t(torch.relu(w(x)))) for w, t in zip(self.wide, self.thin))


def convolutional():
    """Two convolutions with batch normalisation and pooling; its backward has a better order."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
