//! Values, rows and their two texts: JSON, and the Python notation of the published server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use linchpin_kit::{ErrorKind, Paging, ToolError};
use rusqlite::Statement;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A value of SQLite. In JSON, binary data is `{"base64": "…"}`, and so is text that is not UTF-8; infinities are the
/// strings `"Infinity"` and `"-Infinity"`; integers keep all 64 bits.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// INTEGER.
    Integer(i64),
    /// REAL.
    Real(f64),
    /// TEXT.
    Text(String),
    /// BLOB.
    Blob(Vec<u8>),
}

impl Cell {
    fn of(value: ValueRef<'_>) -> Cell {
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(integer) => Cell::Integer(integer),
            ValueRef::Real(real) => Cell::Real(real),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Cell::Text(text.to_owned()),
                Err(_) => Cell::Blob(bytes.to_vec()),
            },
            ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
        }
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is a whole one.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Cell::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// As Python's `repr` shows it.
    fn python(&self, out: &mut String) {
        match self {
            Cell::Null => out.push_str("None"),
            Cell::Integer(integer) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "{integer}");
            }
            Cell::Real(real) => out.push_str(&python_float(*real)),
            Cell::Text(text) => python_text(text, out),
            Cell::Blob(bytes) => python_bytes(bytes, out),
        }
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Null => ValueRef::Null,
            Cell::Integer(integer) => ValueRef::Integer(*integer),
            Cell::Real(real) => ValueRef::Real(*real),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Null => to.serialize_unit(),
            Cell::Integer(integer) => to.serialize_i64(*integer),
            Cell::Real(real) if real.is_finite() => to.serialize_f64(*real),
            Cell::Real(real) => to.serialize_str(if *real > 0.0 { "Infinity" } else { "-Infinity" }),
            Cell::Text(text) => to.serialize_str(text),
            Cell::Blob(bytes) => {
                let mut map = to.serialize_map(Some(1))?;
                map.serialize_entry("base64", &BASE64.encode(bytes))?;
                map.end()
            }
        }
    }
}

impl JsonSchema for Cell {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "null, number, string, or {\"base64\": …} for binary data. Infinite numbers are \"Infinity\" and \
                            \"-Infinity\"."
        })
    }
}

/// Values for the placeholders of a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Params {
    /// One for each `?`, in order.
    Positional(Vec<Cell>),
    /// By name, with or without the sign before it (`:`, `@`, `$`).
    Named(Vec<(String, Cell)>),
    /// Something else. Says what to change; the call is told so, and nothing is run.
    Wrong(String),
}

impl<'de> serde::Deserialize<'de> for Params {
    /// Fails only for what is not valid JSON: a reader of JSON would put its line and column behind what is said here.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let params = match Json::deserialize(from)? {
            Json::Array(items) => {
                let items = (1..)
                    .zip(items)
                    .map(|(number, item)| value(item).map_err(|why| format!("Error: item {number} of params {why}")));
                items.collect::<Result<_, _>>().map(Params::Positional)
            }
            Json::Object(items) => {
                let items = items.into_iter().map(|(name, item)| match value(item) {
                    Ok(cell) => Ok((name, cell)),
                    Err(why) => Err(format!("Error: {name:?} in params {why}")),
                });
                items.collect::<Result<_, _>>().map(Params::Named)
            }
            _ => Err("Error: params must be an array, or an object with a value for each name".into()),
        };
        Ok(params.unwrap_or_else(Params::Wrong))
    }
}

impl JsonSchema for Params {
    fn schema_name() -> Cow<'static, str> {
        "Params".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "array", "items": {} }, { "type": "object" }] })
    }
}

fn value(json: Json) -> Result<Cell, String> {
    match json {
        Json::Null => Ok(Cell::Null),
        Json::Bool(on) => Ok(Cell::Integer(on.into())),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Ok(Cell::Integer(integer)),
            (None, Some(real)) if !number.is_u64() => Ok(Cell::Real(real)),
            _ => Err(format!("is a number that exceeds 64 bits ({number}); pass it as a string")),
        },
        Json::String(text) => Ok(Cell::Text(text)),
        Json::Object(map) => match (map.len(), map.get("base64").and_then(Json::as_str)) {
            (1, Some(text)) => BASE64.decode(text).map(Cell::Blob).map_err(|_| {
                "is not valid base64: only A-Z a-z 0-9 + / are used, and = at the end to make its length a multiple of 4".into()
            }),
            _ => Err("is an object other than {\"base64\": …}; pass JSON as a string".into()),
        },
        Json::Array(_) => Err("is an array; pass JSON as a string".into()),
    }
}

