//! All histories of the process, their owners, and eviction.

use crate::Limits;
use crate::history::{History, Standing, Thought};
use crate::input::Step;
use linchpin_kit::ToolError;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A session of a client. It owns the history that its calls use without a handle; when it ends, the history is kept as
/// long as others that have no owner.
#[derive(Debug)]
pub(crate) struct Session {
    store: Arc<Store>,
    /// The handle of its history.
    handle: Mutex<Option<String>>,
}

impl Session {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, handle: Mutex::default() }
    }

    fn handle(&self) -> MutexGuard<'_, Option<String>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(handle) = self.handle().take() {
            self.store.disown(&handle);
        }
    }
}

/// The histories, behind one briefly held lock.
#[derive(Debug)]
pub(crate) struct Store {
    limits: Limits,
    keeps_text: bool,
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    histories: HashMap<String, Entry>,
    /// Handles by last use, oldest first. Turns are unique.
    order: BTreeMap<u64, String>,
    next_turn: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    history: History,
    turn: u64,
    used: Instant,
    /// The principal that started it. Others cannot use the handle.
    principal: Option<String>,
    /// Whether it lives as long as its session, instead of until a timeout.
    owned: bool,
}

/// A page of a history.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) handle: String,
    pub(crate) thoughts: Vec<Thought>,
    pub(crate) dropped: u64,
    pub(crate) length: u64,
    /// The start of the next page, if any.
    pub(crate) next: Option<u64>,
}

/// The caller and its handle.
pub(crate) struct Caller<'a> {
    pub(crate) session: &'a Session,
    pub(crate) handle: Option<&'a str>,
    pub(crate) principal: Option<&'a str>,
    pub(crate) now: Instant,
}

impl Store {
    pub(crate) fn new(limits: Limits, keeps_text: bool) -> Self {
        Self { limits, keeps_text, all: Mutex::default() }
    }

    /// Adds a step to the caller's history, which is created if needed.
    ///
    /// # Errors
    /// When the handle is unknown.
    pub(crate) fn think(&self, caller: Caller<'_>, step: &Step) -> Result<(String, Standing), ToolError> {
        let mut all = self.lock(caller.now);
        let handle = match all.meant(&caller)? {
            Some(handle) => handle,
            None => all.begin(&caller)?,
        };
        let entry = all.touch(&handle, caller.now)?;
        let before = entry.history.bytes();
        let standing = entry.history.add(step, &self.limits, self.keeps_text);
        let after = entry.history.bytes();
        all.bytes = all.bytes + after - before;
        all.make_room(&self.limits, &handle);
        Ok((handle, standing))
    }

    /// Clears the caller's history; the handle stays valid. Returns the number of its thoughts.
    ///
    /// # Errors
    /// When the handle is unknown, or none is given and the caller has no history.
    pub(crate) fn reset(&self, caller: Caller<'_>) -> Result<(String, u64), ToolError> {
        let mut all = self.lock(caller.now);
        let handle = all.meant(&caller)?.ok_or_else(nothing)?;
        let entry = all.touch(&handle, caller.now)?;
        let ended = std::mem::take(&mut entry.history);
        all.bytes -= ended.bytes();
        Ok((handle, ended.len()))
    }

    /// The thoughts of the caller's history from `place` on, about `bytes_max` bytes, at least one.
    ///
    /// # Errors
    /// As [`Store::reset`].
    pub(crate) fn page(&self, caller: Caller<'_>, place: u64, bytes_max: usize) -> Result<Page, ToolError> {
        let mut all = self.lock(caller.now);
        let handle = all.meant(&caller)?.ok_or_else(nothing)?;
        let history = &all.touch(&handle, caller.now)?.history;
        let start = place.max(history.dropped());
        let (mut thoughts, mut bytes) = (Vec::new(), 0);
        for thought in history.from(start) {
            // The approximate size of the other members.
            bytes += thought.thought.len() + 200;
            if bytes > bytes_max && !thoughts.is_empty() {
                break;
            }
            thoughts.push(thought.clone());
        }
        let end = start + thoughts.len() as u64;
        let (dropped, length) = (history.dropped(), history.len());
        Ok(Page { handle, thoughts, dropped, length, next: (end < length).then_some(end) })
    }

