"""Writes what was measured: tables in Markdown, one chart per scenario."""
import datetime
import os
import platform
import re
import statistics
import subprocess

from .chart import chart
from .chart_lines import lines
from .growth import Growth
from .programs import HERE, PEERS, version
from .slope import sentence


def table(scenario, rounds):
    """The table of one scenario: medians over the rounds."""
    text = [f"| {scenario.axis} | {' | '.join(scenario.columns)} | note |", "|---|" + "---|" * (len(scenario.columns) + 1)]
    for row, results in rounds.items():
        cells = [shown(middle(results, column)) for column in scenario.columns]
        label = row if isinstance(row, str) else f"{row:,}"
        text.append(f"| {label} | {' | '.join(cells)} | {note(results)} |")
    return "\n".join(text)


def middle(results, column):
    values = [result[column] for result in results if isinstance(result.get(column), (int, float))]
    return statistics.median(values) if values else None


def note(results):
    return next((r.get("error") or r.get("unsupported") for r in results if r.get("error") or r.get("unsupported")), "")


def shown(value):
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def write(folder, options, load, measured, skipped):
    """Writes `latest.md`, `growth.md` and a chart per scenario; `measured`: [(scenario, {row: [figures per round]})]."""
    os.makedirs(folder, exist_ok=True)
    compared = [(scenario, rounds) for scenario, rounds in measured if not isinstance(scenario, Growth)]
    grown = [(scenario, rounds) for scenario, rounds in measured if isinstance(scenario, Growth)]
    for file, title, how, part in (
            ("latest.md", "Measured side by side", "medians of interleaved rounds; compare rows of one table only", compared),
            ("growth.md", "How cost grows", "tenure on Redis; charts show multiples of the value at the smallest size", grown)):
        if part:
            text = [f"# {title}", "", *circumstances(options, load, part, skipped), f"- {how}", ""]
            for scenario, rounds in part:
                text += [f"## {scenario.name}", "", scenario.about, "", table(scenario, rounds), ""]
                text += slopes(scenario, rounds) if isinstance(scenario, Growth) else []
                text += picture(folder, scenario, rounds)
            with open(os.path.join(folder, file), "w") as out:
                out.write("\n".join(text))


def picture(folder, scenario, rounds):
    """Draws the chart and answers the lines that show it."""
    if isinstance(scenario, Growth):
        drawn, shows = lines(scenario.name, scenario.axis, points(scenario, rounds)), scenario.axis
    else:
        bars = [(peer, middle(results, scenario.columns[0])) for peer, results in rounds.items()]
        bars = [(peer, value) for peer, value in bars if value is not None]
        drawn, shows = chart(scenario, bars) if bars else None, scenario.columns[0]
    if drawn is None:
        return []
    with open(os.path.join(folder, f"{scenario.name}.svg"), "w") as file:
        file.write(drawn)
    return [f"![{scenario.name}: {shows}]({scenario.name}.svg)", ""]


def slopes(scenario, rounds):
    """What the chart shows, in words."""
    return [*(f"- {sentence(column, line)}" for column, line in points(scenario, rounds).items()), ""]


def points(scenario, rounds):
    """The lines of a growth: {column: [(size, value)]}."""
    return {column: [(size, middle(results, column)) for size, results in rounds.items()] for column in scenario.charted}


def circumstances(options, load, measured, skipped):
    """Date, machine, commit and versions: without them a figure says nothing."""
    peers = {row for _, rounds in measured for row in rounds if row in PEERS}
    versions = sorted({f"{peer} {version(peer)}" for peer in peers if version(peer)})
    facts = [
        f"- {datetime.date.today().isoformat()}, commit {commit()}, `{options}`",
        f"- {machine()}; load {load:.1f} before the first measurement",
        f"- Redis {redis_version()}, no persistence, on loopback",
        f"- versions: {', '.join(versions)}" if versions else "- no other libraries",
    ]
    for toolchain, why in skipped.items():
        names = sorted(name for name, peer in PEERS.items() if peer.toolchain == toolchain)
        facts.append(f"- skipped: {', '.join(names)} ({why})")
    return facts


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    release = ".".join(platform.release().split(".")[:2])
    return f"{os.cpu_count()} × {model}, {platform.system()} {release}"


def redis_version():
    found = re.search(r"v=(\S+)", first_line(["redis-server", "--version"]))
    return found.group(1) if found else "of unknown version"


def commit():
    name = first_line(["git", "-C", HERE, "rev-parse", "--short=10", "HEAD"]) or "unknown"
    # The results themselves do not make the commit another one.
    changed = first_line(["git", "-C", HERE, "status", "--porcelain", "--", ":/", ":(exclude,top)bench/results"])
    return f"{name} with changes" if changed else name


def first_line(command):
    try:
        out = subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:
        return ""
    return (out.splitlines() or [""])[0].strip()
