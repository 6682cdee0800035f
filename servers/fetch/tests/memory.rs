//! How much memory a page can take of the server: each is fetched by a process of its own, which says how far its peak rose.
//! The bounds are at most twice of what was measured when they were written (debug build, x86-64); the sum of them all is in
//! the README.
//!
//! Not counted: what the process takes before, the page itself where it is made, and the process that converts it, which
//! has a limit of its own (`it/worker.rs`).
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "what was measured is shown, and the measuring process says it this way")]

#[path = "it/common/mod.rs"]
mod common;

use common::*;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Command;

/// The longest page by default.
const LIMIT: usize = 10 << 20;
const ASKED: &str = "LINCHPIN_FETCH_MEMORY_OF";

/// What a process of its own is asked: calls, and how many of them at once.
fn growth(calls: &[Value], at_once: usize) -> u64 {
    let asked = json!({"calls": calls, "at_once": at_once}).to_string();
    let mut child = Command::new(std::env::current_exe().expect("this test"));
    child.args(["measured_when_asked", "--exact", "--nocapture", "--test-threads=1"]).env(ASKED, asked);
    // Threads take what they free back to themselves; how many such places there are is not what is measured.
    let output = child.env("MALLOC_ARENA_MAX", "2").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{}", said.lines().filter(|line| line.contains(": ")).collect::<Vec<_>>().join("\n"));
    let grown = said.split("grown by ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    grown.unwrap_or_else(|| panic!("{said}\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// Not a test of its own: the process that fetches.
#[tokio::test]
async fn measured_when_asked() {
    let Ok(asked) = std::env::var(ASKED) else { return };
    let asked: Value = serde_json::from_str(&asked).expect("JSON");
    let caller = Caller::of(open().with(|config| config.timeout_ms = 15_000)).await;
    // What is loaded and built once belongs to no page.
    let calls = asked["calls"].as_array().expect("calls");
    let mut first: url::Url = calls[0]["url"].as_str().expect("a url").parse().expect("a url");
    first.set_host(Some("127.0.0.1")).expect("a host");
    caller.get(first.join("/warm").expect("a url").as_str()).await.expect("it is warm");
    let before = peak(true);
    let at_once = usize::try_from(asked["at_once"].as_u64().expect("a number")).expect("a small number");
    let mut said = Vec::new();
    for some in calls.chunks(at_once) {
        let some: Vec<_> = some.iter().map(|call| caller.call(call.clone())).collect();
        let mut some: Vec<_> = some.into_iter().map(Box::pin).collect();
        // Polled together; the first error or beginning of each is shown.
        for answer in futures_all(&mut some).await {
            said.push(match answer {
                Ok((text, _)) => {
                    format!("{} bytes: {}", text.len(), text.chars().skip(60).take(60).collect::<String>())
                }
                Err(error) => error.chars().take(160).collect(),
            });
        }
    }
    let grown = peak(false).saturating_sub(before) >> 10;
    println!("{}\ngrown by {grown} MiB", said.join("\n"));
}

/// Waits for all of them at once.
async fn futures_all<F: Future<Output = Answer> + Unpin>(futures: &mut [F]) -> Vec<Answer> {
    let mut answers: Vec<Option<Answer>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, answer) in futures.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let std::task::Poll::Ready(done) = std::pin::Pin::new(future).poll(cx)
            {
                *answer = Some(done);
            }
        }
        if answers.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}

