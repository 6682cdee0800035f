//! The client against our own server, in every revision, in one process.

use linchpin::client::{Change, ChangeFilter, Error, ErrorKind, RawCallToolResult, Step};
use linchpin::prelude::*;
use linchpin::types::elicit::ElicitResult;
use linchpin::types::logging::LoggingLevel;
use linchpin::types::root::Root;
use linchpin::types::version::Revision;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Deserialize, JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(Serialize, Deserialize, JsonSchema, PartialEq, Debug)]
struct Total {
    total: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    sure: bool,
}

async fn sum(q: Sum) -> Json<Total> {
    Json(Total { total: q.a + q.b })
}

async fn fail(_: NoArgs) -> Result<String, String> {
    Err("the disk is full".into())
}

async fn ask(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let one: Sure = cx.elicit("one", "Sure?").await?;
    let two: Sure = cx.elicit("two", "Really?").await?;
    Ok(format!("{} {}", one.sure, two.sure))
}

async fn roots(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    Ok(cx.roots("roots").await?.iter().map(|root| root.uri.clone()).collect::<Vec<_>>().join(" "))
}

async fn work(_: &(), cx: &Cx, _: NoArgs) -> String {
    for n in 0..3 {
        cx.progress(f64::from(n), Some(3.0));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    "worked".into()
}

async fn slow(_: NoArgs) -> String {
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    "never".into()
}

fn server() -> Server<()> {
    Server::new("rich", "1.0")
        .instructions("Be gentle.")
        .state(())
        .tool(Tool::new("sum", "Adds."), sum)
        .tool(Tool::new("fail", "Fails."), fail)
        .tool(Tool::new("ask", "Asks twice."), ask)
        .tool(Tool::new("roots", "Names the roots."), roots)
        .tool(Tool::new("work", "Tells how far it is."), work)
        .tool(Tool::new("slow", "Takes an hour."), slow)
}

fn host(revision: Revision) -> Client {
    Client::new("test-host", "0.1").revisions(&[revision])
}

fn revisions() -> impl Iterator<Item = Revision> {
    Revision::ALL.iter().copied()
}

#[tokio::test]
async fn the_newest_common_revision_is_found_and_every_single_one_works() {
    let all = Client::new("h", "1").connect(in_process(server())).await.unwrap();
    assert_eq!(all.revision(), Revision::V2026_07_28);
    for revision in revisions() {
        let c = host(revision).connect(in_process(server())).await.unwrap();
        assert_eq!(c.revision(), revision);
        assert_eq!((c.server().unwrap().name, c.instructions().as_deref()), ("rich".into(), Some("Be gentle.")));
        let tools = c.tools().await.unwrap();
        assert_eq!(
            tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(),
            ["sum", "fail", "ask", "roots", "work", "slow"]
        );
        assert!(tools.refused.is_empty());
        let total: Total = c.call("sum", json!({ "a": 2, "b": 3 })).await.unwrap().json().unwrap();
        assert_eq!(total, Total { total: 5 }, "{revision:?}");
        c.ping().await.unwrap();
        c.close().await;
        let error = c.call("sum", ()).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Closed && error.is_closed(), "{error:?}");
    }
}

#[tokio::test]
async fn failures_of_tools_and_of_requests_are_told_apart() {
    for revision in revisions() {
        let c = host(revision).connect(in_process(server())).await.unwrap();
        let failed = c.call("fail", ()).await.unwrap();
        assert!(failed.is_error() && failed.text() == "the disk is full");
        let error = failed.json::<Value>().unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Tool, "the tool failed: the disk is full".into()));
        let code = |error: Error| error.rpc().map(|rpc| rpc.code);
        assert_eq!(c.call("nonsense", ()).await.map_err(code).unwrap_err(), Some(-32602), "{revision:?}");
        assert_eq!(c.request("no/such", ()).await.map_err(code).unwrap_err(), Some(-32601), "{revision:?}");
        assert_eq!(c.call("sum", 7).await.unwrap_err().kind(), ErrorKind::InvalidRequest);
        let wrong = c.call("sum", json!({ "a": "x", "b": 1 })).await.unwrap();
        assert!(wrong.is_error(), "{wrong:?}");
    }
}

/// A server whose results have the `resultType` in the variable `TYPE`, JSON text; with `OLD` it has sessions.
#[cfg(unix)]
const TYPED: &str = r#"
import json, os, sys
kind = {'resultType': json.loads(os.environ['TYPE'])} if 'TYPE' in os.environ else {}
for line in sys.stdin:
    m = json.loads(line)
    if 'id' not in m: continue
    out = {'content': [{'type': 'text', 'text': 'taken'}], 'tools': [], 'messages': [], 'contents': [], **kind}
    if 'ODD' in os.environ: out['inputRequests'] = 7
    if m['method'] == 'initialize':
        out = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'x', 'version': '1'}}
    if m['method'] == 'server/discover':
        out = {'supportedVersions': ['2026-07-28'], 'capabilities': {'tools': {}}}
    if 'OLD' in os.environ and m['method'] == 'server/discover':
        print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'error': {'code': -32601, 'message': 'unknown'}}), flush=True)
        continue
    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': out}), flush=True)
