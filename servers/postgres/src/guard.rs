//! What a statement may be in read-only mode.
//!
//! A READ ONLY transaction is not a boundary: a superuser's `COPY … TO PROGRAM`, `pg_read_file`, `lo_import`, `dblink`,
//! advisory locks, replication slots and much more run in one. So statements are vetted before the server sees them,
//! and the vetting must not depend on a grammar that could disagree with the server's:
//!
//! 1. [`crate::lex`] cuts the text into the server's own tokens; what versions read differently is refused.
//! 2. [`read`] looks at tokens only. Every rule is one that holds whatever the grammar makes of them: one statement; it
//!    begins with SELECT, WITH, VALUES, TABLE, EXPLAIN or SHOW (nothing else in SQL's grammar can contain another kind
//!    of statement behind these, except INSERT, UPDATE, DELETE and MERGE, which are refused as bare words anywhere, and
//!    INTO and locking clauses, likewise); EXPLAIN has only options that do not execute, however they are quoted.
//! 3. It collects every token that could make the server call a function. There are few ways to call one in SQL:
//!    - a name before `(`: functions, aggregates, window functions, casts in functional form, TABLESAMPLE methods;
//!    - a name after `.`: `row.f` means `f(row)` where `f` takes one argument;
//!    - operators, spelled out, in `OPERATOR(…)`, or implied by a keyword (LIKE, IN, BETWEEN, CASE, …);
//!    - casts, explicit or implicit, and the checks of domains that values are converted to;
//!    - `TREAT(x AS f)`, which calls `f`, and is refused;
//!    - what the relations named do on their own: views, row security policies.
//!
//! The functions behind keywords (`EXTRACT`, `POSITION`, `AT TIME ZONE`, …) are always those of `pg_catalog` that the
//! grammar names; they are harmless.
//! 4. [`CHECK`] asks the server, in the statement's own transaction and with its `search_path`, which functions all of
//!   these can mean; views, policies, domains and defaults of arguments are followed through the trees that the
//!   catalogue stores, which name by number, aggregates to the functions they consist of, and functions to the types
//!   they take and give. [`judge`] allows a function by what it is, not by what it is not: one of PostgreSQL's own that
//!   is immutable or stable, or on the list of harmless volatile ones; one of an extension known to be harmless; one in
//!   a trusted language that its author declared immutable or stable and that does not run with its owner's rights.
//!   Everything else is refused with a message that names it and `--allow-functions`.
//!
//! Where in doubt, more is refused than must be. What this cannot see is what the database's owner vouches for: a
//! function declared STABLE that is not, a foreign table. The other layers (READ ONLY transaction, unprivileged role,
//! timeouts, row and byte limits, reset of the session) hold regardless.

use crate::cell::{Row, texts};
use crate::lex::{Kind, Token, implied, ours, tokens};
use crate::tools::slip;
use crate::wire::Value;
use linchpin_kit::ToolError;
use std::sync::LazyLock;

/// What a statement is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Statement {
    /// SELECT, WITH, VALUES, TABLE.
    Query,
    /// EXPLAIN of one of these, without executing it.
    Explain,
    /// SHOW of this setting (`all` for SHOW ALL).
    Show(String),
}

/// A statement that passed the rules about tokens, and what the catalogue must be asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) statement: Statement,
    /// Bytes of the text without the semicolons at its end.
    pub(crate) length: usize,
    /// Names before `(`, each with the schema written before it, or nothing.
    pub(crate) called: Vec<(String, String)>,
    /// Names after `.`
    pub(crate) dotted: Vec<String>,
    /// Names before `.`
    pub(crate) qualifiers: Vec<String>,
    pub(crate) operators: Vec<String>,
    /// Whether it has `OPERATOR(…)`.
    pub(crate) operator_syntax: bool,
    /// Whether it has `::` or CAST.
    pub(crate) casts: bool,
    /// Every name, whatever it may stand for.
    pub(crate) names: Vec<String>,
    /// Whether an unquoted name has letters beyond ASCII, which the server folds by its own encoding.
    pub(crate) folded: bool,
}

/// Relations that hold secrets, or show files: a role that can read them should not through here.
const DENIED_RELATIONS: [&str; 10] = [
    "pg_authid",
    "pg_shadow",
    "pg_user_mapping",
    "pg_user_mappings",
    "pg_subscription",
    "pg_largeobject",
    "pg_hba_file_rules",
    "pg_ident_file_mappings",
    "pg_file_settings",
    "pg_statistic_ext_data",
];

/// With `--schemas`: relations that show data or statements of other schemas.
const DENIED_WITH_SCHEMAS: [&str; 8] = [
    "pg_stats",
    "pg_stats_ext",
    "pg_stats_ext_exprs",
    "pg_statistic",
    "pg_stat_activity",
    "pg_stat_statements",
    "pg_prepared_statements",
    "pg_cursors",
];

/// PostgreSQL's own functions that are declared stable or immutable and refused all the same: they run SQL that comes
/// as text or by the name of a relation, consume transaction numbers, call the input function of a type named in a
/// text, or read the body of a function, and with it the values of types that stand there.
const DENIED_FUNCTIONS: &str = "current_setting cursor_to_xml cursor_to_xmlschema database_to_xml database_to_xml_and_xmlschema database_to_xmlschema \
    fmgr_c_validator fmgr_internal_validator fmgr_sql_validator pg_current_xact_id pg_input_error_info pg_input_is_valid pg_show_all_settings query_to_xml query_to_xml_and_xmlschema \
    query_to_xmlschema schema_to_xml schema_to_xml_and_xmlschema schema_to_xmlschema table_to_xml \
    table_to_xml_and_xmlschema table_to_xmlschema ts_stat txid_current";

/// Of these, the two that are refused only to roles that may read protected settings.
const PROTECTED_SETTINGS: [&str; 2] = ["current_setting", "pg_show_all_settings"];

