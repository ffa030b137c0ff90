//! Every SQL statement that is run more than once, one constant each. The tables are in
//! `schema.sql`.

/// No parameters. One row: boot_id, clock_start, fence_floor.
pub(super) const LOAD_STORE: &str = "SELECT boot_id, clock_start, fence_floor FROM store";

/// ?1 boot_id, ?2 clock_start, ?3 fence_floor.
pub(super) const SAVE_STORE: &str =
    "INSERT OR REPLACE INTO store (one, boot_id, clock_start, fence_floor) VALUES (1, ?1, ?2, ?3)";

/// No parameters. One row: the highest fence in the file, by name or forgotten.
pub(super) const HIGHEST_FENCE: &str = "SELECT max(coalesce((SELECT max(last_fence) FROM lock), 0), \
     coalesce((SELECT max(fence_floor) FROM store), 0))";

/// ?1 name. At most one row: last_fence and the last forced release.
pub(super) const LOAD_LOCK: &str = "SELECT last_fence, forced_owner, forced_fence, forced_at, \
     forced_reason, forced_who, forced_label, forced_host, forced_pid FROM lock WHERE name = ?1";

/// ?1 name, ?2 last_fence, ?3… the forced release.
pub(super) const SAVE_LOCK: &str = "INSERT OR REPLACE INTO lock (name, last_fence, forced_owner, \
     forced_fence, forced_at, forced_reason, forced_who, forced_label, forced_host, forced_pid) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

/// ?1 name. The holders; the caller sorts by fence.
pub(super) const LOAD_HOLDERS: &str = "SELECT owner, mode, permits, capacity, fence, since, \
     expiry, anchor, who, label, host, pid FROM holder WHERE name = ?1";

/// ?1 name, ?2 owner, ?3… the rest of the row.
pub(super) const SAVE_HOLDER: &str = "INSERT OR REPLACE INTO holder (name, owner, mode, permits, \
     capacity, fence, since, expiry, anchor, who, label, host, pid) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// ?1 name, ?2 owner.
pub(super) const DROP_HOLDER: &str = "DELETE FROM holder WHERE name = ?1 AND owner = ?2";

/// ?1 name. The waiters; the caller sorts by place.
pub(super) const LOAD_WAITERS: &str = "SELECT place, owner, mode, permits, capacity, ttl_millis, \
     since, alive_for, alive_until, inbox, anchor, who, label, host, pid FROM waiter \
     WHERE name = ?1";

/// ?1 name, ?2 owner, ?3 place, ?4… the rest of the row.
pub(super) const SAVE_WAITER: &str = "INSERT OR REPLACE INTO waiter (name, owner, place, mode, \
     permits, capacity, ttl_millis, since, alive_for, alive_until, inbox, anchor, who, label, \
     host, pid) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";

/// ?1 name, ?2 owner.
pub(super) const DROP_WAITER: &str = "DELETE FROM waiter WHERE name = ?1 AND owner = ?2";

/// No parameters. Every name that somebody holds or waits for, sorted.
pub(super) const NAMES_IN_USE: &str =
    "SELECT name FROM holder UNION SELECT name FROM waiter ORDER BY name";

/// ?1 name, ?2 owner. At most one row: fence, since, expiry of a hold.
pub(super) const FIND_GRANT: &str =
    "SELECT fence, since, expiry FROM holder WHERE name = ?1 AND owner = ?2";

/// ?1 name, ?2 owner. A row if the owner waits: how many wait before it.
pub(super) const PLACE: &str = "SELECT (SELECT count(*) FROM waiter AS other \
     WHERE other.name = mine.name AND other.place < mine.place) \
     FROM waiter AS mine WHERE name = ?1 AND owner = ?2";

/// ?1 name. The processes that the holds of a name are tied to.
pub(super) const ANCHORS_OF: &str =
    "SELECT DISTINCT anchor FROM holder WHERE name = ?1 AND anchor IS NOT NULL";

/// ?1 inbox. The names that are held by a process.
pub(super) const HELD_BY: &str = "SELECT DISTINCT name FROM holder WHERE anchor = ?1";

/// ?1 inbox. The places that a process has in queues: name, owner.
pub(super) const AWAITED_BY: &str = "SELECT name, owner FROM waiter WHERE inbox = ?1";

/// ?1 fence. The highest fence among idle names that were last held before that fence.
pub(super) const HIGHEST_FORGOTTEN: &str = "SELECT max(last_fence) FROM lock WHERE \
     last_fence < ?1 AND name NOT IN (SELECT name FROM holder UNION SELECT name FROM waiter)";

/// ?1 fence. Forgets idle names that were last held before that fence, some at a time.
pub(super) const FORGET_NAMES: &str = "DELETE FROM lock WHERE name IN (SELECT name FROM lock \
     WHERE last_fence < ?1 AND name NOT IN \
     (SELECT name FROM holder UNION SELECT name FROM waiter) LIMIT 1000)";

/// ?1 fence.
pub(super) const RAISE_FLOOR: &str = "UPDATE store SET fence_floor = max(fence_floor, ?1)";
