//! Openings as data: what is accepted, what a server says to each attempt, and where that leads.

use linchpin_core::Features;
use linchpin_proto::era;
use linchpin_proto::negotiation::{Attempt, Negotiation, Outcome, Verdict};

const DISCOVERED: &str = r#"{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"resultType":"complete",
    "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
const DISCOVERED_OLD: &str = r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#;
const DISCOVERED_NEWER: &str = r#"{"supportedVersions":["2099-01-01"],"capabilities":{}}"#;
const DISCOVERED_BARE: &str = r#"{"capabilities":{},"supportedVersions":[]}"#;
const HELLO: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
const HELLO_NEWER: &str =
    r#"{"protocolVersion":"2099-01-01","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
const UNKNOWN: &str = r#"{"code":-32601,"message":"Method not found"}"#;
const PARAMS: &str = r#"{"code":-32602,"message":"Invalid request parameters"}"#;
const UNSUPPORTED: &str = r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"x"}}"#;
const UNSUPPORTED_OLD: &str = r#"{"code":-32022,"message":"no","data":{"supported":["2025-03-26"]}}"#;
const UNSUPPORTED_NEWER: &str = r#"{"code":-32022,"message":"no","data":{"supported":["2099-01-01"]}}"#;
const UNSUPPORTED_SILENT: &str = r#"{"code":-32022,"message":"no"}"#;
const DISCOVERED_ODD: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{},"resultType":"com.example/x","ttlMs":0,"cacheScope":"private"}"#;
const MISSING: &str = r#"{"code":-32021,"message":"needs sampling","data":{"requiredCapabilities":{"sampling":{}}}}"#;
const ENDED: &str = r#"{"code":-31001,"message":"ended, see 2026-11-29T23_14_35.log"}"#;
const ENDED_LATER: &str = r#"{"code":-31001,"message":"ended, see 2026-11-29T23_14_36.log"}"#;
const ODD: &str = r#"{"code":"x"}"#;

