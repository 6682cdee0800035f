//! The SQL of `tests/logic/*.slt`, in the notation of sqllogictest: every statement goes through the tools as a client calls them,
//! and through a connection of SQLite's own that nothing holds back. Both must answer what the file says.
//!
//! - `statement ok`, `statement count N` (rows changed), `statement error WORDS`: `create_table` or `write_query`.
//! - `query TYPES [nosort|rowsort|valuesort]` or `query error WORDS`: `read_query`. A letter for each column: I a whole number,
//!   R another number (with three decimals), T anything else; NULL may be any. Behind `----` is one value on a line, or one row with
//!   tabs. An empty text is `(empty)`, binary data `x'…'`, a control character `\u{…}`.
//!   What does not only read goes to `write_query`, for its RETURNING.
//! - `{{N×TEXT}}` stands for the text N times, where `#` is the number, from 0.
//! - `skipif WHO` and `onlyif WHO` before one of these: WHO is `linchpin` or `sqlite`. `#` begins a comment.

use crate::common;

use base64::Engine as _;
use common::{World, raw, sql};
use rusqlite::types::ValueRef;
use serde_json::{Map, Value, json};
use std::path::Path;

#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    Ok,
    Count(i64),
    Error(String),
    Rows { types: String, sort: String, lines: Vec<String> },
}

#[derive(Debug, Clone, PartialEq)]
struct Record {
    line: usize,
    linchpin: bool,
    sqlite: bool,
    reads: bool,
    sql: String,
    wanted: Wanted,
}

/// What is not understood is an error: a misspelt word must not leave a test out.
fn parse(text: &str) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let (mut linchpin, mut sqlite) = (true, true);
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let (line, head) = (at + 1, lines[at]);
        at += 1;
        let words: Vec<&str> = head.split_whitespace().collect();
        let wrong = || Err(format!("line {line}: {head}"));
        let (reads, mut wanted) = match words[..] {
            [] => continue,
            _ if head.starts_with('#') => continue,
            [if_, who @ ("linchpin" | "sqlite")] if ["skipif", "onlyif"].contains(&if_) => {
                let theirs = if who == "linchpin" { &mut linchpin } else { &mut sqlite };
                *theirs &= if_ == "onlyif";
                if if_ == "onlyif" {
                    *(if who == "linchpin" { &mut sqlite } else { &mut linchpin }) = false;
                }
                continue;
            }
            ["statement", "ok"] => (false, Wanted::Ok),
            ["statement", "count", n] => (false, Wanted::Count(n.parse().map_err(|e| format!("line {line}: {e}"))?)),
            ["statement" | "query", "error", _, ..] => {
                let words = head.split_once("error ").map(|(_, words)| words.trim()).unwrap_or_default();
                (head.starts_with("query"), Wanted::Error(words.to_owned()))
            }
            ["query", types, ref rest @ ..] if types.chars().all(|letter| "IRT".contains(letter)) => {
                let sort = match rest {
                    [] => "nosort",
                    [sort @ ("nosort" | "rowsort" | "valuesort")] => sort,
                    _ => return wrong(),
                };
                (true, Wanted::Rows { types: types.to_owned(), sort: sort.to_owned(), lines: Vec::new() })
            }
            _ => return wrong(),
        };
        let block = lines[at..].iter().take_while(|line| !line.trim().is_empty()).copied().collect::<Vec<_>>();
        at += block.len();
        let bar = block.iter().position(|line| *line == "----");
        let text = block[..bar.unwrap_or(block.len())].join("\n");
        match (&mut wanted, bar) {
            (Wanted::Rows { lines, .. }, Some(bar)) => {
                lines.extend(block[bar + 1..].iter().map(|line| (*line).to_owned()))
            }
            (Wanted::Rows { .. }, None) | (_, Some(_)) => return wrong(),
            _ => {}
        }
        if text.is_empty() {
            return wrong();
        }
        records.push(Record { line, linchpin, sqlite, reads, sql: expanded(&text), wanted });
        (linchpin, sqlite) = (true, true);
    }
    Ok(records)
}

fn expanded(text: &str) -> String {
    let Some((before, rest)) = text.split_once("{{") else { return text.to_owned() };
    let (inside, after) = rest.split_once("}}").expect("what is opened is closed");
    let (count, part) = inside.split_once('×').expect("how often, and what");
    let count: usize = count.parse().expect("a number");
    let parts: String = (0..count).map(|at| part.replace('#', &at.to_string())).collect();
    format!("{before}{parts}{}", expanded(after))
}

/// What came back: how many rows were changed, if that is said, and rows.
type Answer = Result<(Option<i64>, Vec<Vec<Value>>), String>;

