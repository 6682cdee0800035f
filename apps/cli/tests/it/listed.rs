//! Every name of a tool that a server says is one that is listed: under a prefix, and beside another server of its kind.
#![cfg(all(feature = "client", unix))]

use crate::common;
use crate::rows;

use common::{REVISIONS, Site, over_pipe, program, words};
use linchpin::client::Connection;
use rows::rows;
use serde_json::{Value, json};

/// What a server says about itself: instructions, and descriptions of tools, arguments, answers and prompts.
async fn said(connection: &Connection) -> Vec<String> {
    let mut texts: Vec<String> = connection.instructions().into_iter().collect();
    for tool in connection.tools().await.unwrap() {
        texts.extend(tool.description.clone());
        for schema in [Some(&tool.input_schema), tool.output_schema.as_ref()].into_iter().flatten() {
            descriptions(&serde_json::from_str(schema.get()).unwrap(), &mut texts);
        }
    }
    // Not every server has prompts.
    if let Ok(prompts) = connection.prompts().await {
        texts.extend(prompts.iter().filter_map(|prompt| prompt.description.clone()));
    }
    texts
}

fn descriptions(schema: &Value, texts: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            texts.extend(members.get("description").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|value| descriptions(value, texts));
        }
        Value::Array(items) => items.iter().for_each(|item| descriptions(item, texts)),
        _ => {}
    }
}

/// The words of a text of which names are made. Those without `_` and `-` are names only between backticks.
fn named(text: &str) -> Vec<&str> {
    let pieces = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
    let is_name = |word: &&str| word.contains(['_', '-']) || text.contains(&format!("`{word}`"));
    pieces.filter(|word| !word.is_empty()).filter(is_name).collect()
}

/// Every name in the texts is listed; how many there are.
fn all_are_listed(texts: &[String], listed: &[String], prefix: &str) -> usize {
    let own: Vec<&str> = listed.iter().filter_map(|name| name.strip_prefix(prefix)).collect();
    assert_eq!(own.len(), listed.len(), "{listed:?}");
    let mut found = 0;
    for text in texts {
        for word in named(text) {
            assert!(!own.contains(&word), "{word} is listed as {prefix}{word}: {text}");
            if word.starts_with(prefix) {
                assert!(listed.iter().any(|name| name == word), "{word} is not listed: {text}");
                found += 1;
            }
        }
    }
    found
}

