//! What a client's roots do, by every policy and in both eras: whether the client is asked, and what it can use then.
#![cfg(unix)]

use crate::common;

use common::World;
use linchpin::Server;
use linchpin::client::{Client, Connection};
use linchpin::transport::in_process;
use linchpin::types::root::Root;
use linchpin::types::version::Revision;
use linchpin_filesystem::{Filesystem, RootsPolicy};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// An allowed `ws` with `sub` in it, and `ws-evil` beside it; a file in each.
fn world(policy: Option<RootsPolicy>, configured: bool) -> World {
    let w = World::with(|config| {
        config.roots = policy;
        config.resources = true;
        if !configured {
            config.directories.clear();
        }
    });
    w.put("x", "x");
    w.put("sub/x", "x");
    std::fs::write(w.outside("ws-evil/x"), "x").expect("a file");
    w
}

/// A client with these roots (folders beside each other), and how often it was asked for them.
async fn connected(fs: &Filesystem, revision: Revision, roots: Option<Vec<String>>) -> (Connection, Arc<AtomicUsize>) {
    let server = fs.clone().add_to(Server::new("filesystem", "1")).expect("the configuration is fine");
    let asked = Arc::new(AtomicUsize::new(0));
    let client = Client::new("test", "1").revisions(&[revision]);
    let client = match roots {
        None => client,
        Some(roots) => {
            let root = |uri: String| -> Root { serde_json::from_value(json!({ "uri": uri })).expect("a root") };
            let roots: Vec<Root> = roots.into_iter().map(root).collect();
            let asked = Arc::clone(&asked);
            client.on_roots(move || {
                asked.fetch_add(1, Ordering::Relaxed);
                std::future::ready(roots.clone())
            })
        }
    };
    (client.connect(in_process(server)).await.expect("a connection"), asked)
}

/// The folders whose file a tool reads, which are those whose file can be read as a resource.
async fn usable(connection: &Connection, w: &World) -> String {
    let mut all = Vec::new();
    for folder in ["ws", "ws/sub", "ws-evil"] {
        let path = w.outside(folder).join("x").display().to_string();
        let result = connection.call("read_text_file", json!({ "path": path })).await.expect("an answer");
        let resource = connection.read(&format!("file://{path}")).await;
        assert_eq!(!result.is_error(), resource.is_ok(), "{folder}: {} and {resource:?}", result.text());
        if !result.is_error() {
            all.push(folder);
        }
    }
    all.join(" ")
}

