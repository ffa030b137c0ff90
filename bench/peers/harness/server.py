"""A redis-server of our own for one measurement: on a free port, without persistence, in a temporary folder."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

# One core for server and client: an unpinned round trip jumps five-fold with where the two happen to run.
PIN = ["taskset", "-c", "0"] if shutil.which("taskset") else []


def cpu_seconds(pid):
    """The processor time that a process has used so far."""
    with open(f"/proc/{pid}/stat") as file:
        parts = file.read().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    """The memory that a process has now."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Redis:
    def __init__(self, pin=()):
        self.folder = tempfile.TemporaryDirectory()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [*pin, "redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no",
             "--dir", self.folder.name], stdout=subprocess.DEVNULL)
        for _ in range(500):
            try:
                if self.ask("PING") == b"+PONG":
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise SystemExit("redis-server did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def ask(self, *words):
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            request = [b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words]
            connection.sendall(b"".join(request))
            answer = connection.makefile("rb")
            line = answer.readline().strip()
            return answer.read(int(line[1:])) if line[:1] == b"$" and int(line[1:]) >= 0 else line

    def info(self, section):
        lines = self.ask("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def commands(self):
        """Commands that the server ran, those inside scripts included."""
        return int(self.info("stats")["total_commands_processed"])

    def scripts(self):
        """Script calls: what a client sent, not what the scripts did inside."""
        return self.of_scripts("calls")

    def script_us(self):
        """How long script calls kept the server, all together."""
        return self.of_scripts("usec")

    def of_scripts(self, field):
        stats = self.info("commandstats")
        names = ("cmdstat_evalsha", "cmdstat_eval", "cmdstat_fcall")
        return sum(int(stats[n].split(f"{field}=")[1].split(",")[0]) for n in names if n in stats)

    def used_memory(self):
        return int(self.info("memory")["used_memory"])

    def keys(self):
        return int(self.ask("DBSIZE")[1:])

    def script_p99_us(self):
        """How long a script call kept the server at the 99th percentile, since the last reset."""
        line = self.info("latencystats").get("latency_percentiles_usec_evalsha", "")
        found = [part for part in line.split(",") if part.startswith("p99=")]
        return float(found[0][4:]) if found else None

    def cpu(self):
        return cpu_seconds(self.process.pid)

    def marks(self, *pids):
        """Counters to be compared with later ones; `pids`: the clients."""
        return {"commands": self.commands(), "scripts": self.scripts(), "cpu": self.cpu(),
                "client": sum(map(cpu_seconds, pids)), "time": time.monotonic()}


def rates(before, after):
    """What happened per second between two marks."""
    span = after["time"] - before["time"]
    per_second = lambda key: (after[key] - before[key]) / span
    return {"commands_per_s": round(per_second("commands"), 1), "scripts_per_s": round(per_second("scripts"), 2),
            "server_cpu_pct": round(100 * per_second("cpu"), 2), "client_cpu_pct": round(100 * per_second("client"), 2)}
