//! One server, every revision: the responses in each, and the messages that a revision must never receive.

use crate::common;

use common::{ALL, LEGACY, MODERN, Peer, code, failed, service, text};
use linchpin::prelude::*;
use linchpin::types::content::Icon;
use linchpin_core::Method;
use serde_json::{Value, json};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

#[derive(Deserialize, JsonSchema, Serialize)]
struct Named {
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Report {
    degrees: i64,
}

fn icon() -> Icon {
    Icon::new("https://example.com/i.png").with_mime_type("image/png").with_sizes(["48x48"])
}

fn meta() -> Value {
    json!({ "com.example/deep": { "a": { "b": 1 } } })
}

fn blocks() -> Vec<ContentBlock> {
    vec![
        ContentBlock::text("text").with_meta(meta()),
        ContentBlock::audio_base64("AAAA", "audio/wav"),
        ContentBlock::link("notes://1", "note"),
        ContentBlock::image_base64("AAAA", "image/png"),
        ContentBlock::resource(ResourceContents::text("notes://1", "body")),
    ]
}

/// A server with every feature that some revision lacks.
fn rich() -> Server {
    Server::new("rich", "1.2")
        .title("Rich")
        .description("Has everything.")
        .website("https://example.com")
        .icon(icon())
        .instructions("Be gentle.")
        .extension("com.example/thing", json!({ "x": 1 }))
        .tool(
            Tool::new("blocks", "Every kind of content.").title("Blocks").read_only().icon(icon()).meta(meta()),
            |_: NoArgs| async { blocks() },
        )
        .tool(("report", "Structured."), |_: NoArgs| async { Json(Report { degrees: 7 }) })
        .tool(("list", "Structured, and no object."), |_: NoArgs| async { Json(vec![1, 2]) })
        .tool(("answer", "With its own _meta."), |_: NoArgs| async { CallToolResult::text("x").with_meta(meta()) })
        .state(())
        .tool(("work", "Tells how far it is."), |_: &(), cx: &Cx, _: NoArgs| {
            let cx = cx.clone();
            async move {
                cx.progress_with(1.0, Some(2.0), "half");
                "done"
            }
        })
        .tool(("ask", "Asks."), |_: &(), cx: &Cx, _: NoArgs| {
            let cx = cx.clone();
            async move { cx.elicit::<Named>("who", "Who?").await.map(|n| n.name) }
        })
        .resource(Resource::new("notes://1").title("One").size(4).icon(icon()).meta(meta()), |_: NoArgs| async {
            "body"
        })
        .resource(Resource::new("notes://{name}").name("note").title("Note"), |q: Named| async move {
            if q.name == "gone" { Err(Error::not_found()) } else { Ok(q.name) }
        })
        .prompt(
            Prompt::new("brief", "A briefing.")
                .title("Brief")
                .icon(icon())
                .complete("name", |c: linchpin::Completion| async move { c.filter(["Ada", "Alan", "Grace"]) }),
            |q: Named| async move {
                vec![
                    PromptMessage::user(q.name),
                    PromptMessage::assistant(ContentBlock::audio_base64("AAAA", "audio/wav")),
                ]
            },
        )
}

// The builder's state type changes with `state`; here it is always `()`.
fn server() -> Server {
    rich()
}

/// Parameters that each method accepts.
fn params(method: Method) -> Value {
    match method {
        Method::Initialize => {
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } })
        }
        Method::ToolsCall => json!({ "name": "report" }),
        Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
            json!({ "uri": "notes://1" })
        }
        Method::PromptsGet => json!({ "name": "brief", "arguments": { "name": "Ada" } }),
        Method::CompletionComplete => {
            json!({ "ref": { "type": "ref/prompt", "name": "brief" }, "argument": { "name": "name", "value": "a" } })
        }
        Method::LoggingSetLevel => json!({ "level": "warning" }),
        Method::SubscriptionsListen => json!({ "notifications": { "toolsListChanged": true } }),
        _ => json!({}),
    }
}

