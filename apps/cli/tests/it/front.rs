//! What surrounds the servers when they are served over HTTP: TLS.
#![cfg(all(unix, feature = "client", feature = "everything"))]

#[path = "../../../../crates/transport/tests/it/common/certificate.rs"]
mod certificate;

use crate::common::{Served, command, finished, program};
use certificate::pems;
use std::path::Path;

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
    let rows: [(&[&str], i32, &str); 4] = [
        (&["--tls-cert", "cert.pem"], 2, "--tls-key <FILE>"),
        (&["--tls-key", "key.pem"], 2, "--tls-cert <FILE>"),
        (&["--tls-cert", "no.pem", "--tls-key", "key.pem"], 1, "cannot read the certificate no.pem: No such file"),
        (&["--tls-cert", "key.pem", "--tls-key", "key.pem"], 1, "key.pem contains no certificate in PEM"),
    ];
    for (tls, status, said) in rows {
        let (code, out, err) = finished(command(program(), home.path()).args(SERVE).args(tls));
        assert_eq!((code, out.as_str()), (Some(status), ""), "{err}");
        assert!(err.starts_with("error: ") && err.contains(said), "{err}");
    }
}
