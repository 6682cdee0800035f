//! What the published server answers, row by row of its measured behaviour.

use crate::common;

use common::*;
use linchpin_fetch::Config;
use serde_json::json;

fn prefix(kind: &str) -> String {
    format!("Content type {kind} cannot be simplified to markdown, but here is the raw content:\n")
}

async fn site() -> Site {
    let emoji = "😀".repeat(10);
    let page = format!(
        "<html><head><title>T</title></head><body><nav>menu</nav><article><h1>Head</h1>{}</article></body></html>",
        article(8)
    );
    Site::of(vec![
        ("/json", typed("application/json"), b"{\"a\":1}".to_vec()),
        ("/latin", typed("text/plain; charset=iso-8859-1"), b"caf\xe9".to_vec()),
        ("/noct", String::new(), b"plain no type".to_vec()),
        ("/empty", typed("text/html"), b"<html></html>".to_vec()),
        ("/emoji", typed("text/plain; charset=utf-8"), emoji.into_bytes()),
        ("/long", typed("text/plain"), "x".repeat(12_000).into_bytes()),
        ("/page", typed("text/html"), page.into_bytes()),
        ("/xhtml-as-text", typed("text/plain"), b"<!DOCTYPE html><html><body><p>in a page</p></body></html>".to_vec()),
        ("/late-html", typed("text/plain"), format!("{}<html><p>x", " ".repeat(100)).into_bytes()),
        ("/upper", typed("text/html; charset=UTF-8"), b"<p>fragment</p>".to_vec()),
    ])
    .await
}

#[tokio::test]
async fn the_text_is_prefix_contents_of_and_slice() {
    let site = site().await;
    let caller = Caller::of(open()).await;
    for (path, kind, body) in [
        ("/json", "application/json", "{\n  \"a\": 1\n}"),
        ("/latin", "text/plain; charset=iso-8859-1", "café"),
        ("/noct", "", "plain no type"),
        ("/empty", "", "<error>Page failed to be simplified from HTML</error>"),
        ("/xhtml-as-text", "", "in a page"),
        ("/upper", "", "fragment"),
    ] {
        let url = site.url(path);
        let prefix = if kind.is_empty() { String::new() } else { prefix(kind) };
        assert_eq!(caller.text(json!({"url": url})).await, format!("{prefix}Contents of {url}:\n{body}"));
    }
    let late = caller.text(json!({"url": site.url("/late-html")})).await;
    assert!(late.starts_with(&prefix("text/plain")), "`<html` after 100 characters does not make a page: {late}");
}

#[tokio::test]
async fn raw_pages_are_as_they_are_behind_the_prefix() {
    let site = site().await;
    let caller = Caller::of(open()).await;
    let url = site.url("/page");
    let text = caller.text(json!({"url": url, "raw": true, "max_length": 60})).await;
    let begin = "<html><head><title>T</title></head><body><nav>menu</nav><article>";
    let cut: String = begin.chars().take(60).collect();
    let more =
        "\n\n<error>Content truncated. Call the fetch tool with a start_index of 60 to get more content.</error>";
    assert_eq!(text, format!("{}Contents of {url}:\n{cut}{more}", prefix("text/html")));
    let url = site.url("/json");
    assert_eq!(
        caller.text(json!({"url": url, "raw": true})).await,
        format!("{}Contents of {url}:\n{{\"a\":1}}", prefix("application/json"))
    );
}

#[tokio::test]
async fn slices_count_code_points_and_say_how_to_go_on() {
    let site = site().await;
    let caller = Caller::of(open()).await;
    let cut = |n: usize| {
        format!(
            "\n\n<error>Content truncated. Call the fetch tool with a start_index of {n} to get more content.</error>"
        )
    };
    let gone = "<error>No more content available.</error>";
    for (path, start, length, want) in [
        ("/emoji", 0, 3, format!("😀😀😀{}", cut(3))),
        ("/emoji", 9, 5000, "😀".to_owned()),
        ("/emoji", 7, 3, "😀😀😀".to_owned()),
        ("/emoji", 6, 3, format!("😀😀😀{}", cut(9))),
        ("/emoji", 10, 5000, gone.to_owned()),
        ("/emoji", 999_999_999_999_u64, 1, gone.to_owned()),
        ("/long", 0, 5000, format!("{}{}", "x".repeat(5_000), cut(5_000))),
        ("/long", 10_000, 5000, "x".repeat(2_000)),
    ] {
        let url = site.url(path);
        let text = caller.text(json!({"url": url, "start_index": start, "max_length": length})).await;
        let (_, body) = text.split_once(&format!("Contents of {url}:\n")).expect("the line before");
        assert_eq!(body, want, "{path} {start} {length}");
    }
    // Without a length, 5000.
    let text = caller.text(json!({"url": site.url("/long")})).await;
    assert!(text.ends_with(&cut(5_000)), "{}", text.len());
}

