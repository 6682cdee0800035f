//! Every server through the program itself: over a pipe and over HTTP, in both eras, under both of its names.
#![cfg(all(feature = "client", unix))]

use crate::common;
use crate::rows;

use common::{REVISIONS, Served, command, finished, names, over_http, over_pipe, program, refused, run, words};
use linchpin::client::Connection;
use rows::{Row, published_name, rows};

/// Lists the tools, calls the common one, and hears of one that is not there.
async fn works(connection: &Connection, row: &Row, tool: &str, how: &str) {
    let listed = names(connection).await;
    assert!(listed.iter().any(|name| name == tool), "{} {how}: {tool} is not among {listed:?}", row.name);
    let answer =
        connection.call(tool, row.arguments.clone()).await.unwrap_or_else(|e| panic!("{} {how}: {e}", row.name));
    let text = answer.text();
    assert!(answer.is_error() == row.fails && text.contains(&row.says), "{} {how}: {text}", row.name);
    let tools = connection.tools().await.unwrap();
    let schema = tools.iter().find(|one| one.name == tool).and_then(|one| one.output_schema.as_ref());
    if let Some(schema) = schema.filter(|_| !row.fails) {
        let schema: serde_json::Value = serde_json::from_str(schema.get()).unwrap();
        let structured = answer.result().unwrap().structured_content.expect("structured content");
        let structured: serde_json::Value = serde_json::from_str(structured.get()).unwrap();
        let wrong: Vec<String> =
            jsonschema::validator_for(&schema).unwrap().iter_errors(&structured).map(|e| e.to_string()).collect();
        assert!(wrong.is_empty(), "{} {how}: {wrong:?}", row.name);
    }
    let (code, message) = refused(connection, "no_such_tool").await;
    assert!(code == -32602 && message.contains("no_such_tool"), "{} {how}: {code} {message}", row.name);
    connection.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_server_answers_over_a_pipe_and_over_http_in_both_eras() {
    let home = tempfile::tempdir().unwrap();
    for row in rows(home.path()) {
        let all: Vec<String> = words(&["serve", row.name]).into_iter().chain(row.words()).collect();
        for revision in REVISIONS {
            let connection = over_pipe(program(), home.path(), &all, &row.env, revision).await;
            assert_eq!(connection.revision(), revision);
            assert_eq!(connection.server().unwrap().name, format!("linchpin-{}", row.name));
            works(&connection, &row, row.tool, "over a pipe").await;
        }
        let served = Served::start(
            command(program(), home.path()).args(&all).args(["--http", "127.0.0.1:0"]).envs(row.env.iter().cloned()),
        );
        for revision in REVISIONS {
            let connection = over_http(&served.url, revision).await;
            works(&connection, &row, row.tool, "over HTTP").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_server_answers_under_its_published_name_with_the_published_arguments() {
    let home = tempfile::tempdir().unwrap();
    let names = home.path().join("names");
    std::fs::create_dir(&names).unwrap();
    let (code, out, err) = run(home.path(), &["install-names", "names"]);
    assert_eq!(code, Some(0), "{out}{err}");
    for row in rows(home.path()) {
        let link = names.join(row.published());
        for revision in REVISIONS {
            let connection = over_pipe(&link, home.path(), &row.words(), &row.env, revision).await;
            works(&connection, &row, row.tool, "under its published name").await;
        }
        let (code, out, err) = finished(command(&link, home.path()).arg("--help"));
        assert_eq!(code, Some(0), "{err}");
        assert!(out.starts_with(&format!("Examples:\n  {}", row.published())), "{out}");
        let (code, out, _) = finished(command(&link, home.path()).arg("--version"));
        let version = format!("{} {}", row.published(), env!("CARGO_PKG_VERSION"));
        assert!(code == Some(0) && out.starts_with(&version), "{out}");
        assert_eq!(out.contains("(time zones 20"), row.name == "time", "{out}");
        let (code, _, err) = finished(command(&link, home.path()).arg("--no-such-flag"));
        assert!(code == Some(2) && err.contains("--no-such-flag"), "{err}");
    }
}

/// Published names that say already whose they are, not as their first word: they get no prefix.
const OWN_NAMES: [&str; 2] = ["get_sentry_issue", "retrieve_from_aws_kb"];

#[tokio::test(flavor = "multi_thread")]
async fn all_servers_in_one_process_answer_under_both_names_of_their_tools() {
    let home = tempfile::tempdir().unwrap();
    let rows = rows(home.path());
    let mut all = words(&["serve"]);
    all.extend(rows.iter().map(|row| match row.ours.as_slice() {
        [] => row.word.clone(),
        _ => format!("{} {}", row.name, row.words().join(" ")),
    }));
    let env: Vec<(String, String)> = rows.iter().flat_map(|row| row.env.iter().cloned()).collect();
    for revision in REVISIONS {
        let connection = over_pipe(program(), home.path(), &all, &env, revision).await;
        let listed = names(&connection).await;
        for row in &rows {
            let full = match row.tool.strip_prefix(row.prefix) {
                Some("") => row.tool.to_owned(),
                Some(rest) if rest.starts_with('_') => row.tool.to_owned(),
                _ if OWN_NAMES.contains(&row.tool) => row.tool.to_owned(),
                _ => format!("{}_{}", row.prefix, row.tool),
            };
            for tool in [full.as_str(), row.tool] {
                let answer =
                    connection.call(tool, row.arguments.clone()).await.unwrap_or_else(|e| panic!("{tool}: {e}"));
                assert!(answer.text().contains(&row.says), "{tool}: {}", answer.text());
            }
            assert!(listed.contains(&full), "{full} in {listed:?}");
            assert!(
                listed.iter().filter(|name| *name == row.tool).count() == usize::from(full == row.tool),
                "{}",
                row.tool
            );
        }
        for name in &listed {
            let prefixed = |row: &Row| name == row.prefix || name.starts_with(&format!("{}_", row.prefix));
            let own = OWN_NAMES.contains(&name.as_str());
            assert!(own || rows.iter().any(prefixed), "{name} has no server's name before it");
        }
        connection.close().await;
    }
}

#[test]
fn every_server_of_the_help_text_has_a_row_here() {
    let home = tempfile::tempdir().unwrap();
    let (_, out, _) = run(home.path(), &["serve", "--help"]);
    let listed: Vec<&str> = out
        .lines()
        .skip_while(|line| *line != "Servers:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    // Skills are no tools, and have tests of their own.
    let tried: Vec<&str> = rows(home.path()).iter().map(|row| row.name).chain(["skills"]).collect();
    assert_eq!(listed, tried);
}

/// Every tool sets all four hints, and has a name that hosts can still put something before.
#[tokio::test(flavor = "multi_thread")]
async fn every_tool_sets_all_hints_and_has_a_name_that_hosts_take() {
    let home = tempfile::tempdir().unwrap();
    for row in rows(home.path()) {
        let all: Vec<String> = words(&["serve", row.name]).into_iter().chain(row.words()).collect();
        let connection = over_pipe(program(), home.path(), &all, &row.env, REVISIONS[1]).await;
        for tool in connection.tools().await.unwrap().iter() {
            let hints = tool.annotations.clone().unwrap_or_default();
            let hints = [hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint];
            assert!(hints.iter().all(Option::is_some), "{}: {hints:?}", tool.name);
            assert!(tool.name.len() <= 40, "{}", tool.name);
            // What answers data answers it as data too; the server for trying out clients shows both kinds.
            assert!(tool.output_schema.is_some() || row.name == "everything", "{}", tool.name);
            assert!(tool.description.as_ref().is_some_and(|d| !d.is_empty()), "{}", tool.name);
        }
        connection.close().await;
    }
}

/// What `linchpin inspect` says of the servers of others, it would say of ours.
#[test]
fn inspect_finds_nothing_wrong_with_our_own_servers() {
    let home = tempfile::tempdir().unwrap();
    for row in rows(home.path()) {
        let program = program().display().to_string();
        let given = row.env.iter().flat_map(|(name, value)| ["-e".to_owned(), format!("{name}={value}")]);
        let all: Vec<String> = words(&["inspect", "--json"])
            .into_iter()
            .chain(given)
            .chain(words(&["--", &program, "serve", row.name]))
            .chain(row.words())
            .collect();
        let (code, out, err) = finished(command(&program, home.path()).args(&all).envs(row.env.iter().cloned()));
        assert_eq!(code, Some(0), "{}: {err}", row.name);
        let told: serde_json::Value = serde_json::from_str(&out).unwrap();
        let warnings = told["warnings"].as_array().unwrap();
        // An optional argument is of two types, its own and null: true of all that derive their schemas.
        let other: Vec<_> = warnings.iter().filter(|warning| warning["code"] != "schema-not-portable").collect();
        assert!(other.is_empty(), "{}: {other:?}", row.name);
    }
}

/// What is wrong at the start is said in a line, and hosts see it in the exit code.
#[test]
fn servers_that_cannot_start_say_why() {
    let home = tempfile::tempdir().unwrap();
    let names = home.path().join("names");
    std::fs::create_dir(&names).unwrap();
    assert_eq!(run(home.path(), &["install-names", "names"]).0, Some(0));
    for (name, given) in [
        ("filesystem", &["/no/such/folder"][..]),
        ("git", &["--repository", "/no/such/folder"]),
        ("git", &["--repository", "/usr"]),
        ("fetch", &["--proxy-url", "no address"]),
        ("memory", &["--file", "/dev/null/x"]),
        ("sqlite", &["--db-path", "/dev/null/x"]),
        ("postgres", &[]),
        ("time", &["--local-timezone", "Nowhere/Else"]),
        ("brave-search", &[]),
        ("gitlab", &[]),
        ("slack", &[]),
        ("google-maps", &[]),
        ("google-drive", &[]),
        ("google-drive", &["auth"]),
        ("google-drive", &["elsewhere"]),
        ("github", &["--repo", "no-owner"]),
        ("sentry", &[]),
        ("everart", &[]),
        ("aws-kb", &["--region", "no region"]),
        ("aws-kb", &["--region", "eu-central-1"]),
        ("browser", &["--executable", "/no/such/browser"]),
        ("everything", &["--enable-tools", "get-env"]),
        ("filesystem", &["--roots", "all", "/"]),
        ("git", &["--roots", "replace"]),
        ("sqlite", &["--roots", "use"]),
    ] {
        let link = names.join(published_name(name));
        if !link.exists() {
            continue;
        }
        let (code, out, err) = finished(command(&link, home.path()).args(given));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{name} {given:?}: {err}");
        assert!(err.starts_with("error: ") && err.lines().count() <= 3, "{name} {given:?}: {err}");
    }
}

/// Over HTTP the client may be anybody, and would name the whole disk as its root.
#[cfg(all(feature = "filesystem", feature = "git"))]
#[test]
fn over_http_a_server_does_not_start_before_it_is_told_what_it_may_reach() {
    let home = tempfile::tempdir().unwrap();
    let start = |given: &[&str], env: Option<(&str, &str)>| {
        let (given, http) = (words(given), ["--http", "127.0.0.1:0"]);
        Served::try_start(command(program(), home.path()).arg("serve").args(given).args(http).envs(env))
    };
    for (given, env, names) in [
        (&["filesystem"][..], None, "a directory"),
        (&["filesystem", "--sse"], None, "a directory"),
        (&["filesystem", "--read-only", "--resources"], None, "a directory"),
        (&["filesystem", "--roots", "ignore"], None, "a directory"),
        (&["filesystem", "--roots", "narrow"], None, "a directory"),
        (&["filesystem"], Some(("MCP_FS_ROOTS", "narrow")), "a directory"),
        (&["git"], None, "a repository"),
        (&["git", "--roots", "narrow"], None, "a repository"),
        (&["everything:", "filesystem", "--sse"], None, "a directory"),
        (&["filesystem:.", "git"], None, "a repository"),
        (&["filesystem:.", "own=filesystem"], None, "a directory"),
    ] {
        let said = start(given, env).map(|served| served.said.clone()).expect_err("it does not start");
        assert!(
            said.contains("error: over HTTP, ") && said.contains(&format!("hint: pass {names}: ")),
            "{given:?}: {said}"
        );
    }
    // Explicit options are followed, with a warning where they open the disk.
    for (given, env, warns) in [
        (&["filesystem", "."][..], None, false),
        (&["filesystem", ".", "--roots", "narrow"], None, false),
        (&["filesystem", ".", "--roots", "use"], None, false),
        (&["filesystem"], Some(("MCP_FS_DIRS", "/usr")), false),
        (&["filesystem", "--roots", "use"], None, true),
        (&["filesystem", ".", "--roots", "replace"], None, true),
        (&["filesystem"], Some(("MCP_FS_ROOTS", "replace")), true),
        (&["git", "--allow-any"], None, false),
        (&["git", "--roots", "use"], None, true),
        (&["filesystem:.", "git --roots use"], None, true),
    ] {
        let served = start(given, env).unwrap_or_else(|said| panic!("{given:?}: {said}"));
        let warning = "can access everything you can";
        assert_eq!(served.said.contains(warning), warns, "{given:?}: {}", served.said);
    }
}

/// Who started a server says by its roots what it is for, as with the published servers.
#[cfg(all(feature = "filesystem", feature = "git"))]
#[tokio::test(flavor = "multi_thread")]
async fn over_a_pipe_the_roots_of_the_client_are_used_where_nothing_is_named() {
    let home = tempfile::tempdir().unwrap();
    let rows = rows(home.path());
    let root = serde_json::json!({ "uri": format!("file://{}", home.path().display()) });
    for row in rows.iter().filter(|row| ["filesystem", "git"].contains(&row.name)) {
        for revision in REVISIONS {
            let child = linchpin::transport::Child::new(program()).args(["serve", row.name]);
            let client = common::host(revision).roots(vec![serde_json::from_value(root.clone()).unwrap()]);
            let connection = client.connect(child).await.unwrap();
            let answer = connection.call(row.tool, row.arguments.clone()).await.unwrap();
            assert!(answer.text().contains(&row.says), "{}: {}", row.name, answer.text());
            connection.close().await;
        }
    }
}

/// The flags about tools mean the same to all.
#[tokio::test(flavor = "multi_thread")]
async fn every_server_understands_the_shared_flags() {
    let home = tempfile::tempdir().unwrap();
    for row in rows(home.path()) {
        let with = |more: &[&str]| -> Vec<String> {
            words(&["serve", row.name]).into_iter().chain(row.words()).chain(words(more)).collect()
        };
        let connection = over_pipe(program(), home.path(), &with(&["--read-only"]), &row.env, REVISIONS[0]).await;
        for tool in connection.tools().await.unwrap().iter() {
            let reads = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint);
            assert_eq!(reads, Some(true), "{} with --read-only", tool.name);
        }
        connection.close().await;
        let connection =
            over_pipe(program(), home.path(), &with(&["--tool-prefix", "auto"]), &row.env, REVISIONS[1]).await;
        let all = names(&connection).await;
        for name in &all {
            let own = OWN_NAMES.contains(&name.as_str());
            assert!(own || *name == row.prefix || name.starts_with(&format!("{}_", row.prefix)), "{name}");
        }
        connection.close().await;
        // Beside a tool set, tools are enabled in addition to it.
        let env: Vec<_> = row.env.iter().filter(|(name, _)| !name.ends_with("_TOOLSETS")).cloned().collect();
        let connection =
            over_pipe(program(), home.path(), &with(&["--enable-tools", row.tool]), &env, REVISIONS[1]).await;
        assert_eq!(names(&connection).await, [row.tool], "{}", row.name);
        connection.close().await;
        let connection =
            over_pipe(program(), home.path(), &with(&["--disable-tools", row.tool]), &row.env, REVISIONS[0]).await;
        let rest = names(&connection).await;
        assert!(rest.len() + 1 == all.len() && !rest.contains(&row.tool.to_owned()), "{}: {rest:?}", row.name);
        connection.close().await;
        for (flag, said) in [
            ("--enable-tools", "Unknown tool: no_such"),
            ("--disable-tools", "Unknown tool: no_such"),
            ("--toolsets", "Unknown tool set: no_such"),
        ] {
            let (code, out, err) =
                finished(command(program(), home.path()).args(with(&[flag, "no_such"])).envs(row.env.iter().cloned()));
            assert!(code.is_some_and(|code| code > 0) && out.is_empty(), "{} {flag}: {err}", row.name);
            assert!(err.contains(said) && err.contains("hint: Known: "), "{} {flag}: {err}", row.name);
        }
    }
}

/// A server of which nothing is left starts, and says why; one that was left out by naming others' tools does not.
#[cfg(all(feature = "git", feature = "sqlite", feature = "sequential-thinking", feature = "filesystem"))]
#[test]
fn a_server_without_any_tool_says_so_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    let said = |words: &[&str]| {
        let mut raw = common::Raw::start(command(program(), home.path()).arg("serve").args(words));
        let listed = raw.ask("tools/list", serde_json::json!({}))["result"]["tools"].as_array().map_or(0, Vec::len);
        (listed, raw.ended())
    };
    let git = ["git", "--allow-any"];
    // What is typed, and what is said of it.
    let cases: [(&[&str], &str); 8] = [
        (
            &["sequential-thinking", "--read-only"],
            "Sequential thinking offers no tools: --read-only excludes sequentialthinking; remove it, or pass read-only \
             tools to --enable-tools: sequentialthinking_export",
        ),
        (
            &["sequential-thinking", "--disable-tools", "sequentialthinking"],
            "Sequential thinking offers no tools: --enable-tools, --disable-tools and --toolsets select none",
        ),
        (
            &[&git[..], &["--allow-remote", "--read-only", "--enable-tools", "git_push"]].concat(),
            "Git offers no tools: --read-only excludes git_push; remove it",
        ),
        (
            &[&git[..], &["--read-only", "--enable-tools", "git_push"]].concat(),
            "Git offers no tools: --read-only excludes git_push; remove it",
        ),
        (
            &[&git[..], &["--toolsets", "remote"]].concat(),
            "Git offers no tools: the selected tools require --allow-remote",
        ),
        (
            &["sqlite", ":memory:", "--read-only", "--enable-tools", "write_query"],
            "SQLite offers no tools: --read-only excludes write_query; remove it, or pass read-only tools to \
             --enable-tools: read_query, ",
        ),
        (
            &["one=sqlite::memory:", "git --allow-any", "--read-only", "--enable-tools", "one_write_query,git_log"],
            "SQLite (one) offers no tools: --read-only excludes write_query",
        ),
        (&["sqlite :memory: --disable-tools read_query", "--toolsets", "read", "--disable-tools", "list_tables"], ""),
    ];
    for (words, wanted) in cases {
        let (listed, err) = said(words);
        if wanted.is_empty() {
            assert!(listed > 0 && !err.contains("offers no tool"), "{words:?}: {err}");
            continue;
        }
        assert!(err.contains(&format!("warning: {wanted}")), "{words:?}: {err}");
        assert_eq!(err.matches("offers no tool").count(), 1, "{words:?}: {err}");
        assert_eq!(listed == 0, words[0] != "one=sqlite::memory:", "{words:?}");
    }
    for words in [
        &["sequential-thinking"][..],
        &["sequential-thinking", "--read-only", "--toolsets", "all"],
        // What is named is the other one's.
        &["sqlite::memory:", "sequential-thinking", "--enable-tools", "read_query"],
        &["sqlite::memory:", "sequential-thinking", "--toolsets", "sqlite"],
    ] {
        let (listed, err) = said(words);
        assert!(listed > 0 && !err.contains("offers no tool"), "{words:?}: {err}");
    }
}

/// What is too long for one message never reaches a server; the answer says what to do, and the next call works.
#[cfg(feature = "memory")]
#[test]
fn a_message_that_is_too_long_is_answered_with_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let mut raw = common::Raw::start(command(program(), home.path()).args(["serve", "memory", "--file", "m.jsonl"]));
    let with = |observation: &str| {
        let entity = serde_json::json!({ "name": "Ann", "entityType": "person", "observations": [observation] });
        serde_json::json!({ "entities": [entity] })
    };
    let error = raw.call("create_entities", with(&"x".repeat(17 << 20)))["error"].clone();
    assert_eq!(error["code"], -32600, "{error}");
    let wanted = "the message is longer than the limit of 16777216 bytes; send less at once, in several messages";
    assert_eq!(error["message"], wanted);
    let result = raw.call("create_entities", with("sings"))["result"].clone();
    assert!(result["isError"] != true && result.to_string().contains("sings"), "{result}");
    raw.ended();
}
