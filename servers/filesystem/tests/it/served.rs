//! The server on the wire: what clients are told about the tools, and what calls look like as JSON-RPC.
#![cfg(unix)]

use crate::common;

use std::collections::BTreeSet;

use common::World;
use linchpin::Server;
use linchpin::transport::memory;
use linchpin_filesystem::{Config, Filesystem, RootsPolicy, SERVICE};
use linchpin_kit::ToolPrefix;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

/// A legacy client on the other end of a wire in memory. It answers `roots/list` with `roots`.
struct Client {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    out: WriteHalf<DuplexStream>,
    roots: Option<Vec<String>>,
    id: u64,
}

impl Client {
    async fn of(fs: Filesystem, roots: Option<Vec<String>>) -> Self {
        let server = fs.add_to(Server::new("filesystem", "1.0")).expect("the configuration is fine");
        Self::serving(server, roots).await
    }

    async fn serving(server: Server<Filesystem>, roots: Option<Vec<String>>) -> Self {
        let (place, stream) = memory();
        tokio::spawn(server.serve(place));
        let (input, out) = tokio::io::split(stream);
        let mut client = Self { lines: BufReader::new(input).lines(), out, roots, id: 0 };
        let capabilities = if client.roots.is_some() { json!({"roots": {}}) } else { json!({}) };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}
        });
        let answer = client.ask("initialize", hello).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn send(&mut self, message: Value) {
        self.out.write_all(format!("{message}\n").as_bytes()).await.expect("the server reads");
    }

    /// Sends a request; answers the whole response.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let line = self.lines.next_line().await.expect("the server writes").expect("the server is there");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["method"] == "roots/list" {
                let roots: Vec<Value> = self.roots.iter().flatten().map(|uri| json!({"uri": uri})).collect();
                self.send(json!({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": roots}})).await;
            } else if message["id"] == id {
                return message;
            }
        }
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(answer.get("error").is_none(), "{tool}: {answer}");
        answer["result"].clone()
    }

    async fn tools(&mut self) -> Vec<Value> {
        let answer = self.ask("tools/list", json!({})).await;
        answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("tools in {answer}")).clone()
    }
}

/// Name, title, required arguments, other published arguments, read-only, destructive, idempotent.
type Published = (&'static str, &'static str, &'static str, &'static str, bool, bool, bool);

const PUBLISHED: &[Published] = &[
    ("read_file", "Read File (Deprecated)", "path", "tail head", true, false, true),
    ("read_text_file", "Read Text File", "path", "tail head", true, false, true),
    ("read_media_file", "Read Media File", "path", "", true, false, true),
    ("read_multiple_files", "Read Multiple Files", "paths", "", true, false, true),
    ("write_file", "Write File", "path content", "", false, true, true),
    ("edit_file", "Edit File", "path edits", "dryRun", false, true, false),
    ("create_directory", "Create Directory", "path", "", false, false, true),
    ("list_directory", "List Directory", "path", "", true, false, true),
    ("list_directory_with_sizes", "List Directory with Sizes", "path", "sortBy", true, false, true),
    ("directory_tree", "Directory Tree", "path", "excludePatterns", true, false, true),
    ("move_file", "Move File", "source destination", "", false, true, false),
    ("search_files", "Search Files", "path pattern", "excludePatterns", true, false, true),
    ("get_file_info", "Get File Info", "path", "", true, false, true),
    ("list_allowed_directories", "List Allowed Directories", "", "", true, false, true),
];