    /// From now on a history has no owner.
    fn disown(&self, handle: &str) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = all.histories.get_mut(handle) {
            entry.owned = false;
        }
    }

    /// The histories, without expired ones.
    fn lock(&self, now: Instant) -> MutexGuard<'_, All> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.expire(now, &self.limits);
        all
    }
}

impl All {
    /// The handle of a call: the given one, or that of its owner.
    fn meant(&self, caller: &Caller<'_>) -> Result<Option<String>, ToolError> {
        if let Some(handle) = caller.handle {
            let entry = self.histories.get(handle);
            let allowed = entry.is_some_and(|entry| entry.principal.as_deref() == caller.principal);
            return if allowed { Ok(Some(handle.to_owned())) } else { Err(unknown()) };
        }
        // It may have been evicted meanwhile.
        Ok(caller.session.handle().clone().filter(|handle| self.histories.contains_key(handle)))
    }

    fn begin(&mut self, caller: &Caller<'_>) -> Result<String, ToolError> {
        let handle = fresh_handle()?;
        *caller.session.handle() = Some(handle.clone());
        let entry = Entry {
            history: History::default(),
            turn: self.turn(),
            used: caller.now,
            principal: caller.principal.map(str::to_owned),
            owned: true,
        };
        self.order.insert(entry.turn, handle.clone());
        self.bytes += size(&handle, &entry);
        self.histories.insert(handle.clone(), entry);
        Ok(handle)
    }

    fn turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }

    /// The history of a handle; marks it as used.
    fn touch(&mut self, handle: &str, now: Instant) -> Result<&mut Entry, ToolError> {
        let turn = self.turn();
        let entry = self.histories.get_mut(handle).ok_or_else(unknown)?;
        if let Some(handle) = self.order.remove(&entry.turn) {
            self.order.insert(turn, handle);
        }
        (entry.turn, entry.used) = (turn, now);
        Ok(entry)
    }

    fn drop_history(&mut self, handle: &str) {
        if let Some(entry) = self.histories.remove(handle) {
            self.order.remove(&entry.turn);
            self.bytes -= size(handle, &entry) + entry.history.bytes();
        }
    }

    /// Drops expired histories.
    fn expire(&mut self, now: Instant, limits: &Limits) {
        let late = |entry: &Entry| !entry.owned && now.saturating_duration_since(entry.used) >= limits.ttl;
        // In order of last use: after the first that has not expired, only owned ones remain.
        let mut expired = Vec::new();
        for handle in self.order.values() {
            match self.histories.get(handle) {
                Some(entry) if late(entry) => expired.push(handle.clone()),
                Some(entry) if entry.owned => {}
                _ => break,
            }
        }
        for handle in expired {
            self.drop_history(&handle);
        }
    }

    /// Evicts the least recently used histories until the limits hold: those without an owner first, and never the one
    /// in use.
    fn make_room(&mut self, limits: &Limits, in_use: &str) {
        while self.histories.len() > limits.histories_max || self.bytes > limits.bytes_max {
            let others = || self.order.values().filter(|handle| *handle != in_use);
            let owned = |handle: &String| self.histories.get(handle).is_some_and(|entry| entry.owned);
            let Some(oldest) = others().find(|handle| !owned(handle)).or_else(|| others().next()).cloned() else {
                return;
            };
            self.drop_history(&oldest);
        }
    }
}

/// Approximate bytes of an entry without its history.
fn size(handle: &str, entry: &Entry) -> usize {
    std::mem::size_of::<Entry>() + 4 * handle.len() + entry.principal.as_ref().map_or(0, String::len)
}

