//! The row of the table: against a description of the API, with hostile arguments, and with everything that fails.

use linchpin_aws_kb::{API, Config, SERVICE, open};
use linchpin_kit::Vars;
use linchpin_rest::testing::{Suite, call};
use serde_json::json;

pub(crate) fn suite() -> Suite {
    Suite::new(&API, &SERVICE, include_str!("../contract/aws.json"))
}

#[tokio::test]
async fn every_row_makes_requests_that_the_description_allows() {
    suite().contract().await;
}

#[tokio::test]
async fn no_argument_leads_a_request_elsewhere() {
    suite().hostile_arguments().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_every_row_says_what_happened() {
    suite().faults().await;
}

#[tokio::test]
async fn what_bedrock_would_refuse_and_other_knowledge_bases_are_refused_before_anything_is_sent() {
    let site = suite().site().await;
    let config = suite().config(&site).with(|config| config.only = vec!["ABCDE12345".to_owned()]);
    let connection = suite().connect(config).await;
    let id = "ABCDE12345";
    for arguments in [
        json!({ "query": "x", "knowledgeBaseId": "ABC/../x" }),
        json!({ "query": "x", "knowledgeBaseId": "ABCDE123456" }),
        json!({ "query": "x", "knowledgeBaseId": "" }),
        json!({ "query": "x", "knowledgeBaseId": "OTHER12345" }),
        json!({ "query": "x", "knowledgeBaseId": id, "n": 0 }),
        json!({ "query": "x", "knowledgeBaseId": id, "n": 101 }),
        json!({ "query": "x", "knowledgeBaseId": id, "search_type": "FUZZY" }),
        json!({ "query": "x", "knowledgeBaseId": id, "rerank_model": "amazon.rerank-v1:0" }),
    ] {
        let answer = call(&connection, "retrieve_from_aws_kb", arguments.clone()).await;
        assert!(answer.failed, "{arguments}");
    }
    assert!(site.requests().is_empty());
    assert!(!call(&connection, "retrieve_from_aws_kb", json!({ "query": "x", "knowledgeBaseId": id })).await.failed);
}

#[tokio::test]
async fn of_the_knowledge_bases_those_are_listed_that_are_allowed() {
    let site = suite().site().await;
    for (only, names) in [(vec![], vec!["handbook", "secret"]), (vec!["ABCDE12345".to_owned()], vec!["handbook"])] {
        let connection = suite().connect(suite().config(&site).with(|config| config.only = only)).await;
        let told = call(&connection, "aws_kb_list", json!({})).await;
        let listed = told.structured["knowledge_bases"].as_array().unwrap().iter().map(|one| &one["name"]);
        assert_eq!(listed.collect::<Vec<_>>(), names, "{}", told.result);
    }
}

#[tokio::test]
async fn both_apis_are_those_of_the_region_or_of_the_variables_of_aws() {
    let key = [("AWS_REGION", "cn-north-1"), ("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")];
    for (variables, want) in [
        (vec![], ["bedrock-agent.cn-north-1.amazonaws.com.cn", "bedrock-agent-runtime.cn-north-1.amazonaws.com.cn"]),
        (vec![("AWS_ENDPOINT_URL", "https://both.example")], ["both.example", "both.example"]),
        (
            vec![
                ("AWS_ENDPOINT_URL_BEDROCK_AGENT", "https://one.example"),
                ("AWS_ENDPOINT_URL", "https://two.example"),
            ],
            ["one.example", "two.example"],
        ),
    ] {
        let all = key.iter().chain(&variables);
        let get = |name: &str| all.clone().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let rest = open(Config::from_env(Vars::new(&get)).unwrap()).unwrap();
        let given = rest.config();
        let hosts = [given.base_urls[0].1.as_str(), given.api_url.as_deref().unwrap()];
        assert_eq!(hosts.map(|url| url.trim_start_matches("https://")), want);
    }
}

#[test]
fn a_region_is_needed_and_is_that_of_the_options_of_aws() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    let text = "[default]\nregion = eu-west-1\n[profile other]\nregion=ap-south-1\n[profile odd]\nregion=../x\n";
    std::fs::write(home.path().join(".aws/config"), text).unwrap();
    let home = home.path().to_str().unwrap();
    for (variables, want) in [
        (vec![], ""),
        (vec![("AWS_REGION", "us-west-2")], "us-west-2"),
        (vec![("AWS_DEFAULT_REGION", "us-west-2")], "us-west-2"),
        (vec![("HOME", home)], "eu-west-1"),
        (vec![("HOME", home), ("AWS_PROFILE", "other")], "ap-south-1"),
        (vec![("HOME", home), ("AWS_PROFILE", "other"), ("AWS_REGION", "us-west-2")], "us-west-2"),
        (vec![("HOME", home), ("AWS_PROFILE", "odd")], ""),
        (vec![("AWS_REGION", "evil.example/")], ""),
    ] {
        let key = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")];
        let all = key.iter().chain(&variables);
        let get = |name: &str| all.clone().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let config = Config::from_env(Vars::new(&get)).unwrap();
        let url = open(config).ok().and_then(|rest| rest.config().api_url.clone());
        let host = (!want.is_empty()).then(|| format!("https://bedrock-agent-runtime.{want}.amazonaws.com"));
        assert_eq!(url, host, "{variables:?}");
    }
    let missing = open(Config::default()).unwrap_err().to_string();
    assert!(missing.starts_with("No region is set\nHint: Set AWS_REGION or --region"), "{missing}");
}
