//! What lies beside the database may be anybody's: journals that name other files, links, pipes. And the database
//! itself may be made so that opening it never ends.

use crate::common;

use common::{World, connect, host, raw, sql};
use linchpin_kit::{RootsPolicy, ToolError};
use linchpin_sqlite::{Config, Sqlite};
use std::path::{Path, PathBuf};
use std::time::Duration;

const MADE: &str = "CREATE TABLE t(a); INSERT INTO t VALUES ('kept');";
const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// A database in rollback mode at `DIR/x.db`.
fn database(dir: &Path) -> PathBuf {
    let path = dir.join("x.db");
    raw(&path).execute_batch(MADE).unwrap();
    path
}

fn beside(database: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", database.display()))
}

/// Puts a hot journal beside a database: it gives the first page back as it is, and names a file as its super-journal.
fn journal(database: &Path, named: &str) {
    let bytes = std::fs::read(database).unwrap();
    let page = &bytes[..4096];
    let mut journal = MAGIC.to_vec();
    let nonce = 12_345_u32;
    for number in [1, nonce, u32::try_from(bytes.len() / 4096).unwrap(), 512, 4096] {
        journal.extend(number.to_be_bytes());
    }
    journal.resize(512, 0);
    journal.extend(1_u32.to_be_bytes());
    journal.extend(page);
    let sum = (1..=19).fold(nonce, |sum, n| sum.wrapping_add(page[n * 200 + 96].into()));
    journal.extend(sum.to_be_bytes());
    journal.extend((0x4000_0000_u32 / 4096 + 1).to_be_bytes());
    journal.extend(named.as_bytes());
    let sum = named.bytes().fold(0_u32, |sum, byte| sum.wrapping_add_signed(i32::from(byte.cast_signed())));
    journal.extend(u32::try_from(named.len()).unwrap().to_be_bytes());
    journal.extend(sum.to_be_bytes());
    journal.extend(MAGIC);
    std::fs::write(beside(database, "-journal"), journal).unwrap();
}

/// The path of a file from the working directory on.
fn relative(path: &Path) -> String {
    let up = std::env::current_dir().unwrap().canonicalize().unwrap().components().count() - 1;
    format!("{}{}", "../".repeat(up), path.strip_prefix("/").unwrap().display())
}

/// Opens on another thread, for what could last for ever.
fn open(config: Config) -> Result<Vec<String>, ToolError> {
    let (send, opened) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(Sqlite::open(config).map(|(_, warnings)| warnings)));
    opened.recv_timeout(Duration::from_secs(60)).expect("an answer")
}

const NAMED: &str = "Database error: the database has a hot journal that refers to another file";

#[test]
fn a_file_that_a_journal_names_is_not_deleted_when_the_database_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().canonicalize().unwrap().join("victim");
    let mut names = vec![victim.display().to_string()];
    if cfg!(unix) {
        names.push(relative(&victim));
    }
    for (name, create) in names.iter().flat_map(|name| [(name, true), (name, false)]) {
        std::fs::write(&victim, "dear to me").unwrap();
        let db_path = database(&tempfile::tempdir_in(dir.path()).unwrap().keep());
        journal(&db_path, name);
        let before = [&db_path, &beside(&db_path, "-journal")].map(|path| std::fs::read(path).unwrap());
        let opened = open(Config::default().with(|config| {
            config.db_path = db_path.clone();
            config.create = create;
        }));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "dear to me", "{name}");
        let fault = opened.unwrap_err();
        assert_eq!(fault.message(), NAMED);
        assert!(fault.advice().unwrap().contains("Nothing was read, changed or deleted"), "{fault}");
        let after = [&db_path, &beside(&db_path, "-journal")].map(|path| std::fs::read(path).unwrap());
        assert!(before == after, "the database and its journal are as they were");
    }
}

