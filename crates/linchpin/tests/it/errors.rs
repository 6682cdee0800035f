//! Errors: those of the SDK are standard errors, those of handlers may have any type, and input requests pass through
//! all.

use crate::common;

use anyhow::Context as _;
use common::{ALL, Logged, MODERN, Peer, code, failed, service, text};
use linchpin::prelude::*;
use linchpin::transport::IntoService as _;
use linchpin::types::sample::CreateMessageRequestParams;
use linchpin::{BoxError, ConfigError, Elicited, RequestError};
use serde_json::{Value, json};
use std::error::Error as StdError;
use std::io;

fn hello() -> &'static str {
    "hello"
}

fn wrong() -> Server {
    Server::new("wrong", "1").tool("a b", hello).tool("twice", hello).tool("twice", hello)
}

// The `main` of a program, with `?` alone.

async fn main_of_anyhow(server: Server) -> anyhow::Result<()> {
    server.tools().insert("more", hello)?;
    server.resources().insert("about://more", hello).context("about")?;
    server.prompts().insert("more", hello)?;
    // Its peer has disconnected already.
    let (near, _) = memory();
    server.serve(near).await.context("cannot serve")?;
    Ok(())
}

async fn main_of_boxes(server: Server) -> Result<(), Box<dyn StdError>> {
    server.tools().insert("more", hello)?;
    // Its peer has disconnected already.
    let (near, _) = memory();
    server.serve(near).await?;
    Err(Error::tool("it ended"))?
}

#[cfg(feature = "http")]
fn mounted(server: Server) -> anyhow::Result<()> {
    server.into_service()?;
    Ok(())
}

#[tokio::test]
async fn errors_of_the_start_are_standard_ones_and_told_apart_from_those_of_calls() {
    let good = || Server::new("good", "1");
    main_of_anyhow(good()).await.unwrap();
    assert_eq!(main_of_boxes(good()).await.unwrap_err().to_string(), "it ended");
    let error = main_of_anyhow(wrong()).await.unwrap_err();
    let Some(ServeError::Config(config)) = error.downcast_ref() else { panic!("{error:?}") };
    let problems: Vec<&str> = config.problems().collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].starts_with("tool `a b` (") && problems[1].contains("`twice` is defined twice"),
        "{problems:?}"
    );
    assert_eq!(format!("{config:?}"), problems.join("\n"), "main prints what a user can read");
    let error = main_of_boxes(wrong()).await.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(ServeError::Config(_))), "{error:?}");
    let handle = good().handle();
    handle.tools().insert("one", hello).unwrap();
    let error: ConfigError = handle.tools().insert("one", hello).unwrap_err();
    assert!(error.to_string().contains("`one` is defined twice"), "{error}");
    assert!(handle.resources().insert("no scheme", hello).unwrap_err().to_string().contains("a URI begins with"));
    assert!(wrong().into_shared().is_err_and(|e| e.problems().count() == 2));
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::InvalidInput, "for a main of io::Result");
}

#[cfg(feature = "http")]
#[tokio::test]
async fn a_busy_port_is_an_error_of_io_and_not_of_the_configuration() {
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = held.local_addr().unwrap().to_string();
    let Err(ServeError::Io(error)) = Server::new("s", "1").serve(http(at)).await else { panic!("it served") };
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(mounted(wrong()).unwrap_err().is::<ConfigError>());
}

/// Fails in the requested way.
fn fails(kind: &str) -> Result<String> {
    Err(match kind {
        "io" => io::Error::other("disk full").into(),
        "tool" => Error::tool("no such city"),
        "protocol" => Error::protocol_with(-31000, "no seat", json!({ "seats": 0 })),
        "missing" => Error::not_found(),
        "answer" => Error::tool_result(linchpin::types::tool::CallToolResult::new(vec![
            ContentBlock::text("one"),
            ContentBlock::text("two"),
        ])),
        "internal" => Error::internal(io::Error::other("/srv/secret")),
        other => Error::tool(format!("what is {other}?")),
    })
}

#[derive(Deserialize, JsonSchema)]
struct Kind {
    kind: String,
}

mod handlers {
    use super::*;

