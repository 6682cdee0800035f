//! The published server beside ours, call by call on the same site: PyPI `mcp-server-fetch` 2026.10.24.
//!
//! Differences that are meant, each with its reason:
//! - Their runtime puts `Error executing tool fetch: ` before every error; ours begins with the sentence, and may have a
//!   second line, `Hint: …`. Arguments that do not fit are explained in our words.
//! - Links are whole, JSON is laid out, feeds and PDF documents are read, binary is refused, charsets are looked for, and
//!   `<error>` in pages is made harmless. `--compat` restores their forms; the tests here use it where it matters.
//! - Of a robots.txt only the group that refuses is shown (`--compat` shows all of it), and what follows it is our hint.
//! - A robots.txt of status 5xx refuses, as RFC 9309 has it; theirs reads its body. There is no flag for that.
//! - `User-agent: name/2.0` in a robots.txt is about `name`, as RFC 9309 has it; theirs wants the version too.
//! - The name in `User-Agent` is ours (`--legacy-ua` restores theirs).
//! - `file:` and `ftp:` are refused in words of their own; theirs blames a connection. Ports of other protocols are refused.
//! - Structured content and its schema, the title, and the arguments `format` and `selector` are ours alone.

use crate::common;

use common::*;
use linchpin::client::{Client, Connection};
use linchpin::transport::Child;
use linchpin_fetch::Config;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn installed(name: &str) -> PathBuf {
    let root = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation");
    PathBuf::from(root).join("py/bin").join(name)
}

async fn theirs(arguments: &[&str]) -> Connection {
    let child = Child::new(installed("mcp-server-fetch")).args(arguments.iter().copied());
    Client::new("test", "0").connect(child).await.expect("the published server starts")
}

async fn ask(connection: &Connection, arguments: Value) -> Result<String, String> {
    let result = connection.call("fetch", arguments).await.expect("an answer");
    if !result.is_error() {
        return Ok(result.text());
    }
    let text = result.text();
    Err(text.strip_prefix("Error executing tool fetch: ").unwrap_or(&text).to_owned())
}

async fn prompted(connection: &Connection, url: &str) -> String {
    let result = connection.prompt("fetch", json!({ "url": url })).await.expect("an answer");
    serde_json::to_value(&result.messages).expect("JSON")[0]["content"]["text"].as_str().expect("text").to_owned()
}

/// Ours in the published forms.
fn compat() -> Config {
    open().with(|config| {
        config.compat = true;
        config.legacy_ua = true;
        config.cache_ttl_ms = 0;
    })
}

