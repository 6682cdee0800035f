//! `requestState`: what a server wants to find again when a client repeats a request, sealed so that the client can
//! neither read nor change it, nor use it for another request or as another principal.
//!
//! ```text
//! base64url( version 1 | nonce 12 | ChaCha20-Poly1305( State as JSON ) | tag 16 )
//! associated data: version | binding of principal, method and parameters
//! ```
//!
//! A sealed state is not a one-time token: it may come back as often as the client likes until it expires. This crate
//! has no clock and no random numbers, so the time is compared by the caller and the nonce is passed in.

#![cfg_attr(not(fuzzing), allow(unreachable_pub, reason = "the fuzz targets use these items"))]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use linchpin_core::json::{ScanError, Scanner, read_str};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The content of a `requestState`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// When it stops being valid, in milliseconds since 1970. The caller of [`Keyring::open`] must compare.
    pub expires_ms: u64,
    /// The number of round trips so far.
    pub round: u32,
    /// The client's earlier input responses, by key, as JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, Box<RawValue>>,
    /// Results of steps that must not run twice, by the key of the step, as JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memos: BTreeMap<String, Box<RawValue>>,
    /// The keys of the input that is requested along with it: only they can be answered.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub asked: BTreeSet<String>,
}

/// The key that seals, and older ones that still open.
#[derive(Debug)]
pub struct Keyring {
    /// Seals and opens.
    pub current: SealKey,
    /// Only open. Keep a replaced key for as long as states it sealed are valid.
    pub previous: Vec<SealKey>,
}

impl Keyring {
    /// A keyring of one key.
    pub fn new(current: SealKey) -> Keyring {
        Keyring { current, previous: Vec::new() }
    }

    /// Seals a state to a request's [`binding`]. See [`SealKey::seal`] for what the nonce must be.
    pub fn seal(&self, state: &State, binding: &[u8; 32], nonce: [u8; NONCE_LEN]) -> String {
        let plain = serde_json::to_vec(state).expect("numbers, strings and checked JSON always serialise");
        self.current.seal(&plain, binding, nonce)
    }

    /// Opens what [`Keyring::seal`] sealed with any of the keys. `None` when it is longer than `bytes_max`, was changed,
    /// belongs to another binding, or was sealed by an unknown key. Whether it expired is not checked here.
    pub fn open(&self, sealed: &str, binding: &[u8; 32], bytes_max: usize) -> Option<State> {
        let plain = std::iter::once(&self.current)
            .chain(&self.previous)
            .find_map(|key| key.open(sealed, binding, bytes_max))?;
        serde_json::from_slice(&plain).ok()
    }
}

/// A secret key of 256 bits.
pub struct SealKey(LessSafeKey);

impl SealKey {
    /// Creates a key from these bytes, which must be random and secret.
    pub fn from_bytes(bytes: [u8; 32]) -> SealKey {
        SealKey(LessSafeKey::new(
            UnboundKey::new(&CHACHA20_POLY1305, &bytes).expect("the algorithm's keys are of 32 bytes"),
        ))
    }

    /// Encrypts and authenticates `plain`, and authenticates `aad`, which does not travel.
    ///
    /// The nonce must never be used twice with the same key. Random nonces are safe for 2^32 messages of one key.
    pub fn seal(&self, plain: &[u8], aad: &[u8], nonce: [u8; NONCE_LEN]) -> String {
        let mut out = Vec::with_capacity(HEAD + plain.len() + TAG);
        out.push(VERSION);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = self.0.seal_in_place_separate_tag(nonce, Aad::from(versioned(aad)), &mut out[HEAD..]);
        out.extend_from_slice(sealed.expect("a message in memory is shorter than the algorithm's 256 GiB").as_ref());
        URL_SAFE_NO_PAD.encode(out)
    }

