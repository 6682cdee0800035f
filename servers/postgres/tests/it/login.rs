//! Logging in: passwords, and encryption that is never quietly less than `sslmode` asks for.

use crate::common;

use common::{Cluster, call, connect, error, ok};
use linchpin_postgres::{Config, Secret};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Whether the connection is encrypted, or why there is none.
async fn encrypted(url: &str) -> Result<bool, String> {
    encrypted_by(url, Config::default()).await
}

async fn encrypted_by(url: &str, config: Config) -> Result<bool, String> {
    let client = connect(config.with(|config| config.url = Some(Secret::new(url)))).await;
    let (failed, text, value) = call(&client, "pg_health", json!({})).await;
    if failed { Err(text) } else { Ok(value["encrypted"].as_bool().unwrap()) }
}

fn openssl(dir: &Path, args: &[&str]) {
    let done = Command::new("openssl").current_dir(dir).args(args).output().expect("openssl runs");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Two authorities, and a server's certificate for 127.0.0.1 signed by the first.
fn certificates(dir: &Path) -> PathBuf {
    for name in ["ca", "other"] {
        let (key, crt, subject) = (format!("{name}.key"), format!("{name}.crt"), format!("/CN={name}"));
        openssl(
            dir,
            &[
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", &subject, "-keyout", &key,
                "-out", &crt,
            ],
        );
    }
    std::fs::write(dir.join("ext"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n").unwrap();
    openssl(
        dir,
        &["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr"],
    );
    openssl(
        dir,
        &[
            "x509",
            "-req",
            "-in",
            "server.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "ext",
            "-out",
            "server.crt",
        ],
    );
    dir.to_owned()
}

/// Gives the files to whoever runs the server, readable by nobody else.
fn hand_over(cluster: &Cluster, files: &[PathBuf]) {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let owner = std::fs::metadata(cluster.dir()).unwrap();
    for file in files {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let _ = std::os::unix::fs::chown(file, Some(owner.uid()), Some(owner.gid()));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn sslmode_means_what_it_means_to_libpq_and_nothing_is_downgraded() {
    let cluster = Cluster::with("hostnossl all tlsonly 127.0.0.1/32 reject", "");
    cluster.sql("CREATE ROLE reader LOGIN; CREATE ROLE tlsonly LOGIN");
    let base =
        |user: &str, host: &str, rest: &str| format!("postgres://{user}@{host}:{}/postgres?{rest}", cluster.port);
    // A server without TLS.
    for (mode, expected) in [
        ("disable", Some(false)),
        ("allow", Some(false)),
        ("prefer", Some(false)),
        ("require", None),
        ("verify-full", None),
    ] {
        let got = encrypted(&base("reader", "127.0.0.1", &format!("sslmode={mode}"))).await;
        assert_eq!(got.as_ref().ok().copied(), expected, "{mode}: {got:?}");
        if let Err(text) = got {
            assert!(text.contains("does not support TLS"), "{mode}: {text}");
        }
    }
    let own = tempfile::tempdir().unwrap();
    let dir = certificates(own.path());
    for name in ["server.crt", "server.key"] {
        std::fs::copy(dir.join(name), cluster.dir().join("data").join(name)).unwrap();
    }
    hand_over(&cluster, &[cluster.dir().join("data/server.crt"), cluster.dir().join("data/server.key")]);
    cluster.sql("ALTER SYSTEM SET ssl = on");
    cluster.sql("SELECT pg_reload_conf()");
    for _ in 0..100 {
        if cluster.sql("SHOW ssl") == "on" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let file = |name: &str| dir.join(name).display().to_string();
    let (ca, other, itself) = (file("ca.crt"), file("other.crt"), file("server.crt"));
    for (user, host, rest, expected) in [
        ("reader", "127.0.0.1", "sslmode=disable".to_owned(), Some(false)),
        ("reader", "127.0.0.1", "sslmode=allow".to_owned(), Some(false)),
        ("tlsonly", "127.0.0.1", "sslmode=allow".to_owned(), Some(true)),
        ("tlsonly", "127.0.0.1", "sslmode=disable".to_owned(), None),
        ("reader", "127.0.0.1", "sslmode=prefer".to_owned(), Some(true)),
        ("reader", "127.0.0.1", String::new(), Some(true)),
        ("reader", "127.0.0.1", "sslmode=require".to_owned(), Some(true)),
        ("reader", "127.0.0.1", format!("sslmode=require&sslrootcert={ca}"), Some(true)),
        ("reader", "127.0.0.1", format!("sslmode=require&sslrootcert={other}"), None),
        ("reader", "127.0.0.1", format!("sslmode=verify-ca&sslrootcert={ca}"), Some(true)),
        ("reader", "localhost", format!("sslmode=verify-ca&sslrootcert={ca}"), Some(true)),
        ("reader", "127.0.0.1", format!("sslmode=verify-ca&sslrootcert={other}"), None),
        ("reader", "127.0.0.1", format!("sslmode=verify-full&sslrootcert={ca}"), Some(true)),
        ("reader", "localhost", format!("sslmode=verify-full&sslrootcert={ca}"), None),
        ("reader", "127.0.0.1", format!("sslmode=verify-full&sslrootcert={other}"), None),
        ("reader", "127.0.0.1", format!("sslmode=verify-full&sslrootcert={itself}"), Some(true)),
        ("reader", "localhost", format!("sslmode=verify-full&sslrootcert={itself}"), None),
        ("reader", "localhost", format!("sslmode=verify-ca&sslrootcert={itself}"), Some(true)),
        ("reader", "127.0.0.1", "sslmode=verify-full".to_owned(), None),
        ("reader", "127.0.0.1", "sslrootcert=system".to_owned(), None),
        ("reader", "127.0.0.1", "sslmode=verify-full&sslrootcert=/nowhere".to_owned(), None),
    ] {
        let got = encrypted(&base(user, host, &rest)).await;
        assert_eq!(got.as_ref().ok().copied(), expected, "{user} {host} {rest}: {got:?}");
    }
    // The certificate of an authority in the usual place, `~/.postgresql/root.crt`, is used where it is there.
    for (root, mode, expected) in [
        (&ca, "require", Some(true)),
        (&ca, "verify-full", Some(true)),
        (&other, "prefer", Some(true)),
        (&other, "require", None),
        (&other, "verify-ca", None),
        (&other, "verify-full", None),
        (&"/nowhere".to_owned(), "require", Some(true)),
    ] {
        let mut config = Config::default();
        config.environment.root_certificate = Some(root.into());
        let got = encrypted_by(&base("reader", "127.0.0.1", &format!("sslmode={mode}")), config).await;
        assert_eq!(got.as_ref().ok().copied(), expected, "{root} {mode}: {got:?}");
        // psql agrees, but goes on without encryption where the certificate is not good and `prefer` allows it.
        let url = base("reader", "127.0.0.1", &format!("sslmode={mode}&sslrootcert={root}"));
        let mut psql = Command::new(common::bin().join("psql"));
        psql.env("HOME", "/nowhere").args(["-X", "-At", "-c"]);
        psql.args(["SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &url]);
        let said = psql.output().expect("psql runs");
        let ssl = said.status.success().then(|| said.stdout == b"t\n");
        let downgraded = mode == "prefer" && root == &other;
        assert_eq!(ssl, if downgraded { Some(false) } else { expected }, "psql: {root} {mode}: {said:?}");
    }
}

/// Somebody in the middle who says that there is no TLS learns nothing: no name, no password.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_tls_hears_nothing_more() {
    for answer in [b"N".as_slice(), b"E", b"S\0\0\0\x08"] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = tokio::spawn(async move {
            let mut heard = Vec::new();
            // The first list of tables and the call each connect, or the back-off answers for the second.
            while let Ok(Ok((mut stream, _))) =
                tokio::time::timeout(std::time::Duration::from_secs(4), listener.accept()).await
            {
                let mut request = [0; 8];
                stream.read_exact(&mut request).await.unwrap();
                stream.write_all(answer).await.unwrap();
                let _ = stream.read_to_end(&mut heard).await;
            }
            heard
        });
        let url = format!("postgres://someone:hunter2@127.0.0.1:{port}/d?sslmode=require&connect_timeout=2");
        let text = encrypted(&url).await.unwrap_err();
        assert!(!text.contains("hunter2"), "{text}");
        let heard = heard.await.unwrap();
        let plain = String::from_utf8_lossy(&heard);
        assert!(!plain.contains("someone") && !plain.contains("hunter2"), "{plain}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn passwords_work_and_are_never_shown() {
    let hba = "host all scram 127.0.0.1/32 scram-sha-256\nhost all digest 127.0.0.1/32 md5\nhost all clear 127.0.0.1/32 password";
    let cluster = Cluster::with(hba, "");
    cluster.sql("SET password_encryption = 'scram-sha-256'; CREATE ROLE scram LOGIN PASSWORD 'geheim-1'; CREATE ROLE clear LOGIN PASSWORD 'geheim-1'");
    cluster.sql("SET password_encryption = 'md5'; CREATE ROLE digest LOGIN PASSWORD 'geheim-1'");
    for user in ["scram", "digest", "clear"] {
        let with = |login: &str| format!("postgres://{login}@127.0.0.1:{}/postgres", cluster.port);
        encrypted(&with(&format!("{user}:geheim-1"))).await.unwrap();
        let text = encrypted(&with(&format!("{user}:falsch-2"))).await.unwrap_err();
        assert!(text.contains("28P01") && !text.contains("falsch-2"), "{text}");
        let text = encrypted(&with(user)).await.unwrap_err();
        assert!(text.contains("PGPASSWORD"), "{text}");
    }
    let mut config = cluster.config("scram");
    config.environment.password = Some(Secret::new("geheim-1"));
    let client = connect(config).await;
    ok(&client, "query", json!({ "sql": "SELECT 1" })).await;
    // Nor in what is listed, or in errors about statements.
    let client = connect(Config::default().with(|config| {
        config.url = Some(Secret::new(format!("postgres://scram:geheim-1@127.0.0.1:{}/postgres", cluster.port)))
    }))
    .await;
    cluster.sql("CREATE TABLE t (i int); GRANT SELECT ON t TO scram");
    let mut shown = format!("{:?}", client.resources().await.unwrap().items);
    shown.push_str(&format!("{:?}", client.resource_templates().await.unwrap().items));
    shown.push_str(&error(&client, "query", json!({ "sql": "SELECT * FROM nothing" })).await);
    assert!(!shown.contains("geheim-1"), "{shown}");
}