#[tokio::test]
async fn each_era_has_the_methods_of_its_table_and_no_others() {
    let legacy_only = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    let modern_only = ["server/discover", "subscriptions/listen"];
    for revision in ALL {
        let mut peer = Peer::plain(server(), revision).await;
        // Tasks are for servers that have some: `tasks.rs`.
        for method in Method::ALL.iter().filter(|method| !method.as_str().starts_with("tasks/")) {
            let absent = if peer.modern() {
                legacy_only.contains(&method.as_str())
            } else {
                modern_only.contains(&method.as_str())
            };
            let id = peer.request(method.as_str(), params(*method)).await;
            if *method == Method::SubscriptionsListen && peer.modern() {
                peer.said("notifications/subscriptions/acknowledged").await;
                continue;
            }
            let answer = peer.answer(id).await;
            match (absent, *method) {
                (true, _) => assert_eq!(code(&answer), -32601, "{revision} {method}: {answer}"),
                (false, Method::Initialize) => assert_eq!(code(&answer), -32600, "only once: {answer}"),
                (false, _) => assert!(answer["result"].is_object(), "{revision} {method}: {answer}"),
            }
        }
        for name in ["tasks/get", "tools/CALL", "sampling/createMessage", "elicitation/create", "roots/list", ""] {
            let answer = peer.ask(name, json!({})).await;
            assert_eq!(code(&answer), -32601, "{revision} {name}: {answer}");
        }
    }
}

#[tokio::test]
async fn what_a_revision_lacks_is_never_sent_to_it() {
    let mut peers = Vec::new();
    for revision in ALL {
        let mut peer = Peer::of(service(server()), revision, json!({})).await;
        peer.meta = json!({ "progressToken": "p" });
        let mut seen = json!({});
        for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
            seen[method] = peer.ask(method, json!({})).await["result"].clone();
        }
        for tool in ["blocks", "report", "list", "answer", "work"] {
            let answer = peer.call(tool, json!({})).await;
            seen[tool] = answer["result"].clone();
        }
        seen["progress"] = peer.said("notifications/progress").await["params"].clone();
        seen["prompt"] = peer.ask("prompts/get", params(Method::PromptsGet)).await["result"].clone();
        seen["read"] = peer.ask("resources/read", json!({ "uri": "notes://1" })).await["result"].clone();
        peers.push(seen);
    }
    // A feature, its location, and the revisions (oldest first) that have it.
    let rows: &[(&str, &str, [u8; 5])] = &[
        ("tool title", "/tools~1list/tools/0/title", [0, 0, 1, 1, 1]),
        ("tool title among its annotations", "/tools~1list/tools/0/annotations/title", [0, 1, 0, 0, 0]),
        ("tool annotations", "/tools~1list/tools/0/annotations", [0, 1, 1, 1, 1]),
        ("tool icons", "/tools~1list/tools/0/icons", [0, 0, 0, 1, 1]),
        ("tool _meta", "/tools~1list/tools/0/_meta", [0, 0, 1, 1, 1]),
        ("output schema", "/tools~1list/tools/1/outputSchema", [0, 0, 1, 1, 1]),
        ("output schema that is not an object", "/tools~1list/tools/2/outputSchema", [0, 0, 0, 0, 1]),
        ("structured content", "/report/structuredContent", [0, 0, 1, 1, 1]),
        ("structured content that is not an object", "/list/structuredContent", [0, 0, 0, 0, 1]),
        ("text beside structured content", "/report/content/0/text", [1, 1, 1, 1, 1]),
        ("audio", "/blocks/content/1/mimeType", [0, 1, 1, 1, 1]),
        ("resource links", "/blocks/content/2/uri", [0, 0, 1, 1, 1]),
        ("images", "/blocks/content/3/mimeType", [1, 1, 1, 1, 1]),
        ("embedded resources", "/blocks/content/4/resource/uri", [1, 1, 1, 1, 1]),
        ("content _meta", "/blocks/content/0/_meta", [0, 0, 1, 1, 1]),
        ("result _meta", "/answer/_meta/com.example~1deep/a/b", [1, 1, 1, 1, 1]),
        ("resource title", "/resources~1list/resources/0/title", [0, 0, 1, 1, 1]),
        ("resource size", "/resources~1list/resources/0/size", [1, 1, 1, 1, 1]),
        ("resource icons", "/resources~1list/resources/0/icons", [0, 0, 0, 1, 1]),
        ("resource _meta", "/resources~1list/resources/0/_meta", [0, 0, 1, 1, 1]),
        ("template title", "/resources~1templates~1list/resourceTemplates/0/title", [0, 0, 1, 1, 1]),
        ("prompt title", "/prompts~1list/prompts/0/title", [0, 0, 1, 1, 1]),
        ("prompt icons", "/prompts~1list/prompts/0/icons", [0, 0, 0, 1, 1]),
        ("audio in prompts", "/prompt/messages/1/content/mimeType", [0, 1, 1, 1, 1]),
        ("message of progress", "/progress/message", [0, 1, 1, 1, 1]),
        ("resultType", "/report/resultType", [0, 0, 0, 0, 1]),
        ("resultType of lists", "/tools~1list/resultType", [0, 0, 0, 0, 1]),
        ("ttlMs of lists", "/tools~1list/ttlMs", [0, 0, 0, 0, 1]),
        ("cacheScope of reads", "/read/cacheScope", [0, 0, 0, 0, 1]),
        ("server info on results", "/report/_meta", [0, 0, 0, 0, 1]),
    ];
    for (feature, pointer, has) in rows {
        for ((revision, seen), has) in ALL.iter().zip(&peers).zip(has) {
            assert_eq!(seen.pointer(pointer).is_some(), *has == 1, "{feature} at {revision}: {seen:#}");
        }
    }
    assert_eq!(peers[0]["blocks"]["content"][1]["type"], "text", "what replaces it is text");
}

