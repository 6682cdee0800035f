//! What happened, for the record: one event of the target `linchpin::audit` each. Never a token, code, secret or claim.

use linchpin_oauth::sha256;
use std::net::IpAddr;

/// Writes one event. `item` is what it is about: a resource, scopes, a family.
pub(crate) struct Entry<'a> {
    pub(crate) event: &'static str,
    pub(crate) verdict: &'static str,
    pub(crate) principal: &'a str,
    pub(crate) client: &'a str,
    pub(crate) from: Option<IpAddr>,
    pub(crate) item: &'a str,
    pub(crate) token: &'a str,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(event: &'static str, verdict: &'static str, from: Option<IpAddr>) -> Entry<'a> {
        Entry { event, verdict, principal: "", client: "", from, item: "", token: "" }
    }

    pub(crate) fn write(&self) {
        let from = self.from.map(|from| from.to_string()).unwrap_or_default();
        tracing::info!(
            target: "linchpin::audit",
            event = self.event,
            verdict = self.verdict,
            principal = self.principal,
            client = self.client,
            from,
            item = self.item,
            token = mark(self.token),
            "{} {}", self.event, self.verdict
        );
    }
}

/// Eight hexadecimal digits of a token's hash, by which it is found again and not known.
fn mark(token: &str) -> String {
    if token.is_empty() {
        return String::new();
    }
    sha256(token.as_bytes())[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}