#[tokio::test]
async fn arguments_are_strict() {
    let site = site().await;
    let caller = Caller::of(open()).await;
    let url = site.url("/json");
    for arguments in [
        json!({}),
        json!({"url": 5}),
        json!({"url": ""}),
        json!({"url": "nope"}),
        json!({"url": url, "max_length": 0}),
        json!({"url": url, "max_length": 1_000_000}),
        json!({"url": url, "max_length": "10"}),
        json!({"url": url, "max_length": 1.5}),
        json!({"url": url, "start_index": -1}),
        json!({"url": url, "start_index": "0"}),
        json!({"url": url, "raw": "yes"}),
        json!({"url": url, "format": "pdf"}),
        json!({"url": url, "selector": 1}),
    ] {
        let error = caller.call(arguments.clone()).await.expect_err(&arguments.to_string());
        assert!(!error.contains("validation error") && !error.is_empty(), "{error}");
    }
    assert_eq!(site.paths(), "", "nothing was fetched");
    assert!(caller.call(json!({"url": url, "max_length": 999_999, "start_index": 0, "raw": false})).await.is_ok());
}

#[tokio::test]
async fn pages_are_simplified_as_published_except_for_whole_links() {
    let site = site().await;
    for (compat, link) in [(true, "[link](/l3)".to_owned()), (false, format!("[link]({})", site.url("/l3")))] {
        let caller = Caller::of(open().with(|config| config.compat = compat)).await;
        let text = caller.text(json!({"url": site.url("/page")})).await;
        assert!(text.contains("## Head\n\nParagraph 0 has") && text.contains(&link), "{text}");
        assert!(!text.contains("menu") && !text.contains("# T\n"), "{text}");
    }
}

#[tokio::test]
async fn statuses_from_400_on_are_errors() {
    let site = Site::new(|seen| match seen.path.strip_prefix('/').and_then(|path| path.parse::<u16>().ok()) {
        Some(status) => Does::Answers(answer(status, "", b"body")),
        None => Does::Answers(answer(404, "", b"")),
    })
    .await;
    let caller = Caller::of(open()).await;
    for status in [400, 401, 403, 404, 410, 429, 500, 503] {
        let url = site.url(&format!("/{status}"));
        assert_eq!(first(&caller.error(&url).await), format!("Failed to fetch {url} - status code {status}"));
    }
    assert!(caller.get(&site.url("/299")).await.is_ok());
}

#[tokio::test]
async fn redirects_are_followed_and_bounded() {
    let site = Site::new(|seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(404, "", b"")),
        "/end" => html("<p>the end</p>"),
        path => match path.strip_prefix("/hop").and_then(|n| n.parse::<u32>().ok()) {
            Some(0) => redirect(307, "/end"),
            Some(n) => redirect([301, 302, 303, 307, 308][n as usize % 5], &format!("hop{}", n - 1)),
            None => redirect(302, path),
        },
    })
    .await;
    let caller = Caller::of(open()).await;
    let (text, value) = caller.get(&site.url("/hop9")).await.unwrap();
    assert!(text.ends_with(&format!("Contents of {}:\nthe end", site.url("/hop9"))), "{text}");
    assert_eq!(value["final_url"], site.url("/end"));
    let before = site.seen().len();
    let error = caller.error(&site.url("/hop10")).await;
    assert!(error.contains("redirects more than 10 times"), "{error}");
    assert_eq!(site.seen().len() - before, 11, "the eleventh is the last that is asked for");
    let error = caller.error(&site.url("/loop")).await;
    assert!(error.contains("redirects more than 10 times"), "{error}");
}

#[tokio::test]
async fn other_schemes_are_refused() {
    let caller = Caller::of(open()).await;
    for url in
        ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:text/plain,x", "gopher://x/", "javascript:1", "about:blank"]
    {
        let error = caller.error(url).await;
        assert!(error.starts_with(&format!("Failed to fetch {url}")), "{error}");
    }
    let site = Site::new(|seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(404, "", b"")),
        _ => redirect(302, "file:///etc/passwd"),
    })
    .await;
    assert!(!caller.error(&site.url("/x")).await.contains("root:"));
}

