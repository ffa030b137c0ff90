"""A user of the Python package `redis` and its Lock on several servers at once, as the Redlock page describes it:
one token, every server asked, a majority wins, everything given back otherwise. Driven line by line from a test.

Reads `try NAME SECONDS`, `wait NAME SECONDS` and `release NAME` on standard input and answers one line each: acquired, busy, released
or lost.
"""
import sys
import time
import uuid

import redis
from redis.exceptions import LockError

clients = [redis.Redis(host="127.0.0.1", port=int(port)) for port in sys.argv[1:]]
majority = len(clients) // 2 + 1
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
    if verb == "release":
        return "released" if release(held.pop(name)) >= majority else "lost"
    while not (taken := take(name, float(words[2]))) and verb == "wait":
        time.sleep(0.05)
    if not taken:
        return "busy"
    held[name] = taken
    return "acquired"


def take(name, seconds):
    token = uuid.uuid4().hex
    locks = [client.lock(name, timeout=seconds) for client in clients]
    taken = [lock for lock in locks if lock.acquire(blocking=False, token=token)]
    if len(taken) < majority:
        release(taken)
        return None
    return taken


for line in sys.stdin:
    print(answer(line.split()), flush=True)
