//! What a caller wants to run, and the part of its rows that fits into the result.

use crate::value::Type;
use crate::wire::{Described, Row, WireError};

/// Bytes of rows to skip past the limit before giving up the connection.
const DRAIN_BYTES_MAX: usize = 4 << 20;

/// A statement to run, and how many of its rows to return.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) sql: &'a str,
    pub(crate) parameters: &'a [serde_json::Value],
    /// Rows to skip.
    pub(crate) skip: usize,
    pub(crate) rows_max: usize,
}

/// The rows of a statement.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) described: Described,
    pub(crate) types: Vec<Type>,
    pub(crate) rows: Vec<Row>,
    /// Whether there were more rows than the limits allow.
    pub(crate) truncated: bool,
    /// The server's command tag, for example `INSERT 0 1`; none if the statement was stopped early.
    pub(crate) tag: String,
}

/// Collects rows of a result while they fit.
pub(crate) struct Taken {
    pub(crate) rows: Vec<Row>,
    rows_max: usize,
    skip: usize,
    bytes: usize,
    pub(crate) bytes_max: usize,
    drained: usize,
    /// Whether the result is truncated.
    pub(crate) full: bool,
}

impl Taken {
    /// `bytes_max` applies to all rows together.
    pub(crate) fn new(request: Request<'_>, bytes_max: usize) -> Self {
        let Request { skip, rows_max, .. } = request;
        Self { rows: Vec::new(), rows_max, skip, bytes: 0, bytes_max, drained: 0, full: false }
    }

    /// How many more rows to request: one more than fits, to learn whether there are more.
    pub(crate) fn wanted(&self) -> usize {
        self.rows_max.saturating_add(1).saturating_sub(self.rows.len()).saturating_add(self.skip)
    }

    /// # Errors
    /// When so many bytes were skipped that reading on is not worth it.
    pub(crate) fn take(&mut self, of: &Described, row: Row) -> Result<(), WireError> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(());
        }
        self.bytes += row.bytes() + of.fields.iter().map(|field| field.name.len() + 10).sum::<usize>();
        if self.full || self.rows.len() >= self.rows_max || self.bytes > self.bytes_max {
            self.full = true;
            self.drained += row.bytes();
        } else {
            self.rows.push(row);
        }
        if self.drained > DRAIN_BYTES_MAX { Err(WireError::TooLarge) } else { Ok(()) }
    }
}
