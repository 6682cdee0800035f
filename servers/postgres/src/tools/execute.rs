//! `pg_execute`.

use super::objects_schema;
use crate::Postgres;
use crate::answer::Request;
use crate::sql::write;
use linchpin_kit::{Provenance, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum statements in one call of `pg_execute`.
const STATEMENTS_MAX: usize = 100;

/// Arguments of `pg_execute`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Execute {
    /// The statements in order; one per item.
    pub statements: Vec<String>,
    /// The database.
    pub database: Option<String>,
}

/// The result of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// For example `UPDATE 3`.
    pub command: String,
}

/// The result of `pg_execute`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Changed {
    /// The results, by statement.
    #[schemars(schema_with = "objects_schema")]
    pub results: Vec<Ran>,
}

impl Postgres {
    /// Converted with `?`, an error keeps its blocks and its kind.
    pub(super) async fn execute_tool(&self, args: Execute) -> linchpin::Result<ToolOutput<Changed>> {
        Ok(self.execute(args).await?)
    }

    async fn execute(&self, args: Execute) -> Result<ToolOutput<Changed>, ToolError> {
        let database = self.database(args.database.as_deref())?;
        if args.statements.is_empty() || args.statements.len() > STATEMENTS_MAX {
            return Err(ToolError::invalid(format!("statements must have 1 to {STATEMENTS_MAX} items."))
                .hint("Pass each statement as a separate item."));
        }
        let requests: Result<Vec<Request<'_>>, ToolError> = args
            .statements
            .iter()
            .map(|sql| {
                Ok(Request {
                    sql: &sql[..write::writable(sql)?],
                    parameters: &[],
                    skip: 0,
                    rows_max: self.config.max_rows,
                })
            })
            .collect();
        let answers = database.ask_all(&requests?).await?;
        database.forget_types();
        self.touch_list();
        let results = answers.into_iter().map(|answer| Ran { command: answer.tag }).collect();
        ToolOutput::json(Changed { results }, Provenance::Server)
    }
}