/// With `--schemas`: PostgreSQL's own functions, of any of its versions, that show what other sessions do or did, or
/// values of other schemas, also where a view calls them. What the catalogue says of other schemas is not hidden, so
/// that functions that only say that in other words are not here.
const OTHERS_FUNCTIONS: &str = "pg_blocking_pids pg_cursor pg_get_sequence_data pg_listening_channels pg_lock_status pg_mcv_list_items \
    pg_prepared_statement pg_prepared_xact pg_safe_snapshot_blocking_pids pg_sequence_last_value pg_stat_get_activity \
    pg_stat_get_backend_activity pg_stat_get_backend_activity_start pg_stat_get_backend_client_addr \
    pg_stat_get_backend_client_port pg_stat_get_backend_dbid pg_stat_get_backend_idset pg_stat_get_backend_pid \
    pg_stat_get_backend_start pg_stat_get_backend_subxact pg_stat_get_backend_userid pg_stat_get_backend_wait_event \
    pg_stat_get_backend_wait_event_type pg_stat_get_backend_xact_start pg_stat_get_progress_info pg_stat_get_subscription \
    pg_stat_get_wal_receiver pg_stat_get_wal_senders";

/// Functions of harmless extensions that are not: they run a statement put together from texts. With `--schemas` also
/// those that show statements, or values of relations that are named in a text.
const DENIED_OF_EXTENSIONS: &str = "find_extent st_find_extent st_findextent";
const OTHERS_OF_EXTENSIONS: &str = "_postgis_index_extent pg_stat_statements st_estimated_extent st_estimatedextent";

/// PostgreSQL's own volatile functions that only read.
const HARMLESS_VOLATILE: &str = "array_sample array_shuffle bernoulli clock_timestamp current_query gen_random_uuid pg_blocking_pids \
    pg_collation_actual_version pg_current_wal_flush_lsn pg_current_wal_insert_lsn pg_current_wal_lsn \
    pg_database_collation_actual_version pg_database_size pg_get_sequence_data pg_indexes_size pg_is_in_recovery \
    pg_is_wal_replay_paused pg_jit_available pg_last_committed_xact pg_last_wal_receive_lsn pg_last_wal_replay_lsn \
    pg_last_xact_replay_timestamp pg_lock_status pg_notification_queue_usage pg_partition_ancestors pg_partition_tree \
    pg_prepared_xact pg_relation_size pg_safe_snapshot_blocking_pids pg_sequence_last_value pg_stat_get_recovery_prefetch \
    pg_stat_get_xact_blocks_fetched pg_stat_get_xact_blocks_hit pg_stat_get_xact_numscans pg_stat_get_xact_tuples_deleted \
    pg_stat_get_xact_tuples_fetched pg_stat_get_xact_tuples_inserted pg_stat_get_xact_tuples_returned \
    pg_stat_get_xact_tuples_updated pg_table_size pg_tablespace_size pg_total_relation_size random random_normal system \
    timeofday timezone uuidv4 uuidv7";

/// Extensions whose functions in C do nothing but compute, with those of their volatile functions that do too.
const HARMLESS_EXTENSIONS: [(&str, &[&str]); 27] = [
    ("bloom", &[]),
    ("btree_gin", &[]),
    ("btree_gist", &[]),
    ("citext", &[]),
    ("cube", &[]),
    ("dict_int", &[]),
    ("dict_xsyn", &[]),
    ("earthdistance", &[]),
    ("fuzzystrmatch", &[]),
    ("h3", &[]),
    ("hstore", &[]),
    ("intagg", &[]),
    ("intarray", &[]),
    ("ip4r", &[]),
    ("isn", &[]),
    ("ltree", &[]),
    ("pg_stat_statements", &["pg_stat_statements", "pg_stat_statements_info"]),
    ("pg_trgm", &[]),
    ("pgcrypto", &["gen_random_bytes", "gen_random_uuid", "gen_salt"]),
    ("postgis", &[]),
    ("prefix", &[]),
    ("seg", &[]),
    ("tsm_system_rows", &["system_rows"]),
    ("tsm_system_time", &["system_time"]),
    ("unaccent", &[]),
    ("uuid-ossp", &["uuid_generate_v1", "uuid_generate_v1mc", "uuid_generate_v4"]),
    ("vector", &[]),
];

/// Options of EXPLAIN that do not execute the statement.
const EXPLAIN_OPTIONS: [&str; 10] =
    ["verbose", "costs", "settings", "generic_plan", "buffers", "summary", "memory", "format", "timing", "wal"];

/// Settings that anybody may be shown.
const PLAIN_SETTINGS: &str = "bytea_output client_encoding datestyle default_transaction_isolation default_transaction_read_only \
    effective_cache_size enable_seqscan idle_in_transaction_session_timeout in_hot_standby integer_datetimes intervalstyle \
    is_superuser jit lc_collate lc_ctype lock_timeout maintenance_work_mem max_connections random_page_cost search_path \
    server_encoding server_version server_version_num shared_buffers standard_conforming_strings statement_timeout \
    timezone transaction_isolation transaction_read_only work_mem";

