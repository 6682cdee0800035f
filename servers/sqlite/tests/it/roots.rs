//! A client's roots: the database is reached only from inside of them, and nothing is opened or created before that is
//! known.

use crate::common;

use common::{World, connect, host, legacy, raw, sql};
use linchpin::Server;
use linchpin::client::{Client, Connection, Error};
use linchpin::testing::Logged;
use linchpin::transport::in_process;
use linchpin::types::root::Root;
use linchpin_sqlite::{Config, RootsPolicy, SERVICE, Sqlite};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

fn root(uri: impl Into<String>) -> Root {
    serde_json::from_value(json!({ "uri": uri.into() })).unwrap()
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn both() -> [Client; 2] {
    [host(), legacy()]
}

fn narrow(db: &Path) -> Config {
    Config::default().with(|config| {
        config.db_path = db.to_owned();
        config.roots = Some(RootsPolicy::Narrow);
    })
}

/// Arguments with which each tool would succeed, and whether it reaches the database. A tool that is missing here fails
/// the tests that go through them all.
fn call_of(tool: &str) -> (Value, bool) {
    match tool {
        "read_query" => (sql("SELECT * FROM t"), true),
        "write_query" => (sql("INSERT INTO t VALUES (2)"), true),
        "create_table" => (sql("CREATE TABLE u(a)"), true),
        "list_tables" | "sqlite_schema" => (json!({}), true),
        "describe_table" => (json!({"table_name": "t"}), true),
        "sqlite_explain" => (sql("SELECT * FROM t"), true),
        "sqlite_import_csv" => (json!({"table": "t", "csv": "a\n3\n"}), true),
        "append_insight" => (json!({"insight": "x"}), false),
        other => panic!("{other} is new: does it reach the database?"),
    }
}

/// The files of this process's open handles that lie in a directory.
#[cfg(target_os = "linux")]
fn open_in(dir: &Path) -> Vec<std::path::PathBuf> {
    let handles = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    handles.filter_map(|fd| std::fs::read_link(fd.path()).ok()).filter(|path| path.starts_with(dir)).collect()
}

#[cfg(not(target_os = "linux"))]
fn open_in(_: &Path) -> Vec<std::path::PathBuf> {
    Vec::new()
}

#[tokio::test]
async fn outside_of_the_roots_no_tool_and_no_resource_reaches_the_database() {
    for client in both() {
        for exists in [true, false] {
            let base = tempfile::tempdir().unwrap();
            let dir = std::fs::canonicalize(base.path()).unwrap();
            let (data, project) = (dir.join("data"), dir.join("project"));
            [&data, &project].iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
            let db = data.join("below/x.db");
            if exists {
                std::fs::create_dir(data.join("below")).unwrap();
                raw(&db).execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)").unwrap();
            }
            let config = narrow(&db).with(|config| config.import_dir = Some(project.clone()));
            let client = connect(config, client.clone().roots(vec![root(uri(&project))])).await;
            for spec in SERVICE.tools {
                let (args, reaches) = call_of(spec.name);
                let result = client.call(spec.name, args).await.unwrap();
                assert_eq!(result.is_error(), reaches, "{}: {}", spec.name, result.text());
                if reaches {
                    let text = result.text();
                    let expected = format!("is not in the roots of this client: {}\nHint: ", uri(&project));
                    assert!(text.starts_with("Error: the database ") && text.contains(&expected), "{text}");
                    assert!(text.contains("--roots ignore"), "{text}");
                }
            }
            for uri in ["sqlite:///schema", "sqlite:///t/schema"] {
                let refused = client.read(uri).await.unwrap_err();
                assert!(refused.to_string().contains("is not in the roots"), "{uri}: {refused}");
            }
            // Nor is anything told of the import directory.
            let args = json!({"table": "t", "file": "missing.csv"});
            let refused = client.call("sqlite_import_csv", args).await.unwrap().text();
            assert!(refused.contains("is not in the roots"), "{refused}");
            // Not of the database: these stay.
            assert!(client.read("memo://insights").await.unwrap().text().contains("- x"));
            assert!(client.prompt("mcp-demo", json!({"topic": "cats"})).await.is_ok());
            let completed =
                client.complete_template("sqlite:///{table}/schema", "table", "t", Default::default()).await;
            assert!(!completed.is_ok_and(|found| found.as_json().contains("\"t\"")), "names of tables");
            assert_eq!(open_in(&data), Vec::<std::path::PathBuf>::new(), "nothing is opened");
            if exists {
                let rows: i64 = raw(&db).query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
                assert_eq!(rows, 1);
            } else {
                assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0, "nothing is created");
            }
        }
    }
}

