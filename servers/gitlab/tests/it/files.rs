//! Files, and what takes several requests.

use crate::rows::{server, suite};
use linchpin::testing::site::{Do, Site, json};
use linchpin_rest::testing::call;
use serde_json::{Value, json};

const PROJECT: &str = "/api/v4/projects/group%2Fproject/repository";

/// A repository with these files.
async fn repository(files: &'static [(&'static str, &'static str)]) -> Site {
    Site::new(move |_, seen| {
        let path = seen.path().strip_prefix(PROJECT).unwrap_or_default();
        let asked = path.strip_prefix("/files/").map(|name| name.replace("%2F", "/"));
        vec![Do::Write(match (seen.method.as_str(), asked) {
            ("GET", Some(name)) => match files.iter().find(|(known, _)| *known == name) {
                Some((_, content)) => {
                    json(200, "", &json!({ "file_path": name, "encoding": "base64", "content": content }))
                }
                None => json(404, "", &json!({ "message": "404 File Not Found" })),
            },
            ("GET", None) if seen.query().contains("path=docs&") || seen.query().contains("path=&") => {
                json(200, "x-next-page: 2\r\n", &json!([{ "name": "a.md", "path": "docs/a.md", "type": "blob" }]))
            }
            ("GET", None) => json(200, "", &json!([])),
            (_, Some(name)) => json(200, "", &json!({ "file_path": name, "branch": "main" })),
            (_, None) => json(201, "", &json!({ "id": "abcdef", "title": "Push" })),
        })]
    })
    .await
}

fn body(site: &Site) -> Value {
    serde_json::from_slice(&site.requests().last().unwrap().body).unwrap()
}

#[tokio::test]
async fn files_are_created_or_updated_each_as_it_is_needed() {
    let site = repository(&[("docs/a.md", "YQ==")]).await;
    let connection = server(&site, |_| {}).await;
    let files = json!([{ "file_path": "docs/a.md", "content": "1" }, { "file_path": "new ü.md", "content": "2" }]);
    let mut arguments =
        json!({ "project_id": "group/project", "branch": "main", "files": files, "commit_message": "m" });
    let told = call(&connection, "push_files", arguments.clone()).await;
    assert_eq!(told.structured, json!({ "id": "abcdef", "title": "Push" }));
    let actions = json!([
        { "action": "update", "file_path": "docs/a.md", "content": "1" },
        { "action": "create", "file_path": "new ü.md", "content": "2" },
    ]);
    assert_eq!(body(&site), json!({ "branch": "main", "commit_message": "m", "actions": actions }));
    assert!(site.requests()[0].query() == "ref=main");
    // On a branch that does not exist yet, what is there is on the one that it starts from.
    arguments["start_branch"] = json!("old");
    assert!(!call(&connection, "push_files", arguments).await.failed);
    assert!(body(&site)["start_branch"] == "old" && site.requests()[3].query() == "ref=old");
}

#[tokio::test]
async fn one_file_is_created_updated_or_moved() {
    let site = repository(&[("docs/a.md", "YQ==")]).await;
    let connection = server(&site, |_| {}).await;
    for (path, previous, method, target) in [
        ("docs/a.md", None, "PUT", "/files/docs%2Fa.md"),
        ("docs/b.md", None, "POST", "/files/docs%2Fb.md"),
        ("docs/b.md", Some("docs/a.md"), "POST", "/commits"),
    ] {
        let mut arguments = json!({
            "project_id": "group/project", "file_path": path, "content": "x", "commit_message": "m", "branch": "main",
        });
        if let Some(previous) = previous {
            arguments["previous_path"] = json!(previous);
        }
        let told = call(&connection, "create_or_update_file", arguments).await;
        assert_eq!((&told.structured["file_path"], &told.structured["branch"]), (&json!(path), &json!("main")));
        let seen = site.requests().last().unwrap().clone();
        assert_eq!((seen.method.as_str(), seen.target.as_str()), (method, format!("{PROJECT}{target}").as_str()));
    }
    let action = json!({ "action": "move", "file_path": "docs/b.md", "previous_path": "docs/a.md", "content": "x" });
    assert_eq!(body(&site)["actions"], json!([action]));
}

