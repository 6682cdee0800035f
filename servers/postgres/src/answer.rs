//! What a statement is asked for, and how much of its rows is taken.

use crate::value::Type;
use crate::wire::{Described, Row, WireError};

/// Bytes of rows read beyond the limit before the connection is given up.
const DRAIN_BYTES_MAX: usize = 4 << 20;

/// What to run, and how much of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) sql: &'a str,
    pub(crate) parameters: &'a [serde_json::Value],
    /// Rows to pass over.
    pub(crate) skip: usize,
    pub(crate) rows_max: usize,
}

/// The rows of a statement.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) described: Described,
    pub(crate) types: Vec<Type>,
    pub(crate) rows: Vec<Row>,
    /// Whether there were more than the limits allow.
    pub(crate) truncated: bool,
    /// What the server says it did, for example `INSERT 0 1`; nothing where it was stopped.
    pub(crate) tag: String,
}

/// The rows of an answer, as many as fit.
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
    /// `bytes_max` is of all rows together.
    pub(crate) fn new(request: Request<'_>, bytes_max: usize) -> Self {
        let Request { skip, rows_max, .. } = request;
        Self { rows: Vec::new(), rows_max, skip, bytes: 0, bytes_max, drained: 0, full: false }
    }

    /// How many rows are still to be asked for: one more than fits says that there are more.
    pub(crate) fn wanted(&self) -> usize {
        self.rows_max.saturating_add(1).saturating_sub(self.rows.len()).saturating_add(self.skip)
    }

    /// # Errors
    /// When so much is read in vain that reading on is not worth it.
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
