//! The names in an index; everything else is skipped.

use std::io::{BufRead, Read as _};

/// Whether every name in an index is below the work tree. An index that git would parse differently is an error.
pub(crate) fn index_stays_inside(from: &mut impl BufRead, id: usize) -> std::io::Result<bool> {
    let odd = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let mut number = [0; 4];
    let mut header = [0_u32; 3];
    for value in &mut header {
        from.read_exact(&mut number)?;
        *value = u32::from_be_bytes(number);
    }
    let [signature, version, count] = header;
    if signature != u32::from_be_bytes(*b"DIRC") || !(2..=4).contains(&version) {
        return Err(odd());
    }
    let mut name: Vec<u8> = Vec::new();
    let mut fixed = vec![0; INDEX_STAT + id + 2];
    for _ in 0..count {
        from.read_exact(&mut fixed)?;
        let flags = u16::from_be_bytes([fixed[fixed.len() - 2], fixed[fixed.len() - 1]]);
        let extended = usize::from(flags & INDEX_EXTENDED != 0) * 2;
        from.read_exact(&mut number[..extended])?;
        // Since version 4 a name is stored as the difference to the previous one.
        let shared = if version == 4 { name.len().checked_sub(distance(from)?).ok_or_else(odd)? } else { 0 };
        name.truncate(shared);
        let length = usize::from(flags & INDEX_NAME);
        let most = if length == usize::from(INDEX_NAME) { INDEX_NAME_MAX } else { length + 1 };
        let rest = most.checked_sub(shared).ok_or_else(odd)?;
        let read = from.by_ref().take(rest as u64).read_until(0, &mut name)?;
        // The name is not as long as stated: git would continue at another offset.
        if name.pop() != Some(0) || most == length + 1 && name.len() != length {
            return Err(odd());
        }
        if version < 4 {
            let filler = 8 - (fixed.len() + extended + read - 1) % 8 - 1;
            from.read_exact(&mut [0; 8][..filler])?;
        }
        if !is_inner(&name) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A big-endian number.
fn distance(from: &mut impl BufRead) -> std::io::Result<usize> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    let mut value = usize::from(byte[0] & 0x7f);
    while byte[0] & 0x80 != 0 {
        from.read_exact(&mut byte)?;
        let higher = value.checked_add(1).and_then(|value| value.checked_mul(128));
        value = higher.ok_or(std::io::ErrorKind::InvalidData)? + usize::from(byte[0] & 0x7f);
    }
    Ok(value)
}

/// Whether an index entry is below the work tree and not below `.git`. A name that ends with a slash is a sparse
/// directory; an empty one is in a split index.
fn is_inner(name: &[u8]) -> bool {
    let path = name.strip_suffix(b"/").unwrap_or(name);
    let leads = |part: &[u8]| {
        matches!(part, b"" | b"." | b"..")
            || part.eq_ignore_ascii_case(b".git")
            || cfg!(windows) && part.iter().any(|byte| b"\\:".contains(byte))
    };
    name.is_empty() || !path.split(|byte| *byte == b'/').any(leads)
}

/// Bytes before the object id of an entry.
const INDEX_STAT: usize = 40;
const INDEX_EXTENDED: u16 = 0x4000;
/// The length of a name; if all of these bits are set, it ends at its NUL.
const INDEX_NAME: u16 = 0x0fff;
const INDEX_NAME_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_read_as_git_reads_it() {
        let entry = |version: u32, flags: u16, head: &[u8], name: &[u8], filler: usize| {
            let mut all = b"DIRC".to_vec();
            all.extend([version.to_be_bytes(), 1_u32.to_be_bytes()].concat());
            all.extend(
                [vec![0; 60], flags.to_be_bytes().to_vec(), head.to_vec(), name.to_vec(), vec![0; filler]].concat(),
            );
            all
        };
        let read = |bytes: &[u8]| index_stays_inside(&mut &bytes[..], 20).ok();
        for (bytes, expected) in [
            (entry(2, 3, b"", b"a/b", 7), Some(true)),
            (entry(2, 4, b"", b"../a", 6), Some(false)),
            (entry(2, 2, b"", b"/a", 8), Some(false)),
            (entry(2, 6, b"", b".GIT/x", 4), Some(false)),
            (entry(2, 2, b"", b"d/", 8), Some(true)),
            (entry(2, 1, b"", b"/", 1), Some(false)),
            (entry(2, 0, b"", b"", 2), Some(true)),
            (entry(3, 0x4002, b"\0\0", b"..", 6), Some(false)),
            (entry(3, 0x4001, b"\0\0", b"a", 7), Some(true)),
            (entry(4, 3, b"\0", b"a/b", 1), Some(true)),
            // What git would read on with is not where it was said to be.
            (entry(2, 3, b"", b"a", 9), None),
            (entry(2, 1, b"", b"a/../b", 4), None),
            (entry(4, 3, b"\x01", b"a/b", 1), None),
            (entry(5, 3, b"", b"a/b", 7), None),
            // A distance of 2^64, which is none where numbers go round.
            (entry(4, 3, b"\x80\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xff\x00", b"a/b", 1), None),
            (entry(2, 3, b"", b"a/b", 1), None),
        ] {
            assert_eq!(read(&bytes), expected, "{}", String::from_utf8_lossy(&bytes[72..]));
        }
        // Version 4: the second name is the first without its last byte, and a dot.
        let mut pieces = entry(4, 2, b"\0", b".-", 1);
        pieces[11] = 2;
        pieces.extend([vec![0; 60], 4_u16.to_be_bytes().to_vec(), b"\x01./a\0".to_vec()].concat());
        assert_eq!(read(&pieces), Some(false));
    }
}
