//! Lists and long texts: pages, cursors, and what is kept.

use crate::github::suite;
use linchpin::testing::site::{Do, Site, json};
use linchpin_rest::testing::call;
use serde_json::{Value, json};

/// A site with this many issues, thirty a page, that says where the next page is.
async fn many(issues: usize, next: impl Fn(usize) -> String + Send + Sync + 'static) -> Site {
    Site::new(move |_, seen| {
        let page = seen.query().split('&').find_map(|pair| pair.strip_prefix("page=")?.parse().ok()).unwrap_or(1_usize);
        let numbers = (page - 1) * 30..(page * 30).min(issues);
        let items: Vec<Value> =
            numbers.map(|n| json!({ "number": n, "title": "t".repeat(4_500), "extra": 1 })).collect();
        let link = match page * 30 < issues {
            true => format!("link: <{}>; rel=\"prev\", <{}>; rel=\"next\"\r\n", next(1), next(page + 1)),
            false => String::new(),
        };
        vec![Do::Write(json(200, &link, &json!(items)))]
    })
    .await
}

#[tokio::test]
async fn a_list_is_read_to_its_end_page_by_page_and_each_result_has_its_size() {
    // The link leads to another host; only its parameter is used.
    let site = many(70, |page| format!("https://evil.example/elsewhere?page={page}&state=all")).await;
    let connection = suite().connect(suite().config(&site)).await;
    let mut arguments = json!({ "owner": "o", "repo": "r" });
    let (mut numbers, mut results) = (Vec::new(), 0);
    loop {
        let told = call(&connection, "list_issues", arguments.clone()).await;
        assert!(!told.failed, "{}", told.result);
        assert!(told.structured.to_string().len() <= 100_000 && told.text.len() <= 100_000);
        assert_eq!(serde_json::from_str::<Value>(&told.text).unwrap(), told.structured["items"]);
        let items = told.structured["items"].as_array().unwrap();
        assert!(items.iter().all(|item| item.get("extra").is_none()), "{items:?}");
        numbers.extend(items.iter().map(|item| item["number"].as_u64().unwrap()));
        results += 1;
        let Some(cursor) = told.structured.get("next_cursor") else { break };
        assert!(told.result.to_string().contains("Continue with the same arguments and cursor="));
        arguments["cursor"] = cursor.clone();
    }
    assert_eq!(numbers, (0..70).collect::<Vec<u64>>());
    assert!(results > 3, "thirty long titles do not fit into one result");
    for seen in site.requests() {
        assert!(seen.path() == "/repos/o/r/issues" && seen.query().contains("state=open"), "{}", seen.target);
    }
}

#[tokio::test]
async fn a_cursor_of_other_arguments_or_of_nobody_is_refused() {
    let site = many(70, |page| format!("/x?page={page}")).await;
    let connection = suite().connect(suite().config(&site)).await;
    let told = call(&connection, "list_issues", json!({ "owner": "o", "repo": "r" })).await;
    let cursor = told.structured["next_cursor"].as_str().unwrap().to_owned();
    let before = site.requests().len();
    let digest = cursor.split('.').next().unwrap().rsplit('-').next().unwrap();
    let start = "0-".repeat(3);
    for (repo, cursor) in [
        ("other", cursor.clone()),
        ("r", "x".to_owned()),
        ("r", "0-0-0".to_owned()),
        ("r", format!("{start}{digest}.state=all")),
        ("r", format!("{start}{digest}.page=2&q=x")),
    ] {
        let told = call(&connection, "list_issues", json!({ "owner": "o", "repo": repo, "cursor": cursor })).await;
        assert!(told.failed && told.text.starts_with("Unknown cursor: "), "{}", told.result);
    }
    assert_eq!(site.requests().len(), before);
}

#[tokio::test]
async fn a_server_whose_next_page_is_the_same_ends_the_list() {
    let site =
        Site::new(|_, _| vec![Do::Write(json(200, "link: </x?page=2>; rel=next\r\n", &json!([{ "number": 1 }])))])
            .await;
    let connection = suite().connect(suite().config(&site)).await;
    let first = call(&connection, "list_issues", json!({ "owner": "o", "repo": "r" })).await;
    let cursor = &first.structured["next_cursor"];
    let second = call(&connection, "list_issues", json!({ "owner": "o", "repo": "r", "cursor": cursor })).await;
    assert!(!second.failed && second.structured.get("next_cursor").is_none(), "{}", second.result);
}

