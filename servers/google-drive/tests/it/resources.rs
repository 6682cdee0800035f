//! Files as resources: the list, page by page, and what is read.

use crate::rows::suite;
use linchpin::Server;
use linchpin::client::{Client, Connection};
use linchpin::prelude::in_process;
use linchpin::testing::site::{Do, Seen, Site, answer, json};
use linchpin_google_drive::{Config, add_to, open};
use linchpin_rest::testing::KEY;
use serde_json::{Value, json};

async fn connected(site: &Site, change: impl FnOnce(&mut Config)) -> Connection {
    let mut config = Config::default().with(|config| config.api = suite().config(site));
    change(&mut config);
    let server = add_to(open(config).unwrap(), Server::new("test", "0")).unwrap();
    Client::new("test", "0").connect(in_process(server)).await.unwrap()
}

#[tokio::test]
async fn the_list_is_asked_for_page_by_page_and_not_before() {
    let site = Site::new(|_, seen: &Seen| {
        let second = seen.query().contains("pageToken=two");
        let name = if second { "B" } else { "A" };
        let mut page = json!({ "files": [{ "id": name, "name": name, "mimeType": "text/plain" }, { "id": 7 }] });
        if !second {
            page["nextPageToken"] = json!("two");
        }
        vec![Do::Write(json(200, "", &page))]
    })
    .await;
    let connection = connected(&site, |_| {}).await;
    assert_eq!(connection.resource_templates().await.unwrap().len(), 1);
    assert!(site.requests().is_empty(), "it is lazy");
    let all = connection.resources().await.unwrap();
    let all: Vec<(&str, &str, Option<&str>)> =
        all.iter().map(|one| (one.uri.as_str(), one.name.as_str(), one.mime_type.as_deref())).collect();
    assert_eq!(all, [("gdrive:///A", "A", Some("text/plain")), ("gdrive:///B", "B", Some("text/plain"))]);
    assert_eq!(site.requests().len(), 2);
    assert!(site.requests()[0].query().contains("pageSize=10"));
}

#[tokio::test]
async fn beside_other_servers_the_files_come_last_and_their_failure_hides_nothing() {
    for status in [200, 500] {
        let page = json!({ "files": [{ "id": "A", "name": "A", "mimeType": "text/plain" }] });
        let site = Site::saying(json(status, "", &page)).await;
        let config = Config::default().with(|config| {
            config.api = suite().config(&site);
            config.api.tools.prefix = linchpin_kit::ToolPrefix::Auto;
        });
        let other = Server::new("test", "0").resource("memory://graph", || "graph");
        let server = add_to(open(config).unwrap(), other).unwrap();
        assert!(server.tools().names().iter().any(|name| *name == "gdrive_search"));
        let connection = Client::new("test", "0").connect(in_process(server)).await.unwrap();
        let uris: Vec<String> = connection.resources().await.unwrap().iter().map(|one| one.uri.clone()).collect();
        assert_eq!(uris.first().map(String::as_str), Some("memory://graph"));
        assert_eq!(uris.len(), if status == 200 { 2 } else { 1 });
    }
    let site = Site::saying(json(500, "", &json!({}))).await;
    assert!(connected(&site, |_| {}).await.resources().await.is_err(), "alone an empty list would be wrong");
}

async fn read(about: Value, content: &'static [u8], all_sheets: bool) -> (Value, Vec<Seen>) {
    let site = Site::new(move |_, seen: &Seen| {
        let is_content = seen.query().contains("alt=media") || seen.path().ends_with("/export");
        vec![Do::Write(if is_content { answer(200, "", content) } else { json(200, "", &about) })]
    })
    .await;
    let connection = connected(&site, |config| config.all_sheets = all_sheets).await;
    let told = connection.read("gdrive:///1File").await.unwrap();
    (serde_json::to_value(&told.contents[0]).unwrap(), site.requests())
}

#[tokio::test]
async fn files_are_read_as_the_published_server_reads_them_and_drawings_as_images() {
    let google = "application/vnd.google-apps.";
    for (kind, want, is_text) in [
        ("document", "text/markdown", true),
        ("spreadsheet", "text/csv", true),
        ("presentation", "text/plain", true),
        ("drawing", "image/png", false),
    ] {
        let (told, seen) = read(json!({ "mimeType": format!("{google}{kind}") }), b"\x89PNG", false).await;
        assert_eq!(told["mimeType"], want);
        assert_eq!((told["text"].is_string(), told["blob"].is_string()), (is_text, !is_text), "{told}");
        assert!(seen[1].path().ends_with("/files/1File/export"), "{}", seen[1].target);
    }
    for (kind, is_text) in [("text/x-rust", true), ("application/json", true), ("application/pdf", false)] {
        let (told, _) = read(json!({ "mimeType": kind }), b"{}", false).await;
        assert_eq!((&told["uri"], &told["mimeType"]), (&json!("gdrive:///1File"), &json!(kind)));
        let (text, blob) = if is_text { (json!("{}"), Value::Null) } else { (Value::Null, json!("e30=")) };
        assert_eq!((&told["text"], &told["blob"]), (&text, &blob));
    }
    let (told, _) = read(json!({ "mimeType": format!("{google}spreadsheet") }), b"PK", true).await;
    assert!(told["mimeType"].as_str().unwrap().ends_with("spreadsheetml.sheet") && told["blob"] == "UEs=", "{told}");
}

#[tokio::test]
async fn what_is_not_there_or_too_long_is_an_error() {
    let gone = Site::saying(json(404, "", &json!({ "error": { "message": "File not found" } }))).await;
    let connection = connected(&gone, |_| {}).await;
    let error = connection.read("gdrive:///1Gone").await.unwrap_err().to_string();
    assert!(error.contains("not found"), "{error}");
    let before = gone.requests().len();
    for bad in ["gdrive:///a%2F..%2Fabout", "gdrive:///..", "gdrive:///a%3Falt=media", "gdrive:///a/b"] {
        connection.read(bad).await.unwrap_err();
    }
    assert_eq!(gone.requests().len(), before, "nothing was sent");
    let about = json!({ "mimeType": "application/zip", "size": "99999999" });
    let large = Site::saying(json(200, "", &about)).await;
    let error = connected(&large, |_| {}).await.read("gdrive:///1Zip").await.unwrap_err().to_string();
    assert!(error.contains("99999999 bytes") && !error.contains(KEY), "{error}");
    assert_eq!(large.requests().len(), 1);
}
