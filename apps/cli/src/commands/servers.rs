//! `linchpin servers`: lists the servers of this build.

use crate::commands::serve::{ABOUT_SKILLS, SKILLS};
use crate::fail::Failure;
use crate::serve::ENTRIES;
use crate::show::out::Out;
use clap::Args;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(crate) struct ServersArgs {
    /// Print JSON: names, tools, arguments and keys of each server.
    #[arg(long)]
    json: bool,
}

/// `serve skills`, which is no built-in server: it has no tools, and replaces nothing.
fn skills() -> Value {
    let directory = json!({
        "name": "directory",
        "variable": null,
        "about": "The directory of skills, each a directory with a SKILL.md",
        "kind": "directory",
        "repeated": false,
        "secret": false,
    });
    json!({
        "name": SKILLS,
        "title": "Skills",
        "about": ABOUT_SKILLS,
        "replaces": null,
        "arguments": [directory],
        "variables": [],
        "tools": [],
    })
}

pub(crate) fn run(args: &ServersArgs) -> Result<(), Failure> {
    let mut out = Out::new();
    if args.json {
        let servers: Vec<_> = ENTRIES
            .iter()
            .map(|entry| {
                let tools = entry.service.tools.iter().map(|tool| {
                    json!({ "name": tool.name, "title": tool.title, "readOnly": !tool.writes, "default": !tool.on_request && !tool.superseded && tool.needs.is_none() })
                });
                let variables = entry.asks.iter().map(|(name, about)| json!({ "name": name, "about": about }));
                json!({
                    "name": entry.name,
                    "title": entry.title,
                    "about": entry.about,
                    "replaces": format!("mcp-server-{}", entry.published_as),
                    "arguments": entry.configured.settings(),
                    "variables": variables.collect::<Vec<_>>(),
                    "tools": tools.collect::<Vec<_>>(),
                })
            })
            .chain([skills()])
            .collect();
        out.json(&json!({ "servers": servers }))?;
        return Ok(out.flush()?);
    }
    let named = ENTRIES.iter().map(|entry| (entry.name, entry.about)).chain([(SKILLS, ABOUT_SKILLS)]);
    let rows: Vec<_> = named.map(|(name, about)| (out.style.bold(name), about.to_owned())).collect();
    out.table(&rows)?;
    out.summary(&[(rows.len(), "server")])?;
    Ok(out.flush()?)
}