#[tokio::test]
async fn the_published_tools_are_listed_as_published() {
    let w = World::with(|config| config.tools.toolsets.clear());
    let tools = Client::of(w.fs.clone(), None).await.tools().await;
    for (tool, published) in tools.iter().zip(PUBLISHED) {
        let (name, title, required, others, read_only, destructive, idempotent) = *published;
        assert_eq!(tool["name"], name);
        assert_eq!(tool["title"], title);
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 20), "{tool}");
        assert_eq!(
            tool["annotations"],
            json!({
                "readOnlyHint": read_only, "destructiveHint": destructive, "idempotentHint": idempotent, "openWorldHint": false
            }),
            "{name}"
        );
        let names = |text: &'static str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object");
        let listed = |value: &Value| -> BTreeSet<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        assert_eq!(listed(&schema["required"]), names(required), "{name}");
        let properties: BTreeSet<String> =
            schema["properties"].as_object().expect("properties").keys().cloned().collect();
        assert!(
            properties.is_superset(&names(required)) && properties.is_superset(&names(others)),
            "{name}: {properties:?}"
        );
        let output = &tool["outputSchema"];
        assert_eq!(output["type"], "object", "{name}");
        assert!(listed(&output["required"]).contains("content"), "{name}: {output}");
    }
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let expected: Vec<&str> =
        SERVICE.tools.iter().map(|tool| tool.name).filter(|name| !["fs_copy", "fs_delete"].contains(name)).collect();
    assert_eq!(names, expected, "every tool but a rare one and one that needs permission, in order");
    assert!(names[PUBLISHED.len()..].iter().all(|name| name.starts_with("fs_") && name.len() <= 40));
}

#[tokio::test]
async fn the_configuration_decides_what_is_listed() {
    type Change = fn(&mut Config);
    let cases: &[(Change, &str)] = &[
        (|c| c.tools.toolsets = vec!["search".into()], "search_files fs_search_content fs_glob"),
        (|c| c.tools.enable = vec!["fs_glob".into()], "fs_glob"),
        (
            |c| {
                c.tools.prefix = ToolPrefix::Auto;
                c.tools.enable = vec!["read_file".into(), "write_file".into()];
                c.tools.read_only = true;
            },
            "fs_read_file",
        ),
        (
            |c| {
                c.allow_delete = true;
                c.tools.toolsets = vec!["delete".into()];
            },
            "fs_delete",
        ),
    ];
    for (change, expected) in cases {
        let w = World::with(|config| {
            config.tools.toolsets.clear();
            change(config);
        });
        let tools = Client::of(w.fs.clone(), None).await.tools().await;
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names.join(" "), *expected);
    }
    let w = World::with(|c| c.tools.enable = vec!["nosuch".into()]);
    let error = w.fs.clone().add_to(Server::new("x", "1")).expect_err("an unknown tool");
    assert!(error.to_string().contains("nosuch"));
}

#[tokio::test]
async fn calls_answer_text_and_structure_alike() {
    let w = World::new();
    w.put("n.txt", "1\n2\n");
    w.put("x.png", b"\x89PNG");
    let mut client = Client::of(w.fs.clone(), None).await;
    for (tool, arguments, text) in [
        ("read_text_file", json!({"path": "n.txt"}), "1\n2\n"),
        ("read_file", json!({"path": "n.txt", "head": 1.0}), "1"),
        ("list_directory", json!({"path": w.at("")}), "[FILE] n.txt\n[FILE] x.png"),
        ("write_file", json!({"path": "w", "content": "x"}), "Successfully wrote to w"),
    ] {
        let result = client.call(tool, arguments).await;
        assert_eq!(result["content"][0]["type"], "text");
        assert_eq!(result["content"][0]["text"], text, "{tool}");
        assert_eq!(result["structuredContent"], json!({"content": text}), "{tool}");
        let audience = if tool == "write_file" { Value::Null } else { json!(["assistant"]) };
        assert_eq!(result["content"][0]["annotations"]["audience"], audience, "what files say is marked: {tool}");
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{tool}");
        assert!(result.get("isError").is_none_or(|error| error == false), "{tool}");
    }
    let media = client.call("read_media_file", json!({"path": "x.png"})).await;
    let block = json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"});
    assert_eq!(media["structuredContent"], json!({"content": [block]}));
    assert_eq!(media["content"][0]["data"], "iVBORw==");
}