/// Plays the answers in order and tells the way: attempts, and how it ended.
fn way(accepted: &[&str], known: Option<&str>, answers: &[Outcome<'_>]) -> String {
    let accepted = Features::all()
        .filter(|features| accepted.is_empty() || accepted.contains(&features.revision.as_str()))
        .collect();
    let mut opening = Negotiation::new(accepted, known.and_then(era::named));
    let mut told = vec![attempt(opening.first())];
    for answer in answers {
        match opening.took(*answer) {
            Verdict::Agreed(agreed) => {
                told.push(format!("agreed {}", agreed.features.revision.as_str()));
                break;
            }
            Verdict::Again(next) => told.push(attempt(next)),
            Verdict::Redial(next) => told.push(format!("redial {}", attempt(next))),
            Verdict::Elsewhere(next, _) => told.push(format!("elsewhere {}", attempt(next))),
            Verdict::Failed(why) => {
                told.push(format!("failed: {why}"));
                break;
            }
        }
    }
    told.join(", ")
}

fn attempt(attempt: Attempt) -> String {
    match attempt {
        Attempt::Discover(features) => format!("discover {}", features.revision.as_str()),
        Attempt::Initialize(features) => format!("initialize {}", features.revision.as_str()),
    }
}

#[test]
fn every_answer_leads_where_the_rules_say() {
    use Outcome::{Error, Gone, Result, Silence, Status, Unreadable};
    let http = Some(400);
    #[rustfmt::skip]
    let rows: &[(&[Outcome<'_>], &str)] = &[
        (&[Result(DISCOVERED)], "agreed 2026-07-28"),
        (&[Result(DISCOVERED_BARE)], "agreed 2026-07-28"),
        (&[Result(DISCOVERED_OLD), Result(HELLO)], "initialize 2025-11-25, agreed 2025-06-18"),
        (&[Result(DISCOVERED_NEWER)], "failed: no common protocol version: the server supports 2099-01-01"),
        // Any error but those of the newest era is an old server's.
        (&[Error(UNKNOWN, None), Result(HELLO)], "initialize 2025-11-25, agreed 2025-06-18"),
        (&[Error(PARAMS, None), Result(HELLO)], "initialize 2025-11-25, agreed 2025-06-18"),
        (&[Error(ODD, None), Result(HELLO)], "initialize 2025-11-25, agreed 2025-06-18"),
        (&[Silence, Result(HELLO)], "initialize 2025-11-25, agreed 2025-06-18"),
        (&[Status(400), Result(HELLO)], "initialize 2025-11-25, agreed 2025-06-18"),
        (&[Status(500), Result(HELLO)], "initialize 2025-11-25, agreed 2025-06-18"),
        (&[Unreadable("text"), Result(HELLO)], "initialize 2025-11-25, agreed 2025-06-18"),
        (&[Result(DISCOVERED_ODD), Result(HELLO)], "initialize 2025-11-25, agreed 2025-06-18"),
        (&[Result(DISCOVERED_ODD), Silence], "initialize 2025-11-25, failed: version negotiation failed: a response with the `resultType` \"com.example/x\" to server/discover; no response to initialize"),
        (&[Result("7"), Result(HELLO)], "initialize 2025-11-25, agreed 2025-06-18"),
        // One that dies of an unknown request is started again.
        (&[Gone("exited with 1"), Result(HELLO)], "redial initialize 2025-11-25, agreed 2025-06-18"),
        (&[Gone("exited with 1"), Gone("exited with 2")], "redial initialize 2025-11-25, failed: exited with 2"),
        // Errors of the newest era never lead to the handshake.
        (&[Error(UNSUPPORTED, http), Result(DISCOVERED)], "discover 2026-07-28, agreed 2026-07-28"),
        (&[Error(UNSUPPORTED_OLD, http), Result(HELLO)], "initialize 2025-03-26, agreed 2025-06-18"),
        (&[Error(UNSUPPORTED_NEWER, http)], "failed: no common protocol version: the server supports 2099-01-01"),
        (&[Error(UNSUPPORTED_SILENT, http)], "failed: no common protocol version: the server supports no known version"),
        (&[Error(MISSING, http)], "failed: \"needs sampling\" (-32021, status 400)"),
        // Refused with a status: perhaps the oldest transport.
        (&[Status(405), Status(405), Result(HELLO)], "initialize 2025-11-25, elsewhere initialize 2025-11-25, agreed 2025-06-18"),
        (&[Status(404), Error(UNKNOWN, Some(404)), Result(HELLO)], "initialize 2025-11-25, elsewhere initialize 2025-11-25, agreed 2025-06-18"),
        (&[Status(403), Status(403)], "initialize 2025-11-25, failed: version negotiation failed"),
        (&[Status(500), Status(503)], "initialize 2025-11-25, failed: version negotiation failed: status 500 to server/discover; status 503 to initialize"),
        (&[Error(UNKNOWN, None), Error(UNKNOWN, None)], "initialize 2025-11-25, failed: version negotiation failed: \"Method not found\" (-32601) to server/discover and initialize"),
        // As a bridge does that starts a program twice.
        (&[Error(ENDED, None), Error(ENDED_LATER, None)], "initialize 2025-11-25, failed: version negotiation failed: \"ended, see 2026-11-29T23_14_35.log\" (-31001) to server/discover and initialize"),
        (&[Error(UNKNOWN, None), Silence], "initialize 2025-11-25, failed: version negotiation failed"),
        (&[Error(UNKNOWN, None), Result(HELLO_NEWER)], "initialize 2025-11-25, failed: no common protocol version: the server supports 2099-01-01"),
    ];
    for (answers, want) in rows {
        let got = way(&[], None, answers);
        let want = format!("discover 2026-07-28, {want}");
        assert!(got.starts_with(&want), "{got}\ninstead of\n{want}\nfor {answers:?}");
    }
}

#[test]
fn a_client_of_one_era_asks_only_in_that_era() {
    use Outcome::{Error, Gone, Result, Status};
    assert_eq!(way(&["2025-06-18"], None, &[Result(HELLO)]), "initialize 2025-06-18, agreed 2025-06-18");
    assert!(way(&["2025-11-25"], None, &[Result(HELLO)]).contains("failed: no common"));
    assert!(way(&["2025-11-25"], None, &[Error(UNKNOWN, None)]).contains("failed"));
    assert!(way(&["2026-07-28"], None, &[Error(UNKNOWN, None)]).contains("failed"));
    assert!(way(&["2026-07-28"], None, &[Status(404)]).contains("failed"));
    assert!(way(&["2026-07-28"], None, &[Gone("exited with 1")]).ends_with("failed: exited with 1"));
    // Versions named back and forth come to an end.
    let forever = vec![Error(UNSUPPORTED, None); 50];
    assert!(way(&["2026-07-28"], None, &forever).ends_with("(-32022) to server/discover"));
}

#[test]
fn what_a_server_spoke_last_time_is_tried_first_and_is_no_promise() {
    use Outcome::{Error, Result};
    assert_eq!(way(&[], Some("2025-06-18"), &[Result(HELLO)]), "initialize 2025-06-18, agreed 2025-06-18");
    assert_eq!(
        way(&[], Some("2025-06-18"), &[Error(UNKNOWN, None), Result(DISCOVERED)]),
        "initialize 2025-06-18, discover 2026-07-28, agreed 2026-07-28"
    );
    assert_eq!(
        way(&[], Some("2025-06-18"), &[Error(UNSUPPORTED, None), Result(DISCOVERED)]),
        "initialize 2025-06-18, discover 2026-07-28, agreed 2026-07-28"
    );
}