    pub(super) async fn own(q: Kind) -> Result<String> {
        fails(&q.kind)
    }
    pub(super) async fn anyhow(q: Kind) -> anyhow::Result<String> {
        Ok(fails(&q.kind)?)
    }
    pub(super) async fn boxed(q: Kind) -> Result<String, BoxError> {
        Ok(fails(&q.kind)?)
    }
    pub(super) async fn through_anyhow(q: Kind) -> Result<String> {
        anyhow(q).await.map_err(Error::from_anyhow)
    }
    pub(super) async fn through_box(q: Kind) -> Result<String> {
        boxed(q).await.map_err(Error::from_boxed)
    }
    pub(super) async fn tool_err(q: Kind) -> Result<String> {
        anyhow(q).await.tool_err()
    }
}

fn failing() -> Server {
    use handlers::{anyhow, boxed, own, through_anyhow, through_box, tool_err};
    macro_rules! with {
        ($server:expr, $($handler:ident)*) => {
            $server$(
                .tool(stringify!($handler), $handler)
                .resource(concat!("fail://", stringify!($handler), "/{kind}"), $handler)
                .prompt(stringify!($handler), $handler)
            )*
        };
    }
    with!(Server::new("failing", "1"), own anyhow boxed through_anyhow through_box tool_err)
}

const WAYS: [&str; 6] = ["own", "anyhow", "boxed", "through_anyhow", "through_box", "tool_err"];

#[tokio::test]
async fn an_error_of_a_handler_says_the_same_through_anyhow_and_boxes() {
    // How the error reaches the peer of a tool, and of a resource or prompt.
    let rows = [
        ("io", Ok("disk full"), (-32603, "disk full")),
        ("tool", Ok("no such city"), (-32603, "no such city")),
        ("protocol", Err((-31000, "no seat")), (-31000, "no seat")),
        ("answer", Ok("one"), (-32603, "one\ntwo")),
        ("internal", Ok("internal error"), (-32603, "internal error")),
    ];
    let mut peer = Peer::plain(failing(), MODERN).await;
    for way in WAYS {
        for (kind, tool, other) in &rows {
            let answer = peer.call(way, json!({ "kind": kind })).await;
            match tool {
                Ok(said) => assert_eq!(failed(&answer), *said, "{way} {kind}: {answer}"),
                Err((number, said)) => {
                    assert_eq!((code(&answer), &answer["error"]["message"]), (*number, &json!(said)), "{way} {kind}");
                    assert_eq!(answer["error"]["data"], json!({ "seats": 0 }), "{way} {kind}");
                }
            }
            if *kind == "answer" {
                assert_eq!(answer["result"]["content"].as_array().map(Vec::len), Some(2), "{way}: {answer}");
            }
            for answer in [
                peer.ask("resources/read", json!({ "uri": format!("fail://{way}/{kind}") })).await,
                peer.ask("prompts/get", json!({ "name": way, "arguments": { "kind": kind } })).await,
            ] {
                let said = (code(&answer), answer["error"]["message"].as_str().unwrap());
                assert_eq!(said, *other, "{way} {kind}");
            }
        }
        // The code of the revision, and the URI.
        let answer = peer.ask("resources/read", json!({ "uri": format!("fail://{way}/missing") })).await;
        assert_eq!(answer["error"]["data"]["uri"], format!("fail://{way}/missing"), "{answer}");
    }
}

#[tokio::test]
async fn context_becomes_the_message_but_never_uncovers_an_internal_error() {
    async fn in_context(q: Kind) -> anyhow::Result<String> {
        fails(&q.kind).map_err(anyhow::Error::from).context("opening /srv/x").context("asking for a seat")
    }
    let mut peer = Peer::plain(Server::new("s", "1").tool("t", in_context), MODERN).await;
    for kind in ["io", "tool"] {
        assert_eq!(failed(&peer.call("t", json!({ "kind": kind })).await), "asking for a seat", "{kind}");
    }
    let answer = peer.call("t", json!({ "kind": "protocol" })).await;
    assert_eq!((code(&answer), &answer["error"]["message"]), (-31000, &json!("asking for a seat")));
    assert_eq!(failed(&peer.call("t", json!({ "kind": "internal" })).await), "internal error");
}

