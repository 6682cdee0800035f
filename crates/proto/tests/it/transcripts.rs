//! Conversations with the engine as data. `>` is a frame of the client, `<` a frame of the server, `!` what the driver
//! does, and every other line what the engine told the driver. A transcript passes when replaying its `>` and `!` lines
//! gives back exactly the same text. Errors are shown by code, id and data, so that their wording is free to improve.

use linchpin_core::message::Message;
use linchpin_core::service::{CallEvent, ServerRequest, ServerRequestError};
use linchpin_core::{Limits, Reply, ReplyKind, Request, ResultWriter, Stamps};
use linchpin_proto::driver::Out;
use linchpin_proto::frame::{self, Frame, Unreadable};
use linchpin_proto::{Engine, Event};
use std::sync::{Arc, Mutex};

struct Replay {
    engine: Engine,
    limits: Arc<Limits>,
    requests: Vec<Arc<Request>>,
    out: String,
    answers: Arc<Mutex<Vec<String>>>,
}

impl Replay {
    fn line(&mut self, line: impl AsRef<str>) {
        self.out.push_str(line.as_ref());
        self.out.push('\n');
    }

    fn frame(&mut self, frame: &[u8]) {
        let json: serde_json::Value = serde_json::from_slice(frame).unwrap();
        let text = match json.get("error") {
            None => std::str::from_utf8(frame).unwrap().to_owned(),
            Some(error) => {
                // Sorted, because the order of members depends on features that other crates switch on.
                let sorted = |data: &serde_json::Value| match data.as_object() {
                    Some(members) => {
                        serde_json::to_string(&members.iter().collect::<std::collections::BTreeMap<_, _>>()).unwrap()
                    }
                    None => data.to_string(),
                };
                let data = error.get("data").map(|data| format!(" {}", sorted(data))).unwrap_or_default();
                format!(
                    "error {} id={}{data}",
                    error["code"],
                    json.get("id").map_or("none".into(), |id| id.to_string())
                )
            }
        };
        self.line(format!("< {text}"));
    }

    fn client(&mut self, json: &str) {
        match frame::read(json.to_owned().into(), &self.limits) {
            Err(unreadable) => self.unreadable(&unreadable),
            Ok(Frame::One(message)) => self.message(message),
            Ok(Frame::Batch(parts)) if self.engine.batches() => {
                for part in parts {
                    match frame::message(part, &self.limits) {
                        Err(unreadable) => self.unreadable(&unreadable),
                        Ok(message) => self.message(message),
                    }
                }
            }
            Ok(Frame::Batch(_)) => self.line("no batches here"),
        }
    }

    /// A connection does not answer a response, whatever it is.
    fn unreadable(&mut self, unreadable: &Unreadable) {
        match unreadable.is_response {
            true => self.line("nothing"),
            false => self.frame(&unreadable.reply.frame()),
        }
    }

    fn message(&mut self, message: Message) {
        match self.engine.receive(&message) {
            Event::Nothing => self.line("nothing"),
            Event::Reply(reply) => self.frame(&reply.frame()),
            Event::Notified(told) => self.line(format!("notified {} {}", told.method, told.params_text())),
            Event::Call(request) => {
                let token =
                    request.progress_token.map(|span| format!(" token={}", request.text(span))).unwrap_or_default();
                let (features, caps) = (request.caller.features(), request.caller.caps());
                self.line(format!(
                    "call {} {} {} elicit={}{token}",
                    request.id, request.method, features.revision, caps.elicitation_form
                ));
                self.requests.push(request);
            }
            Event::Cancel(_, frames) => {
                self.line("cancel");
                frames.iter().for_each(|frame| self.frame(frame));
            }
            Event::Answer(ask, answer) => (ask.answer)(answer),
        }
        self.gone();
    }

