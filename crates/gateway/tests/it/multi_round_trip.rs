//! What an upstream asks in its results, for clients with sessions; and what each side hears only if the other has it.

use crate::bytes::{said, to_upstream};
use crate::faults::{ABLE, answer, asked, json_of, opened, session};
use crate::revisions;
use linchpin_core::Features;
use serde_json::{Map, Value, json};

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}"#;

fn form() -> Value {
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "?", "requestedSchema": { "type": "object", "properties": {} } } })
}

fn wants(questions: Value) -> Value {
    json!({ "result": { "resultType": "input_required", "requestState": "s", "inputRequests": questions } })
}

#[tokio::test(start_paused = true)]
async fn a_client_is_not_asked_what_it_has_not_declared() {
    let (mut client, mut upstream, _) = session(|_| {}, true).await;
    for method in ["sampling/createMessage", "roots/list", "odd/ask"] {
        said(&mut client, CALL).await;
        let wanted = wants(json!({ "k": { "method": method, "params": {} } }));
        let call = asked(&mut upstream).await;
        answer(&mut upstream, &call, wanted.clone()).await;
        // Once the upstream may go on without.
        let retry = asked(&mut upstream).await;
        assert_eq!((&retry["method"], &retry["params"]["inputResponses"]), (&json!("tools/call"), &json!({})));
        answer(&mut upstream, &retry, wanted).await;
        let failed = json_of(&mut client).await;
        let why = format!("the upstream asks for `{method}`, which the client has not declared");
        assert_eq!(failed["error"], json!({ "code": -32603, "message": why }), "{failed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_client_is_told_in_its_own_words() {
    let (mut client, mut upstream, _) = session(|_| {}, true).await;
    said(&mut client, CALL).await;
    for _ in 0..2 {
        let call = asked(&mut upstream).await;
        answer(&mut upstream, &call, wants(json!({ "k": form() }))).await;
        let question = json_of(&mut client).await;
        let refused = json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -32601, "message": "no" } });
        said(&mut client, &refused.to_string()).await;
    }
    let failed = json_of(&mut client).await;
    assert_eq!(
        failed["error"],
        json!({ "code": -32603, "message": "the client cannot answer `k`: no (-32601)" }),
        "{failed}"
    );
}

#[tokio::test(start_paused = true)]
async fn all_questions_of_a_round_are_asked_and_sixteen_of_them_at_once() {
    let (mut client, mut upstream, _) = session(|_| {}, true).await;
    said(&mut client, CALL).await;
    let call = asked(&mut upstream).await;
    let questions: Map<String, Value> = (0..40).map(|n| (format!("k{n}"), form())).collect();
    answer(&mut upstream, &call, wants(questions.clone().into())).await;
    let mut open = Vec::new();
    for n in 0..40 {
        while open.len() < 16.min(40 - n) {
            open.push(json_of(&mut client).await);
        }
        if n == 0 {
            let more = tokio::time::timeout(std::time::Duration::from_secs(1), json_of(&mut client)).await;
            assert!(more.is_err(), "{more:?}");
        }
        let question = open.remove(0);
        let declined = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
        said(&mut client, &declined.to_string()).await;
    }
    let retry = asked(&mut upstream).await;
    let answers = retry["params"]["inputResponses"].as_object().unwrap();
    let answered = questions.keys().all(|key| answers.contains_key(key));
    assert!(answered && answers.len() == questions.len(), "{retry}");
}

#[tokio::test(start_paused = true)]
async fn progress_only_increases_where_the_eras_differ() {
    for stateless in [true, false] {
        for crosses in [true, false] {
            let (mut client, mut upstream, _bridge) = match stateless == crosses {
                // A client with a session.
                true => session(|_| {}, stateless).await,
                false => {
                    let (client, upstream, bridge) = to_upstream(|options| options.upstream = revisions(stateless));
                    (client(), upstream, bridge)
                }
            };
            if stateless == crosses {
                said(&mut client, CALL).await;
            } else {
                let able = ABLE.replace("_meta\":{", "_meta\":{\"progressToken\":\"p\",");
                let call =
                    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{able}}}}}"#);
                said(&mut client, &call).await;
                opened(&mut upstream, stateless).await;
                if !stateless {
                    assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
                }
            }
            let call = asked(&mut upstream).await;
            let token = &call["params"]["_meta"]["progressToken"];
            let came = [json!(-1), json!(1), json!(1.0), json!(0.5), json!("odd"), json!(2)];
            for progress in &came {
                let told = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": progress } });
                upstream.say(&told.to_string()).await;
            }
            answer(&mut upstream, &call, json!({ "result": { "content": [] } })).await;
            let mut heard = Vec::new();
            loop {
                let message = json_of(&mut client).await;
                match message["method"] == "notifications/progress" {
                    true => heard.push(message["params"]["progress"].clone()),
                    false => break,
                }
            }
            let want = if crosses { vec![json!(-1), json!(1), json!("odd"), json!(2)] } else { came.to_vec() };
            assert_eq!(heard, want, "a stateless upstream: {stateless}, another era: {crosses}");
        }
    }
}

#[tokio::test]
async fn a_bridge_says_which_revisions_it_serves() {
    let newest: Vec<&'static Features> = revisions(true);
    let all: Vec<&'static Features> = Features::all().collect();
    for served in [newest, all] {
        let (client, mut upstream, _bridge) = to_upstream(|options| {
            options.upstream = revisions(false);
            options.clients = served.clone();
        });
        let mut client = client();
        said(&mut client, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{ABLE}}}}}"#))
            .await;
        opened(&mut upstream, false).await;
        let found = json_of(&mut client).await;
        let want: Vec<&str> = served.iter().map(|features| features.revision.as_str()).collect();
        assert_eq!(found["result"]["supportedVersions"], json!(want), "{found}");
    }
}
