//! Opening a connection: negotiates the revision, as [`linchpin_proto::negotiation`] directs.

use crate::active_transport::ActiveTransport;
use crate::config::ClientConfig;
use crate::connection_state::{ConnectionState, Event};
use crate::error::{Error, ErrorKind};
use crate::incoming::HEARD_OTHERWISE;
use crate::incoming::Incoming;
use crate::lock::lock;
use crate::server_requests::OWN;
use crate::{Result, listen};
use linchpin_core::message::Kind;
use linchpin_core::service::{BoxFuture, boxed};
use linchpin_core::{
    Agreed, Answer, ClientLimits, ClientTransport, ConnectOptions, Connector, Features, Outgoing, TransportError,
};
use linchpin_proto::message_writer::{Extras, Writer};
use linchpin_proto::negotiation::{Attempt, Negotiation, Outcome, Verdict};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

pub(crate) async fn connect(config: Arc<ClientConfig>, connector: Arc<dyn Connector>) -> Result<Arc<ConnectionState>> {
    if config.accepted.is_empty() {
        return Err(Error::connect("this client accepts no protocol version; name one with `revisions`", None));
    }
    if let Some((method, advice)) = OWN.into_iter().find(|(own, _)| config.answers.custom.contains_key(*own)) {
        return Err(Error::new(ErrorKind::InvalidRequest, format!("`on_request` cannot answer {method}: {advice}")));
    }
    if let Some((name, instead)) = HEARD_OTHERWISE.into_iter().find(|(own, _)| config.notifications.contains_key(*own))
    {
        let why = format!("`on_notification` never hears {name}, which the client handles: {instead}");
        return Err(Error::new(ErrorKind::InvalidRequest, why));
    }
    config.book.prepare().await?;
    let core = Arc::new(ConnectionState::new(config, connector));
    let live = core.reopen(0).await?;
    hear(&core);
    listen::lists_for_handler(&core, &live);
    Ok(core)
}

/// Runs the host's callbacks, one event after the other.
fn hear(core: &ConnectionState) {
    let (on_log, on_change) = (core.config.on_log.clone(), core.config.on_change.clone());
    if on_log.is_none() && on_change.is_none() && core.config.notifications.is_empty() {
        return;
    }
    let (events, server) = (core.events.clone(), core.server_name());
    tokio::spawn(boxed(async move {
        while let Some(event) = events.next().await {
            // One panic must not silence what follows.
            let heard = catch_unwind(AssertUnwindSafe(|| match event {
                Event::Log(message) => on_log.iter().for_each(|hear| hear(message.clone())),
                Event::Change(change) => on_change.iter().for_each(|hear| hear(change.clone())),
                Event::Notification(hear, params) => hear(&server, &params),
            }));
            if heard.is_err() {
                tracing::error!("a callback of the host panicked");
            }
        }
    }));
}

/// A new transport, and what receives its other messages.
pub(crate) type Dialed<P> = (Arc<dyn ClientTransport>, P);

/// What is opened: the connection of a host, or one whose messages others write.
pub(crate) trait Opening: Send + Sync {
    /// Receives the transport's other messages.
    type Post: Send;

