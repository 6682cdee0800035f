//! Opening: finding out what a server speaks, by doing what [`linchpin_proto::opening`] says.

use crate::client::Recipe;
use crate::connection::Connection;
use crate::core::{Core, Event, Live, lock};
use crate::error::Error;
use crate::inbox::Post;
use crate::{Result, listen};
use linchpin_proto::frame::Kind;
use linchpin_proto::opening::{Agreed, Attempt, Opening, Outcome, Verdict};
use linchpin_proto::outgoing::{Extras, Writer};
use linchpin_proto::{Answer, Dial, Dialing, Link, LinkError, Outgoing, Wire};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// What servers spoke last time, by the keys of their places.
#[derive(Default)]
pub(crate) struct Known(Mutex<HashMap<String, &'static Wire>>);

/// Servers remembered; past it the memory starts anew.
const KNOWN_MAX: usize = 4_096;

impl Known {
    fn get(&self, key: &str) -> Option<&'static Wire> {
        lock(&self.0).get(key).copied()
    }

    fn learn(&self, key: String, wire: &'static Wire) {
        let mut known = lock(&self.0);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key, wire);
    }
}

pub(crate) async fn connect(recipe: Arc<Recipe>, dial: Arc<dyn Dial>) -> Result<Connection> {
    if recipe.accepted.is_empty() {
        return Err(Error::Connect("this client accepts no protocol version; name one with `revisions`".to_owned()));
    }
    let core = Arc::new(Core::new(recipe, dial));
    let live = core.reopen(0).await?;
    hear(&core);
    listen::lists_for_handler(&core, &live);
    Ok(Connection::new(core))
}

/// Runs the host's handlers, one event after the other.
fn hear(core: &Core) {
    let (on_log, on_change) = (core.recipe.on_log.clone(), core.recipe.on_change.clone());
    if on_log.is_none() && on_change.is_none() {
        return;
    }
    let events = core.events.clone();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            match event {
                Event::Log(message) => on_log.iter().for_each(|hear| hear(message.clone())),
                Event::Change(change) => on_change.iter().for_each(|hear| hear(change.clone())),
            }
        }
    });
}

