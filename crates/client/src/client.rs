//! The host's side of every conversation: who it is, what it can do, how it answers.

use crate::ask::{Answers, AskUrl, Sample};
use crate::connection::Connection;
use crate::form::Form;
use crate::open::Known;
use crate::{Change, Result, open};
use linchpin_proto::{ClientLimits, Dial, Tap, Wire, era};
use linchpin_types::capability::{
    ClientCapabilities, ElicitationCapability, EmptyCapability, RootsCapability, SamplingCapability,
};
use linchpin_types::elicit::ElicitResult;
use linchpin_types::lifecycle::Implementation;
use linchpin_types::logging::{LoggingLevel, LoggingMessageNotificationParams};
use linchpin_types::root::Root;
use linchpin_types::sample::CreateMessageResult;
use linchpin_types::version::Revision;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// A host: what it tells servers about itself and how it answers them. Cheap to clone; connect it to as many servers as
/// you like. It remembers, with its clones, which revision a server spoke, so that connecting again takes no probe.
///
/// Nothing needs to be set. What is set is declared to servers, and what is not is not: a client without `on_sample` has
/// no sampling capability.
#[derive(Clone)]
#[must_use]
pub struct Client {
    pub(crate) recipe: Recipe,
}

#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) info: Implementation,
    pub(crate) answers: Answers,
    pub(crate) extensions: Vec<(String, Box<RawValue>)>,
    pub(crate) on_log: Option<Arc<dyn Fn(LoggingMessageNotificationParams) + Send + Sync>>,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) on_change: Option<Arc<dyn Fn(Change) + Send + Sync>>,
    pub(crate) accepted: Vec<&'static Wire>,
    pub(crate) limits: Arc<ClientLimits>,
    pub(crate) tap: Option<Arc<dyn Tap>>,
    pub(crate) restart: Option<Restart>,
    pub(crate) cache: bool,
    pub(crate) rounds: bool,
    pub(crate) check_results: bool,
    pub(crate) known: Arc<Known>,
}

/// When and how often a lost connection is made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// Pause before the first attempt; it doubles with each that fails, with some jitter. Default 200 ms.
    pub first_ms: u64,
    /// Longest pause. Default 30,000 ms.
    pub longest_ms: u64,
    /// Attempts in a row before it is given up. Default 8. A connection that held for a minute starts the count anew.
    pub attempts_max: u32,
}

impl Default for Restart {
    fn default() -> Self {
        Restart { first_ms: 200, longest_ms: 30_000, attempts_max: 8 }
    }
}

