//! An MCP App in a real browser: the page of `examples/clock` in a sandboxed frame of another origin, with the policy and the
//! messages of `View`; and a page that tries what it must not.

use crate::common::*;
use linchpin::apps::{Act, App, Grant, PageMeta, View};
use linchpin::client::{Client, Connection};
use linchpin::prelude::*;
use linchpin::testing::site::{Do, Site, answer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The page around the frame: it passes messages on, and does nothing else.
const HOST: &str = r#"<!doctype html><title>host</title><iframe sandbox="allow-scripts" src="PAGE"></iframe><script>
const frame = document.querySelector("iframe");
let last = Promise.resolve();
addEventListener("message", ({ source, data }) => {
  if (source !== frame.contentWindow) return;
  // One after the other: requests overtake each other.
  last = last.then(async () => {
    const reply = await fetch("/heard", { method: "POST", body: JSON.stringify(data) });
    for (const message of await reply.json()) frame.contentWindow.postMessage(message, "*");
  });
});
</script>"#;

/// A host: a view, the server of its page, and what the page did.
struct Host {
    view: Mutex<View>,
    server: Connection,
    log: Mutex<Vec<String>>,
}

impl Host {
    /// Takes a message of the page, does what the view says, and returns what the page is sent.
    fn heard(&self, text: &str) -> Vec<Value> {
        let mut view = self.view.lock().unwrap();
        let (mut acts, mut sent) = (view.receive(Instant::now(), text), Vec::new());
        while !acts.is_empty() {
            for act in std::mem::take(&mut acts) {
                match act {
                    Act::Send(text) => sent.push(serde_json::from_str(&text).unwrap()),
                    Act::CallTool { id, name, arguments } => {
                        self.log.lock().unwrap().push(format!("call {name}"));
                        let call = async { self.server.call(&name, arguments).await.unwrap() };
                        let result = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(call));
                        let result = RawValue::from_string(result.as_json().to_owned()).unwrap();
                        acts.extend(view.answer(&id, &result));
                    }
                    Act::Resize { .. } => self.log.lock().unwrap().push("resize".to_owned()),
                    Act::Log(params) => self.log.lock().unwrap().push(format!("log {}", params.get())),
                    Act::Ready => self.log.lock().unwrap().push("ready".to_owned()),
                    Act::Refused(why) => self.log.lock().unwrap().push(format!("refused {why}")),
                    _ => {}
                }
            }
        }
        sent
    }

    async fn until(&self, what: &str) {
        for _ in 0..500 {
            if self.log.lock().unwrap().iter().any(|line| line.contains(what)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{what}: {:?}", self.log.lock().unwrap());
    }
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Time {
    time: &'static str,
}

/// A server with this page, and a host that is connected to it.
async fn host(page: &'static str) -> (Arc<Host>, String) {
    let server = Server::new("clock", "1.0")
        .with(App::new("ui://clock/face", page))
        .tool(Tool::new("now", "Returns the time.").ui("ui://clock/face"), || Json(Time { time: "11:59:59" }))
        .tool(Tool::new("tick", "Returns the time.").ui("ui://clock/face").visible("app"), || {
            Json(Time { time: "12:00:00" })
        });
    let pages = json!({ "mimeTypes": [linchpin::apps::PAGE_TYPE] });
    let client = Client::new("host", "1.0").extension("io.modelcontextprotocol/ui", &pages);
    let server = client.connect(in_process(server)).await.unwrap();
    let read = server.read("ui://clock/face").await.unwrap();
    let raw: Value = serde_json::from_str(read.as_json()).unwrap();
    let meta: PageMeta = serde_json::from_value(raw["contents"][0]["_meta"]["ui"].clone()).unwrap();
    let mut view = View::new(&meta, Grant::new().tools(server.tools().await.unwrap().iter()));
    view.tell_input(&json!({}));
    let result = server.call("now", ()).await.unwrap();
    view.tell_result(&RawValue::from_string(result.as_json().to_owned()).unwrap());
    (Arc::new(Host { view: Mutex::new(view), server, log: Mutex::default() }), read.text())
}

/// The two origins: the host's page, and the sandbox with the page of the server.
async fn sites(host: &Arc<Host>, page: String) -> (Site, Site) {
    let head = format!("{HTML}content-security-policy: {}\r\n", host.view.lock().unwrap().csp());
    let sandbox = Site::new(move |_, _| vec![Do::Write(answer(200, &head, &page))]).await;
    let (outer, host) = (HOST.replace("PAGE", &sandbox.url("/")), host.clone());
    let site = Site::new(move |_, request| {
        let whole = match request.path() {
            "/heard" => {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                answer(200, "content-type: application/json\r\n", Value::Array(host.heard(&body)).to_string())
            }
            "/" => answer(200, HTML, &outer),
            _ => answer(404, "", "no"),
        };
        vec![Do::Write(whole)]
    })
    .await;
    (site, sandbox)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a browser: cargo xtask test --only browser"]
async fn the_page_of_an_app_runs_in_a_sandboxed_frame_and_calls_the_tool_that_is_for_it() {
    let (host, page) = host(include_str!("../../../../examples/clock/face.html")).await;
    let (site, sandbox) = sites(&host, page).await;
    let caller = Caller::of(config(&[&site, &sandbox])).await;
    caller.go(&site.url("/")).await;
    host.until("ready").await;
    host.until("call tick").await;
    host.until("resize").await;
    for _ in 0..100 {
        let shown = caller.call("browser_snapshot", json!({})).await.unwrap();
        if shown.0.concat().contains("12:00:00") || shown.1.to_string().contains("12:00:00") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the face does not show the time: {:?}", caller.call("browser_snapshot", json!({})).await);
}

/// A page that tries to reach another origin in every way, and says when it has tried all.
const EVIL: &str = r#"<!doctype html><title>evil</title><body><script>
const there = "http://127.0.0.1:PORT/";
const tries = [
  fetch(there + "fetch", { mode: "no-cors" }),
  new Promise((done, failed) => { const i = new Image(); i.onload = done; i.onerror = failed; i.src = there + "image"; }),
  new Promise((done, failed) => { const s = document.createElement("script"); s.onload = done; s.onerror = failed; s.src = there + "script"; document.body.append(s); }),
  new Promise((done, failed) => { const f = document.createElement("iframe"); f.src = there + "frame"; document.body.append(f); setTimeout(failed, 300); }),
  new Promise((done, failed) => { try { navigator.sendBeacon(there + "beacon"); } catch {} setTimeout(failed, 100); }),
  new Promise((done, failed) => { try { parent.document.title = "taken"; done(); } catch { failed(); } }),
  new Promise((done, failed) => { try { eval("1"); done(); } catch { failed(); } }),
];
const said = (method, params, id) => parent.postMessage({ jsonrpc: "2.0", id, method, params }, "*");
Promise.allSettled(tries).then(all => {
  said("ui/initialize", {}, 1);
  setTimeout(() => {
    said("ui/notifications/initialized", {});
    said("tools/call", { name: "other" }, 2);
    said("notifications/message", { data: all.map(one => one.status).join() });
  }, 50);
});
</script>"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a browser: cargo xtask test --only browser"]
async fn a_page_reaches_nothing_that_it_did_not_declare() {
    let other = Site::new(|_, _| vec![Do::Write(answer(200, HTML, "there"))]).await;
    let page: &'static str = EVIL.replace("PORT", &other.port().to_string()).leak();
    let (host, page) = host(page).await;
    let (site, sandbox) = sites(&host, page).await;
    let caller = Caller::of(config(&[&site, &sandbox, &other])).await;
    caller.go(&site.url("/")).await;
    host.until(r#"log {"data":"#).await;
    let log = host.log.lock().unwrap().clone();
    let tried = log.iter().find(|line| line.starts_with("log ")).unwrap();
    assert_eq!(tried.matches("rejected").count(), 7, "{log:?}");
    assert!(log.iter().any(|line| line.contains("refused tools/call: no tool other")), "{log:?}");
    assert_eq!((other.requests().len(), caller.eval("document.title").await.as_str()), (0, "\"host\""));
    // Without the policy the same page reaches it: the control.
    caller.go(&other.url("/")).await;
    assert_eq!(other.requests().len(), 1);
}
