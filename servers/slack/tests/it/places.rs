//! Where the server reads and posts: the operator's choice, for every tool.

use crate::rows::{asked, server, suite};
use linchpin::testing::site::{Do, Site, json};
use linchpin_rest::testing::call;
use serde_json::{Value, json};

const ALL: &[(&str, &str)] = &[
    ("slack_post_message", r#"{"text":"hi"}"#),
    ("slack_reply_to_thread", r#"{"thread_ts":"1.000001","text":"hi"}"#),
    ("slack_add_reaction", r#"{"timestamp":"1.000001","reaction":"wave"}"#),
    ("slack_get_channel_history", "{}"),
    ("slack_get_thread_replies", r#"{"thread_ts":"1.000001"}"#),
    ("slack_update_message", r#"{"timestamp":"1.000001","text":"hi"}"#),
    ("slack_get_permalink", r#"{"timestamp":"1.000001"}"#),
];

fn with_channel(arguments: &str, channel: &str) -> Value {
    let mut arguments: Value = serde_json::from_str(arguments).unwrap();
    arguments["channel_id"] = json!(channel);
    arguments
}

/// A workspace of three channels and a direct message, on two pages.
async fn workspace() -> Site {
    let channels = |id: &str| match id {
        "C1" => json!({ "id": "C1", "name": "general", "is_private": false }),
        "C2" => json!({ "id": "C2", "name": "secret", "is_private": true }),
        "C3" => json!({ "id": "C3", "name": "random", "is_private": false }),
        "D1" => json!({ "id": "D1", "is_im": true, "user": "U1" }),
        _ => Value::Null,
    };
    Site::new(move |_, seen| {
        let query = asked(seen);
        let answer = match seen.path() {
            "/api/conversations.list" if query.contains("cursor") => {
                json!({ "ok": true, "channels": [channels("C3")], "response_metadata": { "next_cursor": "again" } })
            }
            "/api/conversations.list" => {
                let mut some = vec![channels("C1")];
                some.extend(query.contains("private_channel").then(|| channels("C2")));
                json!({ "ok": true, "channels": some, "response_metadata": { "next_cursor": "again" } })
            }
            "/api/conversations.info" => match channels(query.split_once("channel=").unwrap().1) {
                Value::Null => json!({ "ok": false, "error": "channel_not_found" }),
                found => json!({ "ok": true, "channel": found }),
            },
            "/api/users.list" => json!({ "ok": true, "members": [
                { "id": "U1", "name": "ann", "profile": { "display_name": "Ann" } },
                { "id": "U2", "name": "bob", "profile": { "display_name": "Sam" } },
                { "id": "U3", "name": "carl", "profile": { "display_name": "Sam" } },
                { "id": "U4", "name": "gone", "deleted": true },
            ] }),
            "/api/search.messages" => {
                let found = ["C1", "C2", "D1"].map(|id| json!({ "text": "x", "channel": channels(id) }));
                json!({ "ok": true, "messages": { "total": 3, "paging": { "total": 3 }, "matches": found } })
            }
            "/api/files.info" => {
                let shared = if query.contains("F1") { ("channels", "C1") } else { ("ims", "D1") };
                json!({ "ok": true, "content": "x", "file": { "id": "F", shared.0: [shared.1] } })
            }
            _ => json!({ "ok": true, "messages": [], "ts": "1.000001", "channel": "C1" }),
        };
        vec![Do::Write(json(200, "", &answer))]
    })
    .await
}

#[tokio::test]
async fn where_channels_are_named_no_tool_reaches_another_and_nothing_is_sent() {
    let site = workspace().await;
    let connection = server(&site, |config| config.channels = vec!["C2".into()]).await;
    for (tool, arguments) in ALL {
        for other in ["C1", "C3", "D1", "C2,C1", "C2&channel=C1", "c2"] {
            let before = site.requests().len();
            let told = call(&connection, tool, with_channel(arguments, other)).await;
            assert!(told.failed, "{tool} {other}: {}", told.result);
            let asked: Vec<String> = site.requests()[before..].iter().map(asked).collect();
            assert!(asked.iter().all(|one| one == "conversations.info?channel=C2"), "{tool} {other}: {asked:?}");
        }
        // The private channel was named by the operator.
        let told = call(&connection, tool, with_channel(arguments, "C2")).await;
        assert!(!told.failed, "{tool}: {}", told.result);
    }
    let told = call(&connection, "slack_open_dm", json!({ "user_ids": ["U1"] })).await;
    assert_eq!(told.kind, "denied");
    let told = call(&connection, "slack_get_file", json!({ "file_id": "F1" })).await;
    assert_eq!(told.kind, "denied");
    let told = call(&connection, "slack_search", json!({ "query": "x" })).await;
    assert_eq!(told.structured["matches"], json!([{ "text": "x", "channel": { "id": "C2", "name": "secret" } }]));
    // Numbers would tell what is in the others.
    assert!(!told.result.to_string().contains("left out") && told.structured.get("total").is_none(), "{}", told.result);
}

#[tokio::test]
async fn where_channels_are_named_they_are_the_list() {
    let site = workspace().await;
    let connection = server(&site, |config| config.channels = vec!["C3".into(), "C9".into(), "C2".into()]).await;
    let told = call(&connection, "slack_list_channels", json!({ "limit": 1 })).await;
    let names = |told: &Value| -> Vec<String> {
        told["channels"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&told.structured), ["random", "secret"]);
    assert!(told.text.ends_with(r#""response_metadata":{"next_cursor":""}}"#), "{}", told.text);
    assert!(site.requests().iter().all(|seen| seen.path() == "/api/conversations.info"));
    // Names are looked for among them only.
    let told = call(&connection, "slack_get_channel_history", json!({ "channel_id": "#secret" })).await;
    assert!(!told.failed, "{}", told.result);
    let told = call(&connection, "slack_get_channel_history", json!({ "channel_id": "#general" })).await;
    assert_eq!(told.kind, "not_found");
}

#[tokio::test]
async fn whatever_slack_says_of_a_named_channel_there_is_a_list() {
    for odd in [json!("text"), json!([1]), json!({ "channel": [] }), json!({ "channel": { "id": 7 } }), json!(null)] {
        let site = Site::saying(json(200, "", &odd)).await;
        let connection = server(&site, |config| config.channels = vec!["C1".into()]).await;
        let told = call(&connection, "slack_list_channels", json!({})).await;
        assert!(!told.failed && told.structured["channels"].is_array(), "{odd}: {}", told.result);
        let told = call(&connection, "slack_get_channel_history", json!({ "channel_id": "#general" })).await;
        assert!(told.failed && !told.kind.is_empty(), "{odd}: {}", told.result);
    }
}

#[tokio::test]
async fn private_channels_and_direct_messages_need_leave() {
    for (private, direct, channel, allowed) in [
        (false, false, "C1", true),
        (false, false, "C2", false),
        (false, false, "D1", false),
        (true, false, "C2", true),
        (true, false, "D1", false),
        (false, true, "C2", false),
        (false, true, "D1", true),
        (true, true, "C2", true),
    ] {
        let site = workspace().await;
        let connection = server(&site, |config| {
            (config.private_channels, config.direct_messages) = (private, direct);
        })
        .await;
        for (tool, arguments) in ALL {
            let told = call(&connection, tool, with_channel(arguments, channel)).await;
            assert_eq!(!told.failed, allowed, "{private} {direct} {tool} {channel}: {}", told.result);
            assert!(allowed || told.kind == "denied", "{}", told.result);
        }
        let infos = site.requests().iter().filter(|seen| seen.path() == "/api/conversations.info").count();
        assert!(infos <= 1, "the kind of a channel is remembered");
        let types = ["public_channel", "private_channel", "mpim%2Cim"];
        let told = call(&connection, "slack_list_channels", json!({})).await;
        assert!(!told.failed);
        let asked = asked(site.requests().last().unwrap());
        for (word, wanted) in types.iter().zip([true, private, direct]) {
            assert_eq!(asked.contains(word), wanted, "{asked}");
        }
        let found = call(&connection, "slack_search", json!({ "query": "x" })).await;
        let count = 1 + usize::from(private) + usize::from(direct);
        assert_eq!(found.structured["matches"].as_array().unwrap().len(), count, "{}", found.result);
        assert_eq!(found.structured["total"] == 3, private && direct, "{}", found.result);
        let file = call(&connection, "slack_get_file", json!({ "file_id": "F2" })).await;
        assert_eq!(!file.failed, direct, "{}", file.result);
    }
}

#[tokio::test]
async fn names_in_capitals_are_names() {
    let site = workspace().await;
    let connection = suite().connect(suite().config(&site)).await;
    for name in ["GENERAL", "General"] {
        let told = call(&connection, "slack_get_channel_history", json!({ "channel_id": name })).await;
        assert!(!told.failed, "{name}: {}", told.result);
        assert!(asked(site.requests().last().unwrap()).contains("channel=C1"));
    }
    for (name, id) in [("BOB", "U2"), ("USLACKBOT", "USLACKBOT")] {
        let told = call(&connection, "slack_get_user_profile", json!({ "user_id": name })).await;
        assert!(!told.failed, "{name}: {}", told.result);
        assert!(asked(site.requests().last().unwrap()).contains(&format!("user={id}")), "{name}");
    }
}

#[tokio::test]
async fn people_who_were_read_before_a_limit_are_not_read_again() {
    let site = Site::new(|n, seen| {
        let query = asked(seen);
        let member = |id: &str, name: &str| json!({ "id": id, "name": name });
        let page = |one: Value, next: &str| {
            json!({ "ok": true, "members": [one], "response_metadata": { "next_cursor": next } })
        };
        let answer = match (query.contains("cursor=b"), query.contains("cursor=a")) {
            _ if !query.starts_with("users.list") => json!({ "ok": true }),
            (false, false) => page(member("U1", "ann"), "a"),
            (false, true) if n == 1 => json!({ "ok": false, "error": "ratelimited" }),
            (false, true) => page(member("U2", "bob"), "b"),
            (true, _) => page(member("U3", "carl"), ""),
        };
        vec![Do::Write(json(200, "", &answer))]
    })
    .await;
    let connection = suite().connect(suite().config(&site)).await;
    for (name, kind) in [("@carl", "limited"), ("@carl", ""), ("@ann", "")] {
        let told = call(&connection, "slack_get_user_profile", json!({ "user_id": name })).await;
        assert_eq!((told.failed, told.kind.as_str()), (!kind.is_empty(), kind), "{}", told.result);
    }
    let pages: Vec<String> = site.requests().iter().map(asked).filter(|one| one.starts_with("users.list")).collect();
    assert_eq!(pages.len(), 4, "{pages:?}");
}

#[tokio::test]
async fn names_become_ids_once_and_lists_that_lead_to_themselves_end() {
    let site = workspace().await;
    let connection = suite().connect(suite().config(&site)).await;
    for name in ["#general", "general", "#General", "#random"] {
        let told = call(&connection, "slack_get_channel_history", json!({ "channel_id": name })).await;
        assert!(!told.failed, "{name}: {}", told.result);
    }
    let lists = || site.requests().iter().filter(|seen| seen.path() == "/api/conversations.list").count();
    // The first page has `general`; both are read for `random`.
    assert_eq!(lists(), 3);
    let told = call(&connection, "slack_get_channel_history", json!({ "channel_id": "#secret" })).await;
    assert_eq!((told.kind.as_str(), lists()), ("not_found", 5));
    // That it was asked for by its id, and refused, gives it no name that can be used.
    let told = call(&connection, "slack_get_channel_history", json!({ "channel_id": "C2" })).await;
    assert_eq!(told.kind, "denied");
    let told = call(&connection, "slack_get_channel_history", json!({ "channel_id": "#secret" })).await;
    assert_eq!((told.kind.as_str(), lists()), ("not_found", 7));
    for (name, want) in
        [("@ann", Some("U1")), ("Ann", Some("U1")), ("bob", Some("U2")), ("@sam", None), ("@gone", None)]
    {
        let told = call(&connection, "slack_get_user_profile", json!({ "user_id": name })).await;
        match want {
            Some(id) => assert!(asked(site.requests().last().unwrap()).contains(&format!("user={id}")), "{name}"),
            None => assert!(told.failed, "{name}: {}", told.result),
        }
    }
    let told = call(&connection, "slack_get_user_profile", json!({ "user_id": "@sam" })).await;
    assert!(told.text.ends_with("Use one of their ids: U2, U3."), "{}", told.text);
    assert_eq!(site.requests().iter().filter(|seen| seen.path() == "/api/users.list").count(), 1);
}

#[tokio::test]
async fn without_a_users_token_there_is_no_search() {
    let site = workspace().await;
    for (token, has) in [("xoxb-1", false), ("xoxp-1", true)] {
        let connection = server(&site, |config| {
            config.api.tools = Default::default();
            config.user_token = None;
            config.api.key = Some(linchpin_kit::Secret::new(token));
        })
        .await;
        let tools = connection.tools().await.unwrap();
        assert_eq!(tools.iter().any(|tool| tool.name == "slack_search"), has);
    }
}

#[tokio::test]
async fn with_lockdown_only_members_of_the_workspace_are_heard() {
    let site = Site::new(|_, seen| {
        let by = |user: &str| json!({ "text": "x", "user": user, "channel": { "id": "C1", "is_private": false } });
        let mut said: Vec<Value> = ["U1", "U2", "U3", "U9"].into_iter().map(by).collect();
        said.push(json!({ "text": "x", "bot_id": "B1", "user": "U1" }));
        let answer = match seen.path() {
            "/api/users.list" => json!({ "ok": true, "members": [
                { "id": "U1", "name": "ann" },
                { "id": "U2", "name": "guest", "is_restricted": true },
                { "id": "U3", "name": "bot", "is_bot": true },
            ] }),
            "/api/search.messages" => json!({ "ok": true, "messages": { "matches": said } }),
            "/api/files.info" => {
                let user = if seen.query().contains("F1") { "U1" } else { "U2" };
                json!({ "ok": true, "file": { "id": "F1", "user": user, "channels": ["C1"] } })
            }
            _ => json!({ "ok": true, "messages": said, "channel": { "id": "C1", "is_private": false } }),
        };
        vec![Do::Write(json(200, "", &answer))]
    })
    .await;
    let connection = server(&site, |config| config.lockdown = true).await;
    for (tool, arguments, list) in [
        ("slack_get_channel_history", json!({ "channel_id": "C1" }), "messages"),
        ("slack_get_thread_replies", json!({ "channel_id": "C1", "thread_ts": "1.000001" }), "messages"),
        ("slack_search", json!({ "query": "x" }), "matches"),
    ] {
        let told = call(&connection, tool, arguments).await;
        let users: Vec<&str> =
            told.structured[list].as_array().unwrap().iter().map(|one| one["user"].as_str().unwrap()).collect();
        assert_eq!(users, ["U1"], "{tool}: {}", told.result);
        assert!(!told.text.contains("linchpin"), "{}", told.text);
    }
    for (file, shown) in [("F1", true), ("F2", false)] {
        let told = call(&connection, "slack_get_file", json!({ "file_id": file })).await;
        assert_eq!(!told.failed, shown, "{}", told.result);
    }
    assert_eq!(site.requests().iter().filter(|seen| seen.path() == "/api/users.list").count(), 1);
}

#[tokio::test]
async fn tokens_of_an_organization_say_which_workspace_is_meant() {
    let site = workspace().await;
    let connection = server(&site, |config| config.team = Some("T1".to_owned())).await;
    for (tool, arguments) in [
        ("slack_list_channels", json!({ "team_id": "T2" })),
        ("slack_get_users", json!({})),
        ("slack_list_usergroups", json!({})),
        ("slack_get_channel_history", json!({ "channel_id": "#random" })),
        ("slack_get_user_profile", json!({ "user_id": "@ann" })),
    ] {
        let before = site.requests().len();
        call(&connection, tool, arguments).await;
        let list = asked(&site.requests()[before]);
        assert!(list.contains("team_id=T1") && !list.contains("T2"), "{list}");
    }
}
