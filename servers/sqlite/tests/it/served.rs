//! What clients are told: lists, hints, the memo, the prompt, the resources, in both eras.

use crate::common;

use common::{World, connect, host, legacy, sql};
use linchpin::client::{Change, ChangeFilter, ErrorKind};
use linchpin_kit::ToolPrefix;
use linchpin_sqlite::{Config, SERVICE, Sqlite};
use serde_json::{Value, json};
use std::time::Duration;

fn memory() -> Config {
    Config::default().with(|config| config.db_path = ":memory:".into())
}

/// Name, required and other arguments, writes, destructive, idempotent.
const LISTED: &[(&str, &str, &str, bool, bool, bool)] = &[
    ("read_query", "query", "params", false, false, true),
    ("write_query", "query", "params", true, true, false),
    ("create_table", "query", "", true, false, false),
    ("list_tables", "", "include_views cursor", false, false, true),
    ("describe_table", "table_name", "cursor", false, false, true),
    ("append_insight", "insight", "", true, false, false),
    ("sqlite_schema", "", "table cursor", false, false, true),
    ("sqlite_explain", "query", "", false, false, true),
];

#[tokio::test]
async fn the_published_tools_come_first_with_their_arguments_and_all_hints() {
    for client in [host(), legacy()] {
        let tools = connect(memory(), client).await.tools().await.unwrap();
        assert!(tools.refused.is_empty());
        assert_eq!(tools.len(), LISTED.len(), "importing needs its flag");
        for (tool, (name, required, others, writes, destructive, idempotent)) in tools.iter().zip(LISTED) {
            assert_eq!(tool.name, *name);
            let tool = serde_json::to_value(tool).unwrap();
            assert_eq!(
                tool["annotations"],
                json!({"readOnlyHint": !writes, "destructiveHint": destructive, "idempotentHint": idempotent, "openWorldHint": false}),
                "{name}"
            );
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let schema = &tool["inputSchema"];
            let listed = |value: &Value| -> Vec<String> {
                value.as_array().into_iter().flatten().map(|v| v.as_str().unwrap().to_owned()).collect()
            };
            assert_eq!(listed(&schema["required"]), words(required), "{name}");
            let empty = serde_json::Map::new();
            let mut properties: Vec<String> =
                schema["properties"].as_object().unwrap_or(&empty).keys().cloned().collect();
            let mut expected = [words(required), words(others)].concat();
            properties.sort();
            expected.sort();
            assert_eq!(properties, expected, "{name}");
            assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        }
    }
}

#[tokio::test]
async fn answers_fit_their_output_schemas() {
    // The client checks results against the schemas that were listed.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.csv"), "x,y\n1,a\n").unwrap();
    let config = memory().with(|config| config.import_dir = Some(dir.path().into()));
    let client = connect(config, host().check_results(true)).await;
    client.tools().await.unwrap();
    for (tool, args) in [
        ("create_table", sql("CREATE TABLE t(a INTEGER PRIMARY KEY, b)")),
        ("write_query", sql("INSERT INTO t(b) VALUES (x'00'), (1.5), (NULL), ('x'), (9e999)")),
        ("write_query", sql("UPDATE t SET b = b RETURNING *")),
        ("write_query", sql("PRAGMA user_version")),
        ("read_query", sql("SELECT * FROM t")),
        ("list_tables", json!({"include_views": true})),
        ("describe_table", json!({"table_name": "t"})),
        ("append_insight", json!({"insight": "x"})),
        ("sqlite_schema", json!({})),
        ("sqlite_explain", sql("SELECT * FROM t")),
        ("sqlite_import_csv", json!({"table": "i", "file": "a.csv"})),
    ] {
        let result = client.call(tool, args).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
        assert!(!result.is_error() && result.structured().is_some(), "{tool}: {}", result.text());
    }
}

