//! The rules for statements in read-only mode.
//!
//! A READ ONLY transaction is not a boundary: a superuser's `COPY … TO PROGRAM`, `pg_read_file`, `lo_import`, `dblink`,
//! advisory locks, replication slots and much more work in one. So statements are vetted before the server sees them,
//! and the vetting must not depend on a grammar that could disagree with the server's:
//!
//! 1. [`crate::sql::lexer`] splits the text into the server's own tokens; text that versions tokenize differently is
//!    refused.
//! 2. [`read`] looks at tokens only. Every rule holds for any grammar: one statement; it begins with SELECT, WITH,
//!    VALUES, TABLE, EXPLAIN or SHOW (nothing else in SQL's grammar can contain another kind of statement behind these,
//!    except INSERT, UPDATE, DELETE and MERGE, which are refused as bare words anywhere, as are INTO and locking
//!    clauses); EXPLAIN has only options that do not execute, however they are quoted.
//! 3. It collects every token that could name a function:
//!    - a name before `(`: functions, aggregates, window functions, casts in functional form, TABLESAMPLE methods;
//!    - a name after `.`: `row.f` means `f(row)` where `f` takes one argument;
//!    - operators, spelled out, in `OPERATOR(…)`, or implied by a keyword (LIKE, IN, BETWEEN, CASE, …);
//!    - `TREAT(x AS f)`, which calls `f`, and is refused.
//!
//! The functions behind keywords (`EXTRACT`, `POSITION`, `AT TIME ZONE`, …) are always those of `pg_catalog`, and
//! harmless.
//! 4. [`crate::sql::FUNCTIONS`] asks the server, in the statement's own transaction and with its `search_path`, which
//!    functions all of these can mean, and [`crate::sql::functions::judge`] says whether it may call them.
//!
//! In doubt, a statement is refused. The rules do not see what the database's owner has put behind a view, a cast, a
//! domain, a policy, an aggregate or a default and granted to this role, nor that a function declared STABLE is not.
//! The other layers (READ ONLY transaction, unprivileged role, timeouts, row and byte limits, session reset) hold
//! regardless.

use crate::sql::functions::{denied_functions, is_in};
use crate::sql::lexer::{Kind, Token, implied, tokens};
use crate::value::texts;
use linchpin_kit::ToolError;

/// The kinds of statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Statement {
    /// SELECT, WITH, VALUES, TABLE.
    Query,
    /// EXPLAIN of a query, without executing it.
    Explain,
    /// SHOW of this setting (`all` for SHOW ALL).
    Show(String),
}

/// A statement that passed the token rules, and the names to look up in the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) statement: Statement,
    /// Length of the text in bytes, without trailing semicolons.
    pub(crate) length: usize,
    /// Names before `(`, each with its schema, if any.
    pub(crate) called: Vec<(String, String)>,
    /// Names after `.`
    pub(crate) dotted: Vec<String>,
    /// Names before `.`
    pub(crate) qualifiers: Vec<String>,
    pub(crate) operators: Vec<String>,
    /// Whether it has `OPERATOR(…)`.
    pub(crate) operator_syntax: bool,
    /// Every name, whatever it stands for.
    pub(crate) names: Vec<String>,
    /// Whether an unquoted name has non-ASCII letters, which the server folds by its own encoding.
    pub(crate) folded: bool,
}

/// Relations that hold secrets or expose files: even a role that can read them should not do so through this server.
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

/// With `--schemas`: relations that expose values or statements of other schemas, or other sessions; also all names
/// that begin with `pg_stat_progress_`.
const DENIED_WITH_SCHEMAS: &str = "pg_aios pg_cursors pg_locks pg_prepared_statements pg_prepared_xacts pg_sequences pg_stat_activity \
    pg_stat_gssapi pg_stat_replication pg_stat_ssl pg_stat_statements pg_stat_subscription pg_stat_wal_receiver \
    pg_statistic pg_stats pg_stats_ext pg_stats_ext_exprs";

/// Options of EXPLAIN that do not execute the statement.
const EXPLAIN_OPTIONS: [&str; 10] =
    ["verbose", "costs", "settings", "generic_plan", "buffers", "summary", "memory", "format", "timing", "wal"];

/// Settings that any role may read.
const PLAIN_SETTINGS: &str = "bytea_output client_encoding datestyle default_transaction_isolation default_transaction_read_only \
    effective_cache_size enable_seqscan idle_in_transaction_session_timeout in_hot_standby integer_datetimes intervalstyle \
    is_superuser jit lc_collate lc_ctype lock_timeout maintenance_work_mem max_connections random_page_cost search_path \
    server_encoding server_version server_version_num shared_buffers standard_conforming_strings statement_timeout \
    timezone transaction_isolation transaction_read_only work_mem";

