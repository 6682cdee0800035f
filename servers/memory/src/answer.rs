//! Shared by the results of several tools: warnings, notices, truncation.

use crate::format::{Entity, Relation};
use crate::part::{self, Piece};
use crate::server::Memory;
use crate::store::Done;
use linchpin_kit::ToolError;
use serde::Serialize;

/// Warnings about a successful operation.
pub(crate) type Warnings = Vec<String>;

/// The graph as the published server writes it.
#[derive(Serialize)]
pub(crate) struct PublishedGraph<'a> {
    pub(crate) entities: &'a [Entity],
    pub(crate) relations: &'a [Relation],
}

pub(crate) fn pretty(value: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string_pretty(value).map_err(|e| ToolError::new(format!("Cannot serialize the result: {e}")))
}

impl<T> Done<T> {
    /// Problems of the operation and of the file.
    pub(crate) fn warnings(&mut self, memory: &Memory) -> Warnings {
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.extend(self.graph.warnings());
        within(warnings, memory.inner.config.max_result_bytes)
    }
}

/// The warnings that fit into a quarter of `bytes_max` bytes (0: unlimited), at least one, and how many were left out.
pub(crate) fn within(mut warnings: Warnings, bytes_max: usize) -> Warnings {
    let mut bytes = 0;
    let too_many = warnings.iter().position(|warning| {
        bytes += warning.len();
        bytes > bytes_max / 4
    });
    if let Some(kept) = too_many.map(|at| at.max(1)).filter(|kept| bytes_max > 0 && *kept < warnings.len()) {
        let left_out = warnings.split_off(kept).len();
        warnings.push(format!("{left_out} more warnings are omitted."));
    }
    warnings
}

/// The truncation notice for clients that only read text.
pub(crate) fn notice(cut: Option<&str>, next: Option<String>) -> Option<String> {
    match (cut, next) {
        (Some(cut), Some(next)) => Some(format!("[Truncated: {cut}]\n{next}")),
        (Some(cut), None) => Some(format!("[Truncated: {cut}]")),
        (None, next) => next,
    }
}

/// The result of a change: as much as fits, whether it is truncated, and how to get the rest.
pub(crate) fn echo<T: Piece>(memory: &Memory, values: Vec<T>) -> (Vec<T>, bool, Option<String>) {
    let (values, all) = part::fit(values, memory.inner.config.max_result_bytes);
    let notice = all.map(|all| {
        let shown = values.len();
        format!(
            "[Truncated: everything was saved, but this shows only {shown} of {all}, long ones in part. Read the rest with \
             open_nodes or memory_search.]"
        )
    });
    (values, all.is_some(), notice)
}
