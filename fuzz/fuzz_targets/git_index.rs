//! Any bytes as an index of git's, with both kinds of object ids: it is refused or all its names are inside, and what comes
//! behind its last entry changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the whole file of the server")]
#[path = "../../servers/git/src/parse/index.rs"]
mod index;

use index::index_stays_inside;

fuzz_target!(|bytes: &[u8]| {
    for id in [20, 32] {
        let mut rest = bytes;
        let Ok(inside) = index_stays_inside(&mut rest, id) else { continue };
        let read = bytes.len() - rest.len();
        assert_eq!(index_stays_inside(&mut &bytes[..read], id).ok(), Some(inside));
    }
});
