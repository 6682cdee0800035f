//! What the published server does not have.

use crate::common;

use common::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use linchpin::prelude::*;
use linchpin::types::version::Revision;
use linchpin_fetch::{Config, Fetch, SERVICE};
use linchpin_kit::{ERROR_META, ToolPrefix};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn structured_content_says_what_the_text_says_and_more() {
    let site = Site::new(|seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(404, "", b"")),
        "/from" => redirect(301, "/to?x=1"),
        _ => html("<html><head><title> A title </title></head><body><p>0123456789</p></body></html>"),
    })
    .await;
    let caller = Caller::of(open()).await;
    let url = site.url("/from#part");
    assert_eq!(
        caller.value(json!({"url": url, "max_length": 4, "start_index": 2})).await,
        json!({
            "content": "2345", "title": "A title", "url": url, "final_url": site.url("/to?x=1"), "status": 200,
            "content_type": "text/html", "start_index": 2, "total_chars": 10, "truncated": true, "next_start_index": 6,
            "cached": false,
        })
    );
    let (text, value) = caller.call(json!({"url": url, "start_index": 6})).await.unwrap();
    assert_eq!(
        (value["content"].clone(), value["truncated"].clone(), value.get("next_start_index")),
        (json!("6789"), json!(false), None)
    );
    assert_eq!(text, format!("Contents of {url}:\n6789"));
    assert_eq!(value["cached"], true);
}

#[tokio::test]
async fn slices_of_a_page_that_changes_belong_together() {
    let count = AtomicUsize::new(0);
    let site = Site::new(move |seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(404, "", b"")),
        path => {
            let n = count.fetch_add(1, Ordering::Relaxed);
            let head = if path == "/fleeting" { "cache-control: no-store\r\n" } else { "" };
            Does::Answers(answer(200, &format!("{}{head}", typed("text/plain")), format!("{n}").repeat(20).as_bytes()))
        }
    })
    .await;
    let slice = |path: &str, start: u64| json!({"url": site.url(path), "start_index": start, "max_length": 10});
    let content = |value: Value| value["content"].as_str().unwrap().to_owned();
    let caller = Caller::of(open()).await;
    assert_eq!(content(caller.value(slice("/kept", 0)).await), "0".repeat(10));
    assert_eq!(content(caller.value(slice("/kept", 10)).await), "0".repeat(10));
    assert_eq!(content(caller.value(slice("/kept", 0)).await), "0".repeat(10));
    assert_eq!(site.paths(), "/robots.txt /kept", "one download, one robots.txt");
    // A site that asks not to keep its page is asked again for the beginning, and only for that.
    assert_eq!(content(caller.value(slice("/fleeting", 0)).await), "1".repeat(10));
    assert_eq!(content(caller.value(slice("/fleeting", 10)).await), "1".repeat(10));
    assert_eq!(content(caller.value(slice("/fleeting", 0)).await), "2".repeat(10));
    assert_eq!(content(caller.value(slice("/fleeting", 10)).await), "2".repeat(10));
    let caller = Caller::of(open().with(|config| config.cache_ttl_ms = 0)).await;
    let before = site.seen().len();
    caller.value(slice("/kept", 0)).await;
    caller.value(slice("/kept", 10)).await;
    assert_eq!(site.seen().len() - before, 4, "without a cache everything is asked for again, as published");
}

#[tokio::test]
async fn a_page_kept_for_a_person_is_not_shown_to_a_model() {
    let site = Site::new(|seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(200, "", b"User-agent: *\nDisallow: /")),
        _ => html("<p>for people</p>"),
    })
    .await;
    let caller = Caller::of(open()).await;
    assert_eq!(caller.prompt(&site.url("/x")).await, "for people");
    assert!(caller.get(&site.url("/x")).await.is_err());
}

