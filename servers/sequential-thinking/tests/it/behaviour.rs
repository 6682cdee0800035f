//! What the specification's table about sequential thinking says, row by row.

use crate::common;

use common::{Caller, LEGACY, MODERN, dial, listening, server, thought, with_all_tools};
use linchpin_kit::{ToolChoice, Vars};
use linchpin_sequential_thinking::{Config, Limits, SERVICE, SequentialThinking, ThoughtLog};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[tokio::test]
async fn one_tool_is_listed_and_its_hints_say_that_it_keeps_something() {
    for revisions in [LEGACY, MODERN] {
        let caller = Caller::speaking(Config::default(), revisions).await;
        let tools = caller.0.tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["sequentialthinking"]);
        let hints = tools[0].annotations.as_ref().expect("hints");
        let hints = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint);
        assert_eq!(hints, (Some(false), Some(false), Some(false), Some(false)));
        let description = tools[0].description.as_deref().expect("a description");
        assert!(description.len() <= 900, "{} characters", description.len());
    }
}

#[tokio::test]
async fn the_schema_is_the_published_one_with_a_handle() {
    let caller = Caller::of(Config::default()).await;
    let tools = caller.0.tools().await.unwrap();
    let schema: Value = serde_json::from_str(tools[0].input_schema.get()).unwrap();
    assert_eq!(schema["required"], json!(["thought", "nextThoughtNeeded", "thoughtNumber", "totalThoughts"]));
    let types: Vec<(&str, &Value)> = schema["properties"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, property)| (name.as_str(), &property["type"]))
        .collect();
    let (text, number, switch) = (json!("string"), json!("integer"), json!(["boolean", "string"]));
    let expected = [
        ("thought", &text),
        ("nextThoughtNeeded", &switch),
        ("thoughtNumber", &number),
        ("totalThoughts", &number),
        ("isRevision", &switch),
        ("revisesThought", &number),
        ("branchFromThought", &number),
        ("branchId", &text),
        ("needsMoreThoughts", &switch),
        ("sessionId", &text),
    ];
    assert_eq!(types, expected);
    for number in ["thoughtNumber", "totalThoughts", "revisesThought", "branchFromThought"] {
        assert_eq!(schema["properties"][number]["minimum"], json!(1), "{number}");
    }
}

#[tokio::test]
async fn no_schema_refers_to_a_definition() {
    // Some providers of models refuse `$ref`.
    let caller = Caller::of(with_all_tools()).await;
    for tool in caller.0.tools().await.unwrap().iter() {
        let output = tool.output_schema.as_ref().map_or("", |schema| schema.get());
        for schema in [tool.input_schema.get(), output] {
            assert!(!schema.contains("$ref") && !schema.contains("$defs"), "{}: {schema}", tool.name);
        }
    }
}

#[test]
fn a_limit_of_nothing_is_refused_by_its_names() {
    let limits = Limits::default();
    for (limits, said) in [
        (limits.with(|limits| limits.thoughts_max = 0), "--max-thoughts or MCP_SEQUENTIAL_THINKING_MAX_THOUGHTS"),
        (
            limits.with(|limits| limits.thought_bytes_max = 0),
            "--max-thought-bytes or MCP_SEQUENTIAL_THINKING_MAX_THOUGHT_BYTES",
        ),
        (limits.with(|limits| limits.branches_max = 0), "--max-branches or MCP_SEQUENTIAL_THINKING_MAX_BRANCHES"),
        (limits.with(|limits| limits.ttl = Duration::ZERO), "--ttl or MCP_SEQUENTIAL_THINKING_TTL"),
        (limits.with(|limits| limits.histories_max = 0), "histories_max"),
        (limits.with(|limits| limits.bytes_max = 0), "bytes_max"),
    ] {
        let fault = SequentialThinking::open(Config::default().with(|config| config.limits = limits)).unwrap_err();
        assert_eq!(fault.to_string(), format!("{said} is out of range: 0\nHint: Use 1 or more."));
    }
}

