//! Old names of tools in calls, through a real client in both eras.

use linchpin::Server;
use linchpin::client::{Client, Connection};
use linchpin::transport::in_process;
use linchpin::types::version::Revision;
use linchpin_kit::{Alias, Service, ToolChoice, ToolError, ToolSet, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const MOVE: ToolSpec = ToolSpec::writes("move_file", "Move", "files", "Moves a file.")
    .aliases(&[Alias::of("rename"), Alias::of("mv").arguments(&[("from", "source"), ("to", "destination")])]);
const COUNT: ToolSpec =
    ToolSpec::reads("count", "Count", "files", "Counts.").aliases(&[Alias::of("size"), Alias::of("fs_length")]);
const FILES: Service = Service { name: "fs", tools: &[MOVE, COUNT] };

const SHOP_MOVE: ToolSpec = ToolSpec::writes("mv", "Move", "shop", "Moves house.");
const SHOP_SIZE: ToolSpec = ToolSpec::writes("measure", "Size", "shop", "Measures.").aliases(&[Alias::of("size")]);
const SHOP: Service = Service { name: "shop", tools: &[SHOP_MOVE, SHOP_SIZE] };

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Move {
    source: String,
    destination: Value,
    #[serde(default)]
    from: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn choice(prefix: &str, disable: &[&str]) -> ToolChoice {
    let mut choice = ToolChoice::default();
    choice.prefix = prefix.parse().unwrap();
    choice.disable = disable.iter().map(|name| (*name).to_owned()).collect();
    choice
}

fn files(server: Server, choice: &ToolChoice) -> Result<Server, ToolError> {
    let tools = ToolSet::open(server, &FILES, choice)?
        .tool(&MOVE, |q: Move| async move { format!("{} to {} {}", q.source, q.destination, q.from) })
        .tool(&COUNT, |_: Nothing| async { "counted" });
    Ok(tools.close())
}

fn shop(server: Server, choice: &ToolChoice) -> Result<Server, ToolError> {
    let tools = ToolSet::open(server, &SHOP, choice)?
        .tool(&SHOP_MOVE, |_: Nothing| async { "moved house" })
        .tool(&SHOP_SIZE, |_: Nothing| async { "measured" });
    Ok(tools.close())
}

async fn connected(server: Server, revision: Revision) -> Connection {
    Client::new("test-host", "0").revisions(&[revision]).connect(in_process(server)).await.unwrap()
}

/// What a call answers, or the words of the protocol's error.
async fn said(connection: &Connection, tool: &str, arguments: &Value) -> Result<String, (i32, String)> {
    match connection.call(tool, arguments.clone()).await {
        Ok(result) => Ok(result.text()),
        Err(error) => match error.rpc() {
            Some(rpc) => Err((rpc.code, rpc.message.clone())),
            None => panic!("{tool}: {error}"),
        },
    }
}

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

#[tokio::test]
async fn an_old_name_is_called_with_and_without_the_prefix_and_its_arguments_are_mapped() {
    let now = json!({ "source": "a", "destination": "b" });
    let then = json!({ "from": "a", "to": "b" });
    // Prefix, name, arguments, answer.
    let cases = [
        ("none", "move_file", &now, "a to \"b\" "),
        ("none", "rename", &now, "a to \"b\" "),
        ("none", "mv", &then, "a to \"b\" "),
        ("none", "mv", &now, "a to \"b\" "),
        ("auto", "fs_move_file", &now, "a to \"b\" "),
        ("auto", "move_file", &now, "a to \"b\" "),
        ("auto", "mv", &then, "a to \"b\" "),
        ("auto", "fs_mv", &then, "a to \"b\" "),
        ("auto", "fs_length", &json!({}), "counted"),
        ("my.", "my.mv", &then, "a to \"b\" "),
        ("my.", "mv", &then, "a to \"b\" "),
        ("my.", "my.move_file", &now, "a to \"b\" "),
        // A name that is not an old one of these arguments.
        ("none", "rename", &then, "unknown member `to`"),
        ("none", "move_file", &then, "unknown member `to`"),
        // An old one beside its new one: the handler sees what was sent.
        ("none", "mv", &json!({ "from": "c", "source": "a", "to": "b" }), "a to \"b\" c"),
        // What a value holds is not looked at, and no digit of it is lost.
        (
            "none",
            "mv",
            &json!({ "from": "a", "to": { "from": [1, 12345678901234567890_u64] } }),
            "a to {\"from\":[1,12345678901234567890]} ",
        ),
    ];
    for revision in ERAS {
        for (prefix, name, arguments, wanted) in &cases {
            let server = files(Server::new("test", "0"), &choice(prefix, &[])).unwrap();
            let connection = connected(server, revision).await;
            let said = said(&connection, name, arguments).await.unwrap();
            assert!(said == *wanted || wanted.contains('`') && said.contains(wanted), "{prefix} {name}: {said}");
            let listed = connection.tools().await.unwrap();
            let listed: Vec<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
            let prefix: linchpin_kit::ToolPrefix = prefix.parse().unwrap();
            assert_eq!(listed, [prefix.apply("fs", "move_file"), prefix.apply("fs", "count")]);
            connection.close().await;
        }
    }
}

#[tokio::test]
async fn of_several_servers_the_one_that_has_the_name_answers_and_otherwise_both_are_named() {
    // What is left out of which server, the name, and who answers.
    type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a str, Result<&'a str, &'a [&'a str]>);
    let cases: [Case<'_>; 7] = [
        (&[], &[], "mv", Err(&["fs_move_file", "shop_mv"])),
        (&[], &[], "size", Err(&["fs_count", "shop_measure"])),
        (&[], &[], "fs_size", Ok("counted")),
        (&[], &[], "shop_size", Ok("measured")),
        (&["move_file"], &[], "mv", Ok("moved house")),
        (&["count"], &[], "size", Ok("measured")),
        (&[], &["size"], "size", Ok("counted")),
    ];
    for revision in ERAS {
        for (of_files, of_shop, name, wanted) in cases {
            let server = files(Server::new("test", "0"), &choice("auto", of_files)).unwrap();
            let server = shop(server, &choice("auto", of_shop)).unwrap();
            let connection = connected(server, revision).await;
            match (said(&connection, name, &json!({})).await, wanted) {
                (Ok(said), Ok(wanted)) => assert_eq!(said, wanted, "{name}"),
                (Err((code, message)), Err(names)) => {
                    assert_eq!(code, -32602, "{name}: {message}");
                    assert!(names.iter().all(|name| message.contains(name)), "{name}: {message}");
                }
                (said, wanted) => panic!("{name}: {said:?}, not {wanted:?}"),
            }
            connection.close().await;
        }
    }
}
