//! What is logged, by anybody in the process, at any level.

use crate::slack::suite;
use linchpin::testing::site::{Do, Site, answer, json};
use linchpin_rest::testing::{KEY, call};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Everything that was logged, as one text.
#[derive(Clone, Default)]
struct All(Arc<Mutex<String>>);

impl Visit for &All {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = writeln!(self.0.lock().unwrap(), "{field}={value:?}");
    }
}

impl Subscriber for All {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let _ = writeln!(self.0.lock().unwrap(), "{}", span.metadata().name());
        span.record(&mut &*self);
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut &*self);
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl log::Log for All {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        let _ = writeln!(self.0.lock().unwrap(), "{}: {}", record.target(), record.args());
    }
    fn flush(&self) {}
}

#[tokio::test]
async fn neither_the_key_nor_arguments_are_logged() {
    const ARGUMENT: &str = "argument-that-must-not-be-seen";
    let all = All::default();
    let _scope = tracing::subscriber::set_default(all.clone());
    log::set_boxed_logger(Box::new(all.clone())).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let site = Site::new(|n, _| {
        vec![match n {
            0 => Do::Write(json(401, "", &json!({ "error": KEY }))),
            1 => Do::Write(answer(307, "location: https://other.example/\r\n", "")),
            2 => Do::Reset,
            _ => Do::Write(json(200, "", &json!({ "ok": true }))),
        }]
    })
    .await;
    let connection = suite().connect(suite().config(&site)).await;
    for failed in [true, true, true, false] {
        let told = call(&connection, "slack_post_message", json!({ "channel_id": "C1", "text": ARGUMENT })).await;
        assert_eq!(told.failed, failed, "{}", told.result);
    }
    let logged = all.0.lock().unwrap().clone();
    assert!(logged.contains("reqwest::") && logged.contains("tools/call"), "control: {logged}");
    assert!(!logged.contains(KEY) && !logged.contains(ARGUMENT), "{logged}");
}
