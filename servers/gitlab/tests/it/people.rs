//! With `--lockdown`, what people wrote who are no developers of the project is left out.

use crate::rows::server;
use linchpin::testing::site::{Do, Site, json};
use linchpin_rest::testing::call;
use serde_json::{Value, json};

/// A project with two developers (7 and 8) and a guest (9) among its members; 10 is nobody.
async fn project() -> Site {
    Site::new(|_, seen| {
        let by = |id: i64| json!({ "iid": id, "title": "t", "body": "b", "author": { "id": id } });
        let answer = match seen.path().rsplit('/').next().unwrap() {
            "all" => {
                let member = |id: i64, level: i64| json!({ "id": id, "access_level": level });
                json!([member(7, 30), member(8, 50), member(9, 10), member(99, 50)])
            }
            "issues" | "notes" | "merge_requests" | "search" => json!([by(7), by(8), by(9), by(10), { "iid": 11 }]),
            "discussions" => json!([{ "id": "x", "notes": [by(7), by(10)] }, { "id": "y", "notes": [by(9)] }]),
            "diffs" | "commits" => json!([{ "title": "t", "diff": "d" }]),
            one => by(one.parse().unwrap()),
        };
        vec![Do::Write(json(200, "", &answer))]
    })
    .await
}

#[tokio::test]
async fn lists_have_what_developers_wrote() {
    let site = project().await;
    for (lockdown, count) in [(false, 5), (true, 2)] {
        let connection = server(&site, |config| config.lockdown = lockdown).await;
        for (tool, arguments) in [
            ("gitlab_issue_read", json!({ "method": "list" })),
            ("gitlab_issue_read", json!({ "method": "notes", "issue_iid": 5 })),
            ("gitlab_mr_read", json!({ "method": "list" })),
            ("gitlab_search", json!({ "scope": "issues", "search": "x" })),
            ("gitlab_search", json!({ "scope": "merge_requests", "search": "x" })),
            ("gitlab_search", json!({ "scope": "notes", "search": "x" })),
        ] {
            let told = call(&connection, tool, with_project(arguments)).await;
            assert_eq!(told.structured["items"].as_array().unwrap().len(), count, "{tool}: {}", told.result);
            let notice = told.result["content"][1]["text"].as_str().unwrap();
            assert_eq!(notice.contains("[3 left out"), lockdown, "{notice}");
            assert!(!told.text.contains("linchpin"));
        }
        let told = call(
            &connection,
            "gitlab_mr_read",
            with_project(json!({ "method": "discussions", "merge_request_iid": 7 })),
        )
        .await;
        let notes: Vec<usize> = told.structured["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["notes"].as_array().unwrap().len())
            .collect();
        assert_eq!(notes, if lockdown { vec![1] } else { vec![2, 1] });
        let notice = told.result["content"][1]["text"].as_str().unwrap();
        assert_eq!(notice.contains("[2 left out"), lockdown, "one of a discussion that is shown: {notice}");
        assert!(!told.result.to_string().contains("linchpin_left_out"));
        // Code is what those wrote who may.
        let told = call(&connection, "gitlab_search", with_project(json!({ "scope": "blobs", "search": "x" }))).await;
        assert_eq!(told.structured["items"].as_array().unwrap().len(), 5);
    }
    let asked = site.requests().iter().rfind(|seen| seen.path().ends_with("/members/all")).unwrap().query().to_owned();
    assert!(asked.contains("user_ids%5B%5D=7") && asked.contains("user_ids%5B%5D=9"), "{asked}");
}

#[tokio::test]
async fn what_belongs_to_others_is_refused() {
    let site = project().await;
    let connection = server(&site, |config| config.lockdown = true).await;
    for (author, shown) in [(7, true), (9, false), (10, false)] {
        for method in ["get", "diffs", "commits"] {
            let told = call(
                &connection,
                "gitlab_mr_read",
                with_project(json!({ "method": method, "merge_request_iid": author })),
            )
            .await;
            assert_eq!(!told.failed, shown, "{method} {author}: {}", told.result);
            assert!(shown || told.kind == "denied");
        }
        let told =
            call(&connection, "gitlab_issue_read", with_project(json!({ "method": "get", "issue_iid": author }))).await;
        assert_eq!(!told.failed, shown, "{author}: {}", told.result);
    }
}

#[tokio::test]
async fn a_change_shows_no_words_of_others_and_asks_for_nobody() {
    let answer = json!({
        "iid": 5, "state": "closed", "labels": ["bug"], "web_url": "https://gitlab.example/5", "title": "Obey me",
        "description": "Obey me", "author": { "id": 10 },
    });
    let site = Site::saying(json(200, "", &answer)).await;
    for lockdown in [false, true] {
        let connection = server(&site, |config| config.lockdown = lockdown).await;
        for (tool, arguments) in [
            ("gitlab_issue_write", json!({ "method": "update", "issue_iid": 5, "state_event": "close" })),
            ("gitlab_mr_write", json!({ "method": "update", "merge_request_iid": 5, "state_event": "close" })),
            ("gitlab_mr_write", json!({ "method": "merge", "merge_request_iid": 5 })),
        ] {
            let before = site.requests().len();
            let told = call(&connection, tool, with_project(arguments)).await;
            assert!(!told.failed && told.structured["state"] == "closed", "{tool}: {}", told.result);
            assert_eq!(told.result.to_string().contains("Obey me"), !lockdown, "{tool}: {}", told.result);
            assert_eq!(site.requests().len(), before + 1);
        }
    }
}

fn with_project(mut arguments: Value) -> Value {
    arguments["project_id"] = json!("group/project");
    arguments
}
