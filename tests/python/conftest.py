"""Shared fixtures: a cache of compiled kernels for the run, clean Dynamo."""

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
