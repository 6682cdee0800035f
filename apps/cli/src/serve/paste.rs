//! Configuration snippets for hosts.

use super::auth::Pass;
use super::url::origin;
use crate::shell;
use serde_json::json;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

/// How a client reaches the server: its name, and the command that starts it over stdio.
pub(crate) struct Card<'a> {
    pub(crate) name: &'a str,
    /// Empty if it is not shown.
    pub(crate) command: Vec<String>,
    /// Names of the environment variables that affect it and must be set there too.
    pub(crate) variables: Vec<String>,
}

/// How it is served over HTTP.
#[derive(Debug, Default)]
pub(crate) struct Front {
    pub(crate) tls: bool,
    pub(crate) sse: bool,
    /// Other paths than `/mcp` and `/sse`.
    pub(crate) paths: (Option<String>, Option<String>),
    /// The host names that are accepted beside those of this machine.
    pub(crate) hosts: Vec<String>,
    /// What clients must send.
    pub(crate) pass: Pass,
    /// The URL that clients use, if it was given.
    pub(crate) public: Option<String>,
}

/// A command of this program.
pub(crate) fn command(subcommand: &str, words: Vec<String>) -> Vec<String> {
    let program = std::env::current_exe().map_or_else(|_| "linchpin".into(), |p| p.display().to_string());
    [program, subcommand.to_owned()].into_iter().chain(words).collect()
}

/// Returns the note for a stdio server started by hand.
pub(crate) fn waiting(card: &Card<'_>) -> String {
    let (program, args) = split(card);
    let desktop = json!({ "mcpServers": { card.name: { "command": program, "args": args } } });
    let mut out = format!(
        "{} is serving MCP on standard input and output; hosts start it themselves. Press Ctrl-C to stop.\n\n",
        card.name
    );
    if card.command.is_empty() {
        out.push_str("To serve over HTTP, add --http 127.0.0.1:8931\n");
        return out;
    }
    let _ = writeln!(out, "Claude Desktop (claude_desktop_config.json), Cursor (~/.cursor/mcp.json):\n{desktop:#}\n");
    let _ = writeln!(out, "Claude Code:\n  claude mcp add {} -- {}\n", card.name, shell::joined(&card.command));
    let vscode = json!({ "servers": { card.name: { "type": "stdio", "command": program, "args": args } } });
    let _ = writeln!(out, "VS Code (.vscode/mcp.json):\n{vscode:#}\n");
    out.push_str(&variables(card));
    out.push_str("To serve over HTTP, add --http 127.0.0.1:8931\n");
    out
}

/// Returns the note for a listening server.
pub(crate) fn listening(card: &Card<'_>, addr: SocketAddr, front: &Front) -> String {
    let public = match &front.pass {
        Pass::Login(url) => Some(url),
        _ => front.public.as_ref(),
    };
    let scheme = if front.tls { "https" } else { "http" };
    // Accepted host names may be those of a proxy.
    let place = format!("{scheme}://{}", public.map_or_else(|| reached(addr, front), |_| addr.to_string()));
    let here = format!("{place}{}", front.paths.0.as_deref().unwrap_or("/mcp"));
    let url = public.unwrap_or(&here);
    let name = card.name;
    let mut out = format!("{name} is listening on {here}\n");
    if *url != here {
        let _ = writeln!(out, "for clients at {url}");
    }
    if front.sse {
        let place = public.map_or(place.as_str(), |url| origin(url));
        let _ = writeln!(out, "for 2024-11-05 clients: {place}{}", front.paths.1.as_deref().unwrap_or("/sse"));
    }
    if addr.ip().is_unspecified() && front.hosts.is_empty() {
        let (scheme, port) = (url.split(':').next().unwrap_or_default(), addr.port());
        let _ = writeln!(out, "for other machines: pass --accept-host NAME and use {scheme}://NAME:{port}/mcp");
    }
    if !addr.ip().is_loopback() && front.pass == Pass::Nothing {
        let _ = writeln!(out, "warning: {} is reachable from other machines, without authentication", addr.ip());
    }
    let bearer = match &front.pass {
        Pass::Nothing => None,
        Pass::Token(token) => {
            let _ = writeln!(out, "the token of this run is {token}");
            Some(format!("Bearer {token}"))
        }
        Pass::Key => Some("Bearer YOUR_KEY".to_owned()),
        Pass::Login(_) => {
            out.push_str(
                "clients log in with their authorization server; see what they see with `linchpin auth check`\n",
            );
            None
        }
    };
    let header = bearer.as_ref().map(|bearer| format!(" --header 'Authorization: {bearer}'")).unwrap_or_default();
    let _ = writeln!(out, "\nClaude Code:\n  claude mcp add --transport http {name} {url}{header}\n");
    let (program, args) = split(card);
    if !card.command.is_empty() {
        let desktop = json!({ "mcpServers": { name: { "command": program, "args": args } } });
        let _ = writeln!(out, "Claude Desktop (claude_desktop_config.json; starts it over stdio):\n{desktop:#}\n");
    }
    let with_header = |mut entry: serde_json::Value| {
        if let Some(bearer) = &bearer {
            entry["headers"] = json!({ "Authorization": bearer });
        }
        entry
    };
    let vscode = json!({ "servers": { name: with_header(json!({ "type": "http", "url": url })) } });
    let _ = writeln!(out, "VS Code (.vscode/mcp.json):\n{vscode:#}\n");
    let cursor = json!({ "mcpServers": { name: with_header(json!({ "url": url })) } });
    let _ = writeln!(out, "Cursor (~/.cursor/mcp.json):\n{cursor:#}\n");
    out.push_str(&variables(card));
    out.push_str("Press Ctrl-C to stop.\n");
    out
}

