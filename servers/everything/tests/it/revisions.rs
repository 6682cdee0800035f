//! What a client of each revision sees of each feature, as one table. Nothing may reach a client whose revision lacks it.

use linchpin::prelude::*;
use linchpin::types::version::Revision;
use linchpin_everything::{Options, server};
use linchpin_testing::TestClient;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::DuplexStream;

/// One line a feature, one column a revision. `-` stands for "not there", `refused` for a JSON-RPC error.
const TABLE: &str = "
feature               2024-11-05  2025-03-26  2025-06-18     2025-11-25     2026-07-28
open                  initialize  initialize  initialize     initialize     discover
completions-cap       -           yes         yes            yes            yes
result-type           -           -           -              -              complete
server-title          -           -           yes            yes            yes
server-icon           -           -           -              yes            yes
tool-title            -           -           yes            yes            yes
tool-hints            -           yes         yes            yes            yes
tool-icon             -           -           -              yes            yes
output-schema         -           -           yes            yes            yes
cache-hints           -           -           -              -              yes
echo                  text        text        text           text           text
audio                 text        audio       audio          audio          audio
structured            -           -           object         object         object
links                 text        text        resource_link  resource_link  resource_link
annotations           yes         yes         yes            yes            yes
embedded              resource    resource    resource       resource       resource
read                  text        text        text           text           text
not-found             -32002      -32002      -32002         -32002         -32602
templates             3           3           3              3              3
prompt                2           2           2              2              2
complete              David       David       David          David          David
progress              3           3           3              3              3
progress-message      -           yes         yes            yes            yes
log                   level       level       level          level          request
cancel                silent      silent      silent         silent         silent
form                  isError     isError     11             13             13
form-by               -           -           request        request        rounds
url                   isError     isError     isError        accepted       accepted
questions             -           -           2              2              2
research              refused     refused     refused        task           task
sample                said        said        said           said           said
roots                 listed      listed      listed         listed         listed
ping                  yes         yes         yes            yes            refused
subscribe             updated     updated     updated        updated        refused
listen                refused     refused     refused        refused        updated
tools-changed         yes         yes         yes            yes            -
tools-changed-listen  refused     refused     refused        refused        yes
";

