//! A client's side for tests of links: an inbox and a tap that remember, and requests.
#![allow(dead_code, missing_docs, unreachable_pub)]

use linchpin_core::message::Message;
use linchpin_core::{
    Answer, ClientLimits, ClientTransport, ConnectOptions, Inbox, Outgoing, Tap, Traffic, TransportError,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Remembers everything it is told, in short lines.
#[derive(Default)]
pub struct Memory {
    lines: Mutex<Vec<String>>,
    changed: tokio::sync::Notify,
    /// Only counts what is heard.
    counting: bool,
    count: Mutex<usize>,
}

impl Memory {
    fn add(&self, line: String) {
        self.lines.lock().unwrap().push(line);
        self.changed.notify_waiters();
    }

    pub fn all(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    pub fn counted(&self) -> usize {
        *self.count.lock().unwrap()
    }

    /// The first line that begins so, once there is one.
    pub async fn first(&self, begin: &str) -> String {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let found = self.all().into_iter().find(|line| line.starts_with(begin));
                match found {
                    Some(line) => return line,
                    None => changed.await,
                }
            }
        };
        match tokio::time::timeout(Duration::from_secs(60), wait).await {
            Ok(line) => line,
            Err(_) => panic!("{begin:?} never came, only {:#?}", self.all()),
        }
    }
}

impl Inbox for Memory {
    fn received(&self, message: Message, during: Option<u64>) {
        assert_eq!(during, None, "a pipe has no streams");
        if self.counting {
            *self.count.lock().unwrap() += 1;
        } else {
            self.add(format!("heard {}", message.frame()));
        }
    }

    fn closed(&self, why: TransportError) {
        self.add(format!("closed {why:?}"));
    }
}

impl Tap for Memory {
    fn saw(&self, event: Traffic<'_>) {
        self.add(match event {
            Traffic::Sent(text) => format!("sent {text}"),
            Traffic::Heard(text) => format!("heard {text}"),
            Traffic::Garbage(text) => format!("garbage {text}"),
            Traffic::Stderr(text) => format!("stderr {text}"),
            Traffic::Note(text) => format!("note {text}"),
            other => format!("{other:?}"),
        });
    }
}

/// What a link is opened with, what it told the inbox, and what passed.
pub struct Side {
    pub options: ConnectOptions,
    pub inbox: Arc<Memory>,
    pub tap: Arc<Memory>,
}

pub fn side(limits: impl FnOnce(&mut ClientLimits)) -> Side {
    let limits = Arc::new(ClientLimits::default().with(limits));
    let (inbox, tap) = (Arc::new(Memory::default()), Arc::new(Memory::default()));
    let options = ConnectOptions::new(inbox.clone(), limits).with(|options| options.tap = Some(tap.clone()));
    Side { options, inbox, tap }
}

/// The same without a tap, and with an inbox that only counts.
pub fn quiet_side(limits: impl FnOnce(&mut ClientLimits)) -> Side {
    let mut side = side(limits);
    side.inbox = Arc::new(Memory { counting: true, ..Memory::default() });
    side.options.inbox = side.inbox.clone();
    side.options.tap = None;
    side
}

pub fn request(id: u64) -> Outgoing {
    outgoing(Some(id), format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))
}

pub fn note(text: &str) -> Outgoing {
    outgoing(None, format!(r#"{{"jsonrpc":"2.0","method":"{text}"}}"#))
}

pub fn outgoing(id: Option<u64>, frame: String) -> Outgoing {
    let mut out = Outgoing::new("ping", None, frame);
    out.id = id;
    out
}

/// What came of an exchange, in short.
pub fn outcome(result: Result<Answer, TransportError>) -> String {
    match result {
        Ok(answer) => format!("ok {}", answer.message.frame()),
        Err(e) => format!("{e:?}"),
    }
}

/// One exchange; `waiting` when it has no outcome within a minute.
pub async fn ask(link: &Arc<dyn ClientTransport>, id: u64) -> String {
    match tokio::time::timeout(Duration::from_secs(60), link.exchange(request(id))).await {
        Ok(result) => outcome(result),
        Err(_) => "waiting".to_owned(),
    }
}

/// Memory of this process that is in use, in bytes.
pub fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