#[tokio::test]
async fn forms_and_selectors_pick_what_is_wanted() {
    let page = format!(
        "<html><body><nav><a href=/menu>menu</a></nav><article><h1>Head</h1>{}</article><table class=t><tr><td>cell</td></tr></table></body></html>",
        article(5)
    );
    let site =
        Site::of(vec![("/p", typed("text/html"), page.into_bytes()), ("/t", typed("text/plain"), b"plain".to_vec())])
            .await;
    let caller = Caller::of(open()).await;
    let get = |more: Value| {
        let mut arguments = json!({"url": site.url("/p")});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let content = |value: Value| value["content"].as_str().unwrap().to_owned();
    assert!(content(caller.value(get(json!({"format": "text"}))).await).starts_with("Head\n\nParagraph 0"));
    let html = content(caller.value(get(json!({"format": "html"}))).await);
    assert!(html.contains("<p>Paragraph 0") && !html.contains("menu"), "{html}");
    let links = content(caller.value(get(json!({"format": "links"}))).await);
    assert!(links.starts_with(&format!("* [menu]({})\n* [link]({})", site.url("/menu"), site.url("/l0"))), "{links}");
    assert!(content(caller.value(get(json!({"selector": "table.t"}))).await).contains("| cell |"));
    assert!(
        content(caller.value(get(json!({"raw": true, "selector": "table.t"}))).await).starts_with("<html>"),
        "raw wins"
    );
    for (arguments, want) in [
        (get(json!({"selector": "p["})), "Invalid CSS selector: p["),
        (get(json!({"selector": "video"})), "No element of the page matches the selector video"),
        (get(json!({"selector": "a".repeat(2_000)})), "The selector is longer than 1000 bytes"),
        (json!({"url": site.url("/t"), "selector": "p"}), "is not an HTML page but text/plain"),
        (json!({"url": site.url("/t"), "format": "links"}), "is not an HTML page but text/plain"),
    ] {
        let error = caller.call(arguments).await.unwrap_err();
        assert!(error.contains(want), "{error}");
    }
    assert_eq!(site.paths(), "/robots.txt /p /t", "all of it is one download");
}

fn packed<W>(encoder: W, done: impl FnOnce(W) -> std::io::Result<Vec<u8>>, text: &[u8]) -> Vec<u8>
where
    W: Write,
{
    let mut encoder = encoder;
    encoder.write_all(text).unwrap();
    done(encoder).unwrap()
}

#[tokio::test]
async fn compressed_pages_are_unpacked() {
    let text = b"the same text, the same text, the same text";
    let level = Compression::best();
    let head = |encoding: &str| format!("{}content-encoding: {encoding}\r\n", typed("text/plain"));
    let site = Site::of(vec![
        ("/gzip", head("gzip"), packed(GzEncoder::new(Vec::new(), level), GzEncoder::finish, text)),
        ("/deflate", head("deflate"), packed(ZlibEncoder::new(Vec::new(), level), ZlibEncoder::finish, text)),
        ("/broken", head("gzip"), b"no gzip".to_vec()),
        ("/raw-deflate", head("deflate"), packed(DeflateEncoder::new(Vec::new(), level), DeflateEncoder::finish, text)),
    ])
    .await;
    let caller = Caller::of(open()).await;
    let whole = String::from_utf8_lossy(text).into_owned();
    for (path, want) in [("/gzip", whole.as_str()), ("/deflate", &whole)] {
        assert_eq!(caller.value(json!({"url": site.url(path)})).await["content"], want, "{path}");
    }
    let error = caller.error(&site.url("/broken")).await;
    assert!(error.starts_with("Failed to fetch "), "{error}");
    let accepts = site.seen()[1].header("accept-encoding").to_owned();
    assert!(["gzip", "deflate"].iter().all(|name| accepts.contains(name)), "{accepts}");
}

#[tokio::test]
async fn busy_sites_are_asked_again_and_not_forever() {
    let count = AtomicUsize::new(0);
    let site = Site::new(move |seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(404, "", b"")),
        "/soon" if count.fetch_add(1, Ordering::Relaxed) < 2 => Does::Answers(answer(503, "retry-after: 0\r\n", b"")),
        "/never" => Does::Answers(answer(429, "retry-after: 0\r\n", b"")),
        "/tomorrow" => Does::Answers(answer(503, "retry-after: 86400\r\n", b"")),
        "/past" => Does::Answers(answer(502, "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n", b"")),
        "/next-year" => Does::Answers(answer(504, "retry-after: Wed, 21 Oct 2099 07:28:00 GMT\r\n", b"")),
        "/broken" => Does::Answers(answer(500, "", b"")),
        _ => html("<p>here</p>"),
    })
    .await;
    let caller = Caller::of(open().with(|config| config.retries_max = 3)).await;
    assert!(caller.get(&site.url("/soon")).await.is_ok());
    for (path, asked) in
        [("/soon", 3), ("/never", 4), ("/past", 4), ("/tomorrow", 1), ("/next-year", 1), ("/broken", 1)]
    {
        if path != "/soon" {
            assert!(caller.error(&site.url(path)).await.contains("status code"));
        }
        assert_eq!(site.seen().iter().filter(|seen| seen.path == path).count(), asked, "{path}");
    }
}