#[tokio::test]
async fn the_cause_of_an_internal_error_is_logged_as_an_error_and_told_to_nobody() {
    async fn own() -> Result<String> {
        let inner = anyhow::Error::new(io::Error::other("connection refused by 10.1.2.3")).context("querying orders");
        Err(Error::internal(inner))
    }
    async fn boxed() -> Result<String, BoxError> {
        Ok(own().await?)
    }
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let server =
        Server::new("s", "1").tool("own", own).tool("boxed", boxed).resource("a://own", own).prompt("own", own);
    let mut peer = Peer::plain(server, "2025-06-18").await;
    for (method, params) in [
        ("tools/call", json!({ "name": "own", "arguments": {} })),
        ("tools/call", json!({ "name": "boxed", "arguments": {} })),
        ("resources/read", json!({ "uri": "a://own" })),
        ("prompts/get", json!({ "name": "own" })),
    ] {
        let before = logged.text().len();
        let answer = peer.ask(method, params).await.to_string();
        assert!(answer.contains("internal error"), "{answer}");
        assert!(!answer.contains("10.1.2.3") && !answer.contains("orders"), "{answer}");
        let said = logged.text().split_off(before);
        let line = said.lines().find(|line| line.starts_with("ERROR")).unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains("querying orders") && line.contains("10.1.2.3"), "{line}");
        assert_eq!(said.matches("10.1.2.3").count(), 1, "once: {said}");
    }
}

#[test]
fn an_error_of_a_handler_converts_into_other_errors_and_back() {
    // An error converted by `?` can be recovered unchanged.
    let boxed: BoxError = Error::from(io::Error::other("full")).into();
    assert!(boxed.is::<io::Error>());
    let any: anyhow::Error = Error::from_anyhow(anyhow::Error::new(io::Error::other("full")).context("saving")).into();
    assert!(any.is::<io::Error>() && any.to_string() == "saving");
    let error = Error::from_anyhow(any);
    assert_eq!(error.downcast_ref::<io::Error>().unwrap().to_string(), "full");
    assert_eq!(format!("{error:?}"), "saving\n  caused by: full");
    assert!(error.downcast_ref::<std::fmt::Error>().is_none());
    // An error of a handler alone has its own form, with its sources.
    let internal: BoxError = Error::internal("disk 7 is full").into();
    assert_eq!(internal.to_string(), "internal error");
    assert_eq!(internal.source().unwrap().to_string(), "disk 7 is full");
    assert_eq!(format!("{:?}", Error::from_boxed(internal)), "internal error\n  caused by: disk 7 is full");
    // Errors that are only text.
    let text: std::result::Result<(), String> = Err("not a number".into());
    assert_eq!(text.tool_err().unwrap_err().to_string(), "not a number");
    let text: std::result::Result<(), Error> = Err(Error::protocol(-31000, "taken"));
    assert_eq!(text.tool_err().unwrap_err().to_string(), "taken");
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    yes: bool,
}

mod asking {
    use super::*;

    pub(super) async fn own(cx: &Cx) -> Result<String> {
        Ok(format!("{}", cx.elicit::<Sure>("sure", "Sure?").await?.yes))
    }
    pub(super) async fn anyhow(cx: &Cx) -> anyhow::Result<String> {
        let sure: Sure = cx.elicit("sure", "Sure?").await.context("asking the user")?;
        anyhow::ensure!(sure.yes, "not sure");
        Ok(own(cx).await?)
    }
    pub(super) async fn boxed(cx: &Cx) -> Result<String, BoxError> {
        let sure: Sure = cx.elicit("sure", "Sure?").await?;
        Ok(format!("{}", sure.yes))
    }
    pub(super) async fn request_error(cx: &Cx) -> Result<String, RequestError> {
        match cx.elicit_form::<Sure>("sure", "Sure?").await? {
            Elicited::Accepted(sure) => Ok(format!("{}", sure.yes)),
            other => Ok(format!("{}", matches!(other, Elicited::Declined))),
        }
    }
    pub(super) async fn texts(cx: &Cx) -> Result<String, String> {
        let sure: Sure = cx.elicit("sure", "Sure?").await.map_err(|e| e.to_string())?;
        Ok(format!("{}", sure.yes))
    }
    pub(super) async fn wrapped(cx: &Cx) -> Result<String> {
        let answer = anyhow(cx).await.map_err(Error::from_anyhow);
        if let Err(error) = &answer {
            assert_eq!(error.is_input_required(), cx.revision().as_str() == MODERN, "{error:?}");
        }
        answer
    }
}