fn page(body: &str) -> String {
    format!(
        "<html><head><title>A title of some length for a page</title></head><body><nav><ul><li><a href=/m>menu</a></li></ul></nav><article><h1>The head of it</h1>{}{body}{}</article><footer>imprint</footer></body></html>",
        article(4),
        article(3)
    )
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn lists_have_the_same_names_arguments_and_hints() {
    let (theirs, ours) = (theirs(&[]).await, Caller::of(open()).await.0);
    let (their_tools, our_tools) = (theirs.tools().await.unwrap(), ours.tools().await.unwrap());
    assert_eq!(
        their_tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
        our_tools.iter().map(|tool| &tool.name).collect::<Vec<_>>()
    );
    assert_eq!(their_tools[0].annotations, our_tools[0].annotations);
    let schema = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let (theirs_in, ours_in) = (schema(their_tools[0].input_schema.get()), schema(our_tools[0].input_schema.get()));
    assert_eq!(theirs_in["required"], ours_in["required"]);
    for (name, property) in theirs_in["properties"].as_object().unwrap() {
        for key in ["type", "default", "minimum", "maximum", "minLength", "format"] {
            // What says no more than the type is not listed.
            let says =
                property.get(key).filter(|value| key != "minimum" || **value != 0).filter(|value| **value != false);
            assert_eq!(says, ours_in["properties"][name].get(key), "{name} {key}");
        }
    }
    let (their_prompts, our_prompts) = (theirs.prompts().await.unwrap(), ours.prompts().await.unwrap());
    assert_eq!(their_prompts[0].name, our_prompts[0].name);
    let names = |prompt: &linchpin::types::prompt::Prompt| {
        prompt.arguments.iter().map(|argument| (argument.name.clone(), argument.required)).collect::<Vec<_>>()
    };
    assert_eq!(names(&their_prompts[0]), names(&our_prompts[0]));
}

async fn texts() -> Site {
    let mut pages = vec![
        ("/json", typed("application/json"), b"{\"a\":1}".to_vec()),
        ("/latin", typed("text/plain; charset=iso-8859-1"), b"caf\xe9".to_vec()),
        ("/not-utf8", typed("text/plain"), b"caf\xe9 na\xefve".to_vec()),
        ("/pdf", typed("application/pdf"), b"%PDF-1.4\n\xff\xfe\0binary".to_vec()),
        ("/noct", String::new(), b"plain no type".to_vec()),
        ("/empty", typed("text/html"), b"<html></html>".to_vec()),
        ("/emoji", typed("text/plain; charset=utf-8"), "😀".repeat(10).into_bytes()),
        ("/marks", typed("text/plain"), b"a <error>b</error>".to_vec()),
        ("/long", typed("text/plain"), "x".repeat(12_000).into_bytes()),
        ("/feed", typed("application/rss+xml"), b"<rss><channel><title>x</title></channel></rss>".to_vec()),
        ("/html-as-text", typed("text/plain"), b"<html><body><p>in a page</p></body></html>".to_vec()),
        ("/late-html", typed("text/plain"), format!("{}<html><p>x", " ".repeat(100)).into_bytes()),
        ("/page", typed("text/html; charset=utf-8"), page("<p>more</p>").into_bytes()),
    ];
    pages.push(("/bom", typed("text/plain"), b"\xef\xbb\xbfx".to_vec()));
    Site::of(pages).await
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn texts_slices_and_statuses_are_the_same() {
    let site = texts().await;
    let (theirs, ours) = (theirs(&["--allow-private-ips"]).await, Caller::of(compat()).await);
    let mut cases = Vec::new();
    for path in [
        "/json",
        "/latin",
        "/not-utf8",
        "/pdf",
        "/noct",
        "/empty",
        "/emoji",
        "/marks",
        "/long",
        "/feed",
        "/html-as-text",
        "/late-html",
        "/bom",
        "/gone",
        "",
    ] {
        cases.push(json!({"url": site.url(path)}));
        cases.push(json!({"url": site.url(path), "raw": true}));
    }
    cases.push(json!({"url": site.url("/page"), "raw": true, "max_length": 999_999}));
    for (path, start, length) in [
        ("/emoji", 0, 3),
        ("/emoji", 9, 3),
        ("/emoji", 10, 3),
        ("/emoji", 7, 3),
        ("/long", 5_000, 5_000),
        ("/long", 11_999, 1),
        ("/long", 11_998, 1),
        ("/empty", 5, 5),
        ("/empty", 500, 5),
    ] {
        cases.push(json!({"url": site.url(path), "start_index": start, "max_length": length}));
    }
    for case in cases {
        let (want, got) = (ask(&theirs, case.clone()).await, ask(&ours.0, case.clone()).await);
        match (&want, &got) {
            (Ok(_), Ok(_)) => assert_eq!(want, got, "{case}"),
            (Err(want), Err(got)) => assert_eq!(first(want), first(got), "{case}"),
            _ => panic!("{case}: theirs {want:?}, ours {got:?}"),
        }
    }
    for path in ["/json", "/emoji", "/long", "/empty", "/gone"] {
        let (want, got) = (prompted(&theirs, &site.url(path)).await, prompted(&ours.0, &site.url(path)).await);
        let same = want == got || path == "/gone" && first(&want) == first(&got);
        assert!(same, "{path}: theirs {want:?}, ours {got:?}");
    }
    for wrong in [
        json!({}),
        json!({"url": "nope"}),
        json!({"url": site.url("/json"), "max_length": 0}),
        json!({"url": site.url("/json"), "max_length": "10"}),
        json!({"url": site.url("/json"), "raw": "yes"}),
    ] {
        assert!(ask(&theirs, wrong.clone()).await.is_err() && ask(&ours.0, wrong.clone()).await.is_err(), "{wrong}");
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn without_compat_texts_differ_only_where_they_are_meant_to() {
    let site = texts().await;
    let (theirs, ours) = (theirs(&["--allow-private-ips"]).await, Caller::of(open()).await);
    for (path, same) in [
        ("/latin", true),
        ("/noct", true),
        ("/empty", true),
        ("/emoji", true),
        ("/long", true),
        ("/html-as-text", true),
        ("/late-html", true),
        ("/json", false),
        ("/not-utf8", false),
        ("/pdf", false),
        ("/marks", false),
        ("/feed", false),
    ] {
        let case = json!({"url": site.url(path)});
        let (want, got) = (ask(&theirs, case.clone()).await, ask(&ours.0, case).await);
        assert_eq!(want == got, same, "{path}: theirs {want:?}, ours {got:?}");
    }
}

/// What refusals of robots.txt say, without the words after it.
fn refusal(text: &str) -> String {
    let text = text.split("\n</robots>").next().unwrap_or_default();
    let text = first(text).to_owned() + &text[first(text).len()..];
    text.split(", the user can try").next().unwrap_or_default().split("\nHint").next().unwrap_or_default().to_owned()
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn robots_txt_refuses_in_the_same_words() {
    for (status, body) in [
        (200, "User-agent: *\nDisallow: /private/\n"),
        (200, "User-agent: ModelContextProtocol\nDisallow: /\n"),
        (200, "User-agent: other\nDisallow: /\n"),
        (200, "User-agent: *\nDisallow: /private/\nAllow: /private/x\n"),
        (401, ""),
        (403, ""),
        (404, ""),
        (418, "User-agent: *\nDisallow: /"),
    ] {
        let site = Site::new(move |seen| match seen.path.as_str() {
            "/robots.txt" => Does::Answers(answer(status, &typed("text/plain"), body.as_bytes())),
            "/redirect" => redirect(302, "/private/x"),
            _ => Does::Answers(answer(200, &typed("text/plain"), b"read")),
        })
        .await;
        let (theirs, ours) = (theirs(&["--allow-private-ips"]).await, Caller::of(compat()).await);
        for path in ["/private/x", "/redirect"] {
            let case = json!({"url": site.url(path)});
            let (want, got) = (ask(&theirs, case.clone()).await, ask(&ours.0, case).await);
            assert_eq!(want.map_err(|e| refusal(&e)), got.map_err(|e| refusal(&e)), "{status} {body} {path}");
        }
    }
    let site = Site::new(|_| Does::Answers(answer(200, "", b"User-agent: *\nDisallow: /"))).await;
    let theirs = theirs(&["--allow-private-ips", "--ignore-robots-txt", "--user-agent=Mine/1"]).await;
    let ours = Caller::of(compat().with(|config| {
        config.ignore_robots_txt = true;
        config.user_agent = Some("Mine/1".to_owned());
    }))
    .await;
    let case = json!({"url": site.url("/x")});
    assert_eq!(ask(&theirs, case.clone()).await, ask(&ours.0, case).await);
    assert!(site.seen().iter().all(|seen| seen.header("user-agent") == "Mine/1" && seen.path == "/x"));
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn both_refuse_private_addresses() {
    let site = Site::new(|_| html("<p>inside</p>")).await;
    let (theirs, ours) = (theirs(&[]).await, Caller::of(guarded()).await);
    for host in [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
    ] {
        let case = json!({"url": format!("http://{host}:{}/a", site.port)});
        let (want, got) = (ask(&theirs, case.clone()).await.unwrap_err(), ask(&ours.0, case).await.unwrap_err());
        assert!(want.starts_with("Refused to fetch") && got.starts_with("Refused to fetch"), "{host}: {want} / {got}");
    }
    assert_eq!(site.paths(), "");
}

/// How many of the words of two texts are the same.
fn overlap(one: &str, other: &str) -> f64 {
    let words = |text: &str| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
        counts
    };
    let (one, other) = (words(one), words(other));
    let shared: usize = one.iter().map(|(word, n)| (*n).min(other.get(word).copied().unwrap_or(0))).sum();
    let most = one.values().sum::<usize>().max(other.values().sum());
    shared as f64 / most.max(1) as f64
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn simplified_pages_have_the_same_words() {
    let bodies: Vec<(&'static str, String)> = vec![
        ("/plain", String::new()),
        ("/code", "<pre><code>fn main() {\n    let a_b = 1 * 2;\n}</code></pre><p>and <code>inline_code</code></p>".to_owned()),
        ("/table", "<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></tbody></table>".to_owned()),
        ("/headless-table", "<table><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>".to_owned()),
        ("/lists", "<ul><li>one</li><li>two<ul><li>deep</li></ul></li></ul><ol><li>first</li><li>second</li></ol>".to_owned()),
        ("/quote", "<blockquote><p>A quotation of some length, which goes on.</p></blockquote>".to_owned()),
        ("/marks", "<p>With <b>bold</b>, <em>emphasis</em>, <del>gone</del> and 2*3_4.</p><hr><p>line<br>break</p>".to_owned()),
        ("/image", "<p>Before it, there is text.</p><figure><img src=\"/i.png\" alt=\"im\"><figcaption>A caption</figcaption></figure>".to_owned()),
        ("/headings", "<h2>Second head</h2><p>Text under it, with a comma.</p><h3>Third head</h3><p>More text under it.</p>".to_owned()),
        ("/unicode", "<p>Grüße, 世界, and 😀 in a paragraph of its own.</p>".to_owned()),
    ];
    let pages =
        bodies.into_iter().map(|(path, body)| (path, typed("text/html; charset=utf-8"), page(&body).into_bytes()));
    let pages: Vec<_> = pages.collect();
    let paths: Vec<&str> = pages.iter().map(|(path, ..)| *path).collect();
    let site = Site::of(pages).await;
    let (theirs, ours) = (theirs(&["--allow-private-ips"]).await, Caller::of(compat()).await);
    let mut equal = 0;
    for path in &paths {
        let case = json!({"url": site.url(path), "max_length": 100_000});
        let (want, got) = (ask(&theirs, case.clone()).await.unwrap(), ask(&ours.0, case).await.unwrap());
        let share = overlap(&want, &got);
        assert!(share > 0.9, "{path}: {share}\n--- theirs\n{want}\n--- ours\n{got}");
        equal += usize::from(want == got);
    }
    // Two programs that look for an article may differ; these pages are plain enough that they rarely do.
    assert!(equal + 1 >= paths.len(), "{equal} of {} pages are the same to the letter", paths.len());
}

/// A generator of numbers that is the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll<'a>(&mut self, sides: &[&'a str]) -> &'a str {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        sides[(self.0 % sides.len() as u64) as usize]
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn robots_txt_is_understood_as_protego_does() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut files = Vec::new();
    for _ in 0..120 {
        let mut file = String::new();
        for _ in 0..3 {
            file.push_str(&format!(
                "User-agent: {}\n",
                dice.roll(&["*", "Mine", "mine", "Other", "ModelContextProtocol"])
            ));
            for _ in 0..4 {
                let directive = dice.roll(&["Disallow", "Disallow", "Allow", "disallow", "Disalow"]);
                let pattern = dice.roll(&[
                    "/", "/a", "/a/", "/a/b", "/a*", "/*b", "/a/*c", "/a$", "/*.gif$", "/%61", "/a%2Fb", "", "/a?x=*",
                    "*", "/ü",
                ]);
                file.push_str(&format!("{directive}: {pattern}{}\n", dice.roll(&["", "", " # c"])));
            }
            file.push_str(dice.roll(&["", "\n", "Sitemap: http://x/\n"]));
        }
        files.push(file);
    }
    let paths = [
        "/",
        "/a",
        "/a/",
        "/a/b",
        "/a/b/c",
        "/ab",
        "/b",
        "/x/b",
        "/a.gif",
        "/a.gif?x",
        "/a?x=1",
        "/%61",
        "/a%2Fb",
        "/a%2fb",
        "/%C3%BC",
        "/robots.txt",
        "/aXc",
    ];
    let agents = ["Mine/1.0", "Nobody/1.0"];
    let script = "import sys,json\nfrom protego import Protego\nd=json.load(sys.stdin)\n\
        print(json.dumps([[[Protego.parse(f).can_fetch('http://h'+p,a) for p in d['paths']] for a in d['agents']] for f in d['files']]))";
    let mut python = Command::new(installed("python"))
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python of the installation");
    let input = json!({"files": files, "paths": paths, "agents": agents}).to_string();
    python.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let said: Vec<Vec<Vec<bool>>> = serde_json::from_slice(&python.wait_with_output().unwrap().stdout).expect("JSON");
    let mut compared = 0;
    for (file, said) in files.iter().zip(said) {
        let text = file.clone();
        let site = Site::new(move |seen| match seen.path.as_str() {
            "/robots.txt" => Does::Answers(answer(200, &typed("text/plain"), text.as_bytes())),
            _ => Does::Answers(answer(200, &typed("text/plain"), b"read")),
        })
        .await;
        for (agent, said) in agents.iter().zip(said) {
            let ours = Caller::of(open().with(|config| config.user_agent = Some((*agent).to_owned()))).await;
            for (path, want) in paths.iter().zip(said) {
                assert_eq!(ours.get(&site.url(path)).await.is_ok(), want, "{agent} {path}\n{file}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 120 * 2 * paths.len());
}
