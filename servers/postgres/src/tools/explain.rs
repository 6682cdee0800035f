//! `pg_explain`.

use super::top::extension;
use super::values_schema;
use crate::Postgres;
use crate::answer::Request;
use crate::session::{Database, Mode};
use crate::sql::lexer::{self, quote_name};
use crate::sql::{rules, write};
use crate::wire::Step;
use linchpin_kit::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Maximum hypothetical indexes for one plan.
const INDEXES_MAX: usize = 20;

/// Maximum lines of a plan.
const PLAN_LINES_MAX: usize = 1_000;

/// Arguments of `pg_explain`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Explain {
    /// The statement, without EXPLAIN.
    pub sql: String,
    /// Values for $1, $2, …
    #[serde(default)]
    #[schemars(schema_with = "values_schema")]
    pub params: Vec<serde_json::Value>,
    /// Run it and measure (write mode only); changes are rolled back.
    #[serde(default)]
    pub analyze: bool,
    /// CREATE INDEX statements of hypothetical indexes (requires hypopg).
    #[serde(default)]
    pub indexes: Vec<String>,
    /// The database.
    pub database: Option<String>,
}

/// The result of `pg_explain`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The plan as text.
    pub plan: String,
    /// Whether it is truncated.
    pub truncated: bool,
}

impl Postgres {
    /// Converted with `?`, an error keeps its blocks and its kind.
    pub(super) async fn explain_tool(&self, args: Explain) -> linchpin::Result<ToolOutput<Plan>> {
        Ok(self.explain(args).await?)
    }

    async fn explain(&self, args: Explain) -> Result<ToolOutput<Plan>, ToolError> {
        let database = self.database(args.database.as_deref())?;
        if args.analyze && !self.config.writes() {
            return Err(ToolError::denied("analyze runs the statement, which read-only mode does not allow.")
                .hint("Omit it; the operator can allow it with --access-mode write."));
        }
        if args.indexes.len() > INDEXES_MAX {
            return Err(ToolError::invalid(format!(
                "indexes has {} items; the maximum is {INDEXES_MAX}.",
                args.indexes.len()
            ))
            .hint("Pass fewer at a time."));
        }
        let limited = !database.target.schemas.is_empty();
        let vetted = rules::read(&args.sql, limited);
        let (mut seen, length) = match vetted {
            Ok(seen) if seen.statement == rules::Statement::Query => {
                let length = seen.length;
                (Some(seen), length)
            }
            Ok(_) => return Err(ToolError::invalid("sql is EXPLAIN or SHOW.").hint("Pass the statement itself.")),
            Err(fault) if !self.config.writes() => return Err(fault),
            Err(_) => (None, write::writable(&args.sql)?),
        };
        let options = "FORMAT TEXT";
        let statement = &args.sql[..length];
        let wanted = parameters(statement);
        let mut sql = format!("EXPLAIN ({options}) {statement}");
        let mut prepare = String::new();
        if args.analyze {
            sql = format!("EXPLAIN ({options}, ANALYZE, BUFFERS) {statement}");
        } else if args.params.is_empty() && wanted > 0 {
            // The plan for any values. EXPLAIN has an option for it, but only from version 16 on, and it uses values if
            // there are any, as there must be here.
            prepare = format!("PREPARE linchpin_plan AS {statement}");
            sql = format!("EXPLAIN ({options}) EXECUTE linchpin_plan({})", vec!["NULL"; wanted].join(", "));
        }
        let mut imagined = Vec::with_capacity(args.indexes.len());
        for text in &args.indexes {
            let index = rules::index(text, limited)?;
            imagined.push([Some(text[..index.length].to_owned())]);
            if let Some(seen) = &mut seen {
                seen.add(index);
            }
        }
        let (mode, seen) = if self.config.writes() { (Mode::Try, None) } else { (Mode::Read, seen) };
        let hypopg = if imagined.is_empty() { String::new() } else { self.hypopg(database).await? };
        let mut before: Vec<Step<'_>> = imagined.iter().map(|index| Step::new(&hypopg, index)).collect();
        if !prepare.is_empty() {
            before.extend([Step::plain("SET LOCAL plan_cache_mode TO force_generic_plan"), Step::plain(&prepare)]);
        }
        let request = Request { sql: &sql, parameters: &args.params, skip: 0, rows_max: PLAN_LINES_MAX };
        let answer = database.ask(mode, seen.as_ref(), &before, request).await?;
        let lines: Vec<String> = answer.rows.iter().map(|row| row.text(0)).collect();
        let plan = lines.join("\n");
        let notice = format!("[Truncated after {} lines. Explain a part of the statement.]", lines.len());
        let truncated = answer.truncated;
        Ok(ToolOutput::outside(plan.clone(), Plan { plan, truncated }).notice(truncated.then_some(notice)))
    }

    /// The query that creates a hypothetical index.
    pub(crate) async fn hypopg(&self, database: &Arc<Database>) -> Result<String, ToolError> {
        let schema = extension(database, "hypopg").await?.ok_or_else(|| {
            ToolError::not_found(
                "Hypothetical indexes require the extension hypopg, which is not installed in this database.",
            )
            .hint("Omit indexes, or ask an administrator to run CREATE EXTENSION hypopg.")
        })?;
        Ok(format!("SELECT {}.hypopg_create_index($1::pg_catalog.text)", quote_name(&schema)))
    }
}

/// How many parameters a statement has: its highest parameter number, within the limit.
fn parameters(sql: &str) -> usize {
    let tokens = lexer::tokens(sql).unwrap_or_default();
    let number = |token: &lexer::Token| {
        let digits = &sql[token.at + 1..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().unwrap_or(usize::MAX)
    };
    let numbers = tokens.iter().filter(|token| token.kind == lexer::Kind::Param).map(number);
    numbers.max().unwrap_or(0).min(usize::from(u16::MAX))
}
