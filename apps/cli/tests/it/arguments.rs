//! The arguments and variables of the published servers do here what they say there.
#![cfg(all(
    feature = "client",
    feature = "fetch",
    feature = "git",
    feature = "memory",
    feature = "sequential-thinking",
    feature = "sqlite",
    feature = "time",
    unix
))]

use crate::common;
use crate::rows;

use common::{Raw, Site, command, finished, run};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A published name of the program.
fn published(home: &Path, name: &str) -> Command {
    let names = home.join("names");
    if !names.exists() {
        assert_eq!(run(home, &["install-names", "names", "--all"]).0, Some(0));
    }
    command(names.join(format!("mcp-server-{name}")), home)
}

fn fetch(home: &Path, words: &[&str], env: &[(&str, String)]) -> Raw {
    Raw::start(published(home, "fetch").args(words).envs(env.iter().cloned()))
}

/// What one call of `fetch` answers.
fn page(server: &mut Raw, url: &str) -> String {
    server.call("fetch", json!({ "url": url }))["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

/// A site whose robots.txt asks programs to stay out.
fn closed() -> Site {
    Site::start(|head| match head.starts_with("GET /robots.txt ") {
        true => Site::page("text/plain", "User-agent: *\nDisallow: /\n"),
        false => Site::page("text/plain", "words of the page"),
    })
}

#[test]
fn fetch_goes_by_the_name_it_is_given() {
    let home = tempfile::tempdir().unwrap();
    for (words, tool, prompt) in [
        (&[][..], "(Autonomous; ModelContextProtocol/1.0)", "(User-Specified; ModelContextProtocol/1.0)"),
        (&["--user-agent", "Mine/9"], "user-agent: Mine/9\r\n", "user-agent: Mine/9\r\n"),
        (&["--user-agent=Mine/9 (x)"], "user-agent: Mine/9 (x)\r\n", "user-agent: Mine/9 (x)\r\n"),
    ] {
        let site = Site::start(|_| Site::answer("404 Not Found", "", ""));
        let mut server = fetch(home.path(), &[words, &["--allow-private-ips"]].concat(), &[]);
        page(&mut server, &site.url("/x"));
        server.ask("prompts/get", json!({ "name": "fetch", "arguments": { "url": site.url("/y") } }));
        server.ended();
        assert_eq!(site.asked(), ["GET /robots.txt HTTP/1.1", "GET /x HTTP/1.1", "GET /y HTTP/1.1"]);
        let seen = site.seen();
        assert!(seen[0].contains(tool) && seen[1].contains(tool), "{words:?}: {seen:?}");
        assert!(seen[2].contains(prompt), "{words:?}: {seen:?}");
    }
}

/// PDF documents are converted in a process of their own or not at all.
#[test]
fn fetch_converts_pages_by_the_program_itself_under_any_name() {
    let document = "%PDF-1.4\n1 0 obj<</Type/Page/Contents 2 0 R/Resources<</Font<</F 3 0 R>>>>>>endobj\n\
        2 0 obj<</Length 24>>stream\nBT /F 9 Tf (a page) Tj ET\nendstream endobj\n3 0 obj<</Type/Font>>endobj\n";
    let home = tempfile::tempdir().unwrap();
    let site = Site::start(|_| Site::page("application/pdf", document));
    let words = ["--allow-private-ips", "--ignore-robots-txt"];
    let mut server = fetch(home.path(), &words, &[]);
    assert!(page(&mut server, &site.url("/x")).ends_with("a page"));
    server.ended();
    let mut server = Raw::start(command(common::program(), home.path()).args(["serve", "fetch"]).args(words));
    assert!(page(&mut server, &site.url("/x")).ends_with("a page"));
    server.ended();
    // Whoever calls it without a page gets an error.
    assert_eq!(run(home.path(), &["__convert"]).0, Some(1));
}

#[test]
fn fetch_asks_robots_txt_unless_it_is_told_not_to_and_stays_outside_unless_it_is_told_to() {
    let home = tempfile::tempdir().unwrap();
    for (words, says, asked) in [
        (&["--allow-private-ips"][..], "specifies that autonomous fetching of this page is not allowed", "/robots.txt"),
        (&["--allow-private-ips", "--ignore-robots-txt"], "words of the page", "/x"),
        (&["--ignore-robots-txt"], "is this machine itself, where this client does not connect", ""),
        (&[], "is this machine itself, where this client does not connect", ""),
    ] {
        let site = closed();
        let mut server = fetch(home.path(), words, &[]);
        let text = page(&mut server, &site.url("/x"));
        server.ended();
        assert!(text.contains(says), "{words:?}: {text}");
        let paths: Vec<String> = site.asked().iter().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
        assert_eq!(paths.join(" "), asked, "{words:?}");
    }
}

/// The server's side of SOCKS 5 without a login: any address will do, and this one speaks for it.
fn socks(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut hello = [0; 2];
    stream.read_exact(&mut hello)?;
    stream.read_exact(&mut vec![0; hello[1].into()])?;
    stream.write_all(&[5, 0])?;
    let mut request = [0; 4];
    stream.read_exact(&mut request)?;
    let length = match request[3] {
        1 => 4,
        4 => 16,
        _ => {
            let mut length = [0];
            stream.read_exact(&mut length)?;
            length[0].into()
        }
    };
    stream.read_exact(&mut vec![0; length + 2])?;
    stream.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0])
}