    /// Opens what [`SealKey::seal`] sealed with the same key and `aad`. `None` when it was not, or when `sealed` is
    /// longer than `bytes_max` characters; then nothing is decoded.
    pub fn open(&self, sealed: &str, aad: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
        if sealed.len() > bytes_max {
            return None;
        }
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        if bytes.len() < HEAD + TAG || bytes[0] != VERSION {
            return None;
        }
        let nonce = Nonce::try_assume_unique_for_key(&bytes[1..HEAD]).ok()?;
        let len = self.0.open_in_place(nonce, Aad::from(versioned(aad)), &mut bytes[HEAD..]).ok()?.len();
        bytes.drain(..HEAD);
        bytes.truncate(len);
        Some(bytes)
    }
}

impl fmt::Debug for SealKey {
    /// Never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(secret)")
    }
}

/// What a sealed state is bound to: who asks, the method, and what the request is about, as one digest.
///
/// `params` is JSON text. Texts that mean the same give the same digest: blanks, the order of members and the way
/// characters are escaped do not count; numbers count as they are written. Text that is not JSON is bound as it is.
pub fn binding(principal: Option<&str>, method: &str, params: &str) -> [u8; 32] {
    let mut out = digest::Context::new(&digest::SHA256);
    out.update(b"linchpin requestState 1");
    match principal {
        None => out.update(&[0]),
        Some(principal) => {
            out.update(&[1]);
            piece(&mut out, b'p', principal.as_bytes());
        }
    }
    piece(&mut out, b'm', method.as_bytes());
    let mut inner = digest::Context::new(&digest::SHA256);
    let mut s = Scanner::new(params, DEPTH_MAX);
    match node(&mut s, params, &mut inner).and_then(|()| s.end()) {
        Ok(()) => piece(&mut out, b'j', inner.finish().as_ref()),
        Err(_) => piece(&mut out, b'x', params.as_bytes()),
    }
    finish(out)
}