#[tokio::test]
async fn questions_pass_through_every_error_type_in_both_eras() {
    use asking::{anyhow, boxed, own, request_error, texts, wrapped};
    let server = || {
        Server::new("asking", "1")
            .tool("own", own)
            .tool("anyhow", anyhow)
            .tool("boxed", boxed)
            .tool("request_error", request_error)
            .tool("texts", texts)
            .tool("wrapped", wrapped)
            .prompt("anyhow", anyhow)
            .resource("ask://anyhow", anyhow)
    };
    let accepted = json!({ "action": "accept", "content": { "yes": true } });
    let requests = ["own", "anyhow", "boxed", "request_error", "texts", "wrapped"]
        .map(|name| ("tools/call", json!({ "name": name, "arguments": {} })));
    let more = [("prompts/get", json!({ "name": "anyhow" })), ("resources/read", json!({ "uri": "ask://anyhow" }))];
    for (method, params) in requests.into_iter().chain(more) {
        let mut peer = Peer::of(service(server()), MODERN, json!({ "elicitation": {} })).await;
        let asked = peer.ask(method, params.clone()).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{method} {params}: {asked}");
        assert!(asked["result"]["inputRequests"]["sure"].is_object(), "{asked}");
        let mut again = params.clone();
        again["inputResponses"] = json!({ "sure": accepted });
        again["requestState"] = asked["result"]["requestState"].clone();
        let answer = peer.ask(method, again).await;
        assert!(answer["result"].to_string().contains("true"), "{method} {params}: {answer}");
        // With a session the client is asked while the call waits.
        let mut peer = Peer::of(service(server()), "2025-06-18", json!({ "elicitation": {} })).await;
        let id = peer.request(method, params.clone()).await;
        for _ in 0..2 {
            let next = peer.message().await;
            if next["method"] != "elicitation/create" {
                peer.aside.push_back(next);
                break;
            }
            peer.reply(&next, accepted.clone()).await;
        }
        let answer = peer.answer(id).await;
        assert!(answer["result"].to_string().contains("true"), "{method} {params}: {answer}");
    }
}

