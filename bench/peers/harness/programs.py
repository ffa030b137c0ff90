"""Which peers there are, which program drives each, and what that program needs to be built."""
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclass(frozen=True)
class Toolchain:
    """A language: a folder with a `run` program that builds itself, and the commands that it needs."""
    folder: str
    commands: tuple


TOOLCHAINS = {
    "rust": Toolchain("rust", ("cargo",)),
    "go": Toolchain("go", ("go",)),
    "java": Toolchain("java", ("java", "mvn")),
    "node": Toolchain("node", ("node", "npm")),
    "python": Toolchain("python", ("python3",)),
}


@dataclass(frozen=True)
class Peer:
    """A lock that is measured. `version`: a file in the toolchain's folder, and a pattern with one group."""
    name: str
    toolchain: str
    version: tuple = ()


PEERS = {peer.name: peer for peer in [
    Peer("tenure", "tenure"), Peer("tenure-rw", "tenure"), Peer("tenure-sem", "tenure"),
    Peer("tenure-sqlite", "tenure"), Peer("tenure-memory", "tenure"), Peer("tenure-redlock", "tenure"),
    Peer("tenure-cli", "tenure"),
    Peer("flock", "system"),
    Peer("raw-ping", "rust"), Peer("raw-set", "rust"), Peer("raw-plain", "rust"),
    Peer("raw-script", "rust"), Peer("raw-lease", "rust"),
    Peer("rslock", "rust", ("Cargo.lock", r'name = "rslock"\nversion = "([^"]+)"')),
    Peer("rlock", "rust", ("Cargo.lock", r'name = "rlock"\nversion = "([^"]+)"')),
    Peer("redsync", "go", ("go.mod", r"redsync/v4 v(\S+)")),
    Peer("rueidislock", "go", ("go.mod", r"redis/rueidis v(\S+)")),
    Peer("redislock", "go", ("go.mod", r"bsm/redislock v(\S+)")),
    *(Peer(name, "java", ("pom.xml", r"<redisson.version>([^<]+)<")) for name in (
        "redisson", "redisson-fair", "redisson-spin", "redisson-fenced", "redisson-rw", "redisson-redlock")),
    Peer("redis-py", "python", ("requirements.txt", r"redis\[hiredis\]==(\S+)")),
    Peer("pottery", "python", ("requirements.txt", r"pottery==(\S+)")),
    Peer("python-redis-lock", "python", ("requirements.txt", r"python-redis-lock==(\S+)")),
    Peer("node-redlock", "node", ("package.json", r'"redlock": "([^"]+)"')),
    Peer("redis-semaphore", "node", ("package.json", r'"redis-semaphore": "([^"]+)"')),
]}


def version(name):
    """The version of a peer's library as its own build file states it; empty for what has none."""
    peer = PEERS[name]
    if not peer.version:
        return ""
    path, pattern = peer.version
    with open(os.path.join(HERE, TOOLCHAINS[peer.toolchain].folder, path)) as file:
        found = re.search(pattern, file.read())
    return found.group(1) if found else ""


class Programs:
    """What can be run here. `own`: the program of the project itself; `cli`: the `tenure` command."""

    def __init__(self, own=None, cli=None):
        self.own, self.cli = own, cli
        self.skipped = {}  # toolchain → why

    def build(self, peers, say):
        """Builds what these peers need, all at once because much of it is downloads; what cannot be built is
        skipped with a word."""
        names = sorted({PEERS[peer].toolchain for peer in peers})
        self.skipped = {name: why for name in names if (why := self.reason_to_skip(name)) is not None}
        building = [name for name in names if name in TOOLCHAINS and name not in self.skipped]
        if building:
            say(f"building the peers in {', '.join(building)}")
        with ThreadPoolExecutor() as pool:
            ended = pool.map(build, [TOOLCHAINS[name] for name in building])
            self.skipped |= {name: why for name, why in zip(building, ended) if why is not None}
        for name, why in self.skipped.items():
            say(f"skipped, all {name} peers: {why}")

    def reason_to_skip(self, name):
        if name == "tenure":
            return None if self.own else "no program given (--own)"
        commands = TOOLCHAINS[name].commands if name in TOOLCHAINS else ("flock",)
        missing = [command for command in commands if shutil.which(command) is None]
        return f"{' and '.join(missing)} not installed" if missing else None

    def offers(self, peer):
        return PEERS[peer].toolchain not in self.skipped

    def command(self, peer, scenario, **arguments):
        toolchain = PEERS[peer].toolchain
        base = self.own if toolchain == "tenure" else os.path.join(HERE, TOOLCHAINS[toolchain].folder, "run")
        return [base, peer, scenario] + [f"{key}={value}" for key, value in arguments.items()]


def build(toolchain):
    """Runs the toolchain's own build; answers why it failed, or None."""
    run = os.path.join(HERE, toolchain.folder, "run")
    done = subprocess.run([run, "build"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return f"does not build: {lines[-1].strip()[:160]}" if lines else "does not build"
