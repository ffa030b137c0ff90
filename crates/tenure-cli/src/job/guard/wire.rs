//! What tenure, the starting job and the guard process say to each other: fixed-size records over
//! a SOCK_SEQPACKET pair between processes of one binary, so native byte order is right.

use rustix::process::Pid;

use crate::job::boottime::Boottime;
use crate::job::group::Target;

/// A record on the wire.
pub(crate) const RECORD: usize = 16;

/// To the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToGuard {
    /// A job exists: this is whom to kill, at the latest at `deadline`.
    Arm {
        /// Whom to kill.
        target: Target,
        /// When; `NEVER` if only the end of tenure counts.
        deadline: Boottime,
    },
    /// The deadline has moved.
    Deadline(Boottime),
    /// Descriptors to keep open come with this record.
    Keep,
}

/// From the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FromGuard {
    /// It KILLed the job because the deadline had come.
    Killed,
    /// After that, at this moment, no member lived any more.
    Gone(Boottime),
}

const ARM_GROUP: u32 = 1;
const ARM_PROCESS: u32 = 2;
const DEADLINE: u32 = 3;
const KEEP: u32 = 4;
const KILLED: u32 = 5;
const GONE: u32 = 6;

impl ToGuard {
    /// Allocates nothing: runs between fork and exec.
    pub(crate) fn encode(self) -> [u8; RECORD] {
        let (kind, pid, deadline) = match self {
            Self::Arm { target, deadline } => match target {
                Target::Group(pid) => (ARM_GROUP, pid.as_raw_nonzero().get(), deadline),
                Target::Process(pid) => (ARM_PROCESS, pid.as_raw_nonzero().get(), deadline),
            },
            Self::Deadline(deadline) => (DEADLINE, 0, deadline),
            Self::Keep => (KEEP, 0, Boottime::NEVER),
        };
        pack(kind, pid, deadline)
    }

    /// `None` for anything that [`encode`](Self::encode) does not make.
    pub(crate) fn decode(record: &[u8]) -> Option<Self> {
        let (kind, pid, deadline) = unpack(record)?;
        let pid = Pid::from_raw(pid);
        Some(match kind {
            ARM_GROUP => Self::Arm {
                target: Target::Group(pid?),
                deadline,
            },
            ARM_PROCESS => Self::Arm {
                target: Target::Process(pid?),
                deadline,
            },
            DEADLINE => Self::Deadline(deadline),
            KEEP => Self::Keep,
            _ => return None,
        })
    }
}

impl FromGuard {
    pub(crate) fn encode(self) -> [u8; RECORD] {
        match self {
            Self::Killed => pack(KILLED, 0, Boottime::NEVER),
            Self::Gone(at) => pack(GONE, 0, at),
        }
    }

    /// `None` for anything that [`encode`](Self::encode) does not make.
    pub(crate) fn decode(record: &[u8]) -> Option<Self> {
        match unpack(record)? {
            (KILLED, ..) => Some(Self::Killed),
            (GONE, _, at) => Some(Self::Gone(at)),
            _ => None,
        }
    }
}

fn pack(kind: u32, pid: i32, at: Boottime) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..4].copy_from_slice(&kind.to_ne_bytes());
    record[4..8].copy_from_slice(&pid.to_ne_bytes());
    record[8..].copy_from_slice(&at.as_nanos().to_ne_bytes());
    record
}

fn unpack(record: &[u8]) -> Option<(u32, i32, Boottime)> {
    let (kind, rest) = record.split_first_chunk::<4>()?;
    let (pid, rest) = rest.split_first_chunk::<4>()?;
    let at = Boottime::from_nanos(u64::from_ne_bytes(rest.try_into().ok()?));
    Some((u32::from_ne_bytes(*kind), i32::from_ne_bytes(*pid), at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_survives_the_wire() {
        let pid = Pid::from_raw(4711).unwrap();
        let deadline = Boottime::from_nanos(123_456_789_012);
        for record in [
            ToGuard::Arm {
                target: Target::Group(pid),
                deadline,
            },
            ToGuard::Arm {
                target: Target::Process(pid),
                deadline: Boottime::NEVER,
            },
            ToGuard::Deadline(deadline),
            ToGuard::Keep,
        ] {
            assert_eq!(ToGuard::decode(&record.encode()), Some(record));
        }
        for record in [FromGuard::Killed, FromGuard::Gone(deadline)] {
            assert_eq!(FromGuard::decode(&record.encode()), Some(record));
        }
    }

    #[test]
    fn a_short_or_foreign_record_is_nothing() {
        assert_eq!(ToGuard::decode(&[1; RECORD - 1]), None);
        assert_eq!(ToGuard::decode(&[9; RECORD]), None);
    }
}
