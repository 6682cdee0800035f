//! What a model is sent.

use crate::rows::{DOWNLOADS, suite};
use linchpin::client::Connection;
use linchpin::testing::site::{Do, Seen, Site, answer, json};
use linchpin_rest::testing::call;
use serde_json::{Value, json};

/// A drive with one file of this type and content, which heeds ranges.
async fn holding(about: Value, content: &'static [u8]) -> (Site, Connection) {
    let site = Site::new(move |_, seen: &Seen| {
        let is_content = seen.query().contains("alt=media") || seen.path().ends_with("/export");
        vec![Do::Write(match (is_content, seen.header("range")) {
            (false, _) => json(200, "", &about),
            (true, None) => answer(200, "", content),
            (true, Some(range)) => {
                let (from, to) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')).unwrap();
                let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
                answer(206, "", &content[from.min(content.len())..content.len().min(to + 1)])
            }
        })]
    })
    .await;
    let connection = suite().connect(suite().config(&site)).await;
    (site, connection)
}

fn parameter(seen: &Seen, name: &str) -> String {
    let mut pairs = url::form_urlencoded::parse(seen.query().as_bytes());
    pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
}

#[tokio::test]
async fn a_search_has_the_lines_of_the_published_server_with_ids_and_every_query_is_one_literal() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    for (arguments, want) in [
        (json!({ "query": "plan" }), "fullText contains 'plan' and trashed = false"),
        (json!({ "query": "it's" }), r"fullText contains 'it\'s' and trashed = false"),
        (json!({ "query": r"a\" }), r"fullText contains 'a\\' and trashed = false"),
        (json!({ "query": "' or name contains '" }), r"fullText contains '\' or name contains \'' and trashed = false"),
        (json!({ "query": "name = 'x'", "raw": true }), "(name = 'x') and trashed = false"),
        (json!({ "query": "trashed = true", "raw": true }), "trashed = true"),
    ] {
        let told = call(&connection, "search", arguments).await;
        assert_eq!(
            told.text,
            "Found 2 files:\nPlan (application/vnd.google-apps.document) — gdrive:///1Doc-a_B\n\
             Report with a break.pdf (application/pdf) — gdrive:///1Pdf"
        );
        let seen = site.requests().pop().unwrap();
        assert_eq!(parameter(&seen, "q"), want);
        assert_eq!(parameter(&seen, "pageSize"), "10");
    }
    let told = call(&connection, "search", json!({ "query": "plan" })).await;
    assert_eq!(told.result["content"][0]["annotations"]["audience"], json!(["assistant"]));
    let next = json!({ "query": "plan", "cursor": told.structured["next_cursor"] });
    call(&connection, "search", next).await;
    assert_eq!(parameter(&site.requests().pop().unwrap(), "pageToken"), "~!!~next");
}

#[tokio::test]
async fn texts_are_read_in_parts_and_only_those_parts_are_asked_for() {
    let content = "zwölf Boxkämpfer jagen Viktor über den großen Sylter Deich. 0123456789 ".repeat(4);
    let content: &'static [u8] = content.leak().as_bytes();
    let about = json!({ "name": "a.txt", "mimeType": "text/plain", "size": content.len().to_string() });
    let (site, connection) = holding(about, content).await;
    let (mut text, mut offset) = (String::new(), json!(0));
    while offset.is_number() {
        let arguments = json!({ "file_id": "1Txt", "offset": offset, "max": 100 });
        let told = call(&connection, "gdrive_read", arguments).await;
        assert!(!told.failed, "{}", told.result);
        text += told.structured["text"].as_str().unwrap();
        offset = told.structured["next_offset"].clone();
    }
    assert_eq!(text.as_bytes(), content);
    let ranges = site.requests().iter().filter_map(|seen| seen.header("range").map(str::to_owned)).collect::<Vec<_>>();
    assert_eq!(&ranges[..2], ["bytes=0-102", "bytes=100-202"]);
    let told = call(&connection, "gdrive_read", json!({ "file_id": "1Txt", "offset": 9_999 })).await;
    assert_eq!(told.kind, "invalid", "{}", told.result);
}

#[tokio::test]
async fn line_breaks_stay_and_what_is_not_seen_is_counted() {
    let (_site, connection) = holding(json!({ "mimeType": "text/plain" }), "a\r\nb\u{200b}\n".as_bytes()).await;
    let told = call(&connection, "gdrive_read", json!({ "file_id": "1Txt" })).await;
    assert_eq!(told.structured["text"], "a\r\nb\n");
    assert_eq!(told.structured["left_out"], "1 control or invisible characters");
    let (_site, connection) = holding(json!({ "mimeType": "text/plain" }), b"a\xff\0b").await;
    assert_eq!(call(&connection, "gdrive_read", json!({ "file_id": "1Txt" })).await.text, "a\u{fffd}b");
}

#[tokio::test]
async fn documents_are_markdown_unless_another_format_is_asked_for_and_what_is_no_text_says_so() {
    let doc = json!({ "name": "Plan", "mimeType": "application/vnd.google-apps.document" });
    let (site, connection) = holding(doc, "# Plan \u{202e}\u{200b}".as_bytes()).await;
    for (format, want) in [(None, "text/markdown"), (Some("html"), "text/html")] {
        let mut arguments = json!({ "file_id": "1Doc" });
        if let Some(format) = format {
            arguments["format"] = json!(format);
        }
        let told = call(&connection, "gdrive_read", arguments).await;
        assert_eq!(told.text, "# Plan ", "without what is not seen");
        assert_eq!(parameter(&site.requests().pop().unwrap(), "mimeType"), want);
    }
    for format in ["csv", "pdf"] {
        let told = call(&connection, "gdrive_read", json!({ "file_id": "1Doc", "format": format })).await;
        assert_eq!(told.kind, "invalid", "{}", told.result);
    }
    let folder = json!({ "name": "F", "mimeType": "application/vnd.google-apps.folder" });
    let (_site, connection) = holding(folder, b"").await;
    let told = call(&connection, "gdrive_read", json!({ "file_id": "1F" })).await;
    assert!(told.failed && told.text.contains("gdrive_list_folder"), "{}", told.text);
}

#[tokio::test]
async fn a_long_file_is_downloaded_in_parts_under_a_name_of_its_own() {
    let content: &'static [u8] = (0..200_000_u32).map(|n| n as u8).collect::<Vec<u8>>().leak();
    let about = json!({ "name": "../x.bin", "mimeType": "application/zip", "size": content.len().to_string() });
    let (site, _) = holding(about, content).await;
    let config = suite().config(&site).with(|config| config.body_bytes_max = 60_000);
    let connection = suite().connect(config).await;
    for n in 0..2 {
        let told = call(&connection, "gdrive_download", json!({ "file_id": "1Zip" })).await;
        assert!(!told.failed, "{}", told.result);
        let path = std::path::PathBuf::from(told.structured["path"].as_str().unwrap());
        assert_eq!(path.parent().unwrap(), DOWNLOADS.canonicalize().unwrap());
        assert_eq!(path.file_name().unwrap(), if n == 0 { "_x.bin" } else { "_x (1).bin" });
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
}

#[tokio::test]
async fn a_file_that_ends_too_early_is_an_error_and_is_not_kept() {
    let content: &'static [u8] = vec![7; 200_000].leak();
    let about = json!({ "name": "short.bin", "mimeType": "application/zip", "size": "250000" });
    let (site, _) = holding(about, content).await;
    let config = suite().config(&site).with(|config| config.body_bytes_max = 60_000);
    let connection = suite().connect(config).await;
    let told = call(&connection, "gdrive_download", json!({ "file_id": "1Zip" })).await;
    assert!(told.failed && told.text.contains("200000 of 250000 bytes"), "{}", told.text);
    assert!(!DOWNLOADS.join("short.bin").exists());
}

#[tokio::test]
async fn a_missing_scope_is_told_with_what_to_do() {
    let said = json!({ "error": { "code": 403, "message": "Insufficient", "errors": [{ "reason": "insufficientPermissions" }] } });
    let site = Site::saying(json(403, "", &said)).await;
    let connection = suite().connect(suite().config(&site)).await;
    let told = call(&connection, "gdrive_create", json!({ "name": "x" })).await;
    assert!(told.failed && told.text.contains("auth --allow-write"), "{}", told.text);
    assert_eq!(told.result["content"][1]["text"], "Insufficient");
}
