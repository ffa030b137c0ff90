//! The values of single options, each read with an error that says what is meant instead.

use std::time::Duration;

use redis::ProtocolVersion;
use tenure_core::{Error, Recovery, Ttl};

use super::{RESERVED, wrong};
use crate::stores::redis::replicas::Replicas;
use crate::stores::url_options::duration;

const DEFAULT_REPLICA_TIMEOUT: Duration = Duration::from_millis(200);

pub(super) fn database(text: &str) -> Result<i64, Error> {
    if text.is_empty() {
        return Ok(0);
    }
    let number = text.parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| wrong(format!("`{text}` is not a database number (0, 1, …)")))
}

pub(super) fn prefix(text: &str) -> Result<String, Error> {
    if text.chars().any(char::is_control) {
        return Err(wrong("the prefix contains a control character"));
    }
    if text.starts_with(RESERVED) {
        return Err(wrong(format!(
            "the prefix must not begin with `{RESERVED}`: tenure keeps its own keys there"
        )));
    }
    Ok(text.to_owned())
}

pub(super) fn protocol(text: &str) -> Result<ProtocolVersion, Error> {
    match text {
        "resp3" | "3" => Ok(ProtocolVersion::RESP3),
        "resp2" | "2" => Ok(ProtocolVersion::RESP2),
        _ => Err(wrong(format!(
            "`{text}` is not a protocol: use resp3 or resp2"
        ))),
    }
}

pub(super) fn call_timeout(text: &str) -> Result<Duration, Error> {
    let allowed = Duration::from_millis(10)..=Duration::from_secs(600);
    let given = duration(text).filter(|given| allowed.contains(given));
    given.ok_or_else(|| {
        wrong(format!(
            "`{text}` is not a call_timeout: write a whole number with its unit, from 10ms to 10m, \
             for example 2s"
        ))
    })
}

pub(super) fn max_ttl(text: &str) -> Result<Ttl, Error> {
    let length = duration(text).filter(|length| *length >= Duration::from_secs(1));
    let ttl = length.and_then(|length| Ttl::new(length).ok());
    ttl.ok_or_else(|| {
        wrong(format!(
            "`{text}` is not a max_ttl: write a whole number with its unit, 1s or more, for example \
             30s"
        ))
    })
}

pub(super) fn recovery(text: &str) -> Result<Recovery, Error> {
    match text {
        "careful" => Ok(Recovery::Careful),
        "strict" => Ok(Recovery::Strict),
        "open" => Ok(Recovery::Open),
        "off" => Ok(Recovery::Off),
        _ => Err(wrong(format!(
            "`{text}` is not a way of recovery: use careful, strict, open or off"
        ))),
    }
}

pub(super) fn no_replicas(text: &str) -> Result<bool, Error> {
    match text {
        "none" => Ok(true),
        _ => Err(wrong(format!(
            "`{text}` says nothing about replicas: write replicas=none if the server has none and never \
             gets one that could take its place, or leave it out (min_replicas=1 is for grants that \
             wait for them)"
        ))),
    }
}

pub(super) fn min_replicas(text: &str, known: Option<Replicas>) -> Result<Replicas, Error> {
    let least = text.parse().ok().filter(|least| *least <= 100);
    let least = least.ok_or_else(|| {
        wrong(format!(
            "`{text}` is not a number of replicas: write min_replicas=1, for example"
        ))
    })?;
    let patience = known.map_or(DEFAULT_REPLICA_TIMEOUT, |known| known.patience);
    Ok(Replicas { least, patience })
}

pub(super) fn replica_timeout(text: &str, known: Option<Replicas>) -> Result<Replicas, Error> {
    let patience = duration(text).filter(|given| *given >= Duration::from_millis(1));
    let patience = patience.ok_or_else(|| {
        wrong(format!(
            "`{text}` is not a replica_timeout: write a whole number with its unit, for example 200ms"
        ))
    })?;
    let least = known.map_or(0, |known| known.least);
    Ok(Replicas { least, patience })
}
