//! A client's side: its context, opened on its first call and gone with its session; its console and its screenshots.

use crate::browser::Browser;
use crate::config::Config;
use crate::console::Log;
use crate::context::Context;
use crate::egress::Egress;
use crate::page::Page;
use crate::routes::Tabs;
use crate::shots;
use linchpin::{Audience, Cx, Handle, Peer};
use linchpin_kit::{ErrorKind, ToolError};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The resource of a client's console.
pub(crate) const CONSOLE: &str = "console://logs";
/// Most screenshots that are kept for a client, and most bytes of them.
const SHOTS_MAX: usize = 64;
const SHOTS_BYTES_MAX: usize = 64 << 20;
/// How long a context may take to open.
const OPEN_TIME: Duration = Duration::from_secs(15);
/// How long the browser may take to say that it lives.
const PROBE_TIME: Duration = Duration::from_secs(2);
/// Principals whose requests have no session, and how long their contexts are kept without a call.
const PRINCIPALS_MAX: usize = 64;
const PRINCIPAL_TIME: Duration = Duration::from_secs(15 * 60);

/// Whose a screenshot is.
type Owner = (Audience, Weak<Session>);

/// What all clients share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) egress: Arc<Egress>,
    /// The browser, while a context is in it.
    browser: tokio::sync::Mutex<Weak<Browser>>,
    /// The sessions, so that their browser can be ended before the program.
    sessions: Mutex<Vec<Weak<Session>>>,
    /// Sessions of principals whose requests have none.
    principals: Mutex<HashMap<String, (Arc<Session>, Instant)>>,
    /// Whose the screenshots of a name are.
    shots: Mutex<HashMap<String, Vec<Owner>>>,
    handle: OnceLock<Handle>,
}

impl Shared {
    pub(crate) fn new(config: Config, egress: Egress) -> Arc<Self> {
        Arc::new(Self {
            config,
            egress: Arc::new(egress),
            browser: tokio::sync::Mutex::default(),
            sessions: Mutex::default(),
            principals: Mutex::default(),
            shots: Mutex::default(),
            handle: OnceLock::new(),
        })
    }

    /// Gets to know the server.
    pub(crate) fn serve(&self, handle: Handle) {
        let _ = self.handle.set(handle);
    }

    /// The browser, started if none runs.
    async fn browser(&self) -> Result<Arc<Browser>, ToolError> {
        let mut browser = self.browser.lock().await;
        if let Some(running) = browser.upgrade().filter(|running| running.is_alive()) {
            return Ok(running);
        }
        let started = Arc::new(Browser::launch(&self.config, &self.egress).await?);
        *browser = Arc::downgrade(&started);
        Ok(started)
    }

    /// Ends the browser, and waits until nothing of it is left.
    pub(crate) async fn close(&self) {
        let sessions = std::mem::take(&mut *lock(&self.sessions));
        lock(&self.principals).clear();
        let browser = self.browser.lock().await.upgrade();
        for session in sessions.iter().filter_map(Weak::upgrade) {
            session.context.lock().await.take();
        }
        match browser.map(Arc::try_unwrap) {
            Some(Ok(browser)) => browser.end().await,
            Some(Err(shared)) => shared.kill(),
            None => {}
        }
    }

    /// The session of a principal whose requests have none.
    fn of_principal(self: &Arc<Self>, identity: &str) -> Arc<Session> {
        let now = Instant::now();
        let mut principals = lock(&self.principals);
        principals.retain(|_, (_, used)| now.duration_since(*used) < PRINCIPAL_TIME);
        if principals.len() >= PRINCIPALS_MAX && !principals.contains_key(identity) {
            let oldest = principals.iter().min_by_key(|(_, (_, used))| *used).map(|(name, _)| name.clone());
            oldest.map(|name| principals.remove(&name));
        }
        let entry = principals.entry(identity.to_owned()).or_insert_with(|| (Session::new(self), now));
        entry.1 = now;
        entry.0.clone()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("config", &self.config).finish_non_exhaustive()
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client. Dropping it disposes of its context.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    context: tokio::sync::Mutex<Option<Arc<Context>>>,
    /// What its pages said and requested.
    pub(crate) log: Arc<Log>,
    /// What is known of its tabs: their snapshots.
    pub(crate) known: crate::act::Tabs,
    shots: Mutex<VecDeque<Shot>>,
    /// Who is told of its console.
    listener: Arc<Mutex<Option<Peer>>>,
}

/// A screenshot that is kept: PNG in base64.
struct Shot {
    name: String,
    data: Arc<str>,
}

impl Session {
    pub(crate) fn new(shared: &Arc<Shared>) -> Arc<Self> {
        let session = Arc::new(Self {
            shared: shared.clone(),
            context: tokio::sync::Mutex::default(),
            log: Arc::default(),
            known: crate::act::Tabs::default(),
            shots: Mutex::default(),
            listener: Arc::default(),
        });
        let mut sessions = lock(&shared.sessions);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(&session));
        drop(sessions);
        session
    }