#[tokio::test]
async fn a_file_may_be_empty() {
    let site = repository(&[]).await;
    let connection = server(&site, |_| {}).await;
    let mut arguments = json!({
        "project_id": "group/project", "file_path": ".gitkeep", "content": "", "commit_message": "m", "branch": "main",
    });
    let told = call(&connection, "create_or_update_file", arguments.clone()).await;
    assert!(!told.failed && body(&site)["content"] == "", "{}", told.result);
    let before = site.requests().len();
    arguments["content"] = json!(["x"]);
    assert!(call(&connection, "create_or_update_file", arguments).await.failed);
    assert_eq!(site.requests().len(), before);
}

#[tokio::test]
async fn a_file_that_is_written_back_has_the_line_breaks_it_had() {
    // a\r\nb\r\n; a\u{202e}\r\nb\u{200b}; a\0b
    let site = repository(&[("crlf.txt", "YQ0KYg0K"), ("odd.txt", "YeKArg0KYuKAiw=="), ("nul.bin", "YQBi")]).await;
    let connection = server(&site, |_| {}).await;
    for (path, content, left_out) in [
        ("crlf.txt", "a\r\nb\r\n", json!(null)),
        ("odd.txt", "a\r\nb", json!("2 control or invisible characters")),
        ("nul.bin", "YQBi", json!(null)),
    ] {
        let arguments = json!({ "project_id": "group/project", "file_path": path });
        let told = call(&connection, "get_file_contents", arguments).await;
        assert_eq!(told.structured["content"], content, "{path}: {}", told.result);
        assert_eq!(told.structured.get("left_out").unwrap_or(&json!(null)), &left_out, "{path}");
    }
}

