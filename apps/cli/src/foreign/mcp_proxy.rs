//! mcp-proxy: two programs, one of PyPI and one of npm. The second is meant where one of its own flags is.

use super::flags::{Flag, Given, MANY, Made, flag, milliseconds, parsed, refused};
use crate::fail::Failure;
use base64::Engine as _;

pub(super) const FLAGS: &[Flag] = &[
    flag(&["--port"], 1),
    flag(&["--host"], 1),
    flag(&["--sse-port"], 1),
    flag(&["--sse-host"], 1),
    flag(&["--transport"], 1),
    flag(&["--headers", "-H"], 2),
    flag(&["--env", "-e"], 2),
    flag(&["--cwd"], 1),
    flag(&["--pass-environment"], 0),
    flag(&["--no-pass-environment"], 0),
    flag(&["--stateless"], 0),
    flag(&["--no-stateless"], 0),
    flag(&["--allow-origin"], MANY),
    flag(&["--expose-header"], 1),
    flag(&["--no-debug"], 0),
    flag(&["--username"], 1),
    flag(&["--password"], 1),
    flag(&["--digest"], 0),
    flag(&["--debug"], 0),
    flag(&["--log-level"], 1),
    flag(&["--named-server"], 2),
    flag(&["--named-server-config"], 1),
    flag(&["--client-id"], 1),
    flag(&["--client-secret"], 1),
    flag(&["--token-url"], 1),
    flag(&["--verify-ssl"], 1),
    flag(&["--no-verify-ssl"], 0),
    // Of ours.
    flag(&["--accept-host"], 1),
    // Of npm.
    flag(&["--server"], 1),
    flag(&["--endpoint"], 1),
    flag(&["--sseEndpoint"], 1),
    flag(&["--streamEndpoint"], 1),
    flag(&["--apiKey"], 1),
    flag(&["--shell"], 0),
    flag(&["--tunnel"], 0),
    flag(&["--tunnelSubdomain"], 1),
    flag(&["--modern"], 0),
    flag(&["--no-modern"], 0),
    flag(&["--upstreamProtocol"], 1),
    flag(&["--connectionTimeout"], 1),
    flag(&["--requestTimeout"], 1),
    flag(&["--keepAliveTimeout"], 1),
    flag(&["--sessionIdleTimeout"], 1),
    flag(&["--gracefulShutdownTimeout"], 1),
    flag(&["--eventStore"], 0),
    flag(&["--no-eventStore"], 0),
    flag(&["--eventStoreMaxEvents"], 1),
    flag(&["--maxBodySize"], 1),
    flag(&["--sslCa"], 1),
    flag(&["--sslCert"], 1),
    flag(&["--sslKey"], 1),
    flag(&["--corsAddAllowedHeader"], 1),
];

/// Flags that only the program of npm has.
const OF_NPM: &[&str] = &[
    "--server",
    "--endpoint",
    "--sseEndpoint",
    "--streamEndpoint",
    "--apiKey",
    "--shell",
    "--tunnel",
    "--tunnelSubdomain",
    "--modern",
    "--no-modern",
    "--upstreamProtocol",
    "--connectionTimeout",
    "--requestTimeout",
    "--keepAliveTimeout",
    "--sessionIdleTimeout",
    "--gracefulShutdownTimeout",
    "--eventStore",
    "--no-eventStore",
    "--eventStoreMaxEvents",
    "--maxBodySize",
    "--sslCa",
    "--sslCert",
    "--sslKey",
    "--corsAddAllowedHeader",
];

/// Flags that do not tell the two programs apart: both have them, or neither.
const OF_BOTH: &[&str] =
    &["--port", "--host", "--stateless", "--no-stateless", "--debug", "--no-debug", "--accept-host"];

/// The flags, and the URL or the command. Flags may follow a URL, but no arguments.
fn read(words: &[String]) -> Result<(Vec<Given<'_>>, Vec<&str>), Failure> {
    let (mut given, rest) = parsed("mcp-proxy", FLAGS, words, true)?;
    let Some(url) = rest.first().copied().filter(|word| is_url(word)) else { return Ok((given, rest)) };
    let (more, others) = parsed("mcp-proxy", FLAGS, &words[words.len() - rest.len() + 1..], false)?;
    if let Some(word) = others.first() {
        return Err(Failure::usage(format!("unexpected argument `{word}`")));
    }
    given.extend(more);
    Ok((given, vec![url]))
}

