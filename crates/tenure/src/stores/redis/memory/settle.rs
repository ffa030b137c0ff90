//! Writing down that lives begin: [`settle`].

use redis::{Pipeline, Value};
use tenure_core::{Moment, Recovery};

use super::super::connection::{Link, Live};
use super::super::errors::Failure;
use super::Part;
use super::look::{Look, text_of};
use super::meet::interference;
use super::record::Beginning;
use super::witnesses::{confirmed, needs_witnesses};

/// Begins lives, unless something has changed since we looked; answers how many have begun. A slot that is
/// elsewhere by now, or on its way, is left alone.
///
/// # Errors
/// If one of them could not be asked, or is not [`confirmed`].
pub(super) async fn settle(
    link: &Link,
    live: &Live,
    begins: &[(Part, Look, Beginning)],
    deadline: Moment,
) -> Result<usize, Failure> {
    let settled = settle_each(link, live, begins, deadline).await;
    let mut begun = 0;
    for settled in settled {
        begun += usize::from(settled?);
    }
    Ok(begun)
}

/// The same, with an answer for each: whether it has begun.
pub(super) async fn settle_each(
    link: &Link,
    live: &Live,
    begins: &[(Part, Look, Beginning)],
    deadline: Moment,
) -> Vec<Result<bool, Failure>> {
    let confirmed = confirmed(link, begins, deadline).await;
    let sure = begins.iter().zip(&confirmed).filter(|(_, it)| it.is_ok());
    let sure: Vec<_> = sure.map(|(begins, _)| begins).collect();
    let witnessed = needs_witnesses(link);
    let mut written = match write(link, live, &sure, witnessed, deadline).await {
        Ok(written) => written.into_iter(),
        Err(failure) => vec![Err(failure); sure.len()].into_iter(),
    };
    let outcome = |confirmed: Result<(), Failure>| {
        confirmed.and_then(|()| written.next().unwrap_or_else(|| Err(interference())))
    };
    confirmed.into_iter().map(outcome).collect()
}

/// Writes records, whether or not anybody has confirmed the server, saying so; answers for each whether it was
/// written. If not, something has changed, or the slot is elsewhere by now: another look tells.
pub(super) async fn write(
    link: &Link,
    live: &Live,
    begins: &[&(Part, Look, Beginning)],
    witnessed: bool,
    deadline: Moment,
) -> Result<Vec<Result<bool, Failure>>, Failure> {
    const SCRIPT: &str = include_str!("../scripts/settle.lua");
    if begins.is_empty() {
        return Ok(Vec::new());
    }
    let mut commands = Pipeline::new();
    // Not by hash if there is but one: that spares a command.
    let hash = (begins.len() > 1).then(|| redis::Script::new(SCRIPT).get_hash().to_owned());
    if hash.is_some() {
        commands.cmd("SCRIPT").arg("LOAD").arg(SCRIPT);
    }
    for (part, look, beginning) in begins {
        // Whoever is strict waits for as long in either case.
        let strict = link.options.caution.recovery == Recovery::Strict;
        let wipes = look.wipes.filter(|_| !strict);
        let wipes = wipes.map(|wipes| wipes.to_string());
        let place = look.place.as_ref().ok().and_then(Option::as_deref);
        let command = match &hash {
            Some(hash) => commands.cmd("EVALSHA").arg(hash),
            None => commands.cmd("EVAL").arg(SCRIPT),
        };
        command
            .arg(1)
            .arg(link.options.keys.record(*part))
            .arg(&look.text)
            .arg(look.run_id())
            .arg(&*look.seen.line)
            .arg(wipes.as_deref().unwrap_or("-"))
            .arg(beginning.micros())
            .arg(beginning.life.to_string())
            .arg(beginning.words(&look.seen, witnessed, place));
    }
    let values = link.send_all(live, &commands, deadline).await?;
    let values = values.into_iter().skip(usize::from(hash.is_some()));
    Ok(values.map(is_begun).collect())
}

/// A node that does not serve the slot for now has it still, with the record that is there.
fn is_begun(value: Value) -> Result<bool, Failure> {
    match text_of(value) {
        Ok(said) => Ok(said == "begun"),
        Err(failure) if failure.is_elsewhere() => Ok(false),
        Err(failure) => Err(failure.at_node()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_cannot_do_for_now_is_an_error_and_what_has_changed_is_looked_at_again() {
        let said = |text: &str| {
            let kind = if text.contains(' ') { '-' } else { '+' };
            let line = format!("{kind}{text}\r\n");
            redis::parse_redis_value(line.as_bytes()).expect("well formed")
        };
        assert_eq!(is_begun(said("begun")), Ok(true));
        for text in ["again", "MOVED 7 other:1", "ASK 7 other:1"] {
            assert_eq!(is_begun(said(text)), Ok(false), "{text}");
        }
        for text in [
            "CLUSTERDOWN Hash slot not served",
            "LOADING Redis is loading the dataset in memory",
        ] {
            assert!(is_begun(said(text)).is_err(), "{text}");
        }
    }
}