#[tokio::test]
async fn inside_of_the_roots_every_tool_works_and_the_first_creates_the_file() {
    for client in both() {
        let base = tempfile::tempdir().unwrap();
        let db = base.path().join("below/x.db");
        let config = narrow(&db).with(|config| config.import_dir = Some(base.path().into()));
        let asked = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&asked);
        let here = root(uri(base.path()));
        let client = client.on_roots(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(vec![here.clone()])
        });
        let client = connect(config, client).await;
        assert!(!db.exists() && !base.path().join("below").exists(), "not before the first call");
        // A tool that only reads may come first.
        assert_eq!(client.call("list_tables", json!({})).await.unwrap().text(), "[]");
        assert!(db.exists());
        client.call("create_table", sql("CREATE TABLE t(a)")).await.unwrap();
        for spec in SERVICE.tools {
            let (args, reaches) = call_of(spec.name);
            let before = asked.load(Ordering::Relaxed);
            let result = client.call(spec.name, args).await.unwrap();
            assert!(!result.is_error(), "{}: {}", spec.name, result.text());
            assert_eq!(asked.load(Ordering::Relaxed) - before, u32::from(reaches), "{}: asked once at most", spec.name);
        }
        assert!(client.read("sqlite:///t/schema").await.unwrap().text().starts_with("CREATE TABLE t"));
    }
}

#[tokio::test]
async fn a_database_that_the_first_call_creates_is_named_in_the_log_once() {
    let logged = Logged::default();
    // Databases are opened by threads of their own.
    tracing::subscriber::set_global_default(logged.clone()).expect("no other test sets one");
    let base = tempfile::tempdir().unwrap();
    let db = base.path().join("mistyped.db");
    let says = format!("{} did not exist and was created, empty", db.display());
    let count = || logged.text().matches(&says).count();
    for _ in 0..2 {
        let client = connect(narrow(&db), host().roots(vec![root(uri(base.path()))])).await;
        assert_eq!(count(), usize::from(db.exists()), "not before the first call");
        for _ in 0..2 {
            client.call("list_tables", json!({})).await.unwrap();
            client.call("write_query", sql("DELETE FROM none")).await.unwrap();
        }
        assert_eq!(count(), 1, "{}", logged.text());
    }
    assert!(logged.text().contains("\nWARN "));
}

#[tokio::test]
async fn roots_that_do_not_count_are_not_asked_for() {
    for client in both() {
        for (change, reached) in [
            // Somebody named the path: it is as configured.
            ((|_| {}) as fn(&mut Config), true),
            (|c| c.roots = Some(RootsPolicy::Ignore), true),
            (|c| c.roots = Some(RootsPolicy::Narrow), false),
            // A database in memory lies nowhere.
            (|c| (c.db_path, c.roots) = (":memory:".into(), Some(RootsPolicy::Narrow)), true),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let mut config = Config::default().with(|config| config.db_path = dir.path().join("x.db"));
            change(&mut config);
            let asked = Arc::new(AtomicU32::new(0));
            let counted = Arc::clone(&asked);
            let rooted = client.clone().on_roots(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                std::future::ready(Vec::new())
            });
            let result = connect(config.clone(), rooted).await.call("list_tables", json!({})).await.unwrap();
            assert_eq!((result.is_error(), asked.load(Ordering::Relaxed) > 0), (!reached, !reached), "{config:?}");
            // A client without roots is never narrowed.
            let plain = connect(config.clone(), client.clone()).await;
            assert_eq!(plain.call("list_tables", json!({})).await.unwrap().text(), "[]", "{config:?}");
        }
    }
}

