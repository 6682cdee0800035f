//! What a server says names its tools as they are listed, and what others wrote stays as it is.

use linchpin::client::{Client, Connection};
use linchpin::transport::in_process;
use linchpin::types::version::Revision;
use linchpin::{NoArgs, Resource, Server};
use linchpin_kit::{Service, ToolChoice, ToolError, ToolOutput, ToolSet, ToolSpec, as_listed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const LIST: ToolSpec =
    ToolSpec::reads("list_all", "List", "all", "Lists names for read_one. To change use `write_one`.");
const READ: ToolSpec = ToolSpec::reads("read_one", "Read", "all", "Reads what list_all shows; the query is `query`.");
const QUERY: ToolSpec = ToolSpec::reads("query", "Query", "all", "Asks.");
const WRITE: ToolSpec = ToolSpec::writes("write_one", "Write", "all", "Writes.");
const BOX: Service = Service { name: "box", tools: &[LIST, READ, QUERY, WRITE] };

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// A name that list_all shows.
    name: String,
    #[serde(default)]
    how: Vec<How>,
}

#[derive(Deserialize, JsonSchema, PartialEq)]
enum How {
    /// As `query` does.
    ToolError,
    /// As list_all does.
    Error,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    /// For read_one.
    name: String,
}

async fn list(_: &(), which: Which) -> Result<ToolOutput<Found>, ToolError> {
    let shown = ToolOutput::outside("read_one", Found { name: "read_one".to_owned() });
    Ok(shown.notice(Some(format!("[Truncated. Continue with list_all and cursor={:?}.]", which.name))))
}

async fn read(_: &(), which: Which) -> Result<ToolOutput<Found>, linchpin::Error> {
    let fault =
        ToolError::not_found(format!("No list_all has {}", which.name)).hint("list_all shows names, `query` asks.");
    // Said while others run too: every name is that of its own server.
    tokio::task::yield_now().await;
    match which.how.first() {
        Some(How::Error) => Err(fault)?,
        _ => Err(linchpin::Error::tool(fault.to_string())),
    }
}

async fn query(_: &(), which: Which) -> Result<String, ToolError> {
    if which.name.is_empty() {
        return Err(ToolError::new("read_one").hint("read_one"));
    }
    Ok(format!("{} {}", as_listed("Call read_one:"), which.name))
}

async fn resource(_: &(), _: NoArgs) -> Result<String, linchpin::Error> {
    tokio::task::yield_now().await;
    Err(ToolError::new("No").hint("list_all shows names.").for_resource())
}

async fn template(_: &(), at: Which) -> Result<String, linchpin::Error> {
    Ok(format!("{} shows {}", as_listed("read_one"), at.name))
}

fn boxed(server: Server, prefix: &str, read_only: bool) -> Server {
    let mut choice = ToolChoice::default();
    (choice.prefix, choice.read_only) = (prefix.parse().unwrap(), read_only);
    let tools = ToolSet::open(server, &BOX, &choice).unwrap().instructions("Start with list_all, then `query`.");
    let tools = tools.tool(&LIST, list).tool(&READ, read).tool(&QUERY, query).tool(&WRITE, query);
    let tools = tools.prompt("ask-me", "Uses list_all.", |prompt| prompt, query);
    let uri = |rest: &str| Resource::new(format!("box://{prefix}/{rest}"));
    tools.resource(uri("all"), resource).resource(uri("one/{name}"), template).close()
}

async fn connected(server: Server, revision: Revision) -> Connection {
    Client::new("test-host", "0").revisions(&[revision]).connect(in_process(server)).await.unwrap()
}

