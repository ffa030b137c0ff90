//! The store's clock: time since boot, moved so that it keeps growing from boot to boot.
//!
//! CLOCK_BOOTTIME neither jumps nor stops during suspend, and all processes of one kernel read the
//! same; but it starts at zero at every boot. So the file remembers the boot it was last used in
//! and what the store's time was when that boot began. In another boot no process of the old one
//! can be alive: every lease that is tied to one and every place in a queue is void. What was left
//! behind without a process lasts for its time.

use rusqlite::{Connection, OptionalExtension, params};
use rustix::time::{ClockId, clock_gettime};
use tenure_core::{Fence, Timestamp};

use super::statements;
use crate::clock::SystemClock;

/// What this boot of the machine is called and how far its clock is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Boot {
    /// Random for each boot.
    id: String,
    /// What to take from our reading of CLOCK_BOOTTIME to get the machine's, in microseconds:
    /// not zero in a time namespace.
    namespace_offset: i64,
}

/// What the file says about boots and forgotten names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    boot_id: String,
    clock_start: i64,
    /// No fence of a forgotten name was higher.
    pub(super) fence_floor: Fence,
}

impl Boot {
    /// This machine's boot.
    pub(super) fn current() -> std::io::Result<Self> {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        Ok(Self {
            id: id.trim().to_owned(),
            namespace_offset: namespace_offset()?,
        })
    }

    /// Random for each boot.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// How long the machine has been up, in microseconds: the same in every time namespace.
    fn uptime(&self) -> i64 {
        let micros = SystemClock::read().as_nanos() / 1_000;
        i64::try_from(micros).unwrap_or(i64::MAX) - self.namespace_offset
    }

    /// The store's time in this boot.
    pub(super) fn now(&self, epoch: &Epoch) -> Timestamp {
        let micros = epoch.clock_start.saturating_add(self.uptime());
        Timestamp::from_micros(u64::try_from(micros).unwrap_or(0))
    }

    /// Whether the file's leases were given during this boot.
    pub(super) fn is_of(&self, epoch: &Epoch) -> bool {
        self.id == epoch.boot_id
    }

    /// Reads the epoch; in a new boot (or a new file) voids all leases and starts a new one. Must
    /// run inside a write transaction.
    pub(super) fn enter(&self, connection: &Connection) -> rusqlite::Result<Epoch> {
        let known = Epoch::load(connection)?;
        if let Some(epoch) = known.filter(|epoch| self.is_of(epoch)) {
            return Ok(epoch);
        }
        connection
            .execute_batch("DELETE FROM holder WHERE anchor IS NOT NULL; DELETE FROM waiter;")?;
        let highest: i64 = connection.query_row(statements::HIGHEST_FENCE, [], |row| row.get(0))?;
        let uptime = self.uptime();
        let epoch = Epoch {
            boot_id: self.id.clone(),
            // Never behind what was given out before, even if the wall clock is.
            clock_start: (wall_clock() - uptime).max(highest - uptime),
            fence_floor: fence(highest),
        };
        let parameters = params![epoch.boot_id, epoch.clock_start, highest];
        connection.execute(statements::SAVE_STORE, parameters)?;
        Ok(epoch)
    }
}

impl Epoch {
    /// What the file says; `None` if it is new.
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached(statements::LOAD_STORE)?
            .query_row([], |row| {
                Ok(Self {
                    boot_id: row.get(0)?,
                    clock_start: row.get(1)?,
                    fence_floor: fence(row.get(2)?),
                })
            })
            .optional()
    }
}

fn fence(value: i64) -> Fence {
    Fence::from_u64(u64::try_from(value).unwrap_or(0))
}

/// Microseconds since 1970. Read once per boot or new file, to give fences a start that is higher
/// than in earlier files.
fn wall_clock() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

/// How far CLOCK_BOOTTIME of our time namespace is ahead of the machine's, in microseconds.
fn namespace_offset() -> std::io::Result<i64> {
    // Missing if the kernel has no time namespaces: then there is nothing to take off.
    let text = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let offset = parse_namespace_offset(&text);
    // The file speaks of the namespace of our children.
    let ours = || std::fs::read_link("/proc/self/ns/time");
    let theirs = || std::fs::read_link("/proc/self/ns/time_for_children");
    if offset != 0 && ours()? != theirs()? {
        let why = "this process is about to enter another time namespace";
        return Err(std::io::Error::other(why));
    }
    Ok(offset)
}

