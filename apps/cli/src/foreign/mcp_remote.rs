//! mcp-remote, of npm.

use super::{Flag, Made, flag, header, parsed, refused};
use crate::fail::Failure;
use serde_json::Value;

pub(super) const FLAGS: &[Flag] = &[
    flag(&["--header"], 1),
    flag(&["--host"], 1),
    flag(&["--transport"], 1),
    flag(&["--protocol"], 1),
    flag(&["--allow-http"], 0),
    flag(&["--enable-proxy"], 0),
    flag(&["--debug"], 0),
    flag(&["--silent"], 0),
    flag(&["--auth-timeout"], 1),
    flag(&["--static-oauth-client-info"], 1),
    flag(&["--static-oauth-client-metadata"], 1),
    flag(&["--client-metadata-url"], 1),
    flag(&["--ignore-tool"], 1),
    flag(&["--resource"], 1),
];

/// JSON, or the file that `@` names.
fn json(flag: &str, value: &str) -> Result<Value, Failure> {
    let text = match value.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).map_err(|e| refused(flag, &format!("{file}: {e}")))?,
        None => value.to_owned(),
    };
    serde_json::from_str(&text).map_err(|e| refused(flag, &format!("invalid JSON: {e}")))
}

pub(super) fn translated(words: &[String], env: &dyn Fn(&str) -> Option<String>) -> Result<Made, Failure> {
    let (given, rest) = parsed("mcp-remote", FLAGS, words, false)?;
    let mut made = Made::default();
    let (url, port) = match rest.as_slice() {
        [url] => (*url, None),
        [url, port] => (*url, Some(*port)),
        [] => return Err(Failure::usage("the URL of the server is missing")),
        [_, _, word, ..] => return Err(Failure::usage(format!("unexpected argument `{word}`"))),
    };
    if let Some(port) = port {
        made.flag("--callback-port", port);
    }
    let mut era = "legacy";
    for (name, values) in given {
        let value = values.first().copied().unwrap_or_default();
        match name {
            "--header" => made.flag("--header", header(value, env)?),
            "--transport" => match value {
                // Streamable HTTP first, as by itself.
                "http-first" => {}
                "http-only" => made.flag("--transport", "http"),
                "sse-first" | "sse-only" => made.flag("--transport", "sse"),
                _ => return Err(refused(name, "expected http-first, http-only, sse-first or sse-only")),
            },
            "--protocol" if ["legacy", "auto"].contains(&value) => {
                era = if value == "auto" { "auto" } else { "legacy" };
            }
            "--protocol" => return Err(refused(name, "expected legacy or auto")),
            "--allow-http" => made.words.push("--allow-plain-http".to_owned()),
            "--debug" => made.words.push("-v".to_owned()),
            "--host" => made.remark(name, "the login comes back to 127.0.0.1"),
            "--auth-timeout" => made.remark(name, "a login has five minutes"),
            "--client-metadata-url" => made.flag("--client-metadata-url", value),
            "--static-oauth-client-info" => {
                let info = json(name, value)?;
                if info.get("client_secret").is_some() {
                    return Err(refused(
                        name,
                        "a secret is given with --client-id and --client-secret-env of `linchpin bridge`",
                    ));
                }
                let id = info.get("client_id").and_then(Value::as_str);
                made.flag("--client-id", id.ok_or_else(|| refused(name, "it has no client_id"))?);
            }
            "--static-oauth-client-metadata" => {
                let metadata = json(name, value)?;
                for scope in metadata.get("scope").and_then(Value::as_str).unwrap_or_default().split_whitespace() {
                    made.flag("--scope", scope);
                }
            }
            "--ignore-tool" => return Err(refused(name, "tools cannot be left out")),
            "--resource" => return Err(refused(name, "the resource is always the one that the server names")),
            // Proxies are used without being asked, and nothing is said without being asked.
            _ => {}
        }
    }
    made.flag("--era", era);
    made.flag("--url", url);
    Ok(made)
}
