//! Every row of the table: against a description of the API, with hostile arguments, and with everything that fails.

use linchpin::client::Connection;
use linchpin::testing::site::{Seen, Site};
use linchpin_kit::{Secret, Vars};
use linchpin_rest::testing::{KEY, Suite, call};
use linchpin_slack::{API, Config, SERVICE, open};
use serde_json::json;

pub(crate) fn suite() -> Suite {
    Suite::new(&API, &SERVICE, include_str!("../contract/slack.json")).opened_by(|api| {
        open(Config::default().with(|config| {
            config.api = api;
            config.user_token = Some(Secret::new(KEY));
        }))
    })
}

/// A server for this site with these options.
pub(crate) async fn server(site: &Site, options: impl FnOnce(&mut Config)) -> Connection {
    let mut config = Config::default().with(|config| {
        config.api = suite().config(site);
        config.user_token = Some(Secret::new(KEY));
    });
    options(&mut config);
    suite().serve(open(config).expect("a valid configuration")).await
}

/// The method and its parameters, wherever they are.
pub(crate) fn asked(seen: &Seen) -> String {
    let form = String::from_utf8_lossy(&seen.body).into_owned();
    format!("{}?{}", seen.path().trim_start_matches("/api/"), if form.is_empty() { seen.query() } else { &form })
}

#[tokio::test]
async fn every_row_makes_requests_that_the_description_allows() {
    suite().contract().await;
}

#[tokio::test]
async fn no_argument_leads_a_request_elsewhere() {
    suite().hostile_arguments().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_every_row_says_what_happened() {
    suite().faults().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_with_lockdown_every_row_says_what_happened() {
    let with_lockdown = suite().opened_by(|api| {
        open(Config::default().with(|config| {
            config.api = api;
            config.user_token = Some(Secret::new(KEY));
            config.lockdown = true;
        }))
    });
    with_lockdown.faults().await;
}

#[tokio::test]
async fn what_slack_would_refuse_is_refused_before_anything_is_sent() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    for (tool, arguments) in [
        ("slack_list_channels", json!({ "limit": 201 })),
        ("slack_list_channels", json!({ "types": ["im"] })),
        ("slack_get_channel_history", json!({ "channel_id": "" })),
        ("slack_get_channel_history", json!({ "channel_id": "U0123456789" })),
        ("slack_get_channel_history", json!({ "channel_id": "@ann" })),
        ("slack_get_channel_history", json!({ "channel_id": "C0123456789", "oldest": "yesterday" })),
        ("slack_get_thread_replies", json!({ "channel_id": "C0123456789", "thread_ts": "1.2.3" })),
        ("slack_post_message", json!({ "channel_id": "C0123456789", "text": " " })),
        ("slack_post_message", json!({ "channel_id": "C0123456789", "text": "x".repeat(40_001) })),
        ("slack_get_user_profile", json!({ "user_id": "" })),
        ("slack_open_dm", json!({ "user_ids": [] })),
        ("slack_search", json!({ "query": "x", "page": 0 })),
    ] {
        let told = call(&connection, tool, arguments.clone()).await;
        assert!(told.failed, "{tool} {arguments}: {}", told.result);
    }
    assert!(site.requests().is_empty(), "{:?}", site.requests());
}

#[tokio::test]
async fn by_its_published_name_it_offers_the_published_tools_and_posts_only_with_leave() {
    let site = suite().site().await;
    for (channels, allow_post, posts) in
        [(vec![], false, false), (vec![], true, true), (vec!["C0123456789"], false, true)]
    {
        let connection = server(&site, |config| {
            config.api.tools = Default::default();
            config.api.tools.published = true;
            config.allow_post = allow_post;
            config.channels = channels.iter().map(|id| (*id).to_owned()).collect();
        })
        .await;
        let tools = connection.tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let published = SERVICE.tools[..8].iter().map(|tool| tool.name);
        let want: Vec<&str> = published
            .filter(|name| posts || !matches!(*name, "slack_post_message" | "slack_reply_to_thread"))
            .collect();
        assert_eq!(names, want);
    }
}

#[test]
fn the_variables_of_the_published_server_are_heeded() {
    let get = |name: &str| {
        let value = match name {
            "SLACK_BOT_TOKEN" => "xoxb-hidden",
            "SLACK_USER_TOKEN" => "xoxp-hidden",
            "SLACK_TEAM_ID" => "T0123456789",
            "SLACK_CHANNEL_IDS" => "C0123456789, G1",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let config = Config::from_env(Vars::new(&get)).unwrap();
    assert_eq!((config.team.as_deref(), config.channels.len()), (Some("T0123456789"), 2));
    assert!(!format!("{config:?}").contains("hidden"));
    assert!(open(config.clone()).is_ok());
    let odd = open(config.with(|config| config.channels = vec!["general".into()])).unwrap_err().to_string();
    assert!(odd.starts_with("general is not the id of a channel\nHint: "), "{odd}");
    let missing = open(Config::default()).unwrap_err().to_string();
    let want = "SLACK_BOT_TOKEN environment variable is required\nHint: Create an app at https://api.slack.com/apps, install it, \
                and copy its bot token (xoxb-…). Or name a file with SLACK_BOT_TOKEN_FILE.";
    assert_eq!(missing, want);
}