async fn by_tool(world: &World, record: &Record) -> Answer {
    let begins = |word: &str| record.sql.trim_start().to_ascii_uppercase().starts_with(word);
    let returning = ["INSERT", "UPDATE", "DELETE"].iter().any(|word| begins(word));
    let tool = match record.reads && !(returning && matches!(record.wanted, Wanted::Rows { .. })) {
        true => "read_query",
        false if begins("CREATE TABLE") => "create_table",
        false => "write_query",
    };
    let result = world.call(tool, sql(&record.sql)).await;
    if result.is_error() {
        return Err(result.text());
    }
    let value: Value = serde_json::from_str(result.structured().expect("structured content")).expect("JSON");
    let count = value.get("affected_rows").and_then(Value::as_i64);
    let value = value.get("returned").unwrap_or(&value);
    let rows: Vec<Vec<Value>> =
        value.get("rows").map_or(Vec::new(), |rows| serde_json::from_value(rows.clone()).expect("rows"));
    if let Some(names) = value.get("columns") {
        // The text says the same. A name that comes again has a number there.
        let objects: Vec<Map<String, Value>> = serde_json::from_str(&result.text()).expect("a list of objects");
        let names: Vec<String> = serde_json::from_value(names.clone()).expect("names");
        assert_eq!(objects.len(), rows.len(), "{}", record.sql);
        for (object, row) in objects.iter().zip(&rows) {
            assert_eq!(object.len(), row.len(), "{}", record.sql);
            for (name, value) in
                names.iter().zip(row).filter(|(name, _)| names.iter().filter(|n| n == name).count() == 1)
            {
                assert_eq!(&object[name], value, "{}", record.sql);
            }
        }
    }
    Ok((count, rows))
}

fn by_sqlite(connection: &rusqlite::Connection, record: &Record) -> Answer {
    let run = || {
        let before = connection.total_changes();
        let mut statement = connection.prepare(&record.sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let value = |index| row.get_ref(index).map(json_of);
            found.push((0..columns).map(value).collect::<Result<Vec<_>, _>>()?);
        }
        // A statement that changes no row leaves the count of the one before.
        let count = if connection.total_changes() > before { connection.changes() } else { 0 };
        Ok((i64::try_from(count).ok(), found))
    };
    run().map_err(|error: rusqlite::Error| error.to_string())
}

fn json_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => json!(integer),
        ValueRef::Real(real) if real.is_finite() => json!(real),
        ValueRef::Real(real) => json!(if real > 0.0 { "Infinity" } else { "-Infinity" }),
        ValueRef::Text(text) if std::str::from_utf8(text).is_ok() => json!(String::from_utf8_lossy(text)),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            json!({ "base64": base64::engine::general_purpose::STANDARD.encode(bytes) })
        }
    }
}