#[tokio::test]
async fn every_policy_does_what_it_says_in_both_eras() {
    use RootsPolicy::{Ignore, Narrow, Replace, Use};
    // The policy, whether a directory is configured, the roots of the client (none, or one that does not say it has
    // any), whether it is asked, and what can be used.
    type Case = (Option<RootsPolicy>, bool, Option<&'static [&'static str]>, bool, &'static str);
    let cases: [Case; 30] = [
        // What nobody set: a client that nobody knows decides nothing.
        (None, true, Some(&["ws/sub"]), false, "ws ws/sub"),
        (None, true, Some(&["ws-evil"]), false, "ws ws/sub"),
        (None, true, None, false, "ws ws/sub"),
        (None, false, Some(&["ws/sub"]), false, ""),
        (None, false, None, false, ""),
        (Some(Ignore), true, Some(&["ws-evil"]), false, "ws ws/sub"),
        (Some(Ignore), false, Some(&["ws/sub"]), false, ""),
        (Some(Use), true, Some(&["ws-evil"]), false, "ws ws/sub"),
        (Some(Use), false, Some(&["ws/sub"]), true, "ws/sub"),
        (Some(Use), false, Some(&["ws/sub", "ws-evil"]), true, "ws/sub ws-evil"),
        (Some(Use), false, Some(&[]), true, ""),
        (Some(Use), false, None, false, ""),
        (Some(Use), true, None, false, "ws ws/sub"),
        (Some(Use), false, Some(&["none"]), true, ""),
        (Some(Narrow), true, Some(&["ws/sub"]), true, "ws/sub"),
        (Some(Narrow), true, Some(&["ws/sub", "ws-evil"]), true, "ws/sub"),
        (Some(Narrow), true, Some(&["ws"]), true, "ws ws/sub"),
        // The directory lies in the root.
        (Some(Narrow), true, Some(&[""]), true, "ws ws/sub"),
        (Some(Narrow), true, Some(&["ws-evil", "", "ws/sub"]), true, "ws ws/sub"),
        // Nothing is in both.
        (Some(Narrow), true, Some(&["ws-evil"]), true, ""),
        (Some(Narrow), true, Some(&["none"]), true, ""),
        (Some(Narrow), true, Some(&[]), true, ""),
        (Some(Narrow), true, None, false, "ws ws/sub"),
        (Some(Narrow), false, Some(&["ws/sub"]), true, ""),
        // As published: what is valid takes the place, and otherwise what is configured stays.
        (Some(Replace), true, Some(&["ws/sub", "ws-evil"]), true, "ws/sub ws-evil"),
        (Some(Replace), true, Some(&["none", "ws-evil"]), true, "ws-evil"),
        (Some(Replace), true, Some(&["none"]), true, "ws ws/sub"),
        (Some(Replace), true, Some(&[]), true, "ws ws/sub"),
        (Some(Replace), true, None, false, "ws ws/sub"),
        (Some(Replace), false, Some(&["ws-evil"]), true, "ws-evil"),
    ];
    for revision in ERAS {
        for (policy, configured, roots, is_asked, expected) in cases {
            let w = world(policy, configured);
            let uri = |folder: &&str| format!("file://{}", w.outside(folder).display());
            let roots = roots.map(|roots| roots.iter().map(uri).collect());
            let context = format!("{revision:?} {policy:?} configured={configured} {roots:?}");
            let (connection, asked) = connected(&w.fs, revision, roots).await;
            // Listing asks nothing.
            connection.tools().await.expect("tools");
            assert_eq!(asked.load(Ordering::Relaxed), 0, "{context}: asked before a call");
            assert_eq!(usable(&connection, &w).await, expected, "{context}");
            assert_eq!(asked.load(Ordering::Relaxed) > 0, is_asked, "{context}: asked");
            connection.close().await;
        }
    }
}

#[tokio::test]
async fn nothing_to_use_is_explained() {
    for revision in ERAS {
        for (policy, configured, words) in [
            (None, false, ["no allowed directories are configured", "mcp-server-filesystem DIR"]),
            (Some(RootsPolicy::Use), false, ["no allowed directories are configured", "a client that declares roots"]),
            (Some(RootsPolicy::Narrow), true, ["no root of this client is in an allowed directory", "--roots narrow"]),
        ] {
            let w = world(policy, configured);
            let (connection, _) = connected(&w.fs, revision, Some(Vec::new())).await;
            let refused = connection.call("read_text_file", json!({ "path": "x" })).await.expect("an answer");
            assert!(refused.is_error() && words.iter().all(|word| refused.text().contains(word)), "{}", refused.text());
            let listed = connection.call("list_allowed_directories", json!({})).await.expect("an answer");
            assert!(listed.text().starts_with("Allowed directories:\n(none: "), "{}", listed.text());
            connection.close().await;
        }
    }
}

/// The clock stands still: it moves on where everything waits for it.
#[tokio::test(start_paused = true)]
async fn a_client_that_has_roots_and_does_not_tell_them_may_use_nothing() {
    for (policy, configured) in
        [(Some(RootsPolicy::Narrow), true), (Some(RootsPolicy::Replace), true), (Some(RootsPolicy::Use), false)]
    {
        let w = world(policy, configured);
        let server = w.fs.clone().add_to(Server::new("filesystem", "1")).expect("the configuration is fine");
        let silent = Client::new("test", "1").revisions(&[Revision::V2025_11_25]).on_roots(std::future::pending);
        let connection = silent.connect(in_process(server)).await.expect("a connection");
        let why = "the roots of this client are unknown: the client did not answer roots/list within 10 s";
        for (tool, arguments) in [
            ("read_text_file", json!({ "path": w.at("x") })),
            ("write_file", json!({ "path": w.at("new"), "content": "x" })),
            ("list_allowed_directories", json!({})),
        ] {
            let refused = connection.call(tool, arguments).await.expect("an answer");
            assert!(refused.is_error() && refused.text().contains(why), "{policy:?} {tool}: {}", refused.text());
        }
        assert!(!w.path("new").exists());
        let refused = connection.read(&format!("file://{}", w.at("x"))).await.expect_err("nothing to read");
        assert!(refused.to_string().contains(why), "{policy:?}: {refused}");
        connection.close().await;
    }
}

