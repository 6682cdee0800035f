//! `pg_describe`.

use super::report::{Report, TEXT_CHARS_MAX, clipped, report};
use crate::Postgres;
use crate::sql::DESCRIBE;
use crate::value::texts;
use crate::wire::Row;
use linchpin::Error;
use linchpin_kit::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Maximum bytes of the lists in a description.
const LISTS_BYTES_MAX: usize = 64 << 10;

/// Maximum characters of a view's definition.
const VIEW_CHARS_MAX: usize = 20_000;

/// The lists of a description: columns 1 to 5 of the result of [`DESCRIBE`].
const LISTS: [&str; 5] = ["columns", "constraints", "indexes", "referenced_by", "triggers"];

/// Arguments of `pg_describe`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Describe {
    /// `table` or `schema.table`, without quotes.
    pub table: String,
    /// The database.
    pub database: Option<String>,
}

/// Shortens the result of [`DESCRIBE`]: a table can have 1,600 columns and any number of other things. A notice says
/// what was cut.
fn described(row: &Row) -> ToolOutput<Report> {
    let (head, mut cut) = clipped(&row.text(0), TEXT_CHARS_MAX);
    let mut json = head.strip_suffix('}').unwrap_or(&head).to_owned();
    let list = |at: usize| {
        let text = row.text(at);
        let items: Vec<&RawValue> = serde_json::from_str(&text).unwrap_or_default();
        items.iter().map(|item| clipped(item.get(), TEXT_CHARS_MAX)).collect::<Vec<_>>()
    };
    let lists: Vec<(&str, Vec<(String, bool)>)> = LISTS.iter().zip(1..).map(|(name, at)| (*name, list(at))).collect();
    let bytes: usize = lists.iter().flat_map(|(_, items)| items).map(|(item, _)| item.len()).sum();
    let mut left = LISTS_BYTES_MAX;
    let mut fewer = Vec::new();
    for (name, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
        // Each list leaves half of the remaining space to the ones after it.
        let most = if bytes <= LISTS_BYTES_MAX { bytes } else { left / 2 };
        let mut used = 0;
        let fits = items.iter().take_while(|(item, _)| {
            used += item.len();
            used <= most
        });
        let kept = fits.count();
        left -= used.min(most);
        cut |= items[..kept].iter().any(|(_, cut)| *cut);
        if kept < items.len() {
            fewer.push(format!("{kept} of {} {name}", items.len()));
        }
        let texts: Vec<&str> = items[..kept].iter().map(|(item, _)| item.as_str()).collect();
        json.push_str(&format!(",\"{name}\":[{}]", texts.join(",")));
    }
    if let Some(definition) = row.cell(LISTS.len() + 1) {
        let (definition, long) = clipped(&definition, VIEW_CHARS_MAX);
        cut |= long;
        json.push_str(&format!(",\"definition\":{definition}"));
    }
    let mut notice = String::new();
    if !fewer.is_empty() {
        notice = format!(
            "[Truncated: these are {}. Query pg_catalog or information_schema for the others.]",
            fewer.join(", ")
        );
    } else if cut {
        notice = "[Truncated: texts that end with … are shortened. Query pg_catalog for the full texts.]".to_owned();
    }
    if !notice.is_empty() {
        json.push_str(",\"truncated\":true");
    }
    json.push('}');
    report(&json).notice((!notice.is_empty()).then_some(notice))
}

impl Postgres {
    /// `pg_describe`
    pub(super) async fn describe(&self, args: Describe) -> Result<ToolOutput<Report>, Error> {
        let database = self.database(args.database.as_deref())?;
        // A name may contain a dot, so the whole name is tried first.
        let whole = (None, args.table.as_str());
        let split = args.table.split_once('.').map(|(schema, table)| (Some(schema.to_owned()), table));
        for (schema, table) in std::iter::once(whole).chain(split) {
            let parameters = [Some(texts(&database.target.schemas)), schema, Some(table.to_owned())];
            let (rows, _) = database.own(DESCRIBE, &parameters).await?;
            if let Some(row) = rows.first() {
                return Ok(described(row));
            }
        }
        Err(ToolError::not_found(format!("The table or view {} does not exist.", args.table))
            .hint("pg_list_objects lists all; outside of the search path use schema.table.")
            .into())
    }
}
