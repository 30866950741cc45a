"""Convolutional architectures: plain, residual, branching, mobile, segmentation."""

import random

import torch
import torch.nn.functional as F
from torch import nn


def conv_bn(cin, cout, k=3, s=1, p=None, d=1, g=1, act=nn.ReLU):
    """Convolution, batch normalisation and, unless act is None, an activation."""
    p = (k // 2) * d if p is None else p
    layers = [nn.Conv2d(cin, cout, k, s, p, d, g, bias=False), nn.BatchNorm2d(cout)]
    if act is not None:
        layers.append(act())
    return nn.Sequential(*layers)


class Head(nn.Module):
    """Global average and a linear classifier."""

    def __init__(self, channels, classes=100):
        super().__init__()
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        return self.fc(x.mean((2, 3)))


# -- residual ------------------------------------------------------------------------------------


class Basic(nn.Module):
    expansion = 1

    def __init__(self, cin, width, stride=1, dilation=1, groups=1):
        super().__init__()
        self.a = conv_bn(cin, width, 3, stride, d=dilation)
        self.b = conv_bn(width, width, 3, d=dilation, act=None)
        same = stride == 1 and cin == width
        self.skip = nn.Identity() if same else conv_bn(cin, width, 1, stride, act=None)

    def forward(self, x):
        return F.relu(self.b(self.a(x)) + self.skip(x))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, cin, width, stride=1, dilation=1, groups=1):
        super().__init__()
        cout = width * 4
        self.a = conv_bn(cin, width, 1)
        self.b = conv_bn(width, width, 3, stride, d=dilation, g=groups)
        self.c = conv_bn(width, cout, 1, act=None)
        same = stride == 1 and cin == cout
        self.skip = nn.Identity() if same else conv_bn(cin, cout, 1, stride, act=None)

    def forward(self, x):
        return F.relu(self.c(self.b(self.a(x))) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self, block, depths, widths=(64, 128, 256, 512), groups=1, dilate=False):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, widths[0], 7, 2), nn.MaxPool2d(3, 2, 1))
        stages, cin = [], widths[0]
        for i, (n, w) in enumerate(zip(depths, widths)):
            dilation = 2 ** (i - 1) if dilate and i >= 2 else 1
            stride = 1 if i == 0 or dilation > 1 else 2
            blocks = []
            for k in range(n):
                blocks.append(block(cin, w, stride if k == 0 else 1, dilation, groups))
                cin = w * block.expansion
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.ModuleList(stages)
        self.channels = cin
        self.head = Head(cin)

    def features(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return x

    def forward(self, x):
        return self.head(self.features(x))


# -- segmentation --------------------------------------------------------------------------------


class ASPP(nn.Module):
    def __init__(self, cin, cout=256, rates=(12, 24, 36)):
        super().__init__()
        self.branches = nn.ModuleList([conv_bn(cin, cout, 1)])
        self.branches.extend(conv_bn(cin, cout, 3, d=r) for r in rates)
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(cin, cout, 1), nn.ReLU())
        self.project = conv_bn(cout * (len(rates) + 2), cout, 1)

    def forward(self, x):
        out = [b(x) for b in self.branches]
        pooled = F.interpolate(self.pool(x), size=x.shape[-2:], mode="bilinear")
        return self.project(torch.cat(out + [pooled], 1))


class DeepLabV3(nn.Module):
    def __init__(self, backbone, classes=21, width=256):
        super().__init__()
        self.backbone = backbone
        self.aspp = ASPP(backbone.channels, width)
        self.head = nn.Sequential(conv_bn(width, width), nn.Conv2d(width, classes, 1))

    def forward(self, x):
        y = self.head(self.aspp(self.backbone.features(x)))
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear")


