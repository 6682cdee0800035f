//! PostgreSQL's errors as tool errors: this server's description of the SQLSTATE, then the database's own message as a
//! detail.

use crate::wire::ServerError;
use linchpin_kit::{ErrorKind, ToolError};

const LIMITED: ErrorKind = ErrorKind::Limited { retry_after: None };
const UPSTREAM: ErrorKind = ErrorKind::Upstream { status: None };

/// The tool error for an error of the database.
pub(crate) fn failure(error: &ServerError) -> ToolError {
    let (what, kind, hint) = explained(&error.code);
    let place = error.position.map(|at| format!(", at character {at}")).unwrap_or_default();
    ToolError::new(format!("The statement failed: {what} (SQLSTATE {}{place})", error.code))
        .kind(kind)
        .hint(hint)
        .detail(error.quoted())
}

/// The error when COMMIT was sent and its outcome is unknown.
pub(crate) fn unknown_outcome(why: &str) -> ToolError {
    ToolError::new(format!("{why} It is unknown whether the change was made."))
        .kind(UPSTREAM)
        .hint("Check with a SELECT before you repeat it.")
}

/// Describes an SQLSTATE and how to fix its cause.
fn explained(code: &str) -> (&'static str, ErrorKind, &'static str) {
    use ErrorKind::{Conflict, Denied, Invalid, NotFound, Timeout};
    const VALUE: &str = "Correct the value; pass values as params instead of literals in sql.";
    const AGAIN: &str = "Correct the statement and try again.";
    match code {
        "57014" => (
            "it was cancelled or timed out",
            Timeout,
            "Narrow it: fewer rows, an indexed condition, LIMIT; pg_explain returns the plan.",
        ),
        "55P03" => ("a lock is held by another session", Conflict, "Try again in a moment."),
        "40001" | "40P01" => ("it conflicts with another transaction", Conflict, "Try again."),
        "42P01" | "3F000" => (
            "the relation or schema does not exist",
            NotFound,
            "pg_list_objects lists the objects; names with capitals need double quotes.",
        ),
        "42703" => (
            "the column does not exist",
            NotFound,
            "pg_describe lists the columns; names with capitals need double quotes.",
        ),
        "42883" => (
            "no such function or operator for these types",
            NotFound,
            "A cast may be missing; pg_list_objects with kind=function lists the functions.",
        ),
        "42704" => ("an object does not exist", NotFound, AGAIN),
        "42701" | "42710" | "42723" | "42P06" | "42P07" => ("it already exists", Conflict, AGAIN),
        "42501" => ("permission denied", Denied, "The role of this server lacks the privilege."),
        "25006" => ("the transaction is read-only", Denied, "This server is read-only."),
        "42601" => ("syntax error", Invalid, "Correct the syntax near the position."),
        "42P18" | "42804" => {
            ("types do not fit", Invalid, "Specify the type of a parameter with a cast, for example $1::int.")
        }
        "08P01" => ("wrong params", Invalid, "Pass one item in params for each of $1, $2, …"),
        "22001" => ("a string is too long for its column", Invalid, VALUE),
        "22003" => ("a number is out of range", Invalid, VALUE),
        "22007" | "22008" => ("a date or time is invalid or out of range", Invalid, VALUE),
        "22012" => ("division by zero", Invalid, "Use NULLIF on the divisor."),
        "22P02" => ("a string is not a valid value of its type", Invalid, VALUE),
        "23502" => ("a column must not be NULL", Invalid, VALUE),
        "23503" => ("a foreign key constraint is violated", Conflict, AGAIN),
        "23505" => ("a unique value exists already", Conflict, AGAIN),
        "23514" => ("a check constraint is violated", Invalid, VALUE),
        "2BP01" => ("other objects depend on it", Conflict, AGAIN),
        "55000" => (
            "an object is not in the state that this needs",
            Conflict,
            "If a library must be preloaded, an administrator must add it to shared_preload_libraries and restart \
             PostgreSQL.",
        ),
        "P0001" => ("a function or trigger of the database raised an error", Invalid, AGAIN),
        code => match code.get(..2).unwrap_or_default() {
            "22" => ("a value is invalid", Invalid, VALUE),
            "23" => ("a constraint is violated", Conflict, AGAIN),
            "28" => ("the login was refused", Denied, "The operator of this server has to look at this."),
            "53" | "54" => {
                ("the database is out of resources, or a limit was reached", LIMITED, "Try again later, or narrow it.")
            }
            "57" | "58" | "XX" | "08" => ("the database has a problem", UPSTREAM, "Try again in a moment."),
            _ => ("the database rejected the statement", Invalid, AGAIN),
        },
    }
}
