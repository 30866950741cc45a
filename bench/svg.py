"""Small SVG pictures from numbers: points and lines on linear or logarithmic axes, and bars.

No dependency. Series differ by the shape of their marks as well as by colour; light background,
dark where the reader's system asks for it.
"""

import html
import math

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 78, 560, 48, 362
COLORS = ("#0b62c4", "#a33c00", "#1a7f4b", "#7a3fb0", "#5c5c66", "#b0006a", "#8a6d00")
SHAPES = "circle square triangle diamond cross ring bar".split()
STYLE = (
    "svg{background:#fff;color:#1b1b1f;font:12px system-ui,sans-serif}text{fill:currentColor}"
    ".h{font-size:15px;font-weight:600}.grid{stroke:currentColor;stroke-opacity:.13}"
    ".axis{stroke:currentColor;stroke-opacity:.5}"
    "@media(prefers-color-scheme:dark){svg{background:#16171b;color:#e8e8ec}"
    ".series{filter:brightness(1.6)}}"
)


def number(value):
    """A tick's label: 1, 10, 1k, 1M, 0.001."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


class Axis:
    """Maps values to pixels."""

    def __init__(self, values, low, high, log, from_zero=True):
        self.low, self.high, self.log = low, high, log
        least, most = min(values), max(values)
        if log:
            self.first = math.floor(math.log10(least) + 0.01)
            self.last = math.ceil(math.log10(most) - 0.01)
            if self.first == self.last:
                self.last += 1
        else:
            least = min(0, least) if from_zero else least
            most = most if most > least else least + 1
            step = 10 ** math.floor(math.log10(max(most - least, 1e-12)))
            while (most - least) / step < 4:
                step /= 2
            self.step, self.first = step, math.floor(least / step) * step
            self.last = max(math.ceil(most / step) * step, self.first + step)

    def at(self, value):
        value = math.log10(value) if self.log else value
        return self.low + (value - self.first) / (self.last - self.first) * (self.high - self.low)

    def ticks(self):
        if self.log:
            every = max(1, (self.last - self.first) // 7)
            return [10.0**e for e in range(self.first, self.last + 1, every)]
        count = round((self.last - self.first) / self.step)
        return [self.first + i * self.step for i in range(count + 1)]


def mark(shape, x, y, color):
    """One mark, about 7 pixels wide."""
    fill = f'fill="{color}" fill-opacity=".75"'
    stroke = f'fill="none" stroke="{color}" stroke-width="1.6"'
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" {fill}/>'
    if shape == "ring":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" {stroke}/>'
    if shape == "square":
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" {fill}/>'
    if shape == "triangle":
        return f'<path d="M{x:.1f} {y - 4:.1f}l4 7h-8z" {fill}/>'
    if shape == "diamond":
        return f'<path d="M{x:.1f} {y - 4.5:.1f}l4.5 4.5-4.5 4.5-4.5-4.5z" {fill}/>'
    if shape == "cross":
        return f'<path d="M{x - 3:.1f} {y - 3:.1f}l6 6m0-6l-6 6" {stroke}/>'
    return f'<path d="M{x - 4:.1f} {y:.1f}h8" {stroke}/>'


def frame(title, height=HEIGHT):
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" aria-labelledby="t">',
        f"<style>{STYLE}</style>",
        f'<title id="t">{html.escape(title)}</title>',
        f'<text x="{LEFT}" y="24" class="h">{html.escape(title)}</text>',
    ]


def grid(x, y, x_label, y_label):
    out = []
    for value in x.ticks():
        at = x.at(value)
        out.append(f'<path class="grid" d="M{at:.1f} {TOP}V{BOTTOM}"/>')
        out.append(
            f'<text x="{at:.1f}" y="{BOTTOM + 17}" text-anchor="middle">{number(value)}</text>'
        )
    for value in y.ticks():
        at = y.at(value)
        out.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{RIGHT}"/>')
        out.append(
            f'<text x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{number(value)}</text>'
        )
    middle = (LEFT + RIGHT) / 2
    out.append(f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>')
    out.append(
        f'<text x="{middle}" y="{BOTTOM + 38}" text-anchor="middle">{html.escape(x_label)}</text>'
    )
    out.append(f'<text x="{LEFT}" y="{TOP - 7}" text-anchor="start">{html.escape(y_label)}</text>')
    return out


def chart(
    title,
    x_label,
    y_label,
    series,
    x_log=False,
    y_log=False,
    lines=False,
    guides=(),
    x_from_zero=True,
):
    """Returns the SVG of {name: [(x, y)]}; `guides` are [(name, [(x, y)])], drawn dashed."""
    series = {name: points for name, points in series.items() if points}
    everything = [p for points in series.values() for p in points]
    everything += [p for _, points in guides for p in points]
    x = Axis([p[0] for p in everything], LEFT, RIGHT, x_log, x_from_zero)
    y = Axis([p[1] for p in everything], BOTTOM, TOP, y_log)
    out = frame(title) + grid(x, y, x_label, y_label)
    for name, points in guides:
        path = "L".join(f"{x.at(a):.1f} {y.at(b):.1f}" for a, b in points)
        out.append(
            f'<path d="M{path}" class="axis" fill="none" stroke-dasharray="5 4"/>'
            f'<text x="{x.at(points[-1][0]) + 6:.1f}" y="{y.at(points[-1][1]) + 4:.1f}">'
            f"{html.escape(name)}</text>"
        )
    for i, (name, points) in enumerate(series.items()):
        color, shape = COLORS[i % len(COLORS)], SHAPES[i % len(SHAPES)]
        out.append('<g class="series">')
        if lines:
            path = "L".join(f"{x.at(a):.1f} {y.at(b):.1f}" for a, b in points)
            out.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="1.6"/>')
        out += [mark(shape, x.at(a), y.at(b), color) for a, b in points]
        key = TOP + 8 + 20 * i
        out.append(mark(shape, RIGHT + 42, key, color) + "</g>")
        out.append(f'<text x="{RIGHT + 52}" y="{key + 4}">{html.escape(name)}</text>')
    return "\n".join(out) + "\n</svg>\n"


def bars(title, label, rows, percent=True):
    """Returns the SVG of horizontal bars: rows are [(name, value)], values at least 0."""
    height = 66 + 20 * len(rows) + 16
    most = max([value for _, value in rows] + [1e-12])
    left, right = 270, WIDTH - 70
    out = frame(title, height)
    out.append(f'<text x="{left}" y="44">{html.escape(label)}</text>')
    for i, (name, value) in enumerate(rows):
        top, width = 54 + 20 * i, (right - left) * value / most
        shown = f"{value:.1%}" if percent else number(value)
        out.append(
            f'<text x="{left - 8}" y="{top + 12}" text-anchor="end">{html.escape(name)}</text>'
            f'<g class="series"><rect x="{left}" y="{top}" width="{width:.1f}" height="14" '
            f'fill="{COLORS[0]}"/></g>'
            f'<text x="{left + width + 6:.1f}" y="{top + 12}">{shown}</text>'
        )
    return "\n".join(out) + "\n</svg>\n"
