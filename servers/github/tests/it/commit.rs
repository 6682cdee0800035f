//! Writing: nothing is lost, and nothing changes that was not meant.

use crate::rows::{connected, in_o_r, last_body, sent, site};
use linchpin_rest::testing::call;
use serde_json::{Value, json};

fn push(files: Value) -> Value {
    in_o_r(json!({ "branch": "main", "files": files, "message": "m" }))
}

#[tokio::test]
async fn files_keep_the_modes_that_they_have() {
    let site = site(|seen| {
        let folder = json!({ "sha": "bin", "truncated": false, "tree": [
            { "path": "deploy", "mode": "100755", "type": "blob", "sha": "4" }] });
        let root = json!({ "sha": "ttt", "truncated": false, "tree": [
            { "path": "bin", "mode": "040000", "type": "tree", "sha": "bin" },
            { "path": "latest", "mode": "120000", "type": "blob", "sha": "2" },
            { "path": "vendor", "mode": "160000", "type": "commit", "sha": "3" },
            { "path": "README", "mode": "100644", "type": "blob", "sha": "5" }] });
        match seen.path() {
            "/repos/o/r/git/trees/ttt" => Some((200, root)),
            "/repos/o/r/git/trees/bin" => Some((200, folder)),
            _ => None,
        }
    })
    .await;
    let connection = connected(&site, |_| {}).await;
    let file = |path: &str| json!({ "path": path, "content": "x" });
    let paths = ["bin/deploy", "bin/new", "latest", "README", "docs/deep/new", "/rooted"];
    let told = call(&connection, "push_files", push(json!(paths.map(file)))).await;
    assert!(!told.failed, "{}", told.result);
    let tree =
        site.requests().into_iter().find(|seen| seen.method == "POST" && seen.path().ends_with("/trees")).unwrap();
    let tree: Value = serde_json::from_slice(&tree.body).unwrap();
    let modes: Vec<_> = tree["tree"].as_array().unwrap().iter().map(|entry| (&entry["path"], &entry["mode"])).collect();
    let want = [
        ("bin/deploy", "100755"),
        ("bin/new", "100644"),
        ("latest", "120000"),
        ("README", "100644"),
        ("docs/deep/new", "100644"),
        ("rooted", "100644"),
    ];
    assert_eq!(json!(modes), json!(want));
    assert_eq!(tree["base_tree"], "ttt");
    // Each folder is read once.
    assert_eq!(sent(&site).iter().filter(|line| line.contains("/trees/")).count(), 2);

    // What would take the place of something else is refused before anything is written.
    let before = site.requests().len();
    for (path, content, why) in [
        ("bin", "x", "bin is a directory"),
        ("vendor", "x", "vendor is a submodule"),
        ("vendor/a", "x", "vendor is a submodule"),
        ("README/a", "x", "README is not a directory"),
        ("latest", "two\nlines", "latest is a symbolic link"),
    ] {
        let told = call(&connection, "push_files", push(json!([{ "path": path, "content": content }]))).await;
        assert!(told.failed && told.kind == "conflict" && told.text.starts_with(why), "{}", told.result);
    }
    assert!(site.requests()[before..].iter().all(|seen| seen.method == "GET"), "{:?}", sent(&site));
}

#[tokio::test]
async fn a_branch_that_moved_is_a_conflict_and_is_never_forced() {
    let site = site(|seen| {
        let stale = json!({ "data": { "createCommitOnBranch": null }, "errors": [
            { "type": "STALE_DATA", "message": "Expected branch to point to \"aaa\" but it did not." }] });
        let refused = json!({ "message": "Update is not a fast forward", "status": "422" });
        match (seen.method.as_str(), seen.path()) {
            ("POST", "/graphql") => Some((200, stale)),
            ("PATCH", _) => Some((422, refused)),
            _ => None,
        }
    })
    .await;
    let connection = connected(&site, |_| {}).await;
    for (path, first, words) in [
        ("a.txt", "Conflict: main has moved, and nothing was committed", "did not"),
        ("run.sh", "Conflict: main was not moved to the new commit ccc", "not a fast forward"),
    ] {
        let told = call(&connection, "push_files", push(json!([{ "path": path, "content": "x" }]))).await;
        assert!(told.failed && told.kind == "conflict", "{}", told.result);
        assert!(told.text.starts_with(first), "{}", told.text);
        assert!(told.result["content"][1]["text"].as_str().unwrap().contains(words), "{}", told.result);
    }
    assert!(site.requests().iter().all(|seen| !seen.everything().contains("force")), "{:?}", sent(&site));
}