class UNet(nn.Module):
    def __init__(self, widths=(16, 32, 64, 128)):
        super().__init__()
        self.down, self.up, self.merge = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        cin = 3
        for w in widths:
            self.down.append(nn.Sequential(conv_bn(cin, w), conv_bn(w, w)))
            cin = w
        for low, high in zip(widths[-2::-1], widths[:0:-1]):
            self.up.append(nn.ConvTranspose2d(high, low, 2, 2))
            self.merge.append(nn.Sequential(conv_bn(low * 2, low), conv_bn(low, low)))
        self.out = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        skips = []
        for i, d in enumerate(self.down):
            x = d(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        for up, merge, skip in zip(self.up, self.merge, skips[-2::-1]):
            x = merge(torch.cat([up(x), skip], 1))
        return self.out(x)


class UNetPP(nn.Module):
    """U-Net++: a triangle of nodes X[i][j], each fed by its row and by the one below."""

    def __init__(self, widths=(16, 32, 64, 128)):
        super().__init__()
        self.depth = len(widths)
        self.nodes = nn.ModuleDict()
        for j in range(self.depth):
            for i in range(self.depth - j):
                cin = (widths[i - 1] if i else 3) if j == 0 else widths[i] * j + widths[i + 1]
                self.nodes[f"{i}_{j}"] = nn.Sequential(
                    conv_bn(cin, widths[i]), conv_bn(widths[i], widths[i])
                )
        self.out = nn.ModuleList(nn.Conv2d(widths[0], 2, 1) for _ in range(self.depth - 1))

    def forward(self, x):
        grid = {}
        for i in range(self.depth):
            x = self.nodes[f"{i}_0"](x if i == 0 else F.max_pool2d(x, 2))
            grid[i, 0] = x
        for j in range(1, self.depth):
            for i in range(self.depth - j):
                up = F.interpolate(grid[i + 1, j - 1], scale_factor=2, mode="bilinear")
                row = [grid[i, k] for k in range(j)]
                grid[i, j] = self.nodes[f"{i}_{j}"](torch.cat(row + [up], 1))
        return sum(o(grid[0, j + 1]) for j, o in enumerate(self.out))


class HRNet(nn.Module):
    """Parallel resolutions that exchange after every stage."""

    def __init__(self, width=16, stages=3):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, width, 3, 2), conv_bn(width, width, 3, 2))
        self.stages = nn.ModuleList()
        for n in range(2, stages + 2):
            new = conv_bn(width << (n - 2), width << (n - 1), 3, 2)
            branches = nn.ModuleList(
                nn.Sequential(Basic(width << i, width << i), Basic(width << i, width << i))
                for i in range(n)
            )
            fuse = nn.ModuleDict()
            for i in range(n):
                for j in range(n):
                    if j > i:
                        fuse[f"{i}_{j}"] = conv_bn(width << j, width << i, 1, act=None)
                    elif j < i:
                        steps = []
                        for k in range(j, i):
                            last = k == i - 1
                            act = None if last else nn.ReLU
                            steps.append(conv_bn(width << k, width << (k + 1), 3, 2, act=act))
                        fuse[f"{i}_{j}"] = nn.Sequential(*steps)
            self.stages.append(nn.ModuleDict({"new": new, "branches": branches, "fuse": fuse}))
        self.head = Head(sum(width << i for i in range(stages + 1)))

    def forward(self, x):
        xs = [self.stem(x)]
        for stage in self.stages:
            xs = xs + [stage["new"](xs[-1])]
            ys = [b(v) for b, v in zip(stage["branches"], xs)]
            out = []
            for i in range(len(ys)):
                total = ys[i]
                for j in range(len(ys)):
                    if i == j:
                        continue
                    y = stage["fuse"][f"{i}_{j}"](ys[j])
                    if j > i:
                        y = F.interpolate(y, size=ys[i].shape[-2:])
                    total = total + y
                out.append(F.relu(total))
            xs = out
        size = xs[0].shape[-2:]
        return self.head(torch.cat([F.interpolate(v, size=size) for v in xs], 1))


# -- branching -----------------------------------------------------------------------------------


class Inception(nn.Module):
    def __init__(self, cin, c1, r3, c3, r5, c5, cp):
        super().__init__()
        self.b1 = conv_bn(cin, c1, 1)
        self.b3 = nn.Sequential(conv_bn(cin, r3, 1), conv_bn(r3, c3, 3))
        self.b5 = nn.Sequential(conv_bn(cin, r5, 1), conv_bn(r5, c5, 3))
        self.bp = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_bn(cin, cp, 1))

    def forward(self, x):
        return torch.cat([self.b1(x), self.b3(x), self.b5(x), self.bp(x)], 1)


