//! What is posted: nothing that Slack fetches, nobody who is called without leave, and no address that the operator does not
//! allow.

use crate::rows::{asked, server, suite};
use linchpin_rest::testing::call;
use serde_json::{Value, json};
use url::form_urlencoded::parse;

/// The three ways to write.
fn writes(text: &str) -> [(&'static str, Value); 3] {
    let ts = "1700000000.000100";
    [
        ("slack_post_message", json!({ "channel_id": "C0123456789", "text": text })),
        ("slack_reply_to_thread", json!({ "channel_id": "C0123456789", "thread_ts": ts, "text": text })),
        ("slack_update_message", json!({ "channel_id": "C0123456789", "timestamp": ts, "text": text })),
    ]
}

#[tokio::test]
async fn no_message_makes_slack_fetch_what_it_links_to() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    for text in
        ["<https://evil.example/?q=secret|click>", "https://evil.example/?q=secret", "![x](https://evil.example/)"]
    {
        for (tool, arguments) in writes(text) {
            assert!(!call(&connection, tool, arguments).await.failed);
            let seen = site.requests();
            let body: Vec<(String, String)> = parse(&seen.last().unwrap().body).into_owned().collect();
            let value = |name: &str| body.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
            assert_eq!((value("unfurl_links"), value("unfurl_media")), (Some("false"), Some("false")), "{tool}");
            assert_eq!(value("text"), Some(text));
            assert!(value("link_names").is_none());
            for name in ["parse", "blocks", "attachments"] {
                assert!(value(name).is_none_or(|value| matches!(value, "none" | "[]")), "{tool} {name}");
            }
        }
    }
}

#[tokio::test]
async fn a_correction_replaces_all_of_a_message_and_makes_no_mentions_of_plain_words() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    let (tool, arguments) = writes("now @channel, #general").into_iter().last().unwrap();
    assert!(!call(&connection, tool, arguments).await.failed);
    let seen = site.requests();
    let body: Vec<(String, String)> = parse(&seen.last().unwrap().body).into_owned().collect();
    for (name, value) in [("parse", "none"), ("blocks", "[]"), ("attachments", "[]")] {
        assert!(body.contains(&(name.to_owned(), value.to_owned())), "{name}: {body:?}");
    }
}

#[tokio::test]
async fn mentions_are_escaped_without_leave() {
    let site = suite().site().await;
    for (allowed, want) in [(false, "&lt;!channel> &lt;@U0123456789>"), (true, "<!channel> <@U0123456789>")] {
        let connection = server(&site, |config| config.allow_mentions = allowed).await;
        for (tool, arguments) in writes("<!channel> <@U0123456789>") {
            assert!(!call(&connection, tool, arguments).await.failed);
            let seen = site.requests();
            let text = parse(&seen.last().unwrap().body).find(|(name, _)| name == "text").unwrap().1.into_owned();
            assert_eq!(text, want, "{tool}");
        }
    }
}

#[tokio::test]
async fn a_message_that_leads_to_another_host_is_refused_and_not_sent() {
    let site = suite().site().await;
    let connection = server(&site, |config| config.link_hosts = vec!["good.example".parse().unwrap()]).await;
    for (tool, arguments) in writes("see <https://evil.example/?q=secret|here>") {
        let told = call(&connection, tool, arguments).await;
        assert!(told.failed && told.kind == "denied" && told.text.contains("Allowed: good.example."), "{}", told.text);
    }
    assert!(site.requests().is_empty());
    for (tool, arguments) in writes("see https://good.example/x") {
        assert!(!call(&connection, tool, arguments).await.failed);
    }
}

#[tokio::test]
async fn timestamps_and_emoji_are_taken_as_people_copy_them() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    for (given, emoji) in
        [("1700000000.000100", "wave"), ("p1700000000000100", ":wave:"), ("1700000000000100", ":wave")]
    {
        let arguments = json!({ "channel_id": "C0123456789", "timestamp": given, "reaction": emoji });
        assert!(!call(&connection, "slack_add_reaction", arguments).await.failed);
        let last = asked(site.requests().last().unwrap());
        assert_eq!(last, "reactions.add?channel=C0123456789&timestamp=1700000000.000100&name=wave");
    }
}
