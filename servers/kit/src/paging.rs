//! Pages of long lists, with a notice how to continue.

use crate::{ToolError, clip};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default maximum number of list items in a result before it is truncated.
pub const PAGE_ITEMS_MAX: usize = 1_000;

/// Maximum bytes of an unknown cursor in an error.
const CURSOR_BYTES_SHOWN: usize = 80;

/// Pagination of a list result. Flattened into the structured content of tools that return lists; empty if the list is
/// complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paging {
    /// Whether items were omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The `cursor` of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The error for a cursor that no result returned.
#[must_use]
pub fn unknown_cursor(cursor: &str) -> ToolError {
    ToolError::new(format!("Unknown cursor: {}", clip(cursor, CURSOR_BYTES_SHOWN).text))
        .hint("Pass next_cursor of the previous result with otherwise the same arguments, or omit cursor.")
}

impl Paging {
    /// A complete list.
    #[must_use]
    pub fn whole() -> Self {
        Self::default()
    }

    /// A truncated list that continues at this cursor.
    #[must_use]
    pub fn more(next_cursor: impl Into<String>) -> Self {
        Self { truncated: true, next_cursor: Some(next_cursor.into()) }
    }

    /// The offset of `cursor` in a list of this length; 0 without a cursor. Cursors are decimal offsets.
    ///
    /// # Errors
    /// When the cursor is invalid.
    pub fn start(cursor: Option<&str>, length: usize) -> Result<usize, ToolError> {
        let offset = |text: &str| text.parse().ok().filter(|start| *start <= length);
        cursor.map_or(Ok(0), |text| offset(text).ok_or_else(|| unknown_cursor(text)))
    }

    /// The page of `items` at `cursor`, see [`Paging::start`].
    ///
    /// # Errors
    /// When the cursor is invalid.
    pub fn of<'a, T>(items: &'a [T], cursor: Option<&str>, most: usize) -> Result<(&'a [T], Self), ToolError> {
        let start = Self::start(cursor, items.len())?;
        let end = items.len().min(start.saturating_add(most.max(1)));
        let paging = if end < items.len() { Self::more(end.to_string()) } else { Self::whole() };
        Ok((&items[start..end], paging))
    }

    /// The truncation notice for clients that only read text.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let cursor = self.next_cursor.as_ref()?;
        Some(format!("[Truncated. Continue with the same arguments and cursor={cursor:?}, or narrow the request.]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_join_to_the_whole_list_and_foreign_cursors_are_refused() {
        let items: Vec<u32> = (0..10).collect();
        let (mut seen, mut cursor): (Vec<u32>, Option<String>) = (Vec::new(), None);
        loop {
            let (page, paging) = Paging::of(&items, cursor.as_deref(), 3).unwrap();
            seen.extend(page);
            assert_eq!(paging.truncated, paging.next_cursor.is_some());
            assert_eq!(paging.notice().is_some(), paging.truncated);
            cursor = paging.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, items);
        for foreign in ["x", "11", "-1", "", &"9".repeat(10_000)] {
            let refused = Paging::of(&items, Some(foreign), 3).unwrap_err().to_string();
            assert!(refused.starts_with("Unknown cursor: ") && refused.len() < 300, "{refused}");
        }
        for (cursor, start) in [(None, 0), (Some("0"), 0), (Some("7"), 7), (Some("10"), 10)] {
            assert_eq!(Paging::start(cursor, items.len()), Ok(start));
        }
    }
}
