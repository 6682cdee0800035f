//! A PostgreSQL cluster of its own, and our server on it as a client sees it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use linchpin::client::RawCallToolResult;
use linchpin::prelude::*;
use linchpin::types::version::Revision;
use linchpin_postgres::{Config, Postgres, Secret};
use serde_json::{Value, json};
use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The newest `bin` of PostgreSQL here.
pub fn bin() -> PathBuf {
    if let Some(said) = std::env::var_os("LINCHPIN_POSTGRES_BIN") {
        return said.into();
    }
    let versions =
        std::fs::read_dir("/usr/lib/postgresql").map(|d| d.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let number = |path: &Path| path.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse::<u32>().ok());
    let found = versions.iter().map(|entry| entry.path()).filter(|path| path.join("bin/initdb").is_file());
    let newest = found.max_by_key(|path| number(path)).map(|path| path.join("bin"));
    newest.expect("PostgreSQL is installed, or LINCHPIN_POSTGRES_BIN names the folder of initdb")
}

/// A cluster in a directory of its own. It stops when this is dropped, and also when this process ends in any other way: a
/// shell waits for the end of its standard input.
pub struct Cluster {
    dir: tempfile::TempDir,
    pub port: u16,
    watchdog: Option<Child>,
}

/// PostgreSQL does not run as root: who it runs as instead, number and group.
fn servant() -> Option<(u32, u32)> {
    let me = Command::new("id").arg("-u").output().expect("id runs");
    if String::from_utf8_lossy(&me.stdout).trim() != "0" {
        return None;
    }
    let passwd = std::fs::read_to_string("/etc/passwd").expect("there are users");
    let of = |name: &str| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(of("postgres").or_else(|| of("nobody")).expect("a user without rights"))
}

fn as_servant(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt as _;
    match servant() {
        Some((user, group)) => command.gid(group).uid(user),
        None => command,
    }
}

