"""One picture per scenario: horizontal bars, self-contained, readable on light and dark pages."""
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, ROW = 720, 150, 90, 52, 24
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 15px }
  .quiet { fill: #6e7781 }
  .ours { fill: #0969da } .floor { fill: #afb8c1 } .other { fill: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #8d96a0 }
    .ours { fill: #4493f8 } .floor { fill: #484f58 } .other { fill: #6e7681 }
  }"""


def chart(scenario, bars):
    """`bars`: (peer, value); the best on top."""
    bars = sorted(bars, key=lambda bar: bar[1], reverse=not scenario.lower_is_better)
    longest = max(value for _, value in bars) or 1
    height = TOP + ROW * len(bars) + 10
    better = "less is better" if scenario.lower_is_better else "more is better"
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(scenario.name)}: {escape(scenario.columns[0])}</title>",
        f"<style>{STYLE}\n</style>",
        f'<text class="title" x="8" y="20">{escape(scenario.name)}: {escape(unit(scenario.columns[0]))}</text>',
        f'<text class="quiet" x="8" y="40">{better}; the palest bars are floors, not locks</text>'
        if any(kind(peer) == "floor" for peer, _ in bars) else f'<text class="quiet" x="8" y="40">{better}</text>',
    ]
    for index, (peer, value) in enumerate(bars):
        y = TOP + ROW * index
        length = max(1.0, (WIDTH - LEFT - RIGHT) * value / longest)
        rows += [
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(peer)}</text>',
            f'<rect class="{kind(peer)}" x="{LEFT}" y="{y + 2}" width="{length:.1f}" height="{ROW - 8}" rx="2"/>',
            f'<text class="quiet" x="{LEFT + length + 6:.1f}" y="{y + 14}">{number(value)}</text>',
        ]
    return "\n".join([*rows, "</svg>", ""])


def kind(peer):
    if peer.startswith("tenure"):
        return "ours"
    return "floor" if peer.startswith("raw-") else "other"


def unit(column):
    """A column's name as people say it."""
    words = column.replace("_per_s", " per second").replace("_per_grant", " per grant")
    for end, said in (("_us", " in µs"), ("_ms", " in ms"), ("_pct", " in %")):
        if words.endswith(end):
            words = words[:-len(end)] + said
    return words.replace("_", " ")


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
