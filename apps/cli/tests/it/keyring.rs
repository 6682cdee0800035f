//! Secrets of servers in the keyring of the operating system, through the program.
//!
//! The first test writes to a keyring, so it runs only where that is wanted: `cargo xtask test --only keyring`.
#![cfg(all(feature = "client", feature = "fetch", target_os = "linux"))]

use crate::common;

use common::{command, finished, program};

/// The program says what it needs where it cannot do it, and never what it was told.
#[test]
fn a_keyring_that_cannot_help_is_said_in_a_line() {
    let home = tempfile::tempdir().unwrap();
    let unreachable = "unix:path=/nowhere/bus";
    for (place, says) in [
        ("no-account-hunter2", "MCP_FETCH_HEADERS_KEYRING is not a valid keyring entry\nhint: Write SERVICE/ACCOUNT."),
        #[cfg(feature = "keyring")]
        ("wiki/me", "MCP_FETCH_HEADERS_KEYRING: the keyring cannot be used; is one running?"),
        #[cfg(not(feature = "keyring"))]
        (
            "wiki/me",
            "MCP_FETCH_HEADERS_KEYRING: this program was built without keyrings\nhint: Build it with `--features keyring`",
        ),
    ] {
        let mut serve = command(program(), home.path());
        serve.args(["serve", "fetch"]).env("DBUS_SESSION_BUS_ADDRESS", unreachable);
        let (code, out, err) = finished(serve.env("MCP_FETCH_HEADERS_KEYRING", place));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.starts_with("error: ") && err.contains(says) && !err.contains("hunter2"), "{err}");
    }
}

/// What the documentation says is done, by the tool of the system; the site that is fetched sees the secret, and nobody else.
#[cfg(feature = "keyring")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes to the user's keyring: cargo xtask test --only keyring"]
async fn a_secret_that_the_systems_own_tool_keeps_reaches_the_site() {
    use common::{REVISIONS, Site, over_pipe, words};
    use std::io::Write as _;
    let home = tempfile::tempdir().unwrap();
    let site = Site::start(|_| Site::page("text/plain", "words"));
    let service = format!("linchpin-test-cli-{}", std::process::id());
    let bus = std::env::var("DBUS_SESSION_BUS_ADDRESS").unwrap();
    let env = |account: &str| {
        let place = format!("{service}/{account}");
        vec![("MCP_FETCH_HEADERS_KEYRING".to_owned(), place), ("DBUS_SESSION_BUS_ADDRESS".to_owned(), bus.clone())]
    };
    let serve = ["serve", "fetch", "--allow-private-ips", "--ignore-robots-txt"];

    let (code, _, err) = finished(command(program(), home.path()).args(serve).envs(env("me")));
    assert_eq!(code, Some(2), "{err}");
    let hint = format!("hint: Store it: secret-tool store --label=linchpin service {service} username me");
    assert!(err.contains("has no entry of the service") && err.contains(&hint), "{err}");

    // The very words of the hint.
    let tool: Vec<&str> = hint.split("secret-tool ").nth(1).unwrap().split(' ').collect();
    let mut tool =
        std::process::Command::new("secret-tool").args(tool).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let header = format!("{}:X-Key=hunter2\n", site.host());
    tool.stdin.take().unwrap().write_all(header.as_bytes()).unwrap();
    assert!(tool.wait().unwrap().success());

    let connection = over_pipe(program(), home.path(), &words(&serve), &env("me"), REVISIONS[1]).await;
    let answer = connection.call("fetch", serde_json::json!({ "url": site.url("/x") })).await.unwrap();
    assert!(answer.text().ends_with("words"), "{}", answer.text());
    connection.close().await;
    let seen = site.seen();
    assert!(seen.len() == 1 && seen[0].to_ascii_lowercase().contains("\r\nx-key: hunter2\r\n"), "{seen:?}");
}
