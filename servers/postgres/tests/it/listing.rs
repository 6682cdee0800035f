//! What is offered, without a database: names, hints, and how many tokens the list of tools takes.

use crate::common;

use common::connect;
use linchpin_postgres::{Access, Config, Secret};

/// Nothing listens there.
fn config() -> Config {
    Config::default().with(|config| config.url = Some(Secret::new("postgres://u@127.0.0.1:1/d")))
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_tools_cost_few_tokens_and_say_what_they_do() {
    let client = connect(config().with(|config| config.access = Access::Write)).await;
    let tools = client.tools().await.unwrap().items;
    let names: Vec<&str> = tools.iter().map(|t| t.name.as_str()).collect();
    let expected = [
        "query",
        "pg_list_schemas",
        "pg_list_objects",
        "pg_describe",
        "pg_explain",
        "pg_top_queries",
        "pg_health",
        "pg_execute",
    ];
    assert_eq!(names, expected);
    let bytes: usize = tools.iter().map(|tool| serde_json::to_string(tool).unwrap().len()).sum();
    // About four bytes are a token.
    assert!(bytes <= 5_600, "tools/list has {bytes} bytes");
    for tool in &tools {
        let hints = tool.annotations.clone().unwrap_or_default();
        let destroys = ["query", "pg_execute"].contains(&tool.name.as_str());
        let writes = destroys || tool.name == "pg_explain";
        assert_eq!(hints.read_only_hint, Some(!writes), "{}", tool.name);
        assert_eq!(hints.destructive_hint, Some(destroys), "{}", tool.name);
        assert_eq!(hints.open_world_hint, Some(false), "{}", tool.name);
        assert!(hints.idempotent_hint.is_some() && tool.output_schema.is_some(), "{}", tool.name);
    }
    let client = connect(config()).await;
    let tools = client.tools().await.unwrap().items;
    assert_eq!(tools.len(), 7);
    assert!(tools.iter().all(|tool| tool.annotations.clone().unwrap_or_default().read_only_hint == Some(true)));
    let query = &tools[0];
    let schema = serde_json::to_value(&query.input_schema).unwrap();
    assert_eq!(schema["required"], serde_json::json!(["sql"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tool_is_recommended_only_where_it_is_offered() {
    for (disable, offered) in [(vec![], true), (vec!["pg_execute".to_owned()], false)] {
        let client = connect(config().with(|config| {
            config.access = Access::Write;
            config.tools.disable = disable;
        }))
        .await;
        let tools = client.tools().await.unwrap().items;
        let told = tools[0].description.clone().unwrap();
        assert_eq!((told.contains("pg_execute"), tools.len() == 8), (offered, offered), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_out_of_range_and_unknown_tools_stop_the_start() {
    let mut unknown = config();
    unknown.tools.enable = vec!["pg_nothing".into()];
    let (postgres, _) = linchpin_postgres::Postgres::open(unknown).unwrap();
    assert!(postgres.add_to(linchpin::Server::new("t", "1")).is_err());
    let mut refused = config();
    refused.tools.enable = vec!["pg_execute".into()];
    let (postgres, _) = linchpin_postgres::Postgres::open(refused).unwrap();
    let fault = postgres.add_to(linchpin::Server::new("t", "1")).err().unwrap();
    assert!(fault.to_string().contains("--access-mode write"), "{fault}");
    for config in [
        config().with(|config| config.max_rows = 0),
        config().with(|config| config.max_bytes = 1),
        config().with(|config| config.connections = 0),
        config().with(|config| config.statement_timeout = std::time::Duration::ZERO),
        config().with(|config| config.url = None),
    ] {
        assert!(linchpin_postgres::Postgres::open(config).is_err());
    }
}

#[test]
fn a_function_to_allow_is_named_with_its_schema() {
    let open = |name: &str| {
        linchpin_postgres::Postgres::open(config().with(|config| config.allow_functions = vec![name.into()]))
    };
    for name in ["mark", "", "public.", ".mark"] {
        let fault = open(name).expect_err(name).to_string();
        assert!(fault.contains("--allow-functions") && fault.contains("Write public."), "{name}: {fault}");
    }
    open("public.mark").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_rows_at_all_cannot_be_asked_for() {
    let client = connect(config()).await;
    let tools = client.tools().await.unwrap().items;
    for (tool, argument, args) in [
        ("query", "max_rows", serde_json::json!({ "sql": "SELECT 1", "max_rows": 0 })),
        ("pg_top_queries", "limit", serde_json::json!({ "limit": 0 })),
    ] {
        let listed = tools.iter().find(|t| t.name == tool).unwrap();
        let schema = serde_json::to_value(&listed.input_schema).unwrap();
        assert_eq!(schema["properties"][argument]["minimum"], 1, "{tool}");
        let text = common::error(&client, tool, args).await;
        // Nothing listens, which would be the error if this were not seen before.
        assert!(text.contains(argument) && !text.contains("connect"), "{tool}: {text}");
    }
}

/// Some hosts know no schema that is `true`, and no references.
#[tokio::test(flavor = "multi_thread")]
async fn schemas_are_objects_and_refer_to_nothing() {
    fn look(at: &serde_json::Value, path: &str) {
        match at {
            serde_json::Value::Object(members) => {
                for (name, value) in members {
                    assert!(!["$ref", "$defs", "definitions"].contains(&name.as_str()), "{path}/{name}");
                    let is_schema = ["items", "not", "additionalProperties"].contains(&name.as_str())
                        || path.ends_with("/properties");
                    assert!(!(is_schema && value.is_boolean()), "{path}/{name}");
                    look(value, &format!("{path}/{name}"));
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| look(item, path)),
            _ => {}
        }
    }
    let tools = connect(config().with(|config| config.access = Access::Write)).await.tools().await.unwrap().items;
    assert_eq!(tools.len(), 8);
    for tool in tools {
        look(&serde_json::to_value(&tool.input_schema).unwrap(), &tool.name);
        look(&serde_json::to_value(&tool.output_schema).unwrap(), &tool.name);
    }
}
