//! Pages that keep a browser busy: every call ends in time, and the next one works. Also for the other clients.

use crate::common::*;
use linchpin::testing::site::{Do, Site, answer};
use linchpin::types::version::Revision;
use serde_json::json;
use std::time::Duration;

async fn hostile() -> Site {
    Site::new(|_, request| {
        let page = |body: &str| vec![Do::Write(answer(200, HTML, body))];
        match request.path() {
            "/loop" => page("<script>for (;;);</script>"),
            "/alert" => page("<script>alert(1); confirm(2) || prompt(3)</script>done"),
            "/stay" => page("<script>onbeforeunload = e => { e.preventDefault(); return 'stay' }</script><button>x"),
            "/alerts" => page("<script>for (;;) alert(1)</script>"),
            "/popups" => page("<script>for (let i = 0; i < 300; i++) window.open('/popups')</script>"),
            "/crowd" => page("<script>for (let i = 0; i < 2e4; i++) console.log('x'.repeat(1e4))</script>"),
            "/endless" => {
                let head = "HTTP/1.1 200 X\r\ncontent-type: text/html\r\ncontent-length: 4294967296\r\n\r\n<p>";
                vec![Do::Write(head.into()), Do::Flood(vec![b'x'; 1 << 16])]
            }
            "/silent" => vec![Do::Hold],
            _ => page("fine"),
        }
    })
    .await
}

/// Opens a page. That may take another try where the machine is still busy with what came before.
async fn recovers(caller: &Caller, site: &Site) {
    let mut last = String::new();
    for _ in 0..5 {
        match caller.call("puppeteer_navigate", json!({"url": site.url("/fine")})).await {
            Ok(_) => return,
            Err(error) => last = error,
        }
    }
    panic!("it does not recover: {last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a browser: cargo xtask test --only browser"]
async fn pages_that_do_not_end_end_their_own_call_only() {
    let site = hostile().await;
    let served = Served::with(config(&[&site]).with(|config| config.timeout_ms = 2_000)).await;
    let bystander = served.client(&Revision::ALL).await;
    bystander.go(&site.url("/fine")).await;
    bystander.eval("window.mark = 1").await;
    let browser = browser_process().expect("a browser");

    let each = async |path: &str, script: &str| {
        let caller = served.client(&[Revision::V2025_11_25]).await;
        let (tool, arguments) = match script {
            "" => ("puppeteer_navigate", json!({"url": site.url(path)})),
            script => {
                caller.go(&site.url(path)).await;
                ("puppeteer_evaluate", json!({ "script": script }))
            }
        };
        let answer =
            tokio::time::timeout(Duration::from_secs(30), caller.call(tool, arguments)).await.expect("in time");
        recovers(&caller, &site).await;
        assert_eq!(caller.eval("document.body.innerText").await, "\"fine\"", "{path} {script}");
        answer.map(|(text, _)| text.concat())
    };
    let (spins, loops, endless, silent, waits) = tokio::join!(
        each("/loop", ""),
        each("/", "for (;;);"),
        each("/endless", ""),
        each("/silent", ""),
        each("/", "new Promise(() => 0)"),
    );
    for late in [spins, loops, endless, silent, waits] {
        assert!(late.clone().is_err_and(|e| e.starts_with("It took longer than 2 s")), "{late:?}");
    }
    let (alerts, stays, endless_alerts) = tokio::join!(
        each("/alert", "document.body.innerText"),
        async {
            let caller = served.client(&Revision::ALL).await;
            caller.go(&site.url("/stay")).await;
            // Pages may ask only those who did something there.
            caller.text("puppeteer_click", json!({"selector": "button"})).await;
            caller.go(&site.url("/fine")).await
        },
        each("/alerts", ""),
    );
    assert!(alerts.as_ref().is_ok_and(|text| text.contains("done")), "{alerts:?}");
    assert_eq!(stays, format!("Navigated to {}", site.url("/fine")));
    assert!(endless_alerts.is_err());
    let _ = tokio::join!(each("/popups", ""), each("/crowd", ""));
    assert_eq!(bystander.eval("window.mark").await, "1", "what others do is none of its business");
    assert_eq!(browser_process(), Some(browser), "one browser did all of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a browser: cargo xtask test --only browser"]
async fn a_browser_that_stands_still_or_is_gone_is_replaced() {
    let site = hostile().await;
    let caller = Caller::of(config(&[&site]).with(|config| config.timeout_ms = 2_000)).await;
    caller.go(&site.url("/fine")).await;
    let signal = |name: &str| {
        // Debian's is started by a script.
        let group = format!("-{}", browser_process().expect("a browser"));
        assert!(std::process::Command::new("kill").args([name, "--", &group]).status().unwrap().success());
    };
    signal("-STOP");
    let still = caller.error("puppeteer_evaluate", json!({"script": "1"})).await;
    assert!(still.starts_with("It took longer"), "{still}");
    recovers(&caller, &site).await;
    signal("-KILL");
    let _ = caller.call("puppeteer_evaluate", json!({"script": "1"})).await;
    recovers(&caller, &site).await;
}
