//! The transports of a server.

use super::auth::{AuthArgs, Protection};
use super::paste::{self, Card, Front};
use crate::exit::Exit;
use crate::fail::Failure;
use crate::show::out::{note, tell};
use clap::Args;
use linchpin::ConfigError;
use linchpin::middleware::Metrics;
use linchpin::transport::{Http, HttpOptions, IntoService, Tls, http, shutdown_signal, stdio};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The heading of options that are for HTTP only.
const HTTP: &str = "HTTP";

/// Standard input and output unless `--http` or `--unix` says otherwise.
#[derive(Debug, Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct PlaceArgs {
    /// Serve Streamable HTTP on this address, for example 127.0.0.1:8931. Port 0 picks a free port. It also
    /// answers probes at /healthz and /readyz.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,

    /// Serve on a Unix socket, for the same user only.
    #[cfg(unix)]
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,

    /// Also serve the HTTP+SSE transport of 2024-11-05, at /sse.
    #[arg(help_heading = HTTP, long, requires = "http")]
    sse: bool,

    /// Also accept requests for this host name. Required behind a proxy. May be repeated.
    #[arg(help_heading = HTTP, long, value_name = "NAME", requires = "http", alias = "allow-host")]
    accept_host: Vec<String>,

    /// Allow browser requests from this origin, for example https://app.example. May be repeated.
    #[arg(help_heading = HTTP, long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,

    /// Serve HTTPS with the certificates in this PEM file. It is read again when it changes.
    #[arg(help_heading = HTTP, long, value_name = "FILE", requires = "http", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The PEM file of the certificate's private key.
    #[arg(help_heading = HTTP, long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// After a termination signal, still accept requests for this long, while /readyz answers 503.
    #[arg(help_heading = HTTP, long, value_name = "SECONDS", requires = "http", value_parser = crate::duration::read)]
    shutdown_delay: Option<Duration>,

    /// What /metrics shows.
    #[arg(skip)]
    pub(crate) metrics: Option<Metrics>,

    /// Whether the end of standard input, if that is a pipe, also ends it over HTTP.
    #[arg(skip)]
    pub(crate) stops_with_stdin: bool,

    /// Authorization.
    #[arg(skip)]
    protection: Option<Protection>,

    /// The URL that clients use.
    #[arg(skip)]
    public: Option<String>,

    /// What /readyz says: why requests cannot be served now.
    #[arg(skip)]
    pub(crate) ready: Option<Ready>,

    /// What is otherwise over HTTP.
    #[arg(skip)]
    pub(crate) change: Option<Change>,
}

/// Changes the options of HTTP.
#[derive(Clone)]
pub(crate) struct Change(pub(crate) Arc<dyn Fn(&mut HttpOptions) + Send + Sync>);

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Change")
    }
}

/// Says whether requests can be served, or why not.
#[derive(Clone)]
pub(crate) struct Ready(pub(crate) Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ready")
    }
}

/// Removes the alias of `--accept-host`, which is also a flag of `fetch`.
pub(crate) fn without_alias(command: clap::Command) -> clap::Command {
    command.mut_arg("accept_host", |arg| arg.alias(None::<&str>))
}

/// The possible clients of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    /// The parent process, over standard input and output.
    Parent,
    /// Programs of the same user, over a Unix socket.
    #[cfg_attr(not(unix), allow(dead_code, reason = "there are no unix sockets"))]
    SameUser,
    /// Anyone who can reach the address, over HTTP.
    Anybody,
}

impl PlaceArgs {
    /// Returns the possible clients.
    pub(crate) fn clients(&self) -> Clients {
        if self.http.is_some() {
            return Clients::Anybody;
        }
        #[cfg(unix)]
        if self.unix.is_some() {
            return Clients::SameUser;
        }
        Clients::Parent
    }

    /// Whether people are told how to reach it: over HTTP, or if it was started by hand.
    pub(crate) fn tells(&self) -> bool {
        self.http.is_some() || io::IsTerminal::is_terminal(&io::stdin())
    }

    /// Sets the authorization over HTTP.
    pub(crate) fn guard(&mut self, auth: &AuthArgs) -> Result<(), Failure> {
        let addr = self.http.as_deref().unwrap_or_default();
        self.protection = auth.protection(self.clients(), addr, self.tls_cert.is_some(), self.sse)?;
        if let Some((url, host)) = auth.public()? {
            self.accept_host.insert(0, host.to_owned());
            self.public = Some(url.to_owned());
        }
        Ok(())
    }

