//! Sites on this machine, and our server as a client sees it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use linchpin::client::{Change, Client, Connection};
use linchpin::prelude::*;
use linchpin::testing::site::{Do, Seen, Site, answer};
use linchpin::types::version::Revision;
use linchpin_browser::{BrowserServer, Config};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A site of pages: path (without query), head lines and body. Everything else is 404.
pub async fn site(pages: &[(&'static str, &'static str, String)]) -> Site {
    let pages: Vec<(&str, &str, String)> = pages.to_vec();
    Site::new(move |_, request: &Seen| {
        let found = pages.iter().find(|(path, ..)| *path == request.path());
        let whole = match found {
            Some((_, head, body)) if head.contains("location:") => answer(302, head, body),
            Some((_, head, body)) => answer(200, head, body),
            None => answer(404, "", "no"),
        };
        vec![Do::Write(whole)]
    })
    .await
}

pub const HTML: &str = "content-type: text/html; charset=utf-8\r\n";
pub const JS: &str = "content-type: text/javascript\r\n";

/// A configuration under which these sites of this machine may be reached, and nothing else of it.
pub fn config(sites: &[&Site]) -> Config {
    Config::default().with(|config| {
        config.no_sandbox = true;
        config.tools.toolsets = vec!["all".to_owned()];
        config.allow_private_hosts =
            sites.iter().map(|site| format!("127.0.0.1:{}", site.port()).parse().expect("a host")).collect();
    })
}

/// A client of our server.
pub struct Caller {
    pub connection: Connection,
    pub changes: Arc<Mutex<Vec<String>>>,
}

/// Text blocks and structured content, or the text of an error.
pub type Answer = Result<(Vec<String>, Value), String>;

impl Caller {
    pub async fn of(config: Config) -> Caller {
        Caller::serving(BrowserServer::open(config).expect("it opens").0, &Revision::ALL).await
    }

    pub async fn serving(browser: BrowserServer, revisions: &[Revision]) -> Caller {
        let server = browser.add_to(Server::new("linchpin-browser", "0")).expect("it is put together rightly");
        Caller::to(in_process(server), revisions).await
    }

    pub async fn to(server: impl linchpin::transport::Connector, revisions: &[Revision]) -> Caller {
        let changes = Arc::new(Mutex::new(Vec::new()));
        let heard = changes.clone();
        let client = Client::new("test", "0").revisions(revisions).check_results(true).on_change(move |change| {
            let what = match change {
                Change::Resources => "list".to_owned(),
                Change::Updated(uri) => uri,
                other => format!("{other:?}"),
            };
            heard.lock().expect("nobody panicked").push(what);
        });
        Caller { connection: client.connect(server).await.expect("it connects"), changes }
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Answer {
        let result = self.connection.call(tool, arguments).await.expect("an answer");
        if result.is_error() {
            return Err(result.text());
        }
        let whole = serde_json::to_value(result.content().expect("known blocks")).expect("JSON");
        let blocks = whole.as_array().expect("blocks").iter().map(|block| match block["type"].as_str() {
            Some("text") => block["text"].as_str().unwrap_or_default().to_owned(),
            _ => format!(
                "{}: {}",
                block["mimeType"].as_str().unwrap_or_default(),
                block["data"].as_str().unwrap_or_default()
            ),
        });
        let structured = result.structured().map(|json| serde_json::from_str(json).expect("JSON"));
        Ok((blocks.collect(), structured.unwrap_or(Value::Null)))
    }

    /// The first text of an answer.
    pub async fn text(&self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments.clone()).await;
        answer.unwrap_or_else(|e| panic!("{tool} {arguments}: {e}")).0.swap_remove(0)
    }

    /// The first line of an error.
    pub async fn error(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments.clone()).await {
            Err(error) => error.lines().next().unwrap_or_default().to_owned(),
            Ok((text, _)) => panic!("{tool} {arguments}: {text:?}"),
        }
    }

    pub async fn go(&self, url: &str) -> String {
        self.text("puppeteer_navigate", json!({ "url": url })).await
    }

    /// What a script is.
    pub async fn eval(&self, script: &str) -> String {
        let text = self.text("puppeteer_evaluate", json!({ "script": script })).await;
        let rest = text.strip_prefix("Execution result:\n").expect("a result");
        rest.split("\n\nConsole output:").next().unwrap_or_default().to_owned()
    }
}

/// One server for several clients, on a socket of its own.
pub struct Served {
    dir: tempfile::TempDir,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Served {
    pub async fn with(config: Config) -> Served {
        let dir = tempfile::tempdir().expect("a folder");
        let place = linchpin::transport::unix(dir.path().join("s"));
        let browser = BrowserServer::open(config).expect("it opens").0;
        let server = browser.add_to(Server::new("linchpin-browser", "0")).expect("it is put together rightly");
        let task = tokio::spawn(async move { server.serve(place).await.expect("it serves") });
        Served { dir, task }
    }

    pub async fn client(&self, revisions: &[Revision]) -> Caller {
        let path = self.dir.path().join("s");
        while !path.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        Caller::to(linchpin::transport::unix(path), revisions).await
    }
}

/// The process of the browser that this test has started, if there is one.
pub fn browser_process() -> Option<u32> {
    let me = std::process::id();
    let all = std::fs::read_dir("/proc").ok()?.flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |id: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let rest = stat.rsplit_once(") ")?.1;
        rest.starts_with(['S', 'R', 'D']).then(|| rest.split(' ').nth(1)?.parse::<u32>().ok()).flatten()
    };
    let line = |id: u32| std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    ids.filter(|id| parent(*id) == Some(me))
        .find(|id| String::from_utf8_lossy(&line(*id)).contains("--remote-debugging-pipe"))
}
