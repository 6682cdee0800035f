//! What a model is sent.

use crate::rows::suite;
use linchpin::testing::site::{Do, Site, json};
use linchpin_rest::testing::call;
use serde_json::json;

#[tokio::test]
async fn passages_are_the_two_blocks_of_the_published_server() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    let arguments = json!({ "query": "holidays", "knowledgeBaseId": "ABCDE12345" });
    let answer = call(&connection, "retrieve_from_aws_kb", arguments.clone()).await;
    let text = |at: usize| answer.result["content"][at]["text"].as_str().unwrap().to_owned();
    assert_eq!(text(0), "Context: Holidays are thirty days.\n\nSick leave needs a note.");
    let sources: serde_json::Value = serde_json::from_str(text(1).strip_prefix("RAG Sources: ").unwrap()).unwrap();
    assert_eq!(
        sources,
        json!([
            { "id": "chunk-a", "fileName": "staff handbook", "snippet": "Holidays are thirty days.", "score": 0.82 },
            { "id": "chunk-1", "fileName": "leave", "snippet": "Sick leave needs a note.", "score": 0.5 },
        ])
    );
    assert_eq!(answer.structured["results"][0]["uri"], "s3://documents/staff_handbook.txt");
    assert_eq!(answer.structured["results"][0]["metadata"], json!({ "year": 2026 }));
    for at in [0, 1] {
        assert_eq!(answer.result["content"][at]["annotations"]["audience"], json!(["assistant"]));
    }
    // The next page is another request.
    let mut next = arguments;
    next["cursor"] = answer.structured["next_cursor"].clone();
    call(&connection, "retrieve_from_aws_kb", next).await;
    let sent = site.requests().last().unwrap().everything();
    assert!(sent.contains(r#""nextToken":"more""#), "{sent}");
}

#[tokio::test]
async fn an_empty_answer_is_no_error_and_failures_say_what_aws_says() {
    let arguments = json!({ "query": "x", "knowledgeBaseId": "ABCDE12345" });
    let nothing = Site::saying(json(200, "", &json!({ "retrievalResults": [] }))).await;
    let connection = suite().connect(suite().config(&nothing)).await;
    let answer = call(&connection, "retrieve_from_aws_kb", arguments.clone()).await;
    assert!(!answer.failed);
    assert_eq!(answer.text, "Context: (nothing was found)");
    let said = json!({ "message": "Not authorized to perform: bedrock:Retrieve" });
    let denied = Site::new(move |_, _| vec![Do::Write(json(403, "", &said))]).await;
    let connection = suite().connect(suite().config(&denied)).await;
    let answer = call(&connection, "retrieve_from_aws_kb", arguments).await;
    assert!(answer.failed && answer.text.starts_with("Access denied: "), "{}", answer.text);
    assert_eq!(answer.kind, "denied");
    assert_eq!(answer.result["content"][1]["text"], "Not authorized to perform: bedrock:Retrieve");
}
