//! mcp-remote, of npm.

use super::flags::{Flag, Made, flag, header, parsed, refused};
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
    flag(&["--header-file"], 1),
    flag(&["--authorize-param"], 1),
    flag(&["--disable-resource-parameter"], 0),
    flag(&["--callback-path"], 1),
    flag(&["--auth-success-url"], 1),
    flag(&["--connect-timeout"], 1),
    flag(&["--headers-timeout"], 1),
    flag(&["--body-timeout"], 1),
    flag(&["--keep-alive"], 0),
    flag(&["--ping-interval"], 1),
    flag(&["--ipv4"], 0),
    flag(&["--client-credentials"], 0),
    flag(&["--token-endpoint"], 1),
    flag(&["--device-code"], 0),
    flag(&["--disable-cookies"], 0),
    flag(&["--use-id-token"], 0),
];

/// JSON, or the file that `@` names.
fn json(flag: &str, value: &str) -> Result<Value, Failure> {
    let text = match value.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).map_err(|e| refused(flag, &format!("{file}: {e}")))?,
        None => value.to_owned(),
    };
    serde_json::from_str(&text).map_err(|e| refused(flag, &format!("invalid JSON: {e}")))
}

fn transport(value: &str, made: &mut Made) -> Result<(), Failure> {
    match value {
        // Streamable HTTP first, as by itself.
        "http-first" => {}
        "http-only" => made.flag("--transport", "http"),
        "sse-only" => made.flag("--transport", "sse"),
        "sse-first" => return Err(refused("--transport sse-first", "HTTP+SSE is tried last here: use http-first")),
        _ => return Err(refused("--transport", "expected http-first, http-only, sse-first or sse-only")),
    }
    Ok(())
}

pub(super) fn translated(words: &[String]) -> Result<Made, Failure> {
    let (given, rest) = parsed("mcp-remote", FLAGS, words, false)?;
    let mut made = Made::default();
    let (url, port) = match rest.as_slice() {
        [url] => (*url, None),
        [url, port] => (*url, Some(*port)),
        [] => return Err(Failure::usage("the URL of the server is missing")),
        [_, _, word, ..] => return Err(Failure::usage(format!("unexpected argument `{word}`"))),
    };
    let no_login = given.iter().any(|(name, _)| *name == "--client-credentials");
    if let Some(port) = port.filter(|_| !no_login) {
        made.flag("--callback-port", port);
    }
    let (mut era, mut interval) = ("legacy", None);
    let (mut host, mut path) = ("localhost", "/oauth/callback");
    // Whether the client may be registered with the address that a login comes back to.
    let mut registered = port.is_some();
    for (name, values) in given {
        let value = values.first().copied().unwrap_or_default();
        match name {
            "--header" => made.flag("--header", header(value)?),
            "--transport" => transport(value, &mut made)?,
            "--protocol" if ["legacy", "auto"].contains(&value) => {
                era = if value == "auto" { "auto" } else { "legacy" };
            }
            "--protocol" => return Err(refused(name, "expected legacy or auto")),
            "--allow-http" => made.words.push("--allow-plain-http".to_owned()),
            "--debug" => made.words.push("-v".to_owned()),
            "--host" if ["127.0.0.1", "localhost"].contains(&value) => (host, registered) = (value, true),
            "--host" => made.remark(name, "a login comes back to localhost or 127.0.0.1"),
            "--callback-path" => (path, registered) = (value, true),
            "--auth-timeout" if no_login => made.remark(name, "nobody logs in"),
            "--auth-timeout" => made.flag("--login-timeout", value),
            "--header-file" => made.flag(name, value),
            "--client-metadata-url" => {
                made.flag(name, value);
                registered = true;
            }
            "--client-credentials" => made.words.push(name.to_owned()),
            "--keep-alive" if interval.is_none() => interval = Some("30"),
            "--ping-interval" => interval = Some(value),
            "--connect-timeout" | "--headers-timeout" => made.remark(name, "limits of the connection are fixed"),
            "--body-timeout" => made.remark(name, "a stream that is silent stays open"),
            "--ipv4" => made.remark(name, "addresses of both kinds are tried, and the first that answers is taken"),
            "--disable-cookies" => made.remark(name, "no cookies are kept"),
            "--authorize-param" => {
                return Err(refused(name, "the parameters of a login are those of the specification, and no others"));
            }
            "--disable-resource-parameter" => {
                return Err(refused(name, "the specification wants the resource to be named, so it always is"));
            }
            "--auth-success-url" => {
                return Err(refused(name, "after a login the browser shows a page of this program"));
            }
            "--token-endpoint" => {
                return Err(refused(name, "the token endpoint is the one that the server's metadata name"));
            }
            "--device-code" => {
                return Err(refused(
                    name,
                    "log in once with `linchpin auth login URL --no-browser`, then start this again",
                ));
            }
            "--use-id-token" => return Err(refused(name, "only access tokens are sent to servers")),
            "--static-oauth-client-info" => {
                registered = true;
                let info = json(name, value)?;
                let id = info.get("client_id").and_then(Value::as_str);
                made.flag("--client-id", id.ok_or_else(|| refused(name, "it has no client_id"))?);
                if let Some(secret) = info.get("client_secret").and_then(Value::as_str) {
                    let variable = secret.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
                    let why = "others can read a secret in a command line: write \"client_secret\": \"${VARIABLE}\"";
                    made.flag("--client-secret-env", variable.ok_or_else(|| refused(name, why))?);
                }
            }
            "--static-oauth-client-metadata" => {
                let metadata = json(name, value)?;
                for scope in metadata.get("scope").and_then(Value::as_str).unwrap_or_default().split_whitespace() {
                    made.flag("--scope", scope);
                }
            }
            "--ignore-tool" => made.flag("--no-tools", value),
            "--resource" => return Err(refused(name, "the resource is always the one that the server names")),
            // Proxies are used without being asked, and nothing is said without being asked.
            _ => {}
        }
    }
    if let Some(seconds) = interval {
        made.flag("--keep-alive", seconds);
    }
    if registered && !no_login {
        made.flag("--callback-host", host);
        made.flag("--callback-path", path);
    }
    made.flag("--era", era);
    made.flag("--url", url);
    Ok(made)
}