/// Feeds one JSON value: scalars as they are, containers as the digest of their parts, so that one pass over the text is
/// enough although members are sorted. Recursion ends at the scanner's depth limit.
fn node(s: &mut Scanner<'_>, text: &str, out: &mut digest::Context) -> Result<(), ScanError> {
    match s.peek() {
        Some(b'{') => {
            let mut members: Vec<(Cow<'_, str>, [u8; 32])> = Vec::new();
            s.object(&mut |s, key| {
                let mut value = digest::Context::new(&digest::SHA256);
                node(s, text, &mut value)?;
                members.push((key.name(), finish(value)));
                Ok(())
            })?;
            members.sort_unstable();
            out.update(b"o");
            out.update(&(members.len() as u64).to_be_bytes());
            for (name, value) in members {
                piece(out, b'k', name.as_bytes());
                out.update(&value);
            }
        }
        Some(b'[') => {
            let (mut elements, mut count) = (digest::Context::new(&digest::SHA256), 0_u64);
            s.array(&mut |s| {
                count += 1;
                node(s, text, &mut elements)
            })?;
            out.update(b"a");
            out.update(&count.to_be_bytes());
            out.update(&finish(elements));
        }
        _ => {
            let scalar = s.value()?.of(text);
            match read_str(scalar) {
                Some(string) => piece(out, b's', string.as_bytes()),
                None => piece(out, b'v', scalar.as_bytes()),
            }
        }
    }
    Ok(())
}

/// A tag, a length and the bytes: no two lists of pieces give the same stream.
fn piece(out: &mut digest::Context, tag: u8, bytes: &[u8]) {
    out.update(&[tag]);
    out.update(&(bytes.len() as u64).to_be_bytes());
    out.update(bytes);
}

fn finish(context: digest::Context) -> [u8; 32] {
    context.finish().as_ref().try_into().expect("SHA-256 gives 32 bytes")
}

fn versioned(aad: &[u8]) -> Vec<u8> {
    [&[VERSION], aad].concat()
}

const VERSION: u8 = 1;
const HEAD: usize = 1 + NONCE_LEN;
const TAG: usize = 16;
const DEPTH_MAX: usize = 127;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn state() -> State {
        let answers = BTreeMap::from([("confirm".to_owned(), raw(r#"{"action":"accept","content":{"ok":true}}"#))]);
        State {
            expires_ms: 1_800_000_000_000,
            round: 2,
            answers,
            memos: BTreeMap::from([("paid".to_owned(), raw("17"))]),
            asked: BTreeSet::from(["address".to_owned()]),
        }
    }

    fn ring(key: u8, previous: &[u8]) -> Keyring {
        let key_of = |n: u8| SealKey::from_bytes([n; 32]);
        Keyring { current: key_of(key), previous: previous.iter().map(|n| key_of(*n)).collect() }
    }

    #[test]
    fn a_state_comes_back_with_everything_in_it() {
        let binding = binding(Some("alice"), "tools/call", r#"["pay",{"amount":3}]"#);
        let sealed = ring(1, &[]).seal(&state(), &binding, [7; 12]);
        let opened = ring(1, &[]).open(&sealed, &binding, 64 << 10).unwrap();
        assert_eq!(serde_json::to_string(&opened).unwrap(), serde_json::to_string(&state()).unwrap());
        assert!(sealed.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')));
        assert!(!sealed.contains("accept"));
    }

    #[test]
    fn replaced_keys_still_open_and_unknown_keys_do_not() {
        let binding = [9; 32];
        let sealed = ring(1, &[]).seal(&state(), &binding, [7; 12]);
        assert!(ring(2, &[3, 1]).open(&sealed, &binding, 4096).is_some());
        assert!(ring(2, &[3]).open(&sealed, &binding, 4096).is_none());
    }

    #[test]
    fn any_other_binding_length_or_text_is_refused() {
        let bound = binding(None, "tools/call", r#"["pay",{"amount":3}]"#);
        let keys = ring(1, &[]);
        let sealed = keys.seal(&state(), &bound, [7; 12]);
        let others = [
            binding(Some(""), "tools/call", r#"["pay",{"amount":3}]"#),
            binding(None, "prompts/get", r#"["pay",{"amount":3}]"#),
            binding(None, "tools/call", r#"["pay",{"amount":4}]"#),
        ];
        assert!(others.iter().all(|other| keys.open(&sealed, other, 4096).is_none()));
        assert!(keys.open(&sealed, &bound, sealed.len()).is_some());
        assert!(keys.open(&sealed, &bound, sealed.len() - 1).is_none());
        for bad in ["", "A", "AQ", "not base64!", &"A".repeat(39), &format!("{sealed}="), &sealed[..sealed.len() - 2]] {
            assert!(keys.open(bad, &bound, 4096).is_none(), "{bad}");
        }
    }

    #[test]
    fn something_sealed_that_is_no_state_is_refused() {
        let keys = ring(1, &[]);
        let sealed = keys.current.seal(b"{\"round\":1}", &[0; 32], [7; 12]);
        assert!(keys.open(&sealed, &[0; 32], 4096).is_none());
        assert_eq!(keys.current.open(&sealed, &[0; 32], 4096).unwrap(), b"{\"round\":1}");
    }

    #[test]
    fn the_key_is_not_printed() {
        assert_eq!(
            format!("{:?}", ring(65, &[66])),
            "Keyring { current: SealKey(secret), previous: [SealKey(secret)] }"
        );
    }

    #[test]
    fn texts_that_mean_the_same_bind_the_same_and_others_do_not() {
        // Each line is one meaning; every text of a line must bind alike and unlike every other line.
        let meanings: &[&[&str]] = &[
            &[
                r#"["t",{"a":1,"b":[true,null,"x"]}]"#,
                r#" [ "t" , { "b" : [ true , null , "\u0078" ] , "\u0061" : 1 } ] "#,
            ],
            &[r#"["t",{"a":1.0,"b":[true,null,"x"]}]"#],
            &[r#"["t",{"a":"1","b":[true,null,"x"]}]"#],
            &[r#"["t",{"a":1,"b":[null,true,"x"]}]"#],
            &[r#"["t",{"a":1,"b":[true,null,"x"],"c":{}}]"#],
            &[r#"["t",{"a":1,"b":[true,null,"x"],"c":[]}]"#],
            &[r#"["t",{"a":1,"b":[true,null,["x"]]}]"#],
            &[r#"["t",{"ab":1}]"#, r#"["t",{"a\u0062":1}]"#],
            &[r#"["t",{"a":{"b":1}}]"#],
            &[r#"["t",["a",1]]"#],
            &["null"],
            &["\"null\""],
            &["[]"],
            &["{}"],
            &["[[]]"],
            &["[[],[]]"],
            &["[[[]]]"],
            &[""],
            &["{"],
            &["[1"],
        ];
        let digests: Vec<Vec<[u8; 32]>> =
            meanings.iter().map(|texts| texts.iter().map(|t| binding(None, "m", t)).collect()).collect();
        for (i, line) in digests.iter().enumerate() {
            assert!(line.iter().all(|d| *d == line[0]), "{:?}", meanings[i]);
            for (j, other) in digests.iter().enumerate().filter(|(j, _)| *j != i) {
                assert_ne!(line[0], other[0], "{:?} and {:?}", meanings[i], meanings[j]);
            }
        }
    }

    #[test]
    fn principal_and_method_cannot_be_shifted_into_each_other() {
        let digests = [
            binding(None, "ab", "1"),
            binding(Some(""), "ab", "1"),
            binding(Some("a"), "b", "1"),
            binding(Some("ab"), "", "1"),
            binding(None, "a", "1"),
        ];
        for (i, digest) in digests.iter().enumerate() {
            assert!(!digests[..i].contains(digest), "{i}");
        }
    }

    #[test]
    fn text_nested_beyond_the_limit_is_bound_without_recursing_into_it() {
        let deep = "[".repeat(1 << 20);
        assert_ne!(binding(None, "m", &deep), binding(None, "m", &deep[1..]));
    }

    proptest! {
        #[test]
        fn whatever_was_sealed_opens(plain in prop::collection::vec(any::<u8>(), 0..300), aad in prop::collection::vec(any::<u8>(), 0..40), key: [u8; 32], nonce: [u8; 12]) {
            let key = SealKey::from_bytes(key);
            let sealed = key.seal(&plain, &aad, nonce);
            prop_assert_eq!(key.open(&sealed, &aad, 4096), Some(plain));
        }

        #[test]
        fn one_changed_character_spoils_the_seal(at in any::<prop::sample::Index>(), to in "[A-Za-z0-9_-]") {
            let keys = ring(1, &[]);
            let sealed = keys.seal(&state(), &[5; 32], [7; 12]);
            let at = at.index(sealed.len());
            let mut changed = sealed.clone();
            changed.replace_range(at..=at, &to);
            prop_assert_eq!(keys.open(&changed, &[5; 32], 4096).is_some(), changed == sealed);
        }

        #[test]
        fn the_order_of_members_never_counts(members in prop::collection::btree_map("[a-c\"é\n]{1,4}", "[a-z]{0,3}", 0..6)) {
            let text = |members: Vec<(&String, &String)>| {
                let members: Vec<String> = members.iter().map(|(k, v)| format!("{}: {}", serde_json::to_string(k).unwrap(), serde_json::to_string(v).unwrap())).collect();
                format!("{{{}}}", members.join(","))
            };
            let forward = text(members.iter().collect());
            let backward = text(members.iter().rev().collect());
            prop_assert_eq!(binding(None, "m", &forward), binding(None, "m", &backward));
        }
    }
}
