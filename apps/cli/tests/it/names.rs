//! The links under which the program answers as the published servers.
#![cfg(all(feature = "client", feature = "everything", feature = "filesystem", unix))]

use crate::common;

use common::{REVISIONS, Served, command, finished, names, over_http, over_pipe, program, run};
use std::os::unix::fs::symlink;
use std::path::Path;

fn listing(folder: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

#[test]
fn links_are_made_once_and_what_is_not_ours_stays() {
    let home = tempfile::tempdir().unwrap();
    // Neither is there yet.
    let bin = home.path().join("new/bin");
    let real = program().canonicalize().unwrap();
    let one = bin.join("mcp-server-everything");

    let (code, out, err) = run(home.path(), &["install-names", "new/bin", "everything"]);
    assert_eq!((code, out), (Some(0), format!("mcp-server-everything -> {}\n", real.display())), "{err}");
    assert!(err.contains("is not in your PATH") && err.contains(":\"$PATH\""), "{err}");
    assert_eq!(std::fs::read_link(&one).unwrap(), real);
    assert_eq!(listing(&bin), ["mcp-server-everything"], "only what was asked for, and nothing beside it");

    // Again: nothing changes.
    let (code, out, _) = run(home.path(), &["install-names", "new/bin", "mcp-server-everything", "everything"]);
    assert_eq!((code, out.as_str()), (Some(0), "mcp-server-everything is already installed\n"));

    // All of them, one of which is a file of somebody else's.
    let foreign = bin.join("mcp-server-filesystem");
    std::fs::write(&foreign, "mine").unwrap();
    let (code, out, err) = run(home.path(), &["install-names", "new/bin", "--all"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("mcp-server-everything is already installed\n"), "{out}");
    assert!(err.contains("mcp-server-filesystem not replaced: a file") && err.contains("hint: --force"), "{err}");
    assert_eq!(std::fs::read_to_string(&foreign).unwrap(), "mine");

    let (code, out, _) = run(home.path(), &["install-names", "new/bin", "--list"]);
    assert_eq!(code, Some(0));
    assert!(
        out.contains("mcp-server-filesystem  not a linchpin symlink: a file\n")
            && out.contains("mcp-server-everything -> "),
        "{out}"
    );

    // A link elsewhere, also one that leads nowhere, is not ours either; a directory stays in any case.
    std::fs::remove_file(&foreign).unwrap();
    symlink("/no/such/program", &foreign).unwrap();
    std::fs::remove_file(&one).unwrap();
    std::fs::create_dir(&one).unwrap();
    let (code, _, err) = run(home.path(), &["install-names", "new/bin", "filesystem", "everything"]);
    assert!(
        code == Some(1) && err.contains("a symlink to /no/such/program") && err.contains("2 names are already in use"),
        "{err}"
    );
    let (code, out, err) = run(home.path(), &["install-names", "new/bin", "filesystem", "everything", "--force"]);
    assert!(code == Some(1) && err.contains("mcp-server-everything not replaced: a directory"), "{err}");
    assert!(out.contains("(was a symlink to /no/such/program)"), "{out}");
    assert_eq!(std::fs::read_link(&foreign).unwrap(), real);
}

#[test]
fn relative_links_lead_to_the_program_and_replace_absolute_ones() {
    let home = tempfile::tempdir().unwrap();
    let (bin, app) = (home.path().join("bin"), home.path().join("app"));
    std::fs::create_dir_all(&app).unwrap();
    let moved = app.join("linchpin");
    std::fs::copy(program(), &moved).unwrap();
    let install =
        |more: &[&str]| finished(command(&moved, home.path()).args(["install-names", "bin", "everything"]).args(more));
    assert_eq!(install(&[]).0, Some(0));
    let (code, out, err) = install(&["--relative"]);
    assert_eq!((code, out.as_str()), (Some(0), "mcp-server-everything -> ../app/linchpin\n"), "{err}");
    assert_eq!(std::fs::read_link(bin.join("mcp-server-everything")).unwrap(), Path::new("../app/linchpin"));
    let (code, out, _) = finished(command(bin.join("mcp-server-everything"), home.path()).arg("--version"));
    assert_eq!((code, out.starts_with("mcp-server-everything ")), (Some(0), true));
    // Another linchpin is another program: its links are not ours.
    let (code, _, err) = run(home.path(), &["install-names", "bin", "everything"]);
    assert!(code == Some(1) && err.contains("a symlink to ../app/linchpin"), "{err}");
}

/// `--stdio`, a URL and a command: each bridge by what is its own.
#[test]
#[cfg(feature = "time")]
fn links_with_the_names_of_other_bridges_work() {
    let home = tempfile::tempdir().unwrap();
    let bridges = ["supergateway", "mcp-remote", "mcp-proxy"];
    let real = program().canonicalize().unwrap().display().to_string();
    let (code, out, err) = run(home.path(), &[&["install-names", "bin"][..], &bridges].concat());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, bridges.map(|name| format!("{name} -> {real}\n")).concat());
    let served = Served::start(command(program(), home.path()).args(["serve", "time", "--http", "127.0.0.1:0"]));
    let line = format!("{real} serve time");
    let rows: [(&str, &[&str], bool); 3] = [
        ("supergateway", &["--stdio", &line, "--outputTransport", "stdio"], true),
        ("mcp-remote", &[&served.url], true),
        ("mcp-proxy", &["--port", "0", "--", &real, "serve", "time"], false),
    ];
    for (name, words, is_pipe) in rows {
        let mut link = command(home.path().join("bin").join(name), home.path());
        link.args(words);
        let tools = if is_pipe {
            common::Raw::start(&mut link).ask("tools/list", serde_json::json!({})).to_string()
        } else {
            let bridge = Served::start(&mut link);
            run(home.path(), &["tools", &bridge.url]).1
        };
        assert!(tools.contains("get_current_time"), "{name}: {tools}");
    }
}

#[test]
fn mistakes_are_refused_in_words() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("a-file"), "mine").unwrap();
    symlink("/no/such/place", home.path().join("astray")).unwrap();
    for (given, said, then) in [
        (&["nowhere", "--list"][..], "nowhere does not exist", "without --list it is created"),
        (&["a-file"], "a-file is a file, not a directory", "~/.local/bin"),
        (&["a-file", "--list"], "a-file is a file, not a directory", "~/.local/bin"),
        (&["a-file/bin"], "a-file/bin cannot be a directory: a-file is a file", "~/.local/bin"),
        (&["a-file/bin", "--list"], "a-file/bin cannot be a directory: a-file is a file", "~/.local/bin"),
        (&["astray"], "astray is not a directory", "~/.local/bin"),
        (&["nowhere", "evrything"], "unknown server evrything", "did you mean everything?"),
        (&[".", "evrything"], "unknown server evrything", "did you mean everything?"),
        (&[".", "zebra"], "unknown server zebra", "servers: "),
        (&[".", "--all", "everything"], "cannot be used with", ""),
        (&[], "required arguments", "<DIR>"),
    ] {
        let (code, out, err) = run(home.path(), &[&["install-names"][..], given].concat());
        assert_eq!((code, out.as_str()), (Some(2), ""), "{given:?}: {err}");
        assert!(err.contains(said) && err.contains(then), "{given:?}: {err}");
    }
    assert_eq!(listing(home.path()), ["a-file", "astray"], "nothing was made");
    // A name that no server has.
    symlink(program(), home.path().join("mcp-server-zebra")).unwrap();
    let (code, out, err) = finished(&mut command(home.path().join("mcp-server-zebra"), home.path()));
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("no server named mcp-server-zebra") && err.contains("mcp-server-everything"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_everything_is_told_its_transport_by_a_word_and_its_port_by_the_environment() {
    let home = tempfile::tempdir().unwrap();
    let link = home.path().join("mcp-server-everything");
    symlink(program(), &link).unwrap();
    let connection = over_pipe(&link, home.path(), &["stdio".to_owned()], &[], REVISIONS[0]).await;
    assert_eq!(names(&connection).await[0], "echo");
    connection.close().await;
    for (word, sse) in [("streamableHttp", false), ("sse", true)] {
        let served = Served::start(command(&link, home.path()).arg(word).env("PORT", "0"));
        assert_eq!(served.said.contains("/sse\n"), sse, "{}", served.said);
        let connection = over_http(&served.url, REVISIONS[1]).await;
        assert_eq!(names(&connection).await[0], "echo");
        connection.close().await;
    }
    let (code, _, err) = finished(command(&link, home.path()).arg("streamablehttp"));
    assert!(code == Some(2) && err.contains("unexpected argument 'streamablehttp'"), "{err}");
}