#[tokio::test]
async fn every_structured_answer_fits_its_schema() {
    let w = World::with(|config| {
        config.allow_delete = true;
        config.max_entries = 2;
    });
    w.put("n.txt", "1\n2\n2\n");
    w.put("latin.txt", b"caf\xe9\n");
    w.put("d/x.png", b"\x89PNG");
    w.put("d/y.ogg", "o");
    w.put("d/z.bin", b"\0");
    let mut client = Client::of(w.fs.clone(), None).await;
    let tools = client.tools().await;
    let mut seen = BTreeSet::new();
    for (tool, arguments) in [
        ("read_file", json!({"path": "n.txt"})),
        ("read_text_file", json!({"path": "latin.txt"})),
        ("read_media_file", json!({"path": "d/x.png"})),
        ("read_media_file", json!({"path": "d/y.ogg"})),
        ("read_media_file", json!({"path": "d/z.bin"})),
        ("read_multiple_files", json!({"paths": ["n.txt", "nope"]})),
        ("write_file", json!({"path": "w", "content": "x"})),
        ("edit_file", json!({"path": "n.txt", "edits": [{"oldText": "2", "newText": "3"}]})),
        ("create_directory", json!({"path": "new/deep"})),
        ("list_directory", json!({"path": "."})),
        ("list_directory_with_sizes", json!({"path": ".", "sortBy": "size"})),
        ("directory_tree", json!({"path": "."})),
        ("move_file", json!({"source": "w", "destination": "w2"})),
        ("search_files", json!({"path": ".", "pattern": "**"})),
        ("get_file_info", json!({"path": "d"})),
        ("list_allowed_directories", json!({})),
        ("fs_read_range", json!({"path": "n.txt", "limit": 1})),
        ("fs_search_content", json!({"path": ".", "pattern": "."})),
        ("fs_glob", json!({"path": ".", "pattern": "**", "limit": 1})),
        ("fs_append", json!({"path": "w2", "content": "y"})),
        ("fs_copy", json!({"source": "d", "destination": "e", "recursive": true})),
        ("fs_delete", json!({"path": "e", "recursive": true})),
    ] {
        let schema = &tools.iter().find(|listed| listed["name"] == tool).expect("listed")["outputSchema"];
        let result = client.call(tool, arguments.clone()).await;
        let errors: Vec<String> = jsonschema::validator_for(schema)
            .expect("a schema")
            .iter_errors(&result["structuredContent"])
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{tool} {arguments}: {result}");
        assert!(
            result["structuredContent"]["content"] != Value::Null && result.get("isError").is_none(),
            "{tool}: {result}"
        );
        seen.insert(tool);
    }
    assert_eq!(seen.len(), SERVICE.tools.len(), "every tool was called");
}

#[tokio::test]
async fn a_cut_answer_carries_a_notice_beside_the_clean_text() {
    let w = World::with(|config| config.max_entries = 1);
    w.put("a", "");
    w.put("b", "");
    let result = Client::of(w.fs.clone(), None).await.call("list_directory", json!({"path": w.at("")})).await;
    assert_eq!(result["structuredContent"], json!({"content": "[FILE] a", "truncated": true, "next_cursor": "a"}));
    assert_eq!(result["content"][0]["text"], "[FILE] a");
    assert!(result["content"][1]["text"].as_str().is_some_and(|text| text.contains("cursor=\"a\"")));
}