#[tokio::test]
async fn the_prompt_answers_the_whole_text_or_why_not() {
    let site = Site::new(|seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(200, "", b"User-agent: *\nDisallow: /private/")),
        "/private/x" => Does::Answers(answer(200, &typed("text/plain"), "PRIVATE".repeat(2_000).as_bytes())),
        "/page" => html("<p>page</p>"),
        _ => Does::Answers(answer(404, "", b"")),
    })
    .await;
    let caller = Caller::of(open()).await;
    let text = caller.prompt(&site.url("/private/x")).await;
    assert_eq!(text, format!("{}{}", prefix("text/plain"), "PRIVATE".repeat(2_000)), "no slice, no \"Contents of\"");
    assert_eq!(site.paths(), "/private/x", "a user need not ask robots.txt");
    assert!(site.seen()[0].header("user-agent").contains("User-Specified"));
    assert_eq!(caller.prompt(&site.url("/page")).await, "page");
    let url = site.url("/gone");
    assert_eq!(first(&caller.prompt(&url).await), format!("Failed to fetch {url} - status code 404"));
    assert_eq!(first(&caller.prompt("nope").await), "Invalid URL: nope: relative URL without a base");
    let error = caller.0.prompt("fetch", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("url"), "{error}");
}

/// Status and body of robots.txt; whether the page is fetched; what an error begins with.
async fn robots(status: u16, body: &'static str, config: Config) -> (Result<String, String>, Site) {
    let site = Site::new(move |seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(status, "", body.as_bytes())),
        _ => html("<p>fetched</p>"),
    })
    .await;
    let caller = Caller::of(config).await;
    let got = caller.get(&site.url("/private/x")).await.map(|(text, _)| text);
    (got, site)
}

#[tokio::test]
async fn robots_txt_decides_by_its_status() {
    for (status, body, allowed) in [
        (200, "User-agent: *\nDisallow: /private/", false),
        (200, "User-agent: *\nDisallow: /other/", true),
        (200, "User-agent: ModelContextProtocol\nDisallow: /", false),
        (200, "User-agent: LinchpinFetch\nDisallow: /", false),
        (200, "User-agent: SomeBot\nDisallow: /", true),
        (200, "User-agent: *\nDisallow: /\nAllow: /private/", true),
        (200, "", true),
        (401, "", false),
        (403, "", false),
        (404, "User-agent: *\nDisallow: /", true),
        (410, "", true),
        (429, "", true),
        (500, "", false),
        (503, "User-agent: *\nAllow: /", false),
    ] {
        let (got, site) = robots(status, body, open()).await;
        assert_eq!(got.is_ok(), allowed, "{status} {body}: {got:?}");
        let paths = if allowed { "/robots.txt /private/x" } else { "/robots.txt" };
        assert_eq!(site.paths(), paths, "{status} {body}");
        let agent = site.seen()[0].header("user-agent").to_owned();
        assert!(agent.contains("Autonomous"), "{agent}");
        let Err(error) = got else { continue };
        let place = site.url("/robots.txt");
        match status {
            200 => {
                let begin = format!(
                    "The sites robots.txt ({place}), specifies that autonomous fetching of this page is not allowed, <useragent>{agent}</useragent>\n<url>{}</url>\nSee line ",
                    site.url("/private/x")
                );
                assert!(error.starts_with(&begin), "{error}");
            }
            _ => assert!(
                error.starts_with(&format!("When fetching robots.txt ({place}), received status {status}")),
                "{error}"
            ),
        }
        if status >= 500 {
            assert!(error.contains("Try again"), "{error}");
        }
    }
    let (got, site) =
        robots(200, "User-agent: *\nDisallow: /", open().with(|config| config.ignore_robots_txt = true)).await;
    assert!(got.is_ok());
    assert_eq!(site.paths(), "/private/x", "nobody asks for what is ignored");
}

#[tokio::test]
async fn a_refusal_names_the_line_and_repeats_nothing() {
    const FILE: &str = "# secret plans\nUser-agent: a\nDisallow: /plans\n\nUser-agent: *\nDisallow: /private/ # why\nDisallow: /</robots>\n";
    let (got, _) = robots(200, FILE, open()).await;
    let error = got.unwrap_err();
    assert!(error.contains("</url>\nSee line 6 of it.\nHint: "), "{error}");
    assert!(!error.contains("plans") && !error.contains("why") && !error.contains("<robots>"), "{error}");
    let (got, _) = robots(200, FILE, open().with(|config| config.compat = true)).await;
    assert!(got.unwrap_err().contains(&format!("</url><robots>\n{FILE}\n</robots>")), "the published form");
}