/// Dials, agrees on a revision, and makes the link the one that is used.
pub(crate) async fn open(core: &Arc<Core>) -> Result<Arc<Live>> {
    let limit = Duration::from_millis(core.recipe.limits.open_ms_max);
    let current = Current::default();
    let mut work = std::pin::pin!(agree(core, &current));
    let (link, agreed, post) = loop {
        match tokio::time::timeout(limit, work.as_mut()).await {
            Ok(done) => break done?,
            Err(_) if current.waits_for_person() => {}
            Err(_) => {
                current.close().await;
                let name = core.dial.name();
                let why = format!("{name} did not finish opening within {} ms (open_ms_max)", limit.as_millis());
                return Err(Error::Connect(why));
            }
        }
    };
    let recipe = &core.recipe;
    let wire = agreed.wire;
    if let Some(key) = core.dial.key() {
        recipe.known.learn(key, wire);
    }
    let writer = Writer::new(wire, &recipe.implementation(wire), &recipe.capabilities(wire));
    if wire.has_sessions {
        link.tell(writer.notification("notifications/initialized", |_| {})).await?;
    }
    link.settled(wire);
    let live = Arc::new(Live {
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

/// Tells a server with sessions which log messages are wanted. A refusal is no reason to give up the connection.
pub(crate) async fn set_log_level(core: &Core, live: &Live) {
    let level = *lock(&core.log_level);
    let (Some(level), true) = (level, live.agreed.wire.has_sessions && live.agreed.capabilities.logging.is_some())
    else {
        return;
    };
    let out = live.writer.request(core.next_id(), "logging/setLevel", Extras::default(), |members| {
        members.text("level", level.as_str());
    });
    let limit = Duration::from_millis(core.recipe.limits.probe_ms_max);
    if !matches!(tokio::time::timeout(limit, live.link.exchange(out)).await, Ok(Ok(_))) {
        tracing::debug!("the server did not take the log level");
    }
}

/// The link that is being opened, for deadlines.
#[derive(Default)]
struct Current(Mutex<Option<Arc<dyn Link>>>);

impl Current {
    fn get(&self) -> Option<Arc<dyn Link>> {
        lock(&self.0).clone()
    }

    fn waits_for_person(&self) -> bool {
        self.get().is_some_and(|link| link.waits_for_person())
    }

    async fn close(&self) {
        if let Some(link) = self.get() {
            link.close().await;
        }
    }
}

async fn agree(core: &Arc<Core>, current: &Current) -> Result<(Arc<dyn Link>, Agreed, Arc<Post>)> {
    let known = core.dial.key().and_then(|key| core.recipe.known.get(&key));
    let mut opening = Opening::new(core.recipe.accepted.clone(), known);
    let mut attempt = opening.first();
    let (mut link, mut post) = dial(core).await?;
    loop {
        *lock(&current.0) = Some(link.clone());
        let heard = attempt_on(core, &link, attempt).await;
        let verdict = match &heard {
            Heard::Answer(at, answer) => {
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
            Heard::Failed(LinkError::Status { status, .. }) => opening.took(Outcome::Status(*status)),
            Heard::Failed(LinkError::Closed(how)) => opening.took(Outcome::Gone(how)),
            Heard::Failed(LinkError::Unreadable(what) | LinkError::CutOff(what)) => {
                opening.took(Outcome::Unreadable(what))
            }
            Heard::Failed(LinkError::Forgotten) => opening.took(Outcome::Status(404)),
            Heard::Failed(why @ (LinkError::Unreachable(_) | LinkError::Unauthorized(_))) => {
                Verdict::Failed(why.to_string())
            }
        };
        match verdict {
            Verdict::Agreed(agreed) => return Ok((link, *agreed, post)),
            Verdict::Again(next) => attempt = next,
            Verdict::Redial(next) => {
                link.close().await;
                ((link, post), attempt) = (dial(core).await?, next);
            }
            Verdict::Elsewhere(next, why) => match link.fallback().await {
                Some(Ok(other)) => (link, attempt) = (other, next),
                Some(Err(also)) => return failed(&link, format!("{why}; {also}")).await,
                None => return failed(&link, why).await,
            },
            Verdict::Failed(why) => return failed(&link, why).await,
        }
    }
}

async fn failed<T>(link: &Arc<dyn Link>, why: String) -> Result<T> {
    link.close().await;
    Err(Error::Connect(why))
}

async fn dial(core: &Arc<Core>) -> Result<(Arc<dyn Link>, Arc<Post>)> {
    let generation = core.generations.fetch_add(1, Ordering::Relaxed) + 1;
    let post = Arc::new(Post::new(core, generation));
    let dialing = Dialing { inbox: post.clone(), limits: core.recipe.limits.clone(), tap: core.recipe.tap.clone() };
    let link = core.dial.dial(dialing).await.map_err(|why| Error::Connect(why.to_string()))?;
    post.dialled(&link);
    Ok((link, post))
}

/// What came of an attempt, and of which: a late answer to the probe counts too.
#[expect(clippy::large_enum_variant, reason = "one lives for the length of a match")]
enum Heard {
    Answer(Attempt, Answer),
    Failed(LinkError),
}

impl Heard {
    fn of(attempt: Attempt, outcome: Result<Answer, LinkError>) -> Heard {
        outcome.map_or_else(Heard::Failed, |answer| Heard::Answer(attempt, answer))
    }
}

async fn attempt_on(core: &Core, link: &Arc<dyn Link>, attempt: Attempt) -> Heard {
    let work = link.exchange(render(core, attempt));
    let (Attempt::Discover(_), true) = (attempt, link.may_stay_silent()) else {
        return Heard::of(attempt, work.await);
    };
    let mut work = std::pin::pin!(work);
    let probe = Duration::from_millis(core.recipe.limits.probe_ms_max);
    if let Ok(outcome) = tokio::time::timeout(probe, work.as_mut()).await {
        return Heard::of(attempt, outcome);
    }
    let Some(session) = core.recipe.accepted.iter().copied().find(|wire| wire.has_sessions) else {
        return Heard::of(attempt, work.await);
    };
    // Silent until now: slow, or old. Whichever question is answered first tells which.
    let handshake = Attempt::Initialize(session);
    let mut hello = std::pin::pin!(link.exchange(render(core, handshake)));
    tokio::select! {
        biased;
        outcome = &mut work => match outcome {
            Ok(answer) if is_result(&answer) => Heard::Answer(attempt, answer),
            Err(why) => Heard::Failed(why),
            // A late error: only the handshake can help now.
            Ok(_) => Heard::of(handshake, hello.await),
        },
        outcome = &mut hello => match outcome {
            Ok(answer) if !is_result(&answer) => {
                // Refused while the probe has no answer yet: give that the rest of the time.
                match tokio::time::timeout(probe, work).await {
                    Ok(late) => Heard::of(attempt, late),
                    Err(_) => Heard::Answer(handshake, answer),
                }
            }
            other => Heard::of(handshake, other),
        },
    }
}

fn is_result(answer: &Answer) -> bool {
    matches!(answer.message.kind, Kind::Response { outcome: Ok(_), .. })
}

fn render(core: &Core, attempt: Attempt) -> Outgoing {
    let (id, recipe) = (core.next_id(), &core.recipe);
    match attempt {
        Attempt::Discover(wire) => Writer::new(wire, &recipe.implementation(wire), &recipe.capabilities(wire)).request(
            id,
            "server/discover",
            Extras::default(),
            |_| {},
        ),
        Attempt::Initialize(wire) => Writer::opening().request(id, "initialize", Extras::default(), |members| {
            members.text("protocolVersion", wire.revision.as_str());
            // Structs of text and raw JSON: they cannot fail to be written.
            let _ = members.value("capabilities", &recipe.capabilities(wire));
            let _ = members.value("clientInfo", &recipe.implementation(wire));
        }),
    }
}
