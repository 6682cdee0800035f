//! A web site on this machine, names that mean what a test says, and calls by a real client.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use linchpin::BoxFuture;
use linchpin::client::{Client, Connection};
use linchpin::prelude::*;
use linchpin::testing::site::{self, Do};
use linchpin::transport::web::Lookup;
use linchpin::types::version::Revision;
use linchpin_fetch::{Config, Converter, Fetch};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub headers: Vec<(String, String)>,
}

impl From<site::Seen> for Seen {
    fn from(request: site::Seen) -> Self {
        Self { path: request.target, headers: request.headers }
    }
}

impl Seen {
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }
}

/// What the site does with a request.
pub enum Does {
    /// Answers these bytes and closes.
    Answers(Vec<u8>),
    /// Answers the first bytes, and then one byte after the other for as long as anybody listens.
    Drips(Vec<u8>),
    /// Answers the first bytes, and then the others again and again.
    Floods(Vec<u8>, Vec<u8>),
    /// Says nothing.
    Waits,
}

impl Does {
    fn steps(self) -> Vec<Do> {
        match self {
            Does::Answers(bytes) => vec![Do::Write(bytes), Do::Close],
            Does::Drips(bytes) => vec![Do::Write(bytes), Do::Drip(vec![b'x'; 100_000], Duration::from_millis(50))],
            Does::Floods(first, more) => vec![Do::Write(first), Do::Flood(more)],
            Does::Waits => vec![Do::Hold],
        }
    }
}

/// A web site on a port of this machine that writes down what it is asked.
pub struct Site {
    pub port: u16,
    site: site::Site,
}

impl Site {
    pub async fn new(script: impl Fn(&Seen) -> Does + Send + Sync + 'static) -> Site {
        let site = site::Site::new(move |_, request| script(&request.clone().into()).steps()).await;
        Site { port: site.port(), site }
    }

    /// A site of pages: path, head and body. Everything else is 404, `/robots.txt` too.
    pub async fn of(pages: Vec<(&'static str, String, Vec<u8>)>) -> Site {
        Site::new(move |seen| match pages.iter().find(|(path, ..)| Some(*path) == seen.path.split('?').next()) {
            Some((_, head, body)) => Does::Answers(answer(200, head, body)),
            None => Does::Answers(answer(404, "", b"no")),
        })
        .await
    }

    pub fn url(&self, path: &str) -> String {
        self.site.url(path)
    }

    /// What was asked for, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.site.requests().into_iter().map(Seen::from).collect()
    }

    /// The paths that were asked for, in order, separated by blanks.
    pub fn paths(&self) -> String {
        self.seen().iter().map(|seen| seen.path.clone()).collect::<Vec<_>>().join(" ")
    }
}

/// An answer with a length; `head` holds further lines, each with its end.
pub fn answer(status: u16, head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{head}\r\n");
    [head.as_bytes(), body].concat()
}

pub fn typed(content_type: &str) -> String {
    format!("content-type: {content_type}\r\n")
}

/// An answer of HTML.
pub fn html(body: &str) -> Does {
    Does::Answers(answer(200, &typed("text/html"), body.as_bytes()))
}

pub fn redirect(status: u16, to: &str) -> Does {
    Does::Answers(answer(status, &format!("location: {to}\r\n"), b""))
}

/// A name and what it means, one time after the other.
type Name = (String, VecDeque<Vec<IpAddr>>);

/// Names that mean what a test says; every lookup takes the next meaning, the last one stays.
#[derive(Clone, Default)]
pub struct Names {
    known: Arc<Mutex<Vec<Name>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    /// Adds a name: meanings separated by blanks, addresses of one by commas.
    pub fn with(self, name: &str, meanings: &str) -> Names {
        let meanings =
            meanings.split(' ').map(|one| one.split(',').map(|ip| ip.parse().expect("an address")).collect());
        self.known.lock().expect("nobody panicked").push((name.to_owned(), meanings.collect()));
        self
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("nobody panicked").clone()
    }
}

