//! Fetch, pull and push, over directories and a git daemon on loopback.
#![cfg(unix)]

use crate::common;

use common::{Heard, Session, WHO_ARE_YOU, World, http, on};
use serde_json::json;
use std::process::{Child, Command};

/// `remote.git` is the remote of `r` and of `other`.
fn world() -> World {
    let w = World::new();
    w.git("r", &["clone", "-q", "--bare", ".", &w.at("remote.git")]);
    w.git("r", &["remote", "add", "origin", &w.at("remote.git")]);
    w.git("r", &["fetch", "-q", "origin"]);
    w.git("", &["clone", "-q", &w.at("remote.git"), "other"]);
    w
}

/// Somebody else pushes a commit.
fn meanwhile(w: &World, file: &str) {
    w.put(&format!("other/{file}"), "theirs\n");
    w.git("other", &["add", "."]);
    w.git("other", &["commit", "-qm", file]);
    w.git("other", &["push", "-q", "origin", "HEAD:main"]);
}

async fn session(w: &World, force: bool) -> Session {
    let mut config = w.config_of(&["r", "remote.git"]);
    config.allow_remote = true;
    config.allow_force = force;
    Session::of(config).await
}

/// A daemon that serves everything below the base directory; ended when dropped.
struct Daemon(Child, u16);