/// The site says by its own clock, which is years behind, when it has time again.
#[tokio::test]
async fn a_date_to_come_back_at_is_waited_for_by_the_clock_of_the_site() {
    let began = std::sync::OnceLock::new();
    let site = Site::new(move |_| {
        let began: &std::time::Instant = began.get_or_init(std::time::Instant::now);
        let head = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:49:38 GMT\r\n";
        match began.elapsed() >= std::time::Duration::from_secs(1) {
            false => Does::Answers(answer(503, head, b"")),
            true => html("<p>open again</p>"),
        }
    })
    .await;
    // One retry: it finds the page only if it did not come before that time.
    let caller = Caller::of(open().with(|config| {
        config.retries_max = 1;
        config.ignore_robots_txt = true;
    }))
    .await;
    assert!(caller.text(json!({"url": site.url("/x")})).await.ends_with("open again"));
    assert_eq!(site.paths(), "/x /x");
}

#[tokio::test]
async fn no_wait_is_longer_than_the_time_that_is_left_allows() {
    let site = Site::new(|_| Does::Answers(answer(503, "retry-after: 2\r\n", b""))).await;
    let config = |timeout_ms| {
        open().with(|config| {
            config.retries_max = 1;
            config.ignore_robots_txt = true;
            config.timeout_ms = timeout_ms;
        })
    };
    let caller = Caller::of(config(3_000)).await;
    let error = caller.error(&site.url("/x")).await;
    assert!(error.contains("status code 503"), "its answer is told, not that time ran out: {error}");
    assert_eq!(site.paths(), "/x", "two seconds are more than half of three");
}

#[test]
fn more_than_three_retries_are_refused_at_the_start() {
    for retries_max in [4, 10, u32::MAX] {
        let fault =
            Fetch::open(open().with(|config| config.retries_max = retries_max)).map(|_| ()).unwrap_err().to_string();
        assert!(
            fault.contains(&format!("number of retries is 3, not {retries_max}")) && fault.contains("Hint: "),
            "{fault}"
        );
    }
    assert!(Fetch::open(open().with(|config| config.retries_max = 3)).is_ok());
}

