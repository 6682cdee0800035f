//! Our requests beside AWS's own client: `botocore` (PyPI) checks their parameters against its model of the service, and computes
//! their signature again. And the archived npm server, led to a double, beside ours.
//!
//! Differences that are meant, each with its reason:
//! - `n` has its range; there are arguments for the kind of search, filters and reranking, and a cursor.
//! - Snippets of sources have at most 200 characters: the passages are in the first block.
//! - Sources that are no files of S3 have names too.

use crate::credentials::{config, connected};
use crate::rows::suite;
use linchpin::client::Client;
use linchpin::testing::site::Site;
use linchpin::transport::Child;
use linchpin_rest::testing::{KEY, call, led};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn home() -> PathBuf {
    std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation").into()
}

/// Reads requests, and writes what botocore says about each: problems with its parameters, and its signature.
const PROGRAM: &str = r#"
import json, sys, datetime
import botocore.auth, botocore.awsrequest, botocore.credentials, botocore.loaders, botocore.model, botocore.validate
said = []
for one in json.load(sys.stdin):
    model = botocore.loaders.Loader().load_service_model(one["service"], "service-2")
    shape = botocore.model.ServiceModel(model).operation_model(one["operation"]).input_shape
    named = {"knowledgeBaseId": one["id"]} if one["id"] else {}
    problems = botocore.validate.ParamValidator().validate({**named, **json.loads(one["body"])}, shape)
    at = datetime.datetime.strptime(one["headers"]["x-amz-date"], "%Y%m%dT%H%M%SZ")
    class Then(datetime.datetime):
        @classmethod
        def utcnow(cls): return at
        @classmethod
        def now(cls, tz=None): return at.replace(tzinfo=tz)
    botocore.auth.datetime = type("m", (), {"datetime": Then, "timezone": datetime.timezone})
    if hasattr(botocore.auth, "get_current_datetime"):
        botocore.auth.get_current_datetime = lambda *a, **k: at
    given = botocore.credentials.Credentials(one["key"], one["secret"], one["token"])
    signed = one["headers"]["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    headers = {name: one["headers"][name] for name in signed if name not in ("host", "x-amz-date", "x-amz-security-token")}
    request = botocore.awsrequest.AWSRequest("POST", one["url"], headers=headers, data=one["body"])
    botocore.auth.SigV4Auth(given, "bedrock", "us-east-1").add_auth(request)
    said.append({"problems": problems.generate_report(), "authorization": request.headers["Authorization"]})
json.dump(said, sys.stdout)
"#;

fn botocore(requests: &Value) -> Value {
    let mut child = Command::new(home().join("py/bin/python"))
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("botocore is installed");
    child.stdin.take().unwrap().write_all(requests.to_string().as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    serde_json::from_slice(&out.stdout).expect("JSON")
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn botocore_accepts_our_parameters_and_computes_our_signatures() {
    let arn = "arn:aws:bedrock:us-west-2::foundation-model/amazon.rerank-v1:0";
    let mut requests = Vec::new();
    for token in ["", "a-session-token"] {
        let site = suite().site().await;
        let environment =
            [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", KEY), ("AWS_SESSION_TOKEN", token)];
        let given = if token.is_empty() { &environment[..2] } else { &environment };
        let connection = connected(config(&site, given)).await;
        for arguments in [
            json!({ "limit": 1_000 }),
            json!({ "query": "holidays & \"more\" ä", "knowledgeBaseId": "ABCDE12345" }),
            json!({
                "query": "x", "knowledgeBaseId": "ABCDE12345", "n": 100, "search_type": "SEMANTIC", "rerank_model": arn,
                "filter": { "andAll": [{ "equals": { "key": "a", "value": 1 } }, { "in": { "key": "b", "value": ["c"] } }] },
            }),
        ] {
            let (tool, service, operation) = match &arguments["limit"] {
                Value::Null => ("retrieve_from_aws_kb", "bedrock-agent-runtime", "Retrieve"),
                _ => ("aws_kb_list", "bedrock-agent", "ListKnowledgeBases"),
            };
            let answer = call(&connection, tool, arguments.clone()).await;
            assert!(!answer.failed, "{}", answer.result);
            let seen = site.requests().pop().unwrap();
            let headers: serde_json::Map<String, Value> =
                seen.headers.iter().map(|(name, value)| (name.to_lowercase(), json!(value))).collect();
            requests.push(json!({
                "service": service, "operation": operation, "id": arguments["knowledgeBaseId"], "body": String::from_utf8_lossy(&seen.body), "headers": headers,
                "url": site.url(&seen.target), "key": "AKIDEXAMPLE", "secret": KEY,
                "token": if token.is_empty() { Value::Null } else { json!(token) },
            }));
        }
    }
    // What must be found.
    let mut wrong = requests[1].clone();
    wrong["body"] = json!(
        r#"{"retrievalQuery":{"text":"x"},"retrievalConfiguration":{"vectorSearchConfiguration":{"numberOfResults":"x"}}}"#
    );
    wrong["url"] = json!("http://127.0.0.1/elsewhere");
    requests.push(wrong);
    let said = botocore(&json!(requests));
    for (at, request) in requests.iter().enumerate() {
        let expected = at + 1 < requests.len();
        assert_eq!(said[at]["problems"] == "", expected, "{}", said[at]);
        let ours = request["headers"]["authorization"].as_str().unwrap().replace(", ", ",");
        let theirs = said[at]["authorization"].as_str().unwrap().replace(", ", ",");
        assert_eq!(ours == theirs, expected, "{ours}\n{theirs}");
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_archived_server_has_the_same_tool_and_arguments() {
    let child = Child::new(home().join("node_modules/.bin/mcp-server-aws-kb-retrieval")).env("AWS_REGION", "us-east-1");
    let theirs = Client::new("test", "0").connect(child).await.expect("the published server starts");
    let site = suite().site().await;
    let ours = suite().connect(suite().config(&site)).await;
    let (theirs, ours) = (theirs.tools().await.unwrap(), ours.tools().await.unwrap());
    assert_eq!((theirs.len(), &theirs[0].name), (1, &ours[0].name), "the published one is the first");
    let schema = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let (their, our) = (schema(theirs[0].input_schema.get()), schema(ours[0].input_schema.get()));
    assert_eq!(their["required"], our["required"]);
    for (name, argument) in their["properties"].as_object().unwrap() {
        assert_eq!(argument["default"], our["properties"][name]["default"], "{name}");
    }
}

/// Both servers ask the same double: the same request, and blocks that say the same of a file in S3.
#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn request_and_blocks_are_those_of_the_archived_server() {
    let (their_site, our_site) = (suite().site().await, suite().site().await);
    let child = Child::new(home().join("node_modules/.bin/mcp-server-aws-kb-retrieval"))
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", KEY);
    let child = child.envs(led("bedrock-agent-runtime.us-east-1.amazonaws.com", &their_site));
    let theirs = Client::new("test", "0").connect(child).await.expect("the published server starts");
    let ours = suite().connect(suite().config(&our_site)).await;
    let arguments = json!({ "query": "holidays & \"more\" ä", "knowledgeBaseId": "ABCDE12345", "n": 5 });
    let (their, our) = (
        call(&theirs, "retrieve_from_aws_kb", arguments.clone()).await,
        call(&ours, "retrieve_from_aws_kb", arguments).await,
    );
    assert_eq!(their.text, our.text, "{}", their.result);
    let first_source = |result: &Value| -> Value {
        let text = result["content"][1]["text"].as_str().unwrap().strip_prefix("RAG Sources: ").unwrap();
        serde_json::from_str::<Value>(text).unwrap()[0].take()
    };
    assert_eq!(first_source(&their.result), first_source(&our.result), "{}", our.result);
    let asked = |site: &Site| {
        let seen = site.requests();
        let one = seen.first().unwrap();
        (seen.len(), one.method.clone(), one.target.clone(), serde_json::from_slice::<Value>(&one.body).unwrap())
    };
    assert_eq!(asked(&their_site), asked(&our_site));
}
