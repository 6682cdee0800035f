//! supergateway, of npm.

use super::flags::{Flag, MANY, Made, flag, header, milliseconds, parsed, refused};
use crate::fail::Failure;
use crate::shell;

pub(super) const FLAGS: &[Flag] = &[
    flag(&["--stdio"], 1),
    flag(&["--sse"], 1),
    flag(&["--streamableHttp"], 1),
    flag(&["--outputTransport"], 1),
    flag(&["--port"], 1),
    flag(&["--host"], 1),
    flag(&["--baseUrl"], 1),
    flag(&["--ssePath"], 1),
    flag(&["--messagePath"], 1),
    flag(&["--streamableHttpPath"], 1),
    flag(&["--stateful"], 0),
    flag(&["--sessionTimeout"], 1),
    flag(&["--header"], MANY),
    flag(&["--oauth2Bearer"], 1),
    flag(&["--cors"], MANY),
    flag(&["--healthEndpoint"], MANY),
    flag(&["--logLevel"], 1),
    flag(&["--protocolVersion"], 1),
    // Of ours.
    flag(&["--accept-host"], 1),
];

pub(super) fn translated(words: &[String]) -> Result<Made, Failure> {
    let (given, rest) = parsed("supergateway", FLAGS, words, false)?;
    if let Some(word) = rest.first() {
        return Err(Failure::usage(format!("unexpected argument `{word}`")));
    }
    let (mut made, mut upstream) = (Made::default(), Made::default());
    let (mut more, mut sse) = (Made::default(), Made::default());
    let mut stateful = false;
    let (mut stdio, mut url, mut output) = (None, None, None);
    let (mut port, mut host) = ("8000", None);
    for (name, values) in given {
        let value = values.first().copied().unwrap_or_default();
        match name {
            "--stdio" => stdio = Some(value),
            "--sse" => url = Some(("sse", value)),
            "--streamableHttp" => url = Some(("http", value)),
            "--outputTransport" => output = Some(value),
            "--port" => port = value,
            "--host" => host = Some(value),
            "--baseUrl" => host_of(value).into_iter().for_each(|host| more.flag("--accept-host", host)),
            "--ssePath" => sse.flag("--sse-path", value),
            "--messagePath" => sse.flag("--message-path", value),
            "--streamableHttpPath" => more.flag("--path", value),
            "--accept-host" => more.flag(name, value),
            "--healthEndpoint" => values.iter().for_each(|path| more.flag("--health", *path)),
            "--stateful" => stateful = true,
            "--sessionTimeout" => more.flag("--idle-stop", milliseconds(name, value)?),
            "--header" => {
                for value in values {
                    upstream.flag("--header", header(value)?);
                }
            }
            "--oauth2Bearer" => upstream.flag("--bearer", value),
            "--cors" if values.iter().any(|origin| origin.starts_with('/')) => {
                return Err(refused("--cors", "patterns of origins are not understood; name the origins"));
            }
            "--cors" if values.is_empty() => more.flag("--cors", "*"),
            "--cors" => values.iter().for_each(|origin| more.flag("--cors", *origin)),
            "--logLevel" => match value {
                "debug" => made.words.push("-v".to_owned()),
                // Nothing is said without being asked.
                "info" | "none" => {}
                _ => return Err(refused(name, "expected debug, info or none")),
            },
            "--protocolVersion" => made.remark(name, "each client says its own revision"),
            _ => {}
        }
    }
    let output = output.unwrap_or(if stdio.is_some() { "sse" } else { "stdio" });
    match output {
        "stdio" => {}
        "sse" | "streamableHttp" => {
            made.listens(host, port)?;
            if output == "sse" {
                made.words.push("--sse".to_owned());
                made.words.append(&mut sse.words);
            } else if stdio.is_some() && !stateful {
                // As there, each request has a process.
                for word in ["--sessions", "off", "--isolation", "fresh", "--warm", "4"] {
                    made.words.push(word.to_owned());
                }
            }
            made.words.append(&mut more.words);
            made.words.push("--stop-with-stdin".to_owned());
        }
        "ws" => return Err(refused("--outputTransport ws", "no revision of the protocol has WebSockets")),
        other => return Err(refused("--outputTransport", &format!("`{other}` is not stdio, sse or streamableHttp"))),
    }
    match (stdio, url) {
        (Some(_), None) if !upstream.words.is_empty() => {
            return Err(refused("--header and --oauth2Bearer", "with --stdio there is no server to send them to"));
        }
        (Some(line), None) => {
            if let Some(syntax) = of_a_shell(line) {
                let why = format!("{syntax} needs a shell, and none is run: write sh -c '…' around the command line");
                return Err(refused("--stdio", &why));
            }
            let words = shell::split(line).unwrap_or_default();
            let start = words.iter().position(|word| !is_assignment(word)).unwrap_or(words.len());
            let (variables, command) = words.split_at(start);
            if command.is_empty() {
                return Err(refused("--stdio", "not a command line"));
            }
            made.words.push("--inherit-env".to_owned());
            variables.iter().for_each(|variable| made.flag("--env", variable));
            made.command(command);
        }
        (None, Some((transport, url))) => {
            made.words.append(&mut upstream.words);
            made.flag("--transport", transport);
            made.flag("--url", url);
        }
        _ => return Err(Failure::usage("exactly one of --stdio, --sse and --streamableHttp says where the server is")),
    }
    Ok(made)
}

fn host_of(url: &str) -> Option<&str> {
    let address = url.split("://").nth(1).unwrap_or(url);
    address.split('/').next().filter(|host| !host.is_empty())
}

/// Whether a word in front of a command sets a variable.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What a shell does not take as it is written, if there is something.
fn of_a_shell(line: &str) -> Option<&str> {
    let mut quote = None;
    // Whether a word starts here.
    let mut starts = true;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let rest = &line[at..];
        let next = chars.peek().map(|(_, next)| *next);
        match (c, quote) {
            ('\'', Some('\'')) | ('"', Some('"')) => quote = None,
            (_, Some('\'')) => {}
            ('\'' | '"', None) => quote = Some(c),
            ('\\', _) => drop(chars.next()),
            ('`', _) => return Some(&rest[..1]),
            ('$', _) if next.is_some_and(|c| c.is_ascii_alphanumeric() || "_{(*@#?$!".contains(c)) => {
                let end = rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                return Some(&rest[..end.map_or(rest.len(), |end| end.max(1) + 1)]);
            }
            ('#', None) if starts => return None,
            ('~', None) if starts => return Some(&rest[..1]),
            ('&' | '|', None) if next == Some(c) => return Some(&rest[..2]),
            ('&' | '|' | ';' | '<' | '>' | '(' | ')', None) => return Some(&rest[..1]),
            _ => {}
        }
        starts = quote.is_none() && c.is_whitespace();
    }
    None
}