#[tokio::test]
async fn wrong_calls_are_errors_of_the_kind_they_should_be() {
    for client in [host(), legacy()] {
        let client = connect(memory(), client).await;
        let error = client.call("nosuch", json!({"x": 1})).await.unwrap_err();
        assert_eq!(error.rpc().map(|rpc| rpc.code), Some(-32602), "{error}");
        for (tool, args) in [
            ("read_query", json!({})),
            ("read_query", json!({"query": 7})),
            ("describe_table", json!({"table": "t"})),
            ("append_insight", json!({"insight": null})),
        ] {
            let result = client.call(tool, args).await.unwrap();
            assert!(result.is_error(), "{tool}");
        }
    }
}

#[tokio::test]
async fn the_memo_reads_as_published_and_tells_of_its_updates() {
    for client in [host(), legacy()] {
        let client = connect(memory(), client).await;
        let read = async || client.read("memo://insights").await.unwrap().text();
        assert_eq!(read().await, "No business insights have been discovered yet.");
        let mut changes = client.listen(ChangeFilter::new().resource("memo://insights")).await.unwrap();
        let text = client.call("append_insight", json!({"insight": "one"})).await.unwrap().text();
        assert_eq!(text, "Insight added to memo");
        let heard = tokio::time::timeout(Duration::from_secs(20), changes.next()).await.expect("in time");
        assert_eq!(heard, Some(Change::Updated("memo://insights".into())));
        assert_eq!(read().await, "📊 Business Intelligence Memo 📊\n\nKey Insights Discovered:\n\n- one");
        client.call("append_insight", json!({"insight": "two"})).await.unwrap();
        assert_eq!(
            read().await,
            "📊 Business Intelligence Memo 📊\n\nKey Insights Discovered:\n\n- one\n- two\nSummary:\nAnalysis has revealed 2 key \
             business insights that suggest opportunities for strategic optimization and growth."
        );
        let memo: Value = serde_json::from_str(client.read("memo://insights").await.unwrap().as_json()).unwrap();
        assert_eq!(memo["contents"][0]["mimeType"], "text/plain");
        assert_eq!(client.read("memo://other").await.unwrap_err().kind(), ErrorKind::Rpc);
    }
}

#[tokio::test]
async fn a_memo_file_keeps_insights_and_what_it_does_not_understand_stays() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("memo.jsonl");
    let config = || memory().with(|config| config.memo_file = Some(file.clone()));
    let client = connect(config(), host()).await;
    client.call("append_insight", json!({"insight": "a \"quoted\"\nline"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"insight\":\"a \\\"quoted\\\"\\nline\"}\n");
    std::fs::write(&file, format!("{}nonsense\n\n", std::fs::read_to_string(&file).unwrap())).unwrap();
    let (db, warnings) = Sqlite::open(config()).unwrap();
    assert!(
        warnings.len() == 1 && warnings[0].ends_with("memo.jsonl:2 is not an insight and is ignored"),
        "{warnings:?}"
    );
    let server = db.add_to(linchpin::Server::new("sqlite", "1")).unwrap();
    let client = host().connect(linchpin::transport::in_process(server)).await.unwrap();
    client.call("append_insight", json!({"insight": "second"})).await.unwrap();
    let text = client.read("memo://insights").await.unwrap().text();
    assert!(text.contains("- a \"quoted\"\nline\n- second\nSummary:\nAnalysis has revealed 2 key"), "{text}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("nonsense\n\n{\"insight\":\"second\"}\n"));
}

#[tokio::test]
async fn a_memo_that_cannot_be_kept_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let config = memory().with(|config| config.memo_file = Some(dir.path().join("gone/memo.jsonl")));
    let client = connect(config, host()).await;
    assert!(client.call("append_insight", json!({"insight": "x"})).await.unwrap().is_error());
    assert_eq!(client.read("memo://insights").await.unwrap().text(), "No business insights have been discovered yet.");
}

