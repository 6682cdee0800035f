//! `sqlite_explain`.

use crate::open::GuardedConnection;
use crate::open::authorizer::Policy;
use crate::run::{self, End};
use crate::statement::{outline, single};
use crate::value::Cell;
use crate::{Sqlite, View};
use linchpin::{Cx, Error};
use linchpin_kit::{ToolError, ToolOutput, clip};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arguments of `sqlite_explain`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Explain {
    /// The statement, without EXPLAIN
    pub query: String,
}

/// A query plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Plan {
    /// The steps as a tree; parent 0 is the root.
    pub steps: Vec<PlanStep>,
    /// Whether the result is truncated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A step of a plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PlanStep {
    /// Its number.
    pub id: i64,
    /// The parent step.
    pub parent: i64,
    /// The operation: SCAN reads all rows, SEARCH uses an index.
    pub detail: String,
}

/// `sqlite_explain`.
pub(crate) async fn explain(db: &Sqlite, cx: &Cx, args: Explain) -> Result<ToolOutput<Plan>, Error> {
    let view = db.view();
    let (text, plan) = db.read(cx, move |conn| conn.explain(&args.query, view)).await?;
    let notice = plan.truncated.then(|| "[Truncated: the plan has more steps. Explain parts of the query.]".into());
    Ok(ToolOutput::outside(text, plan).notice(notice))
}

impl GuardedConnection {
    /// The plan as a tree and as steps.
    fn explain(&self, sql: &str, view: View) -> Result<(String, Plan), ToolError> {
        let outline = outline(sql)?;
        single(&outline)?;
        if !matches!(outline.verb(), "SELECT" | "WITH" | "VALUES" | "INSERT" | "UPDATE" | "DELETE" | "REPLACE") {
            return Err(ToolError::invalid(format!("Error: {} cannot be explained", outline.verb()))
                .hint("Pass the query without EXPLAIN, as for read_query or write_query."));
        }
        let mut statement = self.prepare(Policy::Explain, &format!("EXPLAIN QUERY PLAN {}", &sql[outline.start..]))?;
        if statement.is_explain() != 2 {
            return Err(ToolError::invalid("Error: this statement cannot be explained"));
        }
        let table = run::step(&mut statement, view.bounds, view.form, End::Stop).map_err(|error| self.error(error))?;
        let steps = table.rows.iter().filter_map(|row| match row.as_slice() {
            [Cell::Integer(id), Cell::Integer(parent), _, Cell::Text(detail)] => {
                Some(PlanStep { id: *id, parent: *parent, detail: detail.clone() })
            }
            _ => None,
        });
        let steps: Vec<PlanStep> = steps.collect();
        let text = tree(&steps);
        let cut = clip(&text, view.bounds.bytes);
        let truncated = table.cut.is_some() || cut.left_out > 0;
        Ok((cut.text.to_owned(), Plan { steps, truncated }))
    }
}

/// The plan as drawn by SQLite's shell.
fn tree(steps: &[PlanStep]) -> String {
    let mut text = String::from("QUERY PLAN");
    draw(steps, 0, "", 0, &mut text);
    text
}

fn draw(steps: &[PlanStep], parent: i64, indent: &str, depth: usize, text: &mut String) {
    // Plans are not deep; this is only a safety bound.
    const DEPTH_MAX: usize = 100;
    let mut children = steps.iter().filter(|step| step.parent == parent && step.id != parent).peekable();
    while let Some(step) = children.next() {
        let last = children.peek().is_none();
        let branch = if last { "`--" } else { "|--" };
        text.push_str(&format!("\n{indent}{branch}{}", step.detail));
        if depth < DEPTH_MAX {
            let below = format!("{indent}{}", if last { "   " } else { "|  " });
            draw(steps, step.id, &below, depth + 1, text);
        }
    }
}
