//! supergateway, of npm.

use super::{Flag, MANY, Made, flag, header, parsed, refused};
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
    flag(&["--header"], 1),
    flag(&["--oauth2Bearer"], 1),
    flag(&["--cors"], MANY),
    flag(&["--healthEndpoint"], 1),
    flag(&["--logLevel"], 1),
    flag(&["--protocolVersion"], 1),
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
            "--baseUrl" => {
                let address = value.split("://").nth(1).unwrap_or(value);
                let host = address.split('/').next().unwrap_or_default();
                if !host.is_empty() {
                    more.flag("--accept-host", host);
                }
            }
            "--ssePath" => sse.flag("--sse-path", value),
            "--messagePath" => sse.flag("--message-path", value),
            "--streamableHttpPath" => more.flag("--path", value),
            "--healthEndpoint" => more.flag("--health", value),
            "--stateful" => stateful = true,
            "--sessionTimeout" => more.flag("--idle-stop", format!("{value}ms")),
            "--header" => upstream.flag("--header", header(value)?),
            "--oauth2Bearer" => upstream.flag("--bearer", value),
            "--cors" if values.iter().any(|origin| origin.starts_with('/')) => {
                return Err(refused("--cors", "patterns of origins are not understood; name the origins"));
            }
            "--cors" if values.is_empty() => more.flag("--cors", "*"),
            "--cors" => values.iter().for_each(|origin| more.flag("--cors", *origin)),
            "--logLevel" if value == "debug" => made.words.push("-v".to_owned()),
            "--protocolVersion" => made.remark(name, "each client says its own revision"),
            // Nothing is said without being asked.
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
        }
        "ws" => return Err(refused("--outputTransport ws", "no revision of the protocol has WebSockets")),
        other => return Err(refused("--outputTransport", &format!("`{other}` is not stdio, sse or streamableHttp"))),
    }
    match (stdio, url) {
        (Some(_), None) if !upstream.words.is_empty() => {
            return Err(refused("--header and --oauth2Bearer", "with --stdio there is no server to send them to"));
        }
        (Some(line), None) => {
            let words = shell::split(line).filter(|words| !words.is_empty());
            made.command(&words.ok_or_else(|| refused("--stdio", "not a command line"))?);
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
