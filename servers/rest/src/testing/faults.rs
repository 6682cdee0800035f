//! Every way in which an API or the network fails, for every row.

use super::{KEY, Suite, Trial, call, check_key, every_leaf, without_key};
use linchpin::testing::site::{Do, Site, answer, json};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// What the site does in place of this answer.
type Does = dyn Fn(&Value) -> Vec<Do> + Send + Sync;

/// What the site does, what comes of it, and how often a request that may be repeated is sent.
struct Failure {
    name: &'static str,
    does: Box<Does>,
    /// Kinds of errors; empty where the call succeeds, or fails for lack of what it needs.
    kinds: &'static [&'static str],
    sent: usize,
}

fn fault(
    name: &'static str,
    kinds: &'static [&'static str],
    sent: usize,
    does: impl Fn(&Value) -> Vec<Do> + Send + Sync + 'static,
) -> Failure {
    Failure { name, does: Box::new(does), kinds, sent }
}

/// A status with an API's words, which repeat the key.
fn status(status: u16, headers: &'static str, kind: &'static [&'static str], sent: usize) -> Failure {
    let said = json!({ "message": format!("odd words \u{202e} and {KEY}"), "error": { "detail": "odd words" }, "errors": null });
    let name: &'static str = Box::leak(format!("status {status} {headers:?}").into_boxed_str());
    fault(name, kind, sent, move |_| vec![Do::Write(json(status, headers, &said))])
}

/// Failures that are none where the answer is text.
const JSON_ONLY: [&str; 3] = ["truncated JSON", "a page instead of JSON", "deep JSON"];

fn all(elsewhere: &str) -> Vec<Failure> {
    let long = |headers: &str| answer(200, headers, "");
    let leaves = |name, change: fn(&Value) -> Value| {
        fault(name, &[], 0, move |value| vec![Do::Write(json(200, "", &every_leaf(value, &change)))])
    };
    let redirect = format!("location: {elsewhere}\r\n");
    vec![
        status(400, "", &["invalid"], 1),
        status(401, "", &["denied"], 1),
        status(403, "", &["denied"], 1),
        status(404, "", &["not_found"], 1),
        status(409, "", &["conflict"], 1),
        status(422, "", &["invalid"], 1),
        status(429, "retry-after: 0\r\n", &["limited"], 4),
        status(429, "retry-after: 3600\r\n", &["limited"], 1),
        status(500, "", &["upstream"], 1),
        status(502, "retry-after: 0\r\n", &["upstream"], 4),
        status(503, "retry-after: 3600\r\n", &["upstream"], 1),
        status(504, "retry-after: 0\r\n", &["timeout"], 4),
        fault("truncated JSON", &["upstream"], 1, |value| {
            let text = value.to_string();
            vec![Do::Write(answer(200, "content-type: application/json\r\n", &text[..text.len() - 1]))]
        }),
        fault("a page instead of JSON", &["upstream"], 1, |_| {
            vec![Do::Write(answer(200, "content-type: text/html\r\n", "<html>login</html>"))]
        }),
        fault("another content type", &[], 1, |value| {
            vec![Do::Write(answer(200, "content-type: text/plain\r\n", value.to_string()))]
        }),
        fault("an endless body", &["upstream"], 1, |_| {
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n[".to_vec();
            vec![Do::Write(head), Do::Flood(vec![b' '; 65_536])]
        }),
        fault("a length without end", &["upstream"], 1, |_| {
            vec![Do::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n[".to_vec()), Do::Hold]
        }),
        fault("a byte now and then", &["timeout"], 1, |value| {
            vec![Do::Drip(json(200, "", value), Duration::from_millis(50)), Do::Hold]
        }),
        fault("silence", &["timeout"], 1, |_| vec![Do::Hold]),
        fault("a reset", &["upstream"], 1, |_| vec![Do::Reset]),
        fault("a reset in the body", &["upstream"], 1, |_| {
            vec![Do::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{\"a\":".to_vec()), Do::Reset]
        }),
        fault("not HTTP", &["upstream"], 1, |_| vec![Do::Write(b"220 smtp.example\r\n\r\n".to_vec()), Do::Close]),
        fault("a redirect to another host", &["upstream"], 1, move |_| vec![Do::Write(answer(307, &redirect, ""))]),
        fault("a redirect to itself", &["upstream", "conflict"], 6, move |_| {
            vec![Do::Write(answer(307, "location: #\r\n", ""))]
        }),
        fault("a redirect to nowhere", &[], 1, move |_| vec![Do::Write(answer(302, "location: http://\r\n", ""))]),
        fault("long headers", &["upstream"], 1, move |_| {
            vec![Do::Write(long(&format!("x-long: {}\r\n", "x".repeat(90_000))))]
        }),
        fault("deep JSON", &["upstream"], 1, |_| vec![Do::Write(answer(200, "", "[".repeat(100_000)))]),
        fault("bytes that are not UTF-8", &[], 0, |value| {
            let text =
                every_leaf(value, &|leaf| if leaf.is_string() { json!("MARK") } else { leaf.clone() }).to_string();
            let bytes =
                text.into_bytes().iter().map(|byte| if *byte == b'K' { 0xff } else { *byte }).collect::<Vec<u8>>();
            vec![Do::Write(answer(200, "", bytes))]
        }),
        leaves("null everywhere", |_| Value::Null),
        leaves("unknown words everywhere", |leaf| if leaf.is_string() { json!("some-new-word") } else { leaf.clone() }),
        leaves("other types everywhere", |leaf| if leaf.is_string() { json!(7) } else { json!("seven") }),
        leaves("the key and hidden characters everywhere", |_| json!(format!("a\u{202e}{KEY}\u{e0041}\u{1b}[2J"))),
        fault("nothing in it", &[], 0, |_| vec![Do::Write(json(200, "", &json!({})))]),
        fault("another shape", &[], 0, |_| vec![Do::Write(json(200, "", &json!("text")))]),
        fault("no body", &[], 0, |_| vec![Do::Write(answer(204, "", ""))]),
    ]
}

impl Suite {
    /// Whatever fails: there is a result, an error says what kind it is, neither has the key or hidden characters, other hosts
    /// hear nothing, only requests that may be repeated are, and the next call works.
    ///
    /// # Panics
    /// If that is not so.
    pub async fn faults(&self) {
        let elsewhere = Site::saying(json(200, "", &json!({}))).await;
        for fault in all(&elsewhere.url("/stolen")) {
            let fault = Arc::new(fault);
            let mut trials = JoinSet::new();
            for trial in self.trials() {
                if JSON_ONLY.contains(&fault.name) && self.contract.is_plain(&trial.what()) {
                    continue;
                }
                let (suite, fault) = (self.clone(), fault.clone());
                trials.spawn(async move { suite.fault(&trial, &fault).await });
            }
            trials.join_all().await;
        }
        assert!(elsewhere.requests().is_empty(), "another host was asked: {:?}", elsewhere.requests());
        self.no_tls().await;
    }

    async fn fault(&self, trial: &Trial, fault: &Arc<Failure>) {
        let (row, what) = (trial.row, format!("{}: {}", trial.what(), fault.name));
        let (contract, does) = (self.contract.clone(), fault.clone());
        let site = Site::new(move |_, seen| (does.does)(contract.answer(seen))).await;
        let slow = fault.kinds == ["timeout"] && fault.sent == 1;
        let config = self.config_of(trial, &site).with(|config| {
            config.body_bytes_max = 1 << 20;
            config.timeout_ms = if slow { 300 } else { 10_000 };
        });
        let connection = self.connect(config).await;
        let told = call(&connection, trial.name(), self.arguments(trial, "least")).await;
        without_key(self.api, &told, &what);
        let hidden = |c: char| matches!(c, '\u{202e}' | '\u{e0041}' | '\u{1b}');
        assert!(!told.result.to_string().contains(hidden), "{what}: {}", told.result);
        assert!(told.result.to_string().len() < 300_000, "{what}: it is long");
        let seen = site.requests();
        check_key(self.api, &seen, &what);
        if !fault.kinds.is_empty() {
            assert!(told.failed, "{what}: {}", told.result);
            assert!(fault.kinds.contains(&told.kind.as_str()), "{what}: {:?} in {}", told.kind, told.result);
            assert!(!told.text.is_empty() && !told.text.contains("odd words"), "{what}: {}", told.text);
            let repeats = seen.first().is_some_and(|seen| seen.method == "GET");
            let most = if repeats || !row.spec.writes { fault.sent } else { 1 };
            let first = seen.iter().filter(|one| one.target == seen[0].target).count();
            // On a busy machine the time may be over before.
            let in_time = if slow { first <= most } else { first == most };
            assert!(in_time, "{what}: sent {first} times, not {most}");
        } else if told.failed {
            // It could not go on without what is missing; that is not a crash, and it says so.
            assert!(!told.kind.is_empty(), "{what}: {}", told.result);
        }
        connection.close().await;
    }

    /// A host that does not speak TLS, and waits for a request, is not given one without it.
    async fn no_tls(&self) {
        let site = self.site().await;
        let config = self.config(&site).with(|config| {
            config.timeout_ms = 200;
            config.api_url = config.api_url.take().map(|url| url.replace("http://", "https://"));
        });
        let connection = self.connect(config).await;
        for trial in self.trials() {
            let told = call(&connection, trial.name(), self.arguments(&trial, "least")).await;
            assert!(told.failed && told.kind == "timeout", "{}: {}", trial.what(), told.result);
        }
        let heard: String = site.requests().iter().map(linchpin::testing::site::Seen::everything).collect();
        assert!(!heard.contains(KEY), "{heard}");
        connection.close().await;
    }
}