#[tokio::test]
async fn every_feature_looks_to_every_revision_as_its_specification_says() {
    let mut lines = TABLE.trim().lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let columns = lines.next().unwrap();
    let rows: Vec<_> = lines.collect();
    assert_eq!(columns.len(), 1 + Revision::ALL.len());
    let mut wrong = Vec::new();
    for (column, revision) in Revision::ALL.into_iter().enumerate() {
        assert_eq!(columns[column + 1], revision.as_str());
        let seen = observe(revision).await;
        let untested: Vec<_> = seen.keys().filter(|name| !rows.iter().any(|row| row[0] == **name)).collect();
        assert!(untested.is_empty(), "observed, but not in the table: {untested:?}");
        for row in &rows {
            let (want, got) = (row[column + 1], seen.get(row[0]).map_or("not observed", String::as_str));
            if want != got {
                wrong.push(format!("{revision} {}: {got}, not {want}", row[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

type Seen = BTreeMap<&'static str, String>;
type Peer = TestClient<DuplexStream>;

fn start(revision: Revision) -> Peer {
    let (ours, theirs) = memory();
    let options = Options::default().with(|options| {
        options.log_ms = 10;
        options.update_ms = 10;
    });
    tokio::spawn(server(options).unwrap().serve(ours));
    TestClient::new(theirs, revision)
        .capability("elicitation", json!({ "form": {}, "url": {} }))
        .capability("extensions", json!({ "io.modelcontextprotocol/tasks": {} }))
        .answer("elicitation/create", |params| match params["mode"].as_str() {
            Some("url") => json!({ "action": "accept" }),
            _ => {
                let fields = params["requestedSchema"]["properties"].as_object().unwrap();
                let mut content = serde_json::Map::new();
                for name in ["name", "color"].into_iter().filter(|name| fields.contains_key(*name)) {
                    content.insert(name.into(), format!("{} fields", fields.len()).into());
                }
                json!({ "action": "accept", "content": content })
            }
        })
        .answer("sampling/createMessage", |params| {
            let text = format!("{} tokens", params["maxTokens"]);
            json!({ "role": "assistant", "model": "none", "content": { "type": "text", "text": text } })
        })
        .answer("roots/list", |_| json!({ "roots": [{ "uri": "file:///work", "name": "work" }] }))
}

async fn observe(revision: Revision) -> Seen {
    let mut seen = Seen::new();
    let mut client = start(revision);
    let opened = client.open().await;
    introduction(&mut seen, &opened);
    definitions(&mut seen, &mut client).await;
    contents(&mut seen, &mut client).await;
    resources_and_prompts(&mut seen, &mut client).await;
    during(&mut seen, &mut client).await;
    questions(&mut seen, &mut client).await;
    changes(&mut seen, &mut client).await;
    seen
}

fn yes(there: bool) -> String {
    if there { "yes" } else { "-" }.into()
}

/// The word for a value: what was looked for, or that it is not there.
fn word(value: &Value) -> String {
    value.as_str().unwrap_or("-").to_owned()
}

fn introduction(seen: &mut Seen, opened: &Value) {
    let discovered = opened.get("supportedVersions").is_some();
    seen.insert("open", if discovered { "discover" } else { "initialize" }.into());
    let info = match discovered {
        true => &opened["_meta"]["io.modelcontextprotocol/serverInfo"],
        false => &opened["serverInfo"],
    };
    seen.insert("server-title", yes(info.get("title").is_some()));
    seen.insert("server-icon", yes(info.get("icons").is_some()));
    seen.insert("completions-cap", yes(opened["capabilities"].get("completions").is_some()));
}

async fn definitions(seen: &mut Seen, client: &mut Peer) {
    let list = client.request("tools/list", json!({})).await.unwrap();
    seen.insert("cache-hints", yes(list.get("ttlMs").is_some() && list.get("cacheScope").is_some()));
    let tools = list["tools"].as_array().unwrap();
    let any = |member: &str| yes(tools.iter().any(|tool| tool.get(member).is_some()));
    seen.insert("tool-title", any("title"));
    seen.insert("tool-hints", any("annotations"));
    seen.insert("tool-icon", any("icons"));
    seen.insert("output-schema", any("outputSchema"));
}

async fn contents(seen: &mut Seen, client: &mut Peer) {
    let kind = |result: &Value, at: usize| word(&result["content"][at]["type"]);
    let echo = client.call("echo", json!({ "message": "hi" })).await.unwrap();
    assert_eq!(echo["content"][0]["text"], "Echo: hi");
    seen.insert("echo", kind(&echo, 0));
    seen.insert("result-type", word(&echo["resultType"]));
    let audio = client.call("everything_tiny_audio", json!({})).await.unwrap();
    seen.insert("audio", kind(&audio, 1));
    let weather = client.call("get-structured-content", json!({ "location": "Chicago" })).await.unwrap();
    assert!(
        weather["content"][0]["text"].as_str().unwrap().contains("\"humidity\""),
        "the text says the same: {weather}"
    );
    let object = weather.get("structuredContent").is_some_and(|value| value["conditions"] == "Light rain");
    seen.insert("structured", if object { "object" } else { "-" }.into());
    let links = client.call("get-resource-links", json!({ "count": 2 })).await.unwrap();
    assert!(links.to_string().contains("demo://resource/dynamic/blob/1"), "a link is never lost: {links}");
    seen.insert("links", kind(&links, 1));
    let annotated = client.call("get-annotated-message", json!({ "messageType": "error" })).await.unwrap();
    seen.insert("annotations", yes(annotated["content"][0]["annotations"]["priority"] == 1.0));
    let embedded = client.call("get-resource-reference", json!({})).await.unwrap();
    seen.insert("embedded", kind(&embedded, 1));
}

async fn resources_and_prompts(seen: &mut Seen, client: &mut Peer) {
    let read = client.request("resources/read", json!({ "uri": "demo://resource/dynamic/text/7" })).await.unwrap();
    assert_eq!(read["contents"][0]["uri"], "demo://resource/dynamic/text/7");
    seen.insert("read", yes(read["contents"][0]["text"].is_string()).replace("yes", "text"));
    let missing = client.request("resources/read", json!({ "uri": "demo://nothing" })).await.unwrap_err();
    assert_eq!(missing.data.expect("details").get(), r#"{"uri":"demo://nothing"}"#);
    seen.insert("not-found", missing.code.to_string());
    let templates = client.request("resources/templates/list", json!({})).await.unwrap();
    seen.insert("templates", templates["resourceTemplates"].as_array().unwrap().len().to_string());
    let arguments = json!({ "resourceType": "Blob", "resourceId": "3" });
    let prompt =
        client.request("prompts/get", json!({ "name": "resource-prompt", "arguments": arguments })).await.unwrap();
    seen.insert("prompt", prompt["messages"].as_array().unwrap().len().to_string());
    let completion = json!({
        "ref": { "type": "ref/prompt", "name": "completable-prompt" },
        "argument": { "name": "name", "value": "d" },
        "context": { "arguments": { "department": "Sales" } }
    });
    let completion = client.request("completion/complete", completion).await.unwrap();
    seen.insert("complete", word(&completion["completion"]["values"][0]));
}

async fn during(seen: &mut Seen, client: &mut Peer) {
    let operation = json!({ "duration": 0.03, "steps": 3 });
    let params =
        json!({ "name": "trigger-long-running-operation", "arguments": operation, "_meta": { "progressToken": 0 } });
    client.request("tools/call", params).await.unwrap();
    let heard = before_now(client).await;
    let reports: Vec<_> =
        heard.iter().filter(|n| n["method"] == "notifications/progress").map(|n| &n["params"]).collect();
    assert!(reports.iter().all(|report| report["progressToken"] == 0 && report["total"] == 3));
    seen.insert("progress", reports.len().to_string());
    seen.insert("progress-message", yes(reports.iter().any(|report| report.get("message").is_some())));
    seen.insert("log", logs(client).await);
    let slow = json!({ "name": "trigger-long-running-operation", "arguments": { "duration": 60, "steps": 1 } });
    let id = client.start("tools/call", slow).await;
    client.notify("notifications/cancelled", json!({ "requestId": id, "reason": "enough" })).await;
    // A call of the same tool that begins later and waits itself: whatever the first one says comes before its answer.
    let short = json!({ "duration": 0.02, "steps": 1 });
    client.call("trigger-long-running-operation", short).await.unwrap();
    before_now(client).await;
    seen.insert("cancel", if client.answered(id) { "answered" } else { "silent" }.into());
}

/// Every notification that was sent before now: a call is answered behind them.
async fn before_now(client: &mut Peer) -> Vec<Value> {
    client.call("echo", json!({ "message": "now" })).await.unwrap();
    client.drain(Duration::ZERO).await
}

/// Whether logs are chosen by a level of the session or by each request. Below the level nothing may come.
async fn logs(client: &mut Peer) -> String {
    const LOG: &str = "notifications/message";
    let levels = |heard: Vec<Value>| {
        let logs = heard.into_iter().filter(|n| n["method"] == LOG);
        logs.map(|n| n["params"]["level"].as_str().unwrap().to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    if client.request("logging/setLevel", json!({ "level": "error" })).await.is_ok() {
        client.call("toggle-simulated-logging", json!({})).await.unwrap();
        // All levels take their turns, and half of them come through: these are two rounds.
        let mut heard = Vec::new();
        while heard.len() < 8 {
            heard.push(client.expect(LOG).await);
        }
        client.call("toggle-simulated-logging", json!({})).await.unwrap();
        heard.extend(before_now(client).await);
        assert_eq!(levels(heard), ["alert", "critical", "emergency", "error"].map(String::from).into());
        return "level".into();
    }
    client.call("toggle-simulated-logging", json!({})).await.unwrap();
    assert!(levels(before_now(client).await).is_empty(), "logs came although the request asked for none");
    let meta = json!({ "io.modelcontextprotocol/logLevel": "alert" });
    client.request("tools/call", json!({ "name": "toggle-simulated-logging", "_meta": meta })).await.unwrap();
    assert_eq!(levels(before_now(client).await), ["alert", "emergency"].map(String::from).into());
    "request".into()
}

async fn questions(seen: &mut Seen, client: &mut Peer) {
    let text = |result: &Value| match result["isError"] == true {
        true => "isError".to_owned(),
        false => word(&result["content"][0]["text"]),
    };
    let form = text(&client.call("trigger-elicitation-request", json!({})).await.unwrap());
    let fields = form.split_whitespace().find(|word| word.trim_matches('"').parse::<u8>().is_ok());
    seen.insert("form", fields.map_or(form.clone(), |word| word.trim_matches('"').into()));
    // Which way questions come is the client's wire; that this one came at all is the server's doing.
    let way = match client.questions().last().map(String::as_str) {
        Some("elicitation/create") if client.features().stateless => "rounds",
        Some("elicitation/create") => "request",
        _ => "-",
    };
    seen.insert("form-by", way.into());
    let url = text(&client.call("trigger-url-elicitation", json!({ "url": "https://example.com/" })).await.unwrap());
    seen.insert("url", url.replace("The user agreed to open the page.", "accepted"));
    let before = client.questions().len();
    let both = text(&client.call("everything_two_questions", json!({})).await.unwrap());
    let asked = client.questions().len() - before;
    assert_eq!(both == "isError", asked == 0, "{both}");
    seen.insert("questions", if asked == 0 { "-".into() } else { asked.to_string() });
    let sample =
        text(&client.call("trigger-sampling-request", json!({ "prompt": "hi", "maxTokens": 9 })).await.unwrap());
    seen.insert("sample", if sample.ends_with("replied: 9 tokens") { "said".into() } else { sample });
    let roots = text(&client.call("get-roots-list", json!({})).await.unwrap());
    let research = json!({ "name": "simulate-research-query", "arguments": { "topic": "t" }, "task": {} });
    let research = match client.request("tools/call", research).await {
        Ok(made) if made["taskId"].is_string() || made["task"]["taskId"].is_string() => "task".into(),
        Ok(other) => panic!("no task: {other}"),
        Err(_) => "refused".into(),
    };
    seen.insert("research", research);
    seen.insert("roots", if roots.contains("work: file:///work") { "listed".into() } else { roots });
}

async fn changes(seen: &mut Seen, client: &mut Peer) {
    const UPDATED: &str = "notifications/resources/updated";
    const CHANGED: &str = "notifications/tools/list_changed";
    let ping = client.request("ping", json!({})).await;
    seen.insert("ping", ping.map_or("refused".into(), |_| "yes".into()));

    let [uri, other] = ["features", "architecture"].map(|name| format!("demo://resource/static/document/{name}.md"));
    let subscribed = client.request("resources/subscribe", json!({ "uri": uri })).await;
    let subscribed = match subscribed {
        Err(_) => "refused",
        Ok(_) => {
            client.call("toggle-subscriber-updates", json!({})).await.unwrap();
            assert_eq!(client.expect(UPDATED).await["params"]["uri"], uri);
            client.request("resources/subscribe", json!({ "uri": other })).await.unwrap();
            client.request("resources/unsubscribe", json!({ "uri": uri })).await.unwrap();
            // What was on its way comes before the answer; then the other one's updates come alone.
            before_now(client).await;
            for _ in 0..3 {
                assert_eq!(
                    client.expect(UPDATED).await["params"]["uri"],
                    other,
                    "updates after the subscription ended"
                );
            }
            client.request("resources/unsubscribe", json!({ "uri": other })).await.unwrap();
            client.call("toggle-subscriber-updates", json!({})).await.unwrap();
            "updated"
        }
    };
    seen.insert("subscribe", subscribed.into());

    client.call("everything_toggle_extra", json!({})).await.unwrap();
    // Whoever is not told by the session must not be told at all; what is listened to below comes later.
    if !client.features().stateless {
        client.expect(CHANGED).await;
        seen.insert("tools-changed", "yes".into());
    }

    let wanted = json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": [uri] } });
    let id = client.start("subscriptions/listen", wanted).await;
    if !client.features().stateless {
        assert!(client.finish(id).await.is_err());
        seen.insert("listen", "refused".into());
        seen.insert("tools-changed-listen", "refused".into());
        return;
    }
    client.call("toggle-subscriber-updates", json!({})).await.unwrap();
    let updated = client.expect(UPDATED).await;
    assert_eq!(updated["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    seen.insert("listen", yes(updated["params"]["uri"] == uri).replace("yes", "updated"));
    client.call("everything_toggle_extra", json!({})).await.unwrap();
    let changed = client.expect(CHANGED).await;
    let unasked = before_now(client).await.iter().any(|n| n["method"] == CHANGED);
    seen.insert("tools-changed", yes(unasked));
    seen.insert(
        "tools-changed-listen",
        yes(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == id),
    );
}