/// Whether a name is in one of these lists.
fn is_in(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

/// PostgreSQL's own functions that are refused although they are immutable or stable.
fn denied_functions(schemas_limited: bool) -> String {
    let others = if schemas_limited { OTHERS_FUNCTIONS } else { "" };
    texts(DENIED_FUNCTIONS.split_ascii_whitespace().chain(others.split_ascii_whitespace()))
}

/// The rules about tokens.
///
/// # Errors
/// When the statement is not one of those that only read, in words that say what to do instead.
pub(crate) fn read(sql: &str, schemas_limited: bool) -> Result<Seen, ToolError> {
    let tokens = tokens(sql)?;
    let (tokens, length) = single(&tokens, sql.len())?;
    let statement = statement(tokens)?;
    if !matches!(statement, Statement::Show(_)) {
        clauses(tokens)?;
    }
    allowed(collect(tokens, statement, length), schemas_limited)
}

/// The rules about the text of an index to imagine: the server parses it like any other, and computes what is constant
/// in it.
///
/// # Errors
/// When it is not CREATE INDEX, or something that [`read`] would not allow either.
pub(crate) fn index(sql: &str, schemas_limited: bool) -> Result<Seen, ToolError> {
    let tokens = tokens(sql)?;
    let (tokens, length) = single(&tokens, sql.len())?;
    let unique = usize::from(tokens.get(1).is_some_and(|t| t.is_word("unique")));
    if !tokens[0].is_word("create") || !tokens.get(1 + unique).is_some_and(|t| t.is_word("index")) {
        return Err(ToolError::new("A hypothetical index is not a CREATE INDEX statement.")
            .hint("For example CREATE INDEX ON orders (customer)."));
    }
    clauses(tokens)?;
    allowed(collect(tokens, Statement::Query, length), schemas_limited)
}

impl Seen {
    /// Adds what another statement names, so that the catalogue is asked about both.
    pub(crate) fn add(&mut self, other: Seen) {
        self.called.extend(other.called);
        self.dotted.extend(other.dotted);
        self.qualifiers.extend(other.qualifiers);
        self.operators.extend(other.operators);
        self.names.extend(other.names);
        self.operator_syntax |= other.operator_syntax;
        self.casts |= other.casts;
        self.folded |= other.folded;
    }
}

/// The rules about names.
fn allowed(seen: Seen, schemas_limited: bool) -> Result<Seen, ToolError> {
    let denied = DENIED_RELATIONS.iter().chain(DENIED_WITH_SCHEMAS.iter().filter(|_| schemas_limited));
    for relation in denied {
        if seen.names.iter().any(|name| name == relation) {
            return Err(ToolError::new(format!("{relation} is not allowed: it exposes secrets or data of others."))
                .hint("Omit it; rename your own object if it has the same name."));
        }
    }
    if let Some((schema, name)) = seen.called.iter().find(|(schema, _)| schema.starts_with("pg_temp")) {
        return Err(ToolError::new(format!("{schema}.{name} is not allowed: temporary functions cannot be vetted."))
            .hint("Use a permanent function."));
    }
    Ok(seen)
}

/// The tokens without the semicolons at their end, and how many bytes of text these are.
///
/// # Errors
/// When there is no statement, or more than one.
pub(crate) fn single(tokens: &[Token], bytes: usize) -> Result<(&[Token], usize), ToolError> {
    let count = tokens.iter().rposition(|t| !t.is_mark(";")).map_or(0, |last| last + 1);
    let length = tokens.get(count).map_or(bytes, |semicolon| semicolon.at);
    let tokens = &tokens[..count];
    if tokens.is_empty() {
        return Err(ToolError::new("sql contains no statement.").hint("Pass one SELECT statement."));
    }
    if tokens.iter().any(|t| t.is_mark(";")) {
        return Err(ToolError::new("Only one statement is allowed in a call.")
            .hint("Call the tool once per statement; a semicolon is allowed only at the end."));
    }
    Ok((tokens, length))
}

fn statement(tokens: &[Token]) -> Result<Statement, ToolError> {
    let first = &tokens[0];
    if first.is_word("show") {
        return show(tokens);
    }
    if first.is_word("explain") {
        let rest = explain_options(&tokens[1..])?;
        return match leading(rest) {
            "select" | "with" | "values" | "table" => Ok(Statement::Explain),
            other => Err(slip(other).unwrap_or_else(|| {
                ToolError::new(format!("EXPLAIN of {} is not allowed in read-only mode.", other.to_uppercase()))
                    .hint("Explain a SELECT that reads the same rows.")
            })),
        };
    }
    match leading(tokens) {
        "select" | "with" | "values" | "table" => Ok(Statement::Query),
        other => Err(slip(other).unwrap_or_else(|| refused_statement(other))),
    }
}

/// The keyword that a statement begins with, behind opening parentheses.
pub(crate) fn leading(tokens: &[Token]) -> &str {
    let first = tokens.iter().find(|t| !t.is_mark("("));
    first.filter(|t| t.kind == Kind::Word).map_or("", |t| t.text.as_str())
}

fn refused_statement(word: &str) -> ToolError {
    let hint = match word {
        "copy" => "Select the rows instead; COPY accesses files and programs.",
        "set" | "reset" => "Only the operator can change settings; use SHOW to read one.",
        "lock" => "Locks block others; a SELECT sees a consistent snapshot without one.",
        "call" | "do" => "Read-only mode does not run code; use SELECT.",
        "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint" | "release" => {
            "Every call is its own transaction."
        }
        "declare" | "fetch" | "prepare" | "execute" => "Pass the SELECT itself; use params and max_rows.",
        "listen" | "notify" | "unlisten" => "Notifications are not supported.",
        "" => "Start with SELECT, WITH, VALUES, TABLE, EXPLAIN or SHOW.",
        _ => "This server is read-only. The operator can allow writing with --access-mode write.",
    };
    let what = if word.is_empty() { "This".to_owned() } else { word.to_uppercase() };
    ToolError::new(format!("{what} is not allowed in read-only mode.")).hint(hint)
}

/// What follows the options of EXPLAIN.
fn explain_options(mut tokens: &[Token]) -> Result<&[Token], ToolError> {
    let refuse = |option: &str| {
        Err(ToolError::new(format!("EXPLAIN with {} is not allowed in read-only mode.", option.to_uppercase()))
            .hint("EXPLAIN without ANALYZE returns the plan without running the statement."))
    };
    if tokens.first().is_some_and(|t| t.is_mark("("))
        && !matches!(leading(tokens), "select" | "with" | "values" | "table")
    {
        let end = tokens.iter().position(|t| t.is_mark(")")).unwrap_or(tokens.len());
        for option in tokens[1..end].split(|t| t.is_mark(",")) {
            let name = option.first().and_then(Token::name).unwrap_or_default();
            if !EXPLAIN_OPTIONS.contains(&name) || option.len() > 2 {
                return refuse(name);
            }
        }
        return Ok(tokens.get(end + 1..).unwrap_or_default());
    }
    while let Some(word) = tokens.first() {
        match word.text.as_str() {
            "verbose" if word.kind == Kind::Word => tokens = &tokens[1..],
            "analyze" | "analyse" if word.kind == Kind::Word => return refuse("analyze"),
            _ => break,
        }
    }
    Ok(tokens)
}

fn show(tokens: &[Token]) -> Result<Statement, ToolError> {
    let mut name = String::new();
    for token in &tokens[1..] {
        match token.kind {
            Kind::Word | Kind::Quoted => {
                if !name.is_empty() && !name.ends_with('.') {
                    name.push(' ');
                }
                name.push_str(&token.text.to_ascii_lowercase());
            }
            Kind::Mark if token.text == "." => name.push('.'),
            _ => {
                return Err(
                    ToolError::new("SHOW takes the name of one setting.").hint("For example SHOW server_version.")
                );
            }
        }
    }
    let name = match name.as_str() {
        "time zone" => "timezone",
        "transaction isolation level" => "transaction_isolation",
        name => name,
    };
    Ok(Statement::Show(name.to_owned()))
}

/// Words that do not belong in what only reads, wherever they stand.
fn clauses(tokens: &[Token]) -> Result<(), ToolError> {
    for (at, token) in tokens.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word) {
        let next = tokens.get(at + 1);
        let next_is = |words: &[&str]| next.is_some_and(|t| words.iter().any(|word| t.is_word(word)));
        match token.text.as_str() {
            word @ ("insert" | "update" | "delete" | "merge") => {
                // As part of a locking clause it gets the clearer message.
                if !(at > 0 && ["for", "key"].iter().any(|word| tokens[at - 1].is_word(word))) {
                    let upper = word.to_uppercase();
                    return Err(ToolError::new(format!(
                        "{upper} is not allowed in read-only mode, also not inside WITH."
                    ))
                    .hint(format!("If it is the name of a column or table, quote it: \"{word}\".")));
                }
                return Err(locking());
            }
            "into" => {
                return Err(ToolError::new("SELECT … INTO is not allowed in read-only mode: it creates a table.")
                    .hint("Omit INTO; the result contains the rows."));
            }
            "for" if next_is(&["update", "no", "share", "key"]) => return Err(locking()),
            "treat" if next.is_some_and(|t| t.is_mark("(")) => {
                return Err(ToolError::new("TREAT is not allowed: it calls a function by the name of a type.")
                    .hint("Use CAST(… AS …)."));
            }
            _ => {}
        }
    }
    Ok(())
}