impl Client {
    /// A host of this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Client {
        Client {
            recipe: Recipe {
                info: Implementation::new(name, version),
                answers: Answers::default(),
                extensions: Vec::new(),
                on_log: None,
                log_level: None,
                on_change: None,
                accepted: era::all().collect(),
                limits: Arc::default(),
                tap: None,
                restart: None,
                cache: true,
                rounds: true,
                check_results: false,
                known: Arc::default(),
            },
        }
    }

    /// Says more about the host: title, description, website, icons.
    pub fn info(mut self, info: Implementation) -> Client {
        self.recipe.info = info;
        self
    }

    /// Answers forms that servers want filled in. Runs in a task of its own for servers with sessions, within the call
    /// that is asked otherwise. Declares elicitation in form mode.
    pub fn on_ask<F, Fut>(mut self, answer: F) -> Client
    where
        F: Fn(Form) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ElicitResult> + Send + 'static,
    {
        self.recipe.answers.form = Some(Arc::new(move |form| Box::pin(answer(form))));
        self
    }

    /// Asks the person whether to open a URL, and opens it. Declares elicitation in URL mode.
    pub fn on_ask_url<F, Fut>(mut self, answer: F) -> Client
    where
        F: Fn(AskUrl) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ElicitResult> + Send + 'static,
    {
        self.recipe.answers.url = Some(Arc::new(move |ask| Box::pin(answer(ask))));
        self
    }

    /// Lets servers use the host's model. An `Err` is told to the server as it stands. Declares sampling.
    pub fn on_sample<F, Fut>(mut self, answer: F) -> Client
    where
        F: Fn(Sample) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, String>> + Send + 'static,
    {
        self.recipe.answers.sample = Some(Arc::new(move |sample| Box::pin(answer(sample))));
        self
    }

    /// Says that `on_sample` understands tools in a conversation.
    pub fn sampling_tools(mut self) -> Client {
        self.recipe.answers.sample_tools = true;
        self
    }

    /// The places the host works in, as `file://` URIs. Declares roots.
    pub fn roots(self, roots: Vec<Root>) -> Client {
        self.on_roots(move || std::future::ready(roots.clone()))
    }

    /// The same, asked for each time. Tell servers of changes with [`Connection::roots_changed`].
    pub fn on_roots<F, Fut>(mut self, answer: F) -> Client
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<Root>> + Send + 'static,
    {
        self.recipe.answers.roots = Some(Arc::new(move |()| Box::pin(answer())));
        self
    }

    /// Hears log messages, in order, outside of the tasks that read. When they come faster than this returns, the oldest
    /// are dropped. `least` is what servers are asked for.
    pub fn on_log(
        mut self,
        least: LoggingLevel,
        hear: impl Fn(LoggingMessageNotificationParams) + Send + Sync + 'static,
    ) -> Client {
        self.recipe.on_log = Some(Arc::new(hear));
        self.recipe.log_level = Some(least);
        self
    }

    /// Hears of changed lists and resources, in order. Lists are subscribed to by themselves, resources with
    /// [`Connection::subscribe`]. When a connection was made anew, everything is reported as changed.
    pub fn on_change(mut self, hear: impl Fn(Change) + Send + Sync + 'static) -> Client {
        self.recipe.on_change = Some(Arc::new(hear));
        self
    }

    /// Declares an extension, with its settings as JSON. A result whose `resultType` is neither `complete` nor
    /// `input_required` is an error unless an extension is declared; then it is handed on, and the host looks at its type.
    pub fn extension(mut self, name: impl Into<String>, settings: &serde_json::Value) -> Client {
        let settings = RawValue::from_string(settings.to_string()).unwrap_or_default();
        self.recipe.extensions.push((name.into(), settings));
        self
    }

    /// Speaks only these revisions. Default: all of them, the newest a server has.
    pub fn revisions(mut self, revisions: &[Revision]) -> Client {
        self.recipe.accepted = era::all().filter(|wire| revisions.contains(&wire.revision)).collect();
        // What servers spoke with other revisions to choose from says little.
        self.recipe.known = Arc::default();
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: ClientLimits) -> Client {
        self.recipe.limits = Arc::new(limits);
        self
    }

    /// How long a call may take unless it says otherwise. Default one minute; zero is without end.
    pub fn timeout(mut self, timeout: Duration) -> Client {
        Arc::make_mut(&mut self.recipe.limits).call_ms_max = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Shows every message both ways, HTTP heads and lines of standard error included.
    pub fn tap(mut self, tap: impl Tap) -> Client {
        self.recipe.tap = Some(Arc::new(tap));
        self
    }

    /// Makes a lost connection again by itself: a program that crashed is started anew, its lists count as changed,
    /// subscriptions are renewed; only the calls that were running fail. Without this, the next call fails. An HTTP
    /// session that a server has forgotten is always made anew.
    pub fn restart(mut self, restart: Restart) -> Client {
        self.recipe.restart = Some(restart);
        self
    }

    /// Whether answers are kept for as long as servers say (`ttlMs`). Default yes. They are never shared between
    /// connections.
    pub fn cache(mut self, on: bool) -> Client {
        self.recipe.cache = on;
        self
    }

    /// Whether a call that asks for input is answered and sent again by itself. Default yes. Without it such a call
    /// returns a result for which [`crate::CallResult::input_required`] says what is wanted.
    pub fn rounds(mut self, on: bool) -> Client {
        self.recipe.rounds = on;
        self
    }

    /// Checks structured results against the schemas that tools declare. Default no. Needs the feature `validate`, and
    /// that the tools were listed; a call lists them if need be.
    pub fn check_results(mut self, on: bool) -> Client {
        self.recipe.check_results = on;
        self
    }

    /// Connects to a server and finds out what it speaks.
    ///
    /// # Errors
    /// [`crate::Error::Connect`] when it cannot be reached, does not answer within `open_ms_max`, or shares no revision.
    /// Cancel-safe: dropping the future undoes everything, a child process included.
    pub async fn connect(&self, dial: impl Dial) -> Result<Connection> {
        self.connect_to(Arc::new(dial)).await
    }

    /// The same for a place that is chosen at run time.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    pub async fn connect_to(&self, dial: Arc<dyn Dial>) -> Result<Connection> {
        open::connect(Arc::new(self.recipe.clone()), dial).await
    }
}

impl Recipe {
    /// What is declared to a server of `wire`: never what that revision lacks.
    pub(crate) fn capabilities(&self, wire: &Wire) -> ClientCapabilities {
        let answers = &self.answers;
        let url = answers.url.is_some() && wire.icons;
        let form = answers.form.is_some() && wire.elicitation;
        ClientCapabilities {
            roots: answers.roots.as_ref().map(|_| RootsCapability { list_changed: wire.has_sessions.then_some(true) }),
            sampling: answers.sample.as_ref().map(|_| SamplingCapability {
                context: None,
                tools: (answers.sample_tools && wire.icons).then_some(EmptyCapability {}),
            }),
            elicitation: (form || url).then(|| ElicitationCapability {
                // Form alone is the empty object, which every revision with elicitation understands.
                form: (form && url).then_some(EmptyCapability {}),
                url: url.then_some(EmptyCapability {}),
            }),
            extensions: if wire.extensions { self.extensions.iter().cloned().collect() } else { Default::default() },
            ..ClientCapabilities::default()
        }
    }

    /// What a server of `wire` is told about the host.
    pub(crate) fn implementation(&self, wire: &Wire) -> Implementation {
        let mut info = self.info.clone();
        if !wire.titles {
            info.title = None;
        }
        if !wire.icons {
            (info.description, info.website_url, info.icons) = (None, None, Vec::new());
        }
        info
    }
}