/// Every way a page is answered says where its words come from; the prompt says it beside them.
#[tokio::test]
async fn where_words_come_from_is_said_and_they_are_marked_as_data() {
    let long = format!("<html><body><article>{}</article></body></html>", article(20));
    let site = Site::of(vec![
        ("/page", typed("text/html"), long.into_bytes()),
        ("/text", typed("text/plain"), b"words".to_vec()),
        ("/json", typed("application/json"), b"{\"a\":1}".to_vec()),
        ("/empty", typed("text/html"), Vec::new()),
    ])
    .await;
    let caller = Caller::of(open()).await;
    for arguments in [
        json!({"url": site.url("/page")}),
        json!({"url": site.url("/page"), "max_length": 100}),
        json!({"url": site.url("/page"), "start_index": 100, "max_length": 100}),
        json!({"url": site.url("/page"), "start_index": 900_000}),
        json!({"url": site.url("/page"), "raw": true}),
        json!({"url": site.url("/page"), "format": "text"}),
        json!({"url": site.url("/page"), "format": "html"}),
        json!({"url": site.url("/page"), "format": "links"}),
        json!({"url": site.url("/page"), "selector": "p"}),
        json!({"url": site.url("/text")}),
        json!({"url": site.url("/json")}),
        json!({"url": site.url("/empty")}),
    ] {
        let result = caller.0.call("fetch", arguments.clone()).await.unwrap();
        let blocks = serde_json::to_value(result.result().unwrap().content).unwrap();
        assert_eq!(blocks.as_array().unwrap().len(), 1, "{arguments}");
        assert_eq!(blocks[0]["annotations"], json!({"audience": ["assistant"]}), "{arguments}");
        let text = blocks[0]["text"].as_str().unwrap();
        let said = format!("Contents of {}:\n", arguments["url"].as_str().unwrap());
        let before = text.split_once(&said).unwrap_or_else(|| panic!("{arguments}: {text}")).0;
        assert!(before.is_empty() || before.starts_with("Content type "), "{arguments}: {before}");
    }
    let url = site.url("/text").replace("127", "me:hidden@127");
    let prompt = caller.0.prompt("fetch", json!({ "url": url })).await.unwrap();
    let description = prompt.description.as_deref().unwrap();
    assert_eq!(description, format!("Contents of {}", url.replace("me:hidden", "***:***")));
    let content = serde_json::to_value(&prompt.messages[0].content).unwrap();
    assert_eq!(content["annotations"], json!({"audience": ["assistant"]}));
    let failed = caller.0.prompt("fetch", json!({ "url": site.url("/none") })).await.unwrap();
    assert_eq!(failed.description.as_deref(), Some("No page was fetched"));
    let content = serde_json::to_value(&failed.messages[0].content).unwrap();
    assert!(content.get("annotations").is_none(), "our own words: {content}");
}

#[tokio::test]
async fn a_page_without_links_is_said_to_have_none() {
    let html = |body: &str| format!("<html><body>{body}</body></html>").into_bytes();
    let site = Site::of(vec![
        (
            "/none",
            typed("text/html"),
            html("<p>Words, and <a name='x'>a place</a>, and <a href='#x'>a way to it</a>.</p>"),
        ),
        ("/some", typed("text/html"), html("<p>Words</p><div><a href='/more'>more</a></div>")),
        ("/empty", typed("text/html"), Vec::new()),
    ])
    .await;
    let caller = Caller::of(open()).await;
    for (path, selector, form, said) in [
        ("/none", None, "links", "<error>The page has no links</error>"),
        ("/empty", None, "links", "<error>The page has no links</error>"),
        ("/none", Some("p"), "links", "<error>The elements that match the selector contain no links</error>"),
        ("/some", Some("p"), "links", "<error>The elements that match the selector contain no links</error>"),
        ("/some", None, "links", "* [more]("),
        ("/some", Some("div"), "links", "* [more]("),
        ("/empty", None, "markdown", "<error>Page failed to be simplified from HTML</error>"),
    ] {
        let url = site.url(path);
        let mut arguments = json!({ "url": url, "format": form });
        if let Some(selector) = selector {
            arguments["selector"] = selector.into();
        }
        let text = caller.text(arguments).await;
        assert!(text.starts_with(&format!("Contents of {url}:\n{said}")), "{path} {selector:?}: {text}");
    }
}

