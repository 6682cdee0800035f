//! The row of the table: against a description of the API, with hostile arguments, and with everything that fails.

use linchpin_everart::{API, Config, EverArt, SERVICE};
use linchpin_kit::Vars;
use linchpin_rest::testing::{Suite, call};
use serde_json::json;

pub(crate) fn suite() -> Suite {
    Suite::new(&API, &SERVICE, include_str!("../contract/everart.json"))
}

#[tokio::test]
async fn the_row_makes_requests_that_the_description_allows() {
    suite().contract().await;
}

#[tokio::test]
async fn no_argument_leads_a_request_elsewhere() {
    suite().hostile_arguments().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_the_row_says_what_happened() {
    suite().faults().await;
}

#[tokio::test]
async fn models_that_are_paths_and_too_many_images_are_refused_before_anything_is_sent() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    for arguments in [
        json!({ "prompt": "x", "model": "../users" }),
        json!({ "prompt": "x", "model": "5000/../9000" }),
        json!({ "prompt": "x", "model": "" }),
        json!({ "prompt": "x", "model": "FLUX" }),
        json!({ "prompt": "x", "image_count": 0 }),
        json!({ "prompt": "x", "image_count": 5 }),
        json!({ "prompt": " " }),
        json!({}),
    ] {
        let told = call(&connection, "generate_image", arguments.clone()).await;
        assert!(told.failed, "{arguments}: {}", told.result);
    }
    assert!(site.requests().is_empty());
    let told = call(&connection, "generate_image", json!({ "prompt": "x", "model": "9000:FLUX1.1-ultra" })).await;
    assert!(!told.failed && site.requests()[0].path() == "/v1/models/9000/generations", "{}", told.result);
    let told = call(&connection, "generate_image", json!({ "prompt": "x" })).await;
    assert!(!told.failed && site.requests()[2].path() == "/v1/models/5000/generations", "{}", told.result);
}

#[test]
fn the_variable_of_the_published_server_is_heeded_and_a_missing_key_is_told() {
    let get = |name: &str| match name {
        "EVERART_API_KEY" => Some("hidden".to_owned()),
        "MCP_EVERART_IMAGE_HOSTS" => Some("cdn.example,.images.example".to_owned()),
        _ => None,
    };
    let config = Config::from_env(Vars::new(&get)).unwrap();
    let hosts: Vec<String> = config.image_hosts.iter().map(ToString::to_string).collect();
    assert_eq!(hosts, ["cdn.example", ".images.example"]);
    assert!(EverArt::open(config).is_ok());
    let missing = EverArt::open(Config::default()).unwrap_err().to_string();
    let want = "EVERART_API_KEY environment variable is required\nHint: Create one at https://www.everart.ai/api. Or name a \
                file with EVERART_API_KEY_FILE.";
    assert_eq!(missing, want);
}
