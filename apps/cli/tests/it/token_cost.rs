//! What the tool lists cost a model, beside those of the published servers.
#![cfg(all(feature = "client", unix))]

use crate::common;
use crate::rows;

use common::{REVISIONS, over_pipe, program, run, words};
use linchpin::client::Connection;
use linchpin::types::tool::Tool;
use rows::rows;
use std::path::Path;

/// The tools of the published servers, and what their names, descriptions and input schemas cost (see [`input_cost`]), as
/// measured: mcp-server-git, -fetch and -time 2026.10, mcp-server-sqlite 2025.4, npm's server-filesystem, -memory and
/// -sequential-thinking 2026.8, -brave-search, -google-maps, -everart and -aws-kb-retrieval 0.6.2, -github, -gitlab and -slack 2025.4, -puppeteer 2025.5;
/// mcp-server-sentry 2025.1.
const PUBLISHED: [(&str, usize, &[&str]); 16] = [
    (
        "filesystem",
        1_982,
        &[
            "read_file",
            "read_text_file",
            "read_media_file",
            "read_multiple_files",
            "write_file",
            "edit_file",
            "create_directory",
            "list_directory",
            "list_directory_with_sizes",
            "directory_tree",
            "move_file",
            "search_files",
            "get_file_info",
            "list_allowed_directories",
        ],
    ),
    (
        "git",
        1_186,
        &[
            "git_status",
            "git_diff_unstaged",
            "git_diff_staged",
            "git_diff",
            "git_commit",
            "git_add",
            "git_reset",
            "git_log",
            "git_create_branch",
            "git_checkout",
            "git_show",
            "git_branch",
        ],
    ),
    ("fetch", 260, &["fetch"]),
    (
        "memory",
        1_030,
        &[
            "create_entities",
            "create_relations",
            "add_observations",
            "delete_entities",
            "delete_observations",
            "delete_relations",
            "read_graph",
            "search_nodes",
            "open_nodes",
        ],
    ),
    ("sqlite", 314, &["read_query", "write_query", "create_table", "list_tables", "describe_table", "append_insight"]),
    ("time", 284, &["get_current_time", "convert_time"]),
    ("sequential-thinking", 994, &["sequentialthinking"]),
    // These are not of the seven that are counted together.
    ("brave-search", 359, &["brave_web_search", "brave_local_search"]),
    ("everart", 220, &["generate_image"]),
    ("aws-kb", 116, &["retrieve_from_aws_kb"]),
    (
        "browser",
        604,
        &[
            "puppeteer_navigate",
            "puppeteer_screenshot",
            "puppeteer_click",
            "puppeteer_fill",
            "puppeteer_select",
            "puppeteer_hover",
            "puppeteer_evaluate",
        ],
    ),
    ("sentry", 145, &["get_sentry_issue"]),
    (
        "gitlab",
        1_354,
        &[
            "create_or_update_file",
            "search_repositories",
            "create_repository",
            "get_file_contents",
            "push_files",
            "create_issue",
            "create_merge_request",
            "fork_repository",
            "create_branch",
        ],
    ),
    (
        "slack",
        770,
        &[
            "slack_list_channels",
            "slack_post_message",
            "slack_reply_to_thread",
            "slack_add_reaction",
            "slack_get_channel_history",
            "slack_get_thread_replies",
            "slack_get_users",
            "slack_get_user_profile",
        ],
    ),
    (
        "google-maps",
        652,
        &[
            "maps_geocode",
            "maps_reverse_geocode",
            "maps_search_places",
            "maps_place_details",
            "maps_distance_matrix",
            "maps_elevation",
            "maps_directions",
        ],
    ),
    (
        "github",
        3_937,
        &[
            "create_or_update_file",
            "search_repositories",
            "create_repository",
            "get_file_contents",
            "push_files",
            "create_issue",
            "create_pull_request",
            "fork_repository",
            "create_branch",
            "list_commits",
            "list_issues",
            "update_issue",
            "add_issue_comment",
            "search_code",
            "search_issues",
            "search_users",
            "get_issue",
            "get_pull_request",
            "list_pull_requests",
            "create_pull_request_review",
            "merge_pull_request",
            "get_pull_request_files",
            "get_pull_request_status",
            "update_pull_request_branch",
            "get_pull_request_comments",
            "get_pull_request_reviews",
        ],
    ),
];

/// Maximum tokens of the seven servers in one process.
const ALL_MAX: usize = 13_000;