#[tokio::test]
async fn the_demonstration_is_about_the_topic_and_fits_what_may_be_done() {
    let client = connect(memory(), host()).await;
    let prompts = client.prompts().await.unwrap();
    let prompt = serde_json::to_value(&prompts[0]).unwrap();
    assert_eq!(prompt["name"], "mcp-demo");
    assert_eq!((&prompt["arguments"][0]["name"], &prompt["arguments"][0]["required"]), (&json!("topic"), &json!(true)));
    let text = client.prompt("mcp-demo", json!({"topic": "a bicycle shop"})).await.unwrap().as_json().to_owned();
    assert!(
        text.contains("a bicycle shop") && text.contains("create_table") && text.contains("memo://insights"),
        "{text}"
    );
    assert!(client.prompt("mcp-demo", json!({})).await.is_err());
    let mut config = memory();
    config.tools.read_only = true;
    let client = connect(config, host()).await;
    let text = client.prompt("mcp-demo", json!({"topic": "cats"})).await.unwrap().as_json().to_owned();
    assert!(!text.contains("create_table") && text.contains("can only be read"), "{text}");
}

#[tokio::test]
async fn the_schema_is_a_resource_whole_and_by_table() {
    for client in [host(), legacy()] {
        let client = connect(memory(), client).await;
        for query in ["CREATE TABLE t(a)", "CREATE INDEX i ON t(a)", "CREATE TABLE \"a/b ?#%\"(x)"] {
            client.call("write_query", sql(query)).await.unwrap();
        }
        let uris: Vec<String> = client.resources().await.unwrap().iter().map(|r| r.uri.clone()).collect();
        assert_eq!(uris, ["memo://insights", "sqlite:///schema"]);
        let templates = client.resource_templates().await.unwrap();
        assert_eq!(templates[0].uri_template, "sqlite:///{table}/schema");
        let read = async |uri: &str| client.read(uri).await.map(|contents| contents.text());
        assert_eq!(
            read("sqlite:///schema").await.unwrap(),
            "CREATE TABLE t(a);\nCREATE INDEX i ON t(a);\nCREATE TABLE \"a/b ?#%\"(x);\n"
        );
        assert_eq!(read("sqlite:///t/schema").await.unwrap(), "CREATE TABLE t(a);\nCREATE INDEX i ON t(a);\n");
        assert_eq!(read("sqlite:///a%2Fb%20%3F%23%25/schema").await.unwrap(), "CREATE TABLE \"a/b ?#%\"(x);\n");
        let missing = if client.stateless() { -32602 } else { -32002 };
        let error = read("sqlite:///nope/schema").await.unwrap_err();
        assert_eq!(error.rpc().map(|rpc| rpc.code), Some(missing), "{error}");
        let found =
            client.complete_template("sqlite:///{table}/schema", "table", "A", Default::default()).await.unwrap();
        assert_eq!(serde_json::from_str::<Value>(found.as_json()).unwrap()["completion"]["values"], json!(["a/b ?#%"]));
    }
}

#[tokio::test]
async fn a_change_of_the_schema_is_told() {
    let client = connect(memory(), host()).await;
    let mut changes = client.listen(ChangeFilter::new().resource("sqlite:///schema")).await.unwrap();
    client.call("create_table", sql("CREATE TABLE t(a)")).await.unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(20), changes.next()).await.expect("in time");
    assert_eq!(heard, Some(Change::Updated("sqlite:///schema".into())));
}

