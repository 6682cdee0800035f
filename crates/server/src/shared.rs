//! What every call of a server needs: limits, budget, keys, and how responses are written.

use crate::seal::Keyring;
use crate::tool_result;
use linchpin_core::message::Request;
use linchpin_core::service::CallStart;
use linchpin_core::{Budget, Limits, Method, Observer, Reply, ResultWriter, Stamps};
use linchpin_types::error::code;
use linchpin_types::page::CacheScope;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tokio::sync::Notify;

/// See the module's documentation.
pub(crate) struct Shared {
    pub(crate) limits: Arc<Limits>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) stamps: Arc<Stamps>,
    /// Calls that run.
    pub(crate) calls: AtomicUsize,
    /// None of them runs any more.
    pub(crate) idle: Notify,
    pub(crate) keyring: Keyring,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// The `Registries` of the server, which are above this file.
    pub(crate) registries: Arc<dyn Any + Send + Sync>,
}

impl Shared {
    /// Tells the observer that a notification was dropped.
    pub(crate) fn dropped(&self) {
        if let Some(observer) = &self.observer {
            observer.notification_dropped();
        }
    }

    /// Returns a writer for the response to `request`.
    pub(crate) fn writer(&self, request: &Request) -> ResultWriter {
        ResultWriter::new(&request.id, request.caller.features(), &self.stamps, self.limits.messages.result_bytes_max)
    }

    pub(crate) fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    pub(crate) fn random(&self) -> [u8; 12] {
        random()
    }

    /// Returns an unguessable identifier.
    pub(crate) fn unguessable(&self) -> String {
        random::<16>().iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Writes the cache hints, in revisions that have them.
    pub(crate) fn cache_hints(&self, out: &mut ResultWriter, (ttl_ms, scope): (u64, CacheScope)) {
        if out.features().cache_hints {
            out.key("ttlMs");
            out.push(ttl_ms.to_string().as_bytes());
            out.key("cacheScope");
            out.string(match scope {
                CacheScope::Public => "public",
                // Any other scope is not for shared caches.
                _ => "private",
            });
        }
    }

    /// The response for a call that failed outside of its handler.
    pub(crate) fn failed(&self, request: &Request, why: &str) -> Reply {
        if request.known() == Some(Method::ToolsCall) {
            return tool_result::failure(self.writer(request), &format!("the tool failed: {why}"));
        }
        Reply::error(Some(&request.id), code::INTERNAL_ERROR, &format!("the request failed: {why}"), None)
    }
}

/// Truncates names from the peer before they are quoted in an error.
pub(crate) fn clip(name: &str) -> String {
    name.chars().take(80).collect()
}

pub(crate) fn fail(request: &Request, code: i32, why: &str) -> CallStart {
    CallStart::Done(Reply::error(Some(&request.id), code, why, None))
}

pub(crate) fn method_not_found(request: &Request) -> Reply {
    let why = format!("method not found: {}", clip(request.method.as_str()));
    Reply::error(Some(&request.id), code::METHOD_NOT_FOUND, &why, None)
}

/// Random bytes from the operating system. It is not safe to continue without them.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