fn locking() -> ToolError {
    ToolError::new("FOR UPDATE and FOR SHARE are not allowed in read-only mode: they lock rows.")
        .hint("Omit the locking clause.")
}

fn collect(tokens: &[Token], statement: Statement, length: usize) -> Seen {
    let mut seen = Seen {
        statement,
        length,
        called: Vec::new(),
        dotted: Vec::new(),
        qualifiers: Vec::new(),
        operators: Vec::new(),
        operator_syntax: false,
        casts: false,
        names: Vec::new(),
        folded: false,
    };
    for (at, token) in tokens.iter().enumerate() {
        let before = |n: usize| at.checked_sub(n).map(|at| &tokens[at]);
        let is_mark = |token: Option<&Token>, mark: &str| token.is_some_and(|t| t.is_mark(mark));
        match token.kind {
            Kind::Operator => seen.operators.push(token.text.clone()),
            Kind::Mark if token.text == "::" => seen.casts = true,
            Kind::Word | Kind::Quoted => {
                let name = token.text.clone();
                let after_dot = is_mark(before(1), ".");
                if is_mark(tokens.get(at + 1), "(") {
                    let schema = before(2).filter(|_| after_dot).and_then(Token::name).unwrap_or_default();
                    seen.called.push((schema.to_owned(), name.clone()));
                }
                if after_dot {
                    seen.dotted.push(name.clone());
                }
                if is_mark(tokens.get(at + 1), ".") {
                    seen.qualifiers.push(name.clone());
                }
                if token.kind == Kind::Word {
                    seen.operators.extend(implied(&name).iter().map(|&operator| operator.to_owned()));
                    seen.casts |= name == "cast";
                    seen.operator_syntax |= name == "operator";
                    seen.folded |= !name.is_ascii();
                }
                seen.names.push(name);
            }
            _ => {}
        }
    }
    for list in [&mut seen.dotted, &mut seen.qualifiers, &mut seen.operators, &mut seen.names] {
        list.sort_unstable();
        list.dedup();
    }
    seen.called.sort_unstable();
    seen.called.dedup();
    seen
}

/// Whether [`CHECK`] could answer anything, or a schema is named that is not allowed: cheap, and yes for every
/// statement it has an answer for. Parameters: names called or after a dot, operators, all names, [`denied_functions`],
/// names before a dot where schemas are limited, and the schemas that are allowed.
///
/// [`CHECK`] answers functions that are not PostgreSQL's own, are volatile, denied or raw, and comes to them in these
/// ways only: by a name or an operator, whatever its schema; by the rule or the policy of a relation that is named and
/// visible; by the check of a domain, of which PostgreSQL's own only compare; by a cast that somebody made. Without any
/// of these a statement calls only PostgreSQL's own functions that are immutable or stable, and cannot leave anything
/// in the session. `OFFSET 0` has each row looked up by an index: catalogues are large, statements are short.
macro_rules! suspect {
    () => {
        r"(EXISTS (SELECT FROM pg_catalog.unnest($1::name[]) AS named(name) CROSS JOIN LATERAL (
    SELECT FROM pg_catalog.pg_proc p WHERE p.proname = named.name AND (p.oid >= 16384 OR p.provolatile = 'v'
      OR p.proname = ANY ($4::name[]) OR ('{2275,2281}'::oid[] && p.proargtypes::oid[])) OFFSET 0) AS p)
  OR EXISTS (SELECT FROM pg_catalog.unnest($2::name[]) AS named(name) CROSS JOIN LATERAL (
    SELECT o.oprcode FROM pg_catalog.pg_operator o WHERE o.oprname = named.name OFFSET 0) AS o CROSS JOIN LATERAL (
    SELECT FROM pg_catalog.pg_proc p WHERE p.oid = o.oprcode
    AND (p.oid >= 16384 OR p.provolatile = 'v' OR p.proname = ANY ($4::name[])) OFFSET 0) AS p)
  OR EXISTS (SELECT FROM pg_catalog.unnest($3::name[]) AS named(name) CROSS JOIN LATERAL (
    SELECT c.oid, c.relnamespace FROM pg_catalog.pg_class c WHERE c.relname = named.name OFFSET 0) AS c
    WHERE (EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid OFFSET 0)
      OR EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid OFFSET 0))
    AND (pg_catalog.pg_table_is_visible(c.oid)
      OR EXISTS (SELECT FROM pg_catalog.pg_namespace n WHERE n.oid = c.relnamespace AND n.nspname = ANY ($3::name[]) OFFSET 0)))
  OR EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.contypid > 0 AND k.oid >= 16384)
  OR EXISTS (SELECT FROM pg_catalog.pg_cast k WHERE k.castfunc <> 0 AND k.oid >= 16384)
  OR EXISTS (SELECT FROM pg_catalog.unnest($5::name[]) AS named(name) JOIN pg_catalog.pg_namespace n ON n.nspname = named.name
    WHERE NOT n.nspname = ANY ($6::name[] || '{pg_catalog,information_schema}'::name[])))"
    };
}

