//! What surrounds the servers of the program: TLS, probes, metrics, rate limits and audit logs.
#![cfg(all(unix, feature = "client", feature = "everything"))]

#[path = "../../../../crates/transport/tests/it/common/certificate.rs"]
mod certificate;

use crate::common::{Served, command, finished, program};
use certificate::pems;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

const SERVE: [&str; 4] = ["serve", "everything", "--http", "127.0.0.1:0"];

fn write(home: &Path, who: &str) {
    let (certificate, key, _) = pems(who);
    std::fs::write(home.join("cert.pem"), certificate).unwrap();
    std::fs::write(home.join("key.pem"), key).unwrap();
}

#[test]
fn the_program_serves_https_and_takes_a_new_certificate_while_it_runs() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "first");
    let tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--sse"];
    let served = Served::start(command(program(), home.path()).args(SERVE).args(tls));
    assert!(served.url.starts_with("https://localhost:") && served.said.contains("clients: https://localhost:"));
    let call = || {
        let mut client = command(program(), home.path());
        // The certificates that this client trusts.
        client.env("SSL_CERT_FILE", home.path().join("cert.pem")).args(["call", &served.url, "echo", "message=hi"]);
        finished(&mut client)
    };
    assert_eq!(call(), (Some(0), "Echo: hi\n".to_owned(), String::new()));
    write(home.path(), "second");
    while call().0 != Some(0) {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    // A broken one is told, and the last one stays.
    std::fs::rename(home.path().join("cert.pem"), home.path().join("kept.pem")).unwrap();
    std::fs::write(home.path().join("cert.pem"), "").unwrap();
    assert!(served.says("keeping the old TLS certificate error=cert.pem contains no certificate in PEM"));
    std::fs::rename(home.path().join("kept.pem"), home.path().join("cert.pem")).unwrap();
    assert_eq!(call(), (Some(0), "Echo: hi\n".to_owned(), String::new()));
}

#[test]
fn mistakes_with_the_certificate_are_told_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "server");
    let rows: [(&[&str], i32, &str); 5] = [
        (&["--tls-cert", "cert.pem"], 2, "--tls-key <FILE>"),
        (&["--tls-key", "key.pem"], 2, "--tls-cert <FILE>"),
        (&["--tls-cert", "no.pem", "--tls-key", "key.pem"], 2, "cannot read the certificate no.pem: No such file"),
        (&["--tls-cert", "no.pem", "--tls-key", "none.pem"], 2, "cannot read the certificate no.pem: No such file"),
        (&["--tls-cert", "key.pem", "--tls-key", "key.pem"], 2, "key.pem contains no certificate in PEM"),
    ];
    for (tls, status, said) in rows {
        let (code, out, err) = finished(command(program(), home.path()).args(SERVE).args(tls));
        assert_eq!((code, out.as_str()), (Some(status), ""), "{err}");
        assert!(err.starts_with("error: ") && err.contains(said), "{err}");
        // Pasted, the command must not overwrite a key.
        assert_eq!(err.contains("`openssl req -x509"), tls.contains(&"none.pem"), "{err}");
    }
}

/// GET: the status and the body.
fn get(served: &Served, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(served.address()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn probes_metrics_limits_and_records_take_a_flag_each() {
    let home = tempfile::tempdir().unwrap();
    let flags = ["--metrics", "--rate-limit", "2/h", "--audit", "audit.jsonl", "--shutdown-delay", "30"];
    let served = Served::start(command(program(), home.path()).args(SERVE).args(flags));
    let call = || finished(command(program(), home.path()).args(["call", &served.url, "echo", "message=secret"]));
    assert_eq!((call().0, call().0), (Some(0), Some(0)));
    let (code, out, err) = call();
    assert_ne!(code, Some(0));
    let refused = "rate limit of 2/h exceeded for echo; try again in ";
    assert!(format!("{out}{err}").contains(refused), "{out}{err}");

    let lines = std::fs::read_to_string(home.path().join("audit.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|l| l["outcome"].as_str().unwrap()).collect::<Vec<_>>(), ["ok", "ok", "tool_error"]);
    assert!(lines.iter().all(|l| l["name"] == "echo" && l["address"] == "127.0.0.1"), "{lines:?}");
    assert!(!format!("{lines:?}").contains("secret"));

    let (status, metrics) = get(&served, "/metrics");
    let echo = r#"duration_seconds_count{mcp_method_name="tools/call",gen_ai_tool_name="echo"} 2"#;
    assert!(status == 200 && metrics.contains(echo), "{metrics}");

    assert_eq!((get(&served, "/healthz").0, get(&served, "/readyz").0), (200, 200));
    assert!(Command::new("kill").args(["-s", "TERM", &served.id().to_string()]).status().unwrap().success());
    while get(&served, "/readyz").0 != 503 {}
    assert_eq!((get(&served, "/healthz").0, call().0), (200, code));
}

#[test]
fn metrics_are_shown_only_on_request_and_wrong_flags_are_told() {
    let home = tempfile::tempdir().unwrap();
    let served = Served::start(command(program(), home.path()).args(SERVE));
    assert_eq!((get(&served, "/metrics").0, get(&served, "/healthz").0), (404, 200));
    let rows: [(&[&str], i32, &str); 3] = [
        (&["serve", "everything", "--metrics"], 2, "--http <ADDR>"),
        (&["serve", "everything", "--rate-limit", "fast"], 2, "`fast` is not a rate such as 10/s, 60/min"),
        (
            &["serve", "everything", "--audit", "no/such/file"],
            2,
            "cannot open the audit log no/such/file: No such file",
        ),
    ];
    for (words, status, said) in rows {
        let (code, out, err) = finished(command(program(), home.path()).args(words));
        assert_eq!((code, out.as_str()), (Some(status), ""), "{err}");
        assert!(err.starts_with("error: ") && err.contains(said), "{err}");
    }
}
