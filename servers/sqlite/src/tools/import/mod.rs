//! `sqlite_import_csv`: imports rows from a CSV file in the configured directory, or from CSV text in the call.
//!
//! A file is identified by its bare name and opened from a handle of the directory without following symlinks, so no
//! name can lead elsewhere. All rows are added in one transaction.

mod dir;

pub(crate) use dir::ImportDir;

use csv::StringRecord;
use linchpin::{Cx, Error};
use linchpin_kit::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek as _, SeekFrom};

use super::schema::{SCHEMA_URI, about};
use crate::open::GuardedConnection;
use crate::open::authorizer::Policy;
use crate::statement::quote;
use crate::table::{Bounds, Form};
use crate::value::Cell;
use crate::{Sqlite, call};

/// Maximum bytes of a file.
const FILE_BYTES_MAX: u64 = 100 << 20;

/// Maximum columns of a table.
const COLUMNS_MAX: usize = 1_000;

/// Arguments of `sqlite_import_csv`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ImportCsv {
    /// The table to add the rows to. It is created if it does not exist, with types inferred from the values.
    pub table: String,
    /// The bare name of a CSV file in the import directory. Pass either this or csv.
    pub file: Option<String>,
    /// The CSV text itself. Pass either this or file.
    pub csv: Option<String>,
    /// The field delimiter: one ASCII character. Default is a comma.
    pub delimiter: Option<String>,
    /// Whether the first line contains the names of the columns. Default true.
    pub header: Option<bool>,
    /// Whether empty fields become NULL instead of empty strings. Default false.
    pub empty_as_null: Option<bool>,
}

/// The result of an import.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Imported {
    /// The table.
    pub table: String,
    /// The number of added rows.
    pub rows: u64,
    /// Whether the table was created.
    pub created: bool,
}

fn shown(name: &str) -> String {
    name.chars().take(100).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `sqlite_import_csv`.
pub(crate) async fn import_csv(db: &Sqlite, cx: &Cx, args: ImportCsv) -> Result<ToolOutput<Imported>, Error> {
    let dir = db.import_dir();
    if args.file.is_some() == args.csv.is_some() {
        return Err(ToolError::invalid("Error: pass either file or csv").into());
    }
    let imported = db
        .write(cx, move |conn| {
            let source = match (&args.file, &args.csv) {
                (Some(name), _) => {
                    let dir = dir.ok_or_else(|| ToolError::new("Error: no import directory is configured"))?;
                    Source::File(dir.file(name)?)
                }
                (None, text) => Source::Text(text.clone().unwrap_or_default()),
            };
            conn.import(source, &args)
        })
        .await?;
    if imported.created {
        cx.server().resource_updated(&db.uri(SCHEMA_URI));
    }
    let created = if imported.created { ", which was created" } else { "" };
    let text = format!("Imported {} rows into {}{created}", imported.rows, shown(&imported.table));
    Ok(ToolOutput::ours(text, imported))
}

enum Source {
    File(File),
    Text(String),
}

impl Source {
    /// The text from its beginning, without a byte order mark.
    fn read(&mut self) -> Result<Box<dyn Read + '_>, ToolError> {
        let failed =
            |error: std::io::Error| ToolError::new(format!("Error: the file cannot be read: {}", error.kind()));
        match self {
            Source::Text(text) => Ok(Box::new(text.trim_start_matches('\u{feff}').as_bytes())),
            Source::File(file) => {
                let mut start = [0; 3];
                file.seek(SeekFrom::Start(0)).map_err(failed)?;
                let read = file.by_ref().take(3).read(&mut start).map_err(failed)?;
                let skip = if start[..read] == *b"\xef\xbb\xbf" { 3 } else { 0 };
                file.seek(SeekFrom::Start(skip)).map_err(failed)?;
                Ok(Box::new(std::io::BufReader::new(file.take(FILE_BYTES_MAX))))
            }
        }
    }
}

/// The findings of a first pass over the records.
struct Found {
    names: Option<Vec<String>>,
    kinds: Vec<Kind>,
}

/// The type common to all values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Empty,
    Integer,
    Real,
    Text,
}