/// An unguessable handle.
fn fresh_handle() -> Result<String, ToolError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|_| ToolError::new("The system's random number generator failed"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The same error for a handle that never existed, expired, or belongs to another client.
fn unknown() -> ToolError {
    ToolError::not_found("Unknown sessionId").hint("Omit sessionId to start again; the result contains a new one.")
}

fn nothing() -> ToolError {
    ToolError::not_found("There are no thoughts yet").hint("Pass the sessionId of an earlier result.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn step(number: u64) -> Step {
        Step {
            thought: "x".repeat(100),
            next_thought_needed: true,
            number,
            total: number,
            is_revision: false,
            revises: None,
            branch_from: None,
            branch_id: None,
        }
    }

    fn by<'a>(session: &'a Session, handle: Option<&'a str>, now: Instant) -> Caller<'a> {
        Caller { session, handle, principal: None, now }
    }

    type Thought = Result<(String, Standing), ToolError>;

    /// A store, and a thought of a session that ends with it.
    fn alone(limits: Limits) -> (Arc<Store>, impl Fn(Option<&str>, Instant, u64) -> Thought) {
        let store = Arc::new(Store::new(limits, true));
        let of = store.clone();
        (store, move |handle, now, number| of.think(by(&Session::new(of.clone()), handle, now), &step(number)))
    }

    #[test]
    fn a_handle_is_kept_while_it_is_used_and_forgotten_after_its_time() {
        let limits = Limits { ttl: Duration::from_secs(60), ..Limits::default() };
        let ((store, think), start) = (alone(limits), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let (handle, _) = think(None, at(0), 1).unwrap();
        for (second, length) in [(59, 2), (118, 3)] {
            let (_, standing) = think(Some(&handle), at(second), 2).unwrap();
            assert_eq!(standing.length, length);
        }
        assert!(think(Some(&handle), at(178), 4).unwrap_err().is_not_found());
        assert_eq!(store.all.lock().unwrap().bytes, 0, "nothing is left of it");
    }

    #[test]
    fn the_history_of_a_session_lives_as_long_as_it_and_keeps_no_other_from_expiring() {
        let limits = Limits { ttl: Duration::from_secs(60), ..Limits::default() };
        let ((store, think), start) = (alone(limits), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let session = Session::new(store.clone());
        store.think(by(&session, None, at(0)), &step(1)).unwrap();
        let (other, _) = think(None, at(0), 1).unwrap();
        let (handle, standing) = store.think(by(&session, None, at(3_600)), &step(2)).unwrap();
        assert_eq!(standing.length, 2);
        assert!(think(Some(&other), at(3_600), 2).is_err(), "expired although the older one was not");
        drop(session);
        assert_eq!(think(Some(&handle), at(3_659), 3).unwrap().1.length, 3);
        assert!(think(Some(&handle), at(3_719), 4).is_err(), "without a session it expires");
        assert!(store.all.lock().unwrap().histories.is_empty());
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let limits = Limits { histories_max: 3, ..Limits::default() };
        let ((store, think), now) = (alone(limits), Instant::now());
        let handles: Vec<String> = (0..3).map(|_| think(None, now, 1).unwrap().0).collect();
        think(Some(&handles[0]), now, 2).unwrap();
        think(None, now, 1).unwrap();
        let session = Session::new(store.clone());
        let lives = |handle: &String| store.page(by(&session, Some(handle), now), 0, 1_000).is_ok();
        assert_eq!(handles.iter().map(lives).collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn bytes_are_counted_to_the_last_and_bounded_for_one_and_for_all() {
        let limits = Limits { bytes_max: 20_000, ..Limits::default() };
        let ((store, think), now) = (alone(limits), Instant::now());
        let mut handles = Vec::new();
        for n in 0..400 {
            let handle = handles.get(n / 100);
            let (handle, standing) = think(handle.map(String::as_str), now, 1).unwrap();
            assert_eq!(standing.length, n as u64 % 100 + 1);
            if n % 100 == 0 {
                handles.push(handle);
            }
            assert!(store.all.lock().unwrap().bytes <= 21_000, "{n}");
        }
        let mut all = store.all.lock().unwrap();
        for handle in all.histories.keys().cloned().collect::<Vec<_>>() {
            all.drop_history(&handle);
        }
        assert_eq!((all.bytes, all.order.len()), (0, 0));
    }

    #[test]
    fn a_handle_is_worth_nothing_to_another_principal() {
        let (store, now) = (Arc::new(Store::new(Limits::default(), true)), Instant::now());
        let session = Session::new(store.clone());
        let call = |principal, handle| Caller { session: &session, handle, principal, now };
        let (handle, _) = store.think(call(Some("ann"), None), &step(1)).unwrap();
        for other in [Some("bob"), None] {
            assert!(store.think(call(other, Some(&handle)), &step(2)).unwrap_err().is_not_found());
            assert!(store.page(call(other, Some(&handle)), 0, 1_000).unwrap_err().is_not_found());
            assert!(store.reset(call(other, Some(&handle))).unwrap_err().is_not_found());
        }
        assert_eq!(store.think(call(Some("ann"), Some(&handle)), &step(2)).unwrap().1.length, 2);
    }
}
