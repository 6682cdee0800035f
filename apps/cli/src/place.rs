//! Where a server listens.

use crate::fail::Failure;
use crate::paste;
use crate::shown::{note, tell};
use clap::Args;
use linchpin::proto::service::IntoService;
use linchpin::transport::{http, shutdown_signal, stdio};
use std::io;
use std::net::SocketAddr;

/// Standard input and output unless `--http` or `--unix` says otherwise.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where to serve")]
pub(crate) struct PlaceArgs {
    /// Serve Streamable HTTP at this address instead, for example 127.0.0.1:8931. Port 0 takes a free one.
    #[arg(long, value_name = "ADDR", conflicts_with = "unix")]
    http: Option<String>,

    /// Over HTTP, serve the transport of 2024-11-05 too, at /sse.
    #[arg(long, requires = "http")]
    sse: bool,

    /// Accept requests to this host name too. Needed behind a proxy. May be repeated.
    #[arg(long, value_name = "NAME", requires = "http", alias = "allow-host")]
    accept_host: Vec<String>,

    /// Let pages of this origin call, for example https://app.example. May be repeated.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,

    /// Serve at a unix socket instead, for the same user only.
    #[cfg(unix)]
    #[arg(long, value_name = "PATH")]
    unix: Option<std::path::PathBuf>,
}

/// Without the other name of `--accept-host`, which is a flag of `fetch` and could be meant for it.
pub(crate) fn without_alias(command: clap::Command) -> clap::Command {
    command.mut_arg("accept_host", |arg| arg.alias(None::<&str>))
}

/// How a client gets at the server: its name, and the command that starts it on stdio.
pub(crate) struct Card<'a> {
    pub(crate) name: &'a str,
    pub(crate) command: Vec<String>,
    /// Names of variables that had a say and have to be set there too.
    pub(crate) variables: Vec<String>,
}

/// Who the clients of a server can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    /// The one that started the program, over its standard input and output.
    Parent,
    /// Programs of the same user, at a unix socket.
    #[cfg_attr(not(unix), allow(dead_code, reason = "there are no unix sockets"))]
    SameUser,
    /// Over HTTP, whoever can reach the address.
    Anybody,
}

impl PlaceArgs {
    /// Who can connect.
    pub(crate) fn clients(&self) -> Clients {
        #[cfg(unix)]
        if self.unix.is_some() {
            return Clients::SameUser;
        }
        if self.http.is_some() { Clients::Anybody } else { Clients::Parent }
    }

    /// Serves until input ends or the process is told to stop.
    pub(crate) fn run(self, server: impl IntoService, card: &Card<'_>) -> Result<(), Failure> {
        let service = server.into_shared().map_err(|e| not_together(&e))?;
        // One thread does for a pipe; HTTP takes what the machine has.
        let mut runtime = match self.http {
            Some(_) => tokio::runtime::Builder::new_multi_thread(),
            None => tokio::runtime::Builder::new_current_thread(),
        };
        let runtime = runtime.enable_all().build().map_err(Failure::new)?;
        let ended = service.clone();
        let served = async {
            let _full = outlive_a_full_quota();
            use linchpin::proto::service::Bind;
            #[cfg(unix)]
            if let Some(path) = &self.unix {
                note(format!("serving {} at {}", card.name, path.display()));
                let place = linchpin::transport::unix::unix(path).with_graceful_shutdown(shutdown_signal());
                return place.serve(service).await.map_err(Failure::new);
            }
            match &self.http {
                None => {
                    if io::IsTerminal::is_terminal(&io::stdin()) {
                        tell(&paste::waiting(card));
                    }
                    let place = stdio::stdio().with_graceful_shutdown(shutdown_signal());
                    place.serve(service).await.map_err(Failure::new)
                }
                Some(addr) => self.listen(addr, card).serve(service).await.map_err(|e| refused(addr, &e)),
            }
        };
        runtime.block_on(async {
            #[cfg(all(target_os = "linux", target_env = "gnu"))]
            tokio::spawn(crate::trim::when_large());
            let served = served.await;
            ended.ended().await;
            served
        })
    }

    fn listen(&self, addr: &str, card: &Card<'_>) -> http::Http {
        let mut place = http::http(addr).with_graceful_shutdown(shutdown_signal());
        if self.sse {
            place = place.with_sse();
        }
        for host in &self.accept_host {
            place = place.allow_host(host);
        }
        for origin in &self.allow_origin {
            place = place.allow_origin(origin);
        }
        let (name, sse) = (card.name.to_owned(), self.sse);
        let (command, variables) = (card.command.clone(), card.variables.clone());
        place.on_ready(move |addr| announce(&Card { name: &name, command, variables }, addr, sse))
    }
}

/// A write beyond the largest file that is allowed (`ulimit -f`) is an error of the call that made it: left alone, SIGXFSZ
/// ends the process. It is listened to rather than ignored, because programs that are started would inherit that.
#[cfg(unix)]
fn outlive_a_full_quota() -> io::Result<tokio::signal::unix::Signal> {
    /// The same on Linux, macOS and the BSDs.
    const SIGXFSZ: i32 = 25;
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(SIGXFSZ))
}

#[cfg(not(unix))]
fn outlive_a_full_quota() {}

fn announce(card: &Card<'_>, addr: SocketAddr, sse: bool) {
    tell(&paste::listening(card, addr, sse));
}

/// Why servers cannot be put together. Who runs the program has not written them: places in their source say nothing.
fn not_together(e: &io::Error) -> Failure {
    let problems = e.to_string();
    let twice = |problem: &str| Some(problem.split_once(" is defined twice: at ")?.0.replace('`', ""));
    let taken: Vec<String> = problems.lines().filter_map(twice).collect();
    match taken.as_slice() {
        [] => Failure::new(problems),
        [first, more @ ..] => {
            let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
            Failure::usage(format!("two servers of this process both offer the {first}{more}"))
                .hint("give one of them a name (OTHER=NAME:VALUE), or a process of its own")
        }
    }
}

fn refused(addr: &str, e: &io::Error) -> Failure {
    let text = e.to_string();
    let failure = Failure::new(if text.contains(addr) { text } else { format!("cannot serve at {addr}: {text}") });
    match e.kind() {
        io::ErrorKind::AddrInUse => {
            failure.hint("another program listens there; take another port, or port 0 for a free one")
        }
        io::ErrorKind::PermissionDenied => failure.hint("ports below 1024 need privileges; take a higher one"),
        io::ErrorKind::InvalidInput => failure.hint("an address is HOST:PORT, for example 127.0.0.1:8931"),
        io::ErrorKind::AddrNotAvailable => failure.hint("this machine has no such address; 127.0.0.1 is itself"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin::prelude::*;

    #[test]
    fn what_two_servers_offer_is_said_without_places_in_their_source() {
        let resource = |uri: &str| (uri.to_owned(), async |_: NoArgs| "text");
        let offered = |uris: &[&str]| {
            let server = uris
                .iter()
                .map(|uri| resource(uri))
                .fold(Server::new("test", "1"), |server, (uri, read)| server.resource(Resource::new(uri), read));
            server.into_shared().map(drop).map_err(|e| not_together(&e).message().to_owned())
        };
        assert_eq!(offered(&["a://b", "a://c"]), Ok(()));
        for (uris, says) in [
            (&["a://b", "a://b"][..], "two servers of this process both offer the resource a://b"),
            (
                &["a://{b}", "a://{b}", "a://c", "a://c"],
                "two servers of this process both offer the resource a://{b}, and 1 more",
            ),
        ] {
            assert_eq!(offered(uris), Err(says.to_owned()));
        }
    }
}