/// A proxy that answers for every site itself.
enum Kind {
    Http,
    Socks,
}

impl Kind {
    fn start(&self) -> Site {
        let answer = |head: &str| match head.starts_with("CONNECT ") {
            true => Site::answer("403 Forbidden", "", ""),
            false => Site::page("text/plain", "words by the proxy"),
        };
        match self {
            Kind::Http => Site::start(answer),
            Kind::Socks => Site::speaking(answer, socks),
        }
    }
}

/// Addresses that are nobody's (RFC 5737), so that whoever answers is the proxy.
#[test]
fn fetch_goes_through_the_proxy_that_flags_or_variables_name() {
    let home = tempfile::tempdir().unwrap();
    let plain = "http://192.0.2.1/x";
    let secure = "https://192.0.2.1/x";
    let (whole, path) = (Some("GET http://192.0.2.1/x HTTP/1.1"), Some("GET /x HTTP/1.1"));
    let tunnel = Some("CONNECT 192.0.2.1:443 HTTP/1.1");
    use Kind::{Http, Socks};
    for (kind, flag, variables, url, asked) in [
        (Http, Some("http://PROXY"), &[][..], plain, whole),
        (Http, Some("http://PROXY"), &[], secure, tunnel),
        (Socks, Some("socks5://PROXY"), &[], plain, path),
        (Socks, Some("socks://PROXY"), &[], plain, path),
        (Http, Some("PROXY"), &[], "http://far.test/x", Some("GET http://far.test/x HTTP/1.1")),
        (Socks, Some("socks5h://PROXY"), &[], "http://far.test/x", path),
        (Http, None, &[("HTTP_PROXY", "http://PROXY")], plain, whole),
        (Http, None, &[("http_proxy", "http://PROXY")], plain, whole),
        (Http, None, &[("HTTPS_PROXY", "http://PROXY")], secure, tunnel),
        (Http, None, &[("https_proxy", "http://PROXY")], secure, tunnel),
        (Http, None, &[("ALL_PROXY", "http://PROXY")], plain, whole),
        (Http, None, &[("all_proxy", "http://PROXY")], secure, tunnel),
        (Socks, None, &[("ALL_PROXY", "socks5://PROXY")], plain, path),
        (Socks, None, &[("ALL_PROXY", "socks://PROXY")], plain, path),
        (Socks, None, &[("all_proxy", "socks://PROXY")], plain, path),
        (Socks, None, &[("HTTP_PROXY", "socks://PROXY")], plain, path),
        // The flag wins over variables, and each scheme has its own.
        (Http, Some("http://PROXY"), &[("HTTP_PROXY", "http://127.0.0.1:1")], plain, whole),
        (Http, None, &[("HTTP_PROXY", "http://PROXY"), ("ALL_PROXY", "socks://127.0.0.1:1")], plain, whole),
        // And those that are left alone.
        (Http, None, &[("HTTPS_PROXY", "http://PROXY")], plain, None),
        (Http, None, &[("ALL_PROXY", "http://PROXY"), ("NO_PROXY", "192.0.2.1")], plain, None),
        (Http, None, &[("HTTP_PROXY", "http://PROXY"), ("no_proxy", "192.0.2.0/24")], plain, None),
        (Socks, None, &[("ALL_PROXY", "socks://PROXY"), ("NO_PROXY", "192.0.2.1,x.test")], plain, None),
        (Socks, None, &[("ALL_PROXY", "socks://PROXY"), ("NO_PROXY", "x.test")], plain, path),
    ] {
        let proxy = kind.start();
        let named = |text: &str| text.replace("PROXY", &proxy.host());
        let flag = flag.map(&named);
        let mut words = vec!["--allow-private-ips", "--ignore-robots-txt", "--timeout", "2", "--retries", "0"];
        words.extend(flag.iter().flat_map(|url| ["--proxy-url", url]));
        let env: Vec<(&str, String)> = variables.iter().map(|(name, value)| (*name, named(value))).collect();
        let mut server = fetch(home.path(), &words, &env);
        let text = page(&mut server, url);
        server.ended();
        assert_eq!(proxy.asked(), asked.into_iter().collect::<Vec<_>>(), "{flag:?} {env:?} {url}: {text}");
        assert_eq!(text.contains("words by the proxy"), asked.is_some() && url != secure, "{flag:?} {env:?}: {text}");
    }
    // Without --allow-private-ips, a name is looked up here first, unless the proxy is trusted with it.
    for (trust, says, asked) in
        [(&[][..], "and the proxy is not trusted to resolve it", 0), (&["--proxy-trusts-dns"], "words by the proxy", 1)]
    {
        let proxy = Http.start();
        let words = [&["--ignore-robots-txt"], trust].concat();
        let mut server = fetch(home.path(), &words, &[("HTTP_PROXY", format!("http://{}", proxy.host()))]);
        let text = page(&mut server, "http://far.test/x");
        server.ended();
        assert!(text.contains(says), "{trust:?}: {text}");
        assert_eq!(proxy.asked().len(), asked, "{trust:?}");
        // An address that is written out is no business of a proxy.
        let mut server = fetch(home.path(), &words, &[("ALL_PROXY", format!("http://{}", proxy.host()))]);
        let text = page(&mut server, "http://10.0.0.1/x");
        server.ended();
        assert!(text.contains("10.0.0.1 is in a private network"), "{trust:?}: {text}");
        assert_eq!(proxy.asked().len(), asked, "{trust:?}");
    }
}