/// Lines of `clock seconds nanoseconds`; the clock is `boottime`, or its number in older kernels.
fn parse_namespace_offset(text: &str) -> i64 {
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find_map(|words| match words[..] {
            ["boottime" | "7", seconds, nanos] => {
                let seconds: i64 = seconds.parse().ok()?;
                let nanos: i64 = nanos.parse().ok()?;
                Some(seconds * 1_000_000 + nanos / 1_000)
            }
            _ => None,
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(id: &str) -> Boot {
        Boot {
            id: id.to_owned(),
            namespace_offset: 0,
        }
    }

    fn file() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(include_str!("schema.sql"))
            .unwrap();
        connection
    }

    fn holders(connection: &Connection) -> i64 {
        let count = "SELECT (SELECT count(*) FROM holder) + (SELECT count(*) FROM waiter)";
        connection.query_row(count, [], |row| row.get(0)).unwrap()
    }

    const HOLD: &str = "INSERT INTO holder VALUES ('a', x'01', 0, 0, 0, 5, 5, 9, 'i', '', '', '', 1);
         INSERT INTO waiter VALUES ('a', x'02', 1, 0, 0, 0, 1000, 5, 5, 9, 'i', NULL, '', '', '', 1);";

    #[test]
    fn the_same_boot_keeps_leases_and_time() {
        let connection = file();
        let first = boot("one").enter(&connection).unwrap();
        connection.execute_batch(HOLD).unwrap();
        assert_eq!(boot("one").enter(&connection).unwrap(), first);
        assert_eq!(holders(&connection), 2);
    }

    #[test]
    fn another_boot_voids_leases_and_queues() {
        let connection = file();
        boot("one").enter(&connection).unwrap();
        connection.execute_batch(HOLD).unwrap();
        let epoch = boot("two").enter(&connection).unwrap();
        assert!(boot("two").is_of(&epoch) && !boot("one").is_of(&epoch));
        assert_eq!(holders(&connection), 0);
    }

    #[test]
    fn what_was_left_behind_without_a_process_outlives_the_boot() {
        let connection = file();
        boot("one").enter(&connection).unwrap();
        connection
            .execute_batch(&HOLD.replace("9, 'i', ''", "9, NULL, ''"))
            .unwrap();
        boot("two").enter(&connection).unwrap();
        assert_eq!(holders(&connection), 1);
    }

    #[test]
    fn time_never_falls_behind_a_fence_whatever_the_wall_clock_says() {
        let connection = file();
        let epoch = boot("one").enter(&connection).unwrap();
        let future = wall_clock() + 1_000_000_000_000;
        let row = format!("INSERT INTO lock (name, last_fence) VALUES ('a', {future})");
        connection.execute_batch(&row).unwrap();
        assert!(boot("one").now(&epoch) < Timestamp::from_micros(future as u64));
        let epoch = boot("two").enter(&connection).unwrap();
        assert!(boot("two").now(&epoch) >= Timestamp::from_micros(future as u64));
        assert_eq!(epoch.fence_floor, Fence::from_u64(future as u64));
    }

    #[test]
    fn a_new_file_starts_at_the_wall_clock() {
        let before = wall_clock();
        let epoch = boot("one").enter(&file()).unwrap();
        let now = boot("one").now(&epoch).as_micros() as i64;
        assert!((before..before + 60_000_000).contains(&now), "{now}");
    }

    #[test]
    fn a_time_namespace_does_not_shift_the_stores_time() {
        let text = "monotonic           0         0\nboottime        86400 500000000\n";
        assert_eq!(parse_namespace_offset(text), 86_400_500_000);
        assert_eq!(parse_namespace_offset(""), 0);
        let shifted = Boot {
            id: "one".to_owned(),
            namespace_offset: 5_000_000,
        };
        assert!(shifted.uptime() < boot("one").uptime());
    }
}