    /// Whether anybody who reaches it is let in without saying who it is. Known after [`PlaceArgs::guard`].
    #[cfg(feature = "client")]
    pub(crate) fn is_public(&self) -> bool {
        self.clients() == Clients::Anybody && self.protection.is_none()
    }

    /// Serves until end of input or a termination signal.
    pub(crate) fn run(self, server: impl IntoService, card: &Card<'_>) -> Result<(), Failure> {
        let service = server.into_shared().map_err(|e| not_together(&e))?;
        let tls = self.tls()?;
        // One thread is enough for a pipe; HTTP uses all cores.
        let mut runtime = match self.http {
            Some(_) => tokio::runtime::Builder::new_multi_thread(),
            None => tokio::runtime::Builder::new_current_thread(),
        };
        let runtime = runtime.enable_all().build().map_err(Failure::new)?;
        let ended = service.clone();
        let served = async {
            let _full = outlive_a_full_quota();
            use linchpin::transport::Bind;
            #[cfg(unix)]
            let socket = self.unix.as_ref().map(|path| {
                let ready = format!("{} is listening on {}", card.name, path.display());
                let place = linchpin::transport::unix(path).with_graceful_shutdown(shutdown_signal());
                place.on_ready(move || note(ready)).serve(service.clone())
            });
            #[cfg(not(unix))]
            let socket = None::<linchpin::BoxFuture<'static, io::Result<()>>>;
            let socket = socket.map(|place| async move { place.await.map_err(Failure::new) });
            let address = self.http.as_ref().map(|addr| {
                let place = self.listen(addr, tls, card).serve(service.clone());
                async move { place.await.map_err(|e| refused(addr, &e)) }
            });
            match (socket, address) {
                (None, None) => {
                    if self.tells() {
                        let text = paste::waiting(card);
                        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
                        note(first);
                        tell(rest);
                    }
                    let place = stdio().with_graceful_shutdown(shutdown_signal());
                    place.serve(service).await.map_err(Failure::new)
                }
                (Some(socket), None) => socket.await,
                (None, Some(address)) => address.await,
                // If one of them cannot be had, there is none.
                (Some(socket), Some(address)) => tokio::try_join!(socket, address).map(drop),
            }
        };
        runtime.block_on(async {
            #[cfg(all(target_os = "linux", target_env = "gnu"))]
            {
                super::trim::set_thresholds();
                tokio::spawn(super::trim::when_large());
            }
            let served = served.await;
            ended.ended().await;
            served
        })
    }

    fn tls(&self) -> Result<Option<Tls>, Failure> {
        tls(self.tls_cert.as_deref(), self.tls_key.as_deref())
    }

    fn listen(&self, addr: &str, tls: Option<Tls>, card: &Card<'_>) -> Http {
        let mut place = http(addr).health().with_graceful_shutdown(stopped(self.stops_with_stdin));
        if let Some(delay) = self.shutdown_delay {
            place = place
                .options(|options| options.shutdown_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        }
        if let Some(Ready(ready)) = self.ready.clone() {
            place = place.options(|options| options.ready = Some(ready));
        }
        if let Some(Change(change)) = &self.change {
            place = place.options(|options| change(options));
        }
        if let Some(metrics) = self.metrics.clone() {
            place = place.metrics(move || metrics.render());
        }
        if self.sse {
            place = place.with_sse();
        }
        for host in &self.accept_host {
            place = place.allow_host(host);
        }
        for origin in &self.allow_origin {
            place = place.allow_origin(origin);
        }
        if let Some(protection) = &self.protection {
            place = place.guard(protection.gate.clone());
        }
        let pass = self.protection.as_ref().map(|protection| protection.pass.clone()).unwrap_or_default();
        let mut options = HttpOptions::default();
        self.change.iter().for_each(|Change(change)| change(&mut options));
        let paths = (options.path, Some(options.sse_paths.0));
        let front = Front {
            tls: tls.is_some(),
            sse: self.sse,
            paths,
            hosts: self.accept_host.clone(),
            pass,
            public: self.public.clone(),
        };
        if let Some(tls) = tls {
            place = place.tls(tls);
        }
        let name = card.name.to_owned();
        let (command, variables) = (card.command.clone(), card.variables.clone());
        place.on_ready(move |addr| {
            tell(&paste::listening(&Card { name: &name, command, variables }, addr, &front));
        })
    }
}

/// Waits for a termination signal, or also for the end of standard input if that is a pipe.
async fn stopped(with_stdin: bool) {
    let (ends, ended) = tokio::sync::oneshot::channel::<()>();
    if with_stdin && stdin_is_a_pipe() {
        // On a thread of its own: a runtime waits for its own threads, and reading cannot be stopped.
        std::thread::spawn(move || {
            until_end(&mut io::stdin().lock());
            drop(ends);
        });
        tokio::select! {
            () = shutdown_signal() => {}
            _ = ended => {}
        }
    } else {
        shutdown_signal().await;
    }
}

/// Reads until there is nothing more.
fn until_end(input: &mut impl io::Read) {
    let mut read = [0; 4096];
    loop {
        match input.read(&mut read) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Another program with the same pipe made it so.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(100)),
            Err(_) => return,
        }
    }
}

