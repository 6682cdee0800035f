//! Everything that a stranger can make grow, and how far.

use std::time::Duration;

/// The longest form or query in bytes.
pub(crate) const FORM_BYTES_MAX: usize = 16 << 10;
/// The most parameters of a form or query.
pub(crate) const PARAMS_MAX: usize = 32;
/// The longest parameter in bytes.
pub(crate) const PARAM_BYTES_MAX: usize = 4 << 10;
/// The longest registration in bytes.
pub(crate) const REGISTRATION_BYTES_MAX: usize = 16 << 10;
/// The most redirect URIs of a client.
pub(crate) const REDIRECT_URIS_MAX: usize = 20;
/// The longest name of a client that is shown, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 64;
/// The longest client metadata document in bytes.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 10 << 10;
/// The longest answer of an upstream provider in bytes.
pub(crate) const UPSTREAM_BYTES_MAX: usize = 256 << 10;
/// The most client metadata documents that are fetched at once.
pub(crate) const DOCUMENTS_AT_ONCE: usize = 8;
/// The most sets of clients' keys that are fetched at once.
pub(crate) const CLIENT_KEYS_AT_ONCE: usize = 4;
/// The most client metadata documents that are remembered, and the most sets of clients' keys.
pub(crate) const DOCUMENTS_MAX: usize = 1000;
/// The most passwords that are compared at once: each takes 19 MiB.
pub(crate) const PASSWORDS_AT_ONCE: usize = 2;
/// The most clients that registered themselves.
pub(crate) const REGISTERED_MAX: usize = 10_000;
/// The most logins that are under way.
pub(crate) const TRANSACTIONS_MAX: usize = 10_000;
/// The most codes that may be tried before a transaction ends.
pub(crate) const CODE_TRIES_MAX: u32 = 5;
/// The most families of one person and client.
pub(crate) const FAMILIES_MAX: usize = 20;

/// How long a user may take.
pub(crate) const TRANSACTION_LIFE: Duration = Duration::from_secs(600);
/// How long a code is good.
pub(crate) const CODE_LIFE: Duration = Duration::from_secs(60);
/// How long a login in a browser lasts.
pub(crate) const LOGIN_LIFE: Duration = Duration::from_secs(12 * 3600);
/// How long a client that registered itself is kept unused.
pub(crate) const REGISTERED_LIFE: Duration = Duration::from_secs(90 * 86_400);
/// How long a family may be unused.
pub(crate) const FAMILY_IDLE: Duration = Duration::from_secs(30 * 86_400);
/// How long a family lasts in all.
pub(crate) const FAMILY_LIFE: Duration = Duration::from_secs(90 * 86_400);
/// How long a refresh token that was just used gets the same answer again.
pub(crate) const REFRESH_GRACE: Duration = Duration::from_secs(30);
/// How long a key signs.
pub(crate) const KEY_LIFE: Duration = Duration::from_secs(90 * 86_400);
/// How long a key is published before it signs.
pub(crate) const KEY_AHEAD: Duration = Duration::from_secs(86_400);
/// How long the token of a workload may last.
pub(crate) const WORKLOAD_LIFE: Duration = Duration::from_secs(86_400);
/// How long a device waits for a user.
pub(crate) const DEVICE_LIFE: Duration = Duration::from_secs(600);
/// How long the assertion of a client may last.
pub(crate) const ASSERTION_LIFE: Duration = Duration::from_secs(300);

/// How often something may happen: `burst` at once, then `per` in this time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) name: &'static str,
    pub(crate) count: u32,
    pub(crate) window: Duration,
}

const MINUTE: Duration = Duration::from_secs(60);

/// Pages for users, for each address.
pub(crate) const PAGES: Rate = Rate { name: "pages", count: 60, window: MINUTE };
/// The token endpoint, for each address.
pub(crate) const TOKENS_PER_ADDRESS: Rate = Rate { name: "tokens-address", count: 300, window: MINUTE };
/// The token endpoint, for each client that has shown who it is.
pub(crate) const TOKENS_PER_CLIENT: Rate = Rate { name: "tokens-client", count: 60, window: MINUTE };
/// Failed requests to the token endpoint, for each address.
pub(crate) const FAILURES_PER_ADDRESS: Rate = Rate { name: "failures-address", count: 30, window: MINUTE };
/// Wrong secrets of one client from one address, before each one has to wait longer.
pub(crate) const SECRET_FAILURES: u32 = 30;
/// Registrations, for each address.
pub(crate) const REGISTRATIONS: Rate = Rate { name: "registrations", count: 10, window: Duration::from_secs(3600) };
/// Devices that begin a login, for each address.
pub(crate) const DEVICES_PER_ADDRESS: Rate = Rate { name: "devices", count: 10, window: MINUTE };
/// Codes of devices that are typed in, for each address.
pub(crate) const DEVICE_TRIES: Rate = Rate { name: "device-tries", count: 10, window: Duration::from_secs(600) };
/// How often a device may ask, for each: a second earlier than it is told.
pub(crate) const DEVICE_POLLS: Rate = Rate { name: "device-polls", count: 1, window: Duration::from_secs(4) };
/// Client metadata documents, for each host.
pub(crate) const DOCUMENTS_PER_HOST: Rate = Rate { name: "documents", count: 30, window: MINUTE };
