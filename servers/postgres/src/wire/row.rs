//! Rows as they arrive from the server.

use bytes::Bytes;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::DataRowBody;
use std::borrow::Cow;
use std::io;

/// A row: its text, and the position of each cell.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    buffer: Bytes,
    cells: Vec<Option<(usize, usize)>>,
}

impl Row {
    /// # Errors
    /// When the message is incomplete.
    pub(crate) fn new(body: &DataRowBody) -> io::Result<Self> {
        let cells = body.ranges().map(|range| Ok(range.map(|range| (range.start, range.end)))).collect()?;
        Ok(Self { buffer: body.buffer_bytes().clone(), cells })
    }

    /// The number of cells.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// The text of a cell; `None` is NULL. Invalid UTF-8, which SQL_ASCII databases may send, is replaced.
    pub(crate) fn cell(&self, at: usize) -> Option<Cow<'_, str>> {
        let (start, end) = (*self.cells.get(at)?)?;
        Some(String::from_utf8_lossy(&self.buffer[start..end]))
    }

    /// The text of a cell; empty for NULL.
    pub(crate) fn text(&self, at: usize) -> String {
        self.cell(at).unwrap_or_default().into_owned()
    }

    /// Whether a boolean cell is true.
    pub(crate) fn is_true(&self, at: usize) -> bool {
        self.cell(at).as_deref() == Some("t")
    }

    /// The length of its text in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.buffer.len()
    }
}
