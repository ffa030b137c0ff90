-- The tables of a tenure file, version 1. One row of `lock` per name that was ever held (until it
-- is forgotten), one of `holder` per hold, one of `waiter` per place in a queue: together they are
-- the LockState of a name. Times are microseconds of the store's clock, durations nanoseconds.
-- No secondary index: every step reads by name, and each index would cost a page per commit.

CREATE TABLE store (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    boot_id     TEXT    NOT NULL, -- the boot during which the leases below were given
    clock_start INTEGER NOT NULL, -- the store's time when that boot began
    fence_floor INTEGER NOT NULL  -- no fence of a forgotten name was higher
) STRICT;

CREATE TABLE lock (
    name          TEXT    PRIMARY KEY,
    last_fence    INTEGER NOT NULL,
    -- The last hold that was ended by force; all of these or none.
    forced_owner  BLOB,
    forced_fence  INTEGER,
    forced_at     INTEGER,
    forced_reason TEXT,
    forced_who    TEXT,
    forced_label  TEXT,
    forced_host   TEXT,
    forced_pid    INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE holder (
    name     TEXT    NOT NULL,
    owner    BLOB    NOT NULL,
    mode     INTEGER NOT NULL, -- 0 exclusive, 1 shared, 2 permits
    permits  INTEGER NOT NULL, -- 0 unless permits
    capacity INTEGER NOT NULL, -- 0 unless permits
    fence    INTEGER NOT NULL, -- grant order
    since    INTEGER NOT NULL,
    expiry   INTEGER NOT NULL,
    anchor   TEXT,             -- the process that the hold dies with
    who      TEXT    NOT NULL,
    label    TEXT    NOT NULL,
    host     TEXT    NOT NULL,
    pid      INTEGER NOT NULL,
    PRIMARY KEY (name, owner)
) STRICT, WITHOUT ROWID;

CREATE TABLE waiter (
    name        TEXT    NOT NULL,
    owner       BLOB    NOT NULL,
    place       INTEGER NOT NULL, -- order of arrival
    mode        INTEGER NOT NULL,
    permits     INTEGER NOT NULL,
    capacity    INTEGER NOT NULL,
    ttl_millis  INTEGER NOT NULL,
    since       INTEGER NOT NULL,
    alive_for   INTEGER NOT NULL,
    alive_until INTEGER NOT NULL,
    inbox       TEXT    NOT NULL,
    anchor      TEXT,
    who         TEXT    NOT NULL,
    label       TEXT    NOT NULL,
    host        TEXT    NOT NULL,
    pid         INTEGER NOT NULL,
    PRIMARY KEY (name, owner)
) STRICT, WITHOUT ROWID;
