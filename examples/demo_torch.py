#!/usr/bin/env python3
"""A compiled PyTorch model, before and after: bytes measured and modelled, the bound, the proof.

    examples/demo_torch.py [--split-reuse]

Trains one step of a small model on real torch, lets peakproof reorder what Inductor generated, and
has the independent checker verify the certificates. Finds peakproof-check on the PATH, in
$PP_BUILD/release/check or in build/release/check. Needs the package installed with torch 2.13.0.
"""

import os
import shutil
import subprocess
import sys
import tempfile

import peakproof
from peakproof.__main__ import preload


def checker():
    """The path of peakproof-check, or None."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for build in (os.environ.get("PP_BUILD"), os.path.join(root, "build")):
        path = os.path.join(build, "release", "check", "peakproof-check") if build else ""
        if os.path.exists(path):
            return path
    return shutil.which("peakproof-check")


def verdict(directory, name):
    """What the checker says about a program's certificate."""
    program = checker()
    if program is None:
        return "peakproof-check is not built"
    base = os.path.join(directory, name)
    out = subprocess.run([program, base + ".json", base + ".cert"], capture_output=True, text=True)
    return out.stdout.strip() or out.stderr.strip()


def model():
    """A small decoder of two layers and its input."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self, width=64, heads=4):
            super().__init__()
            self.heads = heads
            self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            n, t, w = x.shape
            q, k, v = self.qkv(self.n1(x)).chunk(3, -1)
            q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2) for y in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, t, w))
            return x + self.down(F.gelu(self.up(self.n2(x))))

    torch.manual_seed(0)
    layers = [nn.Embedding(200, 64), Block(), Block(), nn.LayerNorm(64), nn.Linear(64, 200)]
    return nn.Sequential(*layers), torch.randint(0, 200, (2, 32))


def main():
    preload()  # starts this script again with memtrace in front of the allocator
    import torch

    network, x = model()
    with peakproof.optimize(split_reuse="--split-reuse" in sys.argv) as session:
        compiled = torch.compile(network)
        compiled(x).square().sum().backward()
    print(f"torch {torch.__version__}; bytes that the program allocates, counted as requested\n")
    with tempfile.TemporaryDirectory() as directory:
        session.save(directory)
        for r in (result.report for result in session.results):
            print(f"{r.name}: {r.statements} statements, {r.state}")
            for label, measured, modelled in (
                ("stock", r.stock_peak_measured, r.stock_peak_modelled),
                ("permuted", r.peak_measured, r.peak),
            ):
                print(f"  {label:9} measured {measured:>12,}  modelled {modelled:>12,}")
            print(f"  bound              {r.lower_bound:>12,}  ({r.proof})")
            print(f"  bitwise equal      {r.bitwise}")
            print(f"  {verdict(directory, r.name)}\n")
    print(session.why("0_backward"), end="")


if __name__ == "__main__":
    main()
