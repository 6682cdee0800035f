//! The few helpers that make reading lenient, and equality for types that hold raw JSON.

use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Reads `null` as the default: some peers write every optional field, absent ones as `null`.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads how long a result may be kept: a negative number means not at all, and a fraction is cut off.
pub(crate) fn lenient_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let ms = Option::<serde_json::Number>::deserialize(deserializer)?;
    // A float becomes an integer by saturation, so that nothing below zero is left.
    Ok(ms.map(|ms| ms.as_u64().unwrap_or_else(|| ms.as_f64().unwrap_or_default() as u64)))
}

/// Keeps a `null` that is present apart from a member that is absent (use together with `default`).
pub(crate) fn null_is_some<'de, D>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error>
where
    D: Deserializer<'de>,
{
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a value of a known kind out of raw JSON, for unions whose kind has just been found out.
pub(crate) fn from_raw<T: DeserializeOwned>(raw: &RawValue) -> serde_json::Result<T> {
    serde_json::from_str(raw.get())
}

/// Reads a union by a function of its raw JSON, whose code is there once, not once for each deserializer.
pub(crate) fn by_raw<'de, D, T>(deserializer: D, read: fn(&RawValue) -> serde_json::Result<T>) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
{
    read(&Box::<RawValue>::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Whether two values would be written as the same JSON.
pub(crate) fn same_json<T: Serialize>(left: &T, right: &T) -> bool {
    match (serde_json::to_string(left), serde_json::to_string(right)) {
        (Ok(left), Ok(right)) => left == right,
        _ => false,
    }
}

/// Implements `PartialEq` by the JSON written, for types that hold raw values (which have no equality of their own).
macro_rules! eq_by_json {
    ($($name:ty),+ $(,)?) => {
        $(impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                $crate::read::same_json(self, other)
            }
        })+
    };
}

pub(crate) use eq_by_json;