/// A value as the files write it.
fn shown(of: char, value: &Value) -> Result<String, String> {
    Ok(match (of, value) {
        (_, Value::Null) => "NULL".to_owned(),
        ('I', Value::Number(number)) if number.is_i64() => number.to_string(),
        ('R', Value::Number(number)) if number.is_f64() => format!("{:.3}", number.as_f64().unwrap_or_default()),
        ('T', Value::String(text)) if text.is_empty() => "(empty)".to_owned(),
        ('T', Value::String(text)) => {
            let one =
                |letter: char| if letter.is_control() { letter.escape_unicode().collect() } else { letter.to_string() };
            text.chars().map(one).collect()
        }
        ('T', Value::Object(map)) => {
            let text = map.get("base64").and_then(Value::as_str).unwrap_or("?");
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).map_err(|e| e.to_string())?;
            format!("x'{}'", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        _ => return Err(format!("{value} is not of type {of}")),
    })
}

/// What is wrong with an answer.
fn compare(wanted: &Wanted, answer: Answer) -> Result<(), String> {
    match (wanted, answer) {
        (Wanted::Error(words), Err(text)) if text.contains(words) => Ok(()),
        (Wanted::Error(words), other) => Err(format!("not the error {words:?}: {other:?}")),
        (_, Err(text)) => Err(text),
        (Wanted::Ok, Ok(_)) => Ok(()),
        (Wanted::Count(wanted), Ok((count, _))) if count == Some(*wanted) => Ok(()),
        (Wanted::Count(wanted), Ok((count, _))) => Err(format!("{count:?} rows, not {wanted}")),
        (Wanted::Rows { types, sort, lines }, Ok((_, rows))) => {
            let mut found = Vec::new();
            for row in &rows {
                if row.len() != types.len() {
                    return Err(format!("{} columns, not {}", row.len(), types.len()));
                }
                found.push(types.chars().zip(row).map(|(of, value)| shown(of, value)).collect::<Result<Vec<_>, _>>()?);
            }
            let flat = lines.len() == rows.len() * types.len();
            let mut wanted: Vec<Vec<String>> = match flat {
                true => lines.chunks(types.len()).map(<[String]>::to_vec).collect(),
                false => lines.iter().map(|line| line.split('\t').map(str::to_owned).collect()).collect(),
            };
            match sort.as_str() {
                "rowsort" => {
                    found.sort();
                    wanted.sort();
                }
                "valuesort" => {
                    let sorted = |rows: Vec<Vec<String>>| {
                        let mut values: Vec<Vec<String>> = rows.concat().into_iter().map(|value| vec![value]).collect();
                        values.sort();
                        values
                    };
                    (found, wanted) = (sorted(found), sorted(wanted));
                }
                _ => {}
            }
            let text = |rows: &[Vec<String>]| rows.iter().map(|row| row.join("\t")).collect::<Vec<_>>().join("\n");
            if found == wanted {
                Ok(())
            } else {
                Err(format!("these rows:\n{}\nnot:\n{}", text(&found), text(&wanted)))
            }
        }
    }
}

/// Runs a file both ways, each in a database of its own; what is wrong.
async fn run(name: &str, text: &str) -> Vec<String> {
    let records = parse(text).unwrap_or_else(|why| panic!("{name}: {why}"));
    let world = World::new().await;
    let dir = tempfile::tempdir().expect("a directory");
    let connection = raw(&dir.path().join("x.db"));
    let mut wrong = Vec::new();
    for record in &records {
        if record.linchpin {
            let answer = by_tool(&world, record).await;
            wrong.extend(
                compare(&record.wanted, answer).err().map(|why| format!("{name}:{}: linchpin: {why}", record.line)),
            );
        }
        if record.sqlite {
            let answer = by_sqlite(&connection, record);
            wrong.extend(
                compare(&record.wanted, answer).err().map(|why| format!("{name}:{}: sqlite: {why}", record.line)),
            );
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_sql_are_answered_as_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logic");
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let (mut wrong, mut records) = (Vec::new(), 0);
    for file in &files {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(name.ends_with(".slt"), "{name}");
        let text = std::fs::read_to_string(file).expect("text");
        records += parse(&text).map_or(0, |records| records.len());
        wrong.extend(run(&name, &text).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(files.len() >= 12 && records >= 300, "{records} statements in {} files", files.len());
}

/// What is wrong is seen, and what cannot be read is not passed over.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_says_something_else_fails() {
    let good = "# A comment.\nstatement ok\nCREATE TABLE t(a, b)\n\nstatement count 2\nINSERT INTO t VALUES (1, 'x y'),\n  (2, NULL)\n\n\
                query IT rowsort\nSELECT a, b FROM t\n----\n2\tNULL\n1\tx y\n\nquery IT\nSELECT a, b FROM t\n----\n1\nx y\n2\nNULL\n\n\
                query error no such table\nSELECT 1 FROM u\n\nquery I\nSELECT a FROM t WHERE 0\n----\n\n\
                onlyif sqlite\nquery I\nPRAGMA cache_size = 5\n----\n\nskipif sqlite\nstatement error not authorized\nPRAGMA cache_size = 5\n\n\
                query TTR\nSELECT '', x'0aff', 0.5\n----\n(empty)\tx'0aff'\t0.500\n";
    assert_eq!(run("good", good).await, [""; 0]);
    for (bad, times) in [
        ("statement ok\nCREATE TABLE", 2),
        ("statement count 1\nCREATE TABLE t(a)", 2),
        ("statement error no such table\nCREATE TABLE t(a)", 2),
        ("statement error other words\nDROP TABLE t", 2),
        ("query error x\nSELECT 1", 2),
        ("query I\nSELECT 1\n----\n2", 2),
        ("query I\nSELECT 1\n----", 2),
        ("query I\nSELECT 1\n----\n1\n1", 2),
        ("query II\nSELECT 1\n----\n1", 2),
        ("query T\nSELECT 1\n----\n1", 2),
        ("query R\nSELECT 1\n----\n1.000", 2),
        ("query I\nSELECT '1'\n----\n1", 2),
        ("query I nosort\nVALUES (2), (1)\n----\n1\n2", 2),
        ("query T\nSELECT 'NULL' WHERE 0\n----\nNULL", 2),
        ("onlyif linchpin\nquery I\nSELECT 1\n----\n2", 1),
        ("skipif linchpin\nquery I\nSELECT 1\n----\n2", 1),
    ] {
        let wrong = run("bad", bad).await;
        assert_eq!(wrong.len(), times, "{bad}: {wrong:?}");
    }
    for unread in [
        "statment ok\nSELECT 1",
        "statement\nSELECT 1",
        "query X\nSELECT 1\n----\n1",
        "query I\nSELECT 1\n1",
        "query I sorted\nSELECT 1\n----\n1",
        "statement ok\nDROP TABLE t\n----\n1",
        "statement count x\nDROP TABLE t",
        "statement ok\n\n",
        "skipif mysql\nstatement ok\nSELECT 1",
        "hash-threshold 8",
    ] {
        assert!(parse(unread).is_err(), "{unread}");
    }
}
