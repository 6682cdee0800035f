//! What is listed, under which names, and in which shapes.
#![cfg(unix)]

use crate::common;

use common::{Session, World, on};
use linchpin::prelude::*;
use linchpin::types::version::Revision;
use linchpin_git::{Config, Git, RootsPolicy, SERVICE};
use linchpin_kit::{ToolPrefix, Vars};
use serde_json::{Value, json};
use std::time::Duration;

/// Name, needed arguments, other published arguments, hints: read-only, destructive, idempotent.
const PUBLISHED: &[(&str, &str, &str, [bool; 3])] = &[
    ("git_status", "repo_path", "", [true, false, true]),
    ("git_diff_unstaged", "repo_path", "context_lines", [true, false, true]),
    ("git_diff_staged", "repo_path", "context_lines", [true, false, true]),
    ("git_diff", "repo_path target", "context_lines", [true, false, true]),
    ("git_commit", "repo_path message", "", [false, false, false]),
    ("git_add", "repo_path files", "", [false, false, true]),
    ("git_reset", "repo_path", "", [false, true, true]),
    ("git_log", "repo_path", "max_count start_timestamp end_timestamp", [true, false, true]),
    ("git_create_branch", "repo_path branch_name", "base_branch", [false, false, false]),
    ("git_checkout", "repo_path branch_name", "", [false, false, false]),
    ("git_show", "repo_path revision", "", [true, false, true]),
    ("git_branch", "repo_path branch_type", "contains not_contains", [true, false, true]),
];

async fn list(config: Config, revision: Revision) -> Vec<Value> {
    let (git, _) = Git::open(config).unwrap();
    let server = git.add_to(Server::new("git", "1")).unwrap();
    let client = Client::new("t", "1").revisions(&[revision]).connect(in_process(server)).await.unwrap();
    client.tools().await.unwrap().iter().map(|tool| serde_json::to_value(tool).unwrap()).collect()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[tokio::test]
async fn the_published_tools_come_first_with_their_arguments_and_hints() {
    let w = World::new();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut config = w.config();
        config.allow_remote = true;
        let tools = list(config, revision).await;
        for (tool, (name, needed, others, hints)) in tools.iter().zip(PUBLISHED) {
            assert_eq!(tool["name"], *name);
            let schema = &tool["inputSchema"];
            let required: Vec<&str> = schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert_eq!(required.join(" "), *needed, "{name}");
            for argument in needed.split(' ').chain(others.split_terminator(' ')) {
                assert!(schema["properties"][argument]["description"].is_string(), "{name} {argument}");
            }
            let [read_only, destructive, idempotent] = hints;
            let expected = json!({"readOnlyHint": read_only, "destructiveHint": destructive, "idempotentHint": idempotent, "openWorldHint": false});
            assert_eq!(tool["annotations"], expected, "{name}");
        }
        let all: Vec<&str> = SERVICE.tools.iter().map(|tool| tool.name).collect();
        assert_eq!(names(&tools), all);
        for tool in &tools {
            let name = tool["name"].as_str().unwrap();
            assert!(name.starts_with("git_") && name.len() <= 40 && name != "git_init");
            assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
            let outside = ["git_fetch", "git_pull", "git_push"].contains(&name);
            assert_eq!(tool["annotations"]["openWorldHint"], outside, "{name}");
        }
        assert_eq!(tools[5]["inputSchema"]["properties"]["files"]["minItems"], 1);
    }
}

#[tokio::test]
async fn the_remote_tools_say_what_is_meant_when_an_argument_is_left_out() {
    let w = World::new();
    let mut config = w.config();
    config.allow_remote = true;
    let tools = list(config, Revision::V2026_07_28).await;
    for (name, order, remote, branch) in [
        (
            "git_fetch",
            "branch prune remote repo_path tags",
            "(default origin",
            "all that are configured for the remote",
        ),
        ("git_pull", "branch ff_only remote repo_path", "that of the upstream branch", "the upstream branch"),
        ("git_push", "branch force remote repo_path set_upstream tag", "(default origin", "(default: the current one"),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let schema = &tool["inputSchema"];
        let mut names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        names.sort();
        assert_eq!(names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" "), order);
        assert_eq!(schema["required"], json!(["repo_path"]), "{name}");
        for (argument, part) in [("remote", remote), ("branch", branch)] {
            let property = &schema["properties"][argument];
            assert!(property["description"].as_str().unwrap().contains(part), "{name} {argument}: {property}");
        }
    }
}

