//! The same calls to the published server-memory 2026.8.31 and to ours: texts, structured content, and the file's bytes.
//!
//! Deliberate differences, each with its test here or in `tools.rs` and `files.rs`:
//! - repeats inside one call are stored once (theirs stores both): the random calls below have none;
//! - `deleted`, `warnings`, `truncated` and `next_cursor` are members of ours only;
//! - `search_nodes` and `open_nodes` take a `cursor`, to read on where a long answer was cut;
//! - errors have a second line, `Hint: …`; wrong arguments are explained in other words;
//! - long answers are cut unless `--max-result-bytes 0`, which these tests set;
//! - a change that changes nothing does not write the file; where there was none, theirs makes an empty one;
//! - a line that cannot be read makes every tool of theirs fail; unknown keys and lines are lost at their next change;
//! - links, foreign files and names that other programs obey are refused at start.

use crate::common;

use common::{connect, e_line, entity, r_line, relation};
use linchpin::prelude::*;
use linchpin::transport::Child;
use linchpin_memory::Config;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

async fn theirs(file: &Path) -> Connection {
    let installed =
        std::env::var("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names the directory of the packages");
    let program = PathBuf::from(installed).join("node_modules/.bin/mcp-server-memory");
    let child = Child::new(program).env("MEMORY_FILE_PATH", file);
    Client::new("test", "1").connect(child).await.expect("the published server starts")
}

async fn ours(file: &Path) -> Connection {
    let config = Config::default().with(|config| {
        config.file = Some(file.to_owned());
        config.max_result_bytes = 0;
    });
    connect(config, None).await
}

/// What a call answers, without what only ours has: whether it failed, the first line of an error or the whole text, and
/// the structured content.
async fn answer(client: &Connection, (tool, args): &(&str, Value)) -> (bool, String, Value) {
    let result = client.call(tool, args.clone()).await.expect("an answer");
    let mut value: Value = result.structured().map_or(Value::Null, |json| serde_json::from_str(json).expect("JSON"));
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| name != "deleted" && name != "warnings");
    }
    let text = result.content().expect("content")[0].as_text().expect("text").to_owned();
    if result.is_error() {
        return (true, text.lines().next().unwrap_or_default().to_owned(), Value::Null);
    }
    (false, text, value)
}

fn bytes(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_default()
}