/// A text that is the same as before only if no transaction has ended since, and the names of the catalogue are found
/// on the same path: then `suspect!` has the same answer. Everything in the catalogue that it looks at is changed by
/// transactions that have a number, and a snapshot says which of these have ended. NULL, which is like nothing, on a
/// standby: there a snapshot does not say it.
macro_rules! mark {
    () => {
        r"(CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN
    pg_catalog.txid_current_snapshot()::text || ' ' || pg_catalog.current_schemas(true)::text END)"
    };
}

/// Asks both, with the parameters of `suspect!`.
pub(crate) static SUSPECT: LazyLock<String> = LazyLock::new(|| ours(concat!("SELECT ", suspect!(), ", ", mark!())));

/// Fails where the statement is suspect, so that the server skips what was sent behind it; the mark else. Parameters:
/// those of `suspect!`, and the mark under which the statement was not suspect.
pub(crate) static GATE: LazyLock<String> = LazyLock::new(|| {
    ours(concat!("SELECT ", mark!(), ", 1 / (CASE WHEN ", mark!(), " = $7 OR NOT ", suspect!(), " THEN 1 ELSE 0 END)"))
});

/// Which of the names ($1) are schemas that are not allowed ($2).
pub(crate) static FOREIGN_SCHEMAS: LazyLock<String> = LazyLock::new(|| {
    ours(
        r"
SELECT n.nspname::text FROM pg_catalog.pg_namespace n
WHERE n.nspname = ANY ($1::name[]) AND NOT n.nspname = ANY ($2::name[] || '{pg_catalog,information_schema}'::name[])",
    )
});

/// Asks the catalogue which functions a statement can mean. Parameters: schemas and names of what is called, names
/// after a dot, operators, whether `OPERATOR(…)` occurs, all names, whether casts occur, [`denied_functions`],
/// [`Seen::renders`]. PostgreSQL's own immutable and stable functions are left out, unless denied. Those that the
/// server makes for each type of ranges are its own too, and so is the cast that it makes (12 is the language of what
/// is built in). Before version 14 ranges have no types of several. What takes `cstring` (2275) or `internal` (2281) is
/// raw: `array_in` and its kin make a value of any type whose number they are given. Parts of aggregates (class `part`)
/// may be: the server calls them.
///
/// What is found leads on: relations, types and functions to the trees that are stored of them (views, policies, the
/// checks of domains, what arguments default to), and these to what they name by number; relations and types to the
/// types of their columns; types to casts where the statement names them, and to those to text, json and jsonb where it
/// has what looks for these on its own, as `||` and `to_json` do, or a tree could have it; functions to what aggregates
/// consist of, and to the types that they take and give, of which a domain is checked on the way. In a tree, an
/// operator counts by its own number: that of its function, beside it, is not what the server goes by.
pub(crate) static CHECK: LazyLock<String> = LazyLock::new(|| {
    ours(
        r"
WITH RECURSIVE found(class, oid, why) AS (
  SELECT named.class, named.oid, named.why FROM (
    SELECT 'relation', c.oid, '' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = ANY ($6::name[]) AND (pg_catalog.pg_table_is_visible(c.oid) OR n.nspname = ANY ($6::name[]))
    UNION ALL
    SELECT 'type', t.oid, '' FROM pg_catalog.pg_type t WHERE t.typname = ANY ($6::name[])
    UNION ALL
    SELECT 'function', p.oid, '' FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) AS c(schema, name)
    JOIN pg_catalog.pg_proc p ON p.proname = c.name::name
    WHERE CASE WHEN c.schema = '' THEN pg_catalog.pg_function_is_visible(p.oid)
      ELSE p.pronamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = c.schema::name) END
    UNION ALL
    SELECT 'function', p.oid, 'a name after a dot' FROM pg_catalog.pg_proc p
    WHERE p.proname = ANY ($3::name[]) AND p.pronargs > 0 AND p.pronargs - p.pronargdefaults <= 1
      AND pg_catalog.pg_function_is_visible(p.oid)
    UNION ALL
    SELECT 'operator', o.oid, 'operator ' || o.oprname FROM pg_catalog.pg_operator o
    WHERE o.oprname = ANY ($4::name[]) AND ($5::bool OR pg_catalog.pg_operator_is_visible(o.oid))
    UNION ALL
    SELECT 'cast', k.oid, '' FROM pg_catalog.pg_cast k WHERE k.oid >= 16384 AND (k.castcontext = 'i' OR $7::bool)
  ) AS named(class, oid, why)
  UNION
  SELECT part.class, part.oid, CASE WHEN found.why = '' THEN part.why ELSE found.why END FROM found CROSS JOIN LATERAL (
    SELECT CASE WHEN m.x[1] = 'relid' THEN 'relation' WHEN m.x[1] ~ 'type$' THEN 'value' WHEN m.x[1] = 'opno' THEN 'operator'
      ELSE 'function' END, m.x[2]::oid, tree.why
    FROM (
      SELECT r.ev_action::text, 'view ' || c.relname FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
      WHERE found.class = 'relation' AND r.ev_class = found.oid AND r.ev_type = '1'
      UNION ALL
      SELECT p.polqual::text, 'row security of ' || c.relname FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class c ON c.oid = p.polrelid
      WHERE found.class = 'relation' AND p.polrelid = found.oid
      UNION ALL
      SELECT k.conbin::text, 'the domain ' || t.typname FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_type t ON t.oid = k.contypid
      WHERE found.class = ANY ('{type,value}') AND k.contypid = found.oid
      UNION ALL
      SELECT p.proargdefaults::text, '' FROM pg_catalog.pg_proc p WHERE found.class = 'function' AND p.oid = found.oid
    ) AS tree(text, why)
    CROSS JOIN LATERAL pg_catalog.regexp_matches(
      tree.text, ':(relid|[a-z]*type|opno|funcid|aggfnoid|winfnoid|tsmhandler) ([0-9]+)', 'g') AS m(x)
    WHERE NOT (m.x[1] ~ 'type$' AND m.x[2]::oid < 16384)
    UNION ALL
    SELECT 'value', c.reltype, '' FROM pg_catalog.pg_class c WHERE found.class = 'relation' AND c.oid = found.oid AND c.oid >= 16384
    UNION ALL
    SELECT found.class, pg_catalog.unnest(ARRAY[t.typbasetype, t.typelem]), '' FROM pg_catalog.pg_type t
    WHERE found.class = ANY ('{type,value}') AND t.oid = found.oid
    UNION ALL
    SELECT found.class, a.atttypid, '' FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid
    WHERE found.class = ANY ('{type,value}') AND t.oid = found.oid
    UNION ALL
    SELECT found.class, g.rngsubtype, '' FROM pg_catalog.pg_range g WHERE found.class = ANY ('{type,value}')
      AND (g.rngtypid = found.oid OR pg_catalog.to_jsonb(g) ->> 'rngmultitypid' = found.oid::text)
    UNION ALL
    SELECT 'cast', k.oid, '' FROM pg_catalog.pg_cast k WHERE k.oid >= 16384 AND (found.class = 'type' AND k.casttarget = found.oid
      OR found.class = ANY ('{type,value}') AND k.castsource = found.oid AND k.casttarget = ANY ('{25,114,3802}')
        AND ($9::bool OR found.why <> ''))
    UNION ALL
    SELECT 'function', p.oid, pg_catalog.format('the cast from %s to %s', k.castsource::regtype, k.casttarget::regtype)
    FROM pg_catalog.pg_cast k JOIN pg_catalog.pg_proc p ON p.oid = k.castfunc
    WHERE found.class = 'cast' AND k.oid = found.oid AND NOT (p.prolang = 12 AND p.prosrc = 'multirange_constructor1')
    UNION ALL
    SELECT 'function', o.oprcode, '' FROM pg_catalog.pg_operator o WHERE found.class = 'operator' AND o.oid = found.oid
    UNION ALL
    SELECT 'value', pg_catalog.unnest(p.proargtypes::oid[] || p.prorettype || p.proallargtypes), '' FROM pg_catalog.pg_proc p
    WHERE found.class = ANY ('{function,part}') AND p.oid = found.oid AND p.oid >= 16384
    UNION ALL
    SELECT 'part', pg_catalog.unnest(ARRAY[a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn,
      a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn]::oid[]), '' FROM pg_catalog.pg_aggregate a
    WHERE found.class = 'function' AND a.aggfnoid = found.oid AND found.oid >= 16384
  ) AS part(class, oid, why)
), every(oid, why, named) AS (
  SELECT DISTINCT found.oid, found.why, found.class = 'function' FROM found WHERE found.class = ANY ('{function,part}')
)
SELECT DISTINCT every.why, n.nspname::text, p.proname::text, p.provolatile::text, l.lanpltrusted OR p.prokind = 'a'
    OR l.lanname = 'internal' AND p.prosrc ~ '^(multirange_constructor[0-2]|range_constructor[23])$', p.prosecdef,
  p.oid < 16384, coalesce(e.extname::text, ''), every.named AND ('{2275,2281}'::oid[] && p.proargtypes::oid[])
FROM every
JOIN pg_catalog.pg_proc p ON p.oid = every.oid
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
LEFT JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
WHERE p.oid >= 16384 OR p.provolatile = 'v' OR p.proname = ANY ($8::name[])
  OR every.named AND ('{2275,2281}'::oid[] && p.proargtypes::oid[])
ORDER BY 1, 2, 3",
    )
});