impl Daemon {
    fn of(w: &World) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let program = w.git("r", &["--exec-path"]) + "/git-daemon";
        // From here on its drop ends it.
        let daemon = Self(
            Command::new(program)
                .args(["--export-all", "--enable=receive-pack", "--reuseaddr", "--listen=127.0.0.1"])
                .arg(format!("--port={port}"))
                .arg(format!("--base-path={}", w.at("")))
                .env("HOME", w.at("home"))
                .stderr(std::process::Stdio::null())
                .spawn()
                .expect("git daemon"),
            port,
        );
        for _ in 0..500 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return daemon;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("the daemon does not listen");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn without_permission_the_tools_are_not_there() {
    let w = world();
    let s = w.open().await;
    let names: Vec<String> = s.client.tools().await.unwrap().iter().map(|tool| tool.name.to_string()).collect();
    for tool in ["git_fetch", "git_pull", "git_push"] {
        assert!(!names.iter().any(|name| name == tool), "{tool}");
        assert!(s.client.call(tool, on(&w.at("r"), json!({}))).await.is_err(), "{tool}");
    }
    let mut config = w.config();
    config.tools.enable = vec!["git_push".into()];
    let (git, _) = linchpin_git::Git::open(config).unwrap();
    let fault = git.add_to(linchpin::Server::new("x", "1")).map(drop).expect_err("it needs a flag");
    assert!(fault.to_string().contains("--allow-remote"), "{fault}");
}

async fn goes_around(w: &World, s: &Session) {
    let r = w.at("r");
    let (text, value) = s.good("git_fetch", on(&r, json!({}))).await;
    let url = w.git("r", &["remote", "get-url", "origin"]);
    assert_eq!((text, &value["updated"]), (format!("Fetched from origin ({url}): nothing new"), &json!([])));
    assert_eq!(value["urls"], json!([url]));
    meanwhile(w, "a.txt");
    let before = w.git("r", &["rev-parse", "HEAD"]);
    let (_, value) = s.good("git_fetch", on(&r, json!({}))).await;
    let theirs = w.git("other", &["rev-parse", "HEAD"]);
    assert_eq!(value["updated"], json!([{"name": "refs/remotes/origin/main", "from": before, "to": theirs}]));
    assert_eq!(w.git("r", &["rev-parse", "HEAD"]), before, "the branch stays");
    let (_, value) = s.good("git_pull", on(&r, json!({}))).await;
    assert_eq!((&value["status"], &value["head"]), (&json!("done"), &json!(theirs)));
    assert_eq!(s.good("git_pull", on(&r, json!({"ff_only": true}))).await.1["status"], "up_to_date");
    w.put("r/mine.txt", "mine\n");
    s.text("git_add", on(&r, json!({"files": ["mine.txt"]}))).await;
    s.text("git_commit", on(&r, json!({"message": "mine"}))).await;
    meanwhile(w, "b.txt");
    let text = s.bad("git_push", on(&r, json!({}))).await;
    assert!(text.starts_with("origin refused: refs/heads/main [rejected]") && text.contains("git_pull"), "{text}");
    s.bad("git_pull", on(&r, json!({"ff_only": true}))).await;
    s.text("git_pull", on(&r, json!({}))).await;
    assert_eq!(w.git("r", &["log", "-1", "--format=%s"]), "Merge branch 'main' of remote 'origin' into main");
    w.git("r", &["tag", "v9"]);
    let (text, value) = s.good("git_push", on(&r, json!({"tag": "v9", "set_upstream": true}))).await;
    assert_eq!(text, format!("Pushed to origin ({url})\nrefs/heads/main updated\nrefs/tags/v9 new"));
    assert_eq!(value["refs"][0]["status"], "updated");
    assert_eq!(w.git("remote.git", &["rev-parse", "main"]), w.git("r", &["rev-parse", "main"]));
    assert_eq!(w.git("r", &["rev-parse", "--abbrev-ref", "main@{upstream}"]), "origin/main");
    let (_, value) = s.good("git_status", on(&r, json!({}))).await;
    assert_eq!((&value["upstream"], &value["ahead"], &value["behind"]), (&json!("origin/main"), &json!(0), &json!(0)));
    let text = s.text("git_branch", on(&r, json!({"branch_type": "remote"}))).await;
    assert!(text.contains("  origin/main"), "{text}");
    w.git("other", &["push", "-q", "origin", "HEAD~1:refs/heads/gone"]);
    s.text("git_fetch", on(&r, json!({"branch": "gone"}))).await;
    w.git("other", &["push", "-q", "origin", ":gone"]);
    let (_, value) = s.good("git_fetch", on(&r, json!({"prune": true}))).await;
    assert!(
        value["updated"]
            .as_array()
            .unwrap()
            .iter()
            .any(|u| u["name"] == "refs/remotes/origin/gone" && u["to"].is_null()),
        "{value}"
    );
}

#[tokio::test]
async fn commits_go_around_through_a_directory() {
    let w = world();
    goes_around(&w, &session(&w, false).await).await;
    let w = world();
    w.git("r", &["remote", "set-url", "origin", &format!("file://{}", w.at("remote.git"))]);
    goes_around(&w, &session(&w, false).await).await;
}

#[tokio::test]
async fn commits_go_around_through_a_daemon() {
    let w = world();
    let daemon = Daemon::of(&w);
    w.git("r", &["remote", "set-url", "origin", &format!("git://127.0.0.1:{}/remote.git", daemon.1)]);
    let mut config = w.config();
    config.allow_remote = true;
    goes_around(&w, &Session::of(config).await).await;
}

#[tokio::test]
async fn commits_of_a_remote_are_replaced_only_with_permission_and_never_blindly() {
    let w = world();
    meanwhile(&w, "a.txt");
    w.git("r", &["pull", "-q", "origin", "main"]);
    w.git("r", &["commit", "-q", "--amend", "-m", "rewritten"]);
    let theirs = w.git("remote.git", &["rev-parse", "main"]);
    let r = w.at("r");
    let s = session(&w, false).await;
    s.bad("git_push", on(&r, json!({}))).await;
    let text = s.bad("git_push", on(&r, json!({"force": true}))).await;
    assert!(text.contains("not allowed on this server") && text.contains("--allow-force"), "{text}");
    for refspec in ["+main", "+refs/heads/main", "main:main", ":main", "+refs/heads/main:refs/heads/main"] {
        s.bad("git_push", on(&r, json!({"branch": refspec}))).await;
    }
    w.git("r", &["config", "remote.origin.push", "+refs/heads/*:refs/heads/*"]);
    w.git("r", &["config", "remote.origin.mirror", "true"]);
    s.bad("git_push", on(&r, json!({}))).await;
    w.git("r", &["config", "--unset", "remote.origin.mirror"]);
    assert_eq!(w.git("remote.git", &["rev-parse", "main"]), theirs, "nothing was replaced");
    let s = session(&w, true).await;
    meanwhile(&w, "b.txt");
    let newer = w.git("remote.git", &["rev-parse", "main"]);
    let text = s.bad("git_push", on(&r, json!({"force": true}))).await;
    assert!(text.contains("stale info"), "{text}");
    assert_eq!(w.git("remote.git", &["rev-parse", "main"]), newer, "what others pushed meanwhile is safe");
    s.text("git_fetch", on(&r, json!({}))).await;
    let text = s.text("git_push", on(&r, json!({"force": true}))).await;
    assert!(text.contains("refs/heads/main forced"), "{text}");
    assert_eq!(w.git("remote.git", &["log", "-1", "--format=%s", "main"]), "rewritten");
}

#[tokio::test]
async fn only_configured_remotes_that_lead_to_allowed_places_are_used() {
    let w = world();
    w.git("r", &["clone", "-q", "--bare", ".", &w.at("outside.git")]);
    let evil = w.script("evil", "mark");
    // What an unwary check would take for the remote, and what git would open instead.
    std::fs::create_dir_all(w.path("r/guess")).unwrap();
    w.git("r", &["clone", "-q", "--bare", ".", "guess.git"]);
    std::fs::create_dir_all(w.path("r/%2e%2e")).unwrap();
    w.git("r", &["clone", "-q", "--bare", ".", "%2e%2e/outside.git"]);
    let urls = [
        ("outside", w.at("outside.git"), "outside the allowed repositories"),
        ("outfile", format!("file://{}", w.at("outside.git")), "outside the allowed repositories"),
        ("relative", "../outside.git".to_owned(), "outside the allowed repositories"),
        ("ext", format!("ext::{evil} x"), "The URL scheme of the remote"),
        ("escaped", format!("file://{}", w.at("r/%2e%2e/outside.git")), "The URL scheme of the remote"),
        ("hostless", format!("file:/{}", w.at("remote.git")), "The URL scheme of the remote"),
        ("home", "~/x".to_owned(), "The URL scheme of the remote"),
        ("guessed", w.at("r/guess"), "not the top level of a repository"),
        ("fd", "fd::7".to_owned(), "The URL scheme of the remote"),
        ("exturl", format!("ext::{evil}://x/y"), "The URL scheme of the remote"),
        ("ftp", "ftp://127.0.0.1:9/x".to_owned(), "The URL scheme of the remote"),
        ("dash", "-oProxyCommand=touch mark:x".to_owned(), ""),
        ("sshdash", format!("ssh://-oProxyCommand={evil}/x"), ""),
    ];
    for (name, url, _) in &urls {
        w.git("r", &["config", &format!("remote.{name}.url"), url]);
    }
    w.git("r", &["config", "remote.rewritten.url", "short:x"]);
    w.git("r", &["config", &format!("url.{}.insteadOf", w.at("outside.git")), "short:x"]);
    w.git("r", &["config", "remote.pushes.url", &w.at("remote.git")]);
    w.git("r", &["config", "remote.pushes.pushurl", &w.at("outside.git")]);
    w.git("r", &["config", "protocol.allow", "always"]);
    let s = session(&w, false).await;
    let r = w.at("r");
    for (name, _, words) in &urls {
        for tool in ["git_fetch", "git_pull", "git_push"] {
            let text = s.bad(tool, on(&r, json!({"remote": name}))).await;
            assert!(text.contains(words), "{tool} {name}: {text}");
        }
    }
    assert!(
        s.bad("git_fetch", on(&r, json!({"remote": "rewritten"}))).await.contains("outside the allowed repositories")
    );
    assert!(s.bad("git_push", on(&r, json!({"remote": "pushes"}))).await.contains("outside the allowed repositories"));
    s.text("git_fetch", on(&r, json!({"remote": "pushes"}))).await;
    for remote in [
        w.at("remote.git"),
        format!("file://{}", w.at("remote.git")),
        "https://u:secret@127.0.0.1:9/x".into(),
        "nope".into(),
    ] {
        for tool in ["git_fetch", "git_pull", "git_push"] {
            let text = s.bad(tool, on(&r, json!({"remote": remote}))).await;
            assert!(text.starts_with("Unknown remote") && !text.contains("secret"), "{text}");
        }
    }
    assert!(!w.has("mark") && !w.has("r/mark"));
}

#[tokio::test]
async fn a_directory_that_serves_as_remote_runs_nothing() {
    let w = world();
    for hook in [
        "pre-receive",
        "update",
        "post-receive",
        "post-update",
        "reference-transaction",
        "proc-receive",
        "push-to-checkout",
    ] {
        w.script(&format!("remote.git/hooks/{hook}"), "mark");
    }
    w.git("r", &["commit", "-q", "--allow-empty", "-m", "x"]);
    let s = session(&w, false).await;
    s.text("git_push", on(&w.at("r"), json!({}))).await;
    s.text("git_fetch", on(&w.at("r"), json!({}))).await;
    assert!(!w.has("mark"));
    w.git("r", &["commit", "-q", "--allow-empty", "-m", "y"]);
    w.git("r", &["push", "-q", "origin", "main"]);
    assert!(w.has("mark"), "the trap of this test does not work");
    w.git("remote.git", &["config", "core.fsmonitor", &w.at("evil")]);
    let text = s.bad("git_push", on(&w.at("r"), json!({}))).await;
    assert!(text.contains("core.fsmonitor"), "{text}");
}

#[tokio::test]
async fn the_repository_does_not_decide_where_traffic_goes() {
    let heard = Heard::with(|_| Vec::new());
    let w = world();
    w.git("r", &["remote", "set-url", "origin", "http://u:secret@127.0.0.1:9/x"]);
    let s = session(&w, false).await;
    let text = s.bad("git_fetch", on(&w.at("r"), json!({}))).await;
    assert!(!text.contains("secret"), "{text}");
    for (key, value) in [
        ("http.proxy", heard.url()),
        ("http.http://127.0.0.1:9/.proxy", heard.url()),
        ("remote.origin.proxy", heard.url()),
        ("http.sslVerify", "false".into()),
        ("http.cookieFile", w.at("cookies")),
    ] {
        w.git("r", &["config", key, &value]);
        for tool in ["git_fetch", "git_pull", "git_push"] {
            let text = s.bad(tool, on(&w.at("r"), json!({}))).await;
            assert!(
                text.contains("redirects network traffic") && text.to_lowercase().contains(&key.to_lowercase()),
                "{tool} {key}: {text}"
            );
        }
        assert_eq!(heard.taken(), Vec::<String>::new(), "{key}");
        if key == "http.proxy" {
            let _ = w.try_git("r", &["fetch", "origin"]);
            assert!(!heard.taken().is_empty(), "the trap of this test does not work");
        }
        w.git("r", &["config", "--unset", key]);
    }
}

#[tokio::test]
async fn checking_out_never_fetches_submodules() {
    // As CVE-2024-32002.
    let w = world();
    w.git("other", &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &w.at("remote.git"), "sub"]);
    w.git("other", &["commit", "-qm", "sub"]);
    w.git("other", &["push", "-q", "origin", "HEAD:withsub"]);
    w.git("r", &["config", "submodule.recurse", "true"]);
    w.git("r", &["config", "submodule.active", "."]);
    w.git("r", &["config", "fetch.recurseSubmodules", "true"]);
    w.git("r", &["config", "protocol.file.allow", "always"]);
    let s = session(&w, false).await;
    s.text("git_fetch", on(&w.at("r"), json!({}))).await;
    s.text("git_checkout", on(&w.at("r"), json!({"branch_name": "origin/withsub"}))).await;
    assert!(w.has("r/sub") && !w.has("r/sub/f.txt") && !w.has("r/.git/modules"));
}

