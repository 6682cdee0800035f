//! Rows as results: as many as fit, as JSON or in Python's notation.

use crate::python;
use crate::value::Cell;
use linchpin_kit::{Paging, ToolError};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// The maximum number of rows, and bytes of text, of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// The text format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Python,
}

/// Why a result ends before its rows do.
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
    /// The notice for the model.
    pub(crate) fn notice(&self) -> Option<String> {
        self.cut.map(Cut::notice)
    }

    /// The entries from `cursor` on that fit into one result, and where the next page begins. `beside` is the number of
    /// bytes that each entry takes in structured content in addition to its text.
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
            // No cursor continues past the limit of the query itself.
            false => Paging { truncated: self.cut.is_some(), ..Paging::whole() },
        };
        self.rows.truncate(next);
        self.rows.drain(..start);
        Ok((Table { text, ..self }, paging))
    }
}

/// Writes rows as objects with the same keys.
pub(crate) struct Writer {
    pub(crate) columns: Vec<String>,
    form: Form,
    /// For each key as written: the column with its value.
    members: Vec<(String, usize)>,
}

impl Writer {
    pub(crate) fn new(columns: &[&str], form: Form) -> Writer {
        let mut members = Vec::with_capacity(columns.len());
        let mut seen = BTreeSet::new();
        for (index, name) in columns.iter().enumerate() {
            match form {
                // Python's sqlite3 looks up columns case-insensitively and finds the first.
                Form::Python => {
                    if seen.insert((*name).to_owned()) {
                        let first = columns.iter().position(|other| other.eq_ignore_ascii_case(name)).unwrap_or(index);
                        let mut key = String::new();
                        python::text(name, &mut key);
                        members.push((key, first));
                    }
                }
                // A repeated name gets a number, as in SQLite's subqueries.
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

    pub(crate) fn write(&self, cells: &[Cell], out: &mut String) {
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
                Form::Python => python::repr(cell, out),
                Form::Json => out.push_str(&serde_json::to_string(cell).unwrap_or_else(|_| "null".into())),
            }
        }
        out.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
