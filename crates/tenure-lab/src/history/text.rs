//! How single values look in a history. Fences are texts, so that no reader of JSON rounds them.

use std::fmt::Display;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

pub(crate) fn serialize<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: FromStr,
    T::Err: Display,
    D: Deserializer<'de>,
{
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

/// The same for what may be absent.
pub(crate) mod optional {
    use super::*;

    #[allow(clippy::ref_option, reason = "serde asks for it")]
    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.collect_str(value),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr,
        T::Err: Display,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom))
            .transpose()
    }
}

/// `exclusive`, `shared`, or `2/4` for two permits out of four.
pub(crate) mod mode {
    use super::*;
    use tenure::Mode;

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(crate) fn serialize<S: Serializer>(mode: &Mode, to: S) -> Result<S::Ok, S::Error> {
        match mode {
            Mode::Exclusive => to.serialize_str("exclusive"),
            Mode::Shared => to.serialize_str("shared"),
            Mode::Permits(permits) => {
                to.collect_str(&format_args!("{}/{}", permits.count(), permits.capacity()))
            }
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Mode, D::Error> {
        let text = String::deserialize(from)?;
        match &*text {
            "exclusive" => return Ok(Mode::Exclusive),
            "shared" => return Ok(Mode::Shared),
            _ => {}
        }
        let permits = text.split_once('/').and_then(|(count, capacity)| {
            Mode::permits(count.parse().ok()?, capacity.parse().ok()?).ok()
        });
        permits.ok_or_else(|| D::Error::custom(format!("{text:?} is no mode")))
    }
}

/// `arrival` or `race`.
pub(crate) mod order {
    use super::*;
    use tenure::core::Order;

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(crate) fn serialize<S: Serializer>(order: &Order, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match order {
            Order::Arrival => "arrival",
            Order::Race => "race",
        })
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Order, D::Error> {
        match &*String::deserialize(from)? {
            "arrival" => Ok(Order::Arrival),
            "race" => Ok(Order::Race),
            other => Err(D::Error::custom(format!("{other:?} is no order"))),
        }
    }
}

/// `["S1", "S2"]`.
pub(crate) mod promises {
    use super::*;
    use serde::ser::SerializeSeq;
    use tenure::core::PromiseId;

    pub(crate) fn serialize<S: Serializer>(these: &[PromiseId], to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(these.len()))?;
        for promise in these {
            list.serialize_element(&promise.to_string())?;
        }
        list.end()
    }

    pub(crate) fn deserialize<'de, D>(from: D) -> Result<Vec<PromiseId>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let texts = Vec::<String>::deserialize(from)?;
        let promises = texts.into_iter().map(|text| {
            let mut all = PromiseId::ALL.into_iter();
            let found = all.find(|promise| promise.to_string() == text);
            found.ok_or_else(|| D::Error::custom(format!("{text:?} is no promise")))
        });
        promises.collect()
    }
}