/// A token may stand in either place.
#[tokio::test]
async fn a_name_and_a_password_in_an_address_are_shown_nowhere() {
    let site = Site::of(vec![
        ("/page", typed("text/plain"), b"words".to_vec()),
        ("/png", typed("image/png"), b"\x89PNG\r\n\x1a\n".to_vec()),
    ])
    .await;
    let caller = Caller::of(open()).await;
    for (user, shown) in
        [("ghp_TOKEN", "***"), ("me:ghp_TOKEN", "***:***"), ("ghp_TOKEN:me", "***:***"), (":ghp_TOKEN", ":***")]
    {
        let with = |path: &str| site.url(path).replace("//", &format!("//{user}@"));
        let result = caller.0.call("fetch", json!({ "url": with("/page") })).await.unwrap();
        let answer = serde_json::to_value(result.result().unwrap()).unwrap();
        let said = site.url("/page").replace("//", &format!("//{shown}@"));
        assert_eq!(answer["structuredContent"]["url"], json!(said));
        assert_eq!(answer["structuredContent"]["final_url"], json!(site.url("/page")));
        assert!(
            answer["content"][0]["text"].as_str().unwrap().ends_with(&format!("Contents of {said}:\nwords")),
            "{answer}"
        );
        assert!(!answer.to_string().contains("TOKEN"), "{answer}");
        for url in [
            with("/none"),
            with("/png"),
            format!("http://{user}@127.0.0.1:1/"),
            format!("http://{user}@no.such.host.invalid/"),
            format!("ftp://{user}@127.0.0.1/"),
            format!("http://{user}@127.0.0.1:99999/"),
            format!("http://{user}@[::1/"),
            format!("{user}@127.0.0.1"),
            format!("{}@127.0.0.1", user.replace('_', "")),
        ] {
            let error = caller.error(&url).await;
            assert!(!error.contains("TOKEN"), "{url}: {error}");
            let prompt = caller.0.prompt("fetch", json!({ "url": url })).await.unwrap();
            let said = serde_json::to_string(&prompt.messages).unwrap();
            assert!(!said.contains("TOKEN"), "{url}: {said}");
        }
    }
    // What has an @ elsewhere is shown as it is.
    assert!(caller.error("no address@example.com").await.contains("***@example.com"));
    assert!(caller.error("http://[::1/").await.contains("http://[::1/"));
}

#[tokio::test]
async fn what_has_no_text_is_refused_in_words() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    let site = Site::of(vec![
        ("/png", typed("image/png"), png.clone()),
        ("/unnamed", String::new(), png.clone()),
        ("/bad.pdf", typed("application/pdf"), b"%PDF-1.4\n\xff\xfe\0binary".to_vec()),
    ])
    .await;
    let caller = Caller::of(open()).await;
    for (path, kind) in [("/png", "image/png"), ("/unnamed", "no content type")] {
        let url = site.url(path);
        let error = caller.error(&url).await;
        assert_eq!(first(&error), format!("{url} is binary ({kind}, 16 bytes) and has no text"));
    }
    assert!(caller.error(&site.url("/bad.pdf")).await.contains("is a PDF document that has no readable pages"));
    assert!(caller.call(json!({"url": site.url("/bad.pdf"), "raw": true})).await.unwrap_err().contains("is binary"));
    let caller = Caller::of(open().with(|config| config.compat = true)).await;
    assert!(caller.text(json!({"url": site.url("/png")})).await.contains("\u{fffd}PNG"), "the published form");
}

