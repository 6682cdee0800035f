//! CSV import: what becomes of fields, and that no name leads out of the directory.

use crate::common;

use common::{World, sql};
use serde_json::{Value, json};

async fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("csv");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(dir.path().join("secret.csv"), "a\nsecret\n").unwrap();
    World::over(dir, |c| c.import_dir = Some(inside)).await
}

fn put(w: &World, name: &str, content: &str) {
    std::fs::write(w.path("csv").join(name), content).unwrap();
}

#[tokio::test]
async fn a_file_becomes_a_table_with_fitting_types() {
    let w = world().await;
    put(
        &w,
        "shop.csv",
        "\u{feff}id,name,price,zip,note\n1,\"Bell, brass\",9.5,00501,\n2,\"Line\nbreak \"\"x\"\"\",10,10115,x\n",
    );
    let result = w.call("sqlite_import_csv", json!({"table": "shop items", "file": "shop.csv"})).await;
    assert_eq!(result.text(), "Imported 2 rows into shop items, which was created");
    assert_eq!(result.json::<Value>().unwrap(), json!({"table": "shop items", "rows": 2, "created": true}));
    assert_eq!(
        w.read("SELECT * FROM \"shop items\"").await,
        concat!(
            r#"[{"id":1,"name":"Bell, brass","price":9.5,"zip":"00501","note":""},"#,
            r#"{"id":2,"name":"Line\nbreak \"x\"","price":10.0,"zip":"10115","note":"x"}]"#
        )
    );
    let again = json!({"table": "shop items", "csv": "note,id\n,7\n", "empty_as_null": true});
    assert_eq!(w.text("sqlite_import_csv", again).await, "Imported 1 rows into shop items");
    assert_eq!(
        w.read("SELECT id, note, name FROM \"shop items\" WHERE id = 7").await,
        r#"[{"id":7,"note":null,"name":null}]"#
    );
}

#[tokio::test]
async fn text_without_header_and_other_delimiters_work() {
    let w = world().await;
    let csv = json!({"table": "t", "csv": "1;x\n2;y\n", "delimiter": ";", "header": false});
    w.text("sqlite_import_csv", csv).await;
    assert_eq!(w.read("SELECT * FROM t").await, r#"[{"c1":1,"c2":"x"},{"c1":2,"c2":"y"}]"#);
    let tabs = json!({"table": "t", "csv": "3\tz", "delimiter": "\\t", "header": false});
    w.text("sqlite_import_csv", tabs).await;
    assert_eq!(w.read("SELECT count(*) AS n FROM t").await, r#"[{"n":3}]"#);
    let evil = json!({"table": "x\"); DROP TABLE t; --", "csv": "a\"); DROP TABLE t; --\n1\n"});
    w.text("sqlite_import_csv", evil).await;
    assert_eq!(w.number("SELECT count(*) FROM t"), 3);
}

#[tokio::test]
async fn all_rows_are_imported_or_none() {
    let w = world().await;
    w.write("CREATE TABLE t(a INTEGER PRIMARY KEY, b)").await;
    put(&w, "latin.csv", "");
    std::fs::write(w.path("csv").join("latin.csv"), b"a,b\n1,\xff\n").unwrap();
    for (args, says) in [
        (json!({"table": "t", "csv": "a,b\n1,x\n2\n"}), "the record at line 3 has 1 fields instead of 2"),
        (json!({"table": "t", "csv": "a,b\n1,x\n1,y\n"}), "UNIQUE constraint failed: t.a"),
        (json!({"table": "t", "csv": "a,c\n1,x\n"}), "the table has no column with the header name of CSV column 2"),
        (
            json!({"table": "t", "csv": "1,2,3\n", "header": false}),
            "the table has 2 columns, and the records have 3 fields",
        ),
        (json!({"table": "new", "csv": "a,A\n1,2\n"}), "empty or repeated name"),
        (json!({"table": "new", "csv": "a,\n1,2\n"}), "empty or repeated name"),
        (json!({"table": "new", "csv": ""}), "is empty"),
        (json!({"table": "new", "file": "latin.csv"}), "is not valid UTF-8"),
        (json!({"table": "new", "csv": "a\n1\n", "delimiter": "::"}), "the delimiter"),
        (json!({"table": "new"}), "pass either file or csv"),
        (json!({"table": "new", "csv": "a", "file": "x"}), "pass either file or csv"),
        (json!({"table": "sqlite_new", "csv": "a\n1\n"}), "object name reserved for internal use"),
        (json!({"table": "sqlite_master", "csv": "name\nx\n"}), "may not be modified"),
    ] {
        let error = w.error("sqlite_import_csv", args.clone()).await;
        assert!(error.contains(says), "{args}: {error}");
    }
    assert_eq!((w.number("SELECT count(*) FROM t"), w.number("SELECT count(*) FROM sqlite_master")), (0, 1));
    w.write("INSERT INTO t VALUES (1, 1)").await;
}

#[cfg(unix)]
#[tokio::test]
async fn no_name_leads_out_of_the_directory() {
    let w = world().await;
    let csv = w.path("csv");
    std::os::unix::fs::symlink(w.path("secret.csv"), csv.join("link.csv")).unwrap();
    std::os::unix::fs::symlink("../secret.csv", csv.join("rel.csv")).unwrap();
    std::fs::create_dir(csv.join("sub")).unwrap();
    std::fs::write(csv.join("sub/in.csv"), "a\n1\n").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, csv.join("pipe.csv"), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
        .unwrap();
    let absolute = w.path("secret.csv").display().to_string();
    for name in [
        "../secret.csv",
        "link.csv",
        "rel.csv",
        "sub/in.csv",
        "sub",
        ".",
        "..",
        "",
        "pipe.csv",
        absolute.as_str(),
        "a\0b",
        "..\\secret.csv",
        "file:secret.csv",
        "/etc/passwd",
        "missing.csv",
    ] {
        let error = w.error("sqlite_import_csv", json!({"table": "t", "file": name})).await;
        assert!(error.starts_with("Error: "), "{name:?}: {error}");
    }
    assert_eq!(w.number("SELECT count(*) FROM sqlite_master"), 0);
}

#[tokio::test]
async fn a_long_import_is_stopped_and_undone() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("csv");
    std::fs::create_dir(&inside).unwrap();
    let rows: String = (0..3_000_000).map(|n| format!("{n}\n")).collect();
    std::fs::write(inside.join("long.csv"), format!("a\n{rows}")).unwrap();
    let w = World::over(dir, |c| {
        c.import_dir = Some(inside);
        c.timeout = std::time::Duration::from_secs(1);
    })
    .await;
    let error = w.error("sqlite_import_csv", json!({"table": "t", "file": "long.csv"})).await;
    assert!(error.contains("was stopped after 1 s"), "{error}");
    assert_eq!(w.number("SELECT count(*) FROM sqlite_master"), 0);
    w.write("CREATE TABLE t(a)").await;
}

#[tokio::test]
async fn without_the_flag_there_is_no_such_tool() {
    let w = World::new().await;
    assert!(w.client.call("sqlite_import_csv", json!({"table": "t", "csv": "a\n1\n"})).await.is_err());
    assert_eq!(w.read("SELECT count(*) AS n FROM sqlite_master").await, r#"[{"n":0}]"#);
    w.error("write_query", sql(".import x y")).await;
}
