"""A user of the Python package `redis` and its Lock on several servers at once, as the Redlock page describes it:
one token, every server asked, a majority wins, everything given back otherwise. Driven line by line from a test.

Reads `try NAME TIMEOUT` and `release NAME` on standard input (TIMEOUT in seconds) and answers one line each.
"""
import sys
import uuid

import redis
from redis.exceptions import LockError

clients = [redis.Redis(host="127.0.0.1", port=int(port)) for port in sys.argv[1:]]
held = {}


def release(locks):
    released = 0
    for lock in locks:
        try:
            lock.release()
            released += 1
        except LockError:
            pass
    return released


def answer(words):
    verb, name = words[0], words[1]
    majority = len(clients) // 2 + 1
    if verb == "release":
        return "released" if release(held.pop(name)) >= majority else "lost"
    token = uuid.uuid4().hex
    locks = [client.lock(name, timeout=float(words[2])) for client in clients]
    taken = [lock for lock in locks if lock.acquire(blocking=False, token=token)]
    if len(taken) < majority:
        release(taken)
        return "busy"
    held[name] = taken
    return "acquired"


for line in sys.stdin:
    print(answer(line.split()), flush=True)