impl Seen {
    /// The parameters of [`SUSPECT`], where only these schemas are allowed; none means all.
    pub(crate) fn names(&self, allowed: &[String]) -> Vec<Value> {
        let called = self.called.iter().map(|(_, name)| name).chain(&self.dotted);
        let qualifiers: &[String] = if allowed.is_empty() { &[] } else { &self.qualifiers };
        let denied = denied_functions(!allowed.is_empty());
        let lists = [texts(called), texts(&self.operators), texts(&self.names), denied];
        lists.into_iter().chain([texts(qualifiers), texts(allowed)]).map(Some).collect()
    }

    /// Whether the statement may run, whatever the catalogue says: in a database of UTF-8, by a role that may read
    /// protected settings.
    ///
    /// # Errors
    /// When not, in words that say what to do instead.
    pub(crate) fn vet(&self, utf8: bool, protected_settings: bool) -> Result<(), ToolError> {
        if self.folded && !utf8 {
            return Err(
                ToolError::new("An unquoted name contains non-ASCII letters.").hint("Put the name in double quotes.")
            );
        }
        match &self.statement {
            Statement::Show(name) if protected_settings && !is_in(PLAIN_SETTINGS, name) => {
                let why = format!("SHOW {name} is not allowed: this role could read protected settings with it.");
                Err(ToolError::new(why).hint(
                    "SHOW of unprotected settings (server_version, search_path, timezone, work_mem, …) is allowed.",
                ))
            }
            _ => Ok(()),
        }
    }

    /// The parameters of [`CHECK`].
    pub(crate) fn check(&self, schemas_limited: bool) -> Vec<Value> {
        let (schemas, names): (Vec<&str>, Vec<&str>) =
            self.called.iter().map(|(s, n)| (s.as_str(), n.as_str())).unzip();
        let flag = |on: bool| Some(if on { "t" } else { "f" }.to_owned());
        vec![
            Some(texts(schemas)),
            Some(texts(names)),
            Some(texts(&self.dotted)),
            Some(texts(&self.operators)),
            flag(self.operator_syntax),
            Some(texts(&self.names)),
            flag(self.casts),
            Some(denied_functions(schemas_limited)),
            flag(self.renders()),
        ]
    }

    /// Whether something in it makes text or JSON of values of any type, by the casts of that type where it has some.
    fn renders(&self) -> bool {
        let known = |name: &String| ["json", "quote_", "textany", "anytext"].iter().any(|part| name.contains(part));
        self.operators.iter().any(|operator| operator == "||") || self.names.iter().any(known)
    }
}

/// A function that a statement may call: a row of [`CHECK`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// How the statement comes to it; empty when it names it.
    pub(crate) why: String,
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) volatile: bool,
    /// Whether its language keeps it inside the database.
    pub(crate) trusted: bool,
    /// Whether it runs with its owner's privileges (SECURITY DEFINER).
    pub(crate) definer: bool,
    /// Whether it came with the server.
    pub(crate) builtin: bool,
    /// The extension it belongs to, or nothing.
    pub(crate) extension: String,
    /// Whether the statement gives it what only the server has, or text to make a value of any type of.
    pub(crate) raw: bool,
}