def googlenet():
    return nn.Sequential(
        conv_bn(3, 64, 7, 2),
        nn.MaxPool2d(3, 2, 1),
        conv_bn(64, 64, 1),
        conv_bn(64, 192, 3),
        nn.MaxPool2d(3, 2, 1),
        Inception(192, 64, 96, 128, 16, 32, 32),
        Inception(256, 128, 128, 192, 32, 96, 64),
        nn.MaxPool2d(3, 2, 1),
        Inception(480, 192, 96, 208, 16, 48, 64),
        Inception(512, 160, 112, 224, 24, 64, 64),
        Inception(512, 128, 128, 256, 24, 64, 64),
        Inception(512, 112, 144, 288, 32, 64, 64),
        Inception(528, 256, 160, 320, 32, 128, 128),
        nn.MaxPool2d(3, 2, 1),
        Inception(832, 256, 160, 320, 32, 128, 128),
        Inception(832, 384, 192, 384, 48, 128, 128),
        Head(1024),
    )


class InceptionV3Block(nn.Module):
    """The grid block with factorised 7x7 convolutions."""

    def __init__(self, cin, mid, cout=48):
        super().__init__()
        self.b1 = conv_bn(cin, cout, 1)
        self.b7 = nn.Sequential(
            conv_bn(cin, mid, 1),
            nn.Conv2d(mid, mid, (1, 7), padding=(0, 3)),
            nn.ReLU(),
            nn.Conv2d(mid, cout, (7, 1), padding=(3, 0)),
            nn.ReLU(),
        )
        self.b77 = nn.Sequential(
            conv_bn(cin, mid, 1),
            nn.Conv2d(mid, mid, (7, 1), padding=(3, 0)),
            nn.ReLU(),
            nn.Conv2d(mid, mid, (1, 7), padding=(0, 3)),
            nn.ReLU(),
            nn.Conv2d(mid, mid, (7, 1), padding=(3, 0)),
            nn.ReLU(),
            nn.Conv2d(mid, cout, (1, 7), padding=(0, 3)),
            nn.ReLU(),
        )
        self.bp = nn.Sequential(nn.AvgPool2d(3, 1, 1), conv_bn(cin, cout, 1))

    def forward(self, x):
        return torch.cat([self.b1(x), self.b7(x), self.b77(x), self.bp(x)], 1)


def inception_v3():
    return nn.Sequential(
        conv_bn(3, 32, 3, 2),
        conv_bn(32, 64, 3),
        nn.MaxPool2d(3, 2, 1),
        InceptionV3Block(64, 32),
        InceptionV3Block(192, 48),
        nn.MaxPool2d(3, 2, 1),
        InceptionV3Block(192, 64),
        Head(192),
    )


class DenseLayer(nn.Module):
    def __init__(self, cin, growth):
        super().__init__()
        self.n1, self.c1 = nn.BatchNorm2d(cin), nn.Conv2d(cin, 4 * growth, 1, bias=False)
        self.n2, self.c2 = nn.BatchNorm2d(4 * growth), nn.Conv2d(4 * growth, growth, 3, 1, 1)

    def forward(self, xs):
        x = torch.cat(xs, 1)
        return self.c2(F.relu(self.n2(self.c1(F.relu(self.n1(x))))))


