//! SQL: its tokens, the rules for read-only statements, and this server's own queries.
//!
//! Our own queries run on the role's search path, because they ask what names mean on it and because PostgreSQL
//! abbreviates names according to it. So they qualify every operator, type, function and relation: somebody may have
//! placed another one earlier on the path. Operators written as `OPERATOR(…)` all have the same precedence and are
//! left-associative, so `a = b || c` needs parentheses. `tests/it/shadowed.rs` checks all queries.

pub(crate) mod functions;
pub(crate) mod lexer;
pub(crate) mod rules;
pub(crate) mod write;

/// The role: whether it is a superuser, belongs to a dangerous role, owns data or may read protected settings; the
/// server's version and encoding. The login role counts too, because a session can return to it.
pub(crate) const WHO: &str = include_str!("who.sql");

/// Pins the settings that the guarantees rely on, for this transaction: a pooler in between need not keep any. JIT is
/// off, because compiling our own queries would take longer than running them. $1 to $3 are timeouts, $4 is the search
/// path (NULL: the role's), and $5 a schema to put before it, or NULL.
pub(crate) const SETTINGS: &str = include_str!("settings.sql");

/// The functions that a statement names; see [`functions::Function`]. Parameters: schemas and names before a
/// parenthesis, names after a dot, operators, whether `OPERATOR(…)` occurs, and [`functions::denied_functions`].
/// PostgreSQL's own immutable and stable functions are omitted unless denied. The functions that the server creates for
/// each range type count as its own. Functions that take `cstring` (2275) or `internal` (2281) are raw: `array_in` and
/// the like create a value of any type by its OID.
pub(crate) const FUNCTIONS: &str = include_str!("functions.sql");

/// The schemas among the names ($1) that are not allowed ($2).
pub(crate) const FOREIGN_SCHEMAS: &str = include_str!("foreign_schemas.sql");

/// For types: OID, modifier, name, the element separator (of arrays) and the element type.
pub(crate) const TYPES: &str = include_str!("types.sql");

/// The schema of an extension ($1).
pub(crate) const EXTENSION: &str = include_str!("extension.sql");

/// $1: the schemas that may be read; empty means all but the system's. PostgreSQL's comment functions are written in
/// SQL and resolve operators on the search path before version 14.
pub(crate) const LIST_SCHEMAS: &str = include_str!("list_schemas.sql");

/// $1 as above, $2 a schema, $3 part of the name, $4 limit, $5 offset, $6 kinds.
pub(crate) const LIST_OBJECTS: &str = include_str!("list_objects.sql");

/// As above, without kinds.
pub(crate) const LIST_FUNCTIONS: &str = include_str!("list_functions.sql");

/// $1 as above, $2 a schema or NULL for the search path, $3 the name. Returns the object, its lists, and a view's
/// definition.
pub(crate) const DESCRIBE: &str = include_str!("describe.sql");

/// $1 as above.
pub(crate) const HEALTH: &str = include_str!("health.sql");

/// Without ORDER BY and LIMIT; $1 is meant for the limit. `extension` stands for the extension's schema. The columns
/// had other names before version 13.
pub(crate) const TOP_QUERIES: &str = include_str!("top_queries.sql");

/// $1 the schemas that may be read (empty: all but the system's), $2 limit. Tables of `public` come first.
pub(crate) const LIST_TABLES: &str = include_str!("list_tables.sql");

/// $1 schema, $2 table. Types have the names of information_schema, which does not cover materialized views.
pub(crate) const COLUMNS: &str = include_str!("columns.sql");
