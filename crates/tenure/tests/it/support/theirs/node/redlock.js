// A user of the npm package `redlock` on several servers at once, driven line by line from a test.
//
// Arguments: the ports. Reads `try NAME SECONDS`, `wait NAME SECONDS` and `release NAME` on standard input and answers one
// line each: acquired, busy, released or lost.
"use strict";
const Redis = require("ioredis");
const Redlock = require("redlock").default;

const clients = process.argv.slice(1).map((port) => new Redis(Number(port), "127.0.0.1"));
const redlock = new Redlock(clients);
const held = new Map();

async function answer([verb, name, seconds]) {
  if (verb === "release") {
    const lock = held.get(name);
    held.delete(name);
    return lock.release().then(
      () => "released",
      () => "lost",
    );
  }
  const settings = { retryCount: verb === "wait" ? -1 : 0 };
  try {
    held.set(name, await redlock.acquire([name], Number(seconds) * 1000, settings));
    return "acquired";
  } catch (error) {
    return "busy";
  }
}

async function main() {
  const lines = require("readline").createInterface({ input: process.stdin });
  for await (const line of lines) {
    console.log(await answer(line.split(" ")));
  }
  process.exit(0);
}

main();
