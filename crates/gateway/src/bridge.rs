//! A server behind another transport.

use crate::call::{Forwarded, Outlet};
use crate::forward::run;
use crate::lock;
use crate::options::{BridgeOptions, Isolation};
use crate::owner::LISTS;
use crate::parked::Parking;
use crate::place::Core;
use crate::pool::Pool;
use crate::tapped::tapped;
use crate::tool_filter::ToolFilter;
use linchpin_core::message::{Notification, Request};
use linchpin_core::service::{BoxFuture, CallStart, ConfigError, HeaderParam, IntoService, RequestContext, Service};
use linchpin_core::subscription::Filter;
use linchpin_core::{Budget, Caller, Connector, Features, Limits, Method, Reply, SubscriptionHandle, Traffic};
use linchpin_proto::translate::{self, Claims};
use linchpin_types::error::code;
use serde_json::json;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Context;
use std::time::Duration;

/// How long the upstreams' connections may take to close at the end.
const END_TIME: Duration = Duration::from_secs(5);

/// A server behind another transport and another revision: a service whose calls are those of its upstream.
///
/// The upstream is anything a client can connect to. The connection to it is opened when the first client needs it. By
/// default, each client with a session, or on a pipe, has its own connection, so that requests of the upstream reach
/// the right client.
///
/// ```
/// use linchpin_core::Connector;
/// use linchpin_gateway::{Bridge, Isolation};
///
/// fn behind(upstream: impl Connector) -> Bridge {
///     Bridge::new(upstream).options(|options| {
///         options.isolation = Isolation::Shared;
///         options.idle_stop_ms = 60_000;
///     })
/// }
/// ```
#[must_use = "nothing happens until it is served"]
#[derive(Clone)]
pub struct Bridge {
    connector: Arc<dyn Connector>,
    options: BridgeOptions,
    /// The pool of the service that was made, for probes.
    made: Arc<Mutex<Option<Arc<Pool>>>>,
}

impl Bridge {
    /// Creates a bridge to the server that this connector reaches.
    pub fn new(connector: impl Connector) -> Bridge {
        Bridge::to(Arc::new(connector))
    }

    /// Like [`Bridge::new`], but for a shared connector.
    pub fn to(connector: Arc<dyn Connector>) -> Bridge {
        Bridge { connector, options: BridgeOptions::default(), made: Arc::default() }
    }

    /// Changes some of the options.
    pub fn options(mut self, change: impl FnOnce(&mut BridgeOptions)) -> Bridge {
        change(&mut self.options);
        self
    }

    /// Checks whether the upstream is usable, for probes. An upstream that has not been needed yet counts as usable.
    ///
    /// # Errors
    /// The reason, for the operator.
    pub fn ready(&self) -> Result<(), String> {
        lock(&self.made).as_ref().map_or(Ok(()), |pool| pool.ready())
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").field("upstream", &self.connector.name()).field("options", &self.options).finish()
    }
}

impl IntoService for Bridge {
    fn into_shared(self) -> Result<Arc<dyn Service>, ConfigError> {
        /// Keys of values that are not those of handlers.
        static KEYS: AtomicU64 = AtomicU64::new(1 << 62);
        if self.options.upstream.is_empty() {
            return Err(ConfigError::new("no revision is allowed for the upstream"));
        }
        if self.options.clients.is_empty() {
            return Err(ConfigError::new("no revision is allowed for clients"));
        }
        let options = Arc::new(self.options);
        let tool_filter = ToolFilter::new(&options.tools, &options.hidden_tools);
        let parking = Arc::new(Parking::default());
        let pool = Arc::new(Pool::new(self.connector, options.clone(), parking.clone()));
        *lock(&self.made) = Some(pool.clone());
        let core = Core {
            pool,
            budget: Budget::new(options.limits.connections.memory_bytes_max),
            key: KEYS.fetch_add(2, Ordering::Relaxed),
            users: Mutex::default(),
            first: Default::default(),
            lent: Mutex::default(),
            tool_filter,
            parking,
            mirrored: Default::default(),
        };
        Ok(Arc::new(Running { core: Arc::new(core), limits: options.limits.clone() }))
    }
}

/// A bridge behind its transports.
struct Running {
    core: Arc<Core>,
    limits: Arc<Limits>,
}

