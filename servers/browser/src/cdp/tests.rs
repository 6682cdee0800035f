use super::*;
use serde_json::json;
use tokio::io::{AsyncReadExt, DuplexStream, ReadHalf, WriteHalf};

fn pair() -> (Cdp, ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(ours);
    let (from, to) = tokio::io::split(theirs);
    (Cdp::open(input, output, Box::new(|_, _| {})), from, to)
}

async fn command(from: &mut (impl AsyncRead + Unpin)) -> Value {
    let mut text = Vec::new();
    loop {
        match from.read_u8().await.unwrap() {
            0 => return serde_json::from_slice(&text).unwrap(),
            byte => text.push(byte),
        }
    }
}

#[tokio::test]
async fn answers_reach_their_commands_and_events_their_session() {
    let (cdp, mut from, mut to) = pair();
    let session = cdp.session("S");
    let mut events = session.events(&["Page.loadEventFired"]);
    let asked = tokio::spawn(async move { session.call("Page.enable", json!({"a": 1})).await });
    let sent = command(&mut from).await;
    assert_eq!(
        (&sent["method"], &sent["sessionId"], &sent["params"]["a"]),
        (&json!("Page.enable"), &json!("S"), &json!(1))
    );
    for message in [
        json!({"method": "Page.loadEventFired", "params": {"n": 0}}),
        json!({"method": "Page.loadEventFired", "params": {"n": 1}, "sessionId": "S"}),
        json!({"method": "Page.other", "params": {"n": 2}, "sessionId": "S"}),
        json!({"id": 99_999, "result": {}}),
        json!({"id": sent["id"], "result": {"ok": true}, "sessionId": "S"}),
    ] {
        to.write_all(format!("{message}\0").as_bytes()).await.unwrap();
    }
    assert_eq!(asked.await.unwrap(), Ok(json!({"ok": true})));
    assert_eq!(events.next().await.unwrap().params["n"], 1);
    assert!(events.try_next().is_none());
}

#[tokio::test]
async fn refusals_detached_targets_and_the_end_fail_the_commands_they_concern() {
    let (cdp, mut from, mut to) = pair();
    let call = |id: &str| {
        let session = cdp.session(id);
        tokio::spawn(async move { session.call("Runtime.evaluate", json!({})).await })
    };
    let refused = call("A");
    let id = command(&mut from).await["id"].clone();
    let detached = call("B");
    command(&mut from).await;
    let left = call("A");
    command(&mut from).await;
    let no = json!({"id": id, "error": {"code": -32000, "message": "Not found"}});
    to.write_all(format!("{no}\0nonsense\0").as_bytes()).await.unwrap();
    let over = json!({"method": "Target.detachedFromTarget", "params": {"sessionId": "B"}});
    to.write_all(format!("{over}\0").as_bytes()).await.unwrap();
    assert_eq!(refused.await.unwrap(), Err(CdpError::Refused("Not found".to_owned())));
    assert_eq!(detached.await.unwrap(), Err(CdpError::Detached));
    drop((from, to));
    assert_eq!(left.await.unwrap(), Err(CdpError::Closed));
    assert!(!cdp.is_open());
    assert_eq!(cdp.browser().call("Browser.getVersion", json!({})).await, Err(CdpError::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_does_not_answer_is_a_timeout_and_is_forgotten() {
    let (cdp, _from, _to) = pair();
    let late = cdp.browser().call_within("Browser.getVersion", json!({}), Duration::from_secs(5)).await;
    assert_eq!(late, Err(CdpError::Timeout("Browser.getVersion")));
    assert!(cdp.pending().is_empty());
}

#[tokio::test]
async fn a_message_that_is_too_long_is_skipped_and_fails_only_its_command() {
    let long = "x".repeat(2_000);
    let text = format!(
        "{{\"method\":\"a\",\"params\":\"{long}\"}}\0{{\"id\":7,\"result\":\"{long}\"}}\0{{\"id\":8,\"result\":1}}\0"
    );
    let mut frames = Frames::new(text.as_bytes(), 1_000);
    assert!(matches!(frames.next().await, Ok(Some(Incoming::Skipped))));
    assert!(matches!(frames.next().await, Ok(Some(Incoming::Answer { id: 7, result: Err(CdpError::TooLarge) }))));
    assert!(matches!(frames.next().await, Ok(Some(Incoming::Answer { id: 8, result: Ok(_) }))));
    assert!(matches!(frames.next().await, Ok(None)));
}

#[tokio::test]
async fn a_list_that_would_take_many_times_its_length_in_memory_fails_only_its_command() {
    let count = (4 << 20) + 1;
    let text = format!(
        "{{\"id\":1,\"result\":[{}0]}}\0{{\"id\":2,\"result\":\"{}\"}}\0",
        "0,".repeat(count),
        "0;".repeat(count)
    );
    let mut frames = Frames::new(text.as_bytes(), MESSAGE_BYTES_MAX);
    assert!(matches!(frames.next().await, Ok(Some(Incoming::Answer { id: 1, result: Err(CdpError::TooLarge) }))));
    assert!(matches!(frames.next().await, Ok(Some(Incoming::Answer { id: 2, result: Ok(_) }))), "a text is one value");
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_loses_events_and_holds_nobody_up() {
    let (cdp, _from, mut to) = pair();
    let mut slow = cdp.browser().events(&["a"]);
    let mut last = cdp.browser().events(&["b"]);
    for _ in 0..600 {
        to.write_all(b"{\"method\":\"a\",\"params\":{}}\0").await.unwrap();
    }
    to.write_all(b"{\"method\":\"b\",\"params\":{}}\0").await.unwrap();
    last.next().await.unwrap();
    let kept = std::iter::from_fn(|| slow.try_next()).count();
    assert_eq!(kept, 512);
}
