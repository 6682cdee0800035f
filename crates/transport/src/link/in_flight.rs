//! Pending requests, by id.

use linchpin_core::TransportError;
use linchpin_core::message::Message;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// All requests of one link that are waiting. An answer is left in the map for whoever waits, so that a request costs no
/// allocation here.
#[derive(Default)]
pub(super) struct InFlight(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    waiting: HashMap<u64, Slot, BuildHasherDefault<Spread>>,
    /// Why no response will come any more.
    over: Option<Arc<str>>,
}

#[allow(
    clippy::large_enum_variant,
    reason = "a settled one is taken at once; a box would cost every call an allocation"
)]
enum Slot {
    Waiting(Option<Waker>),
    Settled(Result<Message, TransportError>),
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers request `id`. Dropping the returned value unregisters it.
    pub(super) fn open(&self, id: u64) -> Result<Waiting<'_>, TransportError> {
        let mut slots = self.lock();
        if let Some(why) = &slots.over {
            return Err(TransportError::Closed(why.clone()));
        }
        if slots.waiting.contains_key(&id) {
            return Err(TransportError::CutOff(format!("request id {id} is in use already").into()));
        }
        slots.waiting.insert(id, Slot::Waiting(None));
        Ok(Waiting { all: self, id })
    }

    /// Delivers the response to request `id`; `false` if it is not pending.
    pub(super) fn settle(&self, id: u64, answer: Result<Message, TransportError>) -> bool {
        let mut slots = self.lock();
        let Some(slot @ Slot::Waiting(_)) = slots.waiting.get_mut(&id) else { return false };
        let before = std::mem::replace(slot, Slot::Settled(answer));
        drop(slots);
        wake(before);
        true
    }

    /// The only request that is waiting, if it is the only one.
    pub(super) fn only(&self) -> Option<u64> {
        let slots = self.lock();
        let mut waiting = slots.waiting.iter().filter(|(_, slot)| matches!(slot, Slot::Waiting(_)));
        match (waiting.next(), waiting.next()) {
            (Some((id, _)), None) => Some(*id),
            _ => None,
        }
    }

    /// Whether anything waits.
    pub(super) fn any(&self) -> bool {
        self.lock().waiting.values().any(|slot| matches!(slot, Slot::Waiting(_)))
    }

    /// Why the link has ended, if it has.
    pub(super) fn over(&self) -> Option<Arc<str>> {
        self.lock().over.clone()
    }

    /// Fails all that wait, and all that come later. `false` when that has happened before.
    pub(super) fn end(&self, why: Arc<str>) -> bool {
        let mut slots = self.lock();
        if slots.over.is_some() {
            return false;
        }
        let mut failed = Vec::new();
        for slot in slots.waiting.values_mut().filter(|slot| matches!(slot, Slot::Waiting(_))) {
            failed.push(std::mem::replace(slot, Slot::Settled(Err(TransportError::Closed(why.clone())))));
        }
        slots.over = Some(why);
        drop(slots);
        failed.into_iter().for_each(wake);
        true
    }
}

fn wake(slot: Slot) {
    if let Slot::Waiting(Some(waker)) = slot {
        waker.wake();
    }
}

/// Waits for a response.
pub(super) struct Waiting<'a> {
    all: &'a InFlight,
    id: u64,
}

impl Future for Waiting<'_> {
    type Output = Result<Message, TransportError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slots = self.all.lock();
        match slots.waiting.get_mut(&self.id) {
            Some(Slot::Waiting(Some(waker))) => {
                waker.clone_from(cx.waker());
                Poll::Pending
            }
            Some(Slot::Waiting(none)) => {
                *none = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => match slots.waiting.remove(&self.id) {
                Some(Slot::Settled(answer)) => Poll::Ready(answer),
                _ => Poll::Ready(Err(TransportError::CutOff("the response was already taken".into()))),
            },
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Whatever is dropped with the slot is dropped after the lock.
        let slot = self.all.lock().waiting.remove(&self.id);
        drop(slot);
    }
}

/// Hashes sequential ids, which the peer cannot choose.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
