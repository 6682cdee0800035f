//! The integration tests of `linchpin-apps`: what a server says of its apps, to whom.

use linchpin::apps::{App, PAGE_TYPE, PageMeta};
use linchpin::client::Connection;
use linchpin::prelude::*;
use linchpin::transport::IntoService;
use linchpin::types::version::Revision;
use serde_json::{Value, json};

const FACE: &str = "ui://clock/face";
const HTML: &str = "<!doctype html><title>Clock</title>";

fn face() -> App {
    App::new(FACE, HTML).connect(["https://api.example.com"]).load(["https://cdn.example.com"]).border(true).camera()
}

struct Clock;

#[register]
impl Clock {
    /// Returns the time.
    #[tool(read_only, ui = FACE)]
    fn now(&self, cx: &Cx) -> String {
        format!("12:00 {}", cx.wants_ui())
    }

    /// Returns the time for the face.
    #[tool(ui = FACE, visible = "app")]
    fn tick(&self) -> String {
        "12:01".to_owned()
    }

    /// Sets the clock.
    #[tool(ui = FACE, visible = "model")]
    fn set(&self) {}

    /// Has no page.
    #[tool]
    fn zone(&self) -> String {
        "UTC".to_owned()
    }
}

fn server() -> Server {
    let lists = linchpin::types::page::CacheScope::Public;
    Server::new("clock", "1.0").cache_lists(60_000, lists).with(face()).with(Clock).resource("clock://zone", || "UTC")
}

async fn connect(revision: Revision, settings: Option<Value>) -> Connection {
    let client = Client::new("h", "1.0").revisions(&[revision]).cache(false);
    let client = match &settings {
        Some(settings) => client.extension("io.modelcontextprotocol/ui", settings),
        None => client,
    };
    client.connect(in_process(server())).await.unwrap()
}

async fn ask(c: &Connection, method: &str, params: Value) -> Value {
    serde_json::from_str(c.request(method, params).await.unwrap().get()).unwrap()
}