#[tokio::test]
async fn documents_feeds_and_json_are_readable() {
    let content = "BT /F1 12 Tf 72 720 Td (A sentence in a document.) Tj 0 -14 Td (And another.) Tj ET";
    let pdf = format!(
        "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Kids[3 0 R]>> endobj\n\
         3 0 obj <</Type/Page/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>> endobj\n\
         4 0 obj <</Length {}>>\nstream\n{content}\nendstream endobj\n5 0 obj <</Type/Font/Subtype/Type1>> endobj\n%%EOF",
        content.len()
    );
    let rss = "<?xml version=\"1.0\"?><rss><channel><title>News</title><item><title>One</title><link>/1</link></item></channel></rss>";
    let site = Site::of(vec![
        ("/doc.pdf", typed("application/pdf"), pdf.into_bytes()),
        ("/feed", typed("application/rss+xml"), rss.as_bytes().to_vec()),
        ("/svg", typed("image/svg+xml"), b"<svg><text>x</text></svg>".to_vec()),
        ("/json", typed("application/json; charset=utf-8"), b"{\"z\":1,\"a\":[1.50]}".to_vec()),
    ])
    .await;
    let caller = Caller::of(open()).await;
    let (text, value) = caller.get(&site.url("/doc.pdf")).await.unwrap();
    assert_eq!(text, format!("Contents of {}:\nA sentence in a document.\nAnd another.", site.url("/doc.pdf")));
    assert_eq!(value["note"], "The text of a PDF document of one page.");
    let (text, value) = caller.get(&site.url("/feed")).await.unwrap();
    assert_eq!(text, format!("Contents of {}:\n# News\n\n## [One]({})", site.url("/feed"), site.url("/1")));
    assert_eq!(value["title"], "News");
    let (text, _) = caller.get(&site.url("/svg")).await.unwrap();
    assert!(
        text.starts_with("Content type image/svg+xml cannot be simplified")
            && text.ends_with("<svg><text>x</text></svg>")
    );
    assert_eq!(
        caller.value(json!({"url": site.url("/json")})).await["content"],
        "{\n  \"z\": 1,\n  \"a\": [\n    1.50\n  ]\n}"
    );
    let compat = Caller::of(open().with(|config| config.compat = true)).await;
    assert!(compat.text(json!({"url": site.url("/json")})).await.ends_with("{\"z\":1,\"a\":[1.50]}"));
    assert!(compat.text(json!({"url": site.url("/feed")})).await.ends_with(rss));
}

#[tokio::test]
async fn the_list_is_the_published_one_and_more() {
    let site = Site::of(vec![("/x", typed("text/plain"), b"x".to_vec())]).await;
    for revision in Revision::ALL {
        let caller = Caller::serving(Fetch::open(open()).unwrap().0, &[revision]).await;
        let tools = serde_json::to_value(caller.0.tools().await.unwrap().items).unwrap();
        assert_eq!(tools.as_array().unwrap().len(), 1);
        let tool = &tools[0];
        assert_eq!(tool["name"], "fetch");
        let properties = &tool["inputSchema"]["properties"];
        for (name, want) in [
            ("url", json!({"type": "string", "format": "uri", "minLength": 1})),
            ("max_length", json!({"type": "integer", "default": 5000, "minimum": 1, "maximum": 999_999})),
            ("start_index", json!({"type": "integer", "default": 0})),
            ("raw", json!({"type": "boolean"})),
        ] {
            for (key, value) in want.as_object().unwrap() {
                assert_eq!(&properties[name][key], value, "{name} {key} in {properties}");
            }
        }
        assert_eq!(tool["inputSchema"]["required"], json!(["url"]));
        assert!(!tool.to_string().contains("exclusiveM"), "some hosts refuse that: {tool}");
        if tool.get("annotations").is_some() {
            let hints =
                json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true});
            let mut annotations = tool["annotations"].clone();
            // The place of a title in the revision that has no other.
            let title = annotations.as_object_mut().and_then(|members| members.remove("title"));
            assert_eq!(title.is_some(), revision == Revision::V2025_03_26, "{revision}");
            assert_eq!(annotations, hints);
        }
        let prompts = serde_json::to_value(caller.0.prompts().await.unwrap().items).unwrap();
        assert_eq!(prompts[0]["name"], "fetch");
        assert_eq!(prompts[0]["arguments"][0]["name"], "url");
        assert_eq!(prompts[0]["arguments"][0]["required"], true);
        assert!(caller.get(&site.url("/x")).await.unwrap().0.ends_with("\nx"), "{revision:?}");
        let error = caller.0.call("nothing", json!({})).await.unwrap_err();
        assert!(error.to_string().contains("nothing"), "{error}");
    }
    assert_eq!(SERVICE.tools.len(), 1);
}

