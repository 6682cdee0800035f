//! Every row of the table: against a description of the API, with hostile arguments, and with everything that fails.

use linchpin_brave_search::{API, Config, SERVICE, open};
use linchpin_kit::{Secret, Vars};
use linchpin_rest::testing::{Suite, call};
use serde_json::json;

pub(crate) fn suite() -> Suite {
    Suite::new(&API, &SERVICE, include_str!("../contract/brave.json"))
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
async fn what_brave_would_refuse_is_refused_before_anything_is_sent() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    let words = |n: usize| vec!["word"; n].join(" ");
    for tool in SERVICE.tools.iter().filter(|tool| tool.name != "brave_summarizer") {
        for (query, why) in [
            (words(51), "it has 51 words, at most 50 are allowed"),
            ("x".repeat(401), "it has 401 characters, at most 400 are allowed"),
        ] {
            let told = call(&connection, tool.name, json!({ "query": query })).await;
            assert_eq!(told.text, format!("Invalid argument query: {why}"), "{}", tool.name);
            assert_eq!(told.kind, "invalid");
        }
    }
    for (tool, arguments) in [
        ("brave_web_search", json!({ "query": "x", "count": 21 })),
        ("brave_web_search", json!({ "query": "x", "count": 0 })),
        ("brave_web_search", json!({ "query": "x", "offset": 10 })),
        ("brave_web_search", json!({ "query": " " })),
        ("brave_web_search", json!({ "query": "x", "country": "us" })),
        ("brave_web_search", json!({ "query": "x", "freshness": "2026-01-01" })),
        ("brave_web_search", json!({ "query": "x", "goggles": ["http://g.example"] })),
        ("brave_local_search", json!({ "query": "x", "count": 21 })),
        ("brave_image_search", json!({ "query": "x", "safesearch": "moderate" })),
        ("brave_place_search", json!({ "latitude": 91 })),
        ("brave_summarizer", json!({})),
    ] {
        assert!(call(&connection, tool, arguments.clone()).await.failed, "{tool} {arguments}");
    }
    assert!(site.requests().is_empty());
    // Exactly as much as is allowed.
    for query in [words(50), "ä".repeat(400)] {
        assert!(!call(&connection, "brave_web_search", json!({ "query": query })).await.failed);
    }
}

#[tokio::test]
async fn the_second_page_is_another_one_and_there_are_ten() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    let told = call(&connection, "brave_web_search", json!({ "query": "x", "offset": 8 })).await;
    let arguments = json!({ "query": "x", "offset": 8, "cursor": told.structured["next_cursor"] });
    let last = call(&connection, "brave_web_search", arguments).await;
    assert!(last.structured.get("next_cursor").is_none(), "{}", last.structured);
    let offsets: Vec<String> = site.requests().iter().map(|seen| seen.query().to_owned()).collect();
    assert!(offsets[0].contains("offset=8") && offsets[1].contains("offset=9"), "{offsets:?}");
}

#[tokio::test]
async fn a_search_for_a_summary_is_not_filtered() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    for (summary, filtered) in [(false, true), (true, false)] {
        let told = call(&connection, "brave_web_search", json!({ "query": "x", "summary": summary })).await;
        assert!(told.text.starts_with("Summarizer key: {\"query\":\"rust\"}\n\nTitle: "), "{}", told.text);
        assert_eq!(site.requests().last().unwrap().query().contains("result_filter="), filtered);
    }
}

#[tokio::test]
async fn by_its_published_name_it_offers_the_published_tools() {
    let site = suite().site().await;
    let config = suite().config(&site).with(|config| {
        config.tools = Default::default();
        config.tools.published = true;
    });
    let connection = suite().connect(config).await;
    let tools = connection.tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["brave_web_search", "brave_local_search"]);
}

#[test]
fn the_variables_of_braves_own_server_are_heeded() {
    let get = |name: &str| {
        let value = match name {
            "BRAVE_API_KEY" => "hidden",
            "BRAVE_MCP_ENABLED_TOOLS" => "brave_news_search  brave_web_search",
            "BRAVE_MCP_DISABLED_TOOLS" => "brave_image_search",
            "BRAVE_API_URL" => "https://proxy.example/brave",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let config = Config::from_env(Vars::new(&get)).unwrap();
    assert_eq!(config.api.tools.enable, ["brave_news_search", "brave_web_search"]);
    assert_eq!(config.api.tools.disable, ["brave_image_search"]);
    assert_eq!(config.api.api_url.as_deref(), Some("https://proxy.example/brave"));
    assert!(open(config).is_ok());
    let missing = open(Config::default()).unwrap_err().to_string();
    let want = "BRAVE_API_KEY environment variable is required\nHint: Create one at \
                https://api-dashboard.search.brave.com/app/keys. Or name a file with BRAVE_API_KEY_FILE.";
    assert_eq!(missing, want);
    let http = Config::default().with(|config| {
        config.api.key = Some(Secret::new("k"));
        config.api.api_url = Some("http://proxy.example".into());
    });
    assert!(open(http).is_err());
}
