//! Every row of the table: against a description of the API, with hostile arguments, and with everything that fails. And the
//! configuration.

use linchpin::Server;
use linchpin::testing::site::Site;
use linchpin_kit::{Secret, Vars};
use linchpin_rest::testing::{KEY, Suite, call};
use linchpin_sentry::{API, Config, SERVICE, Sentry};
use serde_json::json;

pub(crate) fn suite() -> Suite {
    Suite::new(&API, &SERVICE, include_str!("../contract/sentry.json"))
}

/// A configuration for a site that stands for sentry.io.
pub(crate) fn config(site: &Site) -> Config {
    Config::default().with(|config| config.api = suite().config(site))
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

#[tokio::test]
async fn addresses_of_other_hosts_are_refused_and_nothing_is_sent() {
    let site = suite().site().await;
    let connection = crate::issues::connected(config(&site)).await;
    for text in [
        "https://evil.com/issues/1",
        "https://x.sentry.io.evil.com/issues/1",
        "https://sentry.io@evil.com/issues/1",
        "https://evil.com\\.sentry.io/issues/1",
        "1/../../users/me",
        "https://acme.sentry.io/issues/..%2f..%2fusers/me",
        "PROJ-1A",
    ] {
        let told = call(&connection, "get_sentry_issue", json!({ "issue_id_or_url": text })).await;
        assert!(told.failed && told.kind == "invalid", "{text}: {}", told.result);
    }
    assert!(site.requests().is_empty());
}

#[test]
fn the_variables_and_the_flag_of_the_published_server_are_heeded() {
    for (name, token) in [("SENTRY_TOKEN", "a"), ("SENTRY_AUTH_TOKEN", "b"), ("MCP_SENTRY_AUTH_TOKEN", "c")] {
        let get = |asked: &str| (asked == name).then(|| token.to_owned());
        let config = Config::from_env(Vars::new(&get)).unwrap();
        assert_eq!(config.api.key.as_ref().map(Secret::reveal), Some(token), "{name}");
        assert!(Sentry::open(config).is_ok());
    }
    for (name, value, url) in [
        ("SENTRY_HOST", "errors.example", "https://errors.example/api/0/"),
        ("SENTRY_URL", "https://errors.example/sentry/", "https://errors.example/sentry/api/0/"),
        ("SENTRY_URL", "https://de.sentry.io", "https://de.sentry.io/api/0/"),
    ] {
        let get = |asked: &str| match asked {
            "SENTRY_TOKEN" => Some(KEY.to_owned()),
            asked => (asked == name).then(|| value.to_owned()),
        };
        let opened = Sentry::open(Config::from_env(Vars::new(&get)).unwrap()).unwrap();
        let shown = format!("{opened:?}");
        assert!(shown.contains(url.trim_end_matches('/')) && !shown.contains(KEY), "{shown}");
    }
    for (url, org) in [
        ("http://errors.example", "a"),
        ("errors", "a"),
        ("https://u:p@errors.example", "a"),
        ("https://e.example", "a/b"),
    ] {
        let config = Config::default().with(|config| {
            config.api.key = Some(Secret::new("k"));
            config.url = Some(url.into());
            config.org = Some(org.into());
        });
        assert!(Sentry::open(config).is_err(), "{url} {org}");
    }
    let missing = Sentry::open(Config::default()).unwrap_err().to_string();
    assert!(
        missing.starts_with("SENTRY_TOKEN or SENTRY_AUTH_TOKEN environment variable is required\nHint: "),
        "{missing}"
    );
}

#[tokio::test]
async fn issues_of_a_server_of_ones_own_are_at_its_address_and_those_of_a_region_at_sentrys() {
    for (url, page, fits) in [
        ("https://de.sentry.io", "https://acme.sentry.io/issues/1/", true),
        ("https://errors.example", "https://errors.example/organizations/acme/issues/1/", true),
        ("https://errors.example", "https://acme.sentry.io/issues/1/", false),
    ] {
        let site = suite().site().await;
        let config = config(&site).with(|config| config.url = Some(url.into()));
        let connection = crate::issues::connected(config).await;
        let told = call(&connection, "get_sentry_issue", json!({ "issue_id_or_url": page })).await;
        assert_eq!(!told.failed, fits, "{page} at {url}: {}", told.result);
    }
}

#[tokio::test]
async fn changes_are_off_unless_they_are_asked_for() {
    let open = |change: &dyn Fn(&mut Config)| {
        let mut config = Config::default();
        config.api.key = Some(Secret::new("k"));
        change(&mut config);
        Sentry::open(config).unwrap().add_to(Server::new("t", "0")).unwrap()
    };
    let names = |server: &Server<linchpin_rest::Rest>| server.tools().names().join(" ");
    let usual = "get_sentry_issue sentry_search_issues sentry_list_events sentry_find";
    assert_eq!(names(&open(&|_| {})), usual);
    assert_eq!(names(&open(&|config| config.api.tools.published = true)), "get_sentry_issue");
    let all = format!("{usual} sentry_update_issue");
    let everything = |config: &mut Config| config.api.tools.toolsets = vec!["all".into()];
    assert_eq!(names(&open(&everything)), all);
    let read_only = |config: &mut Config| {
        everything(config);
        config.api.tools.read_only = true;
    };
    assert_eq!(names(&open(&read_only)), usual);
}