#[test]
fn time_takes_the_zone_it_is_given_for_its_own() {
    let home = tempfile::tempdir().unwrap();
    for (words, env) in [
        (&["--local-timezone", "Asia/Kathmandu"][..], &[][..]),
        (&["--local-timezone=Asia/Kathmandu"], &[("LOCAL_TIMEZONE", "Europe/Oslo")]),
        (&[], &[("LOCAL_TIMEZONE", "Asia/Kathmandu")]),
        (&[], &[("TZ", "Asia/Kathmandu")]),
    ] {
        let mut server = Raw::start(published(home.path(), "time").args(words).envs(env.iter().copied()));
        let tools = server.ask("tools/list", json!({}))["result"]["tools"].clone();
        for (tool, argument) in
            [("get_current_time", "timezone"), ("convert_time", "source_timezone"), ("convert_time", "target_timezone")]
        {
            let tool = tools.as_array().unwrap().iter().find(|one| one["name"] == tool).unwrap();
            let about = tool["inputSchema"]["properties"][argument]["description"].as_str().unwrap();
            assert!(about.contains("Asia/Kathmandu") && !about.contains("Oslo"), "{words:?} {env:?}: {about}");
        }
        server.ended();
    }
    let (code, out, err) = finished(published(home.path(), "time").args(["--local-timezone", "Asia/Nowhere"]));
    assert_eq!((code, out.as_str(), err.contains("Asia/Nowhere")), (Some(2), "", true), "{err}");
}