    /// What may be agreed on, what is wanted most first.
    fn accepted(&self) -> &[&'static Features];
    /// What the same server spoke last time.
    fn known(&self) -> Option<&'static Features>;
    fn connector(&self) -> &dyn Connector;
    fn limits(&self) -> &ClientLimits;
    /// Writes the message of an attempt.
    fn render(&self, attempt: Attempt) -> Outgoing;
    /// Opens a transport.
    fn dial(&self) -> BoxFuture<'_, Result<Dialed<Self::Post>>>;
}

/// Opens a transport and negotiates a revision, within the limit; the time of a user who logs in does not count, and a child
/// that writes to standard error gets more.
pub(crate) async fn negotiated<O: Opening>(opening: &O) -> Result<(Arc<dyn ClientTransport>, Agreed, O::Post)> {
    let limits = opening.limits();
    let limit = Duration::from_millis(limits.connections.open_ms_max);
    let (begun, child_limit) = (Instant::now(), Duration::from_millis(limits.child.open_ms_max));
    let (mut wait, mut written) = (limit, 0);
    let current = Current::default();
    let mut work = std::pin::pin!(agree(opening, &current));
    loop {
        match tokio::time::timeout(wait, work.as_mut()).await {
            Ok(done) => return done,
            Err(_) if current.waits_for_user() => {}
            Err(elapsed) => {
                let left = child_limit.saturating_sub(begun.elapsed());
                let before = std::mem::replace(&mut written, current.stderr_bytes());
                if written > before && !left.is_zero() {
                    wait = limit.min(left);
                    continue;
                }
                current.close().await;
                let (waited, which) = match left.is_zero() && child_limit > limit {
                    true => (child_limit, "child.open_ms_max"),
                    false => (limit, "connections.open_ms_max"),
                };
                let (name, waited) = (opening.connector().name(), waited.as_secs_f64());
                let what = match lock(&current.asked).join(" or ") {
                    none if none.is_empty() => "finish opening".to_owned(),
                    asked => format!("answer {asked}"),
                };
                let why = format!("{name} did not {what} within {waited} s ({which})");
                return Err(Error::connect_late(&why, elapsed));
            }
        }
    }
}

impl Opening for Arc<ConnectionState> {
    type Post = Arc<Incoming>;

    fn accepted(&self) -> &[&'static Features] {
        &self.config.accepted
    }

    fn known(&self) -> Option<&'static Features> {
        self.connector.key().and_then(|key| self.config.known.get(&key))
    }

    fn connector(&self) -> &dyn Connector {
        &*self.connector
    }

    fn limits(&self) -> &ClientLimits {
        &self.config.limits
    }

    fn render(&self, attempt: Attempt) -> Outgoing {
        render(self, attempt)
    }

    fn dial(&self) -> BoxFuture<'_, Result<Dialed<Arc<Incoming>>>> {
        Box::pin(open_transport(self))
    }
}

/// Opens a transport, negotiates a revision, and makes the transport the current one.
pub(crate) async fn open(core: &Arc<ConnectionState>) -> Result<Arc<ActiveTransport>> {
    let (link, agreed, post) = negotiated(core).await?;
    let config = &core.config;
    let features = agreed.features;
    if let Some(key) = core.connector.key() {
        config.known.learn(key, features);
    }
    let writer = Writer::new(features, &config.implementation(features), &config.capabilities(features));
    if features.has_sessions {
        link.notify(writer.notification("notifications/initialized", |_| {})).await?;
    }
    link.negotiated(features);
    let live = Arc::new(ActiveTransport {
        link,
        agreed,
        writer,
        generation: post.generation,
        since: Instant::now(),
        lost: OnceLock::new(),
    });
    core.live.store(Some(live.clone()));
    post.opened(&live);
    set_log_level(core, &live).await;
    Ok(live)
}

/// Sends the log level to a server with sessions. A refusal does not close the connection.
pub(crate) async fn set_log_level(core: &ConnectionState, live: &ActiveTransport) {
    let level = *lock(&core.log_level);
    let (Some(level), true) = (level, live.agreed.features.has_sessions && live.agreed.capabilities.logging.is_some())
    else {
        return;
    };
    let out = live.writer.request(core.next_id(), "logging/setLevel", Extras::default(), |members| {
        members.text("level", level.as_str());
    });
    let limit = Duration::from_millis(core.config.limits.connections.probe_ms_max);
    if !matches!(tokio::time::timeout(limit, live.link.exchange(out)).await, Ok(Ok(_))) {
        tracing::debug!("the server did not take the log level");
    }
}

/// The transport that is being opened, for timeouts.
#[derive(Default)]
struct Current {
    link: Mutex<Option<Arc<dyn ClientTransport>>>,
    /// The requests that it has not answered.
    asked: Mutex<Vec<&'static str>>,
}

