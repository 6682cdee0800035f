//! What to paste into the configuration of a host.

use crate::place::Card;
use crate::shell;
use serde_json::json;
use std::fmt::Write as _;
use std::net::SocketAddr;

/// The note for someone who started a stdio server by hand.
pub(crate) fn waiting(card: &Card<'_>) -> String {
    let (program, args) = split(card);
    let desktop = json!({ "mcpServers": { card.name: { "command": program, "args": args } } });
    let mut out = format!(
        "{} speaks MCP on standard input and output; hosts start it themselves. Stop it with Ctrl-C.\n\n",
        card.name
    );
    let _ = writeln!(out, "Claude Desktop, Cursor (mcpServers):\n{desktop:#}\n");
    let _ = writeln!(out, "Claude Code:\n  claude mcp add {} -- {}\n", card.name, shell::joined(&card.command));
    let vscode = json!({ "servers": { card.name: { "type": "stdio", "command": program, "args": args } } });
    let _ = writeln!(out, "VS Code (.vscode/mcp.json):\n{vscode:#}\n");
    out.push_str(&variables(card));
    out.push_str("Over HTTP instead: add --http 127.0.0.1:8931\n");
    out
}

/// The note for a server that listens.
pub(crate) fn listening(card: &Card<'_>, addr: SocketAddr, sse: bool) -> String {
    let url = format!("http://{addr}/mcp");
    let name = card.name;
    let mut out = format!("{name} is at {url}\n");
    if sse {
        let _ = writeln!(out, "for clients of 2024-11-05: http://{addr}/sse");
    }
    if !addr.ip().is_loopback() {
        let _ = writeln!(out, "warning: {} can be reached from other machines, and nobody has to log in", addr.ip());
    }
    let _ = writeln!(out, "\nClaude Code:\n  claude mcp add --transport http {name} {url}\n");
    let (program, args) = split(card);
    let desktop = json!({ "mcpServers": { name: { "command": program, "args": args } } });
    let _ = writeln!(out, "Claude Desktop (starts it on stdio):\n{desktop:#}\n");
    let vscode = json!({ "servers": { name: { "type": "http", "url": url } } });
    let _ = writeln!(out, "VS Code (.vscode/mcp.json):\n{vscode:#}\n");
    let cursor = json!({ "mcpServers": { name: { "url": url } } });
    let _ = writeln!(out, "Cursor (~/.cursor/mcp.json):\n{cursor:#}\n");
    out.push_str(&variables(card));
    out.push_str("Stop it with Ctrl-C.\n");
    out
}

/// What has to be in the host's environment too. Names only: values may be secrets.
fn variables(card: &Card<'_>) -> String {
    match card.variables.as_slice() {
        [] => String::new(),
        names => format!("Its environment has a say; set this there too: {}\n\n", names.join(", ")),
    }
}

fn split<'a>(card: &'a Card<'_>) -> (&'a str, &'a [String]) {
    card.command.split_first().map_or(("linchpin", &[][..]), |(program, args)| (program.as_str(), args))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Card<'static> {
        let command = ["linchpin", "serve", "filesystem", "/data/my notes"].map(str::to_owned).to_vec();
        Card { name: "filesystem", command, variables: vec!["MCP_FS_DENY".to_owned()] }
    }

    #[test]
    fn the_command_can_be_pasted_into_a_shell() {
        assert!(waiting(&card()).contains("claude mcp add filesystem -- linchpin serve filesystem '/data/my notes'\n"));
    }

    #[test]
    fn every_host_is_given_its_own_form_and_open_addresses_are_warned_of() {
        let text = listening(&card(), "127.0.0.1:8931".parse().unwrap(), false);
        for part in [
            "http://127.0.0.1:8931/mcp",
            "claude mcp add --transport http",
            "\"mcpServers\"",
            "\"servers\"",
            "/data/my notes",
            "set this there too: MCP_FS_DENY\n",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("warning"));
        assert!(listening(&card(), "0.0.0.0:1".parse().unwrap(), true).contains("warning: 0.0.0.0"));
    }
}
