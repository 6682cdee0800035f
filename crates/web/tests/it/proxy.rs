//! Proxies that the environment names. The environment belongs to the whole process, so that each case is another one.

use crate::server::*;
use bytes::Bytes;
use linchpin_web::{Reach, Web, WebOptions};
use std::process::Command;

const CASE: &str = "LINCHPIN_TEST_PROXY_CASE";

#[tokio::test]
async fn proxies_are_used_but_not_for_this_machine() {
    if std::env::var_os(CASE).is_some() {
        return;
    }
    let proxy = Server::new(|_, seen| vec![Do::Write(answer(200, "", &format!("proxied {}", seen.path)))]).await;
    let direct = Server::new(|_, seen| vec![Do::Write(answer(200, "", &format!("direct {}", seen.path)))]).await;
    let (port, this) = (proxy.port, format!("http://127.0.0.1:{}/x", direct.port));
    let here = |no: &str| format!("{no} is this machine itself, where this client does not connect");
    // Name of the proxy, where the client may connect, what it asks for, what it gets.
    let rows = [
        ("127.0.0.1", "any", "http://far.test/x", "proxied http://far.test/x".to_owned()),
        ("127.0.0.1", "public", "http://far.test/x", "proxied http://far.test/x".to_owned()),
        ("localhost", "public", "http://far.test/x", "proxied http://far.test/x".to_owned()),
        ("127.0.0.1", "any", &this, "direct /x".to_owned()),
        ("127.0.0.1", "public", &this, here(&format!("127.0.0.1:{}", direct.port))),
        (
            "127.0.0.1",
            "public",
            "http://10.0.0.1/x",
            "10.0.0.1 is in a private network, where this client does not connect".to_owned(),
        ),
        (
            "localhost",
            "public",
            "http://localhost:9/x",
            "localhost:9 is the proxy itself, where this client does not connect".to_owned(),
        ),
    ];
    for (name, reach, url, want) in rows {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "proxy::one_case", "--nocapture"]).env_clear();
        child.env(CASE, format!("{reach} {url}")).env("HTTP_PROXY", format!("http://{name}:{port}"));
        let output = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.contains(&format!("<{want}>")), "{output} is not {want}");
    }
}

#[tokio::test]
#[allow(clippy::print_stdout, reason = "this is how the process that runs it learns what came of it")]
async fn one_case() {
    let Ok(case) = std::env::var(CASE) else { return };
    let (reach, url) = case.split_once(' ').unwrap();
    let reach = if reach == "any" { Reach::Any } else { Reach::Public };
    let web = Web::new(WebOptions::default().with(|options| options.reach = reach));
    let said = match web.send(http::Request::get(url).body(Bytes::new()).unwrap()).await {
        Ok(mut answer) => String::from_utf8(answer.body.read_all(100).await.unwrap().to_vec()).unwrap(),
        Err(e) => e.to_string(),
    };
    println!("<{said}>");
}
