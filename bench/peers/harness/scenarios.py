"""The scenarios: what each shows, which peers take part, which figures stand in its table."""
from dataclasses import dataclass

from .growth import GROWTH


@dataclass(frozen=True)
class Size:
    """How much is measured."""
    pairs: int  # serial
    seconds: int  # parallel; twice as long for hot and wait
    hold_seconds: int
    quorum_pairs: int
    runs: int  # of a whole process


FULL = Size(pairs=8000, seconds=6, hold_seconds=18, quorum_pairs=1000, runs=300)
QUICK = Size(pairs=3000, seconds=1, hold_seconds=9, quorum_pairs=300, runs=100)


@dataclass(frozen=True)
class Scenario:
    name: str
    about: str
    measure: object  # (Measurement, peer) → figures
    columns: tuple  # the first is charted
    peers: tuple
    lower_is_better: bool = True
    rounds: int = 0  # 0: as asked for
    quick: bool = True  # part of --quick
    not_quick: tuple = ()  # peers that --quick leaves out here, beside NOT_QUICK
    axis: str = "peer"  # what its rows are

    def rows(self, options):
        if options.peers:
            return [peer for peer in self.peers if peer in options.peers]
        return [peer for peer in self.peers if not (options.quick and peer in (*NOT_QUICK, *self.not_quick))]

    def peer(self, row):
        return row


FLOORS = ("raw-ping", "raw-set", "raw-plain", "raw-script", "raw-lease")
OTHERS = ("rslock", "rueidislock", "redislock", "redsync", "redisson", "redisson-fair", "redis-py",
          "python-redis-lock", "node-redlock")
WAITING = ("scripts_per_s", "commands_per_s", "server_cpu_pct", "client_cpu_pct")
HOLDING = ("scripts_per_s", "commands_per_s", "script_p99_us", "server_cpu_pct", "client_cpu_pct", "still_held", "leases",
           "acquire_s")
CONTENDED = ("gap_p50_us", "gap_p99_us", "wait_p50_ms", "wait_p99_ms", "wait_max_ms", "grants_per_s", "jain", "starved",
             "overlaps", "scripts_per_grant", "commands_per_grant")
QUORUM = ("p50_us", "p99_us", "max_us", "ok", "failed")
QUORUM_PEERS = ("tenure-redlock", "redisson-redlock", "redsync", "rslock", "node-redlock", "pottery")

SCENARIOS = {scenario.name: scenario for scenario in [
    Scenario("serial", "One worker, one name, nobody else: acquire + release. Server and client on one core.",
             lambda m, peer: m.serial(peer), ("p50_us", "p99_us", "acquire_p50_us", "release_p50_us"),
             ("tenure", "tenure-rw", "tenure-sem", "tenure-sqlite", "tenure-memory", *FLOORS,
              *(peer for peer in OTHERS if peer != "python-redis-lock"))),
    Scenario("parallel", "200 workers, each with a name of its own: pairs of acquire + release per second.",
             lambda m, peer: m.parallel(peer), ("pairs_per_s", "p50_us", "p99_us", "server_cpu_us_per_pair"),
             ("tenure", "tenure-rw", "tenure-sem", "tenure-sqlite", "tenure-memory", *FLOORS,
              *(peer for peer in OTHERS if peer not in ("python-redis-lock", "redisson-fair"))), lower_is_better=False),
    Scenario("hot", "2 processes × 8 workers, one name, held 1 ms, paused 5 ms. Gap: from the start of a release to the "
             "next grant. Jain: 1 is perfectly fair.",
             lambda m, peer: m.hot(peer), CONTENDED,
             ("tenure", "tenure-rw", "tenure-sem", "tenure-sqlite", *OTHERS, "redisson-rw")),
    Scenario("hot-local", "1 process × 16 workers, one name, neither held nor paused.",
             lambda m, peer: m.hot_local(peer), ("grants_per_s", *(c for c in CONTENDED if c != "grants_per_s")),
             ("tenure", "tenure-sqlite", "tenure-memory", "rueidislock", "rslock", "redisson", "python-redis-lock"),
             lower_is_better=False),
    Scenario("wait", "200 workers of one process wait for a lock that another holds: what the server is asked meanwhile.",
             lambda m, peer: m.wait(peer), WAITING, ("tenure", "tenure-sqlite", *OTHERS), rounds=1,
             not_quick=("redis-py", "node-redlock")),
    Scenario("wait-1000", "The same with 1,000 workers.", lambda m, peer: m.wait(peer, waiters=1000), WAITING,
             ("tenure", "rueidislock", "redisson", "python-redis-lock"), rounds=1, quick=False),
    Scenario("hold", "1,000 leases of 9 s, renewed by the library: what that costs, and whether all are kept.",
             lambda m, peer: m.hold(peer), HOLDING,
             ("tenure", "tenure-sqlite", "rslock", "rueidislock", "redisson", "python-redis-lock", "node-redlock"), rounds=1,
             not_quick=("tenure-sqlite", "python-redis-lock", "node-redlock")),
    *(Scenario(f"hold-{leases}", f"The same with {leases:,} leases.", lambda m, peer, leases=leases: m.hold(peer, leases),
               HOLDING, ("tenure", "rslock", "rueidislock", "redisson"), rounds=1, quick=False)
      for leases in (10_000, 100_000)),
    Scenario("run", "A whole process: start, take the lock of a file on this machine, run `true`, end.",
             lambda m, peer: m.run(peer), ("p50_ms", "p99_ms", "binary_mb"), ("tenure-cli", "flock"), rounds=1),
    Scenario("quorum", "Redlock over five servers: acquire + release.", lambda m, peer: m.quorum(peer), QUORUM,
             QUORUM_PEERS, quick=False),
    Scenario("quorum-hung", "The same with one server that does not answer (SIGSTOP). A peer is stopped after 60 s.",
             lambda m, peer: m.quorum(peer, hung=True), QUORUM, QUORUM_PEERS, rounds=1, quick=False),
]} | GROWTH

# Words that stand for several scenarios.
GROUPS = {"growth": tuple(GROWTH)}

# What `--quick` leaves out: variations of peers that stay.
NOT_QUICK = ("raw-plain", "tenure-rw", "tenure-sem", "redsync", "redislock", "redisson-rw", "redisson-fair")