#[tokio::test]
async fn instructions_descriptions_hints_and_notices_name_tools_as_they_are_listed() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        // The prefix, what stands before names then, and before the one that is not offered.
        for (prefix, before) in [("none", ""), ("auto", "box_"), ("my.", "my.")] {
            for read_only in [false, true] {
                let write = if read_only { "write_one".to_owned() } else { format!("{before}write_one") };
                let connection = connected(boxed(Server::new("test", "0"), prefix, read_only), revision).await;
                let wanted = format!("Start with {before}list_all, then `{before}query`.");
                assert_eq!(connection.instructions().unwrap(), wanted);
                let tools = connection.tools().await.unwrap();
                let listed: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
                let own = ["list_all", "read_one", "query", "write_one"];
                let own = own.map(|name| format!("{before}{name}"));
                assert_eq!(listed, own[..if read_only { 3 } else { 4 }]);
                let wanted = format!("Lists names for {before}read_one. To change use `{write}`.");
                assert_eq!(tools[0].description.as_deref(), Some(wanted.as_str()));
                let wanted = format!("Reads what {before}list_all shows; the query is `{before}query`.");
                assert_eq!(tools[1].description.as_deref(), Some(wanted.as_str()));
                let input = tools[1].input_schema.get();
                for wanted in [
                    format!("\"A name that {before}list_all shows.\""),
                    format!("\"As `{before}query` does.\""),
                    format!("\"As {before}list_all does.\""),
                ] {
                    assert!(input.contains(&wanted), "{wanted} in {input}");
                }
                let prompts = connection.prompts().await.unwrap();
                assert_eq!(prompts[0].name, format!("{before}ask-me"));
                assert_eq!(prompts[0].description.as_deref(), Some(format!("Uses {before}list_all.").as_str()));

                // Under every name that it answers to.
                for tool in ["list_all".to_owned(), format!("{before}list_all")] {
                    let said = connection.call(&tool, serde_json::json!({ "name": "read_one" })).await.unwrap();
                    let result = said.result().unwrap();
                    assert_eq!(result.structured_content.as_ref().unwrap().get(), r#"{"name":"read_one"}"#);
                    let texts: Vec<&str> = result.content.iter().filter_map(|block| block.as_text()).collect();
                    let notice = format!("[Truncated. Continue with {before}list_all and cursor=\"read_one\".]");
                    assert_eq!(texts, ["read_one", notice.as_str()]);
                }
                let tool = format!("{before}read_one");
                for how in ["ToolError", "Error"] {
                    let arguments = serde_json::json!({ "name": "read_one", "how": [how] });
                    let said = connection.call(&tool, arguments).await.unwrap();
                    let hint = format!("Hint: {before}list_all shows names, `{before}query` asks.");
                    assert_eq!(said.text(), format!("No list_all has read_one\n{hint}"));
                }
                let tool = format!("{before}query");
                let said = connection.call(&tool, serde_json::json!({ "name": "read_one" })).await.unwrap();
                assert_eq!(said.text(), format!("Call {before}read_one: read_one"));
                let said = connection.call(&tool, serde_json::json!({ "name": "" })).await.unwrap();
                assert_eq!(said.text(), format!("read_one\nHint: {before}read_one"));
                let prompt = connection
                    .prompt(&format!("{before}ask-me"), serde_json::json!({ "name": "read_one" }))
                    .await
                    .unwrap();
                let said = serde_json::to_string(&prompt.messages).unwrap();
                assert!(said.contains(&format!("Call {before}read_one: read_one")), "{said}");
                // Resources and templates too.
                let refused = connection.read(&format!("box://{prefix}/all")).await.unwrap_err().to_string();
                assert!(refused.contains(&format!("No\nHint: {before}list_all shows names.")), "{refused}");
                let said = connection.read(&format!("box://{prefix}/one/read_one")).await.unwrap().text();
                assert_eq!(said, format!("{before}read_one shows read_one"));
                connection.close().await;
            }
        }
    }
}

#[tokio::test]
async fn of_two_servers_of_a_kind_each_says_its_own_names_while_both_run() {
    let server = boxed(boxed(Server::new("test", "0"), "one_", false), "two_", false);
    let connection = connected(server, Revision::V2026_07_28).await;
    let told = connection.instructions().unwrap();
    for name in ["one", "two"] {
        assert!(told.contains(&format!("Start with {name}_list_all, then `{name}_query`.")), "{told}");
    }
    let ask = async |name: &str| {
        let arguments = serde_json::json!({ "name": "x" });
        connection.call(&format!("{name}_read_one"), arguments).await.unwrap().text()
    };
    for _ in 0..20 {
        let (one, two) = tokio::join!(ask("one"), ask("two"));
        for (name, said) in [("one", one), ("two", two)] {
            let hint = format!("Hint: {name}_list_all shows names, `{name}_query` asks.");
            assert_eq!(said, format!("No list_all has x\n{hint}"));
        }
    }
    connection.close().await;
}