impl Current {
    fn get(&self) -> Option<Arc<dyn ClientTransport>> {
        lock(&self.link).clone()
    }

    fn asks(&self, attempt: Attempt) {
        lock(&self.asked).push(match attempt {
            Attempt::Discover(_) => "server/discover",
            Attempt::Initialize(_) => "initialize",
        });
    }

    fn waits_for_user(&self) -> bool {
        self.get().is_some_and(|link| link.waits_for_user())
    }

    fn stderr_bytes(&self) -> u64 {
        self.get().map_or(0, |link| link.stderr_bytes())
    }

    async fn close(&self) {
        if let Some(link) = self.get() {
            link.close().await;
        }
    }
}

async fn agree<O: Opening>(target: &O, current: &Current) -> Result<(Arc<dyn ClientTransport>, Agreed, O::Post)> {
    let mut opening = Negotiation::new(target.accepted().to_vec(), target.known());
    let mut attempt = opening.first();
    let (mut link, mut post) = target.dial().await?;
    loop {
        *lock(&current.link) = Some(link.clone());
        let heard = attempt_on(target, current, &link, attempt).await;
        lock(&current.asked).clear();
        let verdict = match &heard {
            ProbeOutcome::Answer(at, answer) => {
                opening.at(*at);
                match &answer.message.kind {
                    Kind::Response { outcome: Ok(result), .. } => {
                        opening.took(Outcome::Result(answer.message.text(*result)))
                    }
                    Kind::Response { outcome: Err(error), .. } => {
                        opening.took(Outcome::Error(answer.message.text(*error), answer.status))
                    }
                    _ => opening.took(Outcome::Unreadable("something that answers nothing")),
                }
            }
            ProbeOutcome::Failed(TransportError::Status { status, .. }) => opening.took(Outcome::Status(*status)),
            ProbeOutcome::Failed(TransportError::Closed(how)) => opening.took(Outcome::Gone(how)),
            ProbeOutcome::Failed(TransportError::Unreadable(what) | TransportError::CutOff(what)) => {
                opening.took(Outcome::Unreadable(what))
            }
            ProbeOutcome::Failed(TransportError::Forgotten) => opening.took(Outcome::Status(404)),
            ProbeOutcome::Failed(why) => {
                link.close().await;
                return Err(Error::connecting(why.clone()));
            }
        };
        let cause = match heard {
            ProbeOutcome::Failed(why) => Some(why),
            ProbeOutcome::Answer(_, answer) => refused_with(&answer),
        };
        match verdict {
            Verdict::Agreed(agreed) => return Ok((link, *agreed, post)),
            Verdict::Again(next) => attempt = next,
            Verdict::Redial(next) => {
                link.close().await;
                ((link, post), attempt) = (target.dial().await?, next);
            }
            Verdict::Elsewhere(next, why) => match link.fallback().await {
                Some(Ok(other)) => (link, attempt) = (other, next),
                Some(Err(also)) if status(&also).is_some_and(|also| cause.as_ref().and_then(status) == Some(also)) => {
                    return failed(&link, &why, cause).await;
                }
                Some(Err(also)) => return failed(&link, &format!("{why}; {also}"), cause).await,
                None => return failed(&link, &why, cause).await,
            },
            Verdict::Failed(why) => return failed(&link, &why, cause).await,
        }
    }
}

/// The HTTP status of an error response.
fn refused_with(answer: &Answer) -> Option<TransportError> {
    let status = answer.status.filter(|status| *status >= 400)?;
    Some(TransportError::Status { status, body: "".into() })
}

fn status(why: &TransportError) -> Option<u16> {
    if let TransportError::Status { status, .. } = why { Some(*status) } else { None }
}

async fn failed<T>(link: &Arc<dyn ClientTransport>, why: &str, cause: Option<TransportError>) -> Result<T> {
    link.close().await;
    Err(Error::connect(why, cause))
}