#[tokio::test]
async fn the_operator_chooses_what_is_listed() {
    type Change = fn(&mut Config);
    let w = World::new();
    let cases: &[(Change, &str)] = &[
        (
            |c| c.tools.read_only = true,
            "git_status git_diff_unstaged git_diff_staged git_diff git_log git_show git_branch git_blame git_grep",
        ),
        (
            |c| c.tools.toolsets = vec!["history".into()],
            "git_tag git_stash git_merge git_rebase git_cherry_pick git_worktree",
        ),
        (|c| c.tools.enable = vec!["git_log".into()], "git_log"),
        (
            |c| {
                c.allow_remote = true;
                c.tools.toolsets = vec!["remote".into()];
                c.tools.disable = vec!["git_push".into()];
            },
            "git_fetch git_pull",
        ),
        (
            |c| {
                c.tools.prefix = ToolPrefix::Auto;
                c.tools.enable = vec!["git_log".into()];
            },
            "git_log",
        ),
        (
            |c| {
                c.tools.prefix = ToolPrefix::Text("work.".into());
                c.tools.enable = vec!["git_log".into()];
            },
            "work.git_log",
        ),
    ];
    for (change, expected) in cases {
        let mut config = w.config();
        config.tools.toolsets.clear();
        change(&mut config);
        assert_eq!(names(&list(config, Revision::V2026_07_28).await).join(" "), *expected);
    }
    let mut config = w.config();
    config.tools.enable = vec!["git_init".into()];
    let (git, _) = Git::open(config).unwrap();
    assert!(git.add_to(Server::new("x", "1")).is_err(), "an unknown tool ends the start");
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_of_the_protocol_and_wrong_arguments_are_not() {
    let w = World::new();
    let s = w.open().await;
    for tool in ["git_nosuch", "git_init"] {
        let error = s.client.call(tool, on(&w.at("r"), json!({}))).await.expect_err(tool);
        assert_eq!(error.rpc().map(|rpc| rpc.code), Some(-32602), "{error}");
    }
    for (tool, args) in [
        ("git_status", json!({})),
        ("git_status", json!({"repo_path": 7})),
        ("git_add", on(&w.at("r"), json!({"files": "f.txt"}))),
        ("git_add", on(&w.at("r"), json!({"files": []}))),
        ("git_log", on(&w.at("r"), json!({"max_count": "many"}))),
        ("git_tag", on(&w.at("r"), json!({"action": "explode"}))),
    ] {
        let result = s.call(tool, args.clone()).await;
        assert!(result.is_error(), "{tool} {args}");
        let text = result.text();
        assert!(!text.contains("panicked") && !text.contains("serde") && !text.contains("::"), "{text}");
    }
}

#[tokio::test]
async fn every_answer_fits_its_schema_and_marks_what_others_wrote() {
    let w = World::new();
    w.git("r", &["clone", "-q", "--bare", ".", &w.at("remote.git")]);
    w.git("r", &["remote", "add", "origin", &w.at("remote.git")]);
    w.put("r/f.txt", "changed\n");
    w.put("r/new.txt", "new\n");
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut config = w.config_of(&["r", "remote.git"]);
        config.allow_remote = true;
        let schemas = list(config.clone(), revision).await;
        let s = Session::with(config, Client::new("t", "1").revisions(&[revision])).await;
        let (a, b) = (format!("a{revision:?}"), format!("t{revision:?}"));
        let calls = [
            ("git_status", json!({}), true),
            ("git_diff_unstaged", json!({}), true),
            ("git_diff_staged", json!({}), true),
            ("git_diff", json!({"target": "v1"}), true),
            ("git_add", json!({"files": ["new.txt"]}), false),
            ("git_reset", json!({}), false),
            ("git_log", json!({"max_count": 1}), true),
            ("git_create_branch", json!({"branch_name": a}), false),
            ("git_checkout", json!({"branch_name": "main"}), false),
            ("git_show", json!({"revision": "HEAD"}), true),
            ("git_show", json!({"revision": "HEAD:"}), true),
            ("git_show", json!({"revision": "HEAD:f.txt"}), true),
            ("git_branch", json!({"branch_type": "all"}), true),
            ("git_blame", json!({"path": "f.txt"}), true),
            ("git_grep", json!({"pattern": "c"}), true),
            ("git_tag", json!({}), true),
            ("git_tag", json!({"action": "create", "name": b}), false),
            ("git_stash", json!({"action": "push"}), false),
            ("git_stash", json!({"action": "show"}), true),
            ("git_stash", json!({"action": "pop"}), false),
            ("git_merge", json!({"branch": "v1"}), false),
            ("git_rebase", json!({"upstream": "v1", "confirm": false}), false),
            ("git_worktree", json!({}), true),
            ("git_fetch", json!({}), true),
            ("git_push", json!({}), true),
            ("git_pull", json!({}), false),
        ];
        for (tool, args, outside) in calls {
            let result = s.call(tool, on(&w.at("r"), args.clone())).await;
            if tool == "git_rebase" {
                assert!(result.is_error());
                continue;
            }
            assert!(!result.is_error(), "{tool} {args}: {}", result.text());
            let listed = schemas.iter().find(|listed| listed["name"] == tool).unwrap();
            let value: Value = serde_json::from_str(result.structured().expect("structured")).unwrap();
            let checked = jsonschema::validate(&listed["outputSchema"], &value);
            assert!(checked.is_ok(), "{tool}: {checked:?} {value}");
            let whole: Value = serde_json::from_str(result.as_json()).unwrap();
            let audience = &whole["content"][0]["annotations"]["audience"];
            assert_eq!(*audience, if outside { json!(["assistant"]) } else { Value::Null }, "{tool} {args}");
        }
    }
}