/// A cluster's files as `initdb` makes them: made once for all tests, and copied for each.
fn template() -> PathBuf {
    let version = Command::new(bin().join("postgres")).arg("--version").output().expect("postgres runs").stdout;
    let version: String = String::from_utf8_lossy(&version).chars().filter(char::is_ascii_alphanumeric).collect();
    let template = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cluster-{version}"));
    if template.is_dir() {
        return template;
    }
    let dir = tempfile::Builder::new().prefix("lpg").tempdir().expect("a directory");
    if let Some((user, group)) = servant() {
        std::os::unix::fs::chown(dir.path(), Some(user), Some(group)).expect("its owner changes");
    }
    let data = dir.path().join("data");
    let made = as_servant(Command::new(bin().join("initdb")).current_dir("/").arg("-D").arg(&data))
        .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"])
        .output()
        .expect("initdb runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // Other tests may do the same at this moment: whole or not at all, and the first one counts.
    let own = template.with_extension(std::process::id().to_string());
    copy(&data, &own);
    if std::fs::rename(&own, &template).is_err() {
        std::fs::remove_dir_all(&own).expect("a copy that nobody needs");
    }
    template
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs").success());
}

impl Cluster {
    pub fn start() -> Cluster {
        Cluster::with("", "")
    }

    /// With these lines before those of `pg_hba.conf` that let everybody in, and these settings.
    pub fn with(hba: &str, settings: &str) -> Cluster {
        let dir = tempfile::Builder::new().prefix("lpg").tempdir().expect("a directory");
        let data = dir.path().join("data");
        copy(&template(), &data);
        if let Some((user, group)) = servant() {
            let owner = format!("{user}:{group}");
            let given = Command::new("chown").arg("-R").arg(owner).arg(dir.path()).status().expect("chown runs");
            assert!(given.success());
        }
        let open = "local all all trust\nhost all all 127.0.0.1/32 trust\n";
        std::fs::write(data.join("pg_hba.conf"), format!("{hba}\n{open}")).expect("a file");
        let own = format!(
            "listen_addresses='127.0.0.1'\nunix_socket_directories='{}'\nfsync=off\nshared_preload_libraries='pg_stat_statements'\nwal_level=logical\n{settings}\n",
            dir.path().display()
        );
        let mut conf = std::fs::read_to_string(data.join("postgresql.conf")).expect("a file");
        conf.push_str(&own);
        std::fs::write(data.join("postgresql.conf"), conf).expect("a file");
        let mut cluster = Cluster { dir, port: 0, watchdog: None };
        for _ in 0..5 {
            cluster.port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
            if cluster.run() {
                return cluster;
            }
        }
        panic!("PostgreSQL does not start: {}", cluster.log());
    }

    /// A second server that follows this one, which is stopped for a moment.
    pub fn standby(&mut self) -> Cluster {
        self.stop();
        let dir = tempfile::Builder::new().prefix("lpg").tempdir().expect("a directory");
        let copied = Command::new("cp").arg("-a").arg(self.dir.path().join("data")).arg(dir.path()).status();
        assert!(copied.expect("cp runs").success());
        if let Some((user, group)) = servant() {
            std::os::unix::fs::chown(dir.path(), Some(user), Some(group)).expect("its owner changes");
        }
        let data = dir.path().join("data");
        std::fs::write(data.join("standby.signal"), "").expect("a file");
        let mut conf = std::fs::read_to_string(data.join("postgresql.conf")).expect("a file");
        conf.push_str(&format!(
            "unix_socket_directories='{}'\nprimary_conninfo='host={} port={} user=postgres'\n",
            dir.path().display(),
            self.dir.path().display(),
            self.port
        ));
        std::fs::write(data.join("postgresql.conf"), conf).expect("a file");
        assert!(self.run(), "it starts again: {}", self.log());
        let mut standby = Cluster { dir, port: 0, watchdog: None };
        for _ in 0..5 {
            standby.port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
            if standby.run() {
                return standby;
            }
        }
        panic!("the standby does not start: {}", standby.log());
    }

    /// Starts the server on the port it has.
    pub fn run(&mut self) -> bool {
        let script = "\"$1\" -D \"$2\" -p \"$3\" >\"$4\" 2>&1 & pid=$!; read _; kill -INT $pid; wait $pid";
        let mut command = Command::new("sh");
        command
            .current_dir("/")
            .args(["-c", script, "sh"])
            .arg(bin().join("postgres"))
            .arg(self.dir.path().join("data"));
        command.arg(self.port.to_string()).arg(self.dir.path().join("log"));
        let watchdog =
            as_servant(&mut command).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.watchdog = Some(watchdog.expect("a shell"));
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            let mut ready = Command::new(bin().join("pg_isready"));
            ready.arg("-q").arg("-h").arg(self.dir.path()).arg("-p").arg(self.port.to_string());
            if ready.status().is_ok_and(|status| status.success()) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
            if self.log().contains("could not bind") {
                break;
            }
        }
        self.stop();
        false
    }

    /// Stops the server; [`Cluster::run`] starts it again.
    pub fn stop(&mut self) {
        if let Some(mut watchdog) = self.watchdog.take() {
            drop(watchdog.stdin.take());
            let _ = watchdog.wait();
        }
    }

    /// What the server has written to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// The major version of the server.
    pub fn major(&self) -> u32 {
        let text = std::fs::read_to_string(self.dir().join("data/PG_VERSION")).expect("a cluster says its version");
        text.trim().parse().expect("a number")
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Runs statements as superuser; what psql prints, unaligned.
    pub fn sql(&self, sql: &str) -> String {
        // Before version 14 there is no role that may read everything.
        let older = "ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO PUBLIC; ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO";
        let older = (self.major() < 14).then(|| sql.replace("GRANT pg_read_all_data TO", older));
        let sql = older.as_deref().unwrap_or(sql);
        self.psql("postgres", sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    pub fn psql(&self, user: &str, sql: &str) -> Result<String, String> {
        let mut command = Command::new(bin().join("psql"));
        command.args(["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-U", user, "-d", "postgres", "-p"]);
        command.arg(self.port.to_string()).arg("-h").arg(self.dir.path()).arg("-f").arg("-");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("psql runs");
        let mut input = child.stdin.take().expect("its input");
        std::io::Write::write_all(&mut input, sql.as_bytes()).expect("it reads");
        drop(input);
        let mut out = String::new();
        child.stdout.take().expect("its output").read_to_string(&mut out).expect("text");
        let result = child.wait_with_output().expect("it ends");
        match result.status.success() {
            true => Ok(out.trim_end().to_owned()),
            false => Err(String::from_utf8_lossy(&result.stderr).into_owned()),
        }
    }

    pub fn url(&self, user: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/postgres", self.port)
    }

    pub fn config(&self, user: &str) -> Config {
        Config::default().with(|config| config.url = Some(Secret::new(self.url(user))))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

pub fn server(config: Config) -> Server<Postgres> {
    let (postgres, _) = Postgres::open(config).expect("a configuration");
    postgres.add_to(Server::new("test", "1")).expect("a server")
}

/// A client of our server; of any revision, or of one.
pub async fn connect_as(config: Config, revisions: &[Revision]) -> Connection {
    let server = server(config);
    let client = Client::new("test", "1").timeout(Duration::from_secs(60));
    let client = if revisions.is_empty() { client } else { client.revisions(revisions) };
    client.connect(in_process(server)).await.expect("a connection")
}

pub async fn connect(config: Config) -> Connection {
    connect_as(config, &[]).await
}

/// Calls a tool: whether it failed, its text (of a failure with what the database said), its structured content.
pub async fn call(client: &Connection, tool: &str, args: Value) -> (bool, String, Value) {
    let result: RawCallToolResult = client.call(tool, args).await.expect("an answer");
    let value = result.structured().map_or(Value::Null, |json| serde_json::from_str(json).expect("JSON"));
    let content = result.content().expect("content");
    let text = match result.is_error() {
        true => result.text(),
        false => content.first().and_then(|block| block.as_text()).unwrap_or_default().to_owned(),
    };
    (result.is_error(), text, value)
}

pub async fn ok(client: &Connection, tool: &str, args: Value) -> (String, Value) {
    let (failed, text, value) = call(client, tool, args.clone()).await;
    assert!(!failed, "{tool} {args}: {text}");
    (text, value)
}

pub async fn query(client: &Connection, sql: &str) -> Value {
    ok(client, "query", json!({ "sql": sql })).await.1
}

/// The text of a failure.
pub async fn error(client: &Connection, tool: &str, args: Value) -> String {
    let (failed, text, _) = call(client, tool, args.clone()).await;
    assert!(failed, "{tool} {args} succeeded: {text}");
    text
}