#[tokio::test]
async fn failures_are_results_and_unknown_tools_are_errors() {
    let w = World::new();
    let mut client = Client::of(w.fs.clone(), None).await;
    for (tool, arguments, words) in [
        ("read_text_file", json!({"path": "/etc/passwd"}), "Access denied"),
        ("read_text_file", json!({}), "path"),
        ("read_text_file", json!({"path": 5}), "path"),
        ("read_text_file", json!({"path": "n.txt", "head": -1}), "/head: expected at least 0, got -1"),
        ("read_text_file", json!({"path": "n.txt", "head": 1.5}), "/head: expected an integer, got the number 1.5"),
        ("fs_read_range", json!({"path": "n.txt", "limit": 0.5}), "/limit: expected an integer, got the number 0.5"),
        ("read_multiple_files", json!({"paths": []}), "paths"),
        ("list_directory_with_sizes", json!({"path": ".", "sortBy": "age"}), "sortBy"),
        ("edit_file", json!({"path": "n.txt", "edits": [{"oldText": "x"}]}), "newText"),
    ] {
        let result = client.call(tool, arguments.clone()).await;
        let text = result["content"][0]["text"].as_str().expect("text");
        assert_eq!(result["isError"], true, "{tool} {arguments}");
        assert!(text.contains(words), "{tool} {arguments}: {text}");
        for leak in ["linchpin", "serde", "struct ", "Fs", "ReadFile", "panicked"] {
            assert!(!text.contains(leak), "{tool} {arguments}: {text}");
        }
    }
    // For JSON Schema 2.0 is an integer.
    w.put("lines.txt", "1\n2\n3\n");
    let result = client.call("read_text_file", json!({"path": w.at("lines.txt"), "head": 2.0})).await;
    assert_eq!(result["structuredContent"]["content"], "1\n2");
    let range = json!({"path": w.at("lines.txt"), "offset": 2.0, "limit": 1e0});
    let result = client.call("fs_read_range", range).await;
    assert!(
        result["isError"] != true && result["content"][0]["text"].as_str().is_some_and(|text| text.starts_with('2')),
        "{result}"
    );
    for name in ["nosuch", "fs_delete"] {
        let answer = client.ask("tools/call", json!({"name": name, "arguments": {"path": "x"}})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(name)), "{answer}");
    }
}

#[tokio::test]
async fn files_are_resources_only_when_asked_for() {
    let w = World::with(|config| config.resources = true);
    w.put("a b.txt", "text");
    w.put("bin", b"\0\x01");
    let mut client = Client::of(w.fs.clone(), None).await;
    let templates = client.ask("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "file:///{+path}");
    let uri = format!("file://{}/a%20b.txt", w.at(""));
    let read = client.ask("resources/read", json!({"uri": uri})).await;
    assert_eq!(read["result"]["contents"], json!([{"uri": uri, "mimeType": "text/plain", "text": "text"}]), "{read}");
    let read = client.ask("resources/read", json!({"uri": format!("file://{}", w.at("bin"))})).await;
    assert_eq!(read["result"]["contents"][0]["blob"], "AAE=", "{read}");
    for bad in ["nope".to_owned(), "../ws-evil/s.txt".to_owned(), "%2e%2e/ws-evil/s.txt".to_owned()] {
        let read = client.ask("resources/read", json!({"uri": format!("file://{}", w.at(&bad))})).await;
        assert_eq!(read["error"]["code"], -32002, "{bad}: {read}");
    }
    let plain = World::new();
    let answer = Client::of(plain.fs.clone(), None).await.ask("resources/templates/list", json!({})).await;
    assert!(answer["error"]["code"] == -32601 || answer["result"]["resourceTemplates"] == json!([]), "{answer}");
}

#[tokio::test]
async fn two_named_servers_of_one_process_have_resources_of_their_own() {
    let named = |name: &'static str| {
        World::with(move |config| {
            config.resources = true;
            config.tools.scope = Some(name.to_owned());
            config.tools.prefix = ToolPrefix::Text(format!("{name}_"));
        })
    };
    let (a, b) = (named("a"), named("b"));
    b.put("x", "of b");
    let both = a.fs.clone().add_to(Server::new("two", "1")).and_then(|server| b.fs.clone().add_to(server));
    let mut client = Client::serving(both.expect("no two things of one name"), None).await;
    let uri = format!("file://b{}", b.at("x"));
    let read = client.ask("resources/read", json!({"uri": uri})).await;
    assert_eq!(read["result"]["contents"][0]["text"], "of b", "{read}");
    let read = client.ask("resources/read", json!({"uri": format!("file://a{}", b.at("x"))})).await;
    assert_eq!(read["error"]["code"], -32002, "the other server may not: {read}");
}