#[tokio::test]
async fn pages_and_what_belongs_to_them_are_for_clients_that_show_pages_in_every_revision() {
    for revision in Revision::ALL {
        let legacy = revision < Revision::V2026_07_28;
        let c = connect(revision, Some(json!({ "mimeTypes": ["image/png", PAGE_TYPE] }))).await;
        assert!(c.capabilities().extensions.contains_key("io.modelcontextprotocol/ui"), "{revision:?}");
        let list = ask(&c, "tools/list", json!({})).await;
        let ui = |at: usize| list["tools"][at]["_meta"]["ui"].clone();
        let names: Vec<_> = list["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["now", "tick", "set", "zone"], "{revision:?}");
        assert_eq!(ui(0), json!({ "resourceUri": FACE }), "{revision:?}");
        assert_eq!(ui(1), json!({ "resourceUri": FACE, "visibility": ["app"] }));
        assert_eq!((ui(2)["visibility"].clone(), ui(3)), (json!(["model"]), Value::Null));
        assert_eq!(list["tools"][0]["_meta"].get("ui/resourceUri").is_some(), legacy, "{revision:?}");
        assert_eq!(list.get("cacheScope"), (!legacy).then(|| json!("private")).as_ref(), "{revision:?}");
        let resources = ask(&c, "resources/list", json!({})).await;
        let face = &resources["resources"][0];
        assert_eq!((&face["uri"], &face["mimeType"]), (&json!(FACE), &json!(PAGE_TYPE)), "{revision:?}");
        assert_eq!(face["_meta"]["ui"]["csp"]["connectDomains"], json!(["https://api.example.com"]), "{revision:?}");
        assert_eq!(c.call("now", ()).await.unwrap().text(), "12:00 true");
        assert_eq!(c.call("tick", ()).await.unwrap().text(), "12:01");

        for settings in
            [None, Some(json!({})), Some(json!({ "mimeTypes": ["text/html"] })), Some(json!({ "mimeTypes": 7 }))]
        {
            let c = connect(revision, settings.clone()).await;
            let list = ask(&c, "tools/list", json!({})).await;
            let tools = list["tools"].as_array().unwrap();
            let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            assert_eq!(names, ["now", "set", "zone"], "{revision:?} {settings:?}");
            assert!(tools.iter().all(|tool| tool.get("_meta").is_none()), "{revision:?} {settings:?}");
            let resources = ask(&c, "resources/list", json!({})).await;
            let uris: Vec<_> = resources["resources"].as_array().unwrap().iter().map(|r| r["uri"].clone()).collect();
            assert_eq!(uris, ["clock://zone"], "{revision:?} {settings:?}");
            assert_eq!(c.call("now", ()).await.unwrap().text(), "12:00 false");
            let unknown = c.call("tick", ()).await.unwrap_err();
            assert!(unknown.to_string().contains("Unknown tool: tick"), "{revision:?}: {unknown}");
        }
    }
}

#[tokio::test]
async fn anybody_may_read_a_page_and_is_told_what_it_may_do() {
    for settings in [None, Some(json!({ "mimeTypes": [PAGE_TYPE] }))] {
        let c = connect(Revision::LATEST, settings).await;
        let read = c.read(FACE).await.unwrap();
        assert_eq!((read.text().as_str(), read.contents[0].mime_type()), (HTML, Some(PAGE_TYPE)));
        let raw: Value = serde_json::from_str(read.as_json()).unwrap();
        let meta: PageMeta = serde_json::from_value(raw["contents"][0]["_meta"]["ui"].clone()).unwrap();
        assert_eq!(
            (meta.prefers_border, meta.csp.resource_domains),
            (Some(true), vec!["https://cdn.example.com".to_owned()])
        );
        assert!(meta.permissions.camera.is_some() && meta.permissions.microphone.is_none());
    }
}

#[test]
fn what_is_wrong_with_an_app_stops_the_start_in_words() {
    let tool = |tool: Tool| Server::new("s", "1").with(face()).tool(tool, || "x");
    let app = |app: App| Server::new("s", "1").with(app);
    let large = format!("{HTML}{}", "x".repeat(2 << 20));
    for (server, expected) in [
        (tool(Tool::new("t", "").ui("ui://clock/other")), "tool `t` (crates/apps/tests/it/main.rs"),
        (tool(Tool::new("t", "").ui("ui://clock/other")), "there is no app `ui://clock/other`"),
        (tool(Tool::new("t", "").ui("https://clock")), "the URI of an app begins with `ui://`"),
        (tool(Tool::new("t", "").visible("app")), "a tool for apps only needs its app"),
        (tool(Tool::new("t", "").ui(FACE).visible("nobody")), "`visible` is \"app\" or \"model\""),
        (
            Server::new("s", "1").resource("ui://a", || HTML).tool(Tool::new("t", "").ui("ui://a"), || "x"),
            "there is no app `ui://a`",
        ),
        (app(App::new("clock://face", HTML)), "its URI begins with `ui://`"),
        (app(App::new("ui://", HTML)), "its URI begins with `ui://`"),
        (app(App::new("ui://a/{b}", HTML)), "has no variables"),
        (app(App::new(FACE, "hello")), "does not begin like HTML"),
        (app(App::new(FACE, large)), "larger than 2 MiB"),
        (app(face().connect(["https://a.example; script-src *"])), "the origin \"https://a.example; script-src *\""),
        (app(face().load(["'unsafe-eval'"])), "'unsafe-eval'"),
        (app(face().frame(["*"])), "an origin begins with https://"),
        (app(face().base(["http://a.example"])), "only https and wss"),
        (app(face().load(["wss://a.example"])), "WebSockets are for connections only"),
    ] {
        let error = server.into_shared().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    assert!(tool(Tool::new("t", "").ui(FACE)).into_shared().is_ok());
}
