//! The tool selection flags of all servers.

use clap::Args;
use linchpin_kit::{ToolChoice, ToolError};

/// Which tools are offered. Read-only overrides disable, disable overrides enable.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Tool selection")]
pub(crate) struct ToolArgs {
    /// Offer only read-only tools.
    #[arg(long)]
    read_only: bool,

    /// Offer only these tools, separated by commas; together with --toolsets, those of both.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    enable_tools: Vec<String>,

    /// Do not offer these tools, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    disable_tools: Vec<String>,

    /// Offer only these toolsets, separated by commas; `all` is every tool, rare ones too.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    toolsets: Vec<String>,

    /// Prefix of tool names: none, auto (the server's short name), or a word [default: none].
    #[arg(long, value_name = "none|auto|WORD")]
    tool_prefix: Option<String>,
}

impl ToolArgs {
    /// Overrides the environment's choice with the given flags.
    pub(crate) fn apply(&self, choice: &mut ToolChoice) -> Result<(), ToolError> {
        choice.read_only |= self.read_only;
        for (given, set) in [
            (&self.enable_tools, &mut choice.enable),
            (&self.disable_tools, &mut choice.disable),
            (&self.toolsets, &mut choice.toolsets),
        ] {
            if !given.is_empty() {
                set.clone_from(given);
            }
        }
        if let Some(prefix) = &self.tool_prefix {
            choice.prefix = prefix.parse()?;
        }
        Ok(())
    }

    /// Returns the flags as words, for other command lines.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.read_only {
            words.push("--read-only".to_owned());
        }
        for (flag, names) in [
            ("--enable-tools", &self.enable_tools),
            ("--disable-tools", &self.disable_tools),
            ("--toolsets", &self.toolsets),
        ] {
            if !names.is_empty() {
                words.extend([flag.to_owned(), names.join(",")]);
            }
        }
        words.extend(self.tool_prefix.iter().flat_map(|prefix| ["--tool-prefix".to_owned(), prefix.clone()]));
        words
    }

    /// Whether a prefix was given.
    pub(crate) fn names_prefix(&self) -> bool {
        self.tool_prefix.is_some()
    }
}