/// Binds a value to each placeholder; every one must have one, and none may be left over.
pub(crate) fn bind(statement: &mut Statement<'_>, params: Option<&Params>) -> Result<(), ToolError> {
    let failed = |error: rusqlite::Error| {
        ToolError::new("Database error: a value of params cannot be bound")
            .kind(ErrorKind::Limited { retry_after: None })
            .detail(error.to_string())
    };
    let wanted = statement.parameter_count();
    let nothing = Params::Positional(Vec::new());
    match params.unwrap_or(&nothing) {
        Params::Wrong(why) => {
            return Err(ToolError::invalid(why)
                .hint("Each value is null, true, false, a number, a string, or {\"base64\": …} for binary data."));
        }
        Params::Positional(values) => {
            if values.len() != wanted {
                let given = values.len();
                return Err(ToolError::invalid(format!(
                    "Database error: Incorrect number of bindings supplied. The current statement uses {wanted}, and there \
                     are {given} supplied."
                ))
                .hint("Pass one item in params for each placeholder of the query."));
            }
            for (index, value) in (1..).zip(values) {
                statement.raw_bind_parameter(index, value).map_err(failed)?;
            }
        }
        Params::Named(values) => {
            let mut used = BTreeSet::new();
            for index in 1..=wanted {
                let name = statement.parameter_name(index).map(str::to_owned).ok_or_else(|| {
                    ToolError::invalid(format!("Error: placeholder {index} has no name"))
                        .hint("Pass params as an array, or name the placeholders as in :name.")
                })?;
                let bare = &name[1..];
                let found = values.iter().find(|(key, _)| *key == name || key == bare);
                let (key, value) = found.ok_or_else(|| {
                    ToolError::invalid(format!(
                        "Database error: You did not supply a value for binding parameter {name}."
                    ))
                })?;
                used.insert(key.as_str());
                statement.raw_bind_parameter(index, value).map_err(failed)?;
            }
            if let Some((key, _)) = values.iter().find(|(key, _)| !used.contains(key.as_str())) {
                return Err(ToolError::invalid(format!("Error: the query has no placeholder named {key}")));
            }
        }
    }
    Ok(())
}

/// How many rows, and how many bytes of text, an answer holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// Which text an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Python,
}

/// Why an answer ends before its rows do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Rows(usize),
    Bytes(usize),
}

impl Cut {
    fn notice(self) -> String {
        let (what, advice) = match self {
            Cut::Rows(most) => (format!("after {most} rows"), "Use WHERE, or LIMIT with OFFSET, to get them"),
            Cut::Bytes(most) => (format!("after {most} bytes"), "Select fewer columns or rows to get them"),
        };
        format!("[Truncated {what}: there are more rows. {advice}.]")
    }
}

/// The rows of a statement, as far as they fit.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// The rows as a list of objects.
    pub(crate) text: String,
    pub(crate) cut: Option<Cut>,
}

impl Table {
    /// What models are told about it.
    pub(crate) fn notice(&self) -> Option<String> {
        self.cut.map(Cut::notice)
    }

    /// Those of the rows that fit into one answer, from `cursor` on, and where the next one begins. `beside` are the
    /// bytes that each row takes in the structured content beyond those of its text.
    pub(crate) fn page(
        mut self,
        cursor: Option<&str>,
        bounds: Bounds,
        beside: usize,
        form: Form,
    ) -> Result<(Table, Paging), ToolError> {
        let start = self.rows.len() - Paging::of(&self.rows, cursor, usize::MAX)?.0.len();
        let names: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let writer = Writer::new(&names, form);
        let (mut text, mut shown) = (String::from("["), 0);
        for row in self.rows[start..].iter().take(bounds.rows) {
            let before = text.len();
            writer.write(row, &mut text);
            if text.len() + (shown + 1) * beside > bounds.bytes {
                text.truncate(before);
                break;
            }
            shown += 1;
        }
        text.push(']');
        let next = start + shown;
        if shown == 0 && next < self.rows.len() {
            return Err(ToolError::new(format!("Error: the next entry alone is longer than {} bytes", bounds.bytes))
                .hint(format!("To continue after it, pass cursor={:?}.", (next + 1).to_string())));
        }
        let paging = match next < self.rows.len() {
            true => Paging::more(next.to_string()),
            // What the query itself cut off, no cursor brings back.
            false => Paging { truncated: self.cut.is_some(), ..Paging::whole() },
        };
        self.rows.truncate(next);
        self.rows.drain(..start);
        Ok((Table { text, ..self }, paging))
    }
}

