//! Closing again what a person had opened, since something speaks against it after all: [`take_back`].

use tenure_core::{Cause, Error};

use super::super::connection::Link;
use super::super::errors::Failure;
use super::initialize::{Examined, beginning, hidden};
use super::look::look;
use super::meet::{TRIES, interference};
use super::settle::write;
use super::{AT_ONCE, Part};

/// Closes again what was opened of what was found closed.
/// One that does not answer keeps none of the others open.
pub(super) async fn take_back(links: &[&Link], found: &[Examined]) -> Result<(), Error> {
    let mut taken_back = Ok(());
    for (link, found) in links.iter().zip(found) {
        let failed = |failure: Failure| failure.at(&link.options.address).error();
        let parts: Vec<Part> = found.closed.iter().map(|(part, _)| *part).collect();
        let closed = close(link, &parts).await.map_err(failed);
        taken_back = taken_back.and(closed);
    }
    taken_back
}

/// One slot that cannot be closed keeps none of the others open.
async fn close(link: &Link, parts: &[Part]) -> Result<(), Failure> {
    let mut closed = Ok(());
    for parts in parts.chunks(AT_ONCE) {
        closed = closed.and(close_together(link, parts).await);
    }
    closed
}

async fn close_together(link: &Link, parts: &[Part]) -> Result<(), Failure> {
    let whole = link.options.caution.max_ttl.duration();
    let (mut parts, mut closed) = (parts.to_vec(), Ok(()));
    for _ in 0..TRIES {
        let deadline = link.deadline();
        let live = link.live(deadline).await?;
        let looks = look(link, &live, &parts, deadline).await?;
        let looks = looks.ok_or_else(|| hidden(link, parts[0]))?;
        let (opened, looked) = opened_among(parts.into_iter().zip(looks), |look| {
            let record = look.record.as_ref();
            record.is_some_and(|record| record.cause == Cause::Vouched)
        });
        closed = closed.and(looked);
        let mut begins = Vec::new();
        for (part, look) in opened {
            let beginning = beginning(link, part, &look, whole, Cause::Missed)?;
            begins.push((part, look, beginning));
        }
        // Confirmed or not: it was open until now.
        let begins: Vec<_> = begins.iter().collect();
        let written = write(link, &live, &begins, false, deadline).await?;
        parts = Vec::new();
        for ((part, ..), written) in begins.into_iter().zip(written) {
            match written {
                Ok(true) => {}
                // Something has changed since we looked, and it may be open still.
                Ok(false) => parts.push(*part),
                Err(failure) => closed = closed.and(Err(failure)),
            }
        }
        if parts.is_empty() {
            return closed;
        }
    }
    closed.and(Err(interference()))
}

/// Those of these parts that are open because somebody said so, and what kept us from looking at others. A slot that is
/// elsewhere by now is none of them: where it is, nobody has opened it.
fn opened_among<L>(
    looks: impl Iterator<Item = (Part, Result<L, Failure>)>,
    is_opened: impl Fn(&L) -> bool,
) -> (Vec<(Part, L)>, Result<(), Failure>) {
    let (mut opened, mut looked) = (Vec::new(), Ok(()));
    for (part, look) in looks {
        match look {
            Ok(look) if is_opened(&look) => opened.push((part, look)),
            Ok(_) => {}
            Err(failure) if failure.is_elsewhere() => {}
            Err(failure) => looked = looked.and(Err(failure)),
        }
    }
    (opened, looked)
}

#[cfg(test)]
mod tests {
    use tenure_core::ErrorKind;

    use super::super::super::cluster::Redirect;
    use super::*;

    #[test]
    fn what_is_elsewhere_or_cannot_be_looked_at_leaves_nothing_else_open() {
        let failure = |said| {
            let failure = Failure::new(ErrorKind::Unavailable, "?");
            failure.redirecting(Redirect::read(said).expect("known"))
        };
        let looks = |said| {
            let looks = [Err(failure(said)), Ok(true), Ok(false), Ok(true)];
            (0..).map(Some).zip(looks)
        };
        for said in ["MOVED 7 other:1", "ASK 7 other:1"] {
            let (opened, looked) = opened_among(looks(said), |opened| *opened);
            assert_eq!(opened, [(Some(1), true), (Some(3), true)], "{said}");
            assert!(looked.is_ok(), "{said}");
        }
        let (opened, looked) = opened_among(looks("CLUSTERDOWN"), |opened| *opened);
        assert_eq!(opened.len(), 2);
        assert!(looked.is_err(), "it may be open still");
    }
}