#[tokio::test]
async fn the_instructions_name_what_can_be_used() {
    let w = World::new();
    let s = w.open().await;
    let text = s.client.instructions().unwrap();
    assert!(text.contains(&w.at("r")) && text.contains("repo_path"), "{text}");
}

#[test]
fn the_environment_is_read_and_misread_values_are_named() {
    let get = |name: &str| {
        let value = match name {
            "MCP_GIT_REPOSITORIES" => "/a\n/b:c\n",
            "MCP_GIT_ALLOW_REMOTE" | "MCP_GIT_TRUST_REPO_CONFIG" => "yes",
            "MCP_GIT_ALLOW_ANY" | "MCP_GIT_SIGN" => "off",
            "MCP_GIT_TIMEOUT" => "7",
            "MCP_GIT_MAX_OUTPUT_BYTES" => "1234",
            "MCP_GIT_ROOTS" => "narrow",
            "MCP_GIT_READ_ONLY" => "1",
            "MCP_GIT_TOOLSETS" => "read, history",
            "HOME" => "/srv/me",
            "SECRET_TOKEN" | "GIT_DIR" => "leak",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let config = Config::from_env(Vars::new(&get)).unwrap();
    assert_eq!(config.repositories, ["/a".into(), std::path::PathBuf::from("/b:c")]);
    assert!(
        config.allow_remote && config.trust_repo_config && !config.allow_any && !config.sign && config.tools.read_only
    );
    assert_eq!((config.timeout, config.remote_timeout), (Duration::from_secs(7), Duration::from_secs(300)));
    assert_eq!((config.max_output_bytes, config.roots), (1234, Some(RootsPolicy::Narrow)));
    assert_eq!(config.tools.toolsets, ["read", "history"]);
    assert_eq!(config.environment, [("HOME".to_owned(), "/srv/me".to_owned())], "only what git needs");
    for (name, value) in [
        ("MCP_GIT_ALLOW_ANY", "maybe"),
        ("MCP_GIT_TIMEOUT", "-1"),
        ("MCP_GIT_ROOTS", "replace"),
        ("MCP_GIT_TOOL_PREFIX", "ü"),
    ] {
        let get = |asked: &str| (asked == name).then(|| value.to_owned());
        let fault = Config::from_env(Vars::new(&get)).expect_err(name);
        assert!(fault.to_string().contains(name), "{fault}");
    }
}