#[tokio::test]
async fn helpers_of_the_users_own_configuration_still_work() {
    let heard = Heard::with(|request| {
        let known = request.contains("Authorization: Basic");
        http(if known { "404 Not Found" } else { "401 Unauthorized" }, WHO_ARE_YOU)
    });
    let w = world();
    let url = heard.url();
    let script = w.path("home/helper");
    w.script("home/helper", "unused");
    std::fs::write(&script, "#!/bin/sh\n[ \"$1\" = get ] && printf 'username=me\\npassword=secret\\n'\nexit 0\n")
        .unwrap();
    w.git("r", &["config", "--global", &format!("credential.{url}.helper"), &w.at("home/helper")]);
    let evil = w.script("evil", "mark");
    w.git("r", &["config", "credential.helper", &evil]);
    w.git("r", &["config", &format!("credential.{url}.helper"), &evil]);
    w.git("r", &["remote", "set-url", "origin", &format!("{url}/x")]);
    let text = session(&w, false).await.bad("git_fetch", on(&w.at("r"), json!({}))).await;
    assert!(!text.contains("secret"), "{text}");
    assert!(!w.has("mark"), "the repository's helper does not run");
    assert!(
        heard.taken().iter().any(|request| request.contains("Authorization: Basic bWU6c2VjcmV0")),
        "not in the user's"
    );
}