#[test]
fn memory_keeps_its_graph_where_the_variable_says() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let elsewhere = home.join("elsewhere/memory.jsonl");
    std::fs::create_dir(home.join("elsewhere")).unwrap();
    let line = r#"{"type":"entity","name":"Ann","entityType":"person","observations":["sings"]}"#;
    let ann = json!({ "entities": [{ "name": "Ann", "entityType": "person", "observations": ["sings"] }] });
    for (value, file) in
        [(elsewhere.display().to_string(), elsewhere.clone()), ("here.jsonl".to_owned(), home.join("here.jsonl"))]
    {
        let start = || Raw::start(published(&home, "memory").env("MEMORY_FILE_PATH", &value));
        let mut server = start();
        assert_eq!(server.call("create_entities", ann.clone())["result"]["isError"], Value::Null);
        server.ended();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), line, "{value}");
        let mut server = start();
        let graph = server.call("read_graph", json!({}));
        assert_eq!(graph["result"]["structuredContent"]["entities"][0]["name"], "Ann", "{graph}");
        server.ended();
    }
}

#[test]
fn sequential_thinking_shows_thoughts_only_where_the_variable_asks_for_it() {
    let home = tempfile::tempdir().unwrap();
    let thought =
        json!({ "thought": "a first step", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2 });
    for (value, shown) in [(None, false), (Some("true"), false), (Some("TRUE"), false), (Some("false"), true)] {
        let mut serve = published(home.path(), "sequential-thinking");
        serve.envs(value.map(|value| ("DISABLE_THOUGHT_LOGGING", value)));
        let mut server = Raw::start(&mut serve);
        let answer = server.call("sequentialthinking", thought.clone());
        assert_eq!(answer["result"]["structuredContent"]["thoughtHistoryLength"], 1, "{answer}");
        // Thoughts are written beside the calls.
        assert!(!shown || server.says("a first step"), "{value:?}");
        assert_eq!(server.ended().contains("a first step"), shown, "{value:?}");
    }
}

#[test]
fn git_works_in_the_repository_it_is_given_and_in_no_other() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    for name in ["mine", "other"] {
        let made = Command::new("git").args(["init", "--quiet", name]).current_dir(&home).env("HOME", &home).status();
        assert!(made.unwrap().success());
    }
    let mine = home.join("mine").display().to_string();
    for words in [
        vec!["--repository", &mine],
        vec!["-r", &mine],
        vec!["--repository", &mine, "-v", "-v"],
        vec!["-vv", "-r", &mine],
        vec!["-v", "--repository", "mine"],
    ] {
        let mut server = Raw::start(published(&home, "git").args(&words));
        let status = server.call("git_status", json!({ "repo_path": mine }));
        let text = status["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("Repository status:\n"), "{words:?}: {text}");
        let other = server.call("git_status", json!({ "repo_path": home.join("other") }));
        assert_eq!(other["result"]["isError"], true, "{words:?}: {other}");
        server.ended();
    }
}