impl Kind {
    fn of(field: &str) -> Kind {
        if field.is_empty() {
            return Kind::Empty;
        }
        // Numbers that would not be returned as written stay text: 007, +1, 1e400.
        if field.parse::<i64>().is_ok_and(|number| number.to_string() == field) {
            return Kind::Integer;
        }
        let plain = field.bytes().all(|byte| byte.is_ascii_digit() || b".-eE+".contains(&byte));
        let leading_zero = field.trim_start_matches('-').strip_prefix('0').is_some_and(|rest| !rest.starts_with('.'));
        let number = field.parse::<f64>().is_ok_and(f64::is_finite);
        if plain && number && !leading_zero && !field.starts_with('+') { Kind::Real } else { Kind::Text }
    }

    fn sql(self) -> &'static str {
        match self {
            Kind::Integer => "INTEGER",
            Kind::Real => "REAL",
            Kind::Empty | Kind::Text => "TEXT",
        }
    }
}

/// How to read the text.
#[derive(Clone, Copy)]
struct Reading {
    delimiter: u8,
    header: bool,
    empty_as_null: bool,
}

impl Reading {
    fn of(args: &ImportCsv) -> Result<Reading, ToolError> {
        let delimiter = match args.delimiter.as_deref().map(str::as_bytes) {
            None => b',',
            Some([byte]) if byte.is_ascii() && !b"\"\r\n".contains(byte) => *byte,
            Some(b"\\t") => b'\t',
            Some(_) => return Err(ToolError::invalid("Error: the delimiter must be one ASCII character")),
        };
        let empty_as_null = args.empty_as_null.unwrap_or(false);
        Ok(Reading { delimiter, header: args.header.unwrap_or(true), empty_as_null })
    }

    /// Passes over all records.
    fn records(
        self,
        source: &mut Source,
        mut each: impl FnMut(u64, &StringRecord) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let mut reader =
            csv::ReaderBuilder::new().delimiter(self.delimiter).has_headers(false).from_reader(source.read()?);
        let mut record = StringRecord::new();
        let mut number = 0;
        while reader.read_record(&mut record).map_err(|error| unreadable(&error))? {
            if call::is_over() {
                return Err(call::interrupted());
            }
            if record.len() > COLUMNS_MAX {
                return Err(ToolError::invalid(format!("Error: more than {COLUMNS_MAX} columns")));
            }
            each(number, &record)?;
            number += 1;
        }
        Ok(())
    }

    fn inspect(self, source: &mut Source) -> Result<Found, ToolError> {
        let mut found = Found { names: None, kinds: Vec::new() };
        self.records(source, |number, record| {
            if number == 0 {
                found.kinds = vec![Kind::Empty; record.len()];
                if self.header {
                    found.names = Some(record.iter().map(|name| name.trim().to_owned()).collect());
                    return Ok(());
                }
            }
            for (kind, field) in found.kinds.iter_mut().zip(record) {
                *kind = (*kind).max(Kind::of(field));
            }
            Ok(())
        })?;
        if found.kinds.is_empty() {
            return Err(ToolError::invalid("Error: the CSV text is empty"));
        }
        Ok(found)
    }
}

fn unreadable(error: &csv::Error) -> ToolError {
    let line = error.position().map_or(0, csv::Position::line);
    let why = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("the record at line {line} has {len} fields instead of {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => format!("the record at line {line} is not valid UTF-8"),
        _ => "invalid CSV".into(),
    };
    ToolError::invalid(format!("Error: {why}")).hint("Nothing was imported.")
}