#[tokio::test]
async fn a_clients_roots_count_only_for_that_client() {
    let w = World::with(|config| config.roots = Some(RootsPolicy::Narrow));
    w.put("sub/x", "inside");
    w.put("y", "above");
    let mut narrow = Client::of(w.fs.clone(), Some(vec![format!("file://{}", w.at("sub"))])).await;
    let mut plain = Client::of(w.fs.clone(), None).await;
    assert_eq!(narrow.call("read_text_file", json!({"path": "x"})).await["content"][0]["text"], "inside");
    assert_eq!(narrow.call("read_text_file", json!({"path": w.at("y")})).await["isError"], true);
    assert_eq!(plain.call("read_text_file", json!({"path": w.at("y")})).await["content"][0]["text"], "above");
    // Without a directory of its own the server takes the client's where it is told to.
    let (open, _) =
        Filesystem::open(Config::default().with(|config| config.roots = Some(RootsPolicy::Use))).expect("opened");
    let mut client = Client::of(open.clone(), Some(vec![format!("file://{}", w.at(""))])).await;
    assert_eq!(client.call("read_text_file", json!({"path": "y"})).await["content"][0]["text"], "above");
    let text = Client::of(open, None).await.call("read_text_file", json!({"path": "y"})).await;
    assert!(
        text["content"][0]["text"].as_str().is_some_and(|text| text.contains("mcp-server-filesystem DIR")),
        "{text}"
    );
}

#[tokio::test]
async fn errors_of_resources_name_tools_as_they_are_listed() {
    for (prefix, listed) in [("none", "list_directory"), ("auto", "fs_list_directory"), ("my.", "my.list_directory")] {
        // Fixed directories, and a client's roots.
        for roots in [RootsPolicy::Ignore, RootsPolicy::Narrow] {
            let w = World::with(|config| {
                config.resources = true;
                config.roots = Some(roots);
                config.tools.prefix = prefix.parse().expect("a prefix");
            });
            let mut client = Client::of(w.fs.clone(), Some(vec![w.at("")])).await;
            let refused = client.ask("resources/read", json!({"uri": format!("file://{}", w.at(""))})).await;
            let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
            assert!(message.ends_with(&format!("\nHint: Use {listed} for directories.")), "{prefix}: {message}");
        }
    }
}

/// The stateless revision: no handshake, everything in `_meta`, questions come back as `input_required`.
#[tokio::test]
async fn the_stateless_revision_gets_the_same_answers_and_is_asked_for_roots() {
    let config = Config::default().with(|config| {
        config.resources = true;
        config.roots = Some(RootsPolicy::Use);
    });
    let (open, _) = Filesystem::open(config).expect("opened");
    let w = World::new();
    w.put("x", "inside");
    let (place, stream) = memory();
    tokio::spawn(open.add_to(Server::new("filesystem", "1.0")).expect("fine").serve(place));
    let (input, out) = tokio::io::split(stream);
    let mut client = Client { lines: BufReader::new(input).lines(), out, roots: None, id: 0 };
    let with_meta = |capabilities: Value, mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": capabilities
        });
        params
    };
    let call = json!({"name": "read_text_file", "arguments": {"path": "x"}});
    let refused = client.ask("tools/call", with_meta(json!({}), call.clone())).await;
    assert_eq!(refused["result"]["isError"], true, "without roots there is nothing to use: {refused}");
    let asked = client.ask("tools/call", with_meta(json!({"roots": {}}), call.clone())).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let questions = asked["inputRequests"].as_object().expect("questions");
    let (key, question) = questions.iter().next().expect("one question");
    assert_eq!(question["method"], "roots/list");
    let mut again = call;
    again["inputResponses"] = json!({key: {"roots": [{"uri": format!("file://{}", w.at(""))}]}});
    if let Some(state) = asked.get("requestState") {
        again["requestState"] = state.clone();
    }
    let answer = client.ask("tools/call", with_meta(json!({"roots": {}}), again)).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"content": "inside"}), "{answer}");
    let missing = client.ask("resources/read", with_meta(json!({}), json!({"uri": "file:///nope"}))).await;
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
}