#[tokio::test]
async fn what_became_of_a_question_has_a_kind() {
    /// Asks, and says what kind of error came of it.
    async fn kinds(cx: &Cx, q: Kind) -> Result<String, RequestError> {
        let error = match q.kind.as_str() {
            "roots" => cx.roots("roots").await.err(),
            "sample" => cx.sample("sample", CreateMessageRequestParams::default()).await.err(),
            "url" => cx.elicit_url("url", "Open it?", "nowhere").await.err(),
            "raw" => cx.elicit_raw("raw", "Fill in.", json!({ "type": "string" })).await.err(),
            _ => cx.elicit::<Sure>("sure", "Sure?").await.err(),
        };
        match error {
            Some(error) if error.is_input_required() => Err(error),
            Some(error) => {
                let rpc = error.rpc().map(|rpc| (rpc.code, rpc.message.clone()));
                assert_eq!(error.source().is_some(), rpc.is_some(), "{error:?}");
                Ok(format!("{:?} {rpc:?}", error.kind()))
            }
            None => Ok("answered".into()),
        }
    }
    let server = || service(Server::new("s", "1").tool("t", kinds));
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} }, "roots": {} });
    let refused = json!({ "error": { "code": -5, "message": "no" } });
    let rows = [
        ("ask", json!({ "result": { "action": "accept", "content": { "yes": true } } }), "answered"),
        ("ask", json!({ "result": { "action": "decline" } }), "Declined None"),
        ("ask", json!({ "result": { "action": "cancel" } }), "Cancelled None"),
        ("ask", json!({ "result": { "action": "accept", "content": { "yes": 7 } } }), "InvalidResponse None"),
        ("ask", refused.clone(), r#"Rpc Some((-5, "no"))"#),
        ("roots", refused, r#"Rpc Some((-5, "no"))"#),
        ("sample", Value::Null, "Unsupported None"),
        ("url", Value::Null, "InvalidRequest None"),
    ];
    for (kind, reply, said) in rows {
        let mut peer = Peer::of(server(), "2025-11-25", capabilities.clone()).await;
        let id = peer.start("t", json!({ "kind": kind })).await;
        if let Value::Object(mut reply) = reply {
            let question = peer.message().await;
            reply.extend([("jsonrpc".to_owned(), json!("2.0")), ("id".to_owned(), question["id"].clone())]);
            peer.send(reply.into()).await;
        }
        assert_eq!(text(&peer.answer(id).await), said, "{kind}");
    }
    // The client does not support the request, or never responds.
    for revision in ALL {
        let mut peer = Peer::plain(Server::new("s", "1").tool("t", kinds), revision).await;
        let answer = peer.call("t", json!({ "kind": "ask" })).await;
        assert_eq!(text(&answer), "Unsupported None", "{revision}: a handler may go on without it");
    }
    let quick = Server::new("s", "1").tool("t", kinds).limits(|l| l.server_requests.response_ms_max = 20);
    let mut peer = Peer::of(service(quick), "2025-11-25", capabilities).await;
    assert_eq!(text(&peer.call("t", json!({ "kind": "ask" })).await), "Timeout None");
}

#[cfg(feature = "client")]
mod host {
    use super::*;
    use linchpin::client::{Error, ErrorKind};
    use linchpin::transport::TransportError;
    use linchpin::types::sample::SamplingMessage;
    use linchpin::types::version::Revision;
    use std::time::Duration;

    async fn think(cx: &Cx) -> anyhow::Result<String> {
        let messages = vec![SamplingMessage::user("Think.")];
        let request = CreateMessageRequestParams::new(messages, 9);
        Ok(cx.sample("thought", request).await?.model)
    }

    fn server() -> Server {
        Server::new("s", "1").tool("hello", hello).tool("think", think).tool("hang", std::future::pending::<String>)
    }

    /// A `main` that returns `anyhow::Result`.
    async fn called(tool: &str) -> anyhow::Result<u32> {
        let client = Client::new("h", "1").connect(in_process(server())).await.context("cannot connect")?;
        Ok(client.call(tool, ()).timeout(Duration::from_millis(20)).await?.json()?)
    }

    #[tokio::test]
    async fn errors_have_a_kind_and_keep_their_source() {
        let error = called("nosuch").await.unwrap_err().downcast::<Error>().unwrap();
        let rpc = error.rpc().unwrap();
        assert_eq!((error.kind(), rpc.code), (ErrorKind::Rpc, -32602));
        assert!(error.to_string().contains(&rpc.message), "{error}");
        let error = called("hello").await.unwrap_err().downcast::<Error>().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidResponse);
        assert!(error.source().unwrap().is::<serde_json::Error>(), "{error:?}");
        assert_eq!(error.clone().to_string(), error.to_string());
        let error = called("hang").await.unwrap_err().downcast::<Error>().unwrap();
        assert!(error.is_timeout() && !error.is_closed() && error.kind() == ErrorKind::Timeout, "{error:?}");
        let error = Client::new("h", "1").connect(in_process(wrong())).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Connect && !error.is_timeout() && !error.is_closed(), "{error:?}");
        assert!(matches!(error.transport(), Some(TransportError::Unreachable(_))), "{error:?}");
        assert!(error.to_string().starts_with("cannot connect: "), "{error}");
        // `anyhow` and others print the sources too: nothing is said twice.
        assert!(error.source().is_none() && format!("{error:?}") == error.to_string(), "{error:?}");
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_while_it_is_opened_is_a_timeout() {
        let (near, _far) = tokio::io::duplex(1 << 10);
        let (read, write) = tokio::io::split(near);
        let client =
            Client::new("h", "1").limits(|l| (l.connections.open_ms_max, l.connections.probe_ms_max) = (20, 5));
        let place = linchpin::transport::pipes(read, write);
        let error = client.connect(place).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Connect && error.is_timeout(), "{error:?}");
    }

    #[tokio::test]
    async fn what_a_handler_of_the_host_fails_with_reaches_the_server_and_the_caller() {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let client = Client::new("h", "1").revisions(&[revision]).on_sampling(async |asked| {
                let model = std::fs::read_to_string("/nowhere/model")?;
                Ok(asked.reply(model, "a thought"))
            });
            let connection = client.connect(in_process(server())).await.unwrap();
            let cause = std::fs::read_to_string("/nowhere/model").unwrap_err().to_string();
            match connection.call("think", ()).await {
                // With a session the error goes to the server, and its tool fails.
                Ok(result) => {
                    let said = format!("the client refused sampling/createMessage: {cause} (-1)");
                    assert_eq!((result.is_error(), result.text()), (true, said), "{revision:?}");
                }
                Err(error) => {
                    assert_eq!(revision, Revision::V2026_07_28);
                    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Input, cause));
                    assert!(error.source().unwrap().is::<io::Error>(), "{error:?}");
                }
            }
        }
    }
}