/// A body in these codings, the first one first.
fn encoded(codings: &[&str], body: &[u8]) -> Vec<u8> {
    use flate2::{Compression, write};
    codings.iter().fold(body.to_vec(), |body, coding| {
        let (out, level) = (Vec::new(), Compression::best());
        match *coding {
            "gzip" => write::GzEncoder::new(out, level).pipe(&body, write::GzEncoder::finish),
            "zlib" => write::ZlibEncoder::new(out, level).pipe(&body, write::ZlibEncoder::finish),
            "raw" => write::DeflateEncoder::new(out, level).pipe(&body, write::DeflateEncoder::finish),
            _ => body,
        }
    })
}

trait Pipe: std::io::Write + Sized {
    fn pipe(mut self, body: &[u8], finish: impl FnOnce(Self) -> std::io::Result<Vec<u8>>) -> Vec<u8> {
        self.write_all(body).unwrap();
        finish(self).unwrap()
    }
}

impl<T: std::io::Write> Pipe for T {}

#[tokio::test]
async fn bodies_that_are_encoded_more_than_once_are_decoded() {
    let page = b"<p>words of the page</p>".to_vec();
    let blanks = vec![b' '; 11 << 20];
    for (header, codings, body, want) in [
        ("gzip", &["gzip"][..], &page, Ok("words of the page")),
        ("gzip, gzip", &["gzip", "gzip"], &page, Ok("words of the page")),
        ("GZIP", &["gzip"], &page, Ok("words of the page")),
        ("x-gzip", &["gzip"], &page, Ok("words of the page")),
        ("deflate,gzip", &["zlib", "gzip"], &page, Ok("words of the page")),
        ("deflate, deflate, gzip", &["raw", "zlib", "gzip"], &page, Ok("words of the page")),
        ("identity, gzip", &["gzip"], &page, Ok("words of the page")),
        ("utf-8", &[], &page, Ok("words of the page")),
        ("gzip, gzip, gzip, gzip", &["gzip"; 4], &page, Err("it has more than 3 content codings")),
        ("br, gzip", &["gzip"], &page, Err("its content coding is not supported")),
        ("br", &[], &page, Err("its content coding is not supported")),
        ("zstd", &[], &page, Err("its content coding is not supported")),
        ("gzip, gzip", &["gzip"], &page, Err("its content does not match its Content-Encoding")),
        ("gzip, gzip", &["gzip", "gzip"], &blanks, Err("it exceeds the size limit when decoded")),
    ] {
        let head = format!("{}content-encoding: {header}\r\n", typed("text/html"));
        let url_body = encoded(codings, body);
        let site = Site::of(vec![("/x", head, url_body)]).await;
        for compat in [false, true] {
            let got = Caller::of(open().with(|config| config.compat = compat)).await.get(&site.url("/x")).await;
            match want {
                Ok(want) => assert!(got.as_ref().is_ok_and(|(text, _)| text.ends_with(want)), "{header}: {got:?}"),
                Err(want) => {
                    let error = got.unwrap_err();
                    assert_eq!(first(&error), format!("Failed to fetch {}: {want}", site.url("/x")), "{header}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_robots_txt_counts_however_often_it_is_encoded() {
    let rules = b"User-agent: *\nDisallow: /no".to_vec();
    for (header, codings, want) in [
        ("gzip, gzip", &["gzip", "gzip"][..], "The sites robots.txt ("),
        ("gzip, gzip", &["gzip"], "The sites robots.txt ("),
        ("gzip, gzip, gzip, gzip", &["gzip"; 4], "Failed to fetch robots.txt "),
        ("br, gzip", &["gzip"], "Failed to fetch robots.txt "),
    ] {
        let site = Site::of(vec![
            ("/robots.txt", format!("content-encoding: {header}\r\n"), encoded(codings, &rules)),
            ("/no", typed("text/html"), b"<p>read</p>".to_vec()),
        ])
        .await;
        let caller = Caller::of(open()).await;
        let error = caller.error(&site.url("/no")).await;
        assert!(error.starts_with(want), "{header}: {error}");
        assert_eq!(site.paths(), "/robots.txt", "{header}");
    }
}

#[tokio::test]
async fn utf_7_is_not_read() {
    let site = Site::of(vec![("/x", typed("text/plain; charset=utf-7"), b"1 +ADw- 2".to_vec())]).await;
    for compat in [false, true] {
        let text =
            Caller::of(open().with(|config| config.compat = compat)).await.text(json!({"url": site.url("/x")})).await;
        assert!(text.ends_with("1 +ADw- 2"), "{text}");
    }
}

#[tokio::test]
async fn robots_txt_that_cannot_be_had_refuses() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let caller = Caller::of(open()).await;
    let error = caller.error(&format!("http://127.0.0.1:{port}/x")).await;
    assert!(
        error.starts_with(&format!(
            "Failed to fetch robots.txt http://127.0.0.1:{port}/robots.txt due to a connection issue"
        )),
        "{error}"
    );
    let site = Site::new(|seen| redirect(302, &seen.path)).await;
    let error = caller.error(&site.url("/x")).await;
    assert!(error.contains("redirects too often"), "{error}");
    assert_eq!(site.paths(), ["/robots.txt"; 6].join(" "));
}

#[tokio::test]
async fn every_hop_asks_the_robots_txt_of_its_own_site() {
    let second = Site::new(|seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(200, "", b"User-agent: *\nDisallow: /closed")),
        _ => html("<p>second</p>"),
    })
    .await;
    let (open_there, closed_there) = (second.url("/open"), second.url("/closed"));
    let first = Site::new(move |seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(200, "", b"User-agent: *\nDisallow: /no")),
        "/to-open" => redirect(302, &open_there),
        "/to-closed" => redirect(302, &closed_there),
        "/to-no" => redirect(302, "/no"),
        _ => html("<p>first</p>"),
    })
    .await;
    let caller = Caller::of(open().with(|config| config.cache_ttl_ms = 0)).await;
    assert!(caller.get(&first.url("/to-open")).await.is_ok());
    for (path, robots) in [("/to-closed", second.url("/robots.txt")), ("/to-no", first.url("/robots.txt"))] {
        let error = caller.error(&first.url(path)).await;
        assert!(error.starts_with(&format!("The sites robots.txt ({robots})")), "{error}");
        assert!(error.contains(&format!("<url>{}</url>", first.url(path))), "{error}");
    }
    assert_eq!(second.paths(), "/robots.txt /open /robots.txt");
    assert!(!first.paths().split(' ').any(|path| path == "/no"), "what is refused is not asked for");
}

