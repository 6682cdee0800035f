//! SQL: its tokens, what a statement may be in read-only mode, and this server's own queries.
//!
//! The own queries run on the role's search path, because they are asked what names mean on it, and because PostgreSQL
//! shortens names by it. So every operator, type, function and relation in them is written with its schema: somebody
//! may have put another one earlier on the path. Operators written so bind alike and from the left, so that
//! `a = b || c` needs parentheses. `tests/it/shadowed.rs` holds all of them to that.

pub(crate) mod functions;
pub(crate) mod lexer;
pub(crate) mod rules;
pub(crate) mod write;

/// What the role is: superuser, which of the dangerous roles it belongs to, whether it owns data, whether it may read
/// protected settings; the server's version and encoding. The role of the login counts too: it can be returned to.
pub(crate) const WHO: &str = include_str!("who.sql");

/// Pins what the rest relies on, for this transaction. A pooler between us and the server need not keep anything.
/// Compiling the own queries would take longer than answering them. $1 to $3 are timeouts, $4 the search path, or
/// nothing for the role's, and $5 a schema before it, or nothing.
pub(crate) const SETTINGS: &str = include_str!("settings.sql");

/// The functions that a statement names; see [`functions::Function`]. Parameters: schemas and names before a
/// parenthesis, names after a dot, operators, whether `OPERATOR(…)` occurs, and
/// [`functions::denied_functions`]. PostgreSQL's own immutable and stable functions are left out, unless denied. Those
/// that the server makes for each type of ranges are its own too. What takes `cstring` (2275) or `internal` (2281) is
/// raw: `array_in` and its kin make a value of any type whose number they are given.
pub(crate) const FUNCTIONS: &str = include_str!("functions.sql");

/// Which of the names ($1) are schemas that are not allowed ($2).
pub(crate) const FOREIGN_SCHEMAS: &str = include_str!("foreign_schemas.sql");

/// Number, modifier, name, what separates elements (of arrays), and the elements' type, of types.
pub(crate) const TYPES: &str = include_str!("types.sql");

/// The schema of an extension ($1).
pub(crate) const EXTENSION: &str = include_str!("extension.sql");

/// $1: the schemas that may be read; empty means all but the system's. PostgreSQL's functions for comments are written
/// in SQL, and find operators on the search path before version 14.
pub(crate) const LIST_SCHEMAS: &str = include_str!("list_schemas.sql");

/// $1 as above, $2 one schema, $3 part of the name, $4 how many, $5 from where, $6 kinds.
pub(crate) const LIST_OBJECTS: &str = include_str!("list_objects.sql");

/// As above, without kinds.
pub(crate) const LIST_FUNCTIONS: &str = include_str!("list_functions.sql");

/// $1 as above, $2 a schema or nothing for the search path, $3 the name. An object, its lists, and the definition of a
/// view.
pub(crate) const DESCRIBE: &str = include_str!("describe.sql");

/// $1 as above.
pub(crate) const HEALTH: &str = include_str!("health.sql");

/// Without an order and a limit, for which parameter 1 is; `extension` stands for the extension's schema. Its columns
/// had other names before version 13.
pub(crate) const TOP_QUERIES: &str = include_str!("top_queries.sql");

/// $1 the schemas that may be read (empty: all but the system's), $2 how many. Those of `public` come first.
pub(crate) const LIST_TABLES: &str = include_str!("list_tables.sql");

/// $1 schema, $2 table. Types are named as information_schema names them, which does not have materialized views.
pub(crate) const COLUMNS: &str = include_str!("columns.sql");