#[tokio::test]
async fn the_text_is_the_published_json_and_the_handle() {
    let caller = Caller::of(Config::default()).await;
    let (text, value) = caller.call("sequentialthinking", thought(1, json!({}))).await.unwrap();
    let handle = value["sessionId"].as_str().unwrap();
    assert_eq!(handle.len(), 32);
    assert_eq!(
        text,
        format!(
            "{{\n  \"thoughtNumber\": 1,\n  \"totalThoughts\": 5,\n  \"nextThoughtNeeded\": true,\n  \"branches\": [],\n  \"thoughtHistoryLength\": 1,\n  \"sessionId\": \"{handle}\"\n}}"
        )
    );
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
}

#[tokio::test]
async fn a_number_beyond_the_total_raises_the_total() {
    let caller = Caller::of(Config::default()).await;
    for (number, total, told) in
        [(7, 5, 7), (2, 5, 5), (1, 1, 1), (9_007_199_254_740_991, 1, 9_007_199_254_740_991_u64)]
    {
        let value = caller.think(number, json!({ "totalThoughts": total })).await;
        assert_eq!((&value["thoughtNumber"], &value["totalThoughts"]), (&json!(number), &json!(told)));
    }
}

#[tokio::test]
async fn numbers_and_switches_may_come_as_texts() {
    let caller = Caller::of(Config::default()).await;
    let args = json!({
        "thought": "t", "nextThoughtNeeded": "FALSE", "thoughtNumber": "3", "totalThoughts": 4.0, "isRevision": "true",
        "revisesThought": "1", "branchFromThought": null, "branchId": null, "needsMoreThoughts": "False", "sessionId": null,
    });
    let value = caller.value("sequentialthinking", args).await;
    assert_eq!(value["nextThoughtNeeded"], json!(false));
    assert_eq!((&value["thoughtNumber"], &value["totalThoughts"]), (&json!(3), &json!(4)));
}

#[tokio::test]
async fn wrong_arguments_are_refused_by_name_and_nothing_is_noted() {
    let caller = Caller::of(Config::default()).await;
    for (name, value, said) in [
        ("nextThoughtNeeded", json!("yes"), "nextThoughtNeeded: expected true or false, got \"yes\""),
        ("nextThoughtNeeded", json!(1), "nextThoughtNeeded: expected true or false, got 1"),
        ("isRevision", json!("no"), "isRevision: expected true or false, got \"no\""),
        ("needsMoreThoughts", json!([]), "needsMoreThoughts: expected true or false, got an array"),
        ("thoughtNumber", json!(0), "thoughtNumber: expected an integer from 1 to 9007199254740991, got 0"),
        ("thoughtNumber", json!("0"), "thoughtNumber: expected an integer from 1 to 9007199254740991, got \"0\""),
        ("thoughtNumber", json!(1.5), "thoughtNumber: expected an integer from 1 to 9007199254740991, got 1.5"),
        ("thoughtNumber", json!("one"), "thoughtNumber: expected an integer from 1 to 9007199254740991, got \"one\""),
        (
            "thoughtNumber",
            json!(9_007_199_254_740_993_u64),
            "thoughtNumber: expected an integer from 1 to 9007199254740991, got 9007199254740993",
        ),
        ("totalThoughts", json!(-1), "totalThoughts: expected an integer from 1 to 9007199254740991, got -1"),
        ("revisesThought", json!(0), "revisesThought: expected an integer from 1 to 9007199254740991, got 0"),
        ("branchFromThought", json!(1e300), "branchFromThought: expected an integer from 1 to 9007199254740991"),
        ("thought", json!(7), "invalid arguments for `sequentialthinking`: /thought: "),
        ("branchId", json!(7), "invalid arguments for `sequentialthinking`: /branchId: "),
        ("branchId", json!("b".repeat(257)), "branchId: 257 bytes exceed the limit of 256"),
        ("sessionId", json!("guess"), "Unknown sessionId\nHint: Omit sessionId to start again"),
    ] {
        let mut more = json!({});
        more[name] = value;
        let error = caller.error("sequentialthinking", thought(1, more.clone())).await;
        assert!(error.starts_with(said), "{more}: {error}");
    }
    for missing in ["thought", "nextThoughtNeeded", "thoughtNumber", "totalThoughts"] {
        let mut args = thought(1, json!({}));
        args.as_object_mut().unwrap().remove(missing);
        let error = caller.error("sequentialthinking", args).await;
        assert!(error.contains(missing), "{error}");
    }
    assert_eq!(caller.think(1, json!({})).await["thoughtHistoryLength"], 1, "what was refused does not count");
}