/// Enough chance for these tests, and the same at each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn word(&mut self) -> &'static str {
        const WORDS: [&str; 16] = [
            "Ada",
            "ada",
            "Bob",
            "Engine",
            "é",
            "e\u{301}",
            "İ",
            "ẞtraße",
            "__proto__",
            "",
            " ",
            "a\nb",
            "\"q\\",
            "\u{1}\u{7f}",
            "\u{2028}😀",
            "東京",
        ];
        WORDS[self.roll(WORDS.len())]
    }

    /// Up to `most` different words.
    fn words(&mut self, most: usize) -> Vec<&'static str> {
        let mut words: Vec<&str> = Vec::new();
        for _ in 0..self.roll(most + 1) {
            let word = self.word();
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words
    }

    fn relations(&mut self) -> Value {
        let mut relations: Vec<Value> = Vec::new();
        for _ in 0..self.roll(4) {
            let relation = relation(self.word(), self.word());
            if !relations.contains(&relation) {
                relations.push(relation);
            }
        }
        json!(relations)
    }

    fn operation(&mut self) -> (&'static str, Value) {
        match self.roll(11) {
            0..3 => {
                let names = self.words(4);
                let entities: Vec<Value> = names.iter().map(|name| entity(name, &self.words(3))).collect();
                ("create_entities", json!({ "entities": entities }))
            }
            3..5 => ("create_relations", json!({ "relations": self.relations() })),
            5 => {
                let names = self.words(2);
                let add = |name: &&str| json!({ "entityName": name, "contents": self.words(3) });
                ("add_observations", json!({ "observations": names.iter().map(add).collect::<Vec<_>>() }))
            }
            6 => ("delete_entities", json!({ "entityNames": self.words(2) })),
            7 => {
                let names = self.words(2);
                let less = |name: &&str| json!({ "entityName": name, "observations": self.words(3) });
                ("delete_observations", json!({ "deletions": names.iter().map(less).collect::<Vec<_>>() }))
            }
            8 => ("delete_relations", json!({ "relations": self.relations() })),
            9 => ("search_nodes", json!({ "query": self.word() })),
            _ => ("open_nodes", json!({ "names": self.words(3) })),
        }
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn random_calls_answer_the_same_and_leave_the_same_bytes() {
    for seed in [0x1234_5678, 0x9e37_79b9, 0xdead_beef] {
        let dir = tempfile::tempdir().expect("a directory");
        let (a, b) = (dir.path().join("theirs.jsonl"), dir.path().join("ours.jsonl"));
        let (theirs, ours) = (theirs(&a).await, ours(&b).await);
        let mut dice = Dice(seed);
        for step in 0..200 {
            let operation = dice.operation();
            let (expected, got) = (answer(&theirs, &operation).await, answer(&ours, &operation).await);
            assert_eq!(got, expected, "{seed:x} step {step}: {operation:?}");
            assert_eq!(
                String::from_utf8(bytes(&b)),
                String::from_utf8(bytes(&a)),
                "{seed:x} step {step}: {operation:?}"
            );
        }
        let all = ("read_graph", json!({}));
        assert_eq!(answer(&ours, &all).await, answer(&theirs, &all).await);
        let text = |contents| serde_json::to_value(&contents).expect("JSON")["text"].clone();
        let (expected, got) =
            (theirs.read("memory://knowledge-graph").await, ours.read("memory://knowledge-graph").await);
        let (expected, got) =
            (expected.expect("a resource").contents[0].clone(), got.expect("a resource").contents[0].clone());
        assert_eq!(text(got), text(expected));
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn one_file_can_go_back_and_forth_between_the_two() {
    let dir = tempfile::tempdir().expect("a directory");
    let (only, shared) = (dir.path().join("only.jsonl"), dir.path().join("shared.jsonl"));
    // One server has its file for itself; the other two take turns with theirs.
    let (alone, theirs, ours) = (theirs(&only).await, theirs(&shared).await, ours(&shared).await);
    let mut dice = Dice(0xfeed_f00d);
    for step in 0..300 {
        let operation = dice.operation();
        let turn = if dice.roll(2) == 0 { &theirs } else { &ours };
        let (expected, got) = (answer(&alone, &operation).await, answer(turn, &operation).await);
        assert_eq!(got, expected, "step {step}: {operation:?}");
        assert_eq!(String::from_utf8(bytes(&shared)), String::from_utf8(bytes(&only)), "step {step}: {operation:?}");
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn files_that_people_wrote_become_the_same_bytes() {
    let files = [
        [r_line("a", "b"), e_line("a", &["x"]), e_line("b", &[])].join("\n"),
        format!("\n\n{}\n   \n{}\n\n", e_line("a", &[]), r_line("a", "a")),
        format!("{}\r\n{}\r\n", e_line("a", &[]), r_line("a", "a")),
        r#"{ "observations" : ["x" , "\u0041\/"], "name":"a", "type":"entity", "entityType":"t" }"#.into(),
        r#"{"name":"first","type":"entity","name":"last","entityType":"t","observations":[]}"#.into(),
        [e_line("a", &["1"]), e_line("a", &["2"]), r_line("a", "a"), r_line("a", "a")].join("\n"),
    ];
    for file in files {
        let dir = tempfile::tempdir().expect("a directory");
        let (a, b) = (dir.path().join("theirs.jsonl"), dir.path().join("ours.jsonl"));
        [&a, &b].iter().for_each(|path| std::fs::write(path, &file).expect("a file"));
        let (theirs, ours) = (theirs(&a).await, ours(&b).await);
        for operation in [
            ("read_graph", json!({})),
            ("create_entities", json!({ "entities": [entity("new", &["n"])] })),
            ("add_observations", json!({ "observations": [{ "entityName": "a", "contents": ["2", "3"] }] })),
            ("delete_observations", json!({ "deletions": [{ "entityName": "a", "observations": ["1"] }] })),
            ("delete_entities", json!({ "entityNames": ["a"] })),
        ] {
            assert_eq!(answer(&ours, &operation).await, answer(&theirs, &operation).await, "{file}: {operation:?}");
            if operation.0 != "read_graph" {
                assert_eq!(String::from_utf8(bytes(&b)), String::from_utf8(bytes(&a)), "{file}: {operation:?}");
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn tools_and_resource_are_listed_alike() {
    let dir = tempfile::tempdir().expect("a directory");
    let (theirs, ours) = (theirs(&dir.path().join("a.jsonl")).await, ours(&dir.path().join("b.jsonl")).await);
    let (expected, got) = (theirs.tools().await.expect("tools"), ours.tools().await.expect("tools"));
    assert_eq!(expected.len(), 9);
    // Names, titles, hints, and the shape of the arguments; descriptions are our own.
    for (theirs, ours) in expected.iter().zip(got.iter()) {
        assert_eq!((&ours.name, &ours.title, &ours.annotations), (&theirs.name, &theirs.title, &theirs.annotations));
        let shape = |schema: &str| {
            let schema: Value = serde_json::from_str(schema).expect("JSON");
            arguments(&schema, &schema)
        };
        let mut mine = shape(ours.input_schema.get());
        if ["search_nodes", "open_nodes"].contains(&ours.name.as_str()) {
            let cursor = mine["properties"].as_object_mut().expect("members").remove("cursor");
            assert!(cursor.is_some(), "{}", ours.name);
        }
        assert_eq!(mine, shape(theirs.input_schema.get()), "{}", ours.name);
    }
    let (expected, got) = (theirs.resources().await.expect("a list"), ours.resources().await.expect("a list"));
    let known =
        |r: &linchpin::types::resource::Resource| (r.uri.clone(), r.name.clone(), r.title.clone(), r.mime_type.clone());
    assert_eq!(got.iter().map(known).collect::<Vec<_>>(), expected.iter().map(known).collect::<Vec<_>>());
}

/// A schema without words: types, members and which of them are required, references resolved.
fn arguments(root: &Value, schema: &Value) -> Value {
    if let Some(path) = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        return arguments(root, root.pointer(path).expect("what is referred to"));
    }
    let members = schema["properties"].as_object().into_iter().flatten();
    let members: serde_json::Map<String, Value> =
        members.map(|(name, member)| (name.clone(), arguments(root, member))).collect();
    let items = if schema["items"].is_null() { Value::Null } else { arguments(root, &schema["items"]) };
    json!({ "type": schema["type"], "required": schema["required"], "properties": members, "items": items })
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn what_is_deliberately_different_is_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let (a, b) = (dir.path().join("theirs.jsonl"), dir.path().join("ours.jsonl"));
    let (theirs, ours) = (theirs(&a).await, ours(&b).await);
    let twice = ("create_entities", json!({ "entities": [entity("a", &[]), entity("a", &[])] }));
    answer(&theirs, &twice).await;
    answer(&ours, &twice).await;
    let again = ("add_observations", json!({ "observations": [{ "entityName": "a", "contents": ["y", "y"] }] }));
    answer(&theirs, &again).await;
    answer(&ours, &again).await;
    assert_eq!(bytes(&a), [e_line("a", &["y", "y"]), e_line("a", &[])].join("\n").into_bytes());
    assert_eq!(bytes(&b), e_line("a", &["y"]).into_bytes());

    let odd = r#"{"type":"entity","name":"k","entityType":"t","observations":[],"kept":1}"#;
    [&a, &b].iter().for_each(|path| std::fs::write(path, [odd, r#"{"type":"note"}"#].join("\n")).expect("a file"));
    let change = ("create_entities", json!({ "entities": [entity("n", &[])] }));
    answer(&theirs, &change).await;
    answer(&ours, &change).await;
    assert_eq!(bytes(&a), [e_line("k", &[]), e_line("n", &[])].join("\n").into_bytes());
    assert_eq!(bytes(&b), [odd, r#"{"type":"note"}"#, &e_line("n", &[])].join("\n").into_bytes());

    [&a, &b]
        .iter()
        .for_each(|path| std::fs::write(path, [e_line("k", &[]), "{torn".into()].join("\n")).expect("a file"));
    let read = ("read_graph", json!({}));
    assert!(answer(&theirs, &read).await.0);
    assert_eq!(answer(&ours, &read).await.2["entities"], json!([entity("k", &[])]));
}