    /// The client of a call: that of its session, or its principal's where it has none.
    ///
    /// # Errors
    /// When it has neither: then nobody could find its pages again.
    pub(crate) fn of(own: &Arc<Session>, cx: &Cx) -> Result<(Arc<Session>, Audience), ToolError> {
        if let Some(audience) = Audience::session(cx) {
            *lock(&own.listener) = cx.peer();
            return Ok((own.clone(), audience));
        }
        match cx.principal() {
            Some(principal) => Ok((own.shared.of_principal(principal.identity()), Audience::principal(principal))),
            None => {
                Err(ToolError::denied("This request has no session and no principal, so its browser cannot be kept")
                    .hint("Connect over stdio, with a protocol version that has sessions, or with authentication."))
            }
        }
    }

    /// The context, opened if there is none that works.
    ///
    /// # Errors
    /// When the browser cannot be started.
    pub(crate) async fn context(&self) -> Result<Arc<Context>, ToolError> {
        let mut context = self.context.lock().await;
        if let Some(context) = context.as_ref().filter(|context| context.is_alive()) {
            return Ok(context.clone());
        }
        *context = None;
        let browser = self.shared.browser().await?;
        let tabs = Arc::new(Tabs::new(self.log.clone(), self.announcer()));
        let opening = Context::open(browser.clone(), tabs, &self.shared.config);
        let Ok(opened) = tokio::time::timeout(OPEN_TIME, opening).await else {
            browser.kill();
            return Err(ToolError::new("The browser did not answer in time and was ended")
                .kind(ErrorKind::Timeout)
                .hint("Call the tool again: a new one is started."));
        };
        let opened = Arc::new(opened?);
        *context = Some(opened.clone());
        Ok(opened)
    }

    /// Whether dialogs wait for an answer of the client, in the context that there is.
    pub(crate) async fn hold_dialogs(&self, hold: bool) {
        if let Some(context) = &*self.context.lock().await {
            context.tabs().hold_dialogs(hold);
        }
    }

