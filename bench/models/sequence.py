"""Attention, recurrent and other sequence architectures."""

import torch
import torch.nn.functional as F
from torch import nn


class LSTMCell(nn.Module):
    """Unrolled: one gate matrix a step, as a frontend that expands loops emits it."""

    def __init__(self, width=64, steps=6):
        super().__init__()
        self.width, self.steps = width, steps
        self.x, self.h = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)
        self.out = nn.Linear(width, 10)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.width)
        c = h
        for t in range(self.steps):
            i, f, g, o = (self.x(x[:, t]) + self.h(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.out(h)


class GRUCell(nn.Module):
    def __init__(self, width=64, steps=6):
        super().__init__()
        self.width, self.steps = width, steps
        self.x, self.h = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.width)
        out = []
        for t in range(self.steps):
            a, b = self.x(x[:, t]).chunk(3, 1), self.h(h).chunk(3, 1)
            z, r = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
            h = (1 - z) * torch.tanh(a[2] + r * b[2]) + z * h
            out.append(h)
        return torch.stack(out, 1)


class Attention(nn.Module):
    def __init__(self, width, heads, causal=False, cross=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def split(self, x):
        n, t, w = x.shape
        return x.view(n, t, self.heads, w // self.heads).transpose(1, 2)

    def forward(self, x, memory=None):
        k, v = self.kv(x if memory is None else memory).chunk(2, -1)
        q, k, v = self.split(self.q(x)), self.split(k), self.split(v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).flatten(2))


class ManualAttention(Attention):
    """Written out: scores, softmax, product."""

    def forward(self, x, memory=None):
        k, v = self.kv(x if memory is None else memory).chunk(2, -1)
        q, k, v = self.split(self.q(x)), self.split(k), self.split(v)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, heads, causal=False, cross=False, kind=Attention):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = kind(width, heads, causal)
        self.cross = Attention(width, heads) if cross else None
        self.n3 = nn.LayerNorm(width) if cross else None
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, memory=None):
        x = x + self.attention(self.n1(x))
        if self.cross is not None:
            x = x + self.cross(self.n3(x), memory)
        return x + self.mlp(self.n2(x))


class Bert(nn.Module):
    def __init__(self, width=64, layers=2, vocabulary=200, length=32):
        super().__init__()
        self.word, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))
        self.out = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.norm(self.word(tokens) + self.position.weight)
        for b in self.blocks:
            x = b(x)
        return self.out(x)


class GPT2(nn.Module):
    def __init__(self, width=64, layers=2, vocabulary=200, length=32):
        super().__init__()
        self.word, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, 4, causal=True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.word(tokens) + self.position.weight
        for b in self.blocks:
            x = b(x)
        return self.norm(x) @ self.word.weight.t()


class T5(nn.Module):
    def __init__(self, width=64, layers=2, vocabulary=200):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width)
        self.encoder = nn.ModuleList(Block(width, 4, kind=ManualAttention) for _ in range(layers))
        self.decoder = nn.ModuleList(Block(width, 4, True, True) for _ in range(layers))
        self.out = nn.Linear(width, vocabulary)

    def forward(self, source, target):
        m, x = self.word(source), self.word(target)
        for b in self.encoder:
            m = b(m)
        for b in self.decoder:
            x = b(x, m)
        return self.out(x)


class ViT(nn.Module):
    def __init__(self, width=96, layers=3, patch=8, size=64):
        super().__init__()
        self.patch = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(Block(width, 3) for _ in range(layers))
        self.out = nn.Linear(width, 100)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        for b in self.blocks:
            x = b(x)
        return self.out(x[:, 0])