#[tokio::test]
async fn plain_files_are_committed_so_that_github_signs_them() {
    let site = site(|_| None).await;
    let connection = connected(&site, |_| {}).await;
    let mut arguments = push(json!([{ "path": "/a.txt", "content": "é" }, { "path": "docs/new", "content": "" }]));
    arguments["message"] = json!("Say\n\nmore\nof it");
    let told = call(&connection, "push_files", arguments).await;
    let object = json!({ "sha": "ddd", "type": "commit", "url": "u" });
    let branch =
        json!({ "ref": "refs/heads/main", "node_id": "n", "url": "https://api.github.com/r", "object": object });
    assert_eq!(told.structured, branch, "{}", told.result);
    let sent = last_body(&site);
    let input = json!({
        "branch": { "repositoryNameWithOwner": "o/r", "branchName": "main" },
        "expectedHeadOid": "aaa",
        "message": { "headline": "Say", "body": "more\nof it" },
        "fileChanges": { "additions": [{ "path": "a.txt", "contents": "w6k=" }, { "path": "docs/new", "contents": "" }] },
    });
    assert_eq!(sent["variables"]["input"], input);
}

#[tokio::test]
async fn where_github_signs_nothing_the_commit_is_made_and_the_answer_says_so() {
    let refusing = |errors: Value| {
        site(move |seen| (seen.path() == "/graphql").then(|| (200, json!({ "data": null, "errors": errors.clone() }))))
    };
    let forbidden = refusing(json!([{ "type": "FORBIDDEN", "message": "not by this token" }])).await;
    let odd = refusing(json!([{ "message": "Field 'createCommitOnBranch' does not exist" }])).await;
    let none = site(|seen| (seen.path() == "/graphql").then(|| (404, json!({ "message": "Not Found" })))).await;
    let executable = site(|_| None).await;
    let enterprise = site(|seen| {
        let answer = match seen.path().strip_prefix("/api/v3/repos/o/r/git/")?.split('/').next()? {
            "ref" | "refs" => json!({ "ref": "refs/heads/main", "object": { "sha": "aaa" } }),
            "commits" => json!({ "sha": "ccc", "tree": { "sha": "ttt" } }),
            "trees" => json!({ "sha": "uuu", "tree": [] }),
            _ => return None,
        };
        Some((200, answer))
    })
    .await;
    for (site, base, path) in [
        (&forbidden, "", "a.txt"),
        (&odd, "", "a.txt"),
        (&none, "", "a.txt"),
        (&executable, "", "run.sh"),
        (&enterprise, "/api/v3", "a.txt"),
    ] {
        let connection = connected(site, |config| config.api.api_url = Some(site.url(base))).await;
        let told = call(&connection, "push_files", push(json!([{ "path": path, "content": "x" }]))).await;
        assert!(!told.failed && told.structured["note"] == "GitHub has not signed this commit.", "{}", told.result);
        assert!(sent(site).last().unwrap().starts_with("PATCH "), "{:?}", sent(site));
    }
    for site in [&executable, &enterprise] {
        assert!(!sent(site).iter().any(|line| line.contains("/graphql")), "{:?}", sent(site));
    }
    // Whether something was committed is not known: it is not committed again.
    let broken = site(|seen| (seen.path() == "/graphql").then(|| (502, json!({ "message": "no" })))).await;
    let connection = connected(&broken, |_| {}).await;
    let told = call(&connection, "push_files", push(json!([{ "path": "a.txt", "content": "x" }]))).await;
    assert!(told.failed && told.kind == "upstream" && told.text.contains("may have taken effect"), "{}", told.result);
    assert!(sent(&broken).last().unwrap().ends_with("/graphql"), "{:?}", sent(&broken));
}

