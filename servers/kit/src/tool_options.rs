//! The options of every server: which tools it offers.

use crate::{ConfigOption, Options, ToolChoice, flag};

const HEADING: &str = "Tool selection";

impl Options for ToolChoice {
    fn options(variables: &str) -> Vec<ConfigOption<Self>> {
        let list = || flag::list("NAME,…").heading(HEADING);
        [
            flag::switch().heading(HEADING).declare(
                "read_only",
                "Offer only tools that change nothing.",
                variables,
                |choice: &mut Self| &mut choice.read_only,
            ),
            list().declare(
                "enable_tools",
                "Offer only these tools; with `--toolsets`, these in addition to the toolsets.",
                variables,
                |choice| &mut choice.enable,
            ),
            list().declare(
                "disable_tools",
                "Do not offer these tools, even if they are enabled.",
                variables,
                |choice| &mut choice.disable,
            ),
            list().declare(
                "toolsets",
                "Offer only the tools of these toolsets, and those of `--enable-tools`; 'all' is every tool, including those \
                 that are off by default.",
                variables,
                |choice| &mut choice.toolsets,
            ),
            flag::choice("none|auto|WORD").default("none").heading(HEADING).declare(
                "tool_prefix",
                "Prefix of tool names: none, auto (the server's short name), or this text.",
                variables,
                |choice| &mut choice.prefix,
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

crate::as_clap_args!(ToolChoice);