async fn open_transport(core: &Arc<ConnectionState>) -> Result<(Arc<dyn ClientTransport>, Arc<Incoming>)> {
    let generation = core.generations.fetch_add(1, Ordering::Relaxed) + 1;
    let post = Arc::new(Incoming::new(core, generation));
    let options = ConnectOptions::new(post.clone(), core.config.limits.clone())
        .with(|options| options.tap = core.config.tap.clone());
    let link = core.connector.connect(options).await.map_err(Error::connecting)?;
    post.attach(&link);
    Ok((link, post))
}

/// The outcome of an attempt, and which attempt it was: a late response to the probe counts too.
#[expect(clippy::large_enum_variant, reason = "one lives for the length of a match")]
enum ProbeOutcome {
    Answer(Attempt, Answer),
    Failed(TransportError),
}

impl ProbeOutcome {
    fn of(attempt: Attempt, outcome: Result<Answer, TransportError>) -> ProbeOutcome {
        outcome.map_or_else(ProbeOutcome::Failed, |answer| ProbeOutcome::Answer(attempt, answer))
    }
}

async fn attempt_on<O: Opening>(
    target: &O,
    current: &Current,
    link: &Arc<dyn ClientTransport>,
    attempt: Attempt,
) -> ProbeOutcome {
    current.asks(attempt);
    let work = link.exchange(target.render(attempt));
    let (Attempt::Discover(_), true) = (attempt, link.may_stay_silent()) else {
        return ProbeOutcome::of(attempt, work.await);
    };
    let mut work = std::pin::pin!(work);
    let probe = Duration::from_millis(target.limits().connections.probe_ms_max);
    if let Ok(outcome) = tokio::time::timeout(probe, work.as_mut()).await {
        return ProbeOutcome::of(attempt, outcome);
    }
    let Some(session) = target.accepted().iter().copied().find(|features| features.has_sessions) else {
        return ProbeOutcome::of(attempt, work.await);
    };
    // No response yet: slow, or an old revision. If the handshake succeeds, it decides: some servers of both eras answer the
    // probe too, and speak in sessions only from then on.
    let handshake = Attempt::Initialize(session);
    current.asks(handshake);
    let mut hello = std::pin::pin!(link.exchange(target.render(handshake)));
    tokio::select! {
        biased;
        outcome = &mut work => match outcome {
            Ok(answer) if is_result(&answer) => match tokio::time::timeout(probe, hello).await {
                Ok(Ok(opened)) if is_result(&opened) => ProbeOutcome::Answer(handshake, opened),
                _ => ProbeOutcome::Answer(attempt, answer),
            },
            Err(why) => ProbeOutcome::Failed(why),
            // A late error: only the handshake can succeed now.
            Ok(_) => ProbeOutcome::of(handshake, hello.await),
        },
        outcome = &mut hello => match outcome {
            Ok(answer) if !is_result(&answer) => {
                // Refused before the probe was answered: wait for the probe for the remaining time.
                match tokio::time::timeout(probe, work).await {
                    Ok(late) => ProbeOutcome::of(attempt, late),
                    Err(_) => ProbeOutcome::Answer(handshake, answer),
                }
            }
            other => ProbeOutcome::of(handshake, other),
        },
    }
}

fn is_result(answer: &Answer) -> bool {
    matches!(answer.message.kind, Kind::Response { outcome: Ok(_), .. })
}

fn render(core: &ConnectionState, attempt: Attempt) -> Outgoing {
    let (id, config) = (core.next_id(), &core.config);
    match attempt {
        Attempt::Discover(features) => Writer::new(
            features,
            &config.implementation(features),
            &config.capabilities(features),
        )
        .request(id, "server/discover", Extras::default(), |_| {}),
        Attempt::Initialize(features) => Writer::opening().request(id, "initialize", Extras::default(), |members| {
            members.text("protocolVersion", features.revision.as_str());
            // Structs of strings and raw JSON: serialising cannot fail.
            let _ = members.value("capabilities", &config.capabilities(features));
            let _ = members.value("clientInfo", &config.implementation(features));
        }),
    }
}
