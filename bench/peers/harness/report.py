"""Writes what was measured: tables in Markdown, one chart per scenario."""
import datetime
import os
import platform
import re
import statistics
import subprocess

from .chart import chart
from .programs import HERE, PEERS, version


def table(scenario, rounds):
    """The table of one scenario: medians over the rounds."""
    lines = [f"| peer | {' | '.join(scenario.columns)} | note |", "|---|" + "---|" * (len(scenario.columns) + 1)]
    for peer, results in rounds.items():
        cells = [shown(middle(results, column)) for column in scenario.columns]
        lines.append(f"| {peer} | {' | '.join(cells)} | {note(results)} |")
    return "\n".join(lines)


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
    """Writes `latest.md` and a chart per scenario; `measured`: [(scenario, {peer: [figures per round]})]."""
    os.makedirs(folder, exist_ok=True)
    text = ["# Measured side by side", "", *circumstances(options, load, measured, skipped), ""]
    for scenario, rounds in measured:
        text += [f"## {scenario.name}", "", scenario.about, "", table(scenario, rounds), ""]
        bars = [(peer, middle(results, scenario.columns[0])) for peer, results in rounds.items()]
        bars = [(peer, value) for peer, value in bars if value is not None]
        if bars:
            picture = f"{scenario.name}.svg"
            with open(os.path.join(folder, picture), "w") as file:
                file.write(chart(scenario, bars))
            text += [f"![{scenario.name}: {scenario.columns[0]}]({picture})", ""]
    with open(os.path.join(folder, "latest.md"), "w") as file:
        file.write("\n".join(text))


def circumstances(options, load, measured, skipped):
    """Date, machine, commit and versions: without them a figure says nothing."""
    peers = {peer for _, rounds in measured for peer in rounds}
    versions = sorted({f"{peer} {version(peer)}" for peer in peers if version(peer)})
    lines = [
        f"- {datetime.date.today().isoformat()}, commit {commit()}, `{options}`",
        f"- {machine()}; load {load:.1f} before the first measurement",
        f"- Redis {redis_version()}, no persistence, on loopback",
        f"- versions: {', '.join(versions)}" if versions else "- no other libraries",
        "- medians of interleaved rounds; compare rows of one table only",
    ]
    for toolchain, why in skipped.items():
        names = sorted(name for name, peer in PEERS.items() if peer.toolchain == toolchain)
        lines.append(f"- skipped: {', '.join(names)} ({why})")
    return lines


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
