//! PostgreSQL's protocol: encryption, login, and statements in the extended protocol, which carries exactly one statement
//! a message.
//!
//! All values travel as text, as psql shows them, so that every type comes out right, also those that only the server
//! knows. The simple protocol, which runs several statements, is never used; there is no code for it here.

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

/// Why a statement has no answer.
#[derive(Debug)]
pub(crate) enum WireError {
    /// The server refused it; the connection is good.
    Server(ServerError),
    /// The connection is not usable any more.
    Broken(String),
    /// A message was larger than we read; the connection is not usable any more.
    TooLarge,
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self::Broken(io_text(&error))
    }
}

/// An error that the server reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerError {
    /// The SQLSTATE.
    pub(crate) code: String,
    pub(crate) message: String,
    /// The character (from 1) of the statement that it is about.
    pub(crate) position: Option<usize>,
    /// What else it says, each with its place in [`MORE`].
    more: Vec<(usize, String)>,
}

/// The other fields of an error that are of use, in the order in which they are told.
const MORE: [(u8, &str); 6] =
    [(b'D', "DETAIL"), (b'H', "HINT"), (b'n', "CONSTRAINT"), (b'c', "COLUMN"), (b't', "TABLE"), (b'W', "CONTEXT")];

/// Bytes of a field that are told, so that none keeps out the others.
const FIELD_BYTES_MAX: usize = 500;

impl ServerError {
    /// The error that these fields of a message tell of.
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

    /// An error that this server reports in the server's stead.
    pub(crate) fn ours(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), ..Self::default() }
    }

    /// The server's own words.
    pub(crate) fn quoted(&self) -> String {
        let told = |text: &str| clip(text, FIELD_BYTES_MAX).text.trim_end().to_owned();
        let more = self.more.iter().map(|(at, text)| format!("{}: {}", MORE[*at].1, told(text)));
        std::iter::once(told(&self.message)).chain(more).collect::<Vec<_>>().join("\n")
    }
}

/// What a parameter or a cell holds: text, or NULL.
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

/// What the server says about a statement before it runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Described {
    pub(crate) parameters: Vec<u32>,
    pub(crate) fields: Vec<Field>,
}

/// A statement of our own, with its parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) sql: &'a str,
    pub(crate) parameters: &'a [Value],
}

impl<'a> Step<'a> {
    pub(crate) fn new(sql: &'a str, parameters: &'a [Value]) -> Self {
        Self { sql, parameters }
    }

    /// A statement without parameters.
    pub(crate) const fn plain(sql: &'a str) -> Self {
        Self { sql, parameters: &[] }
    }
}