#[tokio::test]
async fn names_take_the_prefix_of_several_servers() {
    let site = Site::of(vec![("/x", typed("text/plain"), b"x".to_vec())]).await;
    for (prefix, tool) in [(ToolPrefix::Auto, "fetch"), (ToolPrefix::Text("web_".to_owned()), "web_fetch")] {
        let mut config = open();
        config.tools.prefix = prefix;
        let caller = Caller::serving(Fetch::open(config).unwrap().0, &Revision::ALL).await;
        assert_eq!(caller.0.tools().await.unwrap().items[0].name, tool);
        for name in [tool, "fetch"] {
            assert!(!caller.0.call(name, json!({"url": site.url("/x")})).await.unwrap().is_error(), "{name}");
            assert!(caller.0.prompt(name, json!({"url": site.url("/x")})).await.is_ok(), "{name}");
        }
    }
    let mut config = open();
    config.tools.disable = vec!["fetch".to_owned()];
    let caller = Caller::serving(Fetch::open(config).unwrap().0, &Revision::ALL).await;
    assert!(caller.0.tools().await.map_or(true, |tools| tools.items.is_empty()));
    let mut config = open();
    config.tools.enable = vec!["fetsh".to_owned()];
    assert!(Fetch::open(config).unwrap().0.add_to(Server::new("x", "0")).is_err());
}

#[tokio::test]
async fn a_call_that_is_given_up_lets_go_of_its_connection() {
    let site = Site::new(|seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(404, "", b"")),
        _ => Does::Waits,
    })
    .await;
    let caller = Caller::of(open()).await;
    let held = site.url("/x");
    let waiting = caller.get(&held);
    assert!(tokio::time::timeout(std::time::Duration::from_millis(300), waiting).await.is_err());
    let page = Site::of(vec![("/y", typed("text/plain"), b"y".to_vec())]).await;
    assert!(caller.get(&page.url("/y")).await.is_ok(), "the server goes on");
}

#[test]
fn configurations_without_sense_are_refused_and_risky_ones_warned_about() {
    assert!(Fetch::open(Config::default().with(|config| config.timeout_ms = 0)).is_err());
    assert!(Fetch::open(Config::default().with(|config| config.max_bytes = 0)).is_err());
    assert!(Fetch::open(Config::default().with(|config| config.user_agent = Some("a\nb".to_owned()))).is_err());
    assert_eq!(Fetch::open(Config::default()).unwrap().1.len(), 0);
    assert_eq!(Fetch::open(open()).unwrap().1.len(), 1);
}

#[tokio::test]
async fn errors_have_kinds_for_programs() {
    let site = Site::new(|seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(200, "", b"User-agent: *\nDisallow: /no")),
        "/page" => html("<p>x</p>"),
        "/binary" => Does::Answers(answer(200, &typed("image/png"), b"\0\x01")),
        "/long" => Does::Answers(answer(200, &typed("text/plain"), &[b'x'; 2_000])),
        "/round" => redirect(302, "/round"),
        "/silent" => Does::Waits,
        path => Does::Answers(answer(path[1..].parse().unwrap(), "", b"")),
    })
    .await;
    let config = open().with(|config| {
        config.max_bytes = 1_000;
        config.timeout_ms = 2_000;
    });
    let caller = Caller::of(config).await;
    let kind = async |arguments: Value| {
        let result = caller.0.call("fetch", arguments).await.unwrap();
        serde_json::to_value(result.result().unwrap()).unwrap()["_meta"][ERROR_META].clone()
    };
    for (path, want) in [
        ("/401", json!({"kind": "denied"})),
        ("/404", json!({"kind": "not_found"})),
        ("/429", json!({"kind": "limited"})),
        ("/500", json!({"kind": "upstream", "status": 500})),
        ("/no", json!({"kind": "denied"})),
        ("/round", json!({"kind": "upstream"})),
        ("/binary", json!({"kind": "upstream"})),
        ("/long", json!({"kind": "limited"})),
        ("/silent", json!({"kind": "timeout"})),
    ] {
        assert_eq!(kind(json!({"url": site.url(path)})).await, want, "{path}");
    }
    for (arguments, want) in [
        (json!({"url": "ftp://a.test/"}), "invalid"),
        (json!({"url": "http://127.0.0.1:22/"}), "denied"),
        (json!({"url": site.url("/page"), "selector": "p["}), "invalid"),
    ] {
        assert_eq!(kind(arguments.clone()).await["kind"], want, "{arguments}");
    }
}