#[tokio::test]
async fn nor_when_the_journal_comes_later_or_the_first_call_opens() {
    for narrow in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = database(dir.path());
        let w = World::over(dir, |c| c.roots = narrow.then_some(RootsPolicy::Narrow)).await;
        let victim = w.path("victim");
        std::fs::write(&victim, "dear to me").unwrap();
        if !narrow {
            assert_eq!(w.read("SELECT a FROM t").await, r#"[{"a":"kept"}]"#);
        }
        journal(&path, victim.to_str().unwrap());
        for (tool, query) in [
            ("read_query", "SELECT a FROM t"),
            ("read_query", "PRAGMA user_version"),
            ("write_query", "INSERT INTO t VALUES (1)"),
            ("write_query", "VACUUM"),
        ] {
            let error = w.error(tool, sql(query)).await;
            assert!(victim.exists(), "{query}");
            assert!(error.starts_with(NAMED), "{query}: {error}");
        }
        std::fs::remove_file(beside(&path, "-journal")).unwrap();
        w.write("INSERT INTO t VALUES (1)").await;
        assert_eq!(w.number("SELECT count(*) FROM t"), 2, "and all is well without it");
    }
}

#[test]
fn a_journal_may_name_what_it_likes() {
    for read_only in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = database(dir.path());
        for name in ["-journal", "-wal", "-shm", ""] {
            journal(&path, beside(&path, name).to_str().unwrap());
            let before = std::fs::read(&path).unwrap();
            let mut config = Config::default().with(|config| config.db_path = path.clone());
            config.tools.read_only = read_only;
            let _ = open(config);
            assert!(std::fs::read(&path).unwrap() == before, "{name}");
        }
        #[cfg(unix)]
        {
            pipe(&dir.path().join("pipe"));
            journal(&path, dir.path().join("pipe").to_str().unwrap());
            let mut config = Config::default().with(|config| config.db_path = path);
            config.tools.read_only = read_only;
            let _ = open(config);
            assert!(dir.path().join("pipe").exists());
        }
    }
}

#[cfg(unix)]
fn pipe(path: &Path) {
    use rustix::fs::{CWD, Mode, mkfifoat};
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
}

#[tokio::test]
async fn a_change_that_a_crash_left_unfinished_is_undone() {
    let dir = tempfile::tempdir().unwrap();
    let from = database(dir.path());
    let conn = raw(&from);
    conn.execute_batch(
        "PRAGMA cache_size = 1; BEGIN;
         WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000) INSERT INTO t SELECT 'half' FROM c;",
    )
    .unwrap();
    let crashed = tempfile::tempdir().unwrap();
    for end in ["", "-journal"] {
        std::fs::copy(beside(&from, end), crashed.path().join(format!("x.db{end}"))).unwrap();
    }
    let journal = crashed.path().join("x.db-journal");
    assert!(std::fs::read(&journal).unwrap().starts_with(&MAGIC), "there is something to roll back");
    let w = World::over(crashed, |_| {}).await;
    assert_eq!(w.read("SELECT a FROM t").await, r#"[{"a":"kept"}]"#);
    assert!(!journal.exists());
    drop(conn);
}