#[tokio::test]
async fn where_projects_are_named_they_are_searched_and_nothing_else() {
    let site = Site::new(|_, seen| {
        let one = |id: u64, path: &str| json!({ "id": id, "name": "Tool", "path_with_namespace": path });
        vec![Do::Write(match seen.path() {
            "/api/v4/projects/group%2Ftool" => json(200, "", &one(1, "group/tool")),
            "/api/v4/projects/42" => json(200, "", &one(42, "other/tool")),
            "/api/v4/projects/moved%2Fone" => json(200, "", &one(7, "elsewhere/tool")),
            _ => json(404, "", &json!({ "message": "404 Project Not Found" })),
        })]
    })
    .await;
    let connection = server(&site, |config| {
        config.projects = ["group/tool", "42", "gone/one", "moved/one"].map(str::to_owned).to_vec();
    })
    .await;
    for (words, want) in [("tool", vec![1, 42]), ("GROUP tool", vec![1]), ("other/", vec![42]), ("missing", vec![])] {
        let told = call(&connection, "search_repositories", json!({ "search": words })).await;
        let ids: Vec<u64> =
            told.structured["items"].as_array().unwrap().iter().map(|one| one["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, want, "{words}: {}", told.result);
    }
    let told = call(&connection, "search_repositories", json!({ "search": "tool", "page": 2 })).await;
    assert_eq!(told.structured["items"], json!([]), "{}", told.result);
    assert!(site.requests().iter().all(|seen| seen.path().starts_with("/api/v4/projects/")));
}

#[tokio::test]
async fn a_write_whose_outcome_is_unknown_is_not_repeated_and_says_so() {
    let site = Site::new(|n, _| {
        vec![Do::Write(match n {
            0 => json(404, "", &json!({})),
            _ => json(503, "retry-after: 0\r\n", &json!({})),
        })]
    })
    .await;
    let connection = server(&site, |_| {}).await;
    let files = json!([{ "file_path": "a", "content": "1" }]);
    let arguments = json!({ "project_id": "g/p", "branch": "main", "files": files, "commit_message": "m" });
    let told = call(&connection, "push_files", arguments).await;
    assert!(told.failed && told.text.contains("may have taken effect"), "{}", told.text);
    assert_eq!(site.requests().iter().filter(|seen| seen.method == "POST").count(), 1);
}

#[tokio::test]
async fn text_is_read_as_text_and_directories_are_listed() {
    let site = repository(&[("docs/a.md", "IyBIaeKArgo="), ("x.png", "iVBORw==/+8=")]).await;
    let connection = server(&site, |_| {}).await;
    let read = async |path: &str| {
        call(&connection, "get_file_contents", json!({ "project_id": "group/project", "file_path": path })).await
    };
    let told = read("docs/a.md").await;
    // Without its hidden character.
    assert_eq!((&told.structured["content"], &told.structured["encoding"]), (&json!("# Hi\n"), &json!("text")));
    let told = read("x.png").await;
    assert_eq!(told.structured["encoding"], "base64");
    for path in ["docs", "/", "."] {
        let told = read(path).await;
        assert_eq!(told.structured["entries"][0]["path"], "docs/a.md", "{path}: {}", told.result);
        assert_eq!(told.structured["more"], "There is more: use gitlab_repo_tree.");
    }
    let told = read("missing").await;
    assert_eq!((told.kind.as_str(), &told.result["content"][1]["text"]), ("not_found", &json!("404 File Not Found")));
}

#[tokio::test]
async fn projects_and_paths_never_lead_elsewhere() {
    let site = suite().site().await;
    let connection = server(&site, |_| {}).await;
    for (project, file) in [
        ("..", "a"),
        ("%2e%2e", "a"),
        ("g/../../user", "a"),
        ("g/p", ".."),
        ("g/p", "../a"),
        ("g/p", "a/../../b"),
        ("g/p", "%2e%2e%2fa"),
        ("g/p", "a%00"),
        ("g/p", ""),
        ("g/p", "a//b"),
    ] {
        let one = json!({ "file_path": file, "content": "x" });
        for (tool, more) in [
            ("get_file_contents", json!({ "file_path": file })),
            (
                "create_or_update_file",
                json!({ "file_path": file, "content": "x", "commit_message": "m", "branch": "b" }),
            ),
            ("push_files", json!({ "branch": "b", "files": [one], "commit_message": "m" })),
        ] {
            let mut arguments = more;
            arguments["project_id"] = json!(project);
            let told = call(&connection, tool, arguments).await;
            assert!(told.failed && told.kind == "invalid", "{tool} {project} {file}: {}", told.result);
        }
    }
    let none = json!({ "project_id": "g/p", "branch": "b", "files": [], "commit_message": "m" });
    assert_eq!(call(&connection, "push_files", none).await.kind, "invalid");
    assert!(site.requests().is_empty(), "{:?}", site.requests());
    for (file, want) in [("a b/ü#?.md", "a%20b%2F%C3%BC%23%3F.md"), ("a%20b", "a%2520b")] {
        assert!(
            !call(&connection, "get_file_contents", json!({ "project_id": "g/p/q", "file_path": file })).await.failed
        );
        let target = site.requests().last().unwrap().target.clone();
        assert_eq!(target, format!("/api/v4/projects/g%2Fp%2Fq/repository/files/{want}?ref=HEAD"));
    }
}

#[tokio::test]
async fn the_number_of_projects_is_that_of_all_that_were_found() {
    let site = Site::saying(json(200, "x-total: 17\r\nx-next-page: 3\r\n", &json!([{ "id": 1, "name": "a" }]))).await;
    let connection = server(&site, |_| {}).await;
    let told = call(&connection, "search_repositories", json!({ "search": "a", "page": 2 })).await;
    assert_eq!(told.structured, json!({ "count": 17, "next_page": 3, "items": [{ "id": 1, "name": "a" }] }));
    assert_eq!(serde_json::from_str::<Value>(&told.text).unwrap(), told.structured);
}