class DenseNet(nn.Module):
    def __init__(self, depths=(4, 6, 8), growth=16, stem=32):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, stem, 7, 2), nn.MaxPool2d(3, 2, 1))
        self.blocks, self.transitions = nn.ModuleList(), nn.ModuleList()
        c = stem
        for i, n in enumerate(depths):
            self.blocks.append(nn.ModuleList(DenseLayer(c + k * growth, growth) for k in range(n)))
            c += n * growth
            if i < len(depths) - 1:
                self.transitions.append(nn.Sequential(conv_bn(c, c // 2, 1), nn.AvgPool2d(2)))
                c //= 2
        self.head = Head(c)

    def forward(self, x):
        x = self.stem(x)
        for i, block in enumerate(self.blocks):
            xs = [x]
            for layer in block:
                xs.append(layer(xs))
            x = torch.cat(xs, 1)
            if i < len(self.transitions):
                x = self.transitions[i](x)
        return self.head(x)


class Separable(nn.Sequential):
    def __init__(self, cin, cout, k, s=1):
        super().__init__(
            nn.ReLU(),
            nn.Conv2d(cin, cin, k, s, k // 2, groups=cin, bias=False),
            nn.Conv2d(cin, cout, 1, bias=False),
            nn.BatchNorm2d(cout),
        )


class NASCell(nn.Module):
    """A NASNet-A normal cell: five pairs over the last two cells' outputs, concatenated."""

    def __init__(self, c_prev, c_cur, c):
        super().__init__()
        self.prev, self.cur = conv_bn(c_prev, c, 1), conv_bn(c_cur, c, 1)
        self.ops = nn.ModuleList(
            [Separable(c, c, 5), Separable(c, c, 3), Separable(c, c, 5), Separable(c, c, 3)]
        )
        self.ops.append(Separable(c, c, 3))

    def forward(self, a, b):
        p, h = self.prev(a), self.cur(b)
        pool = F.avg_pool2d(p, 3, 1, 1)
        y1 = self.ops[0](h) + self.ops[1](p)
        y2 = self.ops[2](p) + self.ops[3](p)
        y3 = F.avg_pool2d(h, 3, 1, 1) + p
        y4 = pool + pool
        y5 = self.ops[4](h) + h
        return torch.cat([p, y1, y2, y3, y4, y5], 1)


class NASNet(nn.Module):
    def __init__(self, c=24, cells=3):
        super().__init__()
        self.stem = conv_bn(3, c, 3, 2)
        self.cells, self.reduce = nn.ModuleList(), nn.ModuleList()
        before, last = c, c
        for _ in range(cells):
            self.cells.append(NASCell(before, last, c))
            before, last = last, 6 * c
        self.head = Head(last)

    def forward(self, x):
        a = b = self.stem(x)
        for cell in self.cells:
            a, b = b, cell(a, b)
        return self.head(b)


class PNASCell(nn.Module):
    def __init__(self, c_prev, c_cur, c):
        super().__init__()
        self.prev, self.cur = conv_bn(c_prev, c, 1), conv_bn(c_cur, c, 1)
        self.s7, self.s5, self.s3 = Separable(c, c, 7), Separable(c, c, 5), Separable(c, c, 3)
        self.t5, self.t3, self.u3 = Separable(c, c, 5), Separable(c, c, 3), Separable(c, c, 3)

    def forward(self, a, b):
        p, h = self.prev(a), self.cur(b)
        y1 = self.s5(p) + F.max_pool2d(p, 3, 1, 1)
        y2 = self.s7(h) + F.max_pool2d(h, 3, 1, 1)
        y3 = self.t5(h) + self.s3(h)
        y4 = self.t3(y3) + F.max_pool2d(h, 3, 1, 1)
        y5 = self.u3(p) + h
        return torch.cat([y1, y2, y3, y4, y5], 1)


class PNASNet(nn.Module):
    def __init__(self, c=24, cells=3):
        super().__init__()
        self.stem = conv_bn(3, c, 3, 2)
        self.cells = nn.ModuleList()
        before, last = c, c
        for _ in range(cells):
            self.cells.append(PNASCell(before, last, c))
            before, last = last, 5 * c
        self.head = Head(last)

    def forward(self, x):
        a = b = self.stem(x)
        for cell in self.cells:
            a, b = b, cell(a, b)
        return self.head(b)


class RandWire(nn.Module):
    """A randomly wired stage: a directed graph of separable convolutions."""

    def __init__(self, nodes=16, c=24, seed=1):
        super().__init__()
        rng = random.Random(seed)
        self.inputs = []
        for i in range(nodes):
            k = min(i, rng.choice([1, 2, 2, 3]))
            self.inputs.append(sorted(rng.sample(range(i), k)))
        self.sinks = [i for i in range(nodes) if not any(i in p for p in self.inputs)]
        self.stem = conv_bn(3, c, 3, 2)
        self.ops = nn.ModuleList(Separable(c, c, 3) for _ in range(nodes))
        self.head = Head(c)

    def forward(self, x):
        stem = self.stem(x)
        values = []
        for op, inputs in zip(self.ops, self.inputs):
            total = stem if not inputs else sum(values[i] for i in inputs)
            values.append(op(total))
        return self.head(sum(values[i] for i in self.sinks))


# -- mobile --------------------------------------------------------------------------------------


class SqueezeExcite(nn.Module):
    def __init__(self, c, r=4):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, max(8, c // r), 1), nn.Conv2d(max(8, c // r), c, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.b(F.relu(self.a(x.mean((2, 3), keepdim=True)))))


class InvertedResidual(nn.Module):
    def __init__(self, cin, cout, s=1, expand=6, k=3, se=False, act=nn.ReLU6):
        super().__init__()
        mid = cin * expand
        layers = [] if expand == 1 else [conv_bn(cin, mid, 1, act=act)]
        layers.append(conv_bn(mid, mid, k, s, g=mid, act=act))
        if se:
            layers.append(SqueezeExcite(mid))
        layers.append(conv_bn(mid, cout, 1, act=None))
        self.body = nn.Sequential(*layers)
        self.same = s == 1 and cin == cout

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


def mobilenet_v2():
    layers, cin = [conv_bn(3, 32, 3, 2, act=nn.ReLU6)], 32
    for t, c, n, s in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 3, 2), (6, 96, 2, 1)]:
        for i in range(n):
            layers.append(InvertedResidual(cin, c, s if i == 0 else 1, t))
            cin = c
    return nn.Sequential(*layers, conv_bn(cin, 320, 1, act=nn.ReLU6), Head(320))


def mobilenet_v3():
    layers, cin = [conv_bn(3, 16, 3, 2, act=nn.Hardswish)], 16
    rows = [(16, 1, 2, True), (24, 4, 2, False), (24, 3, 1, False), (40, 4, 2, True)]
    for c, t, s, se in rows + [(40, 6, 1, True), (48, 3, 1, True)]:
        layers.append(InvertedResidual(cin, c, s, t, 5 if se else 3, se, nn.Hardswish))
        cin = c
    return nn.Sequential(*layers, conv_bn(cin, 288, 1, act=nn.Hardswish), Head(288))


def efficientnet():
    layers, cin = [conv_bn(3, 32, 3, 2, act=nn.SiLU)], 32
    rows = [
        (16, 1, 1, 3),
        (24, 6, 2, 3),
        (24, 6, 1, 3),
        (40, 6, 2, 5),
        (80, 6, 2, 3),
        (80, 6, 1, 3),
    ]
    for c, t, s, k in rows:
        layers.append(InvertedResidual(cin, c, s, t, k, True, nn.SiLU))
        cin = c
    return nn.Sequential(*layers, conv_bn(cin, 320, 1, act=nn.SiLU), Head(320))


def mnasnet():
    layers, cin = [conv_bn(3, 32, 3, 2), conv_bn(32, 32, 3, g=32), conv_bn(32, 16, 1, act=None)], 16
    for c, t, s, k in [(24, 3, 2, 3), (24, 3, 1, 3), (40, 3, 2, 5), (40, 3, 1, 5), (80, 6, 2, 5)]:
        layers.append(InvertedResidual(cin, c, s, t, k, act=nn.ReLU))
        cin = c
    return nn.Sequential(*layers, conv_bn(cin, 320, 1), Head(320))


class ShuffleUnit(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        half = cout // 2
        self.stride = stride
        self.left = None
        if stride > 1:
            self.left = nn.Sequential(
                conv_bn(cin, cin, 3, stride, g=cin, act=None), conv_bn(cin, half, 1)
            )
        right = cin if stride > 1 else cin // 2
        self.right = nn.Sequential(
            conv_bn(right, half, 1),
            conv_bn(half, half, 3, stride, g=half, act=None),
            conv_bn(half, half, 1),
        )

    def forward(self, x):
        if self.left is None:
            a, b = x.chunk(2, 1)
            y = torch.cat([a, self.right(b)], 1)
        else:
            y = torch.cat([self.left(x), self.right(x)], 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet():
    layers, cin = [conv_bn(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)], 24
    for c, n in [(48, 3), (96, 4), (192, 2)]:
        for i in range(n):
            layers.append(ShuffleUnit(cin, c, 2 if i == 0 else 1))
            cin = c
    return nn.Sequential(*layers, conv_bn(cin, 512, 1), Head(512))


class Ghost(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.a = conv_bn(cin, cout // 2, 1)
        self.b = conv_bn(cout // 2, cout // 2, 3, g=cout // 2)

    def forward(self, x):
        y = self.a(x)
        return torch.cat([y, self.b(y)], 1)


def ghostnet():
    layers, cin = [conv_bn(3, 16, 3, 2)], 16
    for c in (16, 24, 40, 80, 112):
        layers += [Ghost(cin, c * 3), nn.MaxPool2d(2), Ghost(c * 3, c)]
        cin = c
    return nn.Sequential(*layers, Head(cin))


class Fire(nn.Module):
    def __init__(self, cin, s, e):
        super().__init__()
        self.squeeze = nn.Conv2d(cin, s, 1)
        self.e1, self.e3 = nn.Conv2d(s, e, 1), nn.Conv2d(s, e, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.e1(x)), F.relu(self.e3(x))], 1)


def squeezenet():
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(64, 16, 64),
        Fire(128, 16, 64),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(128, 32, 128),
        Fire(256, 32, 128),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(256, 48, 192),
        Fire(384, 64, 256),
        nn.Conv2d(512, 100, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


# -- plain and modern ----------------------------------------------------------------------------


def vgg():
    layers, cin = [], 3
    for c in (32, 32, "M", 64, 64, "M", 128, 128, "M", 256, 256, "M"):
        if c == "M":
            layers.append(nn.MaxPool2d(2))
        else:
            layers.append(conv_bn(cin, c))
            cin = c
    return nn.Sequential(*layers, Head(256))


def alexnet():
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(3),
        nn.Flatten(),
        nn.Linear(2304, 512),
        nn.ReLU(),
        nn.Linear(512, 100),
    )


class ConvNeXtBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dw = nn.Conv2d(c, c, 7, padding=3, groups=c)
        self.norm = nn.LayerNorm(c)
        self.a, self.b = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        y = self.norm(self.dw(x).permute(0, 2, 3, 1))
        return x + self.b(F.gelu(self.a(y))).permute(0, 3, 1, 2)


def convnext():
    layers, cin = [nn.Conv2d(3, 32, 4, 4)], 32
    for c in (32, 64, 128):
        if c != cin:
            layers.append(nn.Conv2d(cin, c, 2, 2))
        layers += [ConvNeXtBlock(c), ConvNeXtBlock(c)]
        cin = c
    return nn.Sequential(*layers, Head(cin))


def image(n, size, channels=3):
    return (torch.randn(n, channels, size, size),)


def deeplab(size):
    def make():
        backbone = ResNet(Bottleneck, (3, 4, 6, 3), dilate=True)
        backbone.head = nn.Identity()
        return DeepLabV3(backbone), image(1, size)

    return make


def deeplab_small():
    backbone = ResNet(Basic, (1, 1, 1, 1), (16, 32, 64, 128), dilate=True)
    backbone.head = nn.Identity()
    return DeepLabV3(backbone, width=64), image(1, 128)


MODELS = {
    "resnet18": lambda: (ResNet(Basic, (2, 2, 2, 2)), image(2, 96)),
    "resnet34": lambda: (ResNet(Basic, (3, 4, 6, 3), (32, 64, 128, 256)), image(1, 96)),
    "resnet50": lambda: (ResNet(Bottleneck, (3, 4, 6, 3)), image(1, 128)),
    "resnext": lambda: (ResNet(Bottleneck, (2, 2, 2, 2), groups=8), image(1, 96)),
    "deeplabv3_r50_224": deeplab(224),
    "deeplabv3_small": deeplab_small,
    "unet": lambda: (UNet(), image(1, 64)),
    "unetpp": lambda: (UNetPP(), image(1, 64)),
    "hrnet": lambda: (HRNet(), image(1, 96)),
    "googlenet": lambda: (googlenet(), image(1, 224)),
    "inception_v3": lambda: (inception_v3(), image(1, 96)),
    "densenet": lambda: (DenseNet(), image(1, 96)),
    "nasnet": lambda: (NASNet(), image(1, 48)),
    "pnasnet": lambda: (PNASNet(), image(1, 48)),
    "randwire": lambda: (RandWire(), image(1, 48)),
    "mobilenet_v2": lambda: (mobilenet_v2(), image(1, 96)),
    "mobilenet_v3": lambda: (mobilenet_v3(), image(1, 96)),
    "efficientnet": lambda: (efficientnet(), image(1, 96)),
    "mnasnet": lambda: (mnasnet(), image(1, 96)),
    "shufflenet": lambda: (shufflenet(), image(1, 96)),
    "ghostnet": lambda: (ghostnet(), image(1, 96)),
    "squeezenet": lambda: (squeezenet(), image(1, 96)),
    "vgg": lambda: (vgg(), image(1, 64)),
    "alexnet": lambda: (alexnet(), image(1, 128)),
    "convnext": lambda: (convnext(), image(1, 64)),
}