    /// What the driver does: a verb, and the id of the request it is about.
    fn driver(&mut self, command: &str) {
        let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
        let find = |id: &str| {
            self.requests.iter().rfind(|r| r.id.as_json() == id).cloned().unwrap_or_else(|| panic!("no request {id}"))
        };
        match verb {
            "finish" => {
                let request = find(rest);
                let mut sent = Vec::new();
                self.engine.send(&request.id, CallEvent::Done(answer(&request)), |message| sent.push(message));
                if !matches!(sent.last(), Some(Out::Reply(_))) {
                    self.line("may not send");
                }
                for message in sent {
                    match message {
                        Out::Reply(reply) => self.frame(&reply.frame()),
                        Out::Notice(frame) | Out::Request(frame) => self.frame(&frame),
                        Out::Pause(ms) => self.line(format!("pause {ms}")),
                    }
                }
            }
            "ask" => {
                let request = find(rest);
                let answers = self.answers.clone();
                let answer = move |answer: Result<String, ServerRequestError>| {
                    answers.lock().unwrap().push(match answer {
                        Ok(json) => format!("answer {json}"),
                        Err(ServerRequestError::Rpc(code, why)) => format!("refused {code} {why}"),
                        Err(_) => "gone".into(),
                    });
                };
                let ask = ServerRequest {
                    method: "elicitation/create".into(),
                    params: r#"{"message":"sure?"}"#.into(),
                    answer: Box::new(answer),
                };
                if let Some(frame) = self.engine.ask(&request.id, ask) {
                    self.frame(&frame);
                }
            }
            "close" => {
                self.engine.close();
                self.line(format!("running {} asked {}", self.engine.running(), self.engine.asked()));
            }
            _ => panic!("what is {command}?"),
        }
        self.gone();
    }

    fn gone(&mut self) {
        let answers = std::mem::take(&mut *self.answers.lock().unwrap());
        answers.iter().for_each(|answer| self.line(answer));
    }
}

fn answer(request: &Request) -> Reply {
    let stamps = Arc::new(Stamps { server_info: r#"{"name":"s","version":"1"}"#.into() });
    ResultWriter::new(&request.id, request.caller.features(), &stamps, 4096).finish(ReplyKind::Complete)
}

fn check(transcript: &str) {
    let limits = Arc::new(Limits::default().with(|limits| {
        limits.calls.per_peer_max = 2;
        limits.subscriptions.streams_per_peer_max = 1;
        limits.messages.depth_max = 6;
        limits.messages.id_bytes_max = 24;
        limits.messages.per_batch_max = 3;
    }));
    let engine = Engine::new(limits.clone());
    let mut replay = Replay { engine, limits, requests: Vec::new(), out: String::new(), answers: Arc::default() };
    // `META` stands for the claims of a stateless request.
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;
    let lines: Vec<String> =
        transcript.lines().map(|line| line.trim().replace("META", meta)).filter(|line| !line.is_empty()).collect();
    for line in &lines {
        match line.split_at_checked(2) {
            Some(("> ", json)) => {
                replay.line(line);
                replay.client(json);
            }
            Some(("! ", command)) => {
                replay.line(line);
                replay.driver(command);
            }
            _ => {}
        }
    }
    let want = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    assert!(replay.out == want, "\n--- got\n{}--- want\n{want}", replay.out);
}

#[test]
fn a_session_opens_and_is_asked_in_the_middle_of_a_call() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < error -32602 id=1
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        call 1 ping 2025-11-25 elicit=false
        ! finish 1
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        nothing
        > {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}
        call 2 initialize 2025-11-25 elicit=true
        ! finish 2
        < {"jsonrpc":"2.0","id":2,"result":{}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        notified notifications/initialized {}
        > {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"purge","_meta":{"progressToken":7}}}
        call "c" tools/call 2025-11-25 elicit=true token=7
        ! ask "c"
        < {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"sure?"}}
        > {"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}
        answer {"action":"accept"}
        > {"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}
        nothing
        ! ask "c"
        < {"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"sure?"}}
        > {"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}
        refused -1 no
        ! ask "c"
        < {"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{"message":"sure?"}}
        > {"jsonrpc":"2.0","id":3,"error":"odd"}
        refused -32603 the client sent a malformed error
        ! finish "c"
        < {"jsonrpc":"2.0","id":"c","result":{}}
        ! finish "c"
        may not send
        > {"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < error -32600 id=3
        > {"jsonrpc":"2.0","id":4,"method":"server/discover"}
        < error -32601 id=4
        > {"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{}}
        < error -32601 id=5
        > {"jsonrpc":"2.0","id":5,"method":"tasks/update","params":{"taskId":"t","inputResponses":{}}}
        < error -32601 id=5
        > {"jsonrpc":"2.0","id":5,"method":"server/discover","params":{META}}
        call 5 server/discover 2026-07-28 elicit=true
        > {"jsonrpc":"2.0","id":6,"method":"no/such"}
        call 6 no/such 2025-11-25 elicit=true
    "#,
    );
}

#[test]
fn requests_that_stand_alone_need_no_session_and_are_never_asked() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"purge",META}}
        call "a" tools/call 2026-07-28 elicit=true
        ! ask "a"
        gone
        ! finish "a"
        < {"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
        > {"jsonrpc":"2.0","id":"b","method":"ping","params":{META}}
        < error -32601 id="b"
        > {"jsonrpc":"2.0","id":"b","method":"initialize","params":{META}}
        < error -32601 id="b"
        > {"jsonrpc":"2.0","id":"b","method":"server/discover","params":{META}}
        call "b" server/discover 2026-07-28 elicit=true
        ! finish "b"
        < {"jsonrpc":"2.0","id":"b","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
        > {"jsonrpc":"2.0","id":"c","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01"}}}
        < error -32022 id="c" {"requested":"1900-01-01","supported":["2026-07-28"]}
        > {"jsonrpc":"2.0","id":"c","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        < error -32602 id="c"
        > {"jsonrpc":"2.0","id":"c","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}}}
        < error -32602 id="c"
        > {"jsonrpc":"2.0","id":"c","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":1.5}}}
        < error -32602 id="c"
        > {"jsonrpc":"2.0","id":"c","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"loud"}}}
        < error -32602 id="c"
    "#,
    );
}

#[test]
fn both_eras_share_one_pipe() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}
        call 1 initialize 2024-11-05 elicit=false
        ! finish 1
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x",META}}
        call 2 tools/call 2026-07-28 elicit=true
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x"}}
        call 3 tools/call 2024-11-05 elicit=false
        ! ask 2
        gone
        ! ask 3
        < {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"sure?"}}
        ! finish 3
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the parent request has ended"}}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        gone
        ! finish 2
        < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
    "#,
    );
}

