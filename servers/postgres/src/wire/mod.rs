//! PostgreSQL's protocol: encryption, login, and the extended query protocol, which carries exactly one statement per
//! message.
//!
//! All values are sent as text, as psql shows them, so every type works, including those that only the server knows.
//! The simple query protocol, which runs several statements, is not implemented.

mod connection;
mod login;
mod row;
mod tls;

pub(crate) use connection::{Connection, Fetch, Fetched};
pub(crate) use row::Row;

use fallible_iterator::FallibleIterator;
use linchpin_kit::{clip, io_text};
use postgres_protocol::message::backend::{self, ErrorFields};
use std::io;

/// Why a statement has no result.
#[derive(Debug)]
pub(crate) enum WireError {
    /// The server reported an error; the connection is still usable.
    Server(ServerError),
    /// The connection is no longer usable.
    Broken(String),
    /// A message exceeded the limit; the connection is no longer usable.
    TooLarge,
}

impl WireError {
    /// Whether a statement that was prepared is not there, or one that was not is: a pooler has changed the session.
    pub(crate) fn is_about_prepared(&self) -> bool {
        matches!(self, Self::Server(error) if ["26000", "42P05", "0A000"].contains(&error.code.as_str()))
    }
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self::Broken(io_text(&error))
    }
}

/// An error reported by the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerError {
    /// The SQLSTATE.
    pub(crate) code: String,
    pub(crate) message: String,
    /// The character of the statement, from 1, at which the error occurred.
    pub(crate) position: Option<usize>,
    /// Other fields, each with its index in [`MORE`].
    more: Vec<(usize, String)>,
}

/// Other useful fields of an error, in the order in which they are shown.
const MORE: [(u8, &str); 6] =
    [(b'D', "DETAIL"), (b'H', "HINT"), (b'n', "CONSTRAINT"), (b'c', "COLUMN"), (b't', "TABLE"), (b'W', "CONTEXT")];

/// Maximum bytes shown of a field, so that none crowds out the others.
const FIELD_BYTES_MAX: usize = 500;

impl ServerError {
    /// Reads the fields of an error message.
    pub(crate) fn new(mut fields: ErrorFields<'_>) -> Self {
        let mut error = Self::default();
        while let Ok(Some(field)) = fields.next() {
            let text = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'C' => error.code = text,
                b'M' => error.message = text,
                b'P' => error.position = text.parse().ok(),
                field => error.more.extend(MORE.iter().position(|(known, _)| *known == field).map(|at| (at, text))),
            }
        }
        error.more.sort_unstable();
        error
    }

    /// An error that this program reports in the form of a server error.
    pub(crate) fn ours(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), ..Self::default() }
    }

    /// The server's own text.
    pub(crate) fn quoted(&self) -> String {
        let told = |text: &str| clip(text, FIELD_BYTES_MAX).text.trim_end().to_owned();
        let more = self.more.iter().map(|(at, text)| format!("{}: {}", MORE[*at].1, told(text)));
        std::iter::once(told(&self.message)).chain(more).collect::<Vec<_>>().join("\n")
    }
}

/// The content of a parameter or cell: text, or NULL.
pub(crate) type Value = Option<String>;

/// A column of a result.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) type_oid: u32,
    pub(crate) type_modifier: i32,
}

impl Field {
    fn new(field: backend::Field<'_>) -> io::Result<Self> {
        Ok(Self { name: field.name().to_owned(), type_oid: field.type_oid(), type_modifier: field.type_modifier() })
    }
}

/// The server's description of a statement before it runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Described {
    pub(crate) parameters: Vec<u32>,
    pub(crate) fields: Vec<Field>,
}

/// One of our own statements, with its parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) sql: &'a str,
    pub(crate) parameters: &'a [Value],
    /// Under which name the connection keeps it prepared; empty for one that is parsed each time.
    pub(crate) name: &'static str,
}

impl<'a> Step<'a> {
    pub(crate) fn new(sql: &'a str, parameters: &'a [Value]) -> Self {
        Self { sql, parameters, name: "" }
    }

    /// A statement that the connection keeps prepared under this name: to plan it takes longer than to run it.
    pub(crate) fn kept(name: &'static str, sql: &'static str, parameters: &'a [Value]) -> Self {
        Self { sql, parameters, name }
    }

    /// A statement without parameters.
    pub(crate) const fn plain(sql: &'a str) -> Self {
        Self { sql, parameters: &[], name: "" }
    }
}
