//! What is shown while something takes its time: the progress of a call, or how long it has taken.

use crate::show::out::{note, shorten, stderr_is_terminal, tell_over};
use linchpin::client::Progress;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Width of the bar, in characters.
const WIDTH: usize = 24;

/// A progress bar on standard error, if that is a terminal; erased when dropped.
pub(crate) struct Bar {
    on: bool,
    /// Whether there was progress.
    drawn: Arc<AtomicBool>,
}

impl Bar {
    pub(crate) fn new() -> Bar {
        Bar { on: stderr_is_terminal(), drawn: Arc::default() }
    }

    pub(crate) fn show(&mut self, progress: &Progress) {
        if self.on {
            self.drawn.store(true, Ordering::Relaxed);
            tell_over(&line(progress));
        }
    }

    /// Whether progress has been shown, to be asked later.
    pub(crate) fn drawn(&self) -> Arc<AtomicBool> {
        self.drawn.clone()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.drawn.load(Ordering::Relaxed) {
            tell_over("");
        }
    }
}

/// What takes longer is shown on a terminal, and how often that changes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs `work`. From its second second on, a terminal shows what `said` says of it, given how long it has taken, until it ends
/// or `hidden` is set.
pub(crate) async fn waiting<T>(
    work: impl Future<Output = T>,
    hidden: Option<Arc<AtomicBool>>,
    said: impl Fn(Duration) -> String,
) -> T {
    if !stderr_is_terminal() {
        return work.await;
    }
    let (begun, mut work) = (Instant::now(), pin!(work));
    let done = loop {
        tokio::select! {
            biased;
            done = &mut work => break done,
            () = tokio::time::sleep(PATIENCE) => {
                if !hidden.as_ref().is_some_and(|hidden| hidden.load(Ordering::Relaxed)) {
                    tell_over(&shorten(&said(begun.elapsed()), 79));
                }
            }
        }
    };
    tell_over("");
    done
}

/// Runs `work`. If it takes longer than this, a terminal shows `text` once.
pub(crate) async fn noting<T>(work: impl Future<Output = T>, after: Duration, text: &str) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = tokio::time::sleep(after) => {}
    }
    if stderr_is_terminal() {
        note(text);
    }
    work.await
}

/// [`waiting`] for something whose length is unknown: `doing` says what.
pub(crate) async fn busy<T>(doing: &str, work: impl IntoFuture<Output = T>) -> T {
    waiting(work.into_future(), None, |took| format!("{doing} … {} s", took.as_secs())).await
}

fn line(progress: &Progress) -> String {
    let message =
        progress.message.as_deref().map_or(String::new(), |m| format!(" {}", shorten(&m.replace('\n', " "), 60)));
    match progress.total.filter(|total| *total > 0.0) {
        Some(total) => {
            let part = (progress.progress / total).clamp(0.0, 1.0);
            let full = (part * WIDTH as f64).round() as usize;
            format!("[{}{}] {:3.0}%{message}", "#".repeat(full), ".".repeat(WIDTH - full), part * 100.0)
        }
        None => format!("… {}{message}", progress.progress),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_leaves_its_frame() {
        let at = |progress, total, message: Option<&str>| {
            let mut step = Progress::default();
            (step.progress, step.total, step.message) = (progress, total, message.map(str::to_owned));
            line(&step)
        };
        assert_eq!(at(1.0, Some(4.0), Some("a\nb")), "[######..................]  25% a b");
        assert_eq!(at(9.0, Some(4.0), None), "[########################] 100%");
        assert_eq!(at(-1.0, Some(4.0), None), "[........................]   0%");
        assert_eq!(at(7.0, Some(0.0), None), "… 7");
    }
}
