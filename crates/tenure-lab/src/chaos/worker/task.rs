//! [`Task`]: takes its turns, one after the other, and writes down each.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenure::core::Moment;
use tenure::{Attempt, Clock, Error, ErrorKind, Guard, Lease, Loss, Mode, Standing, Tenure};
use tokio::sync::watch;

use super::Order;
use super::turn::{Ending, Target, Turn};
use crate::chaos::resource::Writer;
use crate::history::{Granted, LostBy, Recorder, Wanted, What};

/// What a task works with.
pub(super) struct Work {
    pub(super) tenure: Tenure,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) recorder: Recorder,
    pub(super) order: watch::Receiver<Order>,
    pub(super) process: u32,
    pub(super) resource: PathBuf,
    pub(super) permits: bool,
    pub(super) patience: Duration,
}

/// One task.
pub(super) struct Task {
    work: Work,
    number: u32,
    random: fastrand::Rng,
}

impl Task {
    pub(super) fn new(work: Work, number: u32, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self {
            work,
            number,
            random,
        }
    }

    /// Takes turns until it is time, and then each lock once.
    pub(super) async fn run(mut self) -> io::Result<()> {
        let mut writer = Writer::open(&self.work.resource, self.work.process).await?;
        while *self.work.order.borrow() == Order::Work {
            let turn = Turn::draw(&mut self.random, self.work.permits);
            self.take(&turn, &mut writer).await?;
            // A store that refuses at once would otherwise fill the history.
            self.work.clock.sleep(Duration::from_millis(5)).await;
        }
        for target in Target::all(self.work.permits) {
            let turn = Turn::last(target, self.work.patience);
            self.take(&turn, &mut writer).await?;
        }
        Ok(())
    }

    async fn take(&self, turn: &Turn, writer: &mut Writer) -> io::Result<()> {
        let call = self.invoke(Wanted::Acquire {
            name: turn.target.name(),
            mode: turn.mode,
            ttl_ms: milliseconds(turn.ttl),
            waits: !turn.wait.is_zero(),
            wait_ms: Some(milliseconds(turn.wait)),
        });
        let acquiring = self.acquire(turn);
        let acquired = match turn.cancels {
            Some(after) => tokio::select! {
                acquired = acquiring => acquired,
                () = self.work.clock.sleep(after) => {
                    let why = "cancelled".to_owned();
                    self.note(What::Unknown { call, why });
                    return Ok(());
                }
            },
            None => acquiring.await,
        };
        match acquired {
            Ok(guard) => self.hold(turn, call, guard, writer).await,
            Err(error) => {
                self.failed(call, &error);
                Ok(())
            }
        }
    }

    async fn acquire(&self, turn: &Turn) -> Result<Guard, Error> {
        let mut lock = turn.target.lock(&self.work.tenure, turn.mode).ttl(turn.ttl);
        if !turn.renews {
            lock = lock.no_renew();
        }
        if matches!(turn.ends, Ending::ReleasesTwice(_)) {
            // Its lease is asked for, and belongs to this hold alone.
            lock = lock.local_handover(false);
        }
        if turn.wait.is_zero() {
            lock.try_acquire().await.and_then(Attempt::into_guard)
        } else {
            lock.wait(turn.wait).acquire().await
        }
    }

    async fn hold(
        &self,
        turn: &Turn,
        hold: u64,
        guard: Guard,
        writer: &mut Writer,
    ) -> io::Result<()> {
        let lease = matches!(turn.ends, Ending::ReleasesTwice(_)).then(|| guard.lease());
        let grant = Granted {
            fence: guard.fence(),
            owner: lease.map(|lease| lease.owner),
            valid_until: guard.valid_until().map_or(0, Moment::as_nanos),
        };
        let grant = Some(grant);
        self.note(What::Ok { call: hold, grant });
        let name = turn.target.name();
        let writes = turn.mode == Mode::Exclusive;
        if writes && guard.ensure().is_ok() {
            writer.write(&name, guard.fence()).await?;
        }
        self.watch(&guard, hold, turn.holds).await;
        if writes {
            // Without looking whether it is still valid, as programs do: this is what fences are for.
            writer.write(&name, guard.fence()).await?;
        }
        if writes && turn.downgrades {
            let call = self.invoke(Wanted::Downgrade { hold });
            self.answered(call, guard.downgrade().await);
            self.watch(&guard, hold, turn.holds / 2).await;
        }
        self.end(turn, hold, guard, lease).await;
        Ok(())
    }

    /// Writes down how the hold stands, for so long.
    async fn watch(&self, guard: &Guard, hold: u64, length: Duration) {
        let mut standing = guard.standing();
        let end = self.work.clock.sleep(length);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => break,
                changed = standing.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let now = standing.borrow_and_update().clone();
                    self.stands(hold, &now);
                }
            }
        }
        if let Err(error) = guard.ensure() {
            let _ = error;
            self.stands(hold, &guard.standing().borrow().clone());
        }
    }

    fn stands(&self, hold: u64, standing: &Standing) {
        self.note(match standing {
            Standing::Held { valid_until } => What::Renewed {
                hold,
                valid_until: valid_until.as_nanos(),
            },
            Standing::Jeopardy { valid_until } => What::Jeopardy {
                hold,
                valid_until: valid_until.as_nanos(),
            },
            Standing::Lost(loss) => What::Lost {
                hold,
                why: match loss {
                    Loss::Expired => LostBy::Expired,
                    Loss::Forced(_) => LostBy::Forced,
                    Loss::Forgotten => LostBy::Forgotten,
                    Loss::HeldTooLong => LostBy::HeldTooLong,
                },
            },
            Standing::Released => return,
        });
    }

    async fn end(&self, turn: &Turn, hold: u64, guard: Guard, lease: Option<Lease>) {
        let call = self.invoke(Wanted::Release { hold });
        if turn.ends == Ending::Drops {
            drop(guard);
            let why = "dropped".to_owned();
            self.note(What::Unknown { call, why });
            return;
        }
        self.answered(call, guard.release().await);
        if let (Ending::ReleasesTwice(after), Some(lease)) = (turn.ends, lease) {
            self.work.clock.sleep(Duration::from_millis(after)).await;
            let name = turn.target.name();
            let call = self.invoke(Wanted::LateRelease {
                name: name.clone(),
                owner: lease.owner,
                fence: lease.fence,
            });
            let released = self.work.tenure.release_lease(&name, lease).await;
            self.answered(call, released);
        }
    }

    fn invoke(&self, wanted: Wanted) -> u64 {
        let call = self.work.recorder.next_call();
        self.note(What::Invoke { call, wanted });
        call
    }

    fn answered(&self, call: u64, result: Result<(), Error>) {
        match result {
            Ok(()) => self.note(What::Ok { call, grant: None }),
            Err(error) => self.failed(call, &error),
        }
    }

    fn failed(&self, call: u64, error: &Error) {
        let why = error.to_string();
        self.note(match error.kind() {
            // These say that nothing happened.
            ErrorKind::Busy | ErrorKind::Lost | ErrorKind::Conflict | ErrorKind::InvalidInput => {
                What::Fail { call, why }
            }
            _ => What::Unknown { call, why },
        });
    }

    fn note(&self, what: What) {
        self.work.recorder.note(self.number, what);
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
