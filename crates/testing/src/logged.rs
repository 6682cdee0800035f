//! Captured logs.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// The captured logs of this thread, at every level.
///
/// ```
/// use linchpin_testing::Logged;
///
/// let logged = Logged::default();
/// let guard = tracing::subscriber::set_default(logged.clone());
/// tracing::warn!(kind = "cat", "seen");
/// drop(guard);
/// assert!(logged.text().contains("WARN message=seen kind=\"cat\""));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Logged(Arc<Mutex<String>>);

impl Logged {
    /// Returns the logs so far: a line for each event, with its level and its fields as `name=value`.
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, words: std::fmt::Arguments<'_>) {
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_fmt(words);
    }
}

impl tracing::field::Visit for Logged {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.write(format_args!("{field}={value:?} "));
    }
}

impl tracing::Subscriber for Logged {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        span.record(&mut self.clone());
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        self.write(format_args!("\n{} ", event.metadata().level()));
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