#[tokio::test]
async fn initialize_answers_the_version_asked_for_or_the_newest_with_sessions() {
    let rows = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2023-01-01", "2025-11-25"),
        ("9999-12-31", "2025-11-25"),
        ("", "2025-11-25"),
        ("nonsense", "2025-11-25"),
    ];
    for (asked, answered) in rows {
        let mut peer = Peer::silent(service(server()));
        let hello = json!({ "protocolVersion": asked, "capabilities": { "unknown": {} }, "clientInfo": { "name": "t", "version": "0" } });
        let result = peer.ask("initialize", hello).await["result"].clone();
        assert_eq!(result["protocolVersion"], answered, "{asked}");
        assert_eq!((&result["serverInfo"]["name"], &result["serverInfo"]["version"]), (&json!("rich"), &json!("1.2")));
        assert_eq!(result["instructions"], "Be gentle.");
        let has = |at: &str| result.pointer(at).is_some();
        assert!(has("/capabilities/tools/listChanged") && has("/capabilities/prompts/listChanged"), "{result}");
        assert!(has("/capabilities/resources/subscribe") && has("/capabilities/logging"), "{result}");
        assert_eq!(has("/capabilities/completions"), answered != "2024-11-05", "{result}");
        assert_eq!(has("/serverInfo/title"), answered >= "2025-06-18", "{result}");
        assert_eq!(has("/serverInfo/icons"), answered >= "2025-11-25", "{result}");
        assert!(!has("/capabilities/extensions") && !has("/capabilities/tasks") && !has("/resultType"), "{result}");
    }
    for bad in [
        json!({}),
        json!({ "protocolVersion": 7, "capabilities": {} }),
        json!({ "protocolVersion": "2025-11-25", "capabilities": 7 }),
    ] {
        let mut peer = Peer::silent(service(server()));
        assert_eq!(code(&peer.ask("initialize", bad).await), -32602);
    }
}

