//! A client inside this program types, and looks at what is suggested.

use super::server;
use linchpin::prelude::*;
use linchpin::types::version::Revision;
use serde_json::json;

/// An argument, what is typed, what is chosen already, and what is then suggested.
type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

/// What is suggested for `argument` when `typed` is typed and `known` is chosen.
async fn suggested(host: &Connection, argument: &str, typed: &str, known: &[(&str, &str)]) -> Vec<String> {
    let known = known.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    host.complete_prompt("sql_query", argument, typed, known).await.expect("suggestions").completion.values.clone()
}

#[tokio::test]
async fn suggestions_depend_on_the_other_arguments() {
    let host = Client::new("test", "1.0").connect(in_process(server())).await.expect("connected");
    let rows: [Row<'_>; 10] = [
        ("operation", "", &[], &["select", "insert", "update", "delete"]),
        ("operation", "SEL", &[], &["select"]),
        ("table", "o", &[], &["books", "authors", "loans"]),
        ("columns", "", &[], &[]),
        ("columns", "", &[("operation", "select"), ("table", "authors")], &["*", "id", "name", "born"]),
        ("columns", "", &[("operation", "update"), ("table", "authors")], &["name", "born"]),
        ("columns", "", &[("operation", "delete"), ("table", "authors")], &[]),
        ("columns", "b", &[("operation", "insert"), ("table", "loans")], &["book_id"]),
        ("condition", "na", &[("operation", "delete"), ("table", "authors")], &["name = ?"]),
        ("condition", "", &[("operation", "insert"), ("table", "authors")], &[]),
    ];
    for (argument, typed, known, expected) in rows {
        assert_eq!(suggested(&host, argument, typed, known).await, expected, "{argument} {typed:?} {known:?}");
    }
}

#[tokio::test]
async fn a_client_that_cannot_send_other_arguments_gets_no_wrong_suggestions() {
    let host = Client::new("test", "1.0").revisions(&[Revision::V2025_03_26]);
    let host = host.connect(in_process(server())).await.expect("connected");
    assert_eq!(suggested(&host, "table", "lo", &[]).await, ["loans"]);
    assert!(suggested(&host, "columns", "", &[("operation", "select"), ("table", "books")]).await.is_empty());
}

#[tokio::test]
async fn the_prompt_takes_what_was_suggested() {
    let host = Client::new("test", "1.0").connect(in_process(server())).await.expect("connected");
    let chosen = json!({ "operation": "select", "table": "loans", "condition": "reader = ?" });
    let prompt = host.prompt("sql_query", chosen).await.expect("a message");
    let text = prompt.messages[0].content.as_text().expect("text");
    assert!(text.contains("select id, book_id, reader, due of the table `loans` where reader = ?."), "{text}");
    let refused = host.prompt("sql_query", json!({ "operation": "select", "table": "shelves" })).await;
    assert!(refused.expect_err("refused").to_string().contains("there is no table `shelves`"));
}
