//! The requests a client may send to a server.

use std::fmt;

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A request method that clients send, of any revision. `linchpin_proto::era` says which revisions have which.
        ///
        /// ```
        /// use linchpin_core::Method;
        ///
        /// assert_eq!(Method::parse("tools/call"), Some(Method::ToolsCall));
        /// assert_eq!(Method::ToolsCall.as_str(), "tools/call");
        /// assert_eq!(Method::parse("example/translate"), None);
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Method { $($(#[$doc])* $name,)* }

        impl Method {
            /// Every method, for tables.
            pub const ALL: &'static [Method] = &[$(Method::$name,)*];

            /// Returns the method's name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Method::$name => $text,)* }
            }

            /// Returns the method with this name. Names are case-sensitive.
            pub fn parse(name: &str) -> Option<Method> {
                match name { $($text => Some(Method::$name),)* _ => None }
            }
        }
    };
}

methods! {
    /// `initialize`
    Initialize = "initialize",
    /// `ping`
    Ping = "ping",
    /// `tools/call`
    ToolsCall = "tools/call",
    /// `tools/list`
    ToolsList = "tools/list",
    /// `resources/read`
    ResourcesRead = "resources/read",
    /// `resources/list`
    ResourcesList = "resources/list",
    /// `resources/templates/list`
    ResourcesTemplatesList = "resources/templates/list",
    /// `resources/subscribe`
    ResourcesSubscribe = "resources/subscribe",
    /// `resources/unsubscribe`
    ResourcesUnsubscribe = "resources/unsubscribe",
    /// `prompts/get`
    PromptsGet = "prompts/get",
    /// `prompts/list`
    PromptsList = "prompts/list",
    /// `completion/complete`
    CompletionComplete = "completion/complete",
    /// `logging/setLevel`
    LoggingSetLevel = "logging/setLevel",
    /// `server/discover`
    ServerDiscover = "server/discover",
    /// `subscriptions/listen`
    SubscriptionsListen = "subscriptions/listen",
    /// `tasks/get`
    TasksGet = "tasks/get",
    /// `tasks/update`
    TasksUpdate = "tasks/update",
    /// `tasks/cancel`
    TasksCancel = "tasks/cancel",
    /// `tasks/result`
    TasksResult = "tasks/result",
    /// `tasks/list`
    TasksList = "tasks/list",
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