#[tokio::test]
async fn only_what_is_offered_is_declared_and_answered() {
    for revision in ["2025-11-25", MODERN] {
        let bare = || Server::new("bare", "1").tool("only", |_: NoArgs| async { "x" });
        let mut peer = Peer::plain(bare(), revision).await;
        let capabilities = match peer.modern() {
            true => peer.ask("server/discover", json!({})).await["result"]["capabilities"].clone(),
            false => {
                let mut other = Peer::silent(service(bare()));
                other.ask("initialize", params(Method::Initialize)).await["result"]["capabilities"].clone()
            }
        };
        assert!(capabilities.get("tools").is_some() && capabilities.get("logging").is_some(), "{capabilities}");
        for absent in ["prompts", "resources", "completions", "tasks", "extensions"] {
            assert!(capabilities.get(absent).is_none(), "{absent}: {capabilities}");
        }
        for method in ["prompts/list", "resources/list", "resources/templates/list"] {
            assert_eq!(code(&peer.ask(method, json!({})).await), -32601, "{method}");
        }
    }
}

#[tokio::test]
async fn discover_tells_all_versions_and_capabilities() {
    let mut peer = Peer::plain(server(), MODERN).await;
    let result = peer.ask("server/discover", json!({})).await["result"].clone();
    let newest_first: Vec<_> = ALL.iter().rev().collect();
    assert_eq!(result["supportedVersions"], json!(newest_first));
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["_meta"][SERVER_INFO]["name"], "rich");
    assert_eq!(result["instructions"], "Be gentle.");
    assert_eq!(result["capabilities"]["extensions"]["com.example/thing"], json!({ "x": 1 }));
    assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string(), "{result}");
}

#[tokio::test]
async fn every_result_that_stands_alone_is_stamped_and_anonymous_servers_leave_their_name_out() {
    for (server, named) in [(server(), true), (server().hide_server_info(), false)] {
        let mut peer = Peer::plain(server, MODERN).await;
        for method in [
            Method::ToolsCall,
            Method::ToolsList,
            Method::ResourcesRead,
            Method::ResourcesList,
            Method::ResourcesTemplatesList,
            Method::PromptsGet,
            Method::PromptsList,
            Method::CompletionComplete,
            Method::ServerDiscover,
        ] {
            let result = peer.ask(method.as_str(), params(method)).await["result"].clone();
            assert_eq!(result["resultType"], "complete", "{method}: {result}");
            assert_eq!(result["_meta"].get(SERVER_INFO).is_some(), named, "{method}: {result}");
        }
    }
}

#[tokio::test]
async fn what_a_subscription_is_to_has_names() {
    let mut peer = Peer::plain(server(), MODERN).await;
    for notifications in [json!([true, true]), json!([]), json!(true), json!(null)] {
        let answer = peer.ask("subscriptions/listen", json!({ "notifications": notifications })).await;
        assert_eq!(code(&answer), -32602, "{notifications}: {answer}");
    }
}

#[tokio::test]
async fn claims_that_are_missing_wrong_or_not_served_are_refused() {
    let version = "io.modelcontextprotocol/protocolVersion";
    let caps = "io.modelcontextprotocol/clientCapabilities";
    let rows = [
        (json!({}), -32602),
        (json!({ version: MODERN }), -32602),
        (json!({ caps: {} }), -32602),
        (json!({ version: 7, caps: {} }), -32602),
        (json!({ version: MODERN, caps: [] }), -32602),
        (json!({ version: MODERN, caps: { "elicitation": 7 } }), -32602),
        (json!({ version: MODERN, caps: {}, "io.modelcontextprotocol/clientInfo": "x" }), -32602),
        (json!({ version: MODERN, caps: {}, "io.modelcontextprotocol/logLevel": "loud" }), -32602),
        (json!({ version: MODERN, caps: {}, "progressToken": {} }), -32602),
        (json!({ version: "2025-11-25", caps: {} }), -32022),
        (json!({ version: "2099-01-01", caps: {} }), -32022),
    ];
    let mut peer = Peer::silent(service(server()));
    for (meta, expected) in rows {
        let answer = peer.ask("tools/list", json!({ "_meta": meta })).await;
        assert_eq!(code(&answer), expected, "{meta}: {answer}");
        if expected == -32022 {
            assert_eq!(
                answer["error"]["data"],
                json!({ "supported": [MODERN], "requested": meta[version] }),
                "{answer}"
            );
        }
    }
}

