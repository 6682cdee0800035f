//! Session ids.

/// A session's key as its id: 32 hexadecimal digits.
pub(crate) fn id_of(key: u128) -> String {
    format!("{key:032x}")
}

/// The key of a session id. Only ids in the format of [`id_of`] have one.
pub(crate) fn key_of(id: &[u8]) -> Option<u128> {
    let ([high, low], []) = id.as_chunks::<16>() else { return None };
    Some(u128::from(half(high)?) << 64 | u128::from(half(low)?))
}

/// The value of 16 digits, eight at a time.
fn half(digits: &[u8; 16]) -> Option<u64> {
    let ([high, low], []) = digits.as_chunks::<8>() else { return None };
    Some(u64::from(quarter(u64::from_be_bytes(*high))?) << 32 | u64::from(quarter(u64::from_be_bytes(*low))?))
}

/// The value of eight digits, the first in the highest byte.
fn quarter(digits: u64) -> Option<u32> {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    // The highest bit of each byte that is at least `n`; all bytes are below 128.
    let at_least = |n: u8| ((digits | HIGH) - ONES * u64::from(n)) & HIGH;
    let decimal = at_least(b'0') & !at_least(b'9' + 1);
    let letter = at_least(b'a') & !at_least(b'f' + 1);
    if digits & HIGH != 0 || decimal | letter != HIGH {
        return None;
    }
    // Digits have their value in the low half of the byte, letters nine less than theirs.
    let values = (digits & (ONES * 0x0f)) + (letter >> 7) * 9;
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) as u32)
}

/// The key of an id in the format of [`id_of`], and what follows it after a dot.
pub(crate) fn parts_of(id: &[u8]) -> Option<(u128, Option<&str>)> {
    match id.split_at_checked(32)? {
        (key, []) => Some((key_of(key)?, None)),
        (key, [b'.', sealed @ ..]) => Some((key_of(key)?, Some(std::str::from_utf8(sealed).ok()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_as_they_were_given_out_name_a_key() {
        for key in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef] {
            assert_eq!(key_of(id_of(key).as_bytes()), Some(key));
        }
        for bad in [
            "",
            "0",
            "0123456789ABCDEF0123456789abcdef",
            "0123456789abcdef0123456789abcdefa",
            "+123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcd/f",
            "0123456789abcdef:123456789abcdef",
            "0123456789abcdef0123456789abcd`f",
            "g123456789abcdef0123456789abcdef",
            "\u{7f}123456789abcdef0123456789abcdef",
            "\u{e9}23456789abcdef0123456789abcdef",
        ] {
            assert_eq!(key_of(bad.as_bytes()), None, "{bad}");
        }
    }
}