impl Lookup for Names {
    fn lookup(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.asked.lock().expect("nobody panicked").push(name.to_owned());
        let mut known = self.known.lock().expect("nobody panicked");
        let found = known.iter_mut().find(|(known, _)| known == name).map(|(_, meanings)| {
            let next = meanings.front().cloned().unwrap_or_default();
            if meanings.len() > 1 {
                meanings.pop_front();
            }
            next
        });
        Box::pin(async move { found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name")) })
    }
}

/// The configuration of most tests: this machine may be asked, and nothing is asked for twice.
pub fn open() -> Config {
    Config::default().with(|config| {
        config.allow_private_ips = true;
        config.retries_max = 0;
        config.env_proxies = false;
        config.timeout_ms = 20_000;
        config.converter = Converter::program(env!("CARGO_BIN_EXE_linchpin-fetch-convert"));
    })
}

/// The configuration as it comes, without what the environment says.
pub fn guarded() -> Config {
    Config::default().with(|config| {
        config.retries_max = 0;
        config.env_proxies = false;
        config.timeout_ms = 20_000;
        config.converter = Converter::program(env!("CARGO_BIN_EXE_linchpin-fetch-convert"));
    })
}

pub struct Caller(pub Connection);

/// A tool's text and structured content, or the text of its error.
pub type Answer = Result<(String, Value), String>;

impl Caller {
    pub async fn of(config: Config) -> Caller {
        Caller::serving(Fetch::open(config).expect("it opens").0, &Revision::ALL).await
    }

    pub async fn with_names(config: Config, names: &Names) -> Caller {
        Caller::serving(Fetch::open_with(config, names.clone()).expect("it opens").0, &Revision::ALL).await
    }

    pub async fn serving(fetch: Fetch, revisions: &[Revision]) -> Caller {
        let server = fetch.add_to(Server::new("linchpin-fetch", "0")).expect("it is put together rightly");
        let client = Client::new("test", "0").revisions(revisions).check_results(true);
        Caller(client.connect(in_process(server)).await.expect("it connects"))
    }

    pub async fn call(&self, arguments: Value) -> Answer {
        let result = self.0.call("fetch", arguments).await.expect("an answer");
        if result.is_error() {
            return Err(result.text());
        }
        let structured = result.structured().map(|json| serde_json::from_str(json).expect("JSON"));
        Ok((result.text(), structured.unwrap_or(Value::Null)))
    }

    pub async fn get(&self, url: &str) -> Answer {
        self.call(json!({ "url": url })).await
    }

    pub async fn text(&self, arguments: Value) -> String {
        self.call(arguments.clone()).await.unwrap_or_else(|e| panic!("{arguments}: {e}")).0
    }

    pub async fn value(&self, arguments: Value) -> Value {
        self.call(arguments.clone()).await.unwrap_or_else(|e| panic!("{arguments}: {e}")).1
    }

    pub async fn error(&self, url: &str) -> String {
        match self.get(url).await {
            Err(error) => error,
            Ok((text, _)) => panic!("{url} was fetched: {text}"),
        }
    }

    pub async fn prompt(&self, url: &str) -> String {
        let result = self.0.prompt("fetch", json!({ "url": url })).await.expect("an answer");
        let value = serde_json::to_value(&result.messages).expect("JSON");
        assert_eq!(value[0]["role"], "user");
        value[0]["content"]["text"].as_str().expect("text").to_owned()
    }
}

/// The first line of an error.
pub fn first(error: &str) -> &str {
    error.lines().next().unwrap_or_default()
}

/// Sentences that readability takes for an article.
pub fn article(n: usize) -> String {
    let one = |i| {
        format!(
            "<p>Paragraph {i} has a good deal of text, with commas, so that it counts as content, yes. <a href=\"/l{i}\">link</a></p>"
        )
    };
    (0..n).map(one).collect()
}