#[tokio::test]
async fn a_branch_needs_both_its_arguments_and_any_name_is_a_name() {
    let caller = Caller::of(Config::default()).await;
    caller.think(1, json!({})).await;
    let odd = ["__proto__", "constructor", "toString", "hasOwnProperty", "b", "10", "2", "ä ö", "\u{1b}[31m"];
    let mut expected: Vec<&str> = Vec::new();
    for name in odd {
        expected.push(name);
        let value = caller.think(2, json!({ "branchFromThought": 1, "branchId": name })).await;
        assert_eq!(value["branches"], json!(expected), "in the order they began");
        assert_eq!(value.get("warnings"), None);
    }
    let value = caller.think(3, json!({ "branchFromThought": 1, "branchId": "b" })).await;
    assert_eq!(value["branches"], json!(expected), "a branch is listed once");
    for half in [
        json!({ "branchFromThought": 1 }),
        json!({ "branchId": "new" }),
        json!({ "branchFromThought": 1, "branchId": "" }),
    ] {
        let value = caller.think(4, half.clone()).await;
        assert_eq!(value["branches"], json!(expected), "{half}");
        assert_eq!(value["warnings"], json!(["A branch requires both branchFromThought and branchId"]), "{half}");
    }
    let value = caller.think(5, json!({ "branchId": "b" })).await;
    assert_eq!(value.get("warnings"), None, "going on with a known branch is fine");
}

#[tokio::test]
async fn thoughts_that_refer_to_unknown_ones_are_noted_with_a_warning() {
    let caller = Caller::of(Config::default()).await;
    caller.think(1, json!({})).await;
    let value = caller.think(2, json!({ "isRevision": true, "revisesThought": 1 })).await;
    assert_eq!(value.get("warnings"), None);
    let value = caller
        .think(3, json!({ "isRevision": true, "revisesThought": 9, "branchFromThought": 8, "branchId": "b" }))
        .await;
    let expected = json!([
        "revisesThought: thought 9 does not exist in this history",
        "branchFromThought: thought 8 does not exist in this history",
    ]);
    assert_eq!(value["warnings"], expected);
    assert_eq!(value["thoughtHistoryLength"], 3);
    assert_eq!(value["branches"], json!(["b"]));
}

#[tokio::test]
async fn limits_drop_the_oldest_and_say_so() {
    let limits = Limits::default().with(|limits| {
        limits.thoughts_max = 3;
        limits.branches_max = 2;
        limits.thought_bytes_max = 10;
    });
    let caller = Caller::of(with_all_tools().with(|config| config.limits = limits)).await;
    for number in 1..=3 {
        assert_eq!(caller.think(number, json!({ "thought": "x".repeat(10) })).await.get("truncated"), None);
    }
    let error = caller.error("sequentialthinking", thought(4, json!({ "thought": "x".repeat(11) }))).await;
    assert!(error.starts_with("thought: 11 bytes exceed the limit of 10\nHint: "), "{error}");
    let value = caller.think(4, json!({ "thought": "four" })).await;
    assert_eq!((&value["truncated"], &value["thoughtHistoryLength"]), (&json!(true), &json!(4)), "dropped ones count");
    let value = caller.think(5, json!({ "thought": "five", "isRevision": true, "revisesThought": 1 })).await;
    assert_eq!(value.get("warnings"), None, "of a dropped thought nobody can say that it was never written");
    let value = caller.value("sequentialthinking_export", json!({})).await;
    let numbers: Vec<&Value> = value["thoughts"].as_array().unwrap().iter().map(|t| &t["thoughtNumber"]).collect();
    assert_eq!(numbers, [3, 4, 5]);
    assert_eq!((&value["dropped"], &value["thoughtHistoryLength"]), (&json!(2), &json!(5)));
    for branch in ["a", "b", "c"] {
        caller.think(6, json!({ "thought": "six", "branchFromThought": 5, "branchId": branch })).await;
    }
    let value = caller.think(7, json!({ "thought": "seven" })).await;
    assert_eq!(value["branches"], json!(["b", "c"]));
}