/// Whether a statement that has given enough rows is run to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Stop,
    Finish,
}

/// Steps through a bound statement and takes what fits. No more is ever held than that and one value.
pub(crate) fn step(
    statement: &mut Statement<'_>,
    bounds: Bounds,
    form: Form,
    end: End,
) -> Result<Table, rusqlite::Error> {
    let mut writer: Option<Writer> = None;
    let mut table = Table { columns: Vec::new(), rows: Vec::new(), text: "[".into(), cut: None };
    {
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if table.cut.is_some() {
                continue;
            }
            // The names are known for sure only now: SQLite may have compiled the statement again at its first step.
            let writer = writer.get_or_insert_with(|| Writer::new(&row.as_ref().column_names(), form));
            let columns = row.as_ref().column_count();
            let too_long = |index| raw_length(row.get_ref_unwrap(index)) > bounds.bytes;
            let over = if table.rows.len() >= bounds.rows {
                Some(Cut::Rows(bounds.rows))
            } else if (0..columns).any(too_long) {
                Some(Cut::Bytes(bounds.bytes))
            } else {
                let cells: Vec<Cell> = (0..columns).map(|index| Cell::of(row.get_ref_unwrap(index))).collect();
                let before = table.text.len();
                writer.write(&cells, &mut table.text);
                if table.text.len() > bounds.bytes {
                    table.text.truncate(before);
                    Some(Cut::Bytes(bounds.bytes))
                } else {
                    table.rows.push(cells);
                    None
                }
            };
            table.cut = over;
            if table.cut.is_some() && end == End::Stop {
                break;
            }
        }
    }
    table.text.push(']');
    table.columns = match writer {
        Some(writer) => writer.columns,
        None => statement.column_names().into_iter().map(str::to_owned).collect(),
    };
    Ok(table)
}

fn raw_length(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        _ => 0,
    }
}

/// Writes rows as objects of one form.
struct Writer {
    columns: Vec<String>,
    form: Form,
    /// For each member of the object: its key as it is written, and the column its value comes from.
    members: Vec<(String, usize)>,
}

impl Writer {
    fn new(columns: &[&str], form: Form) -> Writer {
        let mut members = Vec::with_capacity(columns.len());
        let mut seen = BTreeSet::new();
        for (index, name) in columns.iter().enumerate() {
            match form {
                // A row of Python's sqlite3 is looked up by name without regard to case, and the first one is found.
                Form::Python => {
                    if seen.insert((*name).to_owned()) {
                        let first = columns.iter().position(|other| other.eq_ignore_ascii_case(name)).unwrap_or(index);
                        let mut key = String::new();
                        python_text(name, &mut key);
                        members.push((key, first));
                    }
                }
                // A name that comes again gets a number, as SQLite itself does it in subqueries.
                Form::Json => {
                    let mut unique = (*name).to_owned();
                    let mut number = 0;
                    while !seen.insert(unique.clone()) {
                        number += 1;
                        unique = format!("{name}:{number}");
                    }
                    members.push((Json::String(unique).to_string(), index));
                }
            }
        }
        Writer { columns: columns.iter().map(|name| (*name).to_owned()).collect(), form, members }
    }

    fn write(&self, cells: &[Cell], out: &mut String) {
        let (comma, colon) = match self.form {
            Form::Json => (",", ":"),
            Form::Python => (", ", ": "),
        };
        if out.len() > 1 {
            out.push_str(comma);
        }
        out.push('{');
        for (at, (key, from)) in self.members.iter().enumerate() {
            if at > 0 {
                out.push_str(comma);
            }
            out.push_str(key);
            out.push_str(colon);
            let cell = cells.get(*from).unwrap_or(&Cell::Null);
            match self.form {
                Form::Python => cell.python(out),
                Form::Json => out.push_str(&serde_json::to_string(cell).unwrap_or_else(|_| "null".into())),
            }
        }
        out.push('}');
    }
}