impl Function {
    pub(crate) fn new(row: &Row) -> Self {
        Self {
            why: row.text(0),
            schema: row.text(1),
            name: row.text(2),
            volatile: row.text(3) == "v",
            trusted: row.is_true(4),
            definer: row.is_true(5),
            builtin: row.is_true(6),
            extension: row.text(7),
            raw: row.is_true(8),
        }
    }
}

/// What a judgement depends on, beside the function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// What the operator allowed: `schema.name`.
    pub(crate) allowed: &'a [String],
    /// Whether the role may read protected settings.
    pub(crate) protected_settings: bool,
    pub(crate) schemas_limited: bool,
}

/// Whether the statement may call the function.
///
/// # Errors
/// When not, in words that name it and the way out.
pub(crate) fn judge(function: &Function, rules: Rules<'_>) -> Result<(), ToolError> {
    const VOLATILE: &str = "it is volatile and may have side effects";
    const RAW: &str = "it is internal to the server, and could run functions of the types passed to it";
    const OTHERS: &str = "it exposes other sessions or schemas, and this server is limited to some schemas";
    let Function { schema, name, volatile, .. } = function;
    let full = format!("{schema}.{name}");
    if rules.allowed.contains(&full) {
        return Ok(());
    }
    let harmless = |known: bool| if *volatile { known } else { !function.raw };
    let doubt = if *volatile { VOLATILE } else { RAW };
    let of = HARMLESS_EXTENSIONS.iter().find(|(known, _)| *known == function.extension);
    let reason = if function.builtin {
        let settings = PROTECTED_SETTINGS.contains(&name.as_str());
        if settings && !rules.protected_settings {
            return Ok(());
        }
        if settings {
            "this role could read protected settings with it"
        } else if is_in(DENIED_FUNCTIONS, name) {
            "it can run other statements or has lasting effects"
        } else if rules.schemas_limited && is_in(OTHERS_FUNCTIONS, name) {
            OTHERS
        } else if harmless(is_in(HARMLESS_VOLATILE, name)) {
            return Ok(());
        } else {
            doubt
        }
    } else if let Some((_, known)) = of {
        if is_in(DENIED_OF_EXTENSIONS, name) {
            "it runs a statement built from strings"
        } else if rules.schemas_limited && is_in(OTHERS_OF_EXTENSIONS, name) {
            OTHERS
        } else if harmless(known.contains(&name.as_str())) {
            return Ok(());
        } else {
            doubt
        }
    } else if *volatile {
        VOLATILE
    } else if function.definer {
        "it runs with its owner's privileges (SECURITY DEFINER)"
    } else if !function.trusted {
        "it is written in an untrusted language"
    } else {
        return Ok(());
    };
    let via = if function.why.is_empty() { String::new() } else { format!(" (through {})", function.why) };
    let hint = match (function.builtin, *volatile) {
        (true, _) if name == "current_setting" => "Use SHOW for unprotected settings.".to_owned(),
        (false, true) => format!(
            "Omit it. If it only reads, its owner can declare it STABLE or IMMUTABLE, or the operator of this server can \
             start it with --allow-functions {full}."
        ),
        _ => format!("Omit it. The operator of this server can allow it with --allow-functions {full}."),
    };
    Err(ToolError::new(format!("Function {full}{via} is not allowed in read-only mode: {reason}.")).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_only_read_pass() {
        let cases = [
            "SELECT 1",
            "select 1;",
            " ; select 1 ; ;".trim_start_matches(" ;"),
            "(SELECT 1) UNION (SELECT 2)",
            "((select 1))",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "VALUES (1, 2)",
            "TABLE t",
            "EXPLAIN SELECT 1",
            "EXPLAIN VERBOSE SELECT 1",
            "EXPLAIN (FORMAT JSON, VERBOSE) SELECT 1",
            "EXPLAIN (SELECT 1)",
            "SHOW server_version",
            "SHOW TIME ZONE",
            "SELECT substring(a FROM 1 FOR 2) FROM t",
            "SELECT \"update\", \"delete\" FROM \"insert\" -- delete",
            "SELECT 'insert into; commit' /* ; drop */",
            "SELECT $$; delete$$",
        ];
        for sql in cases {
            if let Err(fault) = read(sql, false) {
                panic!("{sql}: {fault}");
            }
        }
    }

    /// Each of these must be refused by the tokens alone, without asking a server.
    #[test]
    fn everything_else_is_refused_with_advice() {
        let cases = [
            "",
            ";",
            "-- nothing",
            "SELECT 1; COMMIT; CREATE TABLE pwn (i int)",
            "SELECT 1; SELECT 2",
            "COMMIT",
            "COPY (SELECT 1) TO PROGRAM 'id'",
            "COPY t FROM '/etc/passwd'",
            "SELECT rolpassword FROM pg_authid",
            "SELECT * FROM \"pg_shadow\"",
            "SELECT * FROM pg_catalog . pg_user_mappings",
            "CHECKPOINT",
            "LOAD 'x'",
            "ANALYZE",
            "VACUUM",
            "LOCK TABLE t IN ACCESS EXCLUSIVE MODE",
            "NOTIFY x",
            "LISTEN x",
            "DO $$ begin end $$",
            "SET ROLE postgres",
            "SET TRANSACTION READ WRITE",
            "RESET ALL",
            "DISCARD ALL",
            "PREPARE p AS SELECT 1",
            "EXECUTE p",
            "DECLARE c CURSOR FOR SELECT 1",
            "FETCH 1 FROM c",
            "CALL p()",
            "CREATE TEMP TABLE x (i int)",
            "REFRESH MATERIALIZED VIEW v",
            "SELECT * FROM t FOR UPDATE",
            "SELECT * FROM t FOR NO KEY UPDATE",
            "SELECT * FROM t FOR SHARE",
            "SELECT * FROM t FOR/**/KEY SHARE",
            "SELECT * INTO x FROM t",
            "select 1 iNtO\nx",
            "WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM a",
            "WITH a AS (DELETE FROM t RETURNING *) TABLE a",
            "WITH a AS MATERIALIZED (UPDATE t SET i = 1 RETURNING *) SELECT * FROM a",
            "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
            "WITH a AS (SELECT 1) MERGE INTO t USING a ON true WHEN MATCHED THEN DELETE",
            "EXPLAIN ANALYZE SELECT 1",
            "EXPLAIN ANALYSE VERBOSE SELECT 1",
            "EXPLAIN VERBOSE ANALYZE SELECT 1",
            "EXPLAIN (ANALYZE) INSERT INTO t VALUES (1)",
            "EXPLAIN (\"analyze\" true) SELECT 1",
            "EXPLAIN (ANALYZE false) SELECT 1",
            "EXPLAIN (VERBOSE, ANALYZE on) SELECT 1",
            "EXPLAIN (serialize text) SELECT 1",
            "EXPLAIN DELETE FROM t",
            "EXPLAIN EXECUTE p",
            "EXPLAIN CREATE TABLE x AS SELECT 1",
            "EXPLAIN EXPLAIN SELECT 1",
            "SELECT TREAT('/etc/passwd' AS pg_read_file)",
            "SELECT treat /* x */ ('a' as b)",
            "SELECT pg_temp.f()",
            "SHOW work_mem; SELECT 1",
            "SHOW 'x'",
            "\"select\" 1",
            "'select' 1",
            "1",
        ];
        for sql in cases {
            match read(sql, false) {
                Ok(seen) => panic!("{sql}: {seen:?}"),
                Err(fault) => assert!(fault.advice().is_some(), "{sql}: {fault}"),
            }
        }
    }

    #[test]
    fn every_way_to_call_a_function_is_seen() {
        let called = |sql: &str| read(sql, false).unwrap().called;
        let pair = |schema: &str, name: &str| (schema.to_owned(), name.to_owned());
        assert!(called("SELECT pg_sleep /* x */ (1)").contains(&pair("", "pg_sleep")));
        assert!(called("SELECT \"pg_sleep\"\n(1)").contains(&pair("", "pg_sleep")));
        assert!(called("SELECT PG_SLEEP(1)").contains(&pair("", "pg_sleep")));
        assert!(called("SELECT pg_catalog . pg_sleep(1)").contains(&pair("pg_catalog", "pg_sleep")));
        assert!(called("SELECT db.\"Pg_catalog\".f(1)").contains(&pair("Pg_catalog", "f")));
        assert!(called("SELECT * FROM ROWS FROM (f(1), g(2))").contains(&pair("", "g")));
        assert!(called("SELECT * FROM t TABLESAMPLE m (1)").contains(&pair("", "m")));
        let seen =
            read("SELECT (t).f, t.g, x LIKE y, a OPERATOR(s.@@@) b, c::d FROM t ORDER BY 1 USING <<", false).unwrap();
        assert!(["f", "g"].iter().all(|name| seen.dotted.iter().any(|n| n == name)));
        assert!(["~~", "!~~", "@@@", "<<"].iter().all(|op| seen.operators.iter().any(|o| o == op)));
        assert!(seen.operator_syntax && seen.casts);
        assert_eq!(seen.qualifiers, ["s", "t"]);
        assert!(read("SELECT CAST(a AS b)", false).unwrap().casts);
        assert!(read("SELECT * FROM äö", false).unwrap().folded);
        assert!(!read("SELECT * FROM \"äö\"", false).unwrap().folded);
        assert!(read("SELECT * FROM pg_stats", true).is_err());
        assert!(read("SELECT * FROM pg_stats", false).is_ok());
    }

    #[test]
    fn the_text_that_is_run_ends_before_the_semicolon() {
        let sql = "SELECT ';' ; -- end ;\n ;";
        assert_eq!(&sql[..read(sql, false).unwrap().length], "SELECT ';' ");
    }

    fn function() -> Function {
        Function {
            why: String::new(),
            schema: "public".into(),
            name: "f".into(),
            volatile: false,
            trusted: true,
            definer: false,
            builtin: false,
            extension: String::new(),
            raw: false,
        }
    }

    const RULES: Rules<'_> = Rules { allowed: &[], protected_settings: false, schemas_limited: false };

    #[test]
    fn functions_are_judged_by_what_they_are() {
        let own = |name: &str, volatile| Function {
            name: name.into(),
            builtin: true,
            volatile,
            schema: "pg_catalog".into(),
            trusted: false,
            ..function()
        };
        let of = |extension: &str, name: &str, volatile| Function {
            extension: extension.into(),
            name: name.into(),
            volatile,
            trusted: false,
            ..function()
        };
        let good = [
            function(),
            own("lower", false),
            own("random", true),
            Function { raw: true, ..own("bernoulli", true) },
            own("current_setting", false),
            of("vector", "l2_distance", false),
            of("uuid-ossp", "uuid_generate_v4", true),
        ];
        for function in &good {
            judge(function, RULES).unwrap();
        }
        let bad = [
            own("pg_sleep", true),
            own("pg_read_file", true),
            own("table_to_xml", false),
            own("set_config", true),
            Function { volatile: true, ..function() },
            Function { definer: true, ..function() },
            Function { trusted: false, ..function() },
            of("tablefunc", "crosstab", false),
            of("xml2", "xpath_table", false),
            of("dblink", "dblink", true),
            of("pg_trgm", "set_limit", true),
            of("postgis", "st_findextent", false),
            own("fmgr_sql_validator", false),
            Function { raw: true, ..own("array_in", false) },
            Function { raw: true, ..of("hstore", "hstore_in", false) },
        ];
        for function in &bad {
            let fault = judge(function, RULES).unwrap_err();
            assert!(fault.message().contains(&format!("{}.{}", function.schema, function.name)), "{fault}");
            assert!(fault.to_string().contains("--allow-functions"), "{fault}");
            let allowed = [format!("{}.{}", function.schema, function.name)];
            judge(function, Rules { allowed: &allowed, ..RULES }).unwrap();
        }
        // What shows other schemas' values is only refused where some schemas are.
        for other in [
            own("pg_stat_get_activity", false),
            own("pg_lock_status", true),
            of("postgis", "st_estimatedextent", false),
            of("pg_stat_statements", "pg_stat_statements", true),
        ] {
            judge(&other, RULES).unwrap();
            let fault = judge(&other, Rules { schemas_limited: true, ..RULES }).unwrap_err();
            assert!(fault.message().contains("other sessions or schemas"), "{fault}");
        }
        for name in PROTECTED_SETTINGS {
            assert!(judge(&own(name, false), Rules { protected_settings: true, ..RULES }).is_err());
        }
    }
}
