//! Every row of the table: against a description of the API, with hostile arguments, and with everything that fails.

use linchpin_google_drive::{API, CALLS, Config, SERVICE, open};
use linchpin_kit::{ToolError, Vars};
use linchpin_rest::testing::{Suite, call};
use linchpin_rest::{Config as Api, Rest};
use serde_json::json;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Where files are downloaded to.
pub(crate) static DOWNLOADS: LazyLock<PathBuf> = LazyLock::new(|| tempfile::tempdir().unwrap().keep());

pub(crate) fn opened(api: Api) -> Result<Rest, ToolError> {
    open(Config::default().with(|config| {
        config.api = api;
        config.allow_write = true;
        config.download_dir = Some(DOWNLOADS.clone());
    }))
}

pub(crate) fn suite() -> Suite {
    Suite::new(&API, &SERVICE, include_str!("../contract/drive.json")).opened_by(opened)
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
async fn what_drive_would_refuse_is_refused_before_anything_is_sent() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    for (tool, arguments) in [
        ("gdrive_get_metadata", json!({ "file_id": "../about" })),
        ("gdrive_get_metadata", json!({ "file_id": "a/b?alt=media" })),
        ("gdrive_read", json!({ "file_id": "gdrive:///../about" })),
        ("gdrive_list_folder", json!({ "folder_id": "x' or name contains '" })),
        ("gdrive_create", json!({ "name": "x", "content": "y", "mime_type": "text/plain\r\nx: y" })),
        ("gdrive_update", json!({ "file_id": "1Doc" })),
        // Nobody gets access by omission.
        ("gdrive_share", json!({ "file_id": "1Doc", "role": "reader" })),
        ("gdrive_share", json!({ "file_id": "1Doc", "type": "user", "role": "reader" })),
        ("gdrive_share", json!({ "file_id": "1Doc", "type": "domain", "role": "reader" })),
        ("gdrive_share", json!({ "file_id": "1Doc", "type": "anyone", "role": "reader", "email": "a@example.com" })),
        ("gdrive_share", json!({ "file_id": "1Doc", "type": "user", "role": "owner", "email": "a@example.com" })),
        ("gdrive_share", json!({ "file_id": "1Doc", "type": "user", "role": "reader", "email": "everyone" })),
    ] {
        let answer = call(&connection, tool, arguments.clone()).await;
        assert!(answer.failed, "{tool} {arguments}");
    }
    assert!(site.requests().is_empty(), "{:?}", site.requests());
}

#[tokio::test]
async fn nothing_is_written_unless_the_operator_allows_it() {
    let site = suite().site().await;
    let all = |write, directory: bool, read_only| {
        let config = Config::default().with(|config| {
            config.api = suite().config(&site).with(|api| {
                api.tools = linchpin_kit::ToolChoice::default();
                api.tools.read_only = read_only;
            });
            config.allow_write = write;
            config.download_dir = directory.then(|| DOWNLOADS.clone());
        });
        let server = open(config).unwrap().add_to(linchpin::Server::new("test", "0"), &SERVICE).unwrap();
        server.tools().names().len()
    };
    assert_eq!(all(false, false, false), 5);
    assert_eq!(all(false, true, false), 6);
    assert_eq!(all(true, true, false), CALLS.len());
    assert_eq!(all(true, true, true), 5);
}

#[test]
fn without_credentials_the_error_says_where_to_get_them() {
    let home = tempfile::tempdir().unwrap();
    let get = |name: &str| (name == "HOME").then(|| home.path().display().to_string());
    let error = open(Config::from_env(Vars::new(&get)).unwrap()).unwrap_err().to_string();
    for word in
        ["No credentials", "console.cloud.google.com", "serve google-drive auth", "GOOGLE_APPLICATION_CREDENTIALS"]
    {
        assert!(error.contains(word), "{error}");
    }
    let error = open(Config::default().with(|config| config.log_in = true)).unwrap_err();
    assert!(error.message().starts_with("auth logs in"), "{error}");
}
