"""What the lines of the scenario `hot` say about gaps, waits, fairness and exclusion."""
import os


def read(paths):
    """Grants of all processes in the order in which they were had: (acquired, release begun, released, worker)."""
    grants = []
    for path in paths:
        if os.path.exists(path):
            with open(path) as file:
                for line in file:
                    worker, acquired, begun, released = line.split()[:4]
                    grants.append((int(acquired), int(begun), int(released), worker))
    grants.sort()
    return grants


def judge(grants, think_ns, workers):
    """The first third of the time is warm-up. The gap is the time from the start of a release to the next grant: what
    a lock costs while others want it. The wait is a worker's own: from the end of its pause to its next grant."""
    if len(grants) < 30:
        return {"error": f"only {len(grants)} grants"}
    # Two holders at once: granted before the holder before had begun to release.
    overlaps = sum(1 for first, second in zip(grants, grants[1:]) if second[0] < first[1])
    warm = grants[0][0] + (grants[-1][0] - grants[0][0]) // 3
    grants = [grant for grant in grants if grant[0] >= warm]
    gaps = [second[0] - first[1] for first, second in zip(grants, grants[1:])]
    counts, last, waits = {}, {}, []
    for acquired, _, released, worker in grants:
        counts[worker] = counts.get(worker, 0) + 1
        if worker in last:
            waits.append(acquired - last[worker] - think_ns)
        last[worker] = released
    shares = list(counts.values()) + [0] * (workers - len(counts))
    jain = sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
    span = (grants[-1][0] - grants[0][0]) / 1e9
    return {"grants": len(grants), "grants_per_s": round(len(grants) / span, 1),
            "gap_p50_us": round(quantile(gaps, .5) / 1e3, 1), "gap_p99_us": round(quantile(gaps, .99) / 1e3, 1),
            "wait_p50_ms": round(quantile(waits, .5) / 1e6, 2), "wait_p99_ms": round(quantile(waits, .99) / 1e6, 2),
            "wait_max_ms": round(max(waits, default=0) / 1e6, 2), "overlaps": overlaps, "jain": round(jain, 3),
            "starved": workers - len(counts)}


def pairs(grants, seconds):
    """Acquire + release of workers that neither hold nor pause: from the end of one release to the end of the next."""
    last, spans = {}, []
    for _, _, released, worker in grants:
        if worker in last:
            spans.append(released - last[worker])
        last[worker] = released
    return {"own_pairs_per_s": round(len(grants) / seconds, 1), "own_pair_p50_us": round(quantile(spans, .5) / 1e3, 1)}


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else float("nan")