/// Bytes of memory this process has.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let pages: usize = std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_hundred_thousand_thoughts_take_no_more_memory_than_a_thousand() {
    let limits = Limits::default().with(|limits| limits.branches_max = 3);
    let caller = Caller::quick(with_all_tools().with(|config| config.limits = limits)).await;
    let text = "x".repeat(600);
    let mut before = 0;
    // A hundred at a time are on their way, which is quicker than one after the other.
    for batch in 0..1_000_u64 {
        let calls: Vec<_> = (1..=100)
            .map(|n| {
                let number = batch * 100 + n;
                let branch = json!({ "thought": text, "branchFromThought": 1, "branchId": format!("branch {number}") });
                tokio::spawn(caller.0.call("sequentialthinking", thought(number, branch)).into_future())
            })
            .collect();
        for call in calls {
            let result = call.await.unwrap().unwrap();
            assert!(!result.is_error(), "{}", result.text());
        }
        if batch == 20 {
            before = resident();
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 16 << 20, "98,000 thoughts of 600 bytes would be 59 MB; it grew by {grown} bytes");
    let value = caller.value("sequentialthinking_export", json!({})).await;
    assert!(value["thoughts"][0]["thoughtNumber"].as_u64().unwrap() > 98_900, "the oldest made room");
    assert_eq!(value["dropped"], 99_000);
    assert_eq!(value["thoughtHistoryLength"], 100_000, "dropped ones still count");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn callers_without_handles_cannot_fill_the_memory_either() {
    let limits = Limits::default().with(|limits| limits.bytes_max = 8 << 20);
    let caller = dial(listening(with_all_tools().with(|config| config.limits = limits)).await, MODERN).await;
    let text = "x".repeat(60_000);
    let mut before = 0;
    for number in 1..=1_000_u64 {
        let value = caller.think(1, json!({ "thought": text })).await;
        assert_eq!(value["thoughtHistoryLength"], 1);
        if number == 300 {
            before = resident();
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 16 << 20, "700 histories of 60,000 bytes would be 42 MB; it grew by {grown} bytes");
}

#[tokio::test]
async fn two_handles_do_not_see_each_other() {
    let caller = dial(listening(with_all_tools()).await, MODERN).await;
    let first = caller.think(1, json!({ "thought": "mine", "branchFromThought": 1, "branchId": "b" })).await;
    let second = caller.think(1, json!({ "thought": "yours" })).await;
    assert_ne!(first["sessionId"], second["sessionId"]);
    let value = caller.think(2, json!({ "sessionId": second["sessionId"] })).await;
    assert_eq!((&value["thoughtHistoryLength"], &value["branches"]), (&json!(2), &json!([])));
    assert_eq!(value["sessionId"], second["sessionId"]);
    let export = |handle: &Value| caller.call("sequentialthinking_export", json!({ "sessionId": handle }));
    let (one, other) = (export(&first["sessionId"]).await.unwrap().0, export(&second["sessionId"]).await.unwrap().0);
    assert!(one.contains("mine") && !one.contains("yours"), "{one}");
    assert!(other.contains("yours") && !other.contains("mine"), "{other}");
    let reset = caller.value("sequentialthinking_reset", json!({ "sessionId": first["sessionId"] })).await;
    assert_eq!(reset["forgotten"], 1);
    assert_eq!(export(&second["sessionId"]).await.unwrap().1["thoughtHistoryLength"], 2, "the other one is untouched");
}

#[tokio::test]
async fn over_http_each_call_without_a_handle_begins_anew_and_handles_go_on() {
    let addr = listening(Config::default()).await;
    let (ann, bob) = (dial(addr, MODERN).await, dial(addr, MODERN).await);
    let anns = ann.think(1, json!({})).await;
    assert_eq!(bob.think(1, json!({})).await["thoughtHistoryLength"], 1, "Bob does not see Ann's thought");
    assert_eq!(ann.think(1, json!({})).await["thoughtHistoryLength"], 1);
    let value = ann.think(2, json!({ "sessionId": anns["sessionId"] })).await;
    assert_eq!(value["thoughtHistoryLength"], 2);
    // Who was given the handle may go on with it: it is what tells histories apart.
    assert_eq!(bob.think(3, json!({ "sessionId": anns["sessionId"] })).await["thoughtHistoryLength"], 3);
    for guess in ["", "1", "0123456789abcdef0123456789abcdef"] {
        let error = bob.error("sequentialthinking", thought(1, json!({ "sessionId": guess }))).await;
        assert!(error.starts_with("Unknown sessionId"), "{error}");
    }
}

#[tokio::test]
async fn two_http_clients_with_sessions_have_a_history_each() {
    let addr = listening(with_all_tools()).await;
    let (ann, bob) = (dial(addr, LEGACY).await, dial(addr, LEGACY).await);
    for number in 1..=3 {
        let anns = ann.think(number, json!({ "thought": "ann's" })).await;
        assert_eq!(anns["thoughtHistoryLength"], number, "no handle is needed in a session");
    }
    assert_eq!(bob.think(1, json!({ "thought": "bob's" })).await["thoughtHistoryLength"], 1);
    let (text, _) = bob.call("sequentialthinking_export", json!({})).await.unwrap();
    assert!(text.contains("bob's") && !text.contains("ann's"), "{text}");
    // One of each era: the one without a session has nothing by itself.
    let modern = dial(addr, MODERN).await;
    let error = modern.error("sequentialthinking_export", json!({})).await;
    assert!(error.starts_with("There are no thoughts yet\nHint: Pass the sessionId"), "{error}");
}

#[tokio::test]
async fn each_connection_without_http_has_a_history_of_its_own_in_every_revision() {
    use linchpin::client::Client;
    use linchpin::prelude::in_process;
    let place = in_process(server(Config::default()));
    for revisions in [MODERN, LEGACY] {
        let dial = async || {
            Caller(Client::new("t", "0").revisions(revisions).connect(place.clone()).await.expect("it connects"))
        };
        let (ann, bob) = (dial().await, dial().await);
        for number in 1..=2 {
            assert_eq!(ann.think(number, json!({})).await["thoughtHistoryLength"], number);
        }
        assert_eq!(bob.think(1, json!({})).await["thoughtHistoryLength"], 1);
    }
}

#[tokio::test]
async fn an_expired_handle_is_unknown() {
    let limits = Limits::default().with(|limits| limits.ttl = Duration::from_nanos(1));
    let caller = dial(listening(Config::default().with(|config| config.limits = limits)).await, MODERN).await;
    let value = caller.think(1, json!({})).await;
    let error = caller.error("sequentialthinking", thought(2, json!({ "sessionId": value["sessionId"] }))).await;
    assert!(error.starts_with("Unknown sessionId"), "{error}");
}

#[tokio::test]
async fn our_own_tools_are_there_on_request_alone() {
    for (enable, sets, read_only, expected) in [
        ("", "", false, "sequentialthinking"),
        ("", "all", false, "sequentialthinking sequentialthinking_reset sequentialthinking_export"),
        ("", "history", false, "sequentialthinking_reset sequentialthinking_export"),
        ("sequentialthinking_export", "thinking", false, "sequentialthinking sequentialthinking_export"),
        ("", "all", true, "sequentialthinking_export"),
    ] {
        let mut tools = ToolChoice::default();
        let list = |text: &str| text.split_terminator(' ').map(str::to_owned).collect();
        (tools.enable, tools.toolsets, tools.read_only) = (list(enable), list(sets), read_only);
        let names: Vec<String> = tools.choose(&SERVICE).unwrap().into_iter().map(|(_, name)| name).collect();
        assert_eq!(names.join(" "), expected);
    }
    let mut tools = ToolChoice::default();
    (tools.prefix, tools.toolsets) = ("auto".parse().unwrap(), vec!["all".into()]);
    let names: Vec<String> = tools.choose(&SERVICE).unwrap().into_iter().map(|(_, name)| name).collect();
    assert_eq!(
        names,
        ["sequentialthinking", "sequentialthinking_reset", "sequentialthinking_export"],
        "no prefix twice"
    );
    tools.disable.push("nope".into());
    assert!(SequentialThinking::open(Config::default().with(|config| config.tools = tools)).is_err());
}

#[tokio::test]
async fn an_export_has_every_thought_once_in_pages_marked_as_data() {
    let caller = Caller::of(with_all_tools()).await;
    for number in 1..=9 {
        let more = json!({ "thought": format!("{number} {}", "y".repeat(30_000)), "isRevision": number == 2, "revisesThought": 1 });
        caller.think(number, more).await;
    }
    let (mut cursor, mut seen, mut pages) = (None, Vec::new(), 0);
    loop {
        let args = cursor.as_ref().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let result = caller.0.call("sequentialthinking_export", args).await.unwrap();
        assert!(result.text().len() < 110_000, "{}", result.text().len());
        let whole: Value = serde_json::from_str(result.as_json()).unwrap();
        assert_eq!(whole["content"][0]["annotations"]["audience"], json!(["assistant"]));
        let value: Value = serde_json::from_str(result.structured().unwrap()).unwrap();
        seen.extend(value["thoughts"].as_array().unwrap().iter().map(|t| t["thoughtNumber"].as_u64().unwrap()));
        pages += 1;
        let Some(next) = value["next_cursor"].as_str() else { break };
        assert_eq!(value["truncated"], true);
        cursor = Some(next.to_owned());
    }
    assert_eq!((seen, pages), ((1..=9).collect::<Vec<u64>>(), 3));
    let error = caller.error("sequentialthinking_export", json!({ "cursor": "x" })).await;
    assert!(error.starts_with("Unknown cursor: x\nHint: "), "{error}");
}

#[tokio::test]
async fn after_a_reset_the_same_handle_begins_anew() {
    let caller = Caller::of(with_all_tools()).await;
    let handle = caller.think(1, json!({ "branchFromThought": 1, "branchId": "b" })).await["sessionId"].clone();
    let value = caller.value("sequentialthinking_reset", json!({})).await;
    assert_eq!(value, json!({ "sessionId": handle, "forgotten": 1 }));
    assert_eq!(caller.value("sequentialthinking_reset", json!({})).await["forgotten"], 0);
    let value = caller.think(1, json!({})).await;
    assert_eq!(
        (&value["sessionId"], &value["thoughtHistoryLength"], &value["branches"]),
        (&handle, &json!(1), &json!([]))
    );
    let empty = Caller::of(with_all_tools()).await;
    let error = empty.error("sequentialthinking_reset", json!({})).await;
    assert!(error.starts_with("There are no thoughts yet"), "{error}");
}

#[tokio::test]
async fn calls_at_the_same_time_are_all_counted() {
    let caller = Arc::new(Caller::of(Config::default()).await);
    let calls: Vec<_> = (1..=200)
        .map(|number| {
            let caller = caller.clone();
            tokio::spawn(async move { caller.think(number, json!({})).await["thoughtHistoryLength"].as_u64().unwrap() })
        })
        .collect();
    let mut lengths = Vec::new();
    for call in calls {
        lengths.push(call.await.unwrap());
    }
    lengths.sort_unstable();
    assert_eq!(lengths, (1..=200).collect::<Vec<u64>>());
}

/// A place to write to that can be looked at.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn thoughts_are_shown_to_people_when_asked_for() {
    let sink = Sink::default();
    let caller = Caller::of(Config::default().with(|config| config.log = ThoughtLog::to(sink.clone()))).await;
    caller.think(1, json!({ "thought": "first\nsecond line" })).await;
    caller.think(2, json!({ "isRevision": true, "revisesThought": 1 })).await;
    caller.think(3, json!({ "branchFromThought": 1, "branchId": "b" })).await;
    let expected = "┌ Thought 1/5\n│ first\n│ second line\n└\n┌ Revision 2/5 (of thought 1)\n│ thought 2\n└\n┌ Branch 3/5 b (from thought 1)\n│ thought 3\n└\n";
    for _ in 0..1_000 {
        if sink.0.lock().unwrap().len() >= expected.len() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(String::from_utf8(sink.0.lock().unwrap().clone()).unwrap(), expected);
}

/// Never returns from a write.
struct Stuck;

impl Write for Stuck {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        loop {
            std::thread::park();
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_reader_of_thoughts_who_does_not_read_holds_nobody_up() {
    let caller = Caller::of(Config::default().with(|config| config.log = ThoughtLog::to(Stuck))).await;
    for number in 1..=500 {
        caller.think(number, json!({})).await;
    }
}

/// Not a test of its own: thinks dangerous thoughts, for the one below.
#[tokio::test]
#[ignore = "run by the test below, in an environment of its own"]
async fn child_thinks_dangerous_thoughts() {
    let config = Config::from_env(Vars::new(&|name| std::env::var(name).ok())).unwrap();
    let caller = Caller::of(config).await;
    let dangerous = "MARK \u{1b}[2J\u{1b}]0;title\u{7} \u{9b}31m \u{8}\u{8} \r overwritten \u{202e}txt";
    caller.think(1, json!({ "thought": dangerous, "branchFromThought": 1, "branchId": "\u{1b}[31mid" })).await;
    // The log's own thread writes; when the runtime ends, the server goes, and its log waits until that is done.
}

#[test]
fn escape_sequences_never_reach_standard_error_and_silence_is_the_default() {
    for (env, shown) in [(None, false), (Some("false"), true), (Some("TRUE"), false)] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "behaviour::child_thinks_dangerous_thoughts", "--ignored", "--nocapture"]);
        child.env_remove("DISABLE_THOUGHT_LOGGING");
        child.envs(env.map(|value| ("DISABLE_THOUGHT_LOGGING", value)));
        let output = child.output().unwrap();
        assert!(output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.contains("MARK"), shown, "{env:?}: {said}");
        assert!(!said.chars().any(|c| c != '\n' && c.is_control()), "{env:?}: {said:?}");
        assert!(!said.contains('\u{202e}'), "{env:?}: {said:?}");
    }
}

#[test]
fn the_environment_is_read_and_mistakes_name_the_variable() {
    let read = |vars: &'static [(&'static str, &'static str)]| {
        Config::from_env(Vars::new(&|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())))
    };
    let config = read(&[
        ("MCP_SEQUENTIAL_THINKING_MAX_THOUGHTS", "7"),
        ("MCP_SEQUENTIAL_THINKING_MAX_THOUGHT_BYTES", "8"),
        ("MCP_SEQUENTIAL_THINKING_MAX_BRANCHES", "9"),
        ("MCP_SEQUENTIAL_THINKING_TTL", "10"),
        ("MCP_SEQUENTIAL_THINKING_TOOLSETS", "all"),
    ])
    .unwrap();
    let expected = Limits::default().with(|limits| {
        limits.thoughts_max = 7;
        limits.thought_bytes_max = 8;
        limits.branches_max = 9;
        limits.ttl = Duration::from_secs(10);
    });
    assert_eq!(config.limits, expected);
    assert_eq!(config.tools.toolsets, ["all"]);
    for (vars, on) in [
        (&[][..], false),
        (&[("DISABLE_THOUGHT_LOGGING", "true")], false),
        (&[("DISABLE_THOUGHT_LOGGING", "False")], true),
        (&[("DISABLE_THOUGHT_LOGGING", "1")], false),
        (&[("MCP_SEQUENTIAL_THINKING_LOG_THOUGHTS", "1")], true),
        (&[("MCP_SEQUENTIAL_THINKING_LOG_THOUGHTS", "1"), ("DISABLE_THOUGHT_LOGGING", "TRUE")], false),
    ] {
        let log = format!("{:?}", read(vars).unwrap().log);
        assert_eq!(log == "ThoughtLog(on)", on, "{vars:?}");
    }
    let fault = read(&[("MCP_SEQUENTIAL_THINKING_TTL", "soon")]).unwrap_err();
    assert!(fault.message().contains("MCP_SEQUENTIAL_THINKING_TTL"), "{fault}");
}
