//! The rules for statements in write mode.

use super::lexer::tokens;
use super::rules::{leading, single};
use linchpin_kit::ToolError;

/// Statements that would end or escape the transaction, or that only make sense in a session.
const NOT_WRITABLE: [&str; 20] = [
    "abort",
    "begin",
    "close",
    "commit",
    "copy",
    "deallocate",
    "declare",
    "discard",
    "end",
    "execute",
    "fetch",
    "listen",
    "load",
    "move",
    "prepare",
    "release",
    "rollback",
    "savepoint",
    "start",
    "unlisten",
];

/// The length of a statement in write mode.
pub(crate) fn writable(sql: &str) -> Result<usize, ToolError> {
    let tokens = tokens(sql)?;
    let (tokens, length) = single(&tokens, sql.len())?;
    let word = leading(tokens);
    if NOT_WRITABLE.contains(&word) {
        return Err(ToolError::denied(format!("{} is not allowed.", word.to_uppercase()))
            .hint("Every call is its own transaction, without session state."));
    }
    Ok(length)
}
