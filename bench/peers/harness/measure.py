"""How each scenario is measured: starts server and programs, and turns what they say into figures."""
import json
import os
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack

from .grants import judge, read
from .server import PIN, Redis, rates


# A peer that waits for every server, and tries again, takes minutes where one of them hangs.
QUORUM_LIMIT = 60


class Measurement:
    """One run of one scenario by one peer. `programs`: see programs.py; `size`: how much (see scenarios.py)."""

    def __init__(self, programs, size):
        self.programs, self.size = programs, size

    def serial(self, peer):
        with Redis(PIN) as redis, Store(peer, redis) as url:
            warm = 3000 if peer.startswith("redisson") else 500
            command = self.programs.command(peer, "serial", url=url, n=self.size.pairs, warm=warm)
            return finish(start(PIN + command), 120)

    def parallel(self, peer):
        with Redis() as redis, Store(peer, redis) as url:
            before = redis.cpu()
            command = self.programs.command(peer, "parallel", url=url, workers=200, seconds=self.size.seconds)
            answer = finish(start(command), 120)
            if answer.get("pairs"):
                # The second of warm-up cost the server as much as every other, but its pairs are not counted.
                share = self.size.seconds / (self.size.seconds + 1)
                answer["server_cpu_us_per_pair"] = round((redis.cpu() - before) * share * 1e6 / answer["pairs"], 1)
            return answer

    def hot(self, peer):
        return self.contended(peer, processes=2, workers=8, hold_us=1000, think_us=5000)

    def hot_local(self, peer):
        return self.contended(peer, processes=1, workers=16, hold_us=0, think_us=0)

    def contended(self, peer, processes, workers, hold_us, think_us):
        seconds = self.size.seconds * 2
        with Redis() as redis, Store(peer, redis) as url, tempfile.TemporaryDirectory() as folder:
            before = redis.marks()
            files = [os.path.join(folder, f"{index}.txt") for index in range(processes)]
            started = [start(self.programs.command(
                peer, "hot", url=url, workers=workers, seconds=seconds, hold_us=hold_us, think_us=think_us,
                name="hot", out=file, id=f"p{index}")) for index, file in enumerate(files)]
            for answer in [finish(process, seconds + 40) for process in started]:
                if "grants" not in answer:
                    return answer
            grants = read(files)
            figures = judge(grants, think_us * 1000, processes * workers)
            after = redis.marks()
            if grants:
                for what in ("commands", "scripts"):
                    figures[f"{what}_per_grant"] = round((after[what] - before[what]) / len(grants), 2)
            return figures

    def wait(self, peer, waiters=200):
        with Redis() as redis, Store(peer, redis) as url:
            seconds = self.size.seconds * 2
            process = start_ready(self.programs.command(
                peer, "wait", url=url, workers=waiters, seconds=seconds + 6, name="held"))
            time.sleep(2)
            return self.watched(redis, process, seconds)

    def hold(self, peer, leases=1000):
        with Redis() as redis, Store(peer, redis) as url:
            process = start_ready(self.programs.command(
                peer, "hold", url=url, leases=leases, ttl_ms=9000, seconds=self.size.hold_seconds + 4))
            time.sleep(1)
            return self.watched(redis, process, self.size.hold_seconds)

    def watched(self, redis, process, seconds):
        """Counts what a program that is now at rest asks of the server."""
        if process.poll() is not None:
            return finish(process, 5)
        redis.ask("CONFIG", "RESETSTAT")
        before = redis.marks(process.pid)
        time.sleep(seconds)
        after = redis.marks(process.pid)
        script_p99_us = redis.script_p99_us()
        answer = finish(process, 90)
        if "error" not in answer and "unsupported" not in answer:
            answer.update(rates(before, after), script_p99_us=script_p99_us)
        return answer

    def quorum(self, peer, hung=False):
        with ExitStack() as stack:
            nodes = [stack.enter_context(Redis()) for _ in range(5)]
            if hung:
                nodes[-1].process.send_signal(signal.SIGSTOP)
            pairs = self.size.quorum_pairs // (10 if hung else 1)
            urls = ",".join(node.url for node in nodes)
            warm = 10 if hung else 100
            process = start(self.programs.command(peer, "quorum", urls=urls, n=pairs, warm=warm, ttl_ms=8000))
            return finish(process, QUORUM_LIMIT, f"{pairs + warm} pairs")

    def run(self, peer):
        """A whole process: start, take the lock, run `true`, end."""
        with tempfile.TemporaryDirectory() as folder:
            if peer == "flock":
                command, environment = ["flock", os.path.join(folder, "lock"), "true"], dict(os.environ)
            else:
                command = [self.programs.cli, "run", "bench", "--", "true"]
                environment = {k: v for k, v in os.environ.items() if not k.startswith("TENURE_")}
                environment.update(HOME=folder, XDG_STATE_HOME=folder, XDG_CONFIG_HOME=folder, XDG_RUNTIME_DIR=folder)
            times = []
            for turn in range(self.size.runs + 5):
                began = time.monotonic()
                done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                if done.returncode != 0:
                    return {"error": f"exit {done.returncode}: {done.stderr.strip()[:160]}"}
                if turn >= 5:
                    times.append((time.monotonic() - began) * 1e3)
            times.sort()
            return {"p50_ms": round(times[len(times) // 2], 2), "p99_ms": round(times[int(len(times) * .99)], 2),
                    "binary_mb": round(os.path.getsize(self.programs.cli) / 1e6, 1) if peer != "flock" else None}


class Store:
    """Where a peer keeps its locks: the server, unless its name says otherwise."""

    def __init__(self, peer, redis):
        self.peer, self.redis = peer, redis
        self.folder = None

    def __enter__(self):
        if self.peer == "tenure-memory":
            return "memory:"
        if self.peer == "tenure-sqlite":
            self.folder = tempfile.TemporaryDirectory()
            return f"sqlite:{self.folder.name}/locks.db"
        return self.redis.url

    def __exit__(self, *_):
        if self.folder:
            self.folder.cleanup()


def start(command, stepped=False):
    """`stepped`: it will be given lines on standard input."""
    stdin = subprocess.PIPE if stepped else subprocess.DEVNULL
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def start_ready(command):
    """Starts a program and waits for its `ready` line on standard error."""
    process = start(command)
    word(process, "ready")
    return process


def word(process, expected, limit=180):
    """Waits for this line on standard error; False if it did not come."""
    began = time.monotonic()
    while time.monotonic() - began < limit:
        line = process.stderr.readline()
        if line.strip() == expected:
            return True
        if not line:
            return False
    return False


def finish(process, limit, what="this"):
    """The JSON that a program ends with, or why there is none: also that it was stopped, and after how long."""
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"error": f"> {limit:.0f} s for {what}, stopped"}
    lines = [line for line in out.splitlines() if line.strip().startswith("{")]
    if not lines:
        return {"error": (err.strip().splitlines() or ["no output"])[-1][:160]}
    return json.loads(lines[-1])
