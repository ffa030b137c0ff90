"""The picture of a growth: lines over the size, both axes logarithmic, in the style of the bars."""
import math
from xml.sax.saxutils import escape

from .chart import STYLE, WIDTH, number, unit

LEFT, RIGHT, TOP, PLOT, BOTTOM = 56, 310, 56, 220, 44
LABEL = 17  # the height of a label
LINES = """
  .grid { stroke: #d0d7de } .line { fill: none; stroke-width: 2 }
  .s0 { stroke: #0969da } .s1 { stroke: #bf3989; stroke-dasharray: 7 3 } .s2 { stroke: #1a7f37; stroke-dasharray: 2 3 }
  .s3 { stroke: #9a6700; stroke-dasharray: 9 3 2 3 }
  @media (prefers-color-scheme: dark) {
    .grid { stroke: #30363d } .s0 { stroke: #4493f8 } .s1 { stroke: #db61a2 } .s2 { stroke: #3fb950 } .s3 { stroke: #d29922 }
  }"""


def lines(name, axis, series):
    """`series`: {column: [(size, value)]}. Each line shows multiples of its own first value, so that figures of different
    kinds stand in one picture and a flat line is a cost that does not grow."""
    series = {column: multiples(points) for column, points in series.items()}
    series = {column: points for column, points in series.items() if len(points) > 1}
    if not series:
        return None
    across = Scale([size for points in series.values() for size, _, _ in points], LEFT, WIDTH - RIGHT)
    ratios = [ratio for points in series.values() for _, ratio, _ in points]
    up = Scale([*ratios, 0.5, 2], TOP + PLOT, TOP)
    height = TOP + PLOT + BOTTOM
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(name)}</title>",
        f"<style>{STYLE}{LINES}\n</style>",
        f'<text class="title" x="8" y="20">{escape(name)}</text>',
        f'<text class="quiet" x="8" y="40">multiples of the value at the smallest size; a flat line does not grow</text>',
        *grid(across, up, {size for points in series.values() for size, _, _ in points}),
        f'<text class="quiet" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{height - 8}" text-anchor="middle">{escape(axis)}</text>',
    ]
    for index, points in enumerate(series.values()):
        path = " ".join(f"{across.at(size):.1f},{up.at(ratio):.1f}" for size, ratio, _ in points)
        rows.append(f'<polyline class="line s{index % 4}" points="{path}"/>')
    return "\n".join([*rows, *labels(series, up), "</svg>", ""])


def multiples(points):
    """(size, multiple of the first value, value), without what cannot be drawn."""
    points = [(size, value) for size, value in points if value is not None and value > 0]
    return [(size, value / points[0][1], value) for size, value in points]


class Scale:
    """From a value to a place, by its logarithm."""

    def __init__(self, values, begin, end):
        self.low, self.high, self.begin, self.end = min(values), max(values), begin, end

    def at(self, value):
        span = math.log(self.high / self.low) or 1
        return self.begin + (self.end - self.begin) * math.log(value / self.low) / span

    def ticks(self):
        """Round values: powers of ten, or 1, 2, 5 of each where there are few."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1,) if self.high / self.low > 1000 else (1, 2, 5)
        return [step * 10.0 ** power for power in powers for step in steps
                if self.low <= step * 10.0 ** power <= self.high]


def grid(across, up, sizes):
    rows = []
    for tick in up.ticks():
        y = up.at(tick)
        rows += [f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>',
                 f'<text class="quiet" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">× {tick:g}</text>']
    for size in sorted(sizes):
        x = across.at(size)
        rows += [f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + PLOT}"/>',
                 f'<text class="quiet" x="{x:.1f}" y="{TOP + PLOT + 18}" text-anchor="middle">{size:,}</text>']
    return rows


def labels(series, up):
    """Beside the end of each line, pushed apart where they would cover each other."""
    ends = sorted((up.at(points[-1][1]), index, column, points[0][2], points[-1][2])
                  for index, (column, points) in enumerate(series.items()))
    rows, free = [], 0.0
    highest = TOP + PLOT - LABEL * len(ends)
    for place, (y, index, column, first, last) in enumerate(ends):
        y = max(min(y, highest + LABEL * place), free)
        free = y + LABEL
        x = WIDTH - RIGHT + 8
        rows += [f'<line class="line s{index % 4}" x1="{x}" y1="{y:.1f}" x2="{x + 18}" y2="{y:.1f}"/>',
                 f'<text x="{x + 24}" y="{y + 4:.1f}">{escape(unit(column))}: {number(first)} → {number(last)}</text>']
    return rows
