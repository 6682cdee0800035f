//! Encrypts sessions into their ids, so that they can be continued after a restart of the bridge.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use linchpin_core::{SessionRecord, SessionSeal};
use linchpin_store::{Seal, Secrets};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest id. Headers of 8 KiB pass everywhere.
const ID_BYTES_MAX: usize = 4_096;
/// How long an id can be brought back after its session was opened, in seconds.
const AGE_S_MAX: u64 = 7 * 24 * 3_600;
/// What the keys of these ids are derived for.
const SPACE: &str = "bridge session";

/// Sessions that are encrypted into their ids; see [`SessionSeal`]. An id is valid for a week, in every process with
/// the secret.
///
/// ```
/// use linchpin_core::{SessionRecord, SessionSeal};
/// use linchpin_gateway::SealedSessions;
/// use linchpin_store::Secrets;
/// use linchpin_types::version::Revision;
///
/// let seal = SealedSessions::new(&Secrets::new([7; 32]), "weather");
/// let id = seal.seal("0123", &SessionRecord::bare(Revision::V2025_11_25)).unwrap();
/// assert_eq!(seal.open("0123", &id).unwrap().revision, Revision::V2025_11_25);
/// assert!(seal.open("4567", &id).is_none());
/// ```
#[derive(Clone)]
pub struct SealedSessions {
    seal: Seal,
    /// Whose sessions they are: ids of another upstream do not open.
    about: Box<str>,
}

impl fmt::Debug for SealedSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedSessions").field("about", &self.about).finish_non_exhaustive()
    }
}

impl SealedSessions {
    /// Uses these secrets for sessions of the upstream with this name. The first secret encrypts; all of them decrypt.
    pub fn new(secrets: &Secrets, upstream: &str) -> SealedSessions {
        SealedSessions { seal: Seal::new(secrets), about: upstream.into() }
    }

    /// Uses the secrets in a file, which is created if it does not exist, accessible only by its owner.
    ///
    /// # Errors
    /// If the file cannot be read or created, or other users can read it.
    pub fn from_file(file: &Path, upstream: &str) -> std::io::Result<SealedSessions> {
        if let Some(folder) = file.parent() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder)?;
        }
        let secrets = Secrets::from_file_or_new(file).map_err(std::io::Error::other)?;
        Ok(SealedSessions::new(&secrets, upstream))
    }

    fn bound(&self, key: &str) -> Vec<u8> {
        [key, "\n", &self.about].concat().into_bytes()
    }

    fn open_at(&self, key: &str, sealed: &str, now: u64) -> Option<SessionRecord> {
        if sealed.len() > ID_BYTES_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let plain = self.seal.open(SPACE, &self.bound(key), &bytes).ok()?;
        let kept: Kept = serde_json::from_slice(&plain).ok()?;
        (kept.opened_s <= now && now - kept.opened_s <= AGE_S_MAX).then_some(kept.session)
    }
}

#[derive(Serialize, Deserialize)]
struct Kept {
    /// In seconds since 1970.
    opened_s: u64,
    session: SessionRecord,
}

impl SessionSeal for SealedSessions {
    fn seal(&self, key: &str, record: &SessionRecord) -> Option<String> {
        let plain = serde_json::to_vec(&Kept { opened_s: now_s(), session: record.clone() }).ok()?;
        let sealed = URL_SAFE_NO_PAD.encode(self.seal.seal(SPACE, &self.bound(key), &plain));
        (key.len() + 1 + sealed.len() <= ID_BYTES_MAX).then_some(sealed)
    }

    fn open(&self, key: &str, sealed: &str) -> Option<SessionRecord> {
        // Another clock may be some seconds behind.
        self.open_at(key, sealed, now_s() + 30)
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_types::version::Revision;

    #[test]
    fn an_id_opens_for_its_session_and_key_for_a_week() {
        let ours = SealedSessions::new(&Secrets::new([1; 32]), "a server");
        let mut record = SessionRecord::bare(Revision::V2025_06_18);
        record.owner = Some("ada".into());
        let sealed = ours.seal("k", &record).unwrap();
        let now = now_s();
        let opened = ours.open_at("k", &sealed, now).unwrap();
        assert_eq!((opened.revision, opened.owner.as_deref()), (record.revision, Some("ada")));
        assert!(ours.open_at("k", &sealed, now + AGE_S_MAX + 2).is_none());
        assert!(ours.open_at("another", &sealed, now).is_none());
        assert!(SealedSessions::new(&Secrets::new([1; 32]), "another").open("k", &sealed).is_none());
        assert!(SealedSessions::new(&Secrets::new([2; 32]), "a server").open("k", &sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            // The last character has bits that mean nothing; a strict decoder refuses them.
            assert!(ours.open("k", std::str::from_utf8(&changed).unwrap()).is_none(), "{at}");
        }
        let long = linchpin_core::SessionRecord::new(
            Revision::V2025_06_18,
            serde_json::value::RawValue::from_string(format!("{{\"x\":\"{}\"}}", "y".repeat(5_000))).unwrap(),
        );
        assert!(ours.seal("k", &long).is_none());
    }
}