#[tokio::test]
async fn both_eras_share_one_pipe_and_neither_hears_the_others_words() {
    let service = service(server());
    let mut peer = Peer::of(service, "2025-06-18", json!({ "elicitation": {} })).await;
    let claims =
        json!({ "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {} });
    let modern = peer.ask("tools/list", json!({ "_meta": claims.clone() })).await;
    assert_eq!(modern["result"]["resultType"], "complete");
    let legacy = peer.ask("tools/list", json!({})).await;
    assert!(legacy["result"].get("resultType").is_none() && legacy["result"].get("ttlMs").is_none(), "{legacy}");
    // The session declared elicitation; the stateless request did not, and is judged on its own.
    let answer = peer.ask("tools/call", json!({ "name": "ask", "_meta": claims })).await;
    assert_eq!(code(&answer), -32021);
    let id = peer.start("ask", json!({})).await;
    let question = peer.said("elicitation/create").await;
    peer.reply(&question, json!({ "action": "accept", "content": { "name": "Ada" } })).await;
    assert_eq!(text(&peer.answer(id).await), "Ada");
}

#[tokio::test]
async fn nothing_is_remembered_from_one_request_that_stands_alone_to_the_next() {
    let mut peer = Peer::of(service(server()), MODERN, json!({ "elicitation": {} })).await;
    let asked = peer.call("ask", json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    peer.capabilities = json!({});
    let answer = peer.call("ask", json!({})).await;
    assert_eq!(code(&answer), -32021);
    assert_eq!(answer["error"]["data"]["requiredCapabilities"], json!({ "elicitation": {} }));
    // With sessions, a client without the capability gets a tool error, and no server request.
    for revision in LEGACY {
        let mut peer = Peer::plain(server(), revision).await;
        let answer = peer.call("ask", json!({})).await;
        assert!(failed(&answer).contains("elicitation"), "{revision}: {answer}");
        peer.quiet().await;
    }
}

#[tokio::test]
async fn a_missing_resource_is_reported_in_the_words_of_each_revision() {
    for revision in ALL {
        let mut peer = Peer::plain(server(), revision).await;
        for uri in ["notes://gone", "other://x", "notes://", "no uri at all"] {
            let answer = peer.ask("resources/read", json!({ "uri": uri })).await;
            assert_eq!(code(&answer), if revision == MODERN { -32602 } else { -32002 }, "{revision} {uri}: {answer}");
            assert_eq!(answer["error"]["data"]["uri"], uri);
            assert_eq!(answer["error"]["message"], format!("resource not found: {uri}"));
            assert!(answer.get("result").is_none());
        }
        assert_eq!(code(&peer.ask("resources/read", json!({ "uri": 7 })).await), -32602);
    }
}

#[tokio::test]
async fn requests_before_initialize_are_refused_except_ping() {
    let mut peer = Peer::silent(service(server()));
    for method in ["tools/list", "resources/subscribe", "logging/setLevel", "server/discover"] {
        let answer = peer.ask(method, json!({})).await;
        assert_eq!(code(&answer), -32602, "{method}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("initialize"), "{answer}");
    }
    peer.alive().await;
}