/// The token rules.
///
/// # Errors
/// When it is not a read-only statement; the message says what to do instead.
pub(crate) fn read(sql: &str, schemas_limited: bool) -> Result<Seen, ToolError> {
    let tokens = tokens(sql)?;
    let (tokens, length) = single(&tokens, sql.len())?;
    let statement = statement(tokens)?;
    if !matches!(statement, Statement::Show(_)) {
        clauses(tokens)?;
    }
    allowed(collect(tokens, statement, length), schemas_limited)
}

/// The rules for a hypothetical index: the server parses its text like any other statement and evaluates its constants.
///
/// # Errors
/// When it is not CREATE INDEX, or contains something that [`read`] would refuse too.
pub(crate) fn index(sql: &str, schemas_limited: bool) -> Result<Seen, ToolError> {
    let tokens = tokens(sql)?;
    let (tokens, length) = single(&tokens, sql.len())?;
    let unique = usize::from(tokens.get(1).is_some_and(|t| t.is_word("unique")));
    if !tokens[0].is_word("create") || !tokens.get(1 + unique).is_some_and(|t| t.is_word("index")) {
        return Err(ToolError::invalid("A hypothetical index is not a CREATE INDEX statement.")
            .hint("For example CREATE INDEX ON orders (customer)."));
    }
    clauses(tokens)?;
    allowed(collect(tokens, Statement::Query, length), schemas_limited)
}

impl Seen {
    /// Adds the names of another statement, so that both are looked up.
    pub(crate) fn add(&mut self, other: Seen) {
        self.called.extend(other.called);
        self.dotted.extend(other.dotted);
        self.qualifiers.extend(other.qualifiers);
        self.operators.extend(other.operators);
        self.names.extend(other.names);
        self.operator_syntax |= other.operator_syntax;
        self.folded |= other.folded;
    }
}

/// The rules about names.
fn allowed(seen: Seen, schemas_limited: bool) -> Result<Seen, ToolError> {
    let of_others = |name: &str| is_in(DENIED_WITH_SCHEMAS, name) || name.starts_with("pg_stat_progress_");
    let denied = |name: &&String| DENIED_RELATIONS.contains(&name.as_str()) || schemas_limited && of_others(name);
    if let Some(relation) = seen.names.iter().find(denied) {
        return Err(ToolError::denied(format!("{relation} cannot be queried: it exposes secrets or data of others."))
            .hint("Omit it; if it is your own table, rename it."));
    }
    if let Some((schema, name)) = seen.called.iter().find(|(schema, _)| schema.starts_with("pg_temp")) {
        return Err(ToolError::denied(format!(
            "{schema}.{name} is not allowed: temporary functions cannot be vetted."
        ))
        .hint("Use a permanent function."));
    }
    Ok(seen)
}

/// The tokens without trailing semicolons, and the length of their text in bytes.
///
/// # Errors
/// When there is no statement, or more than one.
pub(crate) fn single(tokens: &[Token], bytes: usize) -> Result<(&[Token], usize), ToolError> {
    let count = tokens.iter().rposition(|t| !t.is_mark(";")).map_or(0, |last| last + 1);
    let length = tokens.get(count).map_or(bytes, |semicolon| semicolon.at);
    let tokens = &tokens[..count];
    if tokens.is_empty() {
        return Err(ToolError::invalid("sql contains no statement.").hint("Pass one SELECT statement."));
    }
    if tokens.iter().any(|t| t.is_mark(";")) {
        return Err(ToolError::invalid("Only one statement is allowed in a call.")
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
                ToolError::denied(format!("EXPLAIN of {} is not allowed in read-only mode.", other.to_uppercase()))
                    .hint("Explain a SELECT that reads the same rows.")
            })),
        };
    }
    match leading(tokens) {
        "select" | "with" | "values" | "table" => Ok(Statement::Query),
        other => Err(slip(other).unwrap_or_else(|| refused_statement(other))),
    }
}

/// The keyword that a statement begins with, after opening parentheses.
pub(crate) fn leading(tokens: &[Token]) -> &str {
    let first = tokens.iter().find(|t| !t.is_mark("("));
    first.filter(|t| t.kind == Kind::Word).map_or("", |t| t.text.as_str())
}

/// Keywords that begin a statement in any version of PostgreSQL, except those that read.
const STATEMENTS: &str = "abort alter analyse analyze begin call checkpoint close cluster comment commit copy create deallocate \
    declare delete discard do drop end execute explain fetch grant import insert listen load lock merge move \
    notify prepare reassign refresh reindex release repack reset revoke rollback savepoint security set show \
    start truncate unlisten update vacuum wait";

