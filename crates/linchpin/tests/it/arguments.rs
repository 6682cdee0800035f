//! The arguments of tools: what fits their schemas, and how what does not is explained.

use crate::common;

use common::{MODERN, Peer, failed, text};
use linchpin::prelude::*;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Trip {
    city: String,
    #[schemars(range(min = 1, max = 14))]
    days: Option<u8>,
    how: Option<How>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum How {
    Train,
    Bike,
}

fn refused(s: &Value, name: &str) -> String {
    let text = failed(s);
    assert!(text.starts_with(&format!("invalid arguments for `{name}`")), "{text}");
    text.to_owned()
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_explained_with_path_expectation_and_near_miss() {
    let schema = json!({
        "type": "object",
        "properties": { "mail": { "type": "string", "pattern": "^[^@]+@[^@]+$" }, "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 2 } },
        "required": ["mail"], "additionalProperties": false
    });
    let server = Server::new("args", "1")
        .tool("trip", |q: Trip| async move { format!("{} {} {}", q.city, q.days.unwrap_or(0), q.how.is_some()) })
        .tool(Tool::new("raw", "").input_schema(schema.clone()), |q: Value| async move { q.to_string() });
    let mut peer = Peer::plain(server, "2025-11-25").await;
    assert_eq!(text(&peer.call("trip", json!({ "city": "Oslo", "days": 3, "how": "bike" })).await), "Oslo 3 true");
    let rows = [
        ("trip", json!({}), &["city"][..]),
        ("trip", json!({ "city": 7 }), &["city", "string"]),
        ("trip", json!({ "citty": "Oslo" }), &["citty", "did you mean", "city"]),
        ("trip", json!({ "city": "Oslo", "days": 99 }), &["days", "14"]),
        ("trip", json!({ "city": "Oslo", "days": "many" }), &["days"]),
        ("trip", json!({ "city": "Oslo", "how": "trian" }), &["how", "train"]),
        ("raw", json!({ "mail": "nobody" }), &["mail"]),
        ("raw", json!({ "mail": "a@b", "tags": ["x", 7] }), &["tags", "string"]),
        ("raw", json!({ "mail": "a@b", "tags": ["x", "y", "z"] }), &["tags"]),
        ("raw", json!({ "mail": "a@b", "more": 1 }), &["more"]),
    ];
    for (tool, arguments, words) in rows {
        let said = refused(&peer.call(tool, arguments.clone()).await, tool);
        for word in words {
            assert!(said.contains(word), "{arguments}: no `{word}` in {said}");
        }
    }
    assert_eq!(text(&peer.call("raw", json!({ "mail": "a@b", "tags": [] })).await), r#"{"mail":"a@b","tags":[]}"#);
    let listed = peer.ask("tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][1]["inputSchema"], schema, "a schema of one's own reaches clients unchanged");
}

#[tokio::test]
async fn arguments_that_may_be_absent_are_listed_without_null_and_taken_with_it() {
    #[derive(Deserialize, JsonSchema)]
    struct Leg {
        to: String,
        at: Option<i64>,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Tour {
        name: Option<String>,
        #[serde(default)]
        how: Option<How>,
        first: Option<Leg>,
        #[serde(default)]
        legs: Vec<Leg>,
        #[serde(default = "one")]
        seats: u8,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Bounded {
        #[serde(flatten)]
        tour: Tour,
        #[schemars(length(min = 2))]
        code: Option<String>,
    }
    fn one() -> u8 {
        1
    }
    fn said(tour: &Tour) -> String {
        let leg = |leg: &Leg| format!("{}@{:?}", leg.to, leg.at);
        let legs: Vec<_> = tour.first.iter().chain(&tour.legs).map(leg).collect();
        format!("{:?} {} {legs:?} {}", tour.name, tour.how.is_some(), tour.seats)
    }
    // The second tool is checked against its schema before it runs, the first one only if decoding fails.
    let server = Server::new("args", "1")
        .tool("tour", |tour: Tour| async move { said(&tour) })
        .tool("bounded", |it: Bounded| async move { format!("{} {:?}", said(&it.tour), it.code) });
    let mut peer = Peer::plain(server, MODERN).await;
    let listed = peer.ask("tools/list", json!({})).await;
    let at = json!({ "type": "integer" });
    let leg = json!({ "type": "object", "properties": { "to": { "type": "string" }, "at": at }, "required": ["to"] });
    for tool in [0, 1] {
        let schema = &listed["result"]["tools"][tool]["inputSchema"];
        assert!(!schema.to_string().contains("null") && schema.get("required").is_none(), "{schema}");
        assert_eq!(schema["properties"]["name"], json!({ "type": "string" }));
        assert_eq!(schema["properties"]["first"], leg);
    }
    let nulls = json!({ "name": null, "how": null, "first": null, "legs": [{ "to": "Oslo", "at": null }] });
    let nested = json!({ "first": { "to": "Rome", "at": null }, "name": "x", "how": "bike", "seats": 2 });
    for (arguments, want) in [
        (json!({}), "None false [] 1"),
        (nulls, r#"None false ["Oslo@None"] 1"#),
        // Some clients send every number as a float; for JSON Schema these are integers.
        (json!({ "seats": 2.0, "legs": [{ "to": "Rome", "at": 1e1 }] }), r#"None false ["Rome@Some(10)"] 2"#),
        (nested, r#"Some("x") true ["Rome@None"] 2"#),
    ] {
        assert_eq!(text(&peer.call("tour", arguments.clone()).await), want, "{arguments}");
        let mut more = arguments.clone();
        more["code"] = Value::Null;
        for arguments in [arguments, more] {
            assert_eq!(text(&peer.call("bounded", arguments.clone()).await), format!("{want} None"), "{arguments}");
        }
    }
    for tool in ["tour", "bounded"] {
        for (arguments, problem) in [
            (json!({ "name": 7 }), "/name: expected a string, got the number 7"),
            (json!({ "name": [null] }), "/name: expected a string, got an array of 1 item"),
            (
                json!({ "how": "trains" }),
                "/how: expected one of \"train\", \"bike\", got the string \"trains\"; did you mean \"train\"?",
            ),
            (json!({ "first": { "to": null } }), "/first/to: expected a string, got null"),
            (
                json!({ "first": { "to": "x", "at": "noon" } }),
                "/first/at: expected an integer, got the string \"noon\"",
            ),
            (json!({ "legs": [{ "to": "x" }, null] }), "/legs/1: expected an object, got null"),
            (json!({ "first": { "to": "x", "at": 1.5 } }), "/first/at: expected an integer, got the number 1.5"),
            (
                json!({ "first": { "to": "x", "at": 1e300 } }),
                "/first/at: expected a whole number from -9007199254740992 to 9007199254740992, got 1e+300",
            ),
            (json!({ "seats": 256.0 }), "/seats: expected at most 255, got 256"),
            // A field with a default is not an `Option`: null is not a number.
            (json!({ "seats": null }), "/seats: expected an integer, got null"),
        ] {
            let said = refused(&peer.call(tool, arguments.clone()).await, tool);
            assert_eq!(said, format!("invalid arguments for `{tool}`: {problem}"), "{arguments}");
        }
    }
    let said = refused(&peer.call("bounded", json!({ "code": "x" })).await, "bounded");
    assert!(said.ends_with("/code: expected at least 2 characters, got 1"), "{said}");
}

#[tokio::test]
async fn schemas_are_taken_by_their_dialect_and_unknown_or_broken_ones_are_refused() {
    let with = |schema: Value| {
        Server::new("x", "1").tool(Tool::new("t", "").input_schema(schema), |q: Value| async move { q.to_string() })
    };
    // The schema of a tuple differs between dialects; without a dialect the newer one applies.
    let tuple = |dialect: Option<&str>, word: &str| {
        let mut schema =
            json!({ "type": "object", "properties": { "a": { "type": "array", word: [{ "type": "string" }] } } });
        if let Some(dialect) = dialect {
            schema["$schema"] = dialect.into();
        }
        schema
    };
    let (newer, older) = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#");
    for (schema, checked) in [
        (tuple(None, "prefixItems"), true),
        (tuple(Some(newer), "prefixItems"), true),
        (tuple(Some(older), "items"), true),
        (tuple(Some(older), "prefixItems"), false),
    ] {
        let mut peer = Peer::plain(with(schema.clone()), MODERN).await;
        let answer = peer.call("t", json!({ "a": [7] })).await;
        assert_eq!(answer["result"]["isError"] == true, checked, "{schema}: {answer}");
    }
    for broken in [
        json!({ "type": "object", "$schema": "https://example.com/no-such-dialect" }),
        json!({ "type": "object", "properties": 7 }),
        json!({ "type": "object", "properties": { "a": { "type": "strange" } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "https://example.com/schema.json" } } }),
    ] {
        let (ours, _theirs) = memory();
        let why = with(broken.clone()).serve(ours).await.expect_err("it is refused").to_string();
        assert!(why.contains("tool `t`") && why.contains("not a JSON Schema this server can check"), "{broken}: {why}");
        let output = Server::new("x", "1")
            .tool(Tool::new("t", "").output_schema(broken.clone()), |_: NoArgs| async { CallToolResult::default() });
        let (ours, _theirs) = memory();
        let why = output.serve(ours).await.expect_err("it is refused").to_string();
        assert!(why.contains("tool `t`") && why.contains("output schema"), "{broken}: {why}");
    }
}

#[tokio::test]
async fn the_number_of_problems_told_is_bounded() {
    let schema = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let server = Server::new("args", "1")
        .limits(|l| l.calls.problems_max = 3)
        .tool(Tool::new("raw", "").input_schema(schema), |q: Value| async move { q.to_string() });
    let mut peer = Peer::plain(server, MODERN).await;
    let many: serde_json::Map<_, _> = (0..50).map(|n| (format!("m{n}"), json!(n))).collect();
    let said = refused(&peer.call("raw", many.into()).await, "raw");
    assert_eq!(said.lines().filter(|l| l.starts_with("- ")).count(), 3, "{said}");
}

#[tokio::test]
async fn long_arguments_are_not_explained_one_by_one() {
    #[derive(Deserialize, JsonSchema)]
    struct Note {
        _day: u8,
        _hour: u8,
        _text: String,
    }
    let mut peer = Peer::plain(Server::new("args", "1").tool("note", |_: Note| async { "noted" }), MODERN).await;
    let wrong = |len: usize| json!({ "_day": "x", "_hour": "y", "_text": "z".repeat(len) });
    let short = refused(&peer.call("note", wrong(10)).await, "note");
    assert_eq!(short.lines().filter(|l| l.starts_with("- /")).count(), 2, "{short}");
    let long = refused(&peer.call("note", wrong(300 << 10)).await, "note");
    assert_eq!(long, "invalid arguments for `note`: invalid type: string \"x\", expected u8");
    let whole = |len: usize| json!({ "_day": 1.0, "_hour": 2, "_text": "z".repeat(len) });
    assert_eq!(text(&peer.call("note", whole(10)).await), "noted");
    let long = refused(&peer.call("note", whole(300 << 10)).await, "note");
    assert_eq!(long, "invalid arguments for `note`: invalid type: floating point `1.0`, expected u8");
}

#[tokio::test]
async fn no_arguments_an_empty_object_and_null_are_the_same() {
    let server = Server::new("args", "1").tool("now", |_: NoArgs| async { "12:00" });
    let mut peer = Peer::plain(server, "2025-11-25").await;
    for params in [
        json!({ "name": "now" }),
        json!({ "name": "now", "arguments": {} }),
        json!({ "name": "now", "arguments": null }),
    ] {
        assert_eq!(text(&peer.ask("tools/call", params).await), "12:00");
    }
    let listed = peer.ask("tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["inputSchema"], json!({ "type": "object", "properties": {} }));
}
