//! [`Sequence`]: numbers that are never given twice, made of fences.

use std::ops::RangeInclusive;
use std::time::Duration;

use tenure_core::{Error, ErrorKind, Fence, LockName, Retry};

use crate::acquire::Wait;
use crate::client::Tenure;
use crate::clock::bounded;
use crate::guard::Guard;
use crate::lock::{Attempt, Lock};

/// Numbers that grow and are never given twice, among all processes; not even after a crash, or after
/// the store lost its data.
///
/// # What is not guaranteed
/// - **There are gaps**, always: the numbers are microseconds of the store's clock, or one more than the
///   last. Numbers without gaps can be promised only by the database that keeps what is numbered, in
///   the transaction that writes it: a number that was given out and then not used is a gap. The
///   example `invoices` shows how.
/// - A number says in which order it was *given*, not in which order what carries it was written.
/// - What makes [fences](Fence) repeat makes these repeat: a store that lost its data *and* whose clock
///   is behind what it was before. Within one store that keeps its data nothing does.
/// - In `memory:` they begin anew with the process.
///
/// # How it works
/// Every number is the fence of a short shared hold, so it costs one round trip, and nobody waits for
/// anybody. (A store that recovers from a loss lets nobody in for up to half a minute; then a number is
/// waited for, too.)
///
/// # How large they are
/// | from | number | size |
/// |---|---|---|
/// | [`next`](Self::next) | the fence: µs since 1970 | 16 digits, below 2^53 until 2255: JSON and JavaScript keep it exactly |
/// | [`next_block`](Self::next_block) | 2^62 + fence · 512 + 0 … 511 | 19 digits, 63 bits until 2255: fits a `BIGINT` |
///
/// So the two never give the same number. Only more than a million calls per second for one name would run
/// ahead of the store's clock, and only a loss of its data right then would make that matter.
///
/// ```
/// # async fn example() -> Result<(), tenure::Error> {
/// # let tenure = tenure::connect("memory:").await?;
/// let orders = tenure.sequence("orders");
/// let (first, second) = (orders.next().await?, orders.next().await?);
/// assert!(first < second);
/// for number in orders.next_block(100).await? { // one round trip
///     assert!(number > second);
/// }
/// # Ok(()) }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Sequence {
    tenure: Tenure,
    name: String,
    wait: Wait,
}

/// How long a hold lasts if this process dies before it has given it back. It is in nobody's way.
const TTL: Duration = Duration::from_secs(2);

/// Numbers in blocks begin here, above every single one.
const BLOCKS: u64 = 1 << 62;

/// Fences must be below this for a block to stay below 2^63.
const END_OF_FENCES: u64 = 1 << 53;

impl Sequence {
    /// The most numbers that [`next_block`](Self::next_block) gives at once.
    pub const LARGEST_BLOCK: u32 = 512;

    pub(crate) fn new(tenure: Tenure, name: String) -> Self {
        Self {
            tenure,
            name,
            wait: Wait::Forever,
        }
    }

    /// How long to wait at most for a store that cannot be asked or recovers; for ever if nothing is
    /// said.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Wait::For(wait);
        self
    }

    /// The next number. Higher than every number of this sequence that anybody had got from `next`
    /// before this call began.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a bad name; [`ErrorKind::Unavailable`] or [`ErrorKind::Busy`] if the
    /// wait ran out; what the store refuses for good.
    ///
    /// # Cancel safety
    /// Cancel safe; a number may have been given that nobody gets.
    pub async fn next(&self) -> Result<u64, Error> {
        self.fence().await.map(Fence::as_u64)
    }

    /// The next `count` numbers, at most [`LARGEST_BLOCK`](Self::LARGEST_BLOCK), in one round trip.
    ///
    /// **Unique, but not in order**: while one process hands out its block, another one that came later
    /// has already used a later block. Use [`next`](Self::next) where order matters.
    ///
    /// # Errors
    /// As [`next`](Self::next), and [`ErrorKind::InvalidInput`] for none or too many.
    ///
    /// # Cancel safety
    /// As [`next`](Self::next).
    pub async fn next_block(&self, count: u32) -> Result<RangeInclusive<u64>, Error> {
        if count == 0 || count > Self::LARGEST_BLOCK {
            let most = Self::LARGEST_BLOCK;
            let what = format!("a block of {count}: ask for 1 to {most} numbers, and then again");
            return Err(Error::new(ErrorKind::InvalidInput, what));
        }
        block(self.fence().await?, count)
    }

    async fn fence(&self) -> Result<Fence, Error> {
        LockName::new(&self.name)?;
        let clock = self.tenure.clock().clone();
        let began = clock.now();
        let first_try = self.lock().try_acquire();
        let first_try = match self.wait {
            Wait::For(limit) if !limit.is_zero() => bounded(&*clock, limit, first_try).await,
            _ => Some(first_try.await),
        };
        let guard = match first_try {
            Some(Ok(Attempt::Acquired(guard))) => guard,
            Some(Err(error)) if error.retry() == Retry::Never => return Err(error),
            // It recovers or is out of reach.
            _ => {
                self.in_line(self.wait.less(clock.now().since(began)))
                    .await?
            }
        };
        // Given back in the background.
        Ok(guard.fence())
    }

    async fn in_line(&self, wait: Wait) -> Result<Guard, Error> {
        self.lock().waiting(wait).acquire().await
    }

    /// Shared, so that nobody waits for anybody: a shared grant, too, has a fence of its own.
    fn lock(&self) -> Lock {
        let name = format!("~sequence:{}", self.name);
        let lock = self.tenure.rwlock(name).read();
        lock.reserved().ttl(TTL).no_renew()
    }
}

fn block(fence: Fence, count: u32) -> Result<RangeInclusive<u64>, Error> {
    let fence = fence.as_u64();
    if fence >= END_OF_FENCES {
        let what = "the clock of the store shows a year after 2255: blocks are not unique there";
        return Err(Error::new(ErrorKind::Refused, what).retrying(Retry::Never));
    }
    let first = BLOCKS + fence * u64::from(Sequence::LARGEST_BLOCK);
    Ok(first..=first + u64::from(count - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_neighbouring_fences_touch_and_fit_63_bits() {
        let largest = Sequence::LARGEST_BLOCK;
        let of = |fence| block(Fence::from_u64(fence), largest);
        let (one, next) = (of(7).unwrap(), of(8).unwrap());
        assert_eq!(one.end() + 1, *next.start());
        let last = of(END_OF_FENCES - 1).unwrap();
        assert_eq!(*last.end(), u64::MAX >> 1);
        assert!(of(END_OF_FENCES).is_err());
        assert!(*of(1).unwrap().start() > END_OF_FENCES, "no single number");
    }
}
