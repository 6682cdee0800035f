//! `list_allowed_directories`.

use linchpin_kit::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::{Answer, NoMore};
use crate::inner::Inner;

pub(crate) const LIST_ALLOWED_DIRECTORIES: ToolSpec = ToolSpec::reads(
    "list_allowed_directories",
    "List Allowed Directories",
    "list",
    "Lists the allowed directories. Everything below them is accessible too.",
);

/// Arguments of `list_allowed_directories`: none.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ListAllowedDirectories {}

impl Inner {
    pub(crate) fn allowed_directories(&self) -> Answer<NoMore> {
        let roots = &self.roots;
        if roots.is_empty() && !self.ceiling.is_empty() {
            let text = "Allowed directories:\n(none: no root of this client is in an allowed directory of the server)";
            return Answer::new(text, NoMore {});
        }
        if roots.is_empty() {
            let text = "Allowed directories:\n(none: the operator must name at least one, for example \
                        mcp-server-filesystem DIR)";
            return Answer::new(text, NoMore {});
        }
        Answer::new(format!("Allowed directories:\n{}", roots.spellings().join("\n")), NoMore {})
    }
}
