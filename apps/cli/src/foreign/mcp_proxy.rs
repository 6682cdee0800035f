//! mcp-proxy: two programs, one of PyPI and one of npm. The second is meant where one of its own flags is.

use super::{Flag, Made, flag, parsed, refused};
use crate::fail::Failure;

pub(super) const FLAGS: &[Flag] = &[
    flag(&["--port", "--sse-port"], 1),
    flag(&["--host", "--sse-host"], 1),
    flag(&["--transport"], 1),
    flag(&["--headers", "-H"], 2),
    flag(&["--env", "-e"], 2),
    flag(&["--cwd"], 1),
    flag(&["--pass-environment"], 0),
    flag(&["--no-pass-environment"], 0),
    flag(&["--stateless"], 0),
    flag(&["--no-stateless"], 0),
    flag(&["--allow-origin"], 1),
    flag(&["--debug"], 0),
    flag(&["--log-level"], 1),
    flag(&["--named-server"], 2),
    flag(&["--named-server-config"], 1),
    flag(&["--client-id"], 1),
    flag(&["--client-secret"], 1),
    flag(&["--token-url"], 1),
    flag(&["--verify-ssl"], 1),
    flag(&["--no-verify-ssl"], 0),
    // Of npm.
    flag(&["--server"], 1),
    flag(&["--endpoint"], 1),
    flag(&["--sseEndpoint"], 1),
    flag(&["--streamEndpoint"], 1),
    flag(&["--apiKey"], 1),
    flag(&["--shell"], 0),
    flag(&["--tunnel"], 0),
];

/// Flags that only the program of npm has.
const OF_NPM: &[&str] =
    &["--server", "--endpoint", "--sseEndpoint", "--streamEndpoint", "--apiKey", "--shell", "--tunnel"];

pub(super) fn translated(words: &[String], env: &dyn Fn(&str) -> Option<String>) -> Result<Made, Failure> {
    let (given, rest) = parsed("mcp-proxy", FLAGS, words, true)?;
    let npm = given.iter().any(|(name, _)| OF_NPM.contains(name));
    let (mut made, mut place) = (Made::default(), Made::default());
    let (mut port, mut host) = (if npm { "8080" } else { "0" }, None);
    let (mut transport, mut sse) = ("sse", true);
    for (name, values) in given {
        let value = values.first().copied().unwrap_or_default();
        match name {
            "--port" => port = value,
            "--host" => host = Some(value),
            "--transport" if ["sse", "streamablehttp"].contains(&value) => {
                transport = if value == "sse" { "sse" } else { "http" };
            }
            "--transport" => return Err(refused(name, "expected sse or streamablehttp")),
            "--headers" => made.flag("--header", values.join(": ")),
            "--env" => made.flag("--env", values.join("=")),
            "--cwd" => made.flag("--cwd", value),
            "--pass-environment" => {
                for (variable, _) in std::env::vars() {
                    made.flag("--env", variable);
                }
            }
            "--allow-origin" if value == "*" => {
                return Err(refused(name, "name the origins; every page could call the server"));
            }
            "--allow-origin" => place.flag("--allow-origin", value),
            "--debug" => made.words.push("-v".to_owned()),
            "--log-level" if value.eq_ignore_ascii_case("debug") => made.words.push("-v".to_owned()),
            "--named-server" | "--named-server-config" => {
                return Err(refused(name, "a bridge is for one server; start one for each"));
            }
            "--client-id" | "--client-secret" | "--token-url" => {
                return Err(refused(
                    name,
                    "log in with `linchpin auth login URL` first, or pass a token with --bearer-env",
                ));
            }
            "--verify-ssl" | "--no-verify-ssl" => {
                return Err(refused(name, "certificates are always checked, by the system's authorities"));
            }
            "--server" => match value {
                "sse" => {}
                "stream" => sse = false,
                _ => return Err(refused(name, "expected sse or stream")),
            },
            "--endpoint" | "--streamEndpoint" if value == "/mcp" => {}
            "--endpoint" | "--sseEndpoint" if value == "/sse" => {}
            "--endpoint" | "--sseEndpoint" | "--streamEndpoint" => {
                return Err(refused(name, "here the paths are always /mcp and /sse"));
            }
            "--apiKey" => return Err(refused(name, "clients cannot be asked for a key")),
            "--shell" => return Err(refused(name, "no shell is run; write `-- sh -c '…'` if one is meant")),
            "--tunnel" => return Err(refused(name, "there is no tunnel")),
            // Requests of stateless revisions need no session, and those of sessions keep theirs.
            _ => {}
        }
    }
    let command: Vec<String> = rest.iter().map(ToString::to_string).collect();
    match command.as_slice() {
        [] => return Err(Failure::usage("the URL or the command of the server is missing")),
        [url] if url.starts_with("http://") || url.starts_with("https://") => {
            if env("API_ACCESS_TOKEN").is_some_and(|token| !token.is_empty()) {
                made.flag("--bearer-env", "API_ACCESS_TOKEN");
            }
            made.flag("--transport", transport);
            made.flag("--url", url);
        }
        command => {
            made.listens(host, port)?;
            if sse {
                made.words.push("--sse".to_owned());
            }
            made.words.append(&mut place.words);
            made.command(command);
        }
    }
    Ok(made)
}