class SwinBlock(nn.Module):
    """Attention within windows, shifted every other block."""

    def __init__(self, width, window, shift):
        super().__init__()
        self.window, self.shift = window, shift
        self.block = Block(width, 4)

    def forward(self, x):
        n, h, w, c = x.shape
        k = self.window
        if self.shift:
            x = x.roll((-self.shift, -self.shift), (1, 2))
        y = x.view(n, h // k, k, w // k, k, c).transpose(2, 3).reshape(-1, k * k, c)
        y = self.block(y).view(n, h // k, w // k, k, k, c).transpose(2, 3).reshape(n, h, w, c)
        return y.roll((self.shift, self.shift), (1, 2)) if self.shift else y


class Swin(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.a = nn.Sequential(SwinBlock(width, 4, 0), SwinBlock(width, 4, 2))
        self.merge = nn.Linear(4 * width, 2 * width)
        self.b = nn.Sequential(SwinBlock(2 * width, 4, 0), SwinBlock(2 * width, 4, 2))
        self.out = nn.Linear(2 * width, 100)

    def forward(self, x):
        x = self.a(self.patch(x).permute(0, 2, 3, 1))
        x = torch.cat([x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)], -1)
        return self.out(self.b(self.merge(x)).mean((1, 2)))


class Mixer(nn.Module):
    def __init__(self, width=64, tokens=64, layers=3):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, 8)
        self.layers = nn.ModuleList()
        for _ in range(layers):
            across = nn.Sequential(nn.Linear(tokens, 128), nn.GELU(), nn.Linear(128, tokens))
            inside = nn.Sequential(nn.Linear(width, 256), nn.GELU(), nn.Linear(256, width))
            norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.layers.append(nn.ModuleList([norms, across, inside]))
        self.out = nn.Linear(width, 100)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        for norms, across, inside in self.layers:
            x = x + across(norms[0](x).transpose(1, 2)).transpose(1, 2)
            x = x + inside(norms[1](x))
        return self.out(x.mean(1))


class WaveNet(nn.Module):
    """Gated dilated convolutions with skip connections."""

    def __init__(self, width=32, layers=6):
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.filters = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, padding=2**i, dilation=2**i) for i in range(layers)
        )
        self.skips = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))
        self.out = nn.Conv1d(width, 16, 1)

    def forward(self, x):
        x = self.first(x)
        total = 0
        for f, s in zip(self.filters, self.skips):
            a, b = f(x).chunk(2, 1)
            y = s(torch.tanh(a) * torch.sigmoid(b))
            total = total + y
            x = x + y
        return self.out(F.relu(total))


class Conformer(nn.Module):
    def __init__(self, width=64, layers=2):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(layers):
            feed = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 256), nn.SiLU())
            feed.append(nn.Linear(256, width))
            conv = nn.ModuleList([nn.Conv1d(width, 2 * width, 1)])
            conv.append(nn.Conv1d(width, width, 15, padding=7, groups=width))
            conv.append(nn.BatchNorm1d(width))
            conv.append(nn.Conv1d(width, width, 1))
            norm = nn.LayerNorm(width)
            self.layers.append(nn.ModuleList([feed, norm, Attention(width, 4), conv]))

    def forward(self, x):
        for feed, norm, attention, (a, b, n, c) in self.layers:
            x = x + 0.5 * feed(x)
            x = x + attention(norm(x))
            y = F.glu(a(x.transpose(1, 2)), 1)
            x = x + c(F.silu(n(b(y)))).transpose(1, 2)
        return x


class Capsule(nn.Module):
    """A mixture of experts with dense gates: many parallel branches into one sum."""

    def __init__(self, width=64, experts=8):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(experts)
        )

    def forward(self, x):
        g = self.gate(x).softmax(-1)
        return sum(e(x) * g[..., i : i + 1] for i, e in enumerate(self.experts))


def tokens(n=2, t=32):
    return torch.randint(0, 200, (n, t), generator=torch.Generator().manual_seed(1))


MODELS = {
    "lstm_cell": lambda: (LSTMCell(), (torch.randn(8, 6, 64),)),
    "gru_cell": lambda: (GRUCell(), (torch.randn(8, 6, 64),)),
    "bert": lambda: (Bert(), (tokens(),)),
    "gpt2": lambda: (GPT2(), (tokens(),)),
    "t5": lambda: (T5(), (tokens(), tokens())),
    "vit": lambda: (ViT(), (torch.randn(1, 3, 64, 64),)),
    "swin": lambda: (Swin(), (torch.randn(1, 3, 64, 64),)),
    "mixer": lambda: (Mixer(), (torch.randn(1, 3, 64, 64),)),
    "wavenet": lambda: (WaveNet(), (torch.randn(2, 1, 256),)),
    "conformer": lambda: (Conformer(), (torch.randn(2, 48, 64),)),
    "experts": lambda: (Capsule(), (torch.randn(4, 16, 64),)),
}
