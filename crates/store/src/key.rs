//! Keys: a space and a name.

use crate::error::Error;
use crate::kv::Expect;
use bytes::Bytes;
use std::time::Duration;

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 512;

/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 8 << 20;

/// The space of a key `space/name`, or why it is none.
///
/// A space is a word of lowercase letters, digits, `-`, `_` and `.`; a name is any text, `/` included.
pub(crate) fn space(key: &str) -> Result<&str, Error> {
    let (space, name) = key.split_once('/').unwrap_or_default();
    if space.is_empty() || name.is_empty() {
        return Err(Error::invalid(format!("`{}` is not a key: a key is `space/name`", shown(key))));
    }
    check(key, space)?;
    Ok(space)
}

/// The space of a prefix: a key whose name may be empty.
pub(crate) fn space_of_prefix(prefix: &str) -> Result<&str, Error> {
    let Some((space, _)) = prefix.split_once('/').filter(|(space, _)| !space.is_empty()) else {
        return Err(Error::invalid(format!("`{}` is not a prefix: a prefix is `space/`, or more", shown(prefix))));
    };
    check(prefix, space)?;
    Ok(space)
}

fn check(key: &str, space: &str) -> Result<(), Error> {
    if key.len() > KEY_BYTES_MAX {
        let text = format!("a key of {} bytes: {KEY_BYTES_MAX} are allowed; use a digest as name", key.len());
        return Err(Error::invalid(text));
    }
    let is_plain = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    if !space.bytes().all(is_plain) {
        let text = format!("`{}` is not a space: use lowercase letters, digits, `-`, `_` and `.`", shown(space));
        return Err(Error::invalid(text));
    }
    Ok(())
}

/// Checks the length of a value.
pub(crate) fn value(bytes: &[u8]) -> Result<(), Error> {
    match bytes.len() {
        len if len > VALUE_BYTES_MAX => {
            Err(Error::invalid(format!("a value of {len} bytes: {VALUE_BYTES_MAX} are allowed")))
        }
        _ => Ok(()),
    }
}

/// Checks a time to live.
pub(crate) fn ttl(ttl: Duration) -> Result<(), Error> {
    match ttl < Duration::from_millis(1) {
        true => Err(Error::invalid(format!("a time to live of {ttl:?}: at least 1 ms is needed"))),
        false => Ok(()),
    }
}

/// Checks the name of a lease and its owner.
pub(crate) fn owned(name: &str, owner: &str) -> Result<(), Error> {
    space(name)?;
    match owner.len() {
        1..=KEY_BYTES_MAX => Ok(()),
        len => Err(Error::invalid(format!("an owner of {len} bytes: 1 to {KEY_BYTES_MAX} are allowed"))),
    }
}

/// Checks what a deletion expects.
pub(crate) fn deletable(expect: Expect) -> Result<(), Error> {
    match expect {
        Expect::Absent => Err(Error::invalid("a deletion cannot expect that nothing is there")),
        Expect::Any | Expect::Rev(_) => Ok(()),
    }
}

/// The greatest number of an entry: what every store can count to.
const SEQ_MAX: u64 = 1 << 53;

/// Checks the entries of an append and their numbers.
pub(crate) fn sequence(first: u64, entries: &[Bytes]) -> Result<(), Error> {
    if first == 0 || first.saturating_add(entries.len() as u64) > SEQ_MAX {
        return Err(Error::invalid(format!(
            "{first} is not a number for {} entries: they count from 1",
            entries.len()
        )));
    }
    entries.iter().try_for_each(|entry| value(entry))
}

/// A key as errors show it: names may be secrets, so that only the space and the beginning appear.
fn shown(key: &str) -> String {
    match key.char_indices().nth(24) {
        Some((at, _)) => format!("{}…", &key[..at]),
        None => key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_space_and_a_name() {
        assert_eq!(space("code/a/b").unwrap(), "code");
        assert_eq!(space_of_prefix("code/").unwrap(), "code");
        let long = format!("a/{}", "x".repeat(KEY_BYTES_MAX));
        for bad in ["", "code", "code/", "/name", "Code/a", "a b/c", "a{b}/c", long.as_str()] {
            assert!(space(bad).is_err(), "{bad}");
        }
        for bad in ["", "code", "/", "{/"] {
            assert!(space_of_prefix(bad).is_err(), "{bad}");
        }
    }
}