#[test]
fn a_cancelled_request_is_never_answered_and_its_question_is_withdrawn() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}}}}
        call 1 initialize 2025-06-18 elicit=true
        ! finish 1
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}
        call 2 tools/call 2025-06-18 elicit=true
        ! ask 2
        < {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"sure?"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"2"}}
        nothing
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"changed my mind"}}
        cancel
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the parent request has ended"}}
        gone
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        nothing
        > {"jsonrpc":"2.0","id":1,"result":{}}
        nothing
        ! ask 2
        gone
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        < error -32600 id=2
        ! finish 2
        may not send
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        call 2 ping 2025-06-18 elicit=true
        ! finish 2
        < {"jsonrpc":"2.0","id":2,"result":{}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled"}
        nothing
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}
        nothing
    "#,
    );
}

#[test]
fn ids_in_use_and_too_many_calls_are_refused_until_one_ends() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        call 1 tools/list 2026-07-28 elicit=true
        > {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        < error -32600 id=1
        > {"jsonrpc":"2.0","id":"1","method":"tools/list","params":{META}}
        call "1" tools/list 2026-07-28 elicit=true
        > {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{META}}
        < error -32603 id=2
        > {"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{META}}
        call 4 subscriptions/listen 2026-07-28 elicit=true
        > {"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{META}}
        < error -32603 id=5
        ! finish 1
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{META}}
        call 2 tools/list 2026-07-28 elicit=true
        ! close
        running 0 asked 0
        > {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{META}}
        nothing
        ! finish 2
        may not send
    "#,
    );
}

#[test]
fn notifications_belong_to_a_session_or_bring_their_claims() {
    check(
        r#"
        > {"jsonrpc":"2.0","method":"acme/told"}
        nothing
        > {"jsonrpc":"2.0","method":"acme/told","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        nothing
        > {"jsonrpc":"2.0","method":"notifications/initialized","params":{META}}
        nothing
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        call 1 initialize 2025-06-18 elicit=false
        > {"jsonrpc":"2.0","method":"acme/told","params":{"a":1}}
        notified acme/told {"a":1}
        > {"jsonrpc":"2.0","method":"acme/told","params":[1]}
        nothing
        > {"jsonrpc":"2.0","method":"acme/told"}
        notified acme/told {}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"requestId":1}}
        cancel
        ! close
        running 0 asked 0
    "#,
    );
}