/// The most memory this process had at once since the last call that asked to begin anew, in KiB.
fn peak(anew: bool) -> u64 {
    if anew {
        std::fs::write("/proc/self/clear_refs", "5").expect("one's own peak may be forgotten");
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    peak.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// A page, what to ask of it, and how many MiB it may take.
struct Case {
    name: &'static str,
    head: String,
    body: Vec<u8>,
    arguments: Value,
    most: u64,
}

fn case(name: &'static str, kind: &str, body: impl Into<Vec<u8>>, most: u64) -> Case {
    Case { name, head: typed(kind), body: body.into(), arguments: json!({}), most }
}

impl Case {
    fn asking(mut self, arguments: Value) -> Case {
        self.arguments = arguments;
        self
    }

    fn packed(mut self, encoding: &str) -> Case {
        self.head += &format!("content-encoding: {encoding}\r\n");
        self
    }
}

/// Measures each, and says all that are too large.
async fn measure(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for Case { name, head, body, arguments, most } in cases {
        let whole = answer(200, &head, &body);
        drop(body);
        let site = Site::new(move |seen| match seen.path.as_str() {
            "/warm" => html(&article(30)),
            "/page" => Does::Answers(whole.clone()),
            _ => Does::Answers(answer(404, "", b"")),
        })
        .await;
        let mut call = arguments;
        call["url"] = site.url("/page").into();
        let grown = tokio::task::spawn_blocking(move || growth(&[call], 1)).await.expect("it is measured");
        println!("{name}: {grown} MiB of {most}");
        if grown > most {
            wrong.push(format!("{name}: {grown} MiB, more than {most}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn filled(piece: &str) -> String {
    piece.repeat(LIMIT / piece.len() - 8)
}

/// So many MiB of blanks, written into this encoder.
fn blanks<W: Write>(mut encoder: W, megabytes: usize) -> W {
    let one = vec![b' '; 1 << 20];
    for _ in 0..megabytes {
        encoder.write_all(&one).expect("memory takes it");
    }
    encoder
}

#[tokio::test]
async fn bodies_that_grow_when_they_are_unpacked() {
    let gzip = blanks(GzEncoder::new(Vec::new(), Compression::best()), 100).finish().expect("packed");
    let twice = {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&gzip).expect("memory takes it");
        encoder.finish().expect("packed")
    };
    let zlib = blanks(ZlibEncoder::new(Vec::new(), Compression::best()), 100).finish().expect("packed");
    measure(vec![
        case("gzip", "text/html", gzip, 16).packed("gzip"),
        case("gzip twice", "text/html", twice, 20).packed("gzip, gzip"),
        case("deflate", "text/html", zlib, 16).packed("deflate"),
    ])
    .await;
}

#[tokio::test]
async fn bodies_that_do_not_end() {
    let site = Site::new(|seen| match seen.path.as_str() {
        "/warm" => html(&article(30)),
        "/endless" => {
            Does::Floods(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n".to_vec(), b"<div>".repeat(10_000))
        }
        "/headers" => Does::Floods(b"HTTP/1.1 200 OK\r\n".to_vec(), b"x-header: yyyyyyyyyyyyyyyyyyyyyyyy\r\n".to_vec()),
        "/robots.txt" if seen.header("host").starts_with("localhost") => {
            Does::Floods(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), b"User-agent: *\nDisallow: /y\n".repeat(1_000))
        }
        _ => Does::Answers(answer(404, "", b"")),
    })
    .await;
    let robots = format!("http://localhost:{}/page", site.port);
    let mut wrong = Vec::new();
    for (url, most) in [(site.url("/endless"), 16), (site.url("/headers"), 8), (robots, 16)] {
        let call = json!({ "url": url });
        let grown = tokio::task::spawn_blocking(move || growth(&[call], 1)).await.expect("it is measured");
        println!("{url}: {grown} MiB of {most}");
        if grown > most {
            wrong.push(format!("{url}: {grown} MiB, more than {most}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn pages_that_are_converted_elsewhere() {
    let deep = "<div>".repeat(100 << 20 >> 2);
    measure(vec![
        case("100 MB of nested blocks", "text/html", deep.clone(), 8),
        case("nested blocks", "text/html", &deep[..LIMIT], 20),
        case("one long text", "text/html", filled("words and more words, "), 40),
        case("a text to escape", "text/html", filled("*_"), 60),
        case("attributes", "text/html", filled("<p a=1 b=2 c=3 d=4 e=5 f=6>"), 20),
        case("an attribute to escape", "text/html", format!("<p>x<b a='{}'>y", "\"".repeat(LIMIT - 100)), 20)
            .asking(json!({"format": "html"})),
        case(
            "links made whole",
            "text/html",
            format!("<base href=/{}/>{}", "d".repeat(1_900), "<a href=x>l</a>".repeat(90_000)),
            36,
        ),
        case("a feed of much text", "application/rss+xml", format!("<rss><item><title>{}", filled("&lt;p&gt;x")), 20),
        case(
            "a pdf that is one list",
            "application/pdf",
            format!("%PDF-1.7\n1 0 obj[{}", "/a ".repeat(LIMIT / 3 - 100)),
            20,
        ),
    ])
    .await;
}

#[tokio::test]
async fn pages_that_are_not_html() {
    let steps = format!("{}{}1{}", "[".repeat(63), "1,".repeat(LIMIT / 2 - 200), "]".repeat(63));
    measure(vec![
        case("text", "text/plain", filled("words and more words, "), 48),
        case("text of broken bytes", "text/plain; charset=utf-8", vec![0xff; 1 << 20], 16),
        case(
            "text to be guessed",
            "text/plain",
            filled("caf\u{e9} ").chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect::<Vec<_>>(),
            68,
        ),
        case("text that imitates us", "text/plain", filled("<error>"), 54),
        case("text, much of it at once", "text/plain", filled("words and more words, "), 48)
            .asking(json!({"max_length": 999_999})),
        case("json", "application/json", steps, 160),
    ])
    .await;
}

#[tokio::test]
async fn many_pages_one_after_another_and_at_once() {
    let text = filled("<p>words and <i>more</i> words, for a page that is long.</p>");
    let whole = answer(200, &typed("text/plain"), text.as_bytes());
    let site = Site::new(move |seen| match seen.path.as_str() {
        "/warm" => html(&article(30)),
        path if path.starts_with("/page") => Does::Answers(whole.clone()),
        _ => Does::Answers(answer(404, "", b"")),
    })
    .await;
    let calls: Vec<Value> = (0..16).map(|n| json!({"url": site.url(&format!("/page{n}"))})).collect();
    for (at_once, most) in [(1, 200), (8, 340)] {
        let calls = calls.clone();
        let grown = tokio::task::spawn_blocking(move || growth(&calls, at_once)).await.expect("it is measured");
        println!("16 pages, {at_once} at once: {grown} MiB of {most}");
        assert!(grown <= most, "{at_once}: {grown} MiB");
    }
}
