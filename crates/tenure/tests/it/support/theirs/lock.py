"""A user of the Python package `redis` and its Lock, driven line by line from a test.

Reads `acquire NAME TIMEOUT`, `try NAME TIMEOUT`, `wait NAME TIMEOUT`, `release NAME` on standard
input (TIMEOUT in seconds, `none` for a lock that never expires) and answers one line each.
"""
import sys

import redis
from redis.exceptions import LockError

client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]))
locks = {}


def answer(words):
    verb, name = words[0], words[1]
    if verb == "release":
        try:
            locks[name].release()
            return "released"
        except LockError as error:
            return type(error).__name__
    timeout = None if words[2] == "none" else float(words[2])
    lock = client.lock(name, timeout=timeout, sleep=0.01)
    if not lock.acquire(blocking=verb == "wait", blocking_timeout=15 if verb == "wait" else None):
        return "busy"
    locks[name] = lock
    return "acquired"


for line in sys.stdin:
    print(answer(line.split()), flush=True)
