//! Every row of the tables: against a description of the API, with hostile arguments, and with everything that fails.

use linchpin::Server;
use linchpin::client::{Client, Connection};
use linchpin::prelude::in_process;
use linchpin::testing::site::{Seen, Site, json as answer_json};
use linchpin_github::{API, Config, SERVICE, open};
use linchpin_rest::Rest;
use linchpin_rest::testing::Suite;
use serde_json::{Value, json};

pub(crate) fn suite() -> Suite {
    Suite::new(&API, &SERVICE, include_str!("../contract/github.json"))
}

/// The server as [`open`] makes it, with a key and all tools, and what it is asked at.
pub(crate) fn served(site: &Site, change: impl FnOnce(&mut Config)) -> Server<Rest> {
    let config = Config::default().with(|config| {
        config.api = suite().config(site);
        change(config);
    });
    open(config).unwrap().add_to(Server::new("test", "0"), &SERVICE).unwrap()
}

/// A client of that server.
pub(crate) async fn connected(site: &Site, change: impl FnOnce(&mut Config)) -> Connection {
    let server = served(site, change);
    Client::new("test", "0").check_results(true).connect(in_process(server)).await.unwrap()
}

/// A site that answers as the description says, unless this function knows better: status and JSON.
pub(crate) async fn site(special: impl Fn(&Seen) -> Option<(u16, Value)> + Send + Sync + 'static) -> Site {
    suite().site_but(move |seen| special(seen).map(|(status, answer)| answer_json(status, "", &answer))).await
}

/// A site whose issue 9 of `o/r` has moved to `o/secret`, which is private.
pub(crate) async fn moved() -> Site {
    let of = |path: &str| format!("https://api.github.com/repos/o/secret{path}");
    let issue = json!({ "number": 9, "title": "hidden", "state": "open", "author_association": "OWNER",
        "user": { "login": "ann" }, "repository_url": of(""), "url": of("/issues/9") });
    let comment = json!({ "id": 1, "body": "hidden", "author_association": "OWNER", "user": { "login": "ann" },
        "url": of("/issues/comments/1"), "issue_url": of("/issues/9") });
    let label = json!({ "name": "hidden", "color": "fff", "url": of("/labels/hidden") });
    suite()
        .site_but(move |seen| {
            let (status, answer) = match seen.path() {
                "/repos/o/r" => (200, json!({ "private": false })),
                "/repos/o/secret" => (200, json!({ "private": true })),
                "/repositories/5/issues/9" => (200, issue.clone()),
                "/repositories/5/issues/9/comments" => (200, json!([comment])),
                "/repositories/5/issues/9/labels" => (200, json!([label])),
                "/repos/o/r/issues/1/sub_issues" => (200, json!([issue])),
                path => {
                    let rest = path.strip_prefix("/repos/o/r/issues/9")?;
                    return Some(answer_json(
                        301,
                        &format!("location: /repositories/5/issues/9{rest}\r\n"),
                        &json!({}),
                    ));
                }
            };
            Some(answer_json(status, "", &answer))
        })
        .await
}

/// The requests that were sent, as `GET /path?query`.
pub(crate) fn sent(site: &Site) -> Vec<String> {
    site.requests().iter().map(|seen| format!("{} {}", seen.method, seen.target)).collect()
}

/// The body of the last request.
pub(crate) fn last_body(site: &Site) -> Value {
    serde_json::from_slice(&site.requests().last().unwrap().body).unwrap()
}

/// These arguments and the repository `o/r`.
pub(crate) fn in_o_r(mut arguments: Value) -> Value {
    arguments["owner"] = json!("o");
    arguments["repo"] = json!("r");
    arguments
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