#[tokio::test]
async fn paths_to_push_are_paths_of_files() {
    let site = site(|_| None).await;
    let connection = connected(&site, |_| {}).await;
    for path in ["..", "../x", "a/../b", "", "/", "a//b", "a/", ".git/config", "sub/.GIT/hooks/x", "a\nb", "."] {
        let told = call(&connection, "push_files", push(json!([{ "path": path, "content": "" }]))).await;
        assert!(told.failed && told.kind == "invalid", "{path:?}: {}", told.result);
    }
    for files in [json!([]), json!([{ "path": "a", "content": "" }, { "path": "/a", "content": "" }])] {
        assert!(call(&connection, "push_files", push(files)).await.failed);
    }
    assert!(site.requests().is_empty());
}

#[tokio::test]
async fn when_it_cannot_be_told_what_is_there_nothing_is_written() {
    for (status, answer, written) in [
        (500, json!({ "message": "no" }), false),
        (403, json!({ "message": "no" }), false),
        (
            409,
            json!({ "message": "Repository rule violations found\n\nCommits must have verified signatures." }),
            false,
        ),
        // A directory is no file to replace.
        (200, json!([{ "type": "file", "sha": "1" }]), false),
        (200, json!({ "type": "submodule", "sha": "1" }), false),
        (404, json!({ "message": "Not Found" }), true),
    ] {
        let lookup = answer.clone();
        let site = site(move |seen| (seen.method == "GET").then(|| (status, lookup.clone()))).await;
        let connection = connected(&site, |_| {}).await;
        let arguments = in_o_r(json!({ "path": "a.txt", "content": "é", "message": "m", "branch": "main" }));
        let told = call(&connection, "create_or_update_file", arguments).await;
        assert_eq!(told.failed, !written, "{status}: {}", told.result);
        assert_eq!(told.text.contains("push_files"), status == 409, "{status}: {}", told.result);
        assert_eq!(sent(&site).iter().any(|line| line.starts_with("PUT")), written, "{:?}", sent(&site));
        if written {
            assert_eq!(last_body(&site), json!({ "message": "m", "content": "w6k=", "branch": "main" }));
        }
    }
}

#[tokio::test]
async fn a_file_is_replaced_as_it_was_or_as_the_caller_saw_it() {
    let site = site(|_| None).await;
    let connection = connected(&site, |_| {}).await;
    let mut arguments = in_o_r(json!({ "path": "/src/a b#c?.txt", "content": "", "message": "m", "branch": "main" }));
    assert!(!call(&connection, "create_or_update_file", arguments.clone()).await.failed);
    let encoded = "/repos/o/r/contents/src/a%20b%23c%3F.txt";
    assert_eq!(sent(&site), [format!("GET {encoded}?ref=main"), format!("PUT {encoded}")]);
    assert_eq!(last_body(&site)["sha"], "fff");
    arguments["sha"] = json!("eee");
    assert!(!call(&connection, "create_or_update_file", arguments).await.failed);
    assert_eq!((site.requests().len(), &last_body(&site)["sha"]), (3, &json!("eee")));
}

#[tokio::test]
async fn a_branch_begins_at_another_one_or_at_the_default_one() {
    let site = site(|seen| (seen.target == "/repos/o/r").then(|| (200, json!({ "default_branch": "trunk" })))).await;
    let connection = connected(&site, |_| {}).await;
    for (from, tip) in [("", "trunk"), ("feature/x", "feature/x")] {
        let mut arguments = in_o_r(json!({ "branch": "topic/new" }));
        if !from.is_empty() {
            arguments["from_branch"] = json!(from);
        }
        assert!(!call(&connection, "create_branch", arguments).await.failed);
        assert!(
            sent(&site).iter().any(|line| *line == format!("GET /repos/o/r/git/ref/heads/{tip}")),
            "{:?}",
            sent(&site)
        );
        assert_eq!(last_body(&site), json!({ "ref": "refs/heads/topic/new", "sha": "aaa" }));
    }
}

#[tokio::test]
async fn what_the_published_server_sent_wrongly_is_sent_rightly() {
    let site = site(|_| None).await;
    let connection = connected(&site, |_| {}).await;
    call(&connection, "create_repository", json!({ "name": "n", "autoInit": true })).await;
    assert_eq!(last_body(&site), json!({ "name": "n", "auto_init": true }));
    call(&connection, "fork_repository", in_o_r(json!({ "organization": "a&b=c" }))).await;
    assert_eq!(site.requests().last().unwrap().target, "/repos/o/r/forks");
    assert_eq!(last_body(&site), json!({ "organization": "a&b=c" }));
}