/// A pattern below a configured directory hides the same file from a client that has a part of it as its root.
#[tokio::test]
async fn what_is_denied_stays_denied_whatever_the_roots_are() {
    for policy in [RootsPolicy::Ignore, RootsPolicy::Narrow, RootsPolicy::Replace] {
        let w = World::with(|config| {
            config.roots = Some(policy);
            config.deny = vec!["sub/secret".to_owned(), "sub/keys/*.pem".to_owned()];
        });
        for name in ["sub/secret", "sub/keys/a.pem", "sub/keys/a.pub"] {
            w.put(name, "words");
        }
        for root in ["", "sub", "sub/keys"] {
            let fs = w.fs.for_roots(vec![w.at(root)]).await.expect("its roots");
            for name in ["sub/secret", "sub/keys/a.pem"] {
                let read = common::call(&fs, "read_text_file", json!({ "path": w.at(name) })).await;
                assert!(read.is_err(), "{policy:?} {root}: {name} is read: {read:?}");
            }
            let read = common::call(&fs, "read_text_file", json!({ "path": w.at("sub/keys/a.pub") })).await;
            assert!(read.is_ok(), "{policy:?} {root}: {read:?}");
            for (tool, arguments) in [
                ("list_directory", json!({ "path": w.at("sub/keys") })),
                ("directory_tree", json!({ "path": w.at("sub/keys") })),
                ("search_files", json!({ "path": w.at("sub/keys"), "pattern": "**" })),
                ("fs_glob", json!({ "path": w.at("sub/keys"), "pattern": "**" })),
                ("fs_search_content", json!({ "path": w.at("sub/keys"), "pattern": "words" })),
            ] {
                let told = common::call(&fs, tool, arguments).await.unwrap_or_else(|e| panic!("{tool}: {e}"));
                let told = told["content"].as_str().unwrap_or_default();
                assert!(told.contains("a.pub") && !told.contains("a.pem"), "{policy:?} {root} {tool}: {told}");
            }
        }
    }
}

/// Roots are `file://` URIs or absolute paths, `~` among them; what is neither is skipped.
#[tokio::test]
async fn roots_are_uris_or_paths() {
    let w = world(Some(RootsPolicy::Use), false);
    std::fs::create_dir(w.path("a b%")).expect("a directory");
    let (plain, uri) = (w.at("sub"), format!("FILE://localhost{}", w.at("a%20b%25")));
    for (offered, expected) in [
        (plain.clone(), Some(w.at("sub"))),
        (uri, Some(w.at("a b%"))),
        (format!("{plain}/../sub/"), Some(w.at("sub"))),
        (format!("file://elsewhere{plain}"), None),
        (format!("https://example.com{plain}"), None),
        (format!("file://{}", w.at("%zz")), None),
        (format!("file://{}", w.at("x")), None),
        ("src".to_owned(), None),
        (String::new(), None),
    ] {
        let fs = w.fs.for_roots(vec![offered.clone()]).await.expect("its roots");
        assert_eq!(fs.has_directories(), expected.is_some(), "{offered}");
        if let Some(expected) = expected {
            let listed = common::call(&fs, "list_allowed_directories", json!({})).await.expect("a list");
            assert_eq!(listed["content"], format!("Allowed directories:\n{expected}"), "{offered}");
        }
    }
    // The published server takes `~`.
    let home = std::env::var("HOME").unwrap_or_default();
    let fs = w.fs.for_roots(vec!["~".to_owned()]).await.expect("its roots");
    assert_eq!(fs.has_directories(), std::path::Path::new(&home).is_dir());
}