impl GuardedConnection {
    fn import(&self, mut source: Source, args: &ImportCsv) -> Result<Imported, ToolError> {
        let reading = Reading::of(args)?;
        let found = reading.inspect(&mut source)?;
        self.execute("BEGIN IMMEDIATE")?;
        // A transaction left open by an error is rolled back after the call.
        let (created, columns) = self.target(&args.table, &found)?;
        let names: Vec<String> = columns.iter().map(|name| quote(name)).collect();
        let places = vec!["?"; columns.len()].join(",");
        let sql = format!("INSERT INTO main.{}({}) VALUES ({places})", quote(&args.table), names.join(","));
        let mut statement = self.prepare(Policy::Transaction, &sql)?;
        let mut rows = 0;
        reading.records(&mut source, |number, record| {
            if number == 0 && reading.header {
                return Ok(());
            }
            for (index, field) in (1..).zip(record) {
                let value = (!(field.is_empty() && reading.empty_as_null)).then_some(field);
                statement.raw_bind_parameter(index, value).map_err(|error| self.error(error))?;
            }
            statement.raw_execute().map_err(|error| self.error(error))?;
            rows += 1;
            Ok(())
        })?;
        drop(statement);
        self.execute("COMMIT")?;
        Ok(Imported { table: args.table.clone(), rows, created })
    }

    fn execute(&self, sql: &str) -> Result<(), ToolError> {
        let mut statement = self.prepare(Policy::Transaction, sql)?;
        statement.raw_execute().map_err(|error| self.error(error))?;
        Ok(())
    }

    /// The columns to fill, of an existing or newly created table.
    fn target(&self, table: &str, found: &Found) -> Result<(bool, Vec<String>), ToolError> {
        let bounds = Bounds { rows: 2 * COLUMNS_MAX, bytes: 1 << 20 };
        let rows = self.rows(&about("table_info", table)?, &[], bounds, Form::Json)?.rows;
        let there: Vec<String> =
            rows.iter().filter_map(|row| row.get(1).and_then(Cell::text)).map(str::to_owned).collect();
        if let Some(names) = &found.names {
            check_names(names)?;
        }
        if !there.is_empty() {
            return Ok((false, chosen(there, found)?));
        }
        let numbered = || (1..=found.kinds.len()).map(|number| format!("c{number}")).collect();
        let names: Vec<String> = found.names.clone().unwrap_or_else(numbered);
        let columns: Vec<String> =
            names.iter().zip(&found.kinds).map(|(name, kind)| format!("{} {}", quote(name), kind.sql())).collect();
        self.execute(&format!("CREATE TABLE main.{}({})", quote(table), columns.join(", ")))?;
        Ok((true, names))
    }
}

fn check_names(names: &[String]) -> Result<(), ToolError> {
    let mut seen = BTreeSet::new();
    for (number, name) in (1..).zip(names) {
        if name.is_empty() || name.contains('\0') || !seen.insert(name.to_ascii_lowercase()) {
            return Err(ToolError::invalid(format!(
                "Error: the header has an empty or repeated name in column {number}"
            ))
            .hint("Correct the first line, or pass header=false if it contains values.")
            .detail(name));
        }
    }
    Ok(())
}

/// The columns of an existing table that correspond to the fields.
fn chosen(there: Vec<String>, found: &Found) -> Result<Vec<String>, ToolError> {
    match &found.names {
        Some(names) => {
            let missing = names.iter().position(|name| !there.iter().any(|other| other.eq_ignore_ascii_case(name)));
            match missing {
                Some(at) => Err(ToolError::invalid(format!(
                    "Error: the table has no column with the header name of CSV column {}",
                    at + 1
                ))
                .hint("describe_table lists the columns. Correct the first line of the CSV text.")
                .detail(&names[at])),
                None => Ok(names.clone()),
            }
        }
        None if there.len() == found.kinds.len() => Ok(there),
        None => Err(ToolError::invalid(format!(
            "Error: the table has {} columns, and the records have {} fields",
            there.len(),
            found.kinds.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_back_as_it_was_is_a_number() {
        for (field, kind) in [
            ("", Kind::Empty),
            ("12", Kind::Integer),
            ("-9223372036854775808", Kind::Integer),
            ("9223372036854775808", Kind::Real),
            ("1.5", Kind::Real),
            ("-0.25", Kind::Real),
            ("1e3", Kind::Real),
            ("007", Kind::Text),
            ("00.5", Kind::Text),
            ("+1", Kind::Text),
            ("1e400", Kind::Text),
            ("inf", Kind::Text),
            ("NaN", Kind::Text),
            ("1 ", Kind::Text),
            ("x", Kind::Text),
        ] {
            assert_eq!(Kind::of(field), kind, "{field:?}");
        }
    }
}
