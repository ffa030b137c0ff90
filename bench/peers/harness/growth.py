"""How cost grows with the number of names, waiters, processes and leases: one row per size, tenure on Redis alone.

Each function takes a Measurement and a size and answers that row's figures.
"""
import os
import statistics
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from .grants import judge, pairs, read
from .measure import finish, start, start_ready, word
from .server import Redis, rates, resident_bytes

PEER = "tenure"
TTL_MS = 9000
START_EVERY_S = 0.02  # two cores start 200 processes; all at once they would keep each other from it
WAIT_SECONDS = 15  # three times the pause between two questions of a waiting process


@dataclass(frozen=True)
class Growth:
    """A scenario whose rows are sizes. It has the same face as a Scenario."""
    name: str
    about: str
    measure: object  # (Measurement, size) → figures
    sizes: tuple
    axis: str  # what the sizes count
    columns: tuple
    charted: tuple  # the columns that stand in the chart
    rounds: int = 1
    quick: bool = False  # part of --quick

    def rows(self, options):
        """`--quick` leaves out the largest size."""
        if options.peers and PEER not in options.peers:
            return []
        return list(self.sizes[:-1] if options.quick else self.sizes)

    def peer(self, _):
        return PEER


def names(measurement, count):
    with Redis() as redis, stepped(measurement, "names", url=redis.url, names=count, n=measurement.size.pairs // 4) as program:
        program.until("begun")
        server, client, keys = redis.used_memory(), resident_bytes(program.process.pid), redis.keys()
        program.until("ready")
        held = {"server_bytes_per_name": (redis.used_memory() - server) / count,
                "client_bytes_per_name": (resident_bytes(program.process.pid) - client) / count}
        program.until("released")
        left = {"left_bytes_per_name": (redis.used_memory() - server) / count,
                "left_keys_per_name": (redis.keys() - keys) / count}
        return {**program.finish(), **rounded(held), **rounded(left)}


def waiters(measurement, count):
    """Tasks of one process: a wait at rest for memory and calls, then a lock that goes round."""
    figures = measurement.contended(PEER, processes=1, workers=count, hold_us=1000, think_us=0)
    return {**figures, **at_rest(measurement, count)}


def at_rest(measurement, count, seconds=5):
    """The memory of each waiter of a process, and the script calls of all of them."""
    with Redis() as redis, stepped(
            measurement, "wait", url=redis.url, workers=count, seconds=seconds + 1, name="held") as program:
        program.until("begun")
        alone = resident_bytes(program.process.pid)
        program.until("ready")
        before = redis.marks()
        time.sleep(seconds)
        figures = {"waiting_scripts_per_s": rates(before, redis.marks())["scripts_per_s"]}
        if count >= 100:  # fewer are lost in what the process needs anyway
            figures["client_bytes_per_waiter"] = round((resident_bytes(program.process.pid) - alone) / count)
        program.finish()
        return figures


def queue(measurement, count, turns=200):
    """Waiters that the store sees: the time of each script, one by one."""
    with Redis() as redis, stepped(measurement, "queue", url=redis.url, waiters=count, n=turns) as program:
        program.until("held")
        server = redis.used_memory()
        program.until("begun")
        figures = {}
        if count >= 1000:  # fewer are lost in the buffers of the connection
            figures["server_bytes_per_waiter"] = round((redis.used_memory() - server) / (count - 1))
        spent = {"queued": [], "released": []}
        for _ in range(turns):
            for step, times in spent.items():
                before = redis.script_us()
                program.until(step)
                times.append(redis.script_us() - before)
        for step, times in spent.items():
            figures[f"{step}_script_us"] = statistics.median(times)
        return {**program.finish(), **figures}


def clients(measurement, count):
    """One worker per process: on one name, held 1 ms, and then on names of their own, not held."""
    one_name, grants, scripts = crowd(measurement, count, hold_us=1000, name=lambda index: "hot")
    figures = judge(grants, 0, count)
    figures["scripts_per_grant"] = round(scripts / max(1, len(grants)), 2)
    _, grants, _ = crowd(measurement, count, hold_us=0, name=lambda index: f"own:{index}")
    return {**one_name, **figures, **pairs(grants, measurement.size.seconds)}


def crowd(measurement, count, hold_us, name):
    """Runs so many processes of one worker each. What counts is the time when all of them run."""
    seconds = measurement.size.seconds
    with Redis() as redis, tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        files = [os.path.join(folder, f"{index}.txt") for index in range(count)]
        length = count * START_EVERY_S * 2 + seconds + 3
        began, started = time.monotonic(), []
        for index, file in enumerate(files):
            process = start(measurement.programs.command(
                PEER, "hot", url=redis.url, workers=1, seconds=round(began + length - time.monotonic(), 2),
                hold_us=hold_us, think_us=0, name=name(index), out=file, id=f"p{index}"))
            started.append(stack.enter_context(ended(process)))
            time.sleep(START_EVERY_S)
        time.sleep(1)
        first, before = time.monotonic_ns(), redis.scripts()
        time.sleep(seconds)
        last, after = time.monotonic_ns(), redis.scripts()
        late = last > (began + length) * 1e9
        answers = [finish(process, length + 40) for process in started]
        failed = [answer for answer in answers if "error" in answer]
        note = {"error": "started too slowly"} if late else failed[0] if failed else {}
        return note, [grant for grant in read(files) if first <= grant[0] < last], after - before


def renewals(measurement, count):
    figures = measurement.hold(PEER, count)
    figures["allowed_scripts_per_s"] = round(count * 3 / (TTL_MS / 1000) / 100, 2)
    if "still_held" in figures:
        figures["lost"] = count - figures["still_held"]
    return figures


def waiting_processes(measurement, count):
    """One waiter in each process, on a name that another process holds."""
    with Redis() as redis, ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        length = WAIT_SECONDS + count * START_EVERY_S * 2 + 4
        holder = start_ready(measurement.programs.command(
            PEER, "wait", url=redis.url, workers=0, seconds=length + 10, name="held"))
        stack.enter_context(ended(holder))
        started = []
        for index in range(count):
            process = start(measurement.programs.command(
                PEER, "hot", url=redis.url, workers=1, seconds=length, hold_us=0, think_us=0, name="held",
                out=os.path.join(folder, str(index)), id=f"p{index}"))
            started.append(stack.enter_context(ended(process)))
            time.sleep(START_EVERY_S)
        time.sleep(2)
        pids = [process.pid for process in started]
        before = redis.marks(*pids)
        time.sleep(WAIT_SECONDS)
        figures = rates(before, redis.marks(*pids))
        figures["allowed_scripts_per_s"] = count / 5
        answers = [finish(process, length + 40) for process in started]
        failed = [answer for answer in answers if "error" in answer]
        return {**figures, **(failed[0] if failed else {}), "granted": sum(a.get("grants", 0) for a in answers)}


class Stepped:
    """A program that stops between its steps (`steps=stdin`)."""

    def __init__(self, process):
        self.process, self.begun = process, False

    def until(self, step, limit=180):
        """Lets it go on to the end of a step."""
        if self.begun:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        self.begun = True
        if not word(self.process, step, limit):
            raise SystemExit(f"the program ended before its step `{step}`: {finish(self.process, 5)}")

    def finish(self):
        return finish(self.process, 60)  # the end of its input lets it go on


@contextmanager
def stepped(measurement, scenario, **arguments):
    with ended(start(measurement.programs.command(PEER, scenario, **arguments, steps="stdin"), stepped=True)) as process:
        yield Stepped(process)


@contextmanager
def ended(process):
    """A process that does not outlive its measurement."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def rounded(figures):
    return {key: round(value, 2) for key, value in figures.items()}


GROWTH = {growth.name: growth for growth in [
    Growth("growth-names", "Names held at once by one process: memory for each, acquire + release of one more, and what the "
           "server keeps of each after the release (its fence, for a day).", names,
           (100, 1000, 10_000, 100_000, 1_000_000), "names held",
           ("server_bytes_per_name", "client_bytes_per_name", "p50_us", "p99_us", "left_bytes_per_name",
            "left_keys_per_name", "acquire_s", "release_s"),
           ("server_bytes_per_name", "client_bytes_per_name", "p50_us")),
    Growth("growth-waiters", "Tasks of one process that want one name, held 1 ms. Gap: from the start of a release to the next "
           "grant.", waiters, (10, 100, 1000, 10_000), "waiting tasks",
           ("gap_p50_us", "gap_p99_us", "grants_per_s", "client_bytes_per_waiter", "waiting_scripts_per_s", "scripts_per_grant",
            "overlaps"), ("gap_p50_us", "gap_p99_us", "client_bytes_per_waiter")),
    Growth("growth-queue", "Waiters of one name that the server sees, each for itself: time of the script that queues one more, "
           "of the one that releases and hands over to the first, and from its start to the news of the grant.", queue,
           (10, 100, 1000, 10_000), "waiters in the server's queue",
           ("queued_script_us", "released_script_us", "handover_p50_us", "handover_p99_us", "server_bytes_per_waiter"),
           ("queued_script_us", "released_script_us", "handover_p50_us")),
    Growth("growth-clients", "Processes with one worker each: on one name, held 1 ms (gap, grants, Jain, script calls), and on "
           "names of their own, not held (pairs of acquire + release, all together).", clients, (1, 10, 50, 100, 200),
           "processes", ("gap_p50_us", "gap_p99_us", "grants_per_s", "jain", "starved", "overlaps", "scripts_per_grant",
                         "own_pairs_per_s", "own_pair_p50_us"),
           ("gap_p50_us", "grants_per_s", "own_pairs_per_s")),
    Growth("growth-renewals", "Leases of 9 s, renewed by the library. Allowed: as many script calls as full batches of 100 need, "
           "three times per ttl.", renewals, (1000, 10_000, 100_000), "leases",
           ("scripts_per_s", "allowed_scripts_per_s", "script_p99_us", "server_cpu_pct", "client_cpu_pct", "lost", "acquire_s"),
           ("scripts_per_s", "script_p99_us", "server_cpu_pct", "client_cpu_pct")),
    Growth("wait-processes", "One waiter in each process, on a name that another process holds. Allowed: one script call per "
           "process in 5 s.", waiting_processes, (1, 10, 100), "waiting processes",
           ("scripts_per_s", "allowed_scripts_per_s", "commands_per_s", "server_cpu_pct", "client_cpu_pct", "granted"),
           ("scripts_per_s", "commands_per_s")),
]}