#[tokio::test]
async fn remotes_are_only_on_hosts_that_were_named_when_some_were() {
    let heard = Heard::with(|request| {
        // To the same port under another name.
        let host = request.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
        let port = host.rsplit(':').next().unwrap_or_default();
        http("302 Found", &format!("Location: http://localhost:{port}/y/info/refs?service=git-upload-pack\r\n"))
    });
    let port = heard.port;
    let w = world();
    w.git("r", &["config", &format!("url.http://localhost:{port}/.insteadOf"), "short:"]);
    let mut config = w.config_of(&["r", "remote.git"]);
    config.allow_remote = true;
    config.remote_hosts = vec!["127.0.0.1".into(), "example.COM".into()];
    let s = Session::of(config).await;
    let r = w.at("r");
    let refused = [
        format!("http://localhost:{port}/x"),
        format!("http://127.0.0.1@localhost:{port}/x"),
        format!("http://127.0.0.1:x@localhost:{port}/x"),
        format!("http://example.com%2f@localhost:{port}/x"),
        format!("http://example.com\\@localhost:{port}/x"),
        format!("http://example.com#@localhost:{port}/x"),
        format!("http://localhost:{port}?example.com/x"),
        format!("git://localhost:{port}/x"),
        format!("ssh://git@localhost:{port}/x"),
        "git@localhost:x".into(),
        "short:x".into(),
        "https://example.com.localhost/x".into(),
    ];
    for url in &refused {
        w.git("r", &["remote", "set-url", "origin", url]);
        for tool in ["git_fetch", "git_pull", "git_push"] {
            let text = s.bad(tool, on(&r, json!({}))).await;
            assert!(
                text.contains("a host that is not allowed") && text.contains("--remote-host"),
                "{tool} {url}: {text}"
            );
        }
    }
    assert_eq!(heard.taken(), Vec::<String>::new());
    // A host that was named is asked once; its redirect to another is not followed.
    w.git("r", &["remote", "set-url", "origin", &format!("http://u:p@127.0.0.1:{port}/x")]);
    let text = s.bad("git_fetch", on(&r, json!({}))).await;
    assert!(!text.contains("not allowed on") && !text.contains("u:p"), "{text}");
    assert_eq!(heard.taken().len(), 1);
    // Directories have no host; they must be inside, as always.
    w.git("r", &["remote", "set-url", "origin", &w.at("remote.git")]);
    s.text("git_fetch", on(&r, json!({}))).await;
    // Control: without a list the redirect is followed.
    w.git("r", &["remote", "set-url", "origin", &format!("http://127.0.0.1:{port}/x")]);
    session(&w, false).await.bad("git_fetch", on(&r, json!({}))).await;
    assert!(heard.taken().len() > 1);
}
