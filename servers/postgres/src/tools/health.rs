//! `pg_health`.

use super::report::{Report, report};
use crate::Postgres;
use crate::sql::HEALTH;
use crate::value::texts;
use linchpin::Error;
use linchpin_kit::ToolOutput;
use schemars::JsonSchema;
use serde::Deserialize;

/// Arguments of `pg_health`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Health {
    /// The database.
    pub database: Option<String>,
}

impl Postgres {
    /// `pg_health`
    pub(super) async fn health(&self, args: Health) -> Result<ToolOutput<Report>, Error> {
        let database = self.database(args.database.as_deref())?;
        let (rows, link) = database.own(HEALTH, &[Some(texts(&database.target.schemas))]).await?;
        let json = rows.first().map(|row| row.text(0)).unwrap_or_default();
        let body = json.strip_prefix('{').unwrap_or(&json);
        Ok(report(&format!("{{\"version\":{},\"encrypted\":{},{body}", link.version, link.encrypted)))
    }
}