/// Returns a host and port that clients can use: an unspecified address (0.0.0.0) is not one, and only accepted host names
/// are allowed.
fn reached(addr: SocketAddr, front: &Front) -> String {
    match (addr.ip(), front.hosts.first()) {
        // A certificate is for a name.
        (_, Some(host)) if front.tls && !host.contains(':') => format!("{host}:{}", addr.port()),
        (IpAddr::V4(_), None) if front.tls && (addr.ip().is_loopback() || addr.ip().is_unspecified()) => {
            format!("localhost:{}", addr.port())
        }
        (ip, _) if !ip.is_unspecified() => addr.to_string(),
        // With its own port, or an IPv6 address in brackets.
        (_, Some(host)) if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => host.clone(),
        (_, Some(host)) => format!("{host}:{}", addr.port()),
        (IpAddr::V4(_), None) => format!("127.0.0.1:{}", addr.port()),
        (IpAddr::V6(_), None) => format!("[::1]:{}", addr.port()),
    }
}

/// Returns the variables that the host must set too. Names only: values may be secrets.
fn variables(card: &Card<'_>) -> String {
    match card.variables.as_slice() {
        [] => String::new(),
        names => format!("Set these environment variables there too: {}\n\n", names.join(", ")),
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
        let text = listening(&card(), "127.0.0.1:8931".parse().unwrap(), &Front::default());
        for part in [
            "http://127.0.0.1:8931/mcp",
            "claude mcp add --transport http",
            "\"mcpServers\"",
            "\"servers\"",
            "/data/my notes",
            "Set these environment variables there too: MCP_FS_DENY\n",
            "claude_desktop_config.json",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("warning"));
        assert!(listening(&card(), "0.0.0.0:1".parse().unwrap(), &Front::default()).contains("warning: 0.0.0.0"));
    }

    #[test]
    fn what_clients_must_send_is_in_their_configuration() {
        let addr = "0.0.0.0:8931".parse().unwrap();
        let said =
            |pass: Pass| listening(&card(), addr, &Front { hosts: vec!["box".into()], pass, ..Front::default() });
        let token = said(Pass::Token("lp_token_x".into()));
        assert_eq!(token.matches("Bearer lp_token_x").count(), 3, "{token}");
        assert!(!token.contains("warning"), "{token}");
        assert_eq!(said(Pass::Key).matches("Bearer YOUR_KEY").count(), 3);
        let login = said(Pass::Login("https://mcp.example.com/mcp".into()));
        assert!(
            login.contains("--transport http filesystem https://mcp.example.com/mcp\n") && !login.contains("Bearer"),
            "{login}"
        );
    }

    #[test]
    fn the_real_address_is_said_beside_that_for_clients() {
        let local = "http://127.0.0.1:8931/mcp";
        let public = "https://mcp.example.com/mcp";
        for (pass, given, elsewhere) in [
            (Pass::Nothing, None, false),
            (Pass::Nothing, Some(public), true),
            (Pass::Key, Some(public), true),
            (Pass::Login(public.into()), Some(public), true),
            (Pass::Login(local.into()), None, false),
        ] {
            let hosts = given.map(|_| "mcp.example.com".to_owned()).into_iter().collect();
            let front = Front { pass, hosts, public: given.map(str::to_owned), ..Front::default() };
            let text = listening(&card(), "127.0.0.1:8931".parse().unwrap(), &front);
            assert!(text.starts_with(&format!("filesystem is listening on {local}\n")), "{text}");
            assert_eq!(text.contains(&format!("\nfor clients at {public}\n")), elsewhere, "{text}");
            let url = if elsewhere { public } else { local };
            assert!(text.contains(&format!("claude mcp add --transport http filesystem {url}")), "{text}");
        }
    }

    #[test]
    fn the_address_is_one_that_clients_can_use() {
        for (tls, addr, hosts, url, hint) in [
            (false, "127.0.0.1:1", &[][..], "http://127.0.0.1:1/mcp", false),
            (false, "192.0.2.1:1", &["box"], "http://192.0.2.1:1/mcp", false),
            (false, "0.0.0.0:1", &[], "http://127.0.0.1:1/mcp", true),
            (false, "[::]:1", &[], "http://[::1]:1/mcp", true),
            (false, "0.0.0.0:1", &["box", "other"], "http://box:1/mcp", false),
            (false, "0.0.0.0:1", &["box:8080"], "http://box:8080/mcp", false),
            (false, "[::]:1", &["[2001:db8::1]"], "http://[2001:db8::1]:1/mcp", false),
            (true, "127.0.0.1:1", &[], "https://localhost:1/mcp", false),
            (true, "0.0.0.0:1", &[], "https://localhost:1/mcp", true),
            (true, "192.0.2.1:1", &["box"], "https://box:1/mcp", false),
            (true, "192.0.2.1:1", &[], "https://192.0.2.1:1/mcp", false),
        ] {
            let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            let front = Front { tls, hosts: hosts.clone(), ..Front::default() };
            let text = listening(&card(), addr.parse().unwrap(), &front);
            assert!(text.starts_with(&format!("filesystem is listening on {url}\n")), "{addr}: {text}");
            assert_eq!(text.contains("--accept-host"), hint, "{addr}: {text}");
        }
    }
}
