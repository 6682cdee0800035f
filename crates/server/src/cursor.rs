//! Opaque cursors of paginated lists.
//!
//! A cursor identifies its list and the item to continue after. It is neither secret nor signed: a forged one
//! reveals nothing that listing does not. The checksum is there so that a cursor that was cut, mangled or made by
//! another program is refused instead of silently starting somewhere.

#![cfg_attr(not(fuzzing), allow(unreachable_pub, reason = "the fuzz targets use these items"))]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The cursor to continue after the item `seq` of the list `kind`. Always 20 characters of base64url.
pub fn encode(kind: char, seq: u64) -> String {
    let mut bytes = [0_u8; LEN];
    bytes[..3].copy_from_slice(&u32::from(kind).to_be_bytes()[1..]);
    bytes[3..11].copy_from_slice(&seq.to_be_bytes());
    let sum = checksum(&bytes[..11]);
    bytes[11..].copy_from_slice(&sum);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The item to continue after in the list `kind`. `None` unless [`encode`] created this cursor for this list.
pub fn decode(kind: char, cursor: &str) -> Option<u64> {
    let mut bytes = [0_u8; LEN];
    // A cursor of any other length is refused before it is decoded.
    if cursor.len() != LEN / 3 * 4 || URL_SAFE_NO_PAD.decode_slice(cursor, &mut bytes) != Ok(LEN) {
        return None;
    }
    let (body, sum) = bytes.split_at(11);
    if *sum != checksum(body) || body[..3] != u32::from(kind).to_be_bytes()[1..] {
        return None;
    }
    body[3..].try_into().ok().map(u64::from_be_bytes)
}

/// FNV-1a over 32 bits, seeded with a name so that it differs from other implementations.
fn checksum(body: &[u8]) -> [u8; 4] {
    let hash = b"linchpin cursor 1"
        .iter()
        .chain(body)
        .fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193));
    hash.to_be_bytes()
}

/// Bytes of a cursor: three of the kind, eight of the position, four of the checksum. A multiple of three, so that
/// every character of the base64 text carries six bits and no two texts mean the same.
const LEN: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_cursor_itself_is_accepted() {
        let good = encode('t', 41);
        assert_eq!((good.len(), decode('t', &good)), (20, Some(41)));
        let damaged = [
            String::new(),
            "nextPage".into(),
            good[..19].into(),
            format!("{good}="),
            format!("{good}A"),
            format!(" {}", &good[1..]),
            good.to_lowercase(),
            encode('r', 41),
            "A".repeat(20),
            "é".repeat(10),
            "x".repeat(1 << 20),
        ];
        for cursor in damaged {
            assert_eq!(decode('t', &cursor), None, "{cursor:.40}");
        }
    }

    proptest! {
        #[test]
        fn a_cursor_is_read_back_for_its_own_list_only(kind in any::<char>(), other in any::<char>(), seq in any::<u64>()) {
            let cursor = encode(kind, seq);
            prop_assert_eq!(decode(kind, &cursor), Some(seq));
            prop_assert_eq!(decode(other, &cursor).is_some(), kind == other);
        }

        #[test]
        fn one_changed_character_is_noticed(seq in any::<u64>(), at in 0_usize..20, to in "[A-Za-z0-9_-]") {
            let cursor = encode('p', seq);
            let mut changed = cursor.clone();
            changed.replace_range(at..=at, &to);
            prop_assert_eq!(decode('p', &changed).is_some(), changed == cursor);
        }
    }
}
