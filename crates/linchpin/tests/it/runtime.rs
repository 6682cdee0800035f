//! Changes while a server runs, and their notifications; pagination and caching of lists.

use crate::common;

use common::{ALL, LEGACY, MODERN, Peer, code, failed, service, text, until};
use linchpin::prelude::*;
use linchpin::types::page::CacheScope;
use linchpin::{ChangeError, Tools};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

#[derive(Deserialize, JsonSchema)]
struct ManyUris {
    uri: Vec<String>,
}

/// `tags` are not a variable of the template, so they never arrive as a string.
#[derive(Deserialize, JsonSchema)]
struct Tagged {
    name: String,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Several {
    ids: Vec<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Named {
    name: String,
}

fn one() -> Server {
    Server::new("runtime", "1")
        .tool("one", |_: NoArgs| async { "1" })
        .resource("notes://one", |_: NoArgs| async { "1" })
        .prompt("one", |_: NoArgs| async { "1" })
        .limits(|l| l.lists.changed_ms_min = 40)
}

async fn names(peer: &mut Peer, method: &str, member: &str, by: &str) -> Vec<String> {
    let result = peer.ask(method, json!({})).await["result"].clone();
    result[member]
        .as_array()
        .unwrap_or_else(|| panic!("{result}"))
        .iter()
        .map(|i| i[by].as_str().unwrap().to_owned())
        .collect()
}

/// Opens a listen stream and reads its acknowledgement. Returns its id and the granted filter.
async fn listen(peer: &mut Peer, filter: Value) -> (u64, Value) {
    let id = peer.request("subscriptions/listen", json!({ "notifications": filter })).await;
    let ack = peer.said("notifications/subscriptions/acknowledged").await;
    assert_eq!(ack["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    (id, ack["params"]["notifications"].clone())
}

#[tokio::test]
async fn tools_come_go_and_change_while_the_server_runs() {
    let server = one();
    let tools = server.tools();
    let mut peer = Peer::plain(server, "2025-11-25").await;
    tools.insert(("two", "Second."), |_: NoArgs| async { "2" }).unwrap();
    assert_eq!(names(&mut peer, "tools/list", "tools", "name").await, ["one", "two"]);
    assert_eq!(text(&peer.call("two", json!({})).await), "2");
    let twice = tools.insert("two", |_: NoArgs| async { "x" }).unwrap_err().to_string();
    assert!(twice.contains("`two` is defined twice") && twice.matches("runtime.rs:").count() == 2, "{twice}");
    assert_eq!((tools.disable("one"), tools.disable("one")), (Ok(true), Ok(false)));
    assert_eq!(names(&mut peer, "tools/list", "tools", "name").await, ["two"]);
    assert_eq!(code(&peer.call("one", json!({})).await), -32602);
    assert_eq!(tools.enable("one"), Ok(true));
    let unknown = tools.enable("twoo").unwrap_err();
    assert_eq!(unknown.to_string(), "unknown tool `twoo`; did you mean `two`?");
    assert_eq!(names(&mut peer, "tools/list", "tools", "name").await, ["one", "two"], "its place is what it was");
    tools.update("two", |t| t.title("Zwei").description("Changed.")).unwrap();
    let listed = peer.ask("tools/list", json!({})).await;
    assert_eq!(
        (&listed["result"]["tools"][1]["title"], &listed["result"]["tools"][1]["description"]),
        (&json!("Zwei"), &json!("Changed."))
    );
    assert_eq!((tools.remove("one"), tools.remove("two")), (Ok(()), Ok(())));
    assert!(tools.remove("two").is_err());
    assert_eq!(
        names(&mut peer, "tools/list", "tools", "name").await,
        Vec::<String>::new(),
        "an empty list, not a missing method"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_list_is_without_what_is_being_replaced() {
    let server = one();
    let (tools, resources, prompts) = (server.tools(), server.resources(), server.prompts());
    let done = Arc::new(AtomicBool::new(false));
    let mut peer = Peer::plain(server, MODERN).await;
    let listing = tokio::spawn({
        let done = done.clone();
        async move {
            let mut lists = 0;
            while lists < 100 || !done.load(Ordering::Relaxed) {
                assert_eq!(names(&mut peer, "tools/list", "tools", "name").await, ["one"]);
                assert_eq!(names(&mut peer, "resources/list", "resources", "uri").await, ["notes://one"]);
                assert_eq!(names(&mut peer, "prompts/list", "prompts", "name").await, ["one"]);
                lists += 1;
            }
            peer
        }
    });
    for n in 0..500 {
        tools.replace("one", move || n.to_string()).unwrap();
        resources.replace("notes://one", move || n.to_string()).unwrap();
        prompts.replace("one", move || n.to_string()).unwrap();
        tokio::task::yield_now().await;
    }
    done.store(true, Ordering::Relaxed);
    let mut peer = listing.await.unwrap();
    assert_eq!(text(&peer.call("one", json!({})).await), "499");
    let read = peer.ask("resources/read", json!({ "uri": "notes://one" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "499");

    let unknown = tools.replace("ones", || "x").unwrap_err();
    assert_eq!(unknown.to_string(), "unknown tool `ones`; did you mean `one`?");
    tools.disable("one").unwrap();
    tools.replace("one", || "new").unwrap();
    assert!(tools.names().is_empty(), "what was disabled stays so");
    let blank = tools.replace(Tool::new("a b", ""), || "x").unwrap_err();
    assert!(matches!(&blank, ChangeError::Invalid(why) if why.contains("`a b`")), "{blank}");
}

#[tokio::test]
async fn what_is_renamed_is_listed_and_counted_under_its_new_name() {
    let items = Arc::new(std::sync::Mutex::new(Vec::new()));
    let counted = items.clone();
    let layer = move |call: Call, next: Next| {
        counted.lock().unwrap().push(call.item().unwrap_or_default().to_owned());
        next.run(call)
    };
    let server = Server::new("runtime", "1").layer(layer).tool("pick", || "picked").prompt("ask", || "asked");
    let (tools, prompts) = (server.tools(), server.prompts());
    let mut peer = Peer::plain(server, "2025-11-25").await;
    tools.rename("pick", "choose").unwrap();
    peer.said("notifications/tools/list_changed").await;
    prompts.rename("ask", "wonder").unwrap();
    peer.said("notifications/prompts/list_changed").await;
    for (method, kind, get, names) in [
        ("tools/list", "tools", "tools/call", ["choose", "pick"]),
        ("prompts/list", "prompts", "prompts/get", ["wonder", "ask"]),
    ] {
        let listed = peer.ask(method, json!({})).await["result"][kind].clone();
        assert_eq!((listed.as_array().unwrap().len(), &listed[0]["name"]), (1, &json!(names[0])));
        // The old name is an alias.
        for name in names {
            assert!(peer.ask(get, json!({ "name": name })).await["result"].is_object(), "{name}");
        }
    }
    assert_eq!(*items.lock().unwrap(), ["choose", "choose", "wonder", "wonder"]);
}

#[tokio::test]
async fn an_update_changes_schemas_and_layers_too() {
    #[derive(Deserialize, JsonSchema)]
    struct Pick {
        word: String,
    }
    let server = Server::new("runtime", "1").tool("pick", |q: Pick| q.word).prompt("ask", |q: Named| q.name);
    let (tools, prompts, resources) = (server.tools(), server.prompts(), server.resources());
    resources.insert("notes://one", || "1").unwrap();
    let mut peer = Peer::plain(server, "2025-11-25").await;
    assert_eq!(text(&peer.call("pick", json!({ "word": "read" })).await), "read");
    let only = json!({ "type": "object", "properties": { "word": { "enum": ["admin"] } }, "required": ["word"] });
    tools.update("pick", |tool| tool.input_schema(only.clone()).description("Narrower.")).unwrap();
    let listed = peer.ask("tools/list", json!({})).await["result"]["tools"][0].clone();
    assert_eq!((&listed["inputSchema"], &listed["description"]), (&only, &json!("Narrower.")));
    assert!(failed(&peer.call("pick", json!({ "word": "read" })).await).contains("admin"));
    assert_eq!(text(&peer.call("pick", json!({ "word": "admin" })).await), "admin");

    async fn locked(call: Call, _: Next) -> Reply {
        call.refuse("locked")
    }
    tools.update("pick", |tool| tool.layer(locked).alias("choose").output_schema(json!({ "type": "object" }))).unwrap();
    assert_eq!(failed(&peer.call("choose", json!({ "word": "admin" })).await), "locked");
    let listed = peer.ask("tools/list", json!({})).await["result"]["tools"][0].clone();
    assert_eq!((&listed["inputSchema"], &listed["outputSchema"]), (&only, &json!({ "type": "object" })));

    let wrong = tools.update("pick", |tool| tool.input_schema(json!({ "type": "string" }))).unwrap_err();
    assert!(wrong.to_string().contains("arguments must be a struct"), "{wrong}");
    let renamed = tools.update("pick", |_| Tool::new("pack", "")).unwrap_err().to_string();
    assert!(renamed.contains("cannot change its name to `pack`"), "{renamed}");
    assert!(matches!(tools.update("pack", |tool| tool), Err(ChangeError::Unknown { .. })));
    assert_eq!(peer.ask("tools/list", json!({})).await["result"]["tools"][0], listed, "nothing of that was done");

    prompts.update("ask", |prompt| prompt.argument("name", "Whom.", true).title("Ask")).unwrap();
    let listed = peer.ask("prompts/list", json!({})).await["result"]["prompts"][0].clone();
    assert_eq!((&listed["title"], &listed["arguments"][0]["description"]), (&json!("Ask"), &json!("Whom.")));
    resources.update("notes://one", |resource| resource.mime_type("text/markdown")).unwrap();
    let read = peer.ask("resources/read", json!({ "uri": "notes://one" })).await;
    assert_eq!(read["result"]["contents"][0]["mimeType"], "text/markdown");
}

/// The dynamic server of the TypeScript SDK's README: a tool that changes, replaces and removes itself.
#[tokio::test]
async fn a_tool_replaces_itself() {
    #[derive(Deserialize, JsonSchema)]
    struct Upgrade {
        permission: String,
    }

    /// What names `upgrade_auth` is a function beside it: inside it rustc could not know yet that its future is `Send`.
    fn offer_again(tools: &Tools) -> Result<(), ChangeError> {
        let admin = json!({ "type": "object", "properties": { "permission": { "enum": ["admin"] } } });
        tools.replace(Tool::new("upgrade_auth", "Only admin is left.").input_schema(admin), upgrade_auth)
    }

    async fn upgrade_auth(cx: &Cx, q: Upgrade) -> Result<String> {
        let tools = cx.server().tools();
        tools.enable("put_message")?;
        match q.permission.as_str() {
            "write" => offer_again(&tools)?,
            _ => tools.remove("upgrade_auth")?,
        }
        Ok(q.permission)
    }

    let server = Server::new("runtime", "1").tool("put_message", || "put").tool("upgrade_auth", upgrade_auth);
    server.tools().disable("put_message").unwrap();
    let mut peer = Peer::plain(server, "2025-11-25").await;
    assert_eq!(names(&mut peer, "tools/list", "tools", "name").await, ["upgrade_auth"]);
    assert_eq!(text(&peer.call("upgrade_auth", json!({ "permission": "write" })).await), "write");
    assert_eq!(names(&mut peer, "tools/list", "tools", "name").await, ["put_message", "upgrade_auth"]);
    assert!(failed(&peer.call("upgrade_auth", json!({ "permission": "write" })).await).contains("admin"));
    assert_eq!(text(&peer.call("upgrade_auth", json!({ "permission": "admin" })).await), "admin");
    assert_eq!(names(&mut peer, "tools/list", "tools", "name").await, ["put_message"]);
}

struct Counter {
    own: AtomicUsize,
    alive: Arc<AtomicUsize>,
}

impl Counter {
    fn new(alive: &Arc<AtomicUsize>) -> Counter {
        alive.fetch_add(1, Ordering::SeqCst);
        Counter { own: AtomicUsize::new(0), alive: alive.clone() }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn each_connection_has_a_state_of_its_own_that_ends_with_it() {
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = alive.clone();
    let server = Server::new("runtime", "1")
        .state("shared")
        .tool("shared", |word: &&'static str| *word)
        .session_state(move || Counter::new(&counted))
        .tool("count", |counter: &Counter| (counter.own.fetch_add(1, Ordering::SeqCst) + 1).to_string())
        .resource("count:", async |counter: &Counter| counter.own.load(Ordering::SeqCst).to_string())
        .state(());
    let service = service(server);
    for revision in ALL {
        let mut one = Peer::of(service.clone(), revision, json!({})).await;
        let mut two = Peer::of(service.clone(), revision, json!({})).await;
        assert_eq!(alive.load(Ordering::SeqCst), 0, "nothing is made before it is wanted");
        for want in ["1", "2", "3"] {
            assert_eq!(text(&one.call("count", json!({})).await), want, "{revision}");
        }
        assert_eq!(text(&two.call("count", json!({})).await), "1", "{revision}");
        assert_eq!(text(&two.call("shared", json!({})).await), "shared");
        let read = one.ask("resources/read", json!({ "uri": "count:" })).await;
        assert_eq!(read["result"]["contents"][0]["text"], "3", "tools and resources share it");
        assert_eq!(alive.load(Ordering::SeqCst), 2);
        drop(one);
        until("the first is gone", || alive.load(Ordering::SeqCst) == 1).await;
        drop(two);
        until("both are gone", || alive.load(Ordering::SeqCst) == 0).await;
    }
}

#[tokio::test]
async fn a_server_is_served_over_any_pair_of_streams() {
    use linchpin::transport::Bind;
    use linchpin::transport::pipes;
    use tokio::net::{TcpListener, TcpStream};

    let service = service(one().tool("two", || "2"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (read, write) = listener.accept().await.unwrap().0.into_split();
            tokio::spawn(pipes(read, write).serve(service.clone()));
        }
    });
    let connect = async || {
        let (read, write) = TcpStream::connect(addr).await.unwrap().into_split();
        Client::new("host", "1").connect(pipes(read, write)).await.unwrap()
    };
    let (first, second) = (connect().await, connect().await);
    assert_eq!(first.call("two", json!({})).await.unwrap().text(), "2");
    drop(first);
    assert_eq!(second.call("two", json!({})).await.unwrap().text(), "2", "the end of one is not that of the other");

    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(ours);
    let served = tokio::spawn(one().serve(pipes(read, write)));
    let (read, write) = tokio::io::split(theirs);
    let client = Client::new("host", "1").connect(pipes(read, write)).await.unwrap();
    assert_eq!(client.call("one", json!({})).await.unwrap().text(), "1");
    drop(client);
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn resources_and_prompts_change_too() {
    let server = one();
    let (resources, prompts) = (server.resources(), server.prompts());
    let mut peer = Peer::plain(server, MODERN).await;
    resources.insert("notes://two", |_: NoArgs| async { "2" }).unwrap();
    resources.insert("notes://{name}/page", |q: Named| async move { q.name }).unwrap();
    prompts.insert("two", |q: Named| async move { q.name }).unwrap();
    assert_eq!(names(&mut peer, "resources/list", "resources", "uri").await, ["notes://one", "notes://two"]);
    assert_eq!(
        names(&mut peer, "resources/templates/list", "resourceTemplates", "uriTemplate").await,
        ["notes://{name}/page"]
    );
    assert_eq!(names(&mut peer, "prompts/list", "prompts", "name").await, ["one", "two"]);
    assert_eq!((resources.remove("notes://one"), prompts.remove("one")), (Ok(()), Ok(())));
    let unknown = [resources.remove("notes://tow"), prompts.update("twoo", |p| p)].map(|r| r.unwrap_err().to_string());
    assert_eq!(
        unknown,
        ["unknown resource `notes://tow`; did you mean `notes://two`?", "unknown prompt `twoo`; did you mean `two`?"]
    );
    assert_ne!(peer.ask("resources/read", json!({ "uri": "notes://one" })).await["error"], json!(null));
    assert_eq!(code(&peer.ask("prompts/get", json!({ "name": "one" })).await), -32602);
}

#[tokio::test]
async fn a_burst_of_changes_is_told_at_once_and_then_once_more() {
    for revision in LEGACY {
        // Longer than the burst takes, on a busy machine too.
        let server = one().limits(|l| l.lists.changed_ms_min = 500);
        let tools = server.tools();
        let mut peer = Peer::plain(server, revision).await;
        peer.alive().await;
        for n in 0..50 {
            tools.insert(format!("t{n}").as_str(), |_: NoArgs| async { "x" }).unwrap();
        }
        peer.said("notifications/tools/list_changed").await;
        peer.said("notifications/tools/list_changed").await;
        peer.quiet().await;
        assert_eq!(
            names(&mut peer, "tools/list", "tools", "name").await.len(),
            51,
            "the last notice came after the last change"
        );
    }
}

#[tokio::test]
async fn a_listen_stream_hears_what_it_asked_for_and_nothing_else() {
    let server = one();
    let (handle, tools, resources, prompts) = (server.handle(), server.tools(), server.resources(), server.prompts());
    let mut peer = Peer::plain(server, MODERN).await;
    let (first, granted) =
        listen(&mut peer, json!({ "toolsListChanged": true, "resourceSubscriptions": ["notes://one"] })).await;
    assert_eq!(granted, json!({ "toolsListChanged": true, "resourceSubscriptions": ["notes://one"] }));
    let (second, granted) = listen(&mut peer, json!({ "promptsListChanged": true, "toolsListChanged": false })).await;
    assert_eq!(granted, json!({ "promptsListChanged": true }));
    resources.insert("notes://two", |_: NoArgs| async { "2" }).unwrap();
    handle.resource_updated("notes://two");
    peer.quiet().await;
    let of = |m: &Value| m["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    tools.insert("two", |_: NoArgs| async { "2" }).unwrap();
    assert_eq!(of(&peer.said("notifications/tools/list_changed").await), first);
    prompts.insert("two", |_: NoArgs| async { "2" }).unwrap();
    assert_eq!(of(&peer.said("notifications/prompts/list_changed").await), second);
    handle.resource_updated("notes://one");
    let updated = peer.said("notifications/resources/updated").await;
    assert_eq!((of(&updated), &updated["params"]["uri"]), (json!(first), &json!("notes://one")));
    // A cancelled stream sends no notifications and no response.
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": first } })).await;
    peer.alive().await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    tools.remove("two").unwrap();
    peer.quiet().await;
    assert_eq!(handle.listeners(), 1);
}

#[tokio::test]
async fn a_client_that_did_not_listen_hears_nothing() {
    let server = one();
    let tools = server.tools();
    let mut peer = Peer::plain(server, MODERN).await;
    peer.alive().await;
    tools.insert("two", |_: NoArgs| async { "2" }).unwrap();
    peer.quiet().await;
}

#[tokio::test]
async fn a_listen_stream_ends_with_its_answer_when_the_server_does() {
    let mut peer = Peer::plain(one(), MODERN).await;
    let (id, _) = listen(&mut peer, json!({ "toolsListChanged": true })).await;
    peer.end().await;
    let end = peer.answer(id).await;
    assert_eq!(end["result"]["resultType"], "complete", "{end}");
    assert_eq!(end["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    assert_eq!(peer.line().await, None);
}

#[tokio::test]
async fn nothing_is_granted_that_is_not_offered_and_nonsense_is_refused() {
    let mut peer = Peer::plain(Server::new("x", "1").tool("one", |_: NoArgs| async { "1" }), MODERN).await;
    let all = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["a:b"] });
    assert_eq!(listen(&mut peer, all).await.1, json!({ "toolsListChanged": true }));
    for bad in [json!({}), json!({ "notifications": 7 }), json!({ "notifications": { "toolsListChanged": "yes" } })] {
        assert_eq!(code(&peer.ask("subscriptions/listen", bad).await), -32602);
    }
}

#[tokio::test]
async fn listen_streams_and_subscriptions_are_bounded() {
    let limited = one().limits(|l| {
        (l.subscriptions.streams_max, l.sessions.concurrent_max, l.subscriptions.resources_max) = (1, 1, 2)
    });
    let mut peer = Peer::plain(limited, MODERN).await;
    let many = json!({ "notifications": { "resourceSubscriptions": ["a:1", "a:2", "a:3"] } });
    assert_eq!(code(&peer.ask("subscriptions/listen", many).await), -32602);
    listen(&mut peer, json!({ "toolsListChanged": true })).await;
    listen(&mut peer, json!({ "toolsListChanged": true })).await;
    let third = peer.ask("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })).await;
    assert_eq!(code(&third), -32603);
    let mut peer = Peer::plain(one().limits(|l| l.subscriptions.resources_max = 2), "2025-11-25").await;
    for (uri, fits) in [("a:1", true), ("a:2", true), ("a:1", true), ("a:3", false)] {
        assert_eq!(peer.ask("resources/subscribe", json!({ "uri": uri })).await.get("result").is_some(), fits, "{uri}");
    }
}

#[tokio::test]
async fn long_uris_cannot_be_subscribed_to_and_no_session_holds_many_bytes_of_them() {
    let uri = |n: usize, len: usize| format!("notes://{n:0>width$}", width = len - 8);
    let limit = |answer: &Value| answer["error"]["message"].as_str().unwrap_or_default().to_owned();
    let mut legacy = Peer::plain(one(), "2025-11-25").await;
    let mut modern = Peer::plain(one(), MODERN).await;
    let listen = |uris: Vec<String>| json!({ "notifications": { "resourceSubscriptions": uris } });
    let too_long = legacy.ask("resources/subscribe", json!({ "uri": uri(1, 8_193) })).await;
    assert_eq!((code(&too_long), limit(&too_long).as_str()), (-32602, "the URI is longer than 8192 bytes"));
    assert_eq!(limit(&modern.ask("subscriptions/listen", listen(vec![uri(1, 8_193)])).await), limit(&too_long));
    for n in 0..32 {
        assert!(legacy.ask("resources/subscribe", json!({ "uri": uri(n, 8_192) })).await["result"].is_object(), "{n}");
    }
    let too_many = legacy.ask("resources/subscribe", json!({ "uri": uri(32, 8_192) })).await;
    assert_eq!(code(&too_many), -32602);
    assert!(limit(&too_many).contains("262144 bytes together; end one first"), "{too_many}");
    let all = (0..33).map(|n| uri(n, 8_192)).collect();
    assert_eq!(limit(&modern.ask("subscriptions/listen", listen(all)).await), limit(&too_many));
    legacy.ask("resources/unsubscribe", json!({ "uri": uri(0, 8_192) })).await;
    assert!(legacy.ask("resources/subscribe", json!({ "uri": uri(32, 8_192) })).await["result"].is_object());
}

#[tokio::test]
async fn listen_streams_leave_calls_their_places() {
    let narrow = one().tool("wait", |_: NoArgs| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        "waited"
    });
    let service = service(narrow.limits(|l| {
        (l.calls.per_peer_max, l.calls.concurrent_max, l.subscriptions.streams_per_peer_max) = (1, 1, 3);
    }));
    let filter = json!({ "toolsListChanged": true });
    let mut one = Peer::of(service.clone(), MODERN, json!({})).await;
    let mut two = Peer::of(service, MODERN, json!({})).await;
    for peer in [&mut one, &mut two] {
        for _ in 0..3 {
            listen(peer, filter.clone()).await;
        }
        let refused = peer.ask("subscriptions/listen", json!({ "notifications": filter })).await;
        assert_eq!(code(&refused), -32603);
        assert!(refused["error"]["message"].as_str().unwrap().contains("limit 3"), "{refused}");
    }
    for peer in [&mut one, &mut two] {
        peer.alive().await;
        assert_eq!(text(&peer.call("wait", json!({})).await), "waited");
    }
    // A cancelled stream frees its slot.
    one.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } })).await;
    one.alive().await;
    listen(&mut one, filter.clone()).await;
}

#[tokio::test]
async fn a_session_hears_of_the_resources_it_subscribed_to_and_no_others() {
    let server = one();
    let handle = server.handle();
    let service = service(server);
    let mut peer = Peer::of(service.clone(), "2025-06-18", json!({})).await;
    let mut other = Peer::of(service, "2025-06-18", json!({})).await;
    peer.ask("resources/subscribe", json!({ "uri": "notes://one" })).await;
    other.alive().await;
    for _ in 0..10 {
        handle.resource_updated("notes://one");
        handle.resource_updated("notes://two");
    }
    assert_eq!(peer.said("notifications/resources/updated").await["params"], json!({ "uri": "notes://one" }));
    peer.quiet().await;
    other.quiet().await;
    peer.ask("resources/unsubscribe", json!({ "uri": "notes://one" })).await;
    handle.resource_updated("notes://one");
    peer.quiet().await;
}

#[tokio::test]
async fn names_taken_twice_are_refused_at_start_with_both_places() {
    let server = one()
        .tool("one", |_: NoArgs| async { "x" })
        .prompt("one", |_: NoArgs| async { "x" })
        .resource("notes://one", |_: NoArgs| async { "x" });
    let (ours, _theirs) = memory();
    let why = server.serve(ours).await.unwrap_err().to_string();
    assert_eq!(why.matches("is defined twice").count(), 3, "all mistakes at once: {why}");
    assert_eq!(why.matches("runtime.rs:").count(), 6, "each with both places: {why}");
}

#[tokio::test]
async fn what_is_put_together_wrongly_is_refused_at_start_in_words() {
    let long = "x".repeat(129);
    let rows: Vec<(Server, &str)> = vec![
        (Server::new("x", "1").tool("has space", |_: NoArgs| async { "x" }), "1 to 128 letters"),
        (Server::new("x", "1").tool("", |_: NoArgs| async { "x" }), "1 to 128 letters"),
        (Server::new("x", "1").tool("com,ma", |_: NoArgs| async { "x" }), "1 to 128 letters"),
        (Server::new("x", "1").tool(long.as_str(), |_: NoArgs| async { "x" }), "1 to 128 letters"),
        (Server::new("x", "1").tool("list", |_: Vec<u8>| async { "x" }), "must be a struct"),
        (
            Server::new("x", "1")
                .tool(Tool::new("x", "").input_schema(json!({ "type": "array" })), |_: Value| async { "x" }),
            "must be a struct",
        ),
        (Server::new("x", "1").resource("no scheme", |_: NoArgs| async { "x" }), "begins with a scheme"),
        (Server::new("x", "1").resource("1a://x", |_: NoArgs| async { "x" }), "begins with a scheme"),
        (Server::new("x", "1").resource("a://{x", |_: NoArgs| async { "x" }), "a://{x"),
        (Server::new("x", "1").resource("a://{other}", |q: Named| async move { q.name }), "not a variable"),
        (
            Server::new("x", "1").resource("a://{ids}", |q: Several| async move { q.ids.len().to_string() }),
            "`ids` is an array",
        ),
        (Server::new("x", "1").prompt("p", |q: Several| async move { q.ids.len().to_string() }), "`ids` is an array"),
        (Server::new("x", "1").on_subscribe(|q: ManyUris| drop(q.uri)), "on_subscribe: `uri` is an array"),
        (Server::new("x", "1").on_subscribe(|q: Named| drop(q.name)), "on_subscribe: the handler needs `name`"),
        (Server::new("x", "1").on_unsubscribe(|q: Several| drop(q.ids)), "on_unsubscribe: the handler needs `ids`"),
        (Server::new("x", "1").extension("noprefix", json!({})), "needs a prefix"),
        (Server::new("x", "1").extension("com.example/x", json!(7)), "an object of settings"),
        (Server::new("x", "1").extension("com.1example/x", json!({})), "needs a prefix"),
        (Server::new("x", "1").extension("com..example/x", json!({})), "needs a prefix"),
        (Server::new("x", "1").extension("com.example-/x", json!({})), "needs a prefix"),
        (Server::new("x", "1").extension("/x", json!({})), "needs a prefix"),
        (Server::new("x", "1").extension("com.example/", json!({})), "needs a prefix"),
        (Server::new("x", "1").extension("com.example/_x", json!({})), "needs a prefix"),
        (Server::new("x", "1").extension("com.example/a b", json!({})), "needs a prefix"),
        (
            Server::new("x", "1").prompt(
                Prompt::new("p", "").complete("nope", |_: linchpin::Completion| async { vec!["x"] }),
                |_: NoArgs| async { "x" },
            ),
            "not one of its arguments",
        ),
    ];
    for (server, expected) in rows {
        let (ours, _theirs) = memory();
        let why = server.serve(ours).await.unwrap_err().to_string();
        assert!(why.contains(expected), "{expected}: {why}");
    }
}

#[tokio::test]
async fn members_that_are_no_variable_of_the_template_may_be_lists() {
    let server =
        Server::new("x", "1").resource("a://{name}", |q: Tagged| async move { format!("{} {}", q.name, q.tags.len()) });
    let mut peer = Peer::plain(server, MODERN).await;
    let read = peer.ask("resources/read", json!({ "uri": "a://b" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "b 0");
}

#[tokio::test]
async fn an_alias_is_called_but_not_listed() {
    let server = Server::new("x", "1").tool(Tool::new("new_name", "").alias("old_name"), |_: NoArgs| async { "1" });
    let mut peer = Peer::plain(server, MODERN).await;
    assert_eq!(names(&mut peer, "tools/list", "tools", "name").await, ["new_name"]);
    assert_eq!(text(&peer.call("old_name", json!({})).await), "1");
    assert_eq!(code(&peer.call("New_Name", json!({})).await), -32602, "names are case-sensitive");
}

#[tokio::test]
async fn pages_follow_opaque_cursors_that_stay_good_when_the_list_changes() {
    let server =
        (0..10).fold(Server::new("pages", "1"), |s, n| s.tool(format!("t{n}").as_str(), |_: NoArgs| async { "x" }));
    let server = server.limits(|l| l.lists.page_items_max = 4);
    let tools = server.tools();
    let mut peer = Peer::plain(server, MODERN).await;
    let page = |result: &Value| {
        result["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = peer.ask("tools/list", json!({})).await["result"].clone();
    assert_eq!(page(&first), ["t0", "t1", "t2", "t3"]);
    let null = peer.ask("tools/list", json!({ "cursor": null })).await["result"].clone();
    assert_eq!(page(&null), page(&first));
    // Concurrent changes neither repeat nor skip the items that stay.
    tools.remove("t1").unwrap();
    tools.remove("t4").unwrap();
    tools.insert("late", |_: NoArgs| async { "x" }).unwrap();
    let second = peer.ask("tools/list", json!({ "cursor": first["nextCursor"] })).await["result"].clone();
    assert_eq!(page(&second), ["t5", "t6", "t7", "t8"]);
    let again = peer.ask("tools/list", json!({ "cursor": first["nextCursor"] })).await["result"].clone();
    assert_eq!(page(&again), page(&second), "the order does not change");
    let third = peer.ask("tools/list", json!({ "cursor": second["nextCursor"] })).await["result"].clone();
    assert_eq!(page(&third), ["t9", "late"]);
    assert!(third.get("nextCursor").is_none(), "{third}");
    assert_eq!(
        (&first["ttlMs"], &first["cacheScope"]),
        (&third["ttlMs"], &third["cacheScope"]),
        "one scope for all pages"
    );
}

#[tokio::test]
async fn a_cursor_that_was_not_given_out_is_refused() {
    for revision in ["2025-11-25", MODERN] {
        let server = (0..5).fold(one(), |s, n| s.tool(format!("t{n}").as_str(), |_: NoArgs| async { "x" }));
        let server = server.limits(|l| l.lists.page_items_max = 2);
        let mut peer = Peer::plain(server, revision).await;
        let cursor = peer.ask("tools/list", json!({})).await["result"]["nextCursor"].clone();
        assert!(cursor.is_string());
        for bad in [json!("x"), json!(""), json!(7), json!({}), json!(format!("{}x", cursor.as_str().unwrap()))] {
            assert_eq!(code(&peer.ask("tools/list", json!({ "cursor": bad })).await), -32602, "{bad}");
        }
        assert_eq!(code(&peer.ask("prompts/list", json!({ "cursor": cursor })).await), -32602, "another list's");
    }
}

#[tokio::test]
async fn lists_and_reads_say_how_long_and_for_whom_they_may_be_kept() {
    let server = one()
        .cache_lists(60_000, CacheScope::Public)
        .resource(Resource::new("notes://cached").cache(5_000, CacheScope::Public), |_: NoArgs| async { "x" })
        .resource("notes://t/{name}", |q: Named| async move { q.name });
    let mut peer = Peer::plain(server, MODERN).await;
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover"] {
        let result = peer.ask(method, json!({})).await["result"].clone();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(60_000), &json!("public")), "{method}");
    }
    for (uri, ttl, scope) in
        [("notes://cached", 5_000, "public"), ("notes://one", 0, "private"), ("notes://t/x", 0, "private")]
    {
        let result = peer.ask("resources/read", json!({ "uri": uri })).await["result"].clone();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(ttl), &json!(scope)), "{uri}");
    }
    let call = peer.call("one", json!({})).await;
    assert!(call["result"].get("ttlMs").is_none(), "calls are never cached: {call}");
    let mut peer = Peer::plain(one(), MODERN).await;
    let result = peer.ask("tools/list", json!({})).await["result"].clone();
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")), "unless told, not at all");
}

#[tokio::test]
async fn the_list_is_the_same_for_every_connection_and_after_any_call() {
    let service = service((0..20).fold(one(), |s, n| s.tool(format!("t{n}").as_str(), |_: NoArgs| async { "x" })));
    let mut first = Peer::of(service.clone(), MODERN, json!({})).await;
    let before = first.ask("tools/list", json!({})).await["result"].clone();
    first.call("t3", json!({})).await;
    let mut second = Peer::of(service, MODERN, json!({ "roots": {}, "elicitation": {} })).await;
    assert_eq!(second.ask("tools/list", json!({})).await["result"], before);
    assert_eq!(first.ask("tools/list", json!({})).await["result"], before);
}

#[tokio::test]
async fn the_end_of_one_pipe_leaves_the_other_peers_of_its_service_subscribed() {
    let server = one();
    let tools = server.tools();
    let service = service(server);
    let (mut first, mut second) =
        (Peer::of(service.clone(), MODERN, json!({})).await, Peer::of(service, MODERN, json!({})).await);
    let (mine, _) = listen(&mut first, json!({ "toolsListChanged": true })).await;
    let (theirs, _) = listen(&mut second, json!({ "toolsListChanged": true })).await;
    let began = std::time::Instant::now();
    first.end().await;
    let last: Value = serde_json::from_str(&first.line().await.expect("a last line")).expect("JSON");
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(mine), &json!("complete")), "{last}");
    assert!(first.line().await.is_none() && began.elapsed() < Duration::from_secs(2), "nothing is left to wait for");
    tools.insert("two", |_: NoArgs| async { "2" }).unwrap();
    let told = second.said("notifications/tools/list_changed").await;
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], theirs);
}