/// `repr` of a float: the shortest digits, in positions up to 16 and from 0.0001 on.
fn python_float(real: f64) -> String {
    if real.is_nan() {
        return "nan".into();
    }
    if real.is_infinite() {
        return if real > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{real:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{real}");
        if plain.contains('.') { plain } else { format!("{plain}.0") }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.abs())
    }
}

/// `repr` of a string.
fn python_text(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// Whether Python shows a character as it is. Rust escapes the same categories in `{:?}`; the letter before keeps it
/// from escaping marks that combine.
fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{a0}' => false,
        c => !['a', c].iter().collect::<String>().escape_debug().any(|c| c == '\\'),
    }
}

/// `repr` of bytes.
fn python_bytes(bytes: &[u8], out: &mut String) {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    out.push('b');
    out.push(quote);
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' if char::from(*byte) == quote => {
                out.push('\\');
                out.push(quote);
            }
            b' '..=b'~' => out.push(char::from(*byte)),
            byte => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(cell: &Cell) -> String {
        let mut out = String::new();
        cell.python(&mut out);
        out
    }

    #[test]
    fn python_shows_values_like_this() {
        for (real, shown) in [
            (1.5, "1.5"),
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.25e22, "1.25e+22"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(python(&Cell::Real(real)), shown);
        }
        for (text, shown) in [
            ("it's", "\"it's\""),
            ("\"", "'\"'"),
            ("'\"", "'\\'\"'"),
            ("a\\b\n\t\r\0\x7f", "'a\\\\b\\n\\t\\r\\x00\\x7f'"),
            ("é\u{a0}\u{ad}日本\u{200b}\u{e000}", "'é\\xa0\\xad日本\\u200b\\ue000'"),
            ("e\u{301} 😀\u{10ffff}", "'e\u{301} 😀\\U0010ffff'"),
        ] {
            assert_eq!(python(&Cell::Text(text.into())), shown);
        }
        assert_eq!(python(&Cell::Blob(b"\x01\x02'\xff~\n".to_vec())), "b\"\\x01\\x02'\\xff~\\n\"");
        assert_eq!(python(&Cell::Blob(b"'\"".to_vec())), "b'\\'\"'");
        assert_eq!(python(&Cell::Null), "None");
        assert_eq!(python(&Cell::Integer(i64::MIN)), "-9223372036854775808");
    }

    #[test]
    fn json_loses_nothing() {
        let json = |cell: Cell| serde_json::to_string(&cell).unwrap();
        assert_eq!(json(Cell::Integer(i64::MAX)), "9223372036854775807");
        assert_eq!(json(Cell::Real(f64::NEG_INFINITY)), "\"-Infinity\"");
        assert_eq!(json(Cell::Real(2.0)), "2.0");
        assert_eq!(json(Cell::Blob(vec![1, 2])), "{\"base64\":\"AQI=\"}");
        assert_eq!(json(Cell::of(ValueRef::Text(b"\xff"))), "{\"base64\":\"/w==\"}");
    }

    #[test]
    fn a_name_that_comes_again_is_numbered_in_json_and_found_first_in_python() {
        let cells = [Cell::Integer(1), Cell::Integer(2), Cell::Integer(3), Cell::Integer(4)];
        let columns = ["a", "a", "A", "a:1"];
        for (form, shown) in
            [(Form::Json, r#"{"a":1,"a:1":2,"A":3,"a:1:1":4}"#), (Form::Python, "{'a': 1, 'A': 1, 'a:1': 4}")]
        {
            let mut out = String::from("[");
            Writer::new(&columns, form).write(&cells, &mut out);
            assert_eq!(&out[1..], shown);
        }
    }

    #[test]
    fn params_are_what_json_can_say() {
        let read = |text: &str| serde_json::from_str::<Params>(text).map_err(|error| error.to_string());
        assert_eq!(
            read(r#"[1,2.5,"x",null,true,{"base64":"AQI="}]"#),
            Ok(Params::Positional(vec![
                Cell::Integer(1),
                Cell::Real(2.5),
                Cell::Text("x".into()),
                Cell::Null,
                Cell::Integer(1),
                Cell::Blob(vec![1, 2]),
            ]))
        );
        assert_eq!(read(r#"{"a":1}"#), Ok(Params::Named(vec![("a".into(), Cell::Integer(1))])));
        for wrong in ["7", "[[1]]", r#"[{"x":1}]"#, "[18446744073709551615]", r#"[{"base64":"?"}]"#] {
            assert!(matches!(read(wrong), Ok(Params::Wrong(_))), "{wrong}");
        }
    }
}