#[tokio::test]
async fn a_long_text_is_read_to_its_end() {
    let body: String = (0..9_999).map(|n| char::from(b'a' + u8::try_from(n % 26).unwrap())).collect();
    let issue = json!({ "number": 1, "title": "One", "body": body, "user": { "login": "ann", "id": 7 }, "labels": [] });
    let site = Site::saying(json(200, "", &issue)).await;
    let connection = suite().connect(suite().config(&site)).await;
    let mut arguments = json!({ "owner": "o", "repo": "r", "issue_number": 1 });
    let mut read = String::new();
    for n in 0.. {
        let told = call(&connection, "get_issue", arguments.clone()).await;
        read.push_str(told.structured["body"].as_str().unwrap());
        assert_eq!(told.structured.get("title").is_some(), n == 0, "{}", told.structured);
        let Some(cursor) = told.structured.get("next_cursor") else { break };
        let said = format!("[body: cut at character {} of 9999.]", (n + 1) * 4_000);
        assert!(told.result.to_string().contains(&said), "{}", told.result);
        arguments["cursor"] = cursor.clone();
    }
    assert_eq!(read, body);
}

#[tokio::test]
async fn texts_that_are_too_long_together_are_read_to_their_end() {
    let patch = |n: usize| -> String { (n..n + 19_000).map(|n| char::from(b'a' + (n % 26) as u8)).collect() };
    let files: Vec<Value> = (0..30).map(|n| json!({ "patch": patch(n) })).collect();
    let site = Site::saying(json(200, "", &json!({ "files": files }))).await;
    let connection = suite().connect(suite().config(&site)).await;
    let mut arguments = json!({ "owner": "o", "repo": "r", "issue_number": 1, "fields": ["files.patch"] });
    let mut read = vec![String::new(); 30];
    loop {
        let told = call(&connection, "get_issue", arguments.clone()).await;
        assert!(told.structured.to_string().len() <= 100_300, "{}", told.structured.to_string().len());
        for (read, file) in read.iter_mut().zip(told.structured["files"].as_array().unwrap()) {
            read.push_str(file["patch"].as_str().unwrap());
        }
        let Some(cursor) = told.structured.get("next_cursor") else { break };
        let said = format!("[files.patch: 30 texts are cut at character {}, the longest has 19000.]", read[0].len());
        let result = told.result.to_string();
        assert!(result.contains(&said) && result.matches("cut at").count() == 1, "{}", told.result["content"][1]);
        arguments["cursor"] = cursor.clone();
    }
    assert!((0..30).all(|n| read[n] == patch(n)), "{:?}", read.iter().map(String::len).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_is_cut_in_a_list_is_said() {
    let items = json!([{ "number": 1, "title": "t".repeat(30_000) }, { "number": 2, "title": "short" }]);
    let site = Site::saying(json(200, "", &items)).await;
    let connection = suite().connect(suite().config(&site)).await;
    let told = call(&connection, "list_issues", json!({ "owner": "o", "repo": "r" })).await;
    assert_eq!(told.structured["items"][0]["title"].as_str().unwrap().len(), 20_000);
    let said = "[items.title: cut at character 20000 of 30000.]";
    assert!(told.result.to_string().contains(said), "{}", told.result["content"][1]);
}

#[tokio::test]
async fn callers_choose_what_is_kept() {
    let issue = json!({ "number": 1, "title": "One", "user": { "login": "ann", "id": 7 }, "comments": 3 });
    let site = Site::saying(json(200, "", &issue)).await;
    let connection = suite().connect(suite().config(&site)).await;
    let ask = |fields: Value| {
        let connection = &connection;
        async move {
            call(connection, "get_issue", json!({ "owner": "o", "repo": "r", "issue_number": 1, "fields": fields }))
                .await
        }
    };
    assert_eq!(ask(json!(["comments", "user.id"])).await.structured, json!({ "comments": 3, "user": { "id": 7 } }));
    assert_eq!(ask(json!("comments")).await.structured, json!({ "comments": 3 }));
    assert_eq!(ask(json!([])).await.structured, json!({ "number": 1, "title": "One", "user": { "login": "ann" } }));
    assert!(ask(json!(["a..b"])).await.text.starts_with("Invalid field: a..b"));
}

#[tokio::test]
async fn an_answer_that_is_much_too_long_fails_a_read_but_no_write() {
    let texts: Vec<String> = (0..2_000).map(|_| "x".repeat(1_000)).collect();
    let site = Site::saying(json(200, "", &json!({ "sha": "abc", "texts": texts }))).await;
    let connection = suite().connect(suite().config(&site)).await;
    let told = call(&connection, "merge_pull_request", json!({ "owner": "o", "repo": "r", "pullNumber": 1 })).await;
    assert!(!told.failed, "{}", told.result);
    assert_eq!(told.structured, json!({ "too_long": true }));
    assert!(told.result.to_string().contains("[The answer is too long for a result.]"), "{}", told.result);
    let arguments = json!({ "owner": "o", "repo": "r", "issue_number": 1, "fields": ["texts", "sha"] });
    let told = call(&connection, "get_issue", arguments).await;
    assert!(told.failed && told.text.starts_with("GitHub's answer is too long for a result"), "{}", told.text);
    assert!(told.text.contains("Choose fewer fields."), "{}", told.text);
}
