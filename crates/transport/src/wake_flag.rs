//! Which of the futures that a task polls by hand has been woken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// A waker that remembers whether it was woken, for futures that are seldom ready beside one that often is: while it was
/// not, they need not be polled.
pub(crate) struct WakeFlag {
    shared: Arc<Shared>,
    waker: Waker,
    /// That of the task that polled last.
    task: Waker,
}

struct Shared {
    is_woken: AtomicBool,
    task: Mutex<Waker>,
}

impl WakeFlag {
    /// A flag that is set: nothing was polled yet.
    pub(crate) fn new() -> WakeFlag {
        let task = Waker::noop().clone();
        let shared = Arc::new(Shared { is_woken: AtomicBool::new(true), task: Mutex::new(task.clone()) });
        WakeFlag { waker: shared.clone().into(), shared, task }
    }

    /// Sets the flag without waking the task.
    pub(crate) fn set(&self) {
        self.shared.is_woken.store(true, Ordering::Release);
    }

    /// Returns the context to poll the futures with if they have to be polled, and clears the flag.
    #[inline]
    pub(crate) fn take(&mut self, cx: &Context<'_>) -> Option<Context<'_>> {
        if self.task.will_wake(cx.waker()) && !self.shared.is_woken.load(Ordering::Acquire) {
            return None;
        }
        Some(self.context(cx))
    }

    /// The same, whether or not they have to be polled.
    pub(crate) fn context(&mut self, cx: &Context<'_>) -> Context<'_> {
        self.task.clone_from(cx.waker());
        self.shared.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(cx.waker());
        // After the task is known: a wake before this is seen by the poll that follows.
        self.shared.is_woken.store(false, Ordering::SeqCst);
        Context::from_waker(&self.waker)
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        task.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn futures_are_polled_once_and_then_when_one_was_woken_or_the_task_is_another() {
        let (first, second) = (Arc::<Count>::default(), Arc::<Count>::default());
        let (one, two) = (Waker::from(first.clone()), Waker::from(second.clone()));
        let (one, two) = (Context::from_waker(&one), Context::from_waker(&two));
        let mut flag = WakeFlag::new();
        let waker = flag.take(&one).map(|cx| cx.waker().clone()).expect("never polled");
        assert!(flag.take(&one).is_none());
        waker.wake_by_ref();
        assert_eq!(first.0.load(Ordering::Relaxed), 1);
        assert!(flag.take(&one).is_some() && flag.take(&one).is_none());
        assert!(flag.take(&two).is_some() && flag.take(&two).is_none());
        waker.wake();
        assert_eq!([&first, &second].map(|count| count.0.load(Ordering::Relaxed)), [1, 1]);
        assert!(flag.take(&two).is_some());
        flag.set();
        assert!(flag.take(&two).is_some() && flag.take(&two).is_none());
    }
}