"#;

#[cfg(unix)]
#[tokio::test]
async fn a_result_of_a_type_that_nobody_declared_is_no_answer() {
    use linchpin::transport::Child;
    let start =
        |kind: &str| Child::new("python3").args(["-c", TYPED]).envs((!kind.is_empty()).then_some(("TYPE", kind)));
    let host = || Client::new("h", "1");
    let odd = r#""com.example/x""#;
    for (kind, shown) in [
        (odd, odd),
        (r#""Complete""#, r#""Complete""#),
        (r#""""#, r#""""#),
        ("7", "7"),
        (r#"["complete"]"#, r#"["complete"]"#),
    ] {
        let c = host().connect(start(kind)).await.unwrap();
        let refused = [
            ("tools/call", c.call("x", ()).await.err()),
            ("tools/list", c.tools().await.err()),
            ("prompts/get", c.prompt("x", ()).await.err()),
            ("resources/read", c.read("a:b").await.err()),
            ("any request", c.request("com.example/do", ()).await.err()),
        ];
        for (method, refused) in refused {
            let refused = refused.unwrap_or_else(|| panic!("{kind} to {method} was taken"));
            let why = refused.to_string();
            assert_eq!(refused.kind(), ErrorKind::InvalidResponse, "{kind} to {method}: {why}");
            assert!(why.contains(&format!("whose `resultType` is {shown}, so it is not used")), "{method}: {why}");
        }
    }
    // Results are complete if they say so or say nothing, and in revisions without `resultType`.
    for (client, server) in [
        (host(), start(r#""complete""#)),
        (host(), start("null")),
        (host(), start("")),
        (host(), start(odd).env("OLD", "1")),
        (host().extension("com.example/x", &json!({})), start(odd)),
    ] {
        let c = client.connect(server).await.unwrap();
        assert_eq!(c.call("x", ()).await.unwrap().text(), "taken");
        assert!(c.tools().await.unwrap().is_empty());
    }
    // A malformed `input_required` is not a result either.
    let bad = host().connect(start(r#""input_required""#).env("ODD", "1")).await.unwrap();
    let error = bad.call("x", ()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidResponse && error.to_string().contains("asks for input"), "{error:?}");
}

/// A server that reads the probe and the handshake before it answers either, in the order of the variable `ORDER`. Without
/// `OLD` it refuses the handshake.
#[cfg(unix)]
const SLOW_TO_START: &str = r#"
import json, os, sys, time
probe, hello = (json.loads(sys.stdin.readline()) for _ in range(2))
opened = {'result': {'protocolVersion': '2025-11-25', 'capabilities': {}, 'serverInfo': {'name': 'x', 'version': '1'}}}
if 'OLD' not in os.environ: opened = {'error': {'code': -32601, 'message': 'unknown'}}
found = {'result': {'resultType': 'complete', 'supportedVersions': ['2026-07-28'], 'capabilities': {}}}
answers = [{'jsonrpc': '2.0', 'id': probe['id'], **found}, {'jsonrpc': '2.0', 'id': hello['id'], **opened}]
for n in os.environ['ORDER']:
    print(json.dumps(answers[int(n)]), flush=True)
    time.sleep(0.02)
sys.stdin.read()
"#;

#[cfg(unix)]
#[tokio::test]
async fn a_server_that_was_slow_to_start_is_spoken_to_in_a_session_if_it_opens_one() {
    for (opens, revision) in [(true, Revision::V2025_11_25), (false, Revision::V2026_07_28)] {
        for order in ["01", "10"] {
            let server = linchpin::transport::Child::new("python3").args(["-c", SLOW_TO_START]).env("ORDER", order);
            let server = if opens { server.env("OLD", "1") } else { server };
            let client = Client::new("h", "1").limits(|limits| limits.connections.probe_ms_max = 300);
            let c = client.connect(server).await.unwrap();
            assert_eq!(c.revision(), revision, "{order}");
        }
    }
}

/// A server that sends 1,000 requests at once during a call, and returns how many were refused.
#[cfg(unix)]
const CURIOUS: &str = r#"
import json, sys
def send(m): print(json.dumps({'jsonrpc': '2.0', **m}), flush=False)
form = {'message': 'Sure?', 'requestedSchema': {'type': 'object', 'properties': {}}}
for line in sys.stdin:
    m = json.loads(line)
    if 'id' not in m: continue
    if m['method'] == 'initialize':
        send({'id': m['id'], 'result': {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'x', 'version': '1'}}})
    elif m['method'] == 'tools/call':
        for n in range(1000): send({'id': n, 'method': 'elicitation/create', 'params': form})
        sys.stdout.flush()
        refused = sum('error' in json.loads(sys.stdin.readline()) for n in range(1000))
        send({'id': m['id'], 'result': {'content': [{'type': 'text', 'text': str(refused)}]}})
    else:
        send({'id': m['id'], 'error': {'code': -32601, 'message': 'unknown'}})
    sys.stdout.flush()
"#;

#[cfg(unix)]
#[tokio::test]
async fn a_flood_of_questions_is_refused_past_the_limit_and_the_call_goes_on() {
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (active, peak) = (now.clone(), most.clone());
    let client = Client::new("h", "1").on_elicitation(move |form| {
        let (active, peak) = (active.clone(), peak.clone());
        async move {
            peak.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            active.fetch_sub(1, Ordering::SeqCst);
            form.decline()
        }
    });
    let server = linchpin::transport::Child::new("python3").args(["-c", CURIOUS]);
    let c = client.connect(server).await.unwrap();
    let refused: u32 = c.call("x", ()).await.unwrap().text().parse().unwrap();
    let peak = most.load(Ordering::SeqCst);
    assert!((1..=16).contains(&peak) && (1..1_000).contains(&refused), "{peak} at once, {refused} refused");
    assert_eq!(now.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn questions_are_answered_in_both_eras() {
    for revision in revisions().filter(|r| *r >= Revision::V2025_06_18) {
        let asked = Arc::new(AtomicU32::new(0));
        let count = asked.clone();
        let client = host(revision).roots(vec![Root::new("file:///w")]).on_elicitation(move |form| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            assert_eq!(form.server, "rich");
            async move { form.accept(json!({ "sure": n == 0 })) }
        });
        let c = client.connect(in_process(server())).await.unwrap();
        assert_eq!(c.call("ask", ()).await.unwrap().text(), "true false", "{revision:?}");
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        assert_eq!(c.call("roots", ()).await.unwrap().text(), "file:///w", "{revision:?}");
        let declines = host(revision).on_elicitation(|_| async { ElicitResult::decline() });
        let c = declines.connect(in_process(server())).await.unwrap();
        assert!(c.call("ask", ()).await.unwrap().is_error());
    }
}

#[tokio::test]
async fn rounds_can_be_left_to_the_host() {
    let client = host(Revision::V2026_07_28)
        .on_elicitation(|form| async move { form.accept_defaults() })
        .multi_round_trip(false);
    let c = client.connect(in_process(server())).await.unwrap();
    let result: RawCallToolResult = c.call("ask", ()).await.unwrap();
    assert!(result.input_required() && result.as_json().contains("requestState"), "{result:?}");
    // If it is requested again after an invalid result, it is an error of the host.
    let error = c.call("ask", ()).multi_round_trip(true).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.to_string().contains("`sure`"), "{error:?}");
}

#[tokio::test]
async fn progress_comes_before_the_result_and_in_order() {
    for revision in revisions() {
        let c = host(revision).connect(in_process(server())).await.unwrap();
        let mut steps = c.call("work", ()).steps();
        let mut seen = Vec::new();
        while let Some(step) = steps.next().await {
            match step {
                Step::Progress(p) => seen.push(format!("{}/{:?}", p.progress, p.total)),
                Step::Done(result) => seen.push(result.unwrap().text()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, ["0/Some(3.0)", "1/Some(3.0)", "2/Some(3.0)", "worked"], "{revision:?}");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = heard.clone();
        c.call("work", ()).on_progress(move |p| hear.lock().unwrap().push(p.progress)).await.unwrap();
        assert_eq!(*heard.lock().unwrap(), [0.0, 1.0, 2.0]);
    }
}

/// Waits until a condition holds; the limit only ends a failing run.
async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("in time");
}

#[tokio::test]
async fn a_call_that_is_dropped_or_too_slow_is_cancelled_at_the_server() {
    struct Dropped(Arc<AtomicU32>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    for revision in revisions() {
        let (began, ended) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (b, e) = (began.clone(), ended.clone());
        let server = Server::new("s", "1").tool(Tool::new("hang", "Hangs."), move |_: NoArgs| {
            let (b, e) = (b.clone(), e.clone());
            async move {
                let _guard = Dropped(e);
                b.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<String>().await
            }
        });
        let c = host(revision).connect(in_process(server)).await.unwrap();
        let call = tokio::spawn(c.call("hang", ()).into_future());
        until(|| began.load(Ordering::SeqCst) == 1).await;
        call.abort();
        until(|| ended.load(Ordering::SeqCst) == 1).await;
        let late = c.call("hang", ()).timeout(Duration::from_millis(20)).await;
        assert!(late.is_err_and(|error| error.is_timeout()), "{revision:?}");
        until(|| ended.load(Ordering::SeqCst) == 2).await;
    }
}

#[tokio::test]
async fn changes_are_heard_and_lists_are_fresh_afterwards() {
    for revision in revisions() {
        let server = server();
        let tools = server.tools();
        let changes = Arc::new(Mutex::new(Vec::new()));
        let hear = changes.clone();
        let c = host(revision)
            .on_change(move |change| hear.lock().unwrap().push(change))
            .connect(in_process(server))
            .await
            .unwrap();
        let mut stream = c.listen(ChangeFilter::new().tools()).await.unwrap();
        let before = c.tools().await.unwrap().len();
        tools.insert(Tool::new("late", "Came late."), slow).unwrap();
        assert_eq!(stream.next().await, Some(Change::Tools), "{revision:?}");
        assert_eq!(c.tools().await.unwrap().len(), before + 1, "{revision:?}");
        until(|| changes.lock().unwrap().contains(&Change::Tools)).await;
        c.close().await;
        assert_eq!(stream.next().await, None);
    }
}

#[tokio::test]
async fn log_messages_reach_the_host_at_the_level_it_wants() {
    async fn talk(_: &(), cx: &Cx, _: NoArgs) -> String {
        cx.log(LoggingLevel::Debug, "quiet");
        cx.log(LoggingLevel::Warning, "loud");
        "said".into()
    }
    for revision in revisions() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = heard.clone();
        let client = host(revision)
            .on_log(LoggingLevel::Info, move |m| hear.lock().unwrap().push((m.level, m.data.get().to_owned())));
        let server = Server::new("s", "1").state(()).tool(Tool::new("talk", "Talks."), talk);
        let c = client.connect(in_process(server)).await.unwrap();
        c.call("talk", ()).await.unwrap();
        until(|| !heard.lock().unwrap().is_empty()).await;
        assert_eq!(*heard.lock().unwrap(), [(LoggingLevel::Warning, "\"loud\"".to_owned())], "{revision:?}");
    }
}

#[tokio::test]
async fn the_title_of_a_tool_is_shown_in_every_revision_that_has_a_place_for_it() {
    for revision in revisions() {
        let server = server().tool(Tool::new("titled", "Has one.").title("A title"), slow);
        let c = host(revision).connect(in_process(server)).await.unwrap();
        let tools = c.tools().await.unwrap();
        let shown: Vec<&str> = tools.iter().map(|t| t.display_title()).collect();
        let titled = if revision == Revision::V2024_11_05 { "titled" } else { "A title" };
        assert_eq!((shown[0], shown[6]), ("sum", titled), "{revision:?}");
    }
}

#[tokio::test]
async fn a_subscription_to_a_resource_includes_its_parts_but_not_its_namesakes() {
    for revision in revisions() {
        let server = server().resource("file:///a", |_: NoArgs| async { "a" });
        let handle = server.handle();
        let c = host(revision).connect(in_process(server)).await.unwrap();
        // A connection of its own, because with sessions each stream receives the changes that others subscribed to.
        let parts = ["file:///ab", "file:///a/b", "file:///a?b", "file:///a#b", "file:///a"];
        let all = parts.iter().fold(ChangeFilter::new(), |all, uri| all.resource(*uri));
        let mut everything = c.listen(all).await.unwrap();
        let mut one = c.listen(ChangeFilter::new().resource("file:///a")).await.unwrap();
        for uri in parts {
            handle.resource_updated(uri);
            assert_eq!(everything.next().await, Some(Change::Updated(uri.into())), "{revision:?}");
        }
        let mut heard = Vec::new();
        while heard.last() != Some(&"file:///a".to_owned()) {
            let Some(Change::Updated(uri)) = one.next().await else { panic!("{revision:?}: the stream ended") };
            heard.push(uri);
        }
        let wanted = match revision {
            // Each listen stream has its own subscriptions.
            Revision::V2026_07_28 => &["file:///a"][..],
            _ => &["file:///a/b", "file:///a?b", "file:///a#b", "file:///a"],
        };
        assert_eq!(heard, wanted, "{revision:?}");
    }
}

#[tokio::test]
async fn what_a_server_speaks_is_remembered_by_a_client_and_not_by_others() {
    let place = in_process(server());
    let old = Client::new("old", "1").revisions(&[Revision::V2025_06_18]);
    assert_eq!(old.connect(place.clone()).await.unwrap().revision(), Revision::V2025_06_18);
    let new = Client::new("new", "1").connect(place).await.unwrap();
    assert_eq!(new.revision(), Revision::V2026_07_28);
}