#[test]
fn sqlite_opens_the_file_it_is_given() {
    let home = tempfile::tempdir().unwrap();
    for words in [&["--db-path", "one.db"][..], &["--db-path=one.db"]] {
        let mut server = Raw::start(published(home.path(), "sqlite").args(words));
        let made = server.call("create_table", json!({ "query": "CREATE TABLE IF NOT EXISTS t(a)" }));
        assert_eq!(made["result"]["content"][0]["text"], "Table created successfully", "{made}");
        server.call("write_query", json!({ "query": "INSERT INTO t VALUES (1)" }));
        server.ended();
        assert!(std::fs::read(home.path().join("one.db")).unwrap().starts_with(b"SQLite format 3\0"));
    }
    let mut server = Raw::start(published(home.path(), "sqlite").args(["--db-path", "one.db"]));
    let count = server.call("read_query", json!({ "query": "SELECT count(*) AS n FROM t" }));
    assert_eq!(count["result"]["content"][0]["text"], r#"[{"n":2}]"#, "{count}");
    server.ended();
    assert!(!home.path().join("sqlite_mcp_server.db").exists());
}

#[cfg(feature = "postgres")]
#[test]
fn postgres_connects_to_the_address_it_is_given() {
    if std::env::var_os("LINCHPIN_POSTGRES_BIN").is_some_and(|said| said == "none") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let row = rows::rows(home.path()).into_iter().find(|row| row.name == "postgres").unwrap();
    let url = row.original[0].as_str();
    for (words, env) in [(vec![url], vec![]), (vec![], vec![("DATABASE_URL", url)])] {
        let mut server = Raw::start(published(home.path(), "postgres").args(&words).envs(env));
        let who = server.call("query", json!({ "sql": "SELECT current_user AS who, current_database() AS place" }));
        let rows: Value = serde_json::from_str(who["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(rows, json!([{ "who": "reader", "place": "postgres" }]));
        server.ended();
    }
    let (code, out, err) = finished(&mut published(home.path(), "postgres"));
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("Please provide a database URL as a command-line argument"), "{err}");
}

/// Variables of Brave's own server say where it serves and which tools it has.
#[cfg(feature = "brave-search")]
#[test]
fn brave_search_goes_by_the_variables_of_braves_server() {
    let home = tempfile::tempdir().unwrap();
    let mut program = published(home.path(), "brave-search");
    program.env("BRAVE_API_KEY", "k").env("BRAVE_MCP_ENABLED_TOOLS", "brave_news_search brave_web_search");
    let mut server = Raw::start(&mut program);
    let listed = server.ask("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["brave_web_search", "brave_news_search"]);
    server.ended();
    // A flag wins over them, also over those of one of several servers.
    let mut program = common::command(common::program(), home.path());
    program.args(["serve", "brave-search:", "time", "--enable-tools", "brave_image_search"]);
    program.env("BRAVE_API_KEY", "k").env("BRAVE_MCP_ENABLED_TOOLS", "brave_news_search");
    let mut server = Raw::start(&mut program);
    let listed = server.ask("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["brave_image_search"]);
    server.ended();
    let served = common::Served::start(
        published(home.path(), "brave-search")
            .env("BRAVE_API_KEY", "k")
            .env("BRAVE_MCP_TRANSPORT", "http")
            .env("BRAVE_MCP_PORT", "0")
            .env("BRAVE_MCP_ALLOWED_HOSTS", "search.example other.example"),
    );
    assert!(served.url.starts_with("http://"), "{}", served.url);
    let asked = |host: &str| {
        let address = served.url.split('/').nth(2).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    };
    for (host, refused) in [("search.example", false), ("other.example", false), ("evil.example", true)] {
        assert_eq!(asked(host).starts_with("HTTP/1.1 403"), refused, "{host}: {}", asked(host));
    }
}

/// Words in a wrong place, among them those that may hold a password, are refused without it.
#[cfg(feature = "postgres")]
#[test]
fn passwords_are_not_among_what_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let one = "postgres://a@h/d";
    for (words, said) in [
        (&["serve", "postgres", one, "postgres://me:hunter2@h/e"][..], "unexpected argument 'postgres://***@h/e'"),
        (&["serve", "postgres", one, "postgres://me@h/e?password=hunter2"], "unexpected argument 'postgres://***@h/e"),
        (&["serve", "postgres", "host=h", "password=hunter2"], "unexpected argument 'password=…'"),
        (&["serve", "postgres postgres://a@h/d postgres://me:hunter2@h/e", "time"], "postgres: unexpected argument"),
        (&["serve", "postgres postgres://me:hunter2@h/d 'x", "time"], "unclosed quote after `postgres`"),
        (&["serve", "postgres:", "--rate-limit", "http://me:hunter2@h"], "invalid value 'http://***@h'"),
        (&["serve", "postgres:", "--read-only=http://me:hunter2@h"], "unexpected value 'http://***@h'"),
        (&["serve", "everything", "--http=http://me:hunter2@h"], "http://***@h"),
        (&["postgres://me:hunter2@h/d"], "unrecognized subcommand 'postgres://***@h/d'"),
        (&["tools", "http://h:1", "http://me:hunter2@h"], "unexpected argument `http://***@h`"),
        (&["tools", "http://h:1", "--url", "http://me:hunter2@h"], "server given twice"),
        (&["tools", "--url", "http://h:1", "http://me:hunter2@h"], "server given twice"),
        (&["tools", "ftp://me:hunter2@h"], ""),
        (&["tools", "npx 'server --token hunter2"], "unclosed quote"),
        (&["tools", "http://h:1", "--header", "Bearer hunter2"], "invalid value for --header"),
    ] {
        let (code, out, err) = run(home.path(), words);
        assert!(code != Some(0) && out.is_empty() && err.contains(said), "{words:?}: {err}");
        assert!(!err.contains("hunter2"), "{words:?}: {err}");
    }
    let (code, _, err) = finished(published(home.path(), "postgres").args([one, "postgres://me:hunter2@h/e"]));
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("'postgres://***@h/e'") && !err.contains("hunter2"), "{err}");
}