#[cfg(unix)]
#[test]
fn what_is_beside_the_database_and_no_file_of_its_own_is_not_touched() {
    type Put = fn(&Path, &Path);
    let puts: &[(&str, Put)] = &[
        ("symbolic link", |victim, place| std::os::unix::fs::symlink(victim, place).unwrap()),
        ("hard link", |victim, place| std::fs::hard_link(victim, place).unwrap()),
        ("pipe", |_, place| pipe(place)),
        ("directory", |_, place| std::fs::create_dir(place).unwrap()),
    ];
    let victims = [b"dear to me".repeat(1_000), [&MAGIC[..], &[0; 9_000]].concat(), vec![0; 9_000]];
    for (what, put) in puts {
        for (end, read_only) in ["-journal", "-wal", "-shm"].into_iter().flat_map(|end| [(end, false), (end, true)]) {
            for content in &victims {
                let dir = tempfile::tempdir().unwrap();
                let (path, victim) = (database(dir.path()), dir.path().join("victim"));
                std::fs::write(&victim, content).unwrap();
                if end == "-shm" {
                    raw(&path).execute_batch("PRAGMA journal_mode = WAL").unwrap();
                }
                put(&victim, &beside(&path, end));
                let mut config = Config::default().with(|config| config.db_path = path.clone());
                config.tools.read_only = read_only;
                let opened = open(config);
                assert!(std::fs::read(&victim).unwrap() == *content, "{what} {end}");
                assert!(std::fs::symlink_metadata(beside(&path, end)).is_ok(), "{what} {end} is still there");
                let fault = opened.expect_err(&format!("{what} {end} {read_only}"));
                assert_eq!(
                    fault.message(),
                    "Database error: a file beside the database is not a regular file",
                    "{what} {end}"
                );
            }
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn nor_what_comes_there_later() {
    for (end, mode) in [("-journal", "DELETE"), ("-wal", "DELETE")] {
        let dir = tempfile::tempdir().unwrap();
        raw(&database(dir.path())).execute_batch(&format!("PRAGMA journal_mode = {mode}")).unwrap();
        let w = World::over(dir, |_| {}).await;
        assert_eq!(w.read("SELECT a FROM t").await, r#"[{"a":"kept"}]"#);
        let victim = w.path("victim");
        std::fs::write(&victim, [0; 9_000]).unwrap();
        std::fs::hard_link(&victim, w.path(&format!("x.db{end}"))).unwrap();
        let tried = w.call("write_query", sql("INSERT INTO t VALUES (2)")).await;
        assert!(std::fs::read(&victim).unwrap() == [0; 9_000], "{end} {}", tried.text());
        if end == "-journal" {
            assert!(tried.text().contains("is not a regular file"), "{}", tried.text());
        }
    }
}

/// A file with this many tables in its schema. SQLite looks for each among the others, so reading it takes their square.
fn with_tables(dir: &Path, count: u32) -> PathBuf {
    let path = dir.join("x.db");
    raw(&path)
        .execute_batch(&format!(
            "CREATE TABLE t(a); PRAGMA writable_schema = 1;
             WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {count})
             INSERT INTO sqlite_master SELECT 'table', 't' || x, 't' || x, 2, 'CREATE TABLE t' || x || '(a)' FROM c;"
        ))
        .unwrap();
    path
}

#[test]
fn a_schema_that_takes_too_long_to_read_is_an_error_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config::default().with(|config| {
        config.db_path = with_tables(dir.path(), 60_000);
        config.timeout = Duration::from_millis(100);
    });
    let fault = open(config).unwrap_err();
    assert_eq!(fault.message(), "Database error: the database could not be opened within 0.1 s");
    assert!(fault.advice().unwrap().contains("--timeout"), "{fault}");
}

#[tokio::test]
async fn and_says_so_where_the_first_call_opens() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config::default().with(|config| {
        config.db_path = with_tables(dir.path(), 60_000);
        config.timeout = Duration::from_millis(100);
        config.roots = Some(RootsPolicy::Narrow);
    });
    let client = connect(config, host()).await;
    for (tool, query) in [("read_query", "SELECT * FROM t"), ("write_query", "INSERT INTO t VALUES (1)")] {
        let result = client.call(tool, sql(query)).await.unwrap();
        assert!(result.is_error(), "{tool}");
        let text = result.text();
        assert!(text.starts_with("Database error: the statement could not be prepared within 0.1 s"), "{tool}: {text}");
        assert!(text.contains("--timeout"), "{tool}: {text}");
    }
}

#[test]
fn a_memo_is_kept_in_a_file_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("memo");
    let opened = |name: &str| {
        open(Config::default().with(|config| {
            config.db_path = ":memory:".into();
            config.memo_file = Some(dir.path().join(name));
        }))
    };
    for text in ["some notes\nof mine\n", "{\"name\": \"a package\"}\n", "\u{feff}[]"] {
        std::fs::write(&file, text).unwrap();
        let fault = opened("memo").unwrap_err();
        assert!(fault.message().ends_with(" is not a memo file: none of its lines is an insight"), "{fault}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    for (text, warnings) in [("", 0), ("\n", 0), ("{\"insight\":\"a\"}\nnotes\n", 1)] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(opened("memo").unwrap().len(), warnings, "{text}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&file, dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("gone"), dir.path().join("dangling")).unwrap();
        for name in ["link", "dangling"] {
            assert!(opened(name).unwrap_err().message().ends_with(" is a symlink"), "{name}");
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn and_a_link_that_comes_later_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    let w = World::over(dir, |c| c.memo_file = Some(c.db_path.with_file_name("memo"))).await;
    std::fs::write(&victim, "mine").unwrap();
    std::os::unix::fs::symlink(&victim, w.path("memo")).unwrap();
    w.error("append_insight", serde_json::json!({"insight": "a"})).await;
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
}

/// An expression that makes this many long texts, with no place between them to stop at.
fn slow(count: usize) -> String {
    match count {
        1 => "length(json_quote(upper(hex(zeroblob(2000000 + a)))))".into(),
        _ => format!("({} + {})", slow(count / 2), slow(count - count / 2)),
    }
}

#[tokio::test]
async fn what_sqlite_computes_by_itself_from_the_definitions_of_a_file_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    raw(&path)
        .execute_batch(&format!(
            "CREATE TABLE t(a); CREATE INDEX i ON t(a); INSERT INTO t VALUES (1); ANALYZE;
             CREATE VIRTUAL TABLE f USING fts5(b); INSERT INTO f VALUES ('x'); CREATE VIRTUAL TABLE g USING fts5(b);
             INSERT INTO g VALUES ('x'); CREATE VIRTUAL TABLE h USING fts4(b); INSERT INTO h VALUES ('x');
             PRAGMA writable_schema = 1;
             UPDATE sqlite_master SET sql = 'CREATE TABLE sqlite_stat1(a, idx, stat, tbl AS ({slow}))' WHERE name = 'sqlite_stat1';
             UPDATE sqlite_master SET sql = 'CREATE TABLE f_content(id INTEGER PRIMARY KEY, a, c0 AS ({slow}))'
             WHERE name = 'f_content';
             UPDATE sqlite_master SET sql = 'CREATE TABLE g_config(k PRIMARY KEY, a, v AS ({slow})) WITHOUT ROWID'
             WHERE name = 'g_config';
             UPDATE sqlite_master SET sql = 'CREATE TABLE h_content(docid INTEGER PRIMARY KEY, a, c0b AS ({slow}))'
             WHERE name = 'h_content';",
            slow = slow(1_000)
        ))
        .unwrap();
    let config = Config::default().with(|config| {
        config.db_path = path;
        config.timeout = Duration::from_secs(60);
    });
    let (db, warnings) = Sqlite::open(config).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    let client = host()
        .connect(linchpin::transport::in_process(db.add_to(linchpin::Server::new("sqlite", "1")).unwrap()))
        .await
        .unwrap();
    assert_eq!(client.call("read_query", sql("SELECT a FROM t")).await.unwrap().text(), r#"[{"a":1}]"#);
    // By the size of a value, or of all: not by the time, which would be long.
    for (table, says) in [("f", "out of memory"), ("g", "string or blob too big"), ("h", "out of memory")] {
        let text = client.call("read_query", sql(&format!("SELECT b FROM {table}"))).await.unwrap().text();
        assert!(text.starts_with(&format!("Database error: {says}")), "{table}: {text}");
    }
    assert_eq!(client.call("read_query", sql("SELECT a FROM t")).await.unwrap().text(), r#"[{"a":1}]"#);
}

#[test]
fn a_database_that_did_not_exist_is_named_when_it_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mistyped.db");
    let config = || Config::default().with(|config| config.db_path = path.clone());
    let (db, warnings) = Sqlite::open(config()).unwrap();
    assert_eq!(warnings, [format!("{} did not exist and was created, empty", path.display())]);
    drop(db);
    let (_db, warnings) = Sqlite::open(config()).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
}