/// The error for a first word that begins no statement: a typo rather than an attempt to write.
fn slip(word: &str) -> Option<ToolError> {
    if word.is_empty() || STATEMENTS.split(' ').any(|known| known == word) {
        return None;
    }
    let word: String = word.chars().take(40).collect();
    let fault =
        ToolError::invalid(format!("Syntax error: no PostgreSQL statement starts with {}.", word.to_uppercase()));
    Some(fault.hint("Read-only statements start with SELECT, WITH, VALUES, TABLE, EXPLAIN or SHOW."))
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
    ToolError::denied(format!("{what} is not allowed in read-only mode.")).hint(hint)
}

/// The tokens after the options of EXPLAIN.
fn explain_options(mut tokens: &[Token]) -> Result<&[Token], ToolError> {
    let refuse = |option: &str| {
        Err(ToolError::denied(format!("EXPLAIN with {} is not allowed in read-only mode.", option.to_uppercase()))
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
                    ToolError::invalid("SHOW takes the name of one setting.").hint("For example SHOW server_version.")
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

/// Keywords that a read-only statement never contains, wherever they stand.
fn clauses(tokens: &[Token]) -> Result<(), ToolError> {
    for (at, token) in tokens.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word) {
        let next = tokens.get(at + 1);
        let next_is = |words: &[&str]| next.is_some_and(|t| words.iter().any(|word| t.is_word(word)));
        match token.text.as_str() {
            word @ ("insert" | "update" | "delete" | "merge") => {
                // In a locking clause, the locking message is clearer.
                if !(at > 0 && ["for", "key"].iter().any(|word| tokens[at - 1].is_word(word))) {
                    let upper = word.to_uppercase();
                    return Err(ToolError::denied(format!(
                        "{upper} is not allowed in read-only mode, not even inside WITH."
                    ))
                    .hint(format!("If it is the name of a column or table, quote it: \"{word}\".")));
                }
                return Err(locking());
            }
            "into" => {
                return Err(ToolError::denied("SELECT … INTO is not allowed in read-only mode: it creates a table.")
                    .hint("Omit INTO; the result contains the rows."));
            }
            "for" if next_is(&["update", "no", "share", "key"]) => return Err(locking()),
            "treat" if next.is_some_and(|t| t.is_mark("(")) => {
                return Err(ToolError::denied("TREAT is not allowed: it calls a function by the name of a type.")
                    .hint("Use CAST(… AS …)."));
            }
            _ => {}
        }
    }
    Ok(())
}

fn locking() -> ToolError {
    ToolError::denied("FOR UPDATE and FOR SHARE are not allowed in read-only mode: they lock rows.")
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
        names: Vec::new(),
        folded: false,
    };
    for (at, token) in tokens.iter().enumerate() {
        let before = |n: usize| at.checked_sub(n).map(|at| &tokens[at]);
        let is_mark = |token: Option<&Token>, mark: &str| token.is_some_and(|t| t.is_mark(mark));
        match token.kind {
            Kind::Operator => seen.operators.push(token.text.clone()),
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

impl Seen {
    /// Whether the statement may run, whatever the catalogue says: for a UTF-8 database and a role that may read
    /// protected settings.
    ///
    /// # Errors
    /// When it may not; the message says what to do instead.
    pub(crate) fn vet(&self, utf8: bool, protected_settings: bool) -> Result<(), ToolError> {
        if self.folded && !utf8 {
            return Err(ToolError::invalid("An unquoted name contains non-ASCII letters.")
                .hint("Put the name in double quotes."));
        }
        // The view calls a function that would be refused.
        if protected_settings && self.names.iter().any(|name| name == "pg_settings") {
            return Err(ToolError::denied(
                "pg_settings cannot be queried: this role could read protected settings with it.",
            )
            .hint("Use SHOW for unprotected settings."));
        }
        match &self.statement {
            Statement::Show(name) if protected_settings && !is_in(PLAIN_SETTINGS, name) => {
                let why = format!("SHOW {name} is not allowed: this role could read protected settings with it.");
                Err(ToolError::denied(why).hint(
                    "SHOW of unprotected settings (server_version, search_path, timezone, work_mem, …) is allowed.",
                ))
            }
            _ => Ok(()),
        }
    }

    /// The parameters of [`crate::sql::FUNCTIONS`].
    pub(crate) fn named(&self, schemas_limited: bool) -> [Option<String>; 6] {
        let (schemas, names): (Vec<&str>, Vec<&str>) =
            self.called.iter().map(|(s, n)| (s.as_str(), n.as_str())).unzip();
        [
            Some(texts(schemas)),
            Some(texts(names)),
            Some(texts(&self.dotted)),
            Some(texts(&self.operators)),
            Some(if self.operator_syntax { "t" } else { "f" }.to_owned()),
            Some(denied_functions(schemas_limited)),
        ]
    }
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
        assert!(seen.operator_syntax);
        assert_eq!(seen.qualifiers, ["s", "t"]);
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
}