#[test]
fn batches_are_taken_apart_in_the_one_revision_that_has_them() {
    check(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"ping"}]
        no batches here
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}
        call 1 initialize 2025-03-26 elicit=false
        ! finish 1
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > [{"jsonrpc":"2.0","id":2,"method":"ping"}, {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}, 5]
        call 2 ping 2025-03-26 elicit=false
        notified notifications/roots/list_changed {}
        < error -32600 id=none
        ! finish 2
        < {"jsonrpc":"2.0","id":2,"result":{}}
        > []
        < error -32600 id=none
        > [1,2,3,4]
        < error -32600 id=none
        > [{"jsonrpc":"2.0","id":2,"method":"ping"}
        < error -32700 id=none
    "#,
    );
}

/// Two that answer the errors of each other would do so forever.
#[test]
fn a_response_is_never_answered() {
    for response in [
        r#""error":{"code":-32600,"message":"x"}"#,
        r#""id":null,"error":{"code":-32600,"message":"x"}"#,
        r#""id":1.5,"error":{"code":-32600,"message":"x"}"#,
        r#""id":{},"error":7"#,
        r#""id":9,"error":{"code":-32600,"message":"x"}"#,
        r#""id":1,"result":{},"error":{}"#,
        r#""result":{},"result":{}"#,
        r#""result":{}"#,
        r#""id":null,"result":{}"#,
    ] {
        check(&format!(
            r#"
            > {{"jsonrpc":"2.0",{response}}}
            nothing
            > {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
            call 1 initialize 2025-11-25 elicit=false
            > {{"jsonrpc":"2.0",{response}}}
            nothing
            > {{{response}}}
            nothing
            "#
        ));
    }
}

#[test]
fn a_client_is_described_by_an_object() {
    for (info, is_read) in
        [(r#"{"name":"a","version":"1"}"#, true), ("null", true), (r#"["a","1"]"#, false), (r#""a""#, false)]
    {
        let said = if is_read { "call 1 initialize 2025-11-25 elicit=false" } else { "< error -32602 id=1" };
        check(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{info}}}}}
            {said}
            "#
        ));
    }
}

#[test]
fn what_is_no_message_is_refused_with_its_own_id_when_that_can_be_read() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"ping"
        < error -32700 id=1
        > {"jsonrpc":"2.0","id":1,"method":"ping"}}
        < error -32700 id=1
        > nonsense
        < error -32700 id=none
        > 5
        < error -32600 id=none
        > {}
        < error -32600 id=none
        > {"jsonrpc":"1.0","id":1,"method":"ping"}
        < error -32600 id=1
        > {"id":"x","method":"ping"}
        < error -32600 id="x"
        > {"jsonrpc":"2.0","id":null,"method":"ping"}
        < error -32600 id=none
        > {"jsonrpc":"2.0","id":1.5,"method":"ping"}
        < error -32600 id=none
        > {"jsonrpc":"2.0","id":18446744073709551616,"method":"ping"}
        < error -32600 id=none
        > {"jsonrpc":"2.0","id":"half \udddd","method":"ping"}
        < error -32600 id=none
        > {"jsonrpc":"2.0","id":"an id longer than the limit","method":"ping"}
        < error -32600 id=none
        > {"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}
        < error -32600 id=1
        > {"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":1,"name":2}}
        < error -32600 id=1
        > {"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}
        < error -32600 id=1
        > {"jsonrpc":"2.0","id":1,"method":5}
        < error -32600 id=1
        > {"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[[[[[1]]]]]}}
        < error -32600 id=1
        > {"jsonrpc":"2.0","id":1,"method":"ping","result":{}}
        < error -32600 id=1
        > {"jsonrpc":"2.0","id":1}
        < error -32600 id=1
        > {"jsonrpc":"2.0","id":1,"m\u0065thod":"p\u0069ng"}
        call 1 ping 2025-11-25 elicit=false
        ! finish 1
        < {"jsonrpc":"2.0","id":1,"result":{}}
    "#,
    );
}