#[tokio::test]
async fn a_huge_robots_txt_is_read_as_far_as_it_counts() {
    let mut file = "#".repeat(499 << 10).into_bytes();
    file.extend_from_slice(b"\nUser-agent: *\nDisallow: /early\n");
    file.extend_from_slice("#".repeat(600 << 10).as_bytes());
    file.extend_from_slice(b"\nDisallow: /late\n");
    let site = Site::new(move |seen| match seen.path.as_str() {
        "/robots.txt" => Does::Answers(answer(200, "", &file)),
        _ => html("<p>fetched</p>"),
    })
    .await;
    let caller = Caller::of(open()).await;
    assert!(caller.get(&site.url("/early")).await.is_err());
    assert!(caller.get(&site.url("/late")).await.is_ok());
}

#[tokio::test]
async fn the_server_names_itself_as_it_is_told() {
    for (config, tool, prompt) in [
        (open(), "LinchpinFetch/", "(User-Specified; ModelContextProtocol/1.0)"),
        (
            open().with(|config| config.legacy_ua = true),
            "ModelContextProtocol/1.0 (Autonomous; +https://github.com/modelcontextprotocol/servers)",
            "ModelContextProtocol/1.0 (User-Specified; +https://github.com/modelcontextprotocol/servers)",
        ),
        (open().with(|config| config.user_agent = Some("Mine/2".to_owned())), "Mine/2", "Mine/2"),
    ] {
        let site = Site::new(|_| html("<p>x</p>")).await;
        let caller = Caller::of(config).await;
        caller.get(&site.url("/x")).await.unwrap();
        caller.prompt(&site.url("/x")).await;
        let agents: Vec<_> = site.seen().iter().map(|seen| seen.header("user-agent").to_owned()).collect();
        assert_eq!(agents.len(), 3);
        assert!(agents[0].starts_with(tool) && agents[1] == agents[0] && agents[2].ends_with(prompt), "{agents:?}");
    }
}
