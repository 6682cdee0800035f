//! `directory_tree`: everything below a directory as JSON.

use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::glob::Patterns;
use crate::inner::Inner;
use crate::open::expect_dir;
use crate::os::Kind;
use crate::page::{ListMore, after};
use crate::resolve::Last;
use crate::scan::{Flow, Scan};

pub(crate) const DIRECTORY_TREE: ToolSpec = ToolSpec::reads(
    "directory_tree",
    "Directory Tree",
    "list",
    "Returns everything below a directory as JSON: name, type, and children for directories.",
);

/// Arguments of `directory_tree`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DirectoryTree {
    /// The directory to show.
    pub path: String,
    /// Globs to exclude; one without `*` matches at any depth
    #[serde(default)]
    pub exclude_patterns: Vec<String>,
    /// Exclude what .gitignore does
    #[serde(default)]
    pub respect_gitignore: bool,
    /// From next_cursor
    #[serde(default)]
    pub cursor: Option<String>,
}

impl Inner {
    pub(crate) fn directory_tree(&self, args: &DirectoryTree) -> Result<Answer<ListMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        expect_dir(&place)?;
        let mut excludes = Patterns::default();
        for pattern in &args.exclude_patterns {
            excludes.add(pattern)?;
            if !pattern.contains('*') {
                excludes.add(&format!("**/{pattern}"))?;
                excludes.add(&format!("**/{pattern}/**"))?;
            }
        }
        let mut tree: Vec<Node> = Vec::new();
        let (mut bytes, mut count) = (0, 0);
        let (bytes_max, entries_max) = (self.config.max_result_bytes, self.entries_max());
        let mut scan = Scan::new(self, &place, after(args.cursor.as_deref())?, args.respect_gitignore);
        scan.run(&place, &mut |entry| {
            if excludes.matches(entry.rest) {
                return Flow::Over;
            }
            let is_dir = entry.kind == Kind::Dir;
            if entry.seen && !is_dir {
                return Flow::Over;
            }
            if !entry.seen {
                // The printed size of the node: four lines, indented by its depth.
                bytes += 42 + entry.name.len() + 4 * (2 + 4 * entry.depth);
                count += 1;
                if count > entries_max || (bytes > bytes_max && count > 1) {
                    return Flow::Stop;
                }
            }
            let mut siblings = &mut tree;
            for _ in 0..entry.depth {
                match siblings.last_mut() {
                    Some(Node { children: Some(children), .. }) => siblings = children,
                    _ => return Flow::Over,
                }
            }
            siblings.push(Node {
                name: entry.name.to_string_lossy().into_owned(),
                kind: if is_dir { "directory" } else { "file" },
                children: is_dir.then(Vec::new),
            });
            Flow::Into
        })?;
        let text = serde_json::to_string_pretty(&tree)
            .map_err(|error| ToolError::new(format!("Cannot serialize the tree: {error}")))?;
        Ok(scan.more().answer(text))
    }
}

/// An entry of a directory tree, as printed.
#[derive(Serialize)]
struct Node {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Vec<Node>>,
}