    /// Announces that the console has changed.
    fn announcer(&self) -> impl Fn() + Send + Sync + 'static {
        let (listener, handle) = (self.listener.clone(), self.shared.handle.get().cloned());
        let uri = self.shared.config.tools.uri(CONSOLE);
        move || match (&*lock(&listener), &handle) {
            (Some(peer), _) => {
                peer.resource_updated(&uri);
            }
            (None, Some(handle)) => handle.resource_updated(&uri),
            (None, None) => {}
        }
    }

    /// Does something with the client's tab within the timeout of tools. A page that is busy then is stopped; if that does
    /// not help its context is given up, and the browser with it if that does not answer either.
    ///
    /// # Errors
    /// Those of the work, or that it took too long.
    pub(crate) async fn with_page<T, F>(&self, work: impl FnOnce(Page) -> F) -> Result<T, ToolError>
    where
        F: Future<Output = Result<T, ToolError>>,
    {
        let context = self.context().await?;
        let limit = Duration::from_millis(self.shared.config.timeout_ms);
        let mut used = None;
        let working = async {
            let page = context.page().await?;
            used = Some(page.clone());
            work(page).await
        };
        if let Ok(done) = tokio::time::timeout(limit, working).await {
            return done;
        }
        let reviving = async {
            match used {
                Some(page) => page.revive().await,
                None => false,
            }
        };
        let (revived, answers) = tokio::join!(reviving, context.answers(PROBE_TIME));
        let late = ToolError::new(format!("It took longer than {} s", limit.as_secs_f64())).kind(ErrorKind::Timeout);
        if revived {
            return Err(late.hint("The page was stopped; what it has loaded is still there."));
        }
        if !answers {
            context.browser().kill();
        }
        self.give_up(&context).await;
        Err(late.hint("The page stopped responding and was closed, with its cookies and tabs. Navigate again."))
    }

    /// Disposes of a context that is stuck.
    async fn give_up(&self, stuck: &Arc<Context>) {
        let mut context = self.context.lock().await;
        if context.as_ref().is_some_and(|current| Arc::ptr_eq(current, stuck)) {
            *context = None;
        }
    }

    /// Keeps a screenshot under its name, and lists it for its client.
    pub(crate) fn keep_shot(self: &Arc<Self>, name: &str, data: &str, audience: &Audience) {
        let mut shots = lock(&self.shots);
        let mut gone = Vec::new();
        shots.retain(|shot| shot.name != name);
        shots.push_back(Shot { name: name.to_owned(), data: data.into() });
        while shots.len() > SHOTS_MAX || shots.iter().map(|shot| shot.data.len()).sum::<usize>() > SHOTS_BYTES_MAX {
            let Some(oldest) = shots.pop_front() else { break };
            gone.push(oldest.name);
        }
        drop(shots);
        self.list_shot(name, audience);
        for name in gone {
            self.unlist_shot(&name);
        }
    }

    fn list_shot(self: &Arc<Self>, name: &str, audience: &Audience) {
        let mut all = lock(&self.shared.shots);
        let owners = all.entry(name.to_owned()).or_default();
        let me = Arc::downgrade(self);
        if !owners.iter().any(|(_, owner)| owner.ptr_eq(&me)) {
            owners.push((audience.clone(), me));
        }
        drop(all);
        let Some(handle) = self.shared.handle.get() else { return };
        let uri = shots::shot_uri(&self.shared.config.tools, name);
        let (shared, named) = (Arc::downgrade(&self.shared), name.to_owned());
        shots::list(handle, &uri, name, move |cx| shared.upgrade()?.shot_of(&named, cx));
        let _ = handle.resources().enable_for(&uri, audience);
        let told = lock(&self.listener).as_ref().is_some_and(|peer| peer.resource_updated(&uri));
        if !told {
            handle.resource_updated(&uri);
        }
    }

    fn unlist_shot(&self, name: &str) {
        let mut all = lock(&self.shared.shots);
        let Some(owners) = all.get_mut(name) else { return };
        let mut mine = None;
        owners.retain(|(audience, owner)| {
            let is_mine = std::ptr::eq(owner.as_ptr(), self);
            if is_mine {
                mine = Some(audience.clone());
            }
            !is_mine && owner.strong_count() > 0
        });
        let nobody = owners.is_empty();
        if nobody {
            all.remove(name);
        }
        drop(all);
        let Some(handle) = self.shared.handle.get() else { return };
        let uri = shots::shot_uri(&self.shared.config.tools, name);
        if nobody {
            let _ = handle.resources().remove(&uri);
        } else if let Some(audience) = mine {
            let _ = handle.resources().reset_for(&uri, &audience);
        }
    }

    /// A screenshot of this client.
    fn shot(&self, name: &str) -> Option<Arc<str>> {
        lock(&self.shots).iter().find(|shot| shot.name == name).map(|shot| shot.data.clone())
    }
}

impl Shared {
    /// The screenshot of this name that the caller took.
    pub(crate) fn shot_of(&self, name: &str, cx: &Cx) -> Option<Arc<str>> {
        let audience = Audience::session(cx).or_else(|| cx.principal().map(Audience::principal))?;
        let owners = lock(&self.shots).get(name).cloned()?;
        let owner = owners.iter().find(|(owner, _)| *owner == audience)?;
        owner.1.upgrade()?.shot(name)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let names: Vec<String> = lock(&self.shots).drain(..).map(|shot| shot.name).collect();
        names.iter().for_each(|name| self.unlist_shot(name));
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