/// Tokens of name, description and input schema, four bytes each.
fn input_cost(tools: &[Tool]) -> usize {
    let bytes = |tool: &Tool| {
        let described = tool.description.as_deref().unwrap_or_default().len();
        tool.name.len() + described + tool.input_schema.get().len() + 40
    };
    tools.iter().map(bytes).sum::<usize>() / 4
}

/// Tokens of the whole list as it is sent.
fn cost_in_all(tools: &[Tool]) -> usize {
    serde_json::to_string(tools).unwrap().len() / 4
}

/// The README of a server for an API has these figures, if it has a line for them.
fn readme_says(server: &str, figures: &[usize]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../servers").join(server).join("README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let Some((_, line)) = text.split_once("**Tokens of the list**") else { return };
    let line = line.split("\n\n").next().unwrap();
    for figure in figures {
        let figure = match (figure / 1000, figure % 1000) {
            (0, rest) => rest.to_string(),
            (thousands, rest) => format!("{thousands},{rest:03}"),
        };
        assert!(line.contains(&format!(" {figure}")), "{}: no {figure} in{line}", path.display());
    }
}

/// Maximum tokens of a tool of the GitLab server, whose tools have several methods.
const TOOL_MAX: usize = 300;

#[cfg(feature = "gitlab")]
#[tokio::test(flavor = "multi_thread")]
async fn no_tool_of_gitlab_costs_a_model_more_than_300_tokens() {
    let home = tempfile::tempdir().unwrap();
    let row = rows(home.path()).into_iter().find(|row| row.name == "gitlab").unwrap();
    let words = words(&["serve", "gitlab"]).into_iter().chain(row.words()).collect::<Vec<_>>();
    let connection = over_pipe(program(), home.path(), &words, &row.env, REVISIONS[0]).await;
    let tools = listed(&connection).await;
    for tool in &tools {
        let cost = input_cost(std::slice::from_ref(tool));
        assert!(cost <= TOOL_MAX, "{}: {cost}", tool.name);
    }
    readme_says(row.name, &[input_cost(&tools), cost_in_all(&tools)]);
    connection.close().await;
}

async fn listed(connection: &Connection) -> Vec<Tool> {
    let tools = connection.tools().await.unwrap();
    tools.iter().cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn under_its_published_name_a_server_offers_the_published_tools_for_at_most_a_fifth_more() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("names")).unwrap();
    let (code, out, err) = run(home.path(), &["install-names", "names"]);
    assert_eq!(code, Some(0), "{out}{err}");
    for row in rows(home.path()) {
        let Some((_, published, names)) = PUBLISHED.iter().find(|(name, ..)| *name == row.name) else { continue };
        let link = home.path().join("names").join(row.published());
        let connection = over_pipe(&link, home.path(), &row.words(), &row.env, REVISIONS[0]).await;
        let tools = listed(&connection).await;
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), *names);
        let cost = input_cost(&tools);
        assert!(cost * 10 <= published * 12, "{}: {cost} tokens, the published ones {published}", row.name);
        readme_says(row.name, &[cost, cost_in_all(&tools)]);
        connection.close().await;

        let all = row.words().into_iter().chain(words(&["--toolsets", "all"])).collect::<Vec<_>>();
        let connection = over_pipe(&link, home.path(), &all, &row.env, REVISIONS[0]).await;
        let has_no_more = matches!(row.name, "fetch" | "google-maps" | "everart");
        assert!(connection.tools().await.unwrap().len() > names.len() || has_no_more, "{}", row.name);
        connection.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn seven_servers_in_one_process_cost_a_model_little() {
    let home = tempfile::tempdir().unwrap();
    let rows: Vec<_> =
        rows(home.path()).into_iter().filter(|row| PUBLISHED[..7].iter().any(|(name, ..)| *name == row.name)).collect();
    let all: Vec<String> = words(&["serve"]).into_iter().chain(rows.iter().map(|row| row.word.clone())).collect();
    let env: Vec<(String, String)> = rows.iter().flat_map(|row| row.env.iter().cloned()).collect();
    let connection = over_pipe(program(), home.path(), &all, &env, REVISIONS[0]).await;
    let tools = listed(&connection).await;
    let cost = serde_json::to_string(&tools).unwrap().len() / 4;
    assert!(cost <= ALL_MAX.min(300 * tools.len()), "{cost} tokens for {} tools", tools.len());
    connection.close().await;
}
