//! Whose a task is, and its keys in the store.

use crate::digest::digest;
use crate::shared::random;
use linchpin_core::service::RequestContext;
use std::sync::Arc;

/// The owner of tasks, as keys name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner(Arc<str>);

impl Owner {
    /// The owner of what a request makes: its principal, or else who is at the other end of the pipe. Over HTTP without
    /// authentication nobody is: there the id is the key.
    pub(crate) fn of(context: &RequestContext) -> Owner {
        Owner(match (&context.principal, &context.connection) {
            (Some(principal), _) => format!("p{}", digest(principal.identity())).into(),
            (None, Some(_)) => "local".into(),
            (None, None) => "-".into(),
        })
    }

    /// The owner in a key.
    pub(crate) fn named(name: &str) -> Owner {
        Owner(name.into())
    }

    /// Whether its tasks can be listed: whether it is somebody.
    pub(crate) fn is_somebody(&self) -> bool {
        &*self.0 != "-"
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A new id: 130 random bits.
pub(crate) fn new_id() -> String {
    let random = random::<26>();
    let letters = random.iter().map(|byte| char::from(LETTERS[usize::from(byte & 31)]));
    "tk_".chars().chain(letters).collect()
}

/// Whether a text can be an id. Others are not looked up.
pub(crate) fn is_id(text: &str) -> bool {
    text.strip_prefix("tk_").is_some_and(|rest| rest.len() == 26 && rest.bytes().all(|b| LETTERS.contains(&b)))
}
