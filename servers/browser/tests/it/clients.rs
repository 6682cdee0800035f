//! What several clients of one server have of its browser, and what they are told.

use crate::common::*;
use linchpin::types::version::Revision;
use serde_json::{Value, json};
use std::time::Duration;

const PAGE: &str = "<script>console.log('said by ' + location.search)</script>";

async fn list(caller: &Caller) -> Vec<String> {
    let list = caller.connection.resources().await.expect("a list");
    list.iter().map(|resource| resource.uri.to_string()).collect()
}

async fn read(caller: &Caller, uri: &str) -> Result<Value, String> {
    let read = caller.connection.read(uri).await.map_err(|e| e.to_string())?;
    Ok(serde_json::to_value(&read.contents).expect("JSON"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a browser: cargo xtask test --only browser"]
async fn clients_share_a_browser_and_nothing_in_it() {
    let site = site(&[("/", HTML, PAGE.to_owned())]).await;
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state.json");
    let origin = site.url("");
    let kept = json!({
        "cookies": [{"name": "known", "value": "yes", "domain": "127.0.0.1", "path": "/", "expires": -1}],
        "origins": [{"origin": origin, "localStorage": [{"name": "it's", "value": "\"</script>"}]}],
    });
    std::fs::write(&state, kept.to_string()).unwrap();
    let served = Served::with(config(&[&site]).with(|config| config.storage_state = Some(state))).await;
    let one = served.client(&[Revision::V2025_11_25]).await;
    let two = served.client(&Revision::ALL).await;
    assert!(browser_process().is_none(), "no browser before a call needs one");

    let _changes = one.connection.subscribe("console://logs").await.unwrap();
    one.go(&site.url("/?one")).await;
    let browser = browser_process().expect("a browser");
    two.go(&site.url("/?two")).await;
    assert_eq!(browser_process(), Some(browser));
    for caller in [&one, &two] {
        assert_eq!(
            caller.eval("[document.cookie, localStorage[`it's`]]").await,
            "[\n  \"known=yes\",\n  \"\\\"</script>\"\n]"
        );
    }
    one.eval("document.cookie = localStorage.own = 'one=1'").await;
    assert_eq!(two.eval("[document.cookie, localStorage.own]").await, "[\n  \"known=yes\",\n  null\n]");

    for (caller, other) in [(&one, "two"), (&two, "one")] {
        let console = read(caller, "console://logs").await.unwrap();
        let text = console[0]["text"].as_str().unwrap();
        assert!(text.starts_with("[log] said by ?") && !text.contains(other), "{text}");
    }
    assert_eq!(list(&one).await, ["console://logs"]);
    one.text("puppeteer_screenshot", json!({"name": "shot {1}"})).await;
    one.text("puppeteer_screenshot", json!({"name": "both"})).await;
    two.text("puppeteer_screenshot", json!({"name": "both", "width": 100, "height": 50})).await;
    assert_eq!(list(&one).await, ["console://logs", "screenshot://shot %7B1%7D", "screenshot://both"]);
    assert_eq!(list(&two).await, ["console://logs", "screenshot://both"]);
    let [first, second] =
        [read(&one, "screenshot://both").await.unwrap(), read(&two, "screenshot://both").await.unwrap()];
    assert_eq!(first[0]["mimeType"], "image/png");
    assert_ne!(first[0]["blob"], second[0]["blob"], "each has its own");
    assert!(read(&two, "screenshot://shot %7B1%7D").await.is_err());
    let told = one.changes.lock().unwrap().clone();
    assert!(told.contains(&"list".to_owned()) && told.contains(&"console://logs".to_owned()), "{told:?}");

    drop(one);
    for _ in 0..200 {
        if two.eval("1").await == "1" && list(&two).await.len() == 2 {
            break;
        }
    }
    two.text("puppeteer_screenshot", json!({"name": "both"})).await;
    drop(two);
    for _ in 0..500 {
        if browser_process().is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the browser outlives its last client");
}