/// Names in a directory `base`: the database, the roots, and whether it may be reached.
#[cfg(unix)]
#[tokio::test]
async fn roots_hold_what_lies_in_them_by_whole_names_and_behind_links() {
    let base = tempfile::tempdir().unwrap();
    let dir = std::fs::canonicalize(base.path()).unwrap();
    for name in ["a", "a/b", "ab", "s p", "é", "secret"] {
        std::fs::create_dir(dir.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(dir.join("a"), dir.join("to-a")).unwrap();
    std::os::unix::fs::symlink(dir.join("secret"), dir.join("a/way-out")).unwrap();
    std::os::unix::fs::symlink(dir.join("secret/x.db"), dir.join("a/link.db")).unwrap();
    let here = uri(&dir);
    let cases: &[(&str, &[String], bool)] = &[
        ("a/x.db", &[format!("{here}/a")], true),
        ("a/x.db", &[format!("{here}/a/")], true),
        ("a/b/x.db", &[format!("{here}/a")], true),
        ("a/x.db", &[format!("{here}/a/b")], false),
        ("ab/x.db", &[format!("{here}/a")], false),
        ("a/x.db", &[format!("{here}/ab")], false),
        ("a/x.db", &[format!("{here}/ab"), format!("{here}/a")], true),
        ("a/x.db", &[], false),
        ("a/x.db", &["file:///".into()], true),
        // Percent signs, localhost, dots.
        ("s p/x.db", &[format!("{here}/s%20p")], true),
        ("é/x.db", &[format!("{here}/%C3%A9")], true),
        ("a/x.db", &[format!("file://localhost{}/a", dir.display())], true),
        ("a/x.db", &[format!("{here}/ab/../a")], true),
        ("ab/x.db", &[format!("{here}/a/../secret")], false),
        ("secret/../a/x.db", &[format!("{here}/secret")], false),
        // What is not there or cannot be understood is passed over.
        ("a/x.db", &[format!("{here}/%zz"), format!("{here}/a")], true),
        ("none/x.db", &[format!("{here}/none")], false),
        ("a/none/x.db", &[format!("{here}/a")], true),
        // Links: where they lead counts, on both sides.
        ("to-a/x.db", &[format!("{here}/a")], true),
        ("a/x.db", &[format!("{here}/to-a")], true),
        ("a/way-out/x.db", &[format!("{here}/a")], false),
        ("a/link.db", &[format!("{here}/a")], false),
        ("a/link.db", &[format!("{here}/secret")], true),
    ];
    for client in both() {
        for (db, roots, allowed) in cases {
            let path = dir.join(db);
            let client = client.clone().roots(roots.iter().map(root).collect());
            let client = connect(narrow(&path), client).await;
            let result = client.call("write_query", sql("CREATE TABLE t(a)")).await.unwrap();
            assert_eq!(!result.is_error(), *allowed, "{db} {roots:?}: {}", result.text());
            assert_eq!(path.exists(), *allowed, "{db} {roots:?}");
            drop(client);
            if *allowed {
                // What the link leads to, not the link.
                std::fs::remove_file(std::fs::canonicalize(&path).unwrap()).unwrap();
            }
        }
    }
}

/// Clients of others may say anything; the one used here refuses to, so the answer is written by hand.
#[tokio::test]
async fn plain_paths_are_roots_too_and_what_is_no_file_is_passed_over() {
    let base = tempfile::tempdir().unwrap();
    let dir = std::fs::canonicalize(base.path()).unwrap();
    let path = dir.join("x.db");
    let here = dir.display().to_string();
    for (roots, allowed) in [
        (vec![format!("https://example.org{here}")], false),
        (vec!["https://example.org/a".into(), "untitled:x".into(), "a".into(), String::new()], false),
        (vec![here], true),
    ] {
        let client = connect(narrow(&path), host().roots(Vec::new())).await;
        let mut params = json!({ "name": "write_query", "arguments": sql("CREATE TABLE t(a)") });
        let asked = client.request("tools/call", params.clone()).multi_round_trip(false).await.unwrap();
        let asked: Value = serde_json::from_str(asked.as_json()).unwrap();
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let said: Vec<Value> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
        params["inputResponses"] = json!({ key: { "roots": said } });
        params["requestState"] = asked["requestState"].clone();
        let result = client.request("tools/call", params).await.unwrap();
        let result: Value = serde_json::from_str(result.as_json()).unwrap();
        assert_eq!(result["isError"] != true, allowed, "{roots:?}: {result}");
        assert_eq!(path.exists(), allowed, "{roots:?}");
    }
}

#[tokio::test]
async fn roots_that_change_count_from_the_next_call_on() {
    for client in both() {
        let base = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let db = base.path().join("x.db");
        let now = Arc::new(Mutex::new(vec![root(uri(elsewhere.path()))]));
        let present = Arc::clone(&now);
        let client = client.on_roots(move || std::future::ready(present.lock().unwrap().clone()));
        let client = connect(narrow(&db), client).await;
        let mut step = 0;
        for (roots, allowed) in [
            (vec![root(uri(elsewhere.path()))], false),
            (vec![root(uri(elsewhere.path())), root(uri(base.path()))], true),
            (vec![], false),
            (vec![root(uri(base.path()))], true),
        ] {
            *now.lock().unwrap() = roots;
            client.roots_changed().await.unwrap();
            step += 1;
            let result = client.call("write_query", sql(&format!("CREATE TABLE t{step}(a)"))).await.unwrap();
            assert_eq!(!result.is_error(), allowed, "{step}: {}", result.text());
        }
        let tables: i64 = raw(&db).query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 2);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_path_that_is_led_out_of_the_roots_later_is_refused_from_then_on() {
    for client in both() {
        let base = tempfile::tempdir().unwrap();
        let dir = std::fs::canonicalize(base.path()).unwrap();
        ["in", "out"].iter().for_each(|name| std::fs::create_dir(dir.join(name)).unwrap());
        raw(&dir.join("out/x.db")).execute_batch("CREATE TABLE secret(a)").unwrap();
        let db = dir.join("in/x.db");
        let client = connect(narrow(&db), client.roots(vec![root(uri(&dir.join("in")))])).await;
        assert_eq!(client.call("list_tables", json!({})).await.unwrap().text(), "[]");
        std::fs::remove_file(&db).unwrap();
        std::os::unix::fs::symlink(dir.join("out/x.db"), &db).unwrap();
        let result = client.call("list_tables", json!({})).await.unwrap();
        assert!(result.is_error() && !result.text().contains("secret"), "{}", result.text());
    }
}

#[tokio::test]
async fn a_client_that_does_not_tell_its_roots_reaches_nothing() {
    // Only where there are sessions can a client refuse the question; elsewhere it is asked again until it gives up.
    let base = tempfile::tempdir().unwrap();
    let db = base.path().join("x.db");
    let config = narrow(&db).with(|config| config.timeout = std::time::Duration::from_millis(300));
    let client = connect(config, legacy().on_roots(std::future::pending)).await;
    let result = client.call("list_tables", json!({})).await.unwrap();
    let why = "Error: the roots of this client are unknown: the client did not answer roots/list within 0.3 s";
    assert!(result.is_error() && result.text().starts_with(why), "{}", result.text());
    assert!(!db.exists());
}

#[tokio::test]
async fn the_error_names_some_roots_and_counts_the_rest() {
    for client in both() {
        let base = tempfile::tempdir().unwrap();
        let db = base.path().join("x.db");
        let refused = async |roots: Vec<Root>| -> String {
            let client = connect(narrow(&db), client.clone().roots(roots)).await;
            let result = client.call("read_query", sql("SELECT 1")).await.unwrap();
            assert!(result.is_error());
            result.text()
        };
        assert!(refused(vec![]).await.contains("roots of this client: it has none\n"));
        let many = refused((0..2_000).map(|n| root(format!("file:///none/{n}"))).collect()).await;
        assert!(many.contains("file:///none/9 and 1990 more\n") && !many.contains("none/10"), "{many}");
        let long = refused(vec![root(format!("file:///{}\n\u{1b}[31m", "x".repeat(10_000)))]).await;
        assert!(long.len() < 1_000 && long.lines().count() == 2, "{long}");
    }
}

#[tokio::test]
async fn what_cannot_work_is_still_known_at_the_start() {
    let base = tempfile::tempdir().unwrap();
    let missing = base.path().join("x.db");
    let mut reading = narrow(&missing);
    reading.tools.read_only = true;
    for (config, why) in [
        (narrow(base.path()), "is a directory"),
        (narrow(&missing).with(|config| config.create = false), "creating it is disabled"),
        (reading, "a read-only server does not create it"),
    ] {
        let refused = Sqlite::open(config).unwrap_err();
        assert!(refused.message().contains(why), "{refused}");
    }
    // What only opening tells is told by the first call.
    std::fs::write(&missing, "not a database, and long enough to be looked at as one".repeat(20)).unwrap();
    let client = connect(narrow(&missing), host()).await;
    let result = client.call("list_tables", json!({})).await.unwrap();
    assert!(result.is_error() && result.text().contains("not a database"), "{}", result.text());
}

#[tokio::test]
async fn with_read_only_roots_narrow_too() {
    for client in both() {
        let w = World::made("CREATE TABLE t(a)", |_| {}).await;
        let mut config = narrow(&w.path("x.db"));
        config.tools.read_only = true;
        let call = async |roots: Vec<Root>| -> bool {
            let client = connect(config.clone(), client.clone().roots(roots)).await;
            !client.call("list_tables", json!({})).await.unwrap().is_error()
        };
        assert!(call(vec![root(uri(w.dir.path()))]).await);
        assert!(!call(vec![root("file:///none")]).await);
    }
}

/// Where no database was named, nobody has decided that it is outside: roots count. In a process of its own, because the
/// default path starts at the working directory.
#[tokio::test]
async fn the_default_path_is_narrowed() {
    const CHILD: &str = "LINCHPIN_SQLITE_TEST_CHILD";
    let Ok(root_dir) = std::env::var(CHILD) else {
        for (inside, created) in [(true, "true"), (false, "false")] {
            let dir = tempfile::tempdir().unwrap();
            let elsewhere = tempfile::tempdir().unwrap();
            let root_dir = if inside { dir.path() } else { elsewhere.path() };
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "roots::the_default_path_is_narrowed", "--nocapture"])
                .current_dir(dir.path())
                .env(CHILD, format!("{created}|{}", root_dir.display()))
                .status()
                .unwrap();
            assert!(status.success(), "{inside}");
            assert_eq!(dir.path().join("sqlite_mcp_server.db").exists(), inside);
        }
        return;
    };
    let (works, root_dir) = root_dir.split_once('|').unwrap();
    let (db, warnings) = Sqlite::open(Config::default()).unwrap();
    assert!(warnings.is_empty() && !Path::new("sqlite_mcp_server.db").exists());
    let server = db.add_to(Server::new("sqlite", "1")).unwrap();
    let client = host().roots(vec![root(uri(Path::new(root_dir)))]);
    let client: Connection = client.connect(in_process(server)).await.unwrap();
    let result = client.call("create_table", sql("CREATE TABLE t(a)")).await.unwrap();
    assert_eq!((!result.is_error()).to_string(), works, "{}", result.text());
    let read: Result<_, Error> = client.read("sqlite:///schema").await;
    assert_eq!(read.is_ok().to_string(), works);
}
