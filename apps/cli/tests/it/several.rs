//! Several servers in one process: what is understood, what is listed, what is refused.
#![cfg(all(feature = "client", feature = "filesystem", feature = "everything", unix))]

#[cfg(feature = "postgres")]
use crate::cluster;
use crate::common;

use common::{REVISIONS, Served, command, names, over_pipe, program, refused, run, words};
use std::path::Path;

/// A home with two folders and two files.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for (folder, text) in [("one", "first"), ("two", "second"), ("time", "third")] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
        std::fs::write(home.path().join(folder).join("a.txt"), text).unwrap();
    }
    home
}

async fn tools(home: &Path, given: &[&str]) -> Vec<String> {
    let all: Vec<String> = words(&["serve"]).into_iter().chain(words(given)).collect();
    let connection = over_pipe(program(), home, &all, &[], REVISIONS[1]).await;
    let names = names(&connection).await;
    connection.close().await;
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn what_means_one_server_and_what_means_several() {
    let home = home();
    for (given, first) in [
        // One: published names.
        (&["filesystem", "one"][..], "read_file"),
        (&["filesystem", "time"], "read_file"),
        (&["-v", "filesystem", "one"], "read_file"),
        (&["filesystem:one"], "read_file"),
        (&["filesystem:one", "filesystem:two"], "read_file"),
        (&["filesystem one"], "read_file"),
        (&["everything"], "echo"),
        (&["everything:"], "echo"),
        // Several, or a name of its own: prefixed names.
        (&["filesystem:one", "everything"], "fs_read_file"),
        (&["-v", "filesystem:one", "everything"], "fs_read_file"),
        (&["--read-only", "filesystem:one", "everything"], "fs_read_file"),
        (&["everything:", "filesystem:one"], "everything_echo"),
        (&["everything:", "--read-only", "filesystem:one"], "everything_echo"),
        (&["everything:", "--disable-tools", "everything_get-sum", "filesystem:one"], "everything_echo"),
        // A bare name behind an option for all.
        (&["filesystem:one", "--disable-tools", "fs_glob", "everything"], "fs_read_file"),
        (&["memory:", "everything"], "memory_create_entities"),
        (&["filesystem one", "everything"], "fs_read_file"),
        (&["notes=filesystem:one"], "notes_read_file"),
        (&["notes=filesystem:one", "filesystem:two"], "notes_read_file"),
        (&["filesystem:one", "everything", "--tool-prefix", "none"], "read_file"),
        (&["filesystem one --tool-prefix x.", "everything"], "x.read_file"),
        // A name wins over a prefix for all.
        (&["notes=filesystem:one", "everything", "--tool-prefix", "none"], "notes_read_file"),
    ] {
        let listed = tools(home.path(), given).await;
        assert_eq!(listed[0], first, "{given:?}: {listed:?}");
    }
}

/// As for a server that is alone: the variable of an option that was given is not read.
#[tokio::test(flavor = "multi_thread")]
async fn flags_and_names_win_over_variables() {
    let home = home();
    for (variable, value, given, has, lacks) in [
        ("ENABLE_TOOLS", "echo", &["everything"][..], "everything_echo", "everything_get-sum"),
        ("ENABLE_TOOLS", "echo", &["everything", "--enable-tools", "get-sum"], "everything_get-sum", "everything_echo"),
        ("ENABLE_TOOLS", "echo", &["everything", "--enable-tools", "read_file"], "fs_read_file", "everything_echo"),
        ("ENABLE_TOOLS", "echo", &["everything --enable-tools get-sum"], "everything_get-sum", "everything_echo"),
        ("DISABLE_TOOLS", "echo", &["everything"], "everything_get-sum", "everything_echo"),
        (
            "DISABLE_TOOLS",
            "echo",
            &["everything", "--disable-tools", "get-sum"],
            "everything_echo",
            "everything_get-sum",
        ),
        ("TOOLSETS", "answers", &["everything"], "everything_echo", "everything_toggle-simulated-logging"),
        ("TOOLSETS", "answers", &["everything", "--toolsets", "fs.read"], "fs_read_file", "everything_echo"),
        (
            "READ_ONLY",
            "false",
            &["everything", "--read-only"],
            "everything_echo",
            "everything_toggle-simulated-logging",
        ),
        ("TOOL_PREFIX", "x.", &["everything"], "x.echo", "everything_echo"),
        ("TOOL_PREFIX", "x.", &["everything", "--tool-prefix", "y."], "y.echo", "x.echo"),
        ("TOOL_PREFIX", "x.", &["everything", "--tool-prefix", "none"], "echo", "x.echo"),
        ("TOOL_PREFIX", "x.", &["everything --tool-prefix none"], "echo", "everything_echo"),
        ("TOOL_PREFIX", "x.", &["everything --tool-prefix none", "--tool-prefix", "y."], "echo", "y.echo"),
        ("TOOL_PREFIX", "x.", &["a=everything", "b=everything"], "a_echo", "x.echo"),
    ] {
        let all: Vec<String> = words(&["serve", "filesystem:one"]).into_iter().chain(words(given)).collect();
        let env = [(format!("MCP_EVERYTHING_{variable}"), value.to_owned())];
        let connection = over_pipe(program(), home.path(), &all, &env, REVISIONS[1]).await;
        let names = names(&connection).await;
        assert!(names.iter().any(|name| name == has), "{variable}={value} {given:?}: {names:?}");
        assert!(!names.iter().any(|name| name == lacks), "{variable}={value} {given:?}: {names:?}");
        connection.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bare_names_work_unlisted_while_one_server_has_them_and_otherwise_both_are_named() {
    let home = home();
    for revision in REVISIONS {
        let all = words(&["serve", "filesystem:one", "drafts=filesystem:two", "everything"]);
        let connection = over_pipe(program(), home.path(), &all, &[], revision).await;
        assert_eq!(connection.server().unwrap().name, "linchpin");
        let listed = names(&connection).await;
        for name in ["fs_read_text_file", "drafts_read_text_file", "everything_echo"] {
            assert!(listed.iter().any(|listed| listed == name), "{name} in {listed:?}");
        }
        for name in ["read_text_file", "echo"] {
            assert!(!listed.iter().any(|listed| listed == name), "{name} in {listed:?}");
        }
        let said = async |tool: &str, arguments| connection.call(tool, arguments).await.unwrap().text();
        let (one, two) = (home.path().join("one/a.txt"), home.path().join("two/a.txt"));
        assert_eq!(said("fs_read_text_file", serde_json::json!({ "path": one })).await, "first");
        assert_eq!(said("drafts_read_text_file", serde_json::json!({ "path": two })).await, "second");
        assert!(said("fs_read_text_file", serde_json::json!({ "path": two })).await.starts_with("Access denied"));
        assert_eq!(said("echo", serde_json::json!({ "message": "x" })).await, "Echo: x");
        let (code, message) = refused(&connection, "read_text_file").await;
        assert_eq!(code, -32602);
        for name in ["fs_read_text_file", "drafts_read_text_file"] {
            assert!(message.contains(name), "{message}");
        }
        let prompts: Vec<String> = connection.prompts().await.unwrap().iter().map(|p| p.name.clone()).collect();
        assert!(prompts.contains(&"everything_simple-prompt".to_owned()), "{prompts:?}");
        connection.prompt("simple-prompt", ()).await.unwrap();
        let told = connection.instructions().unwrap();
        for heading in
            ["# File system: names beginning with `fs_`", "with `drafts_`", "# Everything: names beginning with"]
        {
            assert_eq!(told.matches(heading).count(), 1, "{heading} in {told}");
        }
        connection.close().await;
    }
}

/// A tool with its server's own name keeps it.
#[cfg(all(feature = "fetch", feature = "sequential-thinking"))]
#[tokio::test(flavor = "multi_thread")]
async fn models_are_told_the_names_that_there_are() {
    let home = home();
    for (given, headings) in [
        (
            &["fetch:", "everything"][..],
            &["# Fetch: the name `fetch`\n", "# Everything: names beginning with `everything_`\n"][..],
        ),
        (
            &["sequential-thinking:", "web=fetch"],
            &["# Sequential thinking: the name `sequentialthinking`\n", "# Fetch: names beginning with `web_`\n"],
        ),
        (
            &["sequential-thinking --toolsets all", "everything"],
            &["# Sequential thinking: the name `sequentialthinking` and names beginning with `sequentialthinking_`\n"],
        ),
        (&["fetch:", "everything", "--tool-prefix", "none"], &["# Fetch\n", "# Everything\n"]),
    ] {
        let all: Vec<String> = words(&["serve"]).into_iter().chain(words(given)).collect();
        let connection = over_pipe(program(), home.path(), &all, &[], REVISIONS[1]).await;
        let told = connection.instructions().unwrap();
        for heading in headings {
            assert_eq!(told.matches(heading).count(), 1, "{heading} in {told}");
        }
        connection.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_after_the_words_are_shared_out() {
    let home = home();
    let both = ["filesystem:one", "everything"];
    for (flags, there, gone) in [
        (
            &["--read-only"][..],
            &["fs_read_file", "everything_echo"][..],
            &["fs_write_file", "everything_toggle-simulated-logging"][..],
        ),
        (
            &["--enable-tools", "echo,fs_read_file"],
            &["fs_read_file", "everything_echo"],
            &["fs_glob", "everything_get-sum"],
        ),
        (&["--enable-tools", "everything_echo"], &["everything_echo"], &["fs_read_file", "everything_get-sum"]),
        (
            &["--disable-tools", "read_file,everything_echo"],
            &["fs_glob", "everything_get-sum"],
            &["fs_read_file", "everything_echo"],
        ),
        (&["--toolsets", "everything"], &["everything_echo"], &["fs_read_file"]),
        (&["--toolsets", "everything.asks"], &["everything_get-roots-list"], &["fs_read_file", "everything_echo"]),
        (
            &["--toolsets", "fs", "--enable-tools", "echo"],
            &["fs_read_file", "everything_echo"],
            &["everything_get-sum"],
        ),
        (&["--tool-prefix", "none"], &["read_file", "echo"], &["fs_read_file", "everything_echo"]),
    ] {
        let listed = tools(home.path(), &[&both[..], flags].concat()).await;
        for (names, wanted) in [(there, true), (gone, false)] {
            for name in names {
                assert_eq!(listed.iter().any(|listed| listed == name), wanted, "{flags:?}: {name} in {listed:?}");
            }
        }
    }
    // Flags of one stay with it.
    let listed = tools(home.path(), &["filesystem one --read-only", "drafts=filesystem two --allow-delete"]).await;
    for (name, wanted) in
        [("fs_write_file", false), ("fs_delete", false), ("drafts_write_file", true), ("drafts_fs_delete", true)]
    {
        assert_eq!(listed.iter().any(|listed| listed == name), wanted, "{name} in {listed:?}");
    }
}

/// A name that two servers own is nobody's; once one of them does not offer its tool, it is the other's.
#[tokio::test(flavor = "multi_thread")]
async fn a_bare_name_is_of_the_one_server_that_offers_it() {
    let home = home();
    let fs_and_drafts = ["filesystem:one", "drafts=filesystem:two"];
    // Further words and flags, the bare name, and the folder of the server that answers to it; `None` is a refusal.
    let cases: [(&[&str], &str, Option<&str>); 8] = [
        (&fs_and_drafts, "write_file", None),
        (&["filesystem:one", "drafts=filesystem two --read-only"], "write_file", Some("one")),
        (&["filesystem one --read-only", "drafts=filesystem:two"], "write_file", Some("two")),
        (&["filesystem one --disable-tools write_file", "drafts=filesystem:two"], "write_file", Some("two")),
        (
            &["filesystem:one", "drafts=filesystem:two", "--disable-tools", "drafts_write_file"],
            "write_file",
            Some("one"),
        ),
        (&["filesystem:one", "drafts=filesystem:two", "--disable-tools", "fs.write_file"], "write_file", Some("two")),
        (&["filesystem one --toolsets read", "drafts=filesystem:two"], "write_file", Some("two")),
        // What both still offer stays ambiguous.
        (&["filesystem:one", "drafts=filesystem two --read-only"], "read_text_file", None),
    ];
    for revision in REVISIONS {
        for (given, name, owner) in &cases {
            let all: Vec<String> = words(&["serve"]).into_iter().chain(words(given)).collect();
            let connection = over_pipe(program(), home.path(), &all, &[], revision).await;
            let Some(owner) = owner else {
                let (code, message) = refused(&connection, name).await;
                assert_eq!(code, -32602, "{given:?}: {message}");
                for full in [format!("fs_{name}"), format!("drafts_{name}")] {
                    assert!(message.contains(&full), "{given:?}: {full} in {message}");
                }
                continue;
            };
            for folder in ["one", "two"] {
                let path = home.path().join(folder).join("new.txt");
                let arguments = serde_json::json!({ "path": path, "content": "x" });
                let said = connection.call(name, arguments).await.unwrap();
                let expected = folder == *owner;
                assert_eq!((path.exists(), said.is_error()), (expected, !expected), "{given:?}: {}", said.text());
                let _ = std::fs::remove_file(path);
            }
            connection.close().await;
        }
    }
}

/// Old names work wherever names do: in flags, in the environment, and in calls.
#[tokio::test(flavor = "multi_thread")]
async fn old_names_work_in_flags_and_in_calls() {
    let home = home();
    let sum = serde_json::json!({ "a": 1, "b": 2 });
    // The words, the names that are listed, and one to call.
    let cases: [(&[&str], &[&str], &str); 7] = [
        (&["everything", "--enable-tools", "add"], &["get-sum"], "add"),
        (&["everything", "--enable-tools", "everything.add,echo"], &["echo", "get-sum"], "get-sum"),
        (&["everything", "--enable-tools", "add", "--tool-prefix", "x."], &["x.get-sum"], "x.add"),
        (&["everything:", "filesystem:one", "--enable-tools", "add"], &["everything_get-sum"], "everything_add"),
        (&["everything:", "filesystem:one", "--enable-tools", "everything_add"], &["everything_get-sum"], "add"),
        (&["e=everything", "filesystem:one", "--enable-tools", "e.add"], &["e_get-sum"], "e_add"),
        (
            &["everything --enable-tools add", "filesystem one --enable-tools read_file"],
            &["everything_get-sum", "fs_read_file"],
            "add",
        ),
    ];
    for revision in REVISIONS {
        for (given, listed, called) in &cases {
            let all: Vec<String> = words(&["serve"]).into_iter().chain(words(given)).collect();
            let connection = over_pipe(program(), home.path(), &all, &[], revision).await;
            assert_eq!(names(&connection).await, *listed, "{given:?}");
            assert_eq!(connection.call(called, sum.clone()).await.unwrap().text(), "The sum of 1 and 2 is 3.");
            connection.close().await;
        }
        let env = [("MCP_EVERYTHING_DISABLE_TOOLS".to_owned(), "add,sampleLLM".to_owned())];
        let connection = over_pipe(program(), home.path(), &words(&["serve", "everything"]), &env, revision).await;
        let listed = names(&connection).await;
        assert!(listed.contains(&"echo".to_owned()), "{listed:?}");
        assert!(!listed.iter().any(|name| name == "get-sum" || name == "trigger-sampling-request"), "{listed:?}");
        assert_eq!(refused(&connection, "add").await.0, -32602);
        connection.close().await;
    }
    let (code, _, err) = run(home.path(), &["serve", "everything", "--enable-tools", "longRunningOperatoin"]);
    assert_eq!(code, Some(2), "{err}");
    let meant = "hint: Did you mean longRunningOperation, now named trigger-long-running-operation?";
    assert!(err.contains("Unknown tool: longRunningOperatoin") && err.contains(meant), "{err}");
}

/// A tool that needs a flag can be enabled by name where the flag was given, also beside other servers.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_needs_a_flag_is_enabled_beside_other_servers() {
    let home = home();
    for (given, listed) in [
        (
            &["filesystem one --allow-delete --enable-tools fs_delete", "everything --enable-tools echo"][..],
            "fs_delete",
        ),
        (
            &["everything --expose-env --enable-tools printEnv", "filesystem one --enable-tools read_file"],
            "everything_get-env",
        ),
        (&["everything --expose-env", "filesystem:one", "--enable-tools", "get-env"], "everything_get-env"),
    ] {
        let all = tools(home.path(), given).await;
        assert_eq!(all[0], listed, "{given:?}: {all:?}");
    }
    let (code, _, err) = run(home.path(), &["serve", "everything:", "filesystem:one", "--enable-tools", "get-env"]);
    assert!(code == Some(2) && err.contains("get-env is enabled but not allowed"), "{err}");
}

/// What the operator's own words make too long is told once, and nothing else is.
#[test]
fn a_name_that_hosts_may_refuse_is_told_at_the_start() {
    let home = home();
    let long = "trigger-long-running-operation";
    for (given, told) in [
        (&["everything"][..], None),
        (&["everything", "--tool-prefix", "auto"], None),
        (&["everything", "--tool-prefix", "ten.chars."], None),
        (&["everything", "--tool-prefix", "eleven.char"], Some(format!("eleven.char{long} has 41"))),
        (&["everything", "--tool-prefix", "eleven.char", "--disable-tools", "longRunningOperation"], None),
        (&["everything:", "filesystem:one"], None),
        (&["a-name-of-nineteen_=everything"], Some(format!("a-name-of-nineteen__{long} has 50"))),
        (
            &["a-name-of-nineteen_=everything", "another-name=filesystem:one"],
            Some(format!("a-name-of-nineteen__{long} has 50")),
        ),
        (
            &["everything:", "filesystem:one", "--tool-prefix", "a-prefix-of-twenty-1"],
            Some(format!("a-prefix-of-twenty-1{long} has 50")),
        ),
        // Its own prefix is none of the operator's making.
        (&["everything:", "short=filesystem:one"], None),
    ] {
        // Standard input is empty, so that a server that starts ends.
        let (code, _, err) = run(home.path(), &[&["serve"][..], given].concat());
        assert_eq!(code, Some(0), "{given:?}: {err}");
        assert_eq!(err.matches("warning: the tool name").count(), usize::from(told.is_some()), "{given:?}: {err}");
        assert!(told.is_none_or(|told| err.contains(&told)), "{given:?}: {err}");
    }
}

#[test]
fn what_is_not_understood_is_refused_in_words() {
    let home = home();
    for (given, status, said, then) in [
        (&["filesystem:one", "filesystm:two"][..], 2, "'filesystm:two'", "did you mean 'filesystem'?"),
        (&["filesystem:one", "zebra"], 2, "'zebra'", "servers: filesystem, "),
        (&["everything:", "."], 2, "unknown server '.'", "follows its server's name"),
        (
            &["everything:x", "filesystem:one"],
            2,
            "everything takes no value: everything:x",
            "linchpin serve everything --help",
        ),
        (&["everything:", "everything"], 2, "server given twice: `everything`", "one=everything:"),
        // A bare name is one server with its own command line.
        (&["everything", "everything"], 2, "unexpected argument 'everything'", "serve everything: everything"),
        (&["fetch", "--retries", "1", "memory:"], 2, "unexpected argument 'memory:'", "serve fetch: memory:"),
        (&["memory", "time"], 2, "`time` is the name of a server", "serve memory: time"),
        (&["git", "memory", "time"], 2, "`memory` is the name of a server", "serve git: memory time"),
        (&["git", "memory"], 2, "`memory` is the name of a server", "serve git ./memory"),
        (
            &["--read-only", "filesystem", "one"],
            2,
            "options of `filesystem` belong after its name",
            "linchpin serve filesystem --read-only one",
        ),
        (&["filesystem:one", "--read-only", "git", "."], 2, "options of `git` belong after its name", ""),
        (&["filesystem one --read-only", "filesystem:two"], 2, "server given twice: `fs`", "rename them"),
        (&["a=filesystem:one", "a=filesystem two"], 2, "server given twice: `a`", "rename them"),
        (&["a=filesystem:one", "a=everything"], 2, "server given twice: `a`", "one=everything"),
        (&["fs=everything", "filesystem:one"], 2, "server given twice: `fs`", "rename them"),
        (&["a=b=filesystem:one"], 2, "more than one name in", ""),
        (&["a.b=filesystem:one"], 2, "invalid server name: a.b", "at most 19"),
        (&["=filesystem:one"], 2, "invalid server name: ", "at most 19"),
        (&["filesystem 'one", "everything"], 2, "unclosed quote", ""),
        (
            &["filesystem --no-such", "everything"],
            2,
            "filesystem: unexpected argument '--no-such'",
            "linchpin serve filesystem --help",
        ),
        (
            &["filesystem:one", "everything", "--allow-delete"],
            2,
            "unexpected argument '--allow-delete'",
            "'git . --allow-remote'",
        ),
        (
            &["everything:", "--expose-env", "filesystem:one"],
            2,
            "unexpected argument '--expose-env'",
            "'git . --allow-remote'",
        ),
        (&["filesystem:one", "everything", "--enable-tools", "no_such"], 2, "Unknown tool: no_such", "Known: "),
        (&["filesystem:one", "everything", "--toolsets", "no_such"], 2, "Unknown tool set: no_such", "everything.asks"),
        (
            &["a=filesystem:one", "b=filesystem:two", "--enable-tools", "read_file"],
            2,
            "Several servers have a tool named read_file",
            "a_read_file or b_read_file",
        ),
        (
            &["filesystem one --tool-prefix x_", "b=filesystem two --tool-prefix x_"],
            2,
            "fs and b both have a tool named x_read_file",
            "remove --tool-prefix",
        ),
        (&["filesystem:/no/such/folder", "everything"], 2, "", "Name at least one existing"),
        (&["filesystem:one", "everything", "--http", "nonsense"], 2, "", "expected HOST:PORT"),
        (&[], 2, "no server given", "servers: filesystem, "),
        (&["--read-only"], 2, "no server given", "linchpin serve filesystem ~/notes"),
    ] {
        let all = [&["serve"][..], given].concat();
        let (code, out, err) = run(home.path(), &all);
        assert_eq!((code, out.as_str()), (Some(status), ""), "{given:?}: {err}");
        assert!(err.starts_with("error: ") && err.contains(said) && err.contains(then), "{given:?}: {err}");
    }
}

#[test]
fn what_is_to_be_pasted_names_every_server_with_paths_in_full() {
    let home = home();
    let real = home.path().canonicalize().unwrap();
    let all = [
        "serve",
        "filesystem one --deny *.key",
        "everything",
        "drafts=filesystem:two",
        "--read-only",
        "--http",
        "127.0.0.1:0",
    ];
    let served = Served::start(command(program(), home.path()).args(all).env("MCP_FS_DENY", "secret-word"));
    for part in [
        "linchpin is listening on http://127.0.0.1:",
        &format!("\"filesystem --deny '*.key' {}\"", real.join("one").display()),
        &format!("\"drafts=filesystem:{}\"", real.join("two").display()),
        "\"everything\"",
        "\"--read-only\"",
        "Set these environment variables there too: MCP_FS_DENY\n",
    ] {
        assert!(served.said.contains(part), "{part} in {}", served.said);
    }
    assert!(!served.said.contains("secret-word"), "{}", served.said);
    // A single one with a `:` is pasted so that it stays one.
    let served = Served::start(command(program(), home.path()).args(["serve", "everything:", "--http", "127.0.0.1:0"]));
    assert!(
        served.said.contains("everything is listening on") && served.said.contains("\"everything:\""),
        "{}",
        served.said
    );
    let served =
        Served::start(command(program(), home.path()).args(["serve", "everything:", "memory:", "--http=127.0.0.1:0"]));
    assert!(served.said.contains("\"everything:\",\n        \"memory\""), "{}", served.said);
}

/// What limits, records and adds to a server goes with it.
#[test]
fn what_is_to_be_pasted_has_the_options_of_all_servers() {
    let home = home();
    let real = home.path().canonicalize().unwrap();
    for servers in [&["everything"][..], &["everything:", "memory"], &["skills", "one"]] {
        let mut flags = vec!["--rate-limit", "60/min", "--audit", "audit.jsonl", "--http", "127.0.0.1:0", "--metrics"];
        if servers[0] != "skills" {
            flags.extend(["--skills", "one"]);
        }
        let served = Served::start(command(program(), home.path()).arg("serve").args(servers).args(flags));
        let audit = format!("\"--audit\",\n        \"{}\"", real.join("audit.jsonl").display());
        let skills = match servers[0] {
            "skills" => format!("\"skills\",\n        \"{}\"", real.join("one").display()),
            _ => format!("\"--skills\",\n        \"{}\"", real.join("one").display()),
        };
        for part in ["\"--rate-limit\",\n        \"60/min\"", &audit, &skills] {
            assert!(served.said.contains(part), "{servers:?}: {part} in {}", served.said);
        }
        // It is for HTTP only.
        assert!(!served.said.contains("--metrics"), "{}", served.said);
    }
    let words = ["serve", "everything", "--audit", "-", "--http", "127.0.0.1:0"];
    let served = Served::start(command(program(), home.path()).args(words));
    assert!(served.said.contains("\"--audit\",\n        \"-\""), "{}", served.said);
}

/// Two of a kind have tools, prompts and resources of their own.
#[cfg(all(feature = "sqlite", feature = "memory"))]
#[tokio::test(flavor = "multi_thread")]
async fn two_of_a_kind_with_names_share_nothing() {
    let home = home();
    let all = words(&["serve", "one=sqlite:a.db", "two=sqlite:b.db", "ann=memory:ann.jsonl", "bob=memory:bob.jsonl"]);
    for revision in REVISIONS {
        let connection = over_pipe(program(), home.path(), &all, &[], revision).await;
        let said = async |tool: &str, arguments| connection.call(tool, arguments).await.unwrap().text();
        let insight = serde_json::json!({ "insight": format!("found in {revision:?}") });
        said("one_append_insight", insight).await;
        let read = async |uri: &str| serde_json::to_string(&*connection.read(uri).await.unwrap().contents).unwrap();
        assert!(read("memo://one/insights").await.contains("found in"));
        assert!(!read("memo://two/insights").await.contains("found in"));
        said("one_write_query", serde_json::json!({ "query": "CREATE TABLE IF NOT EXISTS only_here (x)" })).await;
        assert!(said("one_list_tables", serde_json::json!({})).await.contains("only_here"));
        assert!(!said("two_list_tables", serde_json::json!({})).await.contains("only_here"));
        let ann = serde_json::json!({ "entities": [{ "name": "Ann", "entityType": "person", "observations": [] }] });
        said("ann_create_entities", ann).await;
        assert!(read("memory://ann/knowledge-graph").await.contains("Ann"));
        assert!(!read("memory://bob/knowledge-graph").await.contains("Ann"));
        let (code, message) = refused(&connection, "read_query").await;
        assert!(
            code == -32602 && message.contains("one_read_query") && message.contains("two_read_query"),
            "{message}"
        );
        connection.close().await;
    }
    assert!(home.path().join("a.db").exists() && !home.path().join("bob.jsonl").exists());
}

/// Two databases of one host are two servers with names; addresses are words as they are.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn two_databases_of_one_host_are_told_apart() {
    if std::env::var_os("LINCHPIN_POSTGRES_BIN").is_some_and(|said| said == "none") {
        // `cargo xtask test` could not install one, and says that it left this out.
        return;
    }
    let home = home();
    let cluster = cluster::Cluster::start();
    cluster.sql("create role reader login; create table only_here (x int); grant select on only_here to reader");
    cluster.sql("create database other");
    cluster.sql("\\connect other\ncreate table only_there (y int); grant select on only_there to reader");
    let one = cluster.url("reader");
    let two = format!("{}/other", one.strip_suffix("/postgres").unwrap());
    let all = words(&["serve", &one, &format!("shop={two}")]);
    let connection = over_pipe(program(), home.path(), &all, &[], REVISIONS[1]).await;
    let sql = serde_json::json!({ "sql": "SELECT current_database()" });
    let said = async |tool: &str| connection.call(tool, sql.clone()).await.unwrap().text();
    assert!(said("pg_query").await.contains("postgres") && said("shop_query").await.contains("other"));
    let (code, message) = refused(&connection, "query").await;
    assert!(code == -32602 && message.contains("pg_query") && message.contains("shop_query"), "{message}");
    connection.close().await;

    // The tables of both are resources, under the names that they were given.
    let all = words(&["serve", &format!("one={one}"), &format!("two={two}")]);
    for revision in REVISIONS {
        let connection = over_pipe(program(), home.path(), &all, &[], revision).await;
        let place =
            |name: &str, table: &str| format!("postgres://{name}/reader@127.0.0.1:{}/{table}/schema", cluster.port);
        let mut listed: Vec<String> =
            connection.resources().await.unwrap().items.iter().map(|resource| resource.uri.to_string()).collect();
        listed.sort();
        assert_eq!(listed, [place("one", "only_here"), place("two", "only_there")]);
        let templates = connection.resource_templates().await.unwrap().items;
        let mut templates: Vec<String> = templates.iter().map(|template| template.uri_template.to_string()).collect();
        templates.sort();
        assert_eq!(templates, [place("one", "{table}"), place("two", "{table}")]);
        for (name, table, column) in [("one", "only_here", "x"), ("two", "only_there", "y")] {
            let read = connection.read(&place(name, table)).await.unwrap();
            let contents = serde_json::to_string(&*read.contents).unwrap();
            assert!(contents.contains(&format!("\\\"{column}\\\"")), "{contents}");
        }
        for other in [place("one", "only_there"), place("two", "only_here")] {
            assert!(connection.read(&other).await.is_err(), "{other}");
        }
        connection.close().await;
    }
}

/// Two servers of the one kind whose resources are the same in every process.
#[tokio::test]
async fn resources_have_the_name_that_their_server_was_given() {
    let home = home();
    let all = words(&["serve", "one=everything", "two=everything"]);
    let connection = over_pipe(program(), home.path(), &all, &[], REVISIONS[0]).await;
    let read = async |uri: &str| serde_json::to_string(&*connection.read(uri).await.unwrap().contents).unwrap();
    for name in ["one", "two"] {
        for path in ["static/document/features.md", "dynamic/text/7", "dynamic/blob/7"] {
            let uri = format!("demo://{name}/resource/{path}");
            assert!(read(&uri).await.contains(&uri));
        }
        let said = async |tool: &str, args: serde_json::Value| {
            let answer = connection.call(format!("{name}_{tool}").as_str(), args).await.unwrap();
            assert!(!answer.is_error(), "{tool}");
            serde_json::to_string(&*answer.content().unwrap()).unwrap()
        };
        let session = format!("demo://{name}/resource/session/a.gz");
        let gzip = serde_json::json!({ "name": "a.gz", "data": format!("data:,{name}") });
        assert!(said("gzip-file-as-resource", gzip).await.contains(&session));
        assert!(read(&session).await.contains("application/gzip"));
        let links = said("get-resource-links", serde_json::json!({ "count": 2 })).await;
        assert_eq!(links.matches(&format!("demo://{name}/resource/dynamic/")).count(), 2, "{links}");
        let reference = said("get-resource-reference", serde_json::json!({ "resourceId": 3 })).await;
        assert!(reference.contains(&format!("demo://{name}/resource/dynamic/text/3")), "{reference}");
        let prompt = format!("{name}_resource-prompt");
        let about = serde_json::json!({ "resourceType": "Text", "resourceId": "5" });
        let asked = connection.prompt(&prompt, about).await.unwrap();
        let asked = serde_json::to_string(&asked.messages).unwrap();
        assert!(asked.contains(&format!("demo://{name}/resource/dynamic/text/5")), "{asked}");
    }
    connection.close().await;
}

/// Secrets of the command line are in nothing that is printed.
#[cfg(feature = "fetch")]
#[test]
fn secrets_are_not_among_what_is_to_be_pasted() {
    let home = home();
    let fetch = "fetch --header example.com:Authorization=the-secret --proxy-url http://me:the-secret@127.0.0.1:9";
    let served =
        Served::start(command(program(), home.path()).args(["serve", fetch, "everything", "--http", "127.0.0.1:0"]));
    assert!(served.said.contains("example.com:Authorization=SECRET"), "{}", served.said);
    assert!(served.said.contains("http://me:PASSWORD@127.0.0.1:9"), "{}", served.said);
    assert!(!served.said.contains("the-secret"), "{}", served.said);
}
