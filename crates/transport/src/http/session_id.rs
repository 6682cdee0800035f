//! Session ids.

/// A session's key as its id: 32 hexadecimal digits.
pub(crate) fn id_of(key: u128) -> String {
    format!("{key:032x}")
}

/// The key of a session id. Only ids in the format of [`id_of`] have one.
pub(crate) fn key_of(id: &[u8]) -> Option<u128> {
    if id.len() != 32 {
        return None;
    }
    id.iter().try_fold(0u128, |key, b| {
        let digit = match b {
            b'0'..=b'9' => b - b'0',
            b'a'..=b'f' => b - b'a' + 10,
            _ => return None,
        };
        Some(key << 4 | u128::from(digit))
    })
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
        ] {
            assert_eq!(key_of(bad.as_bytes()), None, "{bad}");
        }
    }
}
