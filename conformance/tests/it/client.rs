//! What the fixtures ask reaches a client over HTTP, and its answers reach them: in a session, without one, and by the
//! transport of 2024-11-05.

use linchpin::client::{Connection, Step};
use linchpin::prelude::*;
use linchpin::types::root::Root;
use linchpin::types::sample::CreateMessageResult;
use linchpin::types::version::Revision;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// A client of this revision that has an answer to everything, connected to the fixtures.
async fn connected(revision: Revision) -> Connection {
    let (ready, at) = oneshot::channel();
    let place = http("127.0.0.1:0").with_sse().on_ready(move |at| ready.send(at).unwrap());
    tokio::spawn(linchpin_conformance::server().serve(place));
    let at = at.await.unwrap();
    let place = match revision {
        Revision::V2024_11_05 => remote(&format!("http://{at}/sse")).unwrap().sse(),
        _ => remote(&format!("http://{at}/mcp")).unwrap(),
    };
    let model = json!({ "role": "assistant", "model": "none", "content": { "type": "text", "text": "Paris" } });
    let client = Client::new("test", "1")
        .revisions(&[revision])
        .on_elicitation(async |form| {
            let names = form.schema.properties.0.iter().map(|(name, _)| (name.clone(), json!("word")));
            form.accept(Value::Object(names.collect()))
        })
        .on_sampling(move |_| {
            let model = serde_json::from_value::<CreateMessageResult>(model.clone());
            async move { Ok(model?) }
        })
        .roots(vec![Root::new("file:///work")]);
    client.connect(place).await.unwrap()
}

#[tokio::test]
async fn answers_to_questions_reach_a_server_over_http() {
    let session = |tool: &'static str, arguments: Value, part| (Revision::V2025_11_25, tool, arguments, part);
    let alone = |tool: &'static str, part| (Revision::LATEST, tool, json!({}), part);
    let cases = [
        session("test_sampling", json!({ "prompt": "Capital of France?" }), "Paris"),
        session("test_elicitation", json!({ "message": "Who?" }), "accept"),
        alone("test_input_required_result_elicitation", "Hello, word!"),
        alone("test_input_required_result_sampling", "Paris"),
        alone("test_input_required_result_list_roots", "file:///work"),
        alone("test_input_required_result_multi_round", "word"),
    ];
    for (revision, tool, arguments, part) in cases {
        let connection = connected(revision).await;
        assert_eq!(connection.revision(), revision);
        let result = connection.call(tool, arguments).await.unwrap().ok().unwrap();
        assert!(result.text().contains(part), "{tool}: {result:?}");
        connection.close().await;
    }
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18] {
        let connection = connected(revision).await;
        let result = connection.call("test_sampling", json!({ "prompt": "Capital of France?" })).await.unwrap();
        assert!(result.text().contains("Paris"), "{revision}: {result:?}");
        connection.close().await;
    }
}

#[tokio::test]
async fn a_call_goes_on_when_the_server_closes_its_stream() {
    let connection = connected(Revision::V2025_11_25).await;
    connection.call("test_reconnection", ()).await.unwrap().ok().unwrap();
}

#[tokio::test]
async fn progress_is_heard_over_http() {
    for revision in Revision::ALL {
        let connection = connected(revision).await;
        let mut steps = connection.call("test_tool_with_progress", ()).steps();
        let mut seen = Vec::new();
        while let Some(step) = steps.next().await {
            match step {
                Step::Progress(progress) => seen.push(progress.progress),
                Step::Done(result) => drop(result.unwrap().ok().unwrap()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, [0.0, 50.0, 100.0], "{revision}");
    }
}

/// Permission that comes only after longer than any deadline of the client, as when a user logs in.
struct SlowPerson;

impl linchpin::transport::Authorizer for SlowPerson {
    fn authorize<'a>(
        &'a self,
        _: &'a mut http::request::Parts,
    ) -> linchpin::BoxFuture<'a, Result<(), std::sync::Arc<str>>> {
        Box::pin(async {
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            Ok(())
        })
    }

    fn answered<'a>(
        &'a self,
        _: &'a http::request::Parts,
        _: http::StatusCode,
        _: &'a http::HeaderMap,
    ) -> linchpin::BoxFuture<'a, Result<bool, std::sync::Arc<str>>> {
        Box::pin(async { Ok(false) })
    }
}

#[tokio::test]
async fn no_deadline_runs_while_a_person_is_waited_for() {
    let (ready, at) = oneshot::channel();
    let place = http("127.0.0.1:0").on_ready(move |at| ready.send(at).unwrap());
    tokio::spawn(linchpin_conformance::server().serve(place));
    let place = remote(&format!("http://{}/mcp", at.await.unwrap())).unwrap().auth(SlowPerson);
    let client = Client::new("test", "1").limits(|l| (l.connections.open_ms_max, l.calls.run_ms_max) = (150, 150));
    let connection = client.connect(place).await.unwrap();
    assert!(connection.call("test_simple_text", ()).await.unwrap().text().contains("simple text"));
}
