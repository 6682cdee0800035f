//! Tools, resources and prompts that do not exist for everybody.

#![cfg(feature = "http")]

use crate::access::{Caller, served};
use crate::common::{ALL, LEGACY, MODERN, Peer, code, service, text};
use http_body_util::BodyExt;
use linchpin::prelude::*;
use linchpin::types::page::CacheScope;
use linchpin::{Audience, Completion, Principal};
use serde_json::{Value, json};
use std::task::{Context, Waker};

#[derive(Deserialize, JsonSchema)]
struct Region {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

#[derive(Deserialize, JsonSchema)]
struct Day {
    day: String,
}

/// A server with one item of each kind for everybody, and one for administrators.
fn office() -> Server {
    let admin = |viewer: &linchpin::Viewer| viewer.has_scope("admin");
    Server::new("office", "1")
        .cache_lists(1_000, CacheScope::Public)
        .tool("work", || "done")
        .tool(Tool::new("purge", "").alias("wipe").visible_to(admin), |q: Region| q.region)
        .resource("office://door", || "open")
        .resource(Resource::new("office://safe").visible_to(admin), || "gold")
        .resource(Resource::new("vault:gold").visible_to(admin), || "more gold")
        .resource(
            Resource::new("office://diary/{day}")
                .complete("day", |asked: Completion| asked.filter(["monday"]))
                .visible_to(admin),
            |day: Day| day.day,
        )
        .resource("office://{day}", |day: Day| format!("no {}", day.day))
        .prompt("greet", || "hello")
        .prompt(Prompt::new("fire", "").visible_to(admin), || "goodbye")
}

/// The member of each item of a list.
async fn names(caller: &mut Caller, method: &str, list: &str, member: &str) -> Vec<String> {
    let answer = caller.ask(method, json!({})).await;
    let items = answer.body["result"][list].as_array().unwrap_or_else(|| panic!("{answer:?}"));
    items.iter().map(|item| item[member].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_is_hidden_is_not_listed_and_answered_as_what_does_not_exist() {
    let service = served(office(), true);
    for revision in [MODERN, "2025-11-25", "2024-11-05"] {
        for (token, all) in [("ann:admin", true), ("bob:work", false), ("", false)] {
            let mut caller = Caller::new(&service, revision, token).await;
            for (method, list, member, public, hidden) in [
                ("tools/list", "tools", "name", "work", &["purge"][..]),
                ("resources/list", "resources", "uri", "office://door", &["office://safe", "vault:gold"]),
                ("resources/templates/list", "resourceTemplates", "uri", "office://{day}", &["office://diary/{day}"]),
                ("prompts/list", "prompts", "name", "greet", &["fire"]),
            ] {
                let member = if list == "resourceTemplates" { "uriTemplate" } else { member };
                let mut seen = names(&mut caller, method, list, member).await;
                seen.sort();
                let mut want = vec![public];
                want.extend(hidden.iter().filter(|_| all));
                want.sort_unstable();
                assert_eq!(seen, want, "{method} of {token:?} in {revision}");
            }
            let diary = |uri| json!({ "ref": { "type": "ref/resource", "uri": uri }, "argument": { "name": "day", "value": "" } });
            for (method, hidden, absent) in [
                (
                    "tools/call",
                    json!({ "name": "purge", "arguments": {} }),
                    json!({ "name": "PURGE", "arguments": {} }),
                ),
                ("tools/call", json!({ "name": "wipe", "arguments": {} }), json!({ "name": "WIPE", "arguments": {} })),
                ("resources/read", json!({ "uri": "vault:gold" }), json!({ "uri": "VAULT:GOLD" })),
                ("prompts/get", json!({ "name": "fire" }), json!({ "name": "FIRE" })),
                ("completion/complete", diary("office://diary/{day}"), diary("OFFICE://DIARY/{DAY}")),
            ] {
                let (hidden, absent) = (caller.ask(method, hidden).await, caller.ask(method, absent).await);
                if all {
                    assert!(
                        hidden.body["error"]["message"]
                            .as_str()
                            .is_none_or(|why| !why.to_lowercase().contains("unknown") && !why.contains("not found")),
                        "{hidden:?}"
                    );
                } else {
                    let lower = |answer: &Value| answer["error"].to_string().to_lowercase();
                    assert_eq!(lower(&hidden.body), lower(&absent.body), "{method} of {token:?} in {revision}");
                    assert_eq!(hidden.status, absent.status);
                }
            }
            let day = caller.ask("resources/read", json!({ "uri": "office://safe" })).await;
            let want = if all { "gold" } else { "no safe" };
            assert_eq!(day.body["result"]["contents"][0]["text"], want, "the next template answers");
        }
    }
}

#[tokio::test]
async fn nothing_suggests_a_hidden_name() {
    let service = served(office(), true);
    for (token, suggested) in [("ann:admin", true), ("bob", false)] {
        let mut caller = Caller::new(&service, MODERN, token).await;
        for (method, name) in [("tools/call", "purg"), ("prompts/get", "fir")] {
            let answer = caller.ask(method, json!({ "name": name })).await;
            let why = answer.body["error"]["message"].as_str().unwrap().to_owned();
            assert_eq!(why.contains("did you mean"), suggested, "{why}");
        }
    }
}

#[tokio::test]
async fn pages_are_those_of_the_caller_and_for_the_caller_alone() {
    let service = served(office().tool("last", || "").limits(|limits| limits.lists.page_items_max = 1), true);
    for (token, want) in [("ann:admin", vec!["work", "purge", "last"]), ("bob", vec!["work", "last"])] {
        let mut caller = Caller::new(&service, MODERN, token).await;
        let (mut seen, mut params) = (Vec::new(), json!({}));
        loop {
            let answer = caller.ask("tools/list", params).await.body["result"].take();
            seen.push(answer["tools"][0]["name"].as_str().unwrap().to_owned());
            assert_eq!((&answer["ttlMs"], &answer["cacheScope"]), (&json!(1_000), &json!("private")));
            match answer.get("nextCursor") {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => break,
            }
        }
        assert_eq!(seen, want);
    }
}

/// A server whose restricted items exist for clients with roots.
fn rooted() -> Server {
    let roots = |viewer: &linchpin::Viewer| viewer.caps().roots;
    Server::new("rooted", "1")
        .limits(|limits| limits.lists.changed_ms_min = 0)
        .tool("open", || "")
        .tool(Tool::new("secret", "").visible_to(roots), || "")
        .resource("r://open", || "")
        .resource(Resource::new("r://secret").visible_to(roots), || "")
        .prompt(Prompt::new("secret", "").visible_to(roots), || "")
}

/// Two clients that listen to everything: one with roots, one without.
async fn listeners(server: Server, revision: &'static str) -> [Peer; 2] {
    let service = service(server);
    let mut peers = [
        Peer::of(service.clone(), revision, json!({ "roots": {} })).await,
        Peer::of(service, revision, json!({})).await,
    ];
    for peer in &mut peers {
        if revision == MODERN {
            let uris = ["r://open", "r://secret"];
            let all = json!({ "toolsListChanged": true, "resourcesListChanged": true, "promptsListChanged": true, "resourceSubscriptions": uris });
            peer.request("subscriptions/listen", json!({ "notifications": all })).await;
            peer.said("notifications/subscriptions/acknowledged").await;
        } else {
            for uri in ["r://open", "r://secret"] {
                assert!(peer.ask("resources/subscribe", json!({ "uri": uri })).await["result"].is_object());
            }
        }
    }
    peers
}

#[tokio::test]
async fn changes_of_hidden_items_are_told_to_those_for_whom_they_exist() {
    for revision in [MODERN, "2025-11-25", "2024-11-05"] {
        let server = rooted();
        let handle = server.handle();
        let [mut rooted, mut other] = listeners(server, revision).await;
        handle.tools().disable("secret").unwrap();
        rooted.said("notifications/tools/list_changed").await;
        handle.tools().enable("secret").unwrap();
        rooted.said("notifications/tools/list_changed").await;
        handle.tools().update("secret", |tool| tool.description("Changed.")).unwrap();
        rooted.said("notifications/tools/list_changed").await;
        handle.prompts().remove("secret").unwrap();
        rooted.said("notifications/prompts/list_changed").await;
        handle.resources().update("r://secret", |resource| resource.description("Changed.")).unwrap();
        rooted.said("notifications/resources/list_changed").await;
        handle.resource_updated("r://secret");
        assert_eq!(rooted.said("notifications/resources/updated").await["params"]["uri"], "r://secret");
        other.quiet().await;
        // What becomes visible, or stops being so, is told to both.
        handle.tools().update("secret", |tool| tool.visible_to(|_| true)).unwrap();
        handle.resource_updated("r://open");
        handle.resource_updated("r://nowhere");
        for peer in [&mut rooted, &mut other] {
            peer.said("notifications/tools/list_changed").await;
            assert_eq!(peer.said("notifications/resources/updated").await["params"]["uri"], "r://open");
            peer.quiet().await;
        }
    }
}

#[tokio::test]
async fn a_session_whose_token_has_more_scopes_hears_of_what_they_show() {
    let server = office().limits(|limits| limits.lists.changed_ms_min = 0);
    let handle = server.handle();
    let service = served(server, true);
    let mut bob = Caller::new(&service, "2025-06-18", "bob").await;
    let mut stream = bob.listen().await;
    let purge = || handle.tools().update("purge", |tool| tool.description("Changed.")).unwrap();
    purge();
    bob.set_token("bob:admin");
    assert_eq!(names(&mut bob, "tools/list", "tools", "name").await, ["work", "purge"]);
    let early = std::pin::pin!(stream.frame()).poll(&mut Context::from_waker(Waker::noop())).is_ready();
    assert!(!early, "it was hidden then");
    purge();
    let told = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8_lossy(&told).contains("tools/list_changed"));
}

async fn enable(cx: &Cx, q: Day) -> Result<()> {
    let session = Audience::session(cx).ok_or_else(|| Error::tool("no session"))?;
    let tools = cx.server().tools();
    match q.day.as_str() {
        "on" => tools.enable_for("off", &session)?,
        "off" => tools.disable_for("open", &session)?,
        _ => {
            tools.reset_for("off", &session)?;
            tools.reset_for("open", &session)?;
        }
    }
    Ok(())
}

async fn tools(peer: &mut Peer) -> Vec<String> {
    let answer = peer.ask("tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_tool_is_enabled_and_disabled_for_one_session_only() {
    for revision in ALL {
        let server = rooted().tool("off", || "ran").tool("enable", enable);
        server.tools().disable("off").unwrap();
        let [mut one, mut other] = listeners(server, revision).await;
        assert_eq!(tools(&mut one).await, ["open", "secret", "enable"]);
        one.call("enable", json!({ "day": "on" })).await;
        one.said("notifications/tools/list_changed").await;
        assert_eq!(tools(&mut one).await, ["open", "secret", "off", "enable"], "in its place");
        assert_eq!(text(&one.call("off", json!({})).await), "ran");
        one.call("enable", json!({ "day": "off" })).await;
        one.said("notifications/tools/list_changed").await;
        assert_eq!(tools(&mut one).await, ["secret", "off", "enable"]);
        assert_eq!(code(&one.call("open", json!({})).await), -32602);
        other.quiet().await;
        assert_eq!(tools(&mut other).await, ["open", "enable"]);
        assert_eq!(code(&other.call("off", json!({})).await), -32602);
        one.call("enable", json!({ "day": "" })).await;
        one.said("notifications/tools/list_changed").await;
        assert_eq!(tools(&mut one).await, ["open", "secret", "enable"]);
    }
}

#[tokio::test]
async fn a_tool_is_enabled_for_one_principal_in_all_its_sessions() {
    let server = office();
    let handle = server.handle();
    let service = served(server, true);
    let bob = Audience::principal(&Principal::new("bob"));
    handle.tools().enable_for("purge", &bob).unwrap();
    handle.tools().disable_for("work", &bob).unwrap();
    for revision in [MODERN, LEGACY[3]] {
        for (token, want) in
            [("bob", vec!["purge"]), ("eve", vec!["work"]), ("", vec!["work"]), ("ann:admin", vec!["work", "purge"])]
        {
            let mut caller = Caller::new(&service, revision, token).await;
            assert_eq!(names(&mut caller, "tools/list", "tools", "name").await, want, "{token}");
        }
    }
    handle.tools().reset_for("purge", &bob).unwrap();
    handle.tools().reset_for("work", &bob).unwrap();
    let mut caller = Caller::new(&service, MODERN, "bob").await;
    assert_eq!(names(&mut caller, "tools/list", "tools", "name").await, ["work"]);
    assert!(handle.tools().enable_for("nothing", &bob).is_err());
}

#[tokio::test]
async fn a_predicate_that_panics_hides_its_item() {
    let server = rooted().tool(Tool::new("broken", "").visible_to(|_| panic!("as the test wants")), || "");
    let mut peer = Peer::plain(server, "2025-11-25").await;
    assert_eq!(tools(&mut peer).await, ["open"]);
    assert_eq!(code(&peer.call("broken", json!({})).await), -32602);
}