/// Whether standard input is a pipe, or a socket, which Node.js starts programs with.
#[cfg(unix)]
fn stdin_is_a_pipe() -> bool {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileTypeExt as _;
    let file = io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from);
    let kind = file.and_then(|file| file.metadata()).map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

#[cfg(not(unix))]
fn stdin_is_a_pipe() -> bool {
    false
}

/// Turns a write beyond the file size limit (`ulimit -f`) into an error of the call that made it: by default, SIGXFSZ
/// terminates the process. The signal is handled rather than ignored, because child processes would inherit that.
#[cfg(unix)]
fn outlive_a_full_quota() -> io::Result<tokio::signal::unix::Signal> {
    /// The same on Linux, macOS and the BSDs.
    const SIGXFSZ: i32 = 25;
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(SIGXFSZ))
}

#[cfg(not(unix))]
fn outlive_a_full_quota() {}

/// Reports why servers cannot be combined, without source locations, which mean nothing to the operator.
fn not_together(e: &ConfigError) -> Failure {
    let twice = |problem: &str| Some(problem.split_once(" is defined twice: at ")?.0.replace('`', ""));
    let taken: Vec<String> = e.problems().filter_map(twice).collect();
    match taken.as_slice() {
        [] => Failure::new(e),
        [first, more @ ..] => {
            let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
            Failure::usage(format!("two servers in this process both have the {first}{more}"))
                .hint("rename one of them (OTHER=NAME:VALUE), or run it in its own process")
        }
    }
}

pub(super) fn refused(addr: &str, e: &io::Error) -> Failure {
    let text = e.to_string();
    let failure = Failure::new(if text.contains(addr) { text } else { format!("cannot listen on {addr}: {text}") });
    // The message explains the cause.
    match e.kind() {
        io::ErrorKind::AddrInUse => failure.hint("port 0 picks a free port"),
        io::ErrorKind::InvalidInput if e.to_string().contains("write it as host:port") => {
            let failure = Failure::usage(format!("cannot listen on {addr}: it is not an address"));
            failure.hint("expected HOST:PORT, for example 127.0.0.1:8931")
        }
        io::ErrorKind::InvalidInput => failure.exit(Exit::Usage),
        io::ErrorKind::AddrNotAvailable => {
            failure.hint("this machine has no such address; use 127.0.0.1 for local clients")
        }
        _ => failure,
    }
}

/// The certificate and key of `--tls-cert` and `--tls-key`, if they are given.
pub(super) fn tls(certificate: Option<&Path>, key: Option<&Path>) -> Result<Option<Tls>, Failure> {
    let (Some(certificate), Some(key)) = (certificate, key) else { return Ok(None) };
    Tls::from_files(certificate, key).map(Some).map_err(|error| match certificate.exists() || key.exists() {
        true => Failure::usage(error),
        // Nothing is there that it could overwrite.
        false => Failure::usage(error).hint(format!(
            "to try it on this machine, `openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -addext \
             subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout {} -out {}` makes both",
            key.display(),
            certificate.display()
        )),
    })
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
            (&["a://b", "a://b"][..], "two servers in this process both have the resource a://b"),
            (
                &["a://{b}", "a://{b}", "a://c", "a://c"],
                "two servers in this process both have the resource a://{b}, and 1 more",
            ),
        ] {
            assert_eq!(offered(uris), Err(says.to_owned()));
        }
    }
}
