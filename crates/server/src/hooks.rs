//! The handlers of notifications and subscriptions, and what they return.

use crate::custom_method;
use crate::error::Error;
use crate::invocation::Bound;
use crate::string_args;
use crate::target::Target;
use linchpin_core::{Reply, ReplyKind, ResultWriter};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Marker of handlers of notifications and subscriptions.
pub struct Notified;

/// What a handler of notifications or subscriptions returns: `()`, or a `Result` of it with any printable error.
///
/// ```
/// # use linchpin_server::Server;
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Moved { to: String }
///
/// let server = Server::new("s", "1").on_notification("example.com/moved", async |moved: Moved| {
///     std::fs::write("position", moved.to)
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a handler of notifications",
    label = "a notification has no result",
    note = "return `()` or `Result<(), E>`"
)]
pub trait NotificationResult {
    /// Converts the value into a result.
    ///
    /// # Errors
    /// The handler's error.
    fn into_unit(self) -> Result<(), Error>;

    /// An empty result, or the error.
    #[doc(hidden)]
    fn into_reply(self, out: ResultWriter) -> Reply
    where
        Self: Sized,
    {
        match self.into_unit() {
            Ok(()) => out.finish(ReplyKind::Complete),
            Err(error) => error.into_rpc(out),
        }
    }

    /// Notifications have no output schema.
    #[doc(hidden)]
    fn output_schema() -> Option<Value> {
        None
    }
}

impl NotificationResult for () {
    fn into_unit(self) -> Result<(), Error> {
        Ok(())
    }
}

impl<E: fmt::Display + Send + 'static> NotificationResult for Result<(), E> {
    fn into_unit(self) -> Result<(), Error> {
        self.map_err(Error::from_printable)
    }
}

/// The handlers of a server, each list in the order in which they were added.
#[derive(Default)]
pub(crate) struct Hooks {
    /// By the notification's name.
    pub(crate) notifications: HashMap<Box<str>, Vec<Target>>,
    pub(crate) subscribe: Vec<Target>,
    pub(crate) unsubscribe: Vec<Target>,
}

impl Hooks {
    pub(crate) fn add(&mut self, name: &str, bound: Bound) -> Result<(), String> {
        let at = |why: &str| format!("notification `{name}`: {why}");
        if name == "notifications/cancelled" {
            return Err(at("it cancels the call, whose `Cx` tells"));
        }
        if !custom_method::name_ok(name) {
            return Err(at(
                "a name is 1 to 128 printable ASCII characters, for example `notifications/example.com/saved`",
            ));
        }
        self.notifications.entry(name.into()).or_default().push(target(name, bound));
        Ok(())
    }

    /// Adds a handler of subscriptions, or of their ends.
    pub(crate) fn add_subscription(&mut self, ends: bool, bound: Bound) -> Result<(), String> {
        let (list, name, method) = match ends {
            false => (&mut self.subscribe, "resources/subscribe", "on_subscribe"),
            true => (&mut self.unsubscribe, "resources/unsubscribe", "on_unsubscribe"),
        };
        let input = (bound.input)();
        string_args::check(&input, |name| name == "uri").map_err(|why| format!("{method}: {why}"))?;
        let required = input["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(other) = required.into_iter().find(|member| *member != "uri") {
            return Err(format!("{method}: the handler needs `{other}`, but a subscription has only a `uri`"));
        }
        list.push(target(name, bound));
        Ok(())
    }

    /// Whether somebody wants to know of subscriptions.
    pub(crate) fn subscriptions(&self) -> bool {
        !self.subscribe.is_empty() || !self.unsubscribe.is_empty()
    }
}

pub(crate) fn target(name: &str, bound: Bound) -> Target {
    let Bound { run, wants_cx, per_session, .. } = bound;
    Target { name: name.into(), run, layers: Arc::new([]), wants_cx, per_session, explain: None }
}
