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

fn half(digits: &[u8; 16]) -> Option<u64> {
    let (mut key, mut all) = (0, 0);
    for digit in digits {
        let value = DIGITS[usize::from(*digit)];
        key = key << 4 | u64::from(value & 15);
        all |= value;
    }
    (all != NO_DIGIT).then_some(key)
}

const NO_DIGIT: u8 = 0xff;

/// The value of each byte as a digit.
static DIGITS: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        values[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

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
        ] {
            assert_eq!(key_of(bad.as_bytes()), None, "{bad}");
        }
    }
}
