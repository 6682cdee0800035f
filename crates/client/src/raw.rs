//! A connection whose messages the caller writes and reads, for programs that forward messages.

use crate::Result;
pub use crate::config::jittered;
use crate::error::Error;
use crate::lock::lock;
use crate::negotiate::{Dialed, Opening, negotiated};
use linchpin_core::service::BoxFuture;
use linchpin_core::{
    Agreed, ClientLimits, ClientTransport, ConnectOptions, Connector, Features, Inbox, Message, Outgoing, Tap,
    TransportError,
};
use linchpin_proto::message_writer::{Extras, Writer};
use linchpin_proto::negotiation::Attempt;
use linchpin_proto::translate;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The options of a [`RawConnection`]: the revisions, capabilities and name of the client, and limits.
///
/// ```
/// use linchpin_client::raw::RawOptions;
/// use linchpin_core::Features;
///
/// let with_sessions = Features::all().filter(|features| features.has_sessions).collect();
/// let options = RawOptions::new(with_sessions)
///     .with(|options| options.capabilities = r#"{"roots":{}}"#.into());
/// assert_eq!(options.accepted.len(), 4);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct RawOptions {
    /// The accepted revisions, in order of preference.
    pub accepted: Vec<&'static Features>,
    /// The client's capabilities as JSON text.
    pub capabilities: Box<str>,
    /// The client's name and version as JSON text.
    pub client_info: Box<str>,
    /// The limits of the transport.
    pub limits: Arc<ClientLimits>,
    /// Receives all traffic. Default: `None`.
    pub tap: Option<Arc<dyn Tap>>,
    /// The next free request id of the connection.
    pub ids: Arc<AtomicU64>,
}

impl RawOptions {
    /// Creates the options of a client that declares no capabilities and accepts these revisions.
    pub fn new(accepted: Vec<&'static Features>) -> RawOptions {
        RawOptions {
            accepted,
            capabilities: "{}".into(),
            client_info: concat!("{\"name\":\"linchpin\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}").into(),
            limits: Arc::default(),
            tap: None,
            ids: Arc::new(AtomicU64::new(1)),
        }
    }

    /// Changes some of these options.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl fmt::Debug for RawOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawOptions")
            .field("accepted", &self.accepted.iter().map(|features| features.revision.as_str()).collect::<Vec<_>>())
            .field("tap", &self.tap.is_some())
            .finish_non_exhaustive()
    }
}

/// An open connection to a server with a negotiated revision, and nothing else: no multi-round-trip requests, no cache, no
/// callbacks, no reconnection. The caller writes and reads the messages.
///
/// ```
/// use linchpin_client::raw::{RawConnection, RawOptions};
/// use linchpin_core::{Connector, Features, Inbox};
/// use std::sync::Arc;
///
/// async fn version(server: impl Connector, inbox: Arc<dyn Inbox>) -> linchpin_client::Result<&'static str> {
///     let connection = RawConnection::open(&server, RawOptions::new(Features::all().collect()), inbox).await?;
///     Ok(connection.agreed.features.revision.as_str())
/// }
/// ```
pub struct RawConnection {
    /// The transport, on which the revision has been negotiated.
    pub transport: Arc<dyn ClientTransport>,
    /// The revision, and the server's first message.
    pub agreed: Agreed,
}

impl RawConnection {
    /// Opens a connection and negotiates its revision. The caller sends `notifications/initialized`.
    ///
    /// # Errors
    /// If the server cannot be reached, or there is no common revision.
    pub async fn open(connector: &dyn Connector, options: RawOptions, inbox: Arc<dyn Inbox>) -> Result<RawConnection> {
        if options.accepted.is_empty() {
            return Err(Error::connect("no protocol version is accepted", None));
        }
        let raw = Raw { connector, options, dials: Arc::new(Dials { inbox, state: Mutex::default() }) };
        let (transport, agreed, ()) = negotiated(&raw).await?;
        transport.negotiated(agreed.features);
        raw.dials.agreed();
        Ok(RawConnection { transport, agreed })
    }
}

impl fmt::Debug for RawConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawConnection")
            .field("revision", &self.agreed.features.revision.as_str())
            .finish_non_exhaustive()
    }
}

struct Raw<'a> {
    connector: &'a dyn Connector,
    options: RawOptions,
    dials: Arc<Dials>,
}

/// The connections that are tried while the revision is negotiated. What one says that was given up is ignored.
struct Dials {
    inbox: Arc<dyn Inbox>,
    state: Mutex<DialState>,
}

#[derive(Default)]
struct DialState {
    /// The number of the latest.
    latest: u64,
    /// It is the one that stays.
    agreed: bool,
    /// Why it ended, before that was known.
    ended: Option<TransportError>,
}

impl Dials {
    fn next(self: &Arc<Self>) -> Tried {
        let mut state = lock(&self.state);
        state.latest += 1;
        state.ended = None;
        Tried { dials: self.clone(), number: state.latest }
    }

    /// The latest connection stays.
    fn agreed(&self) {
        let ended = {
            let mut state = lock(&self.state);
            state.agreed = true;
            state.ended.take()
        };
        if let Some(why) = ended {
            self.inbox.closed(why);
        }
    }
}

/// The inbox of one of them.
struct Tried {
    dials: Arc<Dials>,
    number: u64,
}

impl Inbox for Tried {
    fn received(&self, message: Message, during: Option<u64>) {
        if lock(&self.dials.state).latest == self.number {
            self.dials.inbox.received(message, during);
        }
    }

    fn closed(&self, why: TransportError) {
        {
            let mut state = lock(&self.dials.state);
            if state.latest != self.number {
                return;
            }
            if !state.agreed {
                state.ended = Some(why);
                return;
            }
        }
        self.dials.inbox.closed(why);
    }

    fn forgotten(&self) {
        if lock(&self.dials.state).latest == self.number {
            self.dials.inbox.forgotten();
        }
    }
}

impl Opening for Raw<'_> {
    type Post = ();

    fn accepted(&self) -> &[&'static Features] {
        &self.options.accepted
    }

    fn known(&self) -> Option<&'static Features> {
        None
    }

    fn connector(&self) -> &dyn Connector {
        self.connector
    }

    fn limits(&self) -> &ClientLimits {
        &self.options.limits
    }

    fn render(&self, attempt: Attempt) -> Outgoing {
        let id = self.options.ids.fetch_add(1, Ordering::Relaxed);
        let (capabilities, info) = (&*self.options.capabilities, &*self.options.client_info);
        match attempt {
            Attempt::Discover(features) => {
                let claims = translate::claims(features, capabilities, Some(info), None);
                let claims = format!("{{{}}}", String::from_utf8_lossy(&claims));
                let mut out = Writer::opening().request(id, "server/discover", Extras::default(), |members| {
                    members.raw("_meta", &claims);
                });
                out.features = Some(features);
                out
            }
            Attempt::Initialize(features) => {
                Writer::opening().request(id, "initialize", Extras::default(), |members| {
                    members.text("protocolVersion", features.revision.as_str());
                    members.raw("capabilities", capabilities);
                    members.raw("clientInfo", info);
                })
            }
        }
    }

    fn dial(&self) -> BoxFuture<'_, Result<Dialed<()>>> {
        Box::pin(async move {
            let options = ConnectOptions::new(Arc::new(self.dials.next()), self.options.limits.clone())
                .with(|options| options.tap = self.options.tap.clone());
            let link = self.connector.connect(options).await.map_err(Error::connecting)?;
            Ok((link, ()))
        })
    }
}