/// For servers whose errors name tools: the words that start it, a call that fails, and what its hint names.
fn mistake(name: &str) -> Option<(Vec<String>, &'static str, Value, &'static [&'static str])> {
    Some(match name {
        "filesystem" => (vec![], "read_text_file", json!({ "path": "/etc/passwd" }), &["list_allowed_directories"][..]),
        "git" => (vec![], "git_show", json!({ "repo_path": "", "revision": "nothing" }), &["git_branch", "git_log"]),
        "fetch" => (words(&["--allow-private-ips"]), "fetch", json!({ "url": "" }), &["fetch"]),
        "memory" => (words(&["--toolsets", "all"]), "memory_undo", json!({ "id": 99 }), &["memory_history"]),
        "sqlite" => (vec![], "describe_table", json!({ "table_name": "zz" }), &["list_tables"]),
        "postgres" => (vec![], "query", json!({ "sql": "SELECT * FROM zz" }), &["pg_list_objects"]),
        "browser" => (
            vec![],
            "puppeteer_navigate",
            json!({ "url": "x", "launchOptions": { "headless": false } }),
            &["puppeteer_navigate"],
        ),
        _ => return None,
    })
}

/// The servers whose texts name no tool; the others say which one to use for what.
const SILENT: [&str; 6] = ["time", "google-drive", "google-maps", "sentry", "everart", "aws-kb"];

#[tokio::test(flavor = "multi_thread")]
async fn with_a_prefix_every_server_names_its_tools_as_they_are_listed() {
    let home = tempfile::tempdir().unwrap();
    let closed = Site::start(|head| {
        assert!(head.starts_with("GET /robots.txt "), "{head}");
        Site::page("text/plain", "User-agent: *\nDisallow: /\n")
    });
    for row in rows(home.path()) {
        let (instead, tool, mut arguments, hints) =
            mistake(row.name).unwrap_or((vec![], row.tool, row.arguments.clone(), &[]));
        if row.name == "fetch" {
            arguments["url"] = closed.url("/page").into();
        }
        if row.name == "git" {
            arguments["repo_path"] = row.arguments["repo_path"].clone();
        }
        let own = if instead.is_empty() { row.words() } else { instead };
        let all: Vec<String> =
            words(&["serve", row.name]).into_iter().chain(own).chain(words(&["--tool-prefix", "my_"])).collect();
        for revision in REVISIONS {
            let connection = over_pipe(program(), home.path(), &all, &row.env, revision).await;
            let listed = common::names(&connection).await;
            let texts = said(&connection).await;
            let found = all_are_listed(&texts, &listed, "my_");
            assert_eq!(found == 0, SILENT.contains(&row.name), "{}: {texts:?}", row.name);
            let answer = connection.call(&format!("my_{tool}"), arguments.clone()).await.unwrap();
            assert_eq!(answer.is_error(), !hints.is_empty(), "{}: {}", row.name, answer.text());
            let text = answer.text();
            if !hints.is_empty() {
                let meta = serde_json::to_value(answer.result().unwrap().meta).unwrap();
                assert!(meta["linchpin/error"]["kind"].is_string(), "{}: {meta}", row.name);
            }
            let hint = text.split_once("\nHint: ").map(|(_, hint)| hint.to_owned());
            for name in hints {
                let hint = hint.as_deref().unwrap_or_else(|| panic!("no hint in {text}"));
                assert!(named(hint).contains(&format!("my_{name}").as_str()), "{name} in {hint}");
            }
            all_are_listed(&Vec::from_iter(hint), &listed, "my_");
            connection.close().await;
        }
    }
}

/// What every tool of every server says about itself, all flags that add tools given.
async fn of_all_tools(check: impl Fn(&str, &Value, &Value)) {
    let home = tempfile::tempdir().unwrap();
    for row in rows(home.path()) {
        let flags: &[&str] = match row.name {
            "filesystem" => &["--allow-delete"],
            "git" => &["--allow-remote"],
            "sqlite" => &["--import-dir", "."],
            "postgres" => &["--access-mode", "write"],
            _ => &[],
        };
        let all: Vec<String> = words(&["serve", row.name]).into_iter().chain(row.words()).chain(words(flags)).collect();
        for revision in REVISIONS {
            let connection = over_pipe(program(), home.path(), &all, &row.env, revision).await;
            for tool in connection.tools().await.unwrap().iter() {
                let output =
                    tool.output_schema.as_ref().map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap());
                check(&tool.name, &serde_json::from_str(tool.input_schema.get()).unwrap(), &output);
            }
            connection.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_have_no_references_but_to_recursive_parts_and_those_of_results_no_sentences() {
    // None of these servers has a tool with arguments of a recursive type.
    of_all_tools(|tool, input, output| {
        let text = input.to_string();
        assert!(!text.contains("\"$ref\"") && !text.contains("\"$defs\""), "{tool}: {input:#}");
        let recurses = |(name, part): (&String, &Value)| part.to_string().contains(&format!("\"#/$defs/{name}\""));
        assert!(output["$defs"].as_object().into_iter().flatten().all(recurses), "{tool}: {output:#}");
        let mut texts = Vec::new();
        descriptions(output, &mut texts);
        // The server for trying out clients has the published schema.
        assert!(texts.is_empty() || tool == "get-structured-content", "{tool}: {texts:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_continues_is_declared_only_where_it_is_taken() {
    of_all_tools(|tool, input, output| {
        // This one goes on with another tool, and says which.
        if output["properties"].get("next_cursor").is_some() && tool != "read_graph" {
            assert!(input["properties"].get("cursor").is_some(), "{tool}: {output:#}");
        }
    })
    .await;
}

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread")]
async fn of_two_databases_each_names_its_own_tools() {
    let home = tempfile::tempdir().unwrap();
    let all = words(&["serve", "one=sqlite::memory:", "two=sqlite::memory:"]);
    for revision in REVISIONS {
        let connection = over_pipe(program(), home.path(), &all, &[], revision).await;
        let listed = common::names(&connection).await;
        let told = connection.instructions().unwrap();
        let tools = connection.tools().await.unwrap();
        for name in ["one", "two"] {
            assert!(told.contains(&format!("{name}_sqlite_schema or {name}_list_tables lists")), "{told}");
            let describe = tools.iter().find(|tool| tool.name == format!("{name}_describe_table")).unwrap();
            let schema = describe.input_schema.get();
            assert!(schema.contains(&format!("As in {name}_list_tables")), "{schema}");

            let tool = format!("{name}_describe_table");
            let text = connection.call(&tool, json!({ "table_name": "zz" })).await.unwrap().text();
            assert!(text.contains(&format!("\nHint: {name}_list_tables lists the names")), "{text}");
            let said = text.split_once("Hint: ").unwrap().1;
            for word in named(said) {
                assert!(listed.iter().any(|name| name == word), "{word} in {said}");
                connection.call(word, json!({})).await.unwrap();
            }
            // What others wrote stays as it is.
            let query = "SELECT 'list_tables, `read_query`' AS list_tables";
            let answer = connection.call(&format!("{name}_read_query"), json!({ "query": query })).await.unwrap();
            assert!(!answer.is_error() && !answer.text().contains(&format!("{name}_")), "{}", answer.text());

            let prompt =
                connection.prompt(&format!("{name}_mcp-demo"), json!({ "topic": "read_query" })).await.unwrap();
            let text = serde_json::to_string(&prompt.messages).unwrap();
            for tool in ["list_tables", "create_table", "write_query", "read_query", "append_insight"] {
                assert!(text.contains(&format!(" {name}_{tool}")), "{tool} in {text}");
            }
            assert!(text.contains("The topic is: read_query\\n"), "{text}");
        }
        connection.close().await;
    }
}