pub(super) fn translated(words: &[String], env: &dyn Fn(&str) -> Option<String>) -> Result<Made, Failure> {
    let (given, rest) = read(words)?;
    let npm = given.iter().any(|(name, _)| OF_NPM.contains(name));
    let unclear = given.iter().all(|(name, _)| OF_BOTH.contains(name));
    let (mut made, mut place) = (Made::default(), Made::default());
    // What is for a URL, and what for a command.
    let (mut web, mut child) = (Made::default(), Made::default());
    let (mut port, mut host) = (if npm { "8080" } else { "0" }, None);
    // That of npm passes its environment on, that of PyPI only when asked.
    let mut inherits = npm;
    let (mut transport, mut sse) = ("sse", true);
    let (mut user, mut password, mut endpoint) = (None, None, None);
    for (name, values) in given {
        let value = values.first().copied().unwrap_or_default();
        if let Some(why) = never(name) {
            return Err(refused(name, why));
        }
        match name {
            "--port" | "--sse-port" => port = value,
            "--host" | "--sse-host" => host = Some(value),
            "--transport" if ["sse", "streamablehttp"].contains(&value) => {
                transport = if value == "sse" { "sse" } else { "http" };
            }
            "--transport" => return Err(refused(name, "expected sse or streamablehttp")),
            "--headers" => web.flag("--header", values.join(": ")),
            "--env" => child.flag("--env", values.join("=")),
            "--cwd" => child.flag("--cwd", value),
            "--pass-environment" => inherits = true,
            "--no-pass-environment" => inherits = false,
            "--accept-host" => place.flag(name, value),
            "--allow-origin" => values.iter().for_each(|origin| place.flag("--cors", *origin)),
            "--expose-header" | "--corsAddAllowedHeader" => {
                made.remark(name, "pages may send and read the headers of the protocol");
            }
            "--stateless" => place.words.extend(["--sessions".to_owned(), "off".to_owned()]),
            "--username" => user = Some(value),
            "--password" => password = Some(value),
            "--debug" => made.words.push("-v".to_owned()),
            "--log-level" if value.eq_ignore_ascii_case("debug") => made.words.push("-v".to_owned()),
            "--server" => match value {
                "sse" => {}
                "stream" => sse = false,
                _ => return Err(refused(name, "expected sse or stream")),
            },
            "--endpoint" => endpoint = Some(value),
            "--sseEndpoint" => place.flag("--sse-path", value),
            "--streamEndpoint" => place.flag("--path", value),
            _ => of_npm(name, value, &mut made, &mut place)?,
        }
    }
    if let Some(path) = endpoint {
        place.flag(if sse { "--sse-path" } else { "--path" }, path);
    }
    if let (Some(user), Some(password)) = (user, password) {
        let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        web.flag("--header", format!("Authorization: Basic {encoded}"));
    }
    let command: Vec<String> = rest.iter().map(ToString::to_string).collect();
    match command.as_slice() {
        [] => return Err(Failure::usage("the URL or the command of the server is missing")),
        [url] if is_url(url) => {
            made.takes(web, &child, "for a server that a command starts");
            if env("API_ACCESS_TOKEN").is_some_and(|token| !token.is_empty()) {
                made.flag("--bearer-env", "API_ACCESS_TOKEN");
            }
            made.flag("--transport", transport);
            made.flag("--url", url);
        }
        command => {
            made.takes(child, &web, "for a server with a URL");
            made.listens(host, port)?;
            if unclear {
                made.remarks.push(read_as_of_pypi(port).to_owned());
            }
            if sse {
                made.words.push("--sse".to_owned());
            }
            made.words.append(&mut place.words);
            if inherits {
                made.words.push("--inherit-env".to_owned());
            }
            made.command(command);
        }
    }
    Ok(made)
}

/// Why a flag stops the start, whatever its value.
fn never(name: &str) -> Option<&'static str> {
    Some(match name {
        "--digest" => "of passwords only Basic is understood",
        "--named-server" | "--named-server-config" => "a bridge is for one server; start one for each",
        "--client-id" | "--client-secret" | "--token-url" => {
            "log in with `linchpin auth login URL` first, or pass a token with --bearer-env"
        }
        "--verify-ssl" | "--no-verify-ssl" => "certificates are always checked, by the system's authorities",
        "--apiKey" => "others can read it in the command line; see --auth keys:FILE of `linchpin bridge`",
        "--shell" => "no shell is run; write `-- sh -c '…'` if one is meant",
        "--tunnel" | "--tunnelSubdomain" => "there is no tunnel",
        "--sslCa" => "clients are not asked for certificates; see --auth",
        _ => return None,
    })
}

/// What is said where no flag tells which program is meant.
fn read_as_of_pypi(port: &str) -> &'static str {
    match port {
        "0" => {
            "no flag is npm's own, so this is read as PyPI's: the command does not get the environment, and the port is any \
             that is free; for npm's add --port 8080 --pass-environment"
        }
        _ => {
            "no flag is npm's own, so this is read as PyPI's: the command does not get the environment; for npm's add \
             --pass-environment"
        }
    }
}

fn is_url(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// The flags of npm's program that are others' settings here.
fn of_npm(name: &'static str, value: &str, made: &mut Made, place: &mut Made) -> Result<(), Failure> {
    match name {
        "--no-modern" => place.flag("--serve-era", "legacy"),
        "--upstreamProtocol" if ["auto", "legacy", "modern"].contains(&value) => made.flag("--era", value),
        "--upstreamProtocol" => return Err(refused(name, "expected auto, legacy or modern")),
        "--requestTimeout" => made.flag("--call-timeout", milliseconds(name, value)?),
        "--sessionIdleTimeout" => made.flag("--idle-stop", milliseconds(name, value)?),
        "--connectionTimeout"
        | "--keepAliveTimeout"
        | "--gracefulShutdownTimeout"
        | "--maxBodySize"
        | "--eventStoreMaxEvents"
        | "--eventStore"
        | "--no-eventStore" => made.remark(name, "this limit is fixed here (docs/LIMITS.md)"),
        "--sslCert" => place.flag("--tls-cert", value),
        "--sslKey" => place.flag("--tls-key", value),
        // What needs no flag here.
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_when_no_flag_tells_which_program_is_meant() {
        for (line, said) in [
            ("npx x", Some("add --port 8080 --pass-environment")),
            ("--port 8080 -- x", Some("for npm's add --pass-environment")),
            ("--port 1 --host localhost --stateless --debug x", Some("for npm's add --pass-environment")),
            ("--sse-port 1 x", None),
            ("--pass-environment x", None),
            ("--no-pass-environment x", None),
            ("--env A B -- x", None),
            ("--server sse -- x", None),
            ("https://example.com/sse", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let remarks = translated(&words, &|_| None).unwrap().remarks;
            assert_eq!(remarks.len(), said.iter().count(), "{line}: {remarks:?}");
            assert!(said.is_none_or(|said| remarks[0].ends_with(said)), "{line}: {remarks:?}");
        }
    }
}