impl Service for Running {
    fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.core.budget
    }

    fn start(&self, request: Arc<Request>, context: Arc<RequestContext>, cx: &mut Context<'_>) -> CallStart {
        match &self.core.pool.options.client_tap {
            None => self.begin(request, context, cx),
            Some(tap) => {
                tap.saw(Traffic::Heard(&request.frame));
                tapped(self.begin(request, context, cx), tap)
            }
        }
    }

    fn defines(&self, _: &str) -> bool {
        // Whether a method exists is up to the upstream.
        true
    }

    fn notified(&self, told: Notification, context: Arc<RequestContext>) {
        if let Some(tap) = &self.core.pool.options.client_tap {
            tap.saw(Traffic::Heard(&told.frame));
        }
        self.tell(&told, &context);
    }

    fn header_params(&self, tool: &str, _: &Caller, _: &RequestContext) -> Option<Arc<[HeaderParam]>> {
        // Of upstreams that compare them themselves nothing is known.
        self.core.mirrored.known(tool)
    }

    fn open_feed(&self, _: &Caller, context: &RequestContext) -> Option<SubscriptionHandle> {
        let filter = Filter { tools: true, prompts: true, resources: true };
        let max = self.limits.subscriptions.streams_max + self.limits.sessions.concurrent_max;
        self.core.sessions(context).open(filter, max)
    }

    fn session_resumed(&self, caller: &Caller, context: &RequestContext) {
        if let Some(owner) = self.core.own(caller, context) {
            owner.is_ready();
        }
        // Nobody has watched its lists meanwhile.
        if let Some(feed) = caller.session().and_then(|session| session.feed()) {
            for list in &LISTS {
                feed.feed().push(list);
            }
        }
    }

    fn close(&self) {
        self.core.close();
    }

    fn ended(&self) -> BoxFuture<'static, ()> {
        let pool = self.core.pool.clone();
        Box::pin(async move {
            if tokio::time::timeout(END_TIME, pool.close()).await.is_err() {
                tracing::debug!("the upstreams did not close in time");
            }
        })
    }
}

impl Running {
    fn begin(&self, request: Arc<Request>, context: Arc<RequestContext>, cx: &mut Context<'_>) -> CallStart {
        let served = &self.core.pool.options.clients;
        if !served.iter().any(|features| features.index == request.caller.features().index) {
            return CallStart::Done(not_served(&request, served));
        }
        if let Some(refused) = self.core.tool_filter.refused(&request) {
            return CallStart::Done(refused);
        }
        if request.known() == Some(Method::Ping) {
            return CallStart::Done(Reply::with_result(&request.id, "{}".into()));
        }
        let token = request.progress_token.map(|span| request.text(span).into());
        let listens = request.known() == Some(Method::SubscriptionsListen);
        let may_ask = request.caller.features().server_requests && request.known() != Some(Method::Initialize);
        let outlet = Outlet::new(request.id.clone(), token, listens, may_ask);
        if !request.caller.features().progress_message {
            outlet.omit_texts();
        }
        let shares = matches!(self.core.pool.options.isolation, Isolation::Shared | Isolation::User);
        if request.caller.features().log_level_per_request || shares {
            outlet.set_logs(request.caller.log_level());
        }
        let work = Box::pin(run(self.core.clone(), request, context, outlet.clone()));
        let mut call = Forwarded::new(work, outlet);
        match call.begin(cx) {
            Some(reply) => CallStart::Done(reply),
            None => CallStart::Running(Box::new(call)),
        }
    }

    fn tell(&self, told: &Notification, context: &RequestContext) {
        let Some(owner) = self.core.own(&told.caller, context) else { return };
        if told.method.as_str() == "notifications/initialized" {
            return owner.is_ready();
        }
        let Some(instance) = owner.current() else { return };
        let (client, upstream) = (told.caller.features(), instance.features());
        if client.has_sessions != upstream.has_sessions {
            tracing::debug!(method = told.method.as_str(), "the upstream's revision does not have this notification");
            return;
        }
        instance.send(translate::notification(told, upstream, Claims::Keep));
    }
}

/// The refusal of a request in a revision that is not served, although it could be.
fn not_served(request: &Request, served: &[&'static Features]) -> Reply {
    let supported: Vec<&str> = served.iter().map(|features| features.revision.as_str()).collect();
    let data = json!({ "supported": supported, "requested": request.caller.features().revision.as_str() });
    let why = "this protocol version is not served here";
    Reply::error(Some(&request.id), code::UNSUPPORTED_PROTOCOL_VERSION, why, Some(&data.to_string()))
}