#[tokio::test]
async fn the_configuration_decides_what_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    type Change = fn(&mut Config);
    let choices: &[(Change, &str)] = &[
        (|c| c.tools.toolsets = vec!["insights".into()], "append_insight"),
        (|c| c.tools.enable = vec!["sqlite_read_query".into()], "read_query"),
        (
            |c| {
                c.tools.toolsets = vec!["write".into(), "insights".into()];
                c.tools.prefix = ToolPrefix::Auto;
            },
            "sqlite_write_query sqlite_create_table sqlite_append_insight",
        ),
        (|c| c.tools.toolsets = vec!["import".into()], "sqlite_import_csv"),
    ];
    for (change, names) in choices {
        let mut config = memory().with(|config| config.import_dir = Some(dir.path().into()));
        change(&mut config);
        let listed = connect(config, host()).await.tools().await.unwrap();
        assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" "), *names);
    }
    let mut config = memory();
    config.tools.enable = vec!["sqlite_import_csv".into()];
    let (db, _) = Sqlite::open(config).unwrap();
    let error = db.add_to(linchpin::Server::new("x", "1")).map(drop).expect_err("it needs its flag");
    assert!(error.to_string().contains("--import-dir"), "{error}");
    for tool in SERVICE.tools {
        assert!(tool.name.len() <= 40 && !tool.description.is_empty());
    }
}

#[tokio::test]
async fn a_schema_that_is_cut_names_the_tool_that_shows_the_rest_as_it_is_listed() {
    for (prefix, create, listed) in [
        ("none", "create_table", "sqlite_schema"),
        ("auto", "sqlite_create_table", "sqlite_schema"),
        ("my.", "my.create_table", "my.sqlite_schema"),
    ] {
        let mut config = memory().with(|config| config.max_bytes = 1_000);
        config.tools.prefix = prefix.parse().unwrap();
        for client in [host(), legacy()] {
            let client = connect(config.clone(), client).await;
            for table in ["a", "b"] {
                let made =
                    client.call(create, sql(&format!("CREATE TABLE {table}({}x)", "x".repeat(700)))).await.unwrap();
                assert!(!made.is_error(), "{}", made.text());
            }
            let text = client.read("sqlite:///schema").await.unwrap().text();
            assert!(text.ends_with(&format!("-- Truncated. The tool {listed} returns the rest.\n")), "{text}");
        }
    }
}

#[tokio::test]
async fn two_databases_share_a_process_under_names_of_their_own() {
    let server = linchpin::Server::new("both", "1");
    let named = |name: &str| {
        let mut config = memory();
        config.tools.scope = Some(name.into());
        config.tools.prefix = format!("{name}_").parse().unwrap();
        Sqlite::open(config).unwrap().0
    };
    let server = named("one").add_to(server).unwrap();
    let server = named("two").add_to(server).unwrap();
    let client = host().connect(linchpin::transport::in_process(server)).await.unwrap();
    for name in ["one", "two"] {
        client.call(&format!("{name}_create_table"), sql(&format!("CREATE TABLE {name}(a)"))).await.unwrap();
        client.call(&format!("{name}_append_insight"), json!({"insight": name})).await.unwrap();
    }
    for name in ["one", "two"] {
        let read = async |uri: String| client.read(&uri).await.unwrap().text();
        assert_eq!(read(format!("sqlite://{name}/schema")).await, format!("CREATE TABLE {name}(a);\n"));
        assert_eq!(read(format!("sqlite://{name}/{name}/schema")).await, format!("CREATE TABLE {name}(a);\n"));
        assert!(read(format!("memo://{name}/insights")).await.ends_with(&format!("- {name}")));
        let text =
            client.prompt(&format!("{name}_mcp-demo"), json!({"topic": "x"})).await.unwrap().as_json().to_owned();
        assert!(text.contains(&format!("memo://{name}/insights")), "{text}");
    }
    let refused = client.call("read_query", sql("SELECT 1")).await.unwrap_err();
    assert!(refused.to_string().contains("one_read_query"), "the bare name is both: {refused}");
}

#[tokio::test]
async fn nothing_is_left_after_the_server_is_gone() {
    let w = World::new().await;
    w.write("PRAGMA journal_mode = WAL").await;
    w.write("CREATE TABLE t(a)").await;
    let World { dir, client } = w;
    client.close().await;
    drop(client);
    // The threads close their connections; the last one takes the side files away.
    let wal = dir.path().join("x.db-wal");
    for _ in 0..200 {
        if !wal.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the database was not closed");
}
