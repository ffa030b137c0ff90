//! What the one does who loads for all.

use std::time::Duration;

use tenure_core::Fence;

use super::{Cached, Served, Source};
use crate::guard::Guard;

/// How far one who wanted to load it came.
pub(super) enum Led<V, E> {
    Served(Served<V, E>),
    Failed(E),
    /// Somebody else is at it: the lock is busy, or was lost on the way.
    Lost,
}

impl<V, E> Led<V, E> {
    /// What was loaded; or else the old value, and why.
    pub(super) fn or_else(self, old: Served<V, E>) -> Served<V, E> {
        match self {
            Self::Served(served) => served,
            Self::Failed(error) => Served {
                failed: Some(error),
                ..old
            },
            Self::Lost => old,
        }
    }
}

/// Reads again, loads and writes, for as long as the lease lasts. The lock is given back in the
/// background: whoever asked has waited long enough.
pub(super) async fn lead<V, E, R, L, W>(
    guard: Guard,
    due: Duration,
    read: &impl Fn() -> R,
    load: &impl Fn() -> L,
    write: &impl Fn(V, Fence) -> W,
) -> Led<V, E>
where
    V: Clone,
    R: Future<Output = Result<Option<Cached<V>>, E>>,
    L: Future<Output = Result<V, E>>,
    W: Future<Output = Result<(), E>>,
{
    let work = async {
        if let Some(found) = read().await?.filter(|found| found.age < due) {
            return Ok(Some((found.value, Source::Cache, None)));
        }
        let value = load().await?;
        if !guard.is_valid() {
            return Ok(None);
        }
        let failed = write(value.clone(), guard.fence()).await.err();
        Ok(Some((value, Source::Loaded, failed)))
    };
    tokio::select! {
        biased;
        done = work => match done {
            Ok(Some((value, source, failed))) => Led::Served(Served { value, source, failed }),
            Ok(None) => Led::Lost,
            Err(error) => Led::Failed(error),
        },
        _ = guard.over() => Led::Lost,
    }
}
