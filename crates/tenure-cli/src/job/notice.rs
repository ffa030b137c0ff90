//! What the supervision tells the user while a job runs.

use std::fmt;
use std::time::Duration;

use rustix::process::Pid;

use super::lease::LossCause;

/// Something that the user should know. Displayed as one line without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The lease could not be renewed so far.
    AtRisk {
        /// Until it ends.
        remaining: Duration,
        /// What is being done about the job.
        reaction: Reaction,
    },
    /// The lease is lost.
    Lost(LossCause),
    /// The job had its time.
    HoldAtMost,
    /// Two INT or TERM in a row; the next one kills.
    AgainToKill,
    /// We stop because the job was stopped; nobody renews meanwhile.
    Stopped {
        /// Until the lease ends.
        expires_in: Duration,
    },
    /// Members of the job's group were left when it ended.
    Orphans {
        /// Their process ids.
        pids: Vec<Pid>,
        /// What is being done about them.
        reaction: Reaction,
    },
    /// The guard process died and another one took over.
    GuardReplaced,
    /// The guard process died and could not be replaced; the job is being ended.
    GuardLost(String),
}

/// What is being done about a job in trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// It is being ended: TERM, and KILL after the grace time.
    Ending,
    /// It gets one signal.
    Signalling,
    /// Nothing.
    Watching,
}

/// Receives notices. Called from the task that supervises: must not block.
pub trait Reporter {
    /// Tells the user.
    fn tell(&self, notice: &Notice);
}

impl<F: Fn(&Notice)> Reporter for F {
    fn tell(&self, notice: &Notice) {
        self(notice);
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtRisk {
                remaining,
                reaction,
            } => {
                let remaining = Rough(*remaining);
                write!(
                    out,
                    "lease at risk, not renewed and over in {remaining}: {reaction}"
                )
            }
            Self::Lost(LossCause::Expired) => {
                write!(out, "lease lost: it could not be renewed in time")
            }
            Self::Lost(LossCause::ToldByStore(how)) => write!(out, "lease lost: {how}"),
            Self::HoldAtMost => write!(out, "held as long as it may be: {}", Reaction::Ending),
            Self::AgainToKill => write!(out, "once more to kill the job"),
            Self::Stopped { expires_in } => {
                write!(out, "will expire in {} while stopped", Rough(*expires_in))
            }
            Self::Orphans { pids, reaction } => {
                let pids: Vec<String> = pids
                    .iter()
                    .map(|pid| pid.as_raw_nonzero().to_string())
                    .collect();
                write!(
                    out,
                    "the job left processes behind ({}): {}",
                    pids.join(", "),
                    match reaction {
                        Reaction::Ending => "ending them",
                        Reaction::Signalling | Reaction::Watching => "waiting for them",
                    }
                )
            }
            Self::GuardReplaced => write!(out, "the guard process died; started another"),
            Self::GuardLost(why) => write!(
                out,
                "the guard process died and could not be replaced ({why}): {}",
                Reaction::Ending
            ),
        }
    }
}

impl fmt::Display for Reaction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Ending => "ending the job",
            Self::Signalling => "telling the job",
            Self::Watching => "the job goes on",
        })
    }
}

/// A duration as people say it: whole seconds, or milliseconds below one.
struct Rough(Duration);

impl fmt::Display for Rough {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            0 => write!(out, "{}ms", self.0.as_millis()),
            seconds => write!(out, "{seconds}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopping_says_when_the_lock_will_expire() {
        let notice = Notice::Stopped {
            expires_in: Duration::from_millis(28_400),
        };
        assert_eq!(notice.to_string(), "will expire in 28s while stopped");
    }
}
