"""Shared fixtures: a cache of compiled kernels for the run, clean Dynamo, a small model or two."""

import os
import sys
import tempfile

import pytest

_cache = tempfile.TemporaryDirectory(prefix="peakproof-inductor-")
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", _cache.name)


@pytest.fixture(autouse=True)
def clean_dynamo():
    """Every test compiles anew; kernels come from the cache directory."""
    yield
    if "torch._inductor.codecache" in sys.modules:
        sys.modules["torch._dynamo"].reset()
        sys.modules["torch._inductor.codecache"].PyCodeCache.cache_clear()


@pytest.fixture
def convolutional():
    """Two convolutions with batch normalisation and pooling, and an input."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(
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
    return model, torch.randn(2, 3, 16, 16)
