//! Which server is meant: words, an address, a socket, a file's entry, or a transcript.

use crate::config::{self, Entry};
use crate::fail::Failure;
use crate::login;
use crate::redact::{Redactor, is_secret};
use crate::replay;
use crate::shell;
use crate::transcript::Transcript;
use clap::Args;
use linchpin::client::Dial;
use linchpin::transport::child::{Child, is_secret_name};
use linchpin::transport::memory::in_process;
use linchpin::transport::remote::remote;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The server: after `--`, as an address, as a socket or transcript, or by name out of a file.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which server")]
pub(crate) struct TargetArgs {
    /// The command that starts the server.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    /// A file with mcpServers or servers, as hosts have them. ${VAR}, ${env:VAR} and ${VAR:-default} are filled in.
    #[arg(long, value_name = "FILE", alias = "catalog")]
    pub(crate) config: Option<PathBuf>,

    /// The server of this name in the file. Without --config: in .mcp.json or .vscode/mcp.json.
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// The server at this address.
    #[arg(long, value_name = "URL", alias = "server-url", conflicts_with_all = ["config", "server"])]
    pub(crate) url: Option<String>,

    /// Start the command in this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Set a variable for the command: NAME=VALUE, or NAME to pass on one of this shell. May be repeated.
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,

    /// Send a header with every request: 'Name: value'. May be repeated.
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<String>,

    /// Send this bearer token. Others on this machine can see command lines: prefer --bearer-env.
    #[arg(long, value_name = "TOKEN", conflicts_with = "bearer_env")]
    pub(crate) bearer: Option<String>,

    /// Send the bearer token that is in this environment variable.
    #[arg(long, value_name = "VAR")]
    pub(crate) bearer_env: Option<String>,

    /// How to reach it: auto, http, sse (only the transport of 2024-11-05), or stdio.
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = transport)]
    pub(crate) transport: Transport,

    /// Send credentials without TLS to other machines.
    #[arg(long)]
    pub(crate) allow_plain_http: bool,

    #[command(flatten)]
    pub(crate) login: login::LoginArgs,
}

/// See `--transport`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Transport {
    /// What the target looks like; for addresses, what the server turns out to speak.
    #[default]
    Auto,
    /// Streamable HTTP, and what it falls back to.
    Http,
    /// Only the HTTP+SSE transport of 2024-11-05.
    Sse,
    /// A command on its standard input and output.
    Stdio,
}

fn transport(name: &str) -> Result<Transport, String> {
    match name {
        "auto" => Ok(Transport::Auto),
        "http" | "streamable-http" => Ok(Transport::Http),
        "sse" => Ok(Transport::Sse),
        "stdio" => Ok(Transport::Stdio),
        _ => Err("there are auto, http, sse and stdio".to_owned()),
    }
}

/// A server that can be connected to.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) dial: Arc<dyn Dial>,
    /// What to call it.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// What must not be shown of what is said to it.
    pub(crate) redactor: Redactor,
}

/// What a target is, for hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A program of this name.
    Command(String),
    /// An address, and whether it was given credentials.
    Web(String, bool),
    Socket,
    Transcript,
}

impl TargetArgs {
    /// Whether the target is said by more than the first words.
    pub(crate) fn is_said(&self) -> bool {
        !self.command.is_empty() || self.config.is_some() || self.server.is_some() || self.url.is_some()
    }

    /// Takes the target out of the words of commands that have other words too: nothing when it is said otherwise, else
    /// the first word, or the last if only that looks like a target.
    pub(crate) fn take(&self, words: &mut Vec<String>) -> Vec<String> {
        if self.is_said() || words.is_empty() {
            return Vec::new();
        }
        let at = match words.last() {
            Some(last) if !looks_like(&words[0]) && looks_like(last) => words.len() - 1,
            _ if looks_like(&words[0]) => 0,
            _ => return Vec::new(),
        };
        vec![words.remove(at)]
    }

    /// The target. `words` are those that stand for it.
    pub(crate) fn resolve(&self, words: Vec<String>) -> Result<Target, Failure> {
        if self.is_said() && !words.is_empty() {
            return Err(Failure::usage(format!("`{}` is too much: the server is named twice", words.join(" "))));
        }
        if !self.command.is_empty() || (self.transport == Transport::Stdio && !words.is_empty()) {
            let words = if words.is_empty() { self.command.clone() } else { words };
            return self.program(&words);
        }
        if let Some(url) = &self.url {
            return self.web(url, Vec::new(), false);
        }
        if self.config.is_some() || self.server.is_some() {
            return self.entry();
        }
        match words.as_slice() {
            [] => Err(Failure::usage("no server is named").hint(
                "end with `-- COMMAND ARGS…`, or give an address, a socket, a transcript, or --config FILE --server NAME",
            )),
            [one] if is_address(one) => self.web(one, Vec::new(), false),
            [one] if is_socket(one) => Ok(socket(Path::new(one.strip_prefix("unix:").unwrap_or(one)))),
            [one] if Transcript::is(Path::new(one)) => transcript(Path::new(one)),
            [one] if one.contains(' ') && !Path::new(one).exists() => {
                let words = shell::split(one)?;
                self.program(&words)
            }
            words => self.program(words),
        }
    }

    fn program(&self, words: &[String]) -> Result<Target, Failure> {
        let (program, args) = words.split_first().ok_or_else(|| Failure::usage("no command is named"))?;
        if matches!(self.transport, Transport::Http | Transport::Sse) {
            return Err(
                Failure::usage(format!("`{program}` is no address")).hint("--transport http and sse want a URL")
            );
        }
        let mut child = Child::new(program).args(args);
        if let Some(folder) = &self.cwd {
            child = child.cwd(folder);
        }
        self.finished(child, program)
    }

    /// Adds what the command line says about variables.
    fn finished(&self, mut child: Child, program: &str) -> Result<Target, Failure> {
        let mut redactor = Redactor::default();
        for variable in &self.env {
            match variable.split_once('=') {
                Some(("", _)) => return Err(Failure::usage("--env wants NAME=VALUE, or NAME")),
                Some((name, value)) => {
                    if is_secret_name(name) {
                        redactor.know(value);
                    }
                    child = child.env(name, value);
                }
                None => child = child.pass_env(variable),
            }
        }
        let name = Dial::name(&child);
        Ok(Target { dial: Arc::new(child), name, kind: Kind::Command(program.to_owned()), redactor })
    }

    fn entry(&self) -> Result<Target, Failure> {
        let (name, entry, mut secrets) = config::find(self.config.as_deref(), self.server.as_deref())?;
        let mut target = match entry {
            Entry::Program { command, args, env, cwd } => {
                secrets.extend(env.iter().filter(|(n, _)| is_secret_name(n)).map(|(_, v)| v.clone()));
                let mut child = Child::new(&command).args(args).envs(env);
                if let Some(folder) = self.cwd.clone().or(cwd) {
                    child = child.cwd(folder);
                }
                self.finished(secrets.iter().fold(child, Child::secret), &command)?
            }
            Entry::Address { url, headers, sse } => self.web(&url, headers.into_iter().collect(), sse)?,
        };
        secrets.iter().for_each(|secret| target.redactor.know(secret));
        Ok(Target { name, ..target })
    }

    fn web(&self, url: &str, mut headers: Vec<(String, String)>, sse: bool) -> Result<Target, Failure> {
        if self.transport == Transport::Stdio {
            return Err(Failure::usage(format!("{url} is an address, not a command")));
        }
        let wrong = |e: std::io::Error| Failure::usage(e).hint("an address is like https://example.com/mcp");
        let mut place = remote(url).map_err(wrong)?;
        for header in &self.header {
            let (name, value) = header
                .split_once(':')
                .ok_or_else(|| Failure::usage(format!("--header wants 'Name: value', and got `{header}`")))?;
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        if let Some(token) = self.token()? {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        let mut redactor = Redactor::default();
        let mut credentials = false;
        for (name, value) in &headers {
            credentials |= name.eq_ignore_ascii_case("authorization");
            if is_secret(name) {
                redactor.know(value);
                value.split_whitespace().last().into_iter().for_each(|secret| redactor.know(secret));
            }
            place = place.header(name, value);
        }
        if sse || self.transport == Transport::Sse {
            place = place.sse();
        }
        if self.allow_plain_http {
            place = place.allow_plain_http();
        }
        if !credentials && let Some(oauth) = self.login.authorizer(url)? {
            place = place.auth(oauth);
        }
        let name = Dial::name(&place);
        Ok(Target { dial: Arc::new(place), kind: Kind::Web(name.clone(), credentials), name, redactor })
    }

    fn token(&self) -> Result<Option<String>, Failure> {
        match &self.bearer_env {
            Some(variable) => std::env::var(variable)
                .map(Some)
                .map_err(|_| Failure::usage(format!("the environment variable {variable} is not set"))),
            None => Ok(self.bearer.clone()),
        }
    }
}

fn is_address(word: &str) -> bool {
    let start = word.get(..8).unwrap_or(word).to_ascii_lowercase();
    start.starts_with("http://") || start.starts_with("https://")
}

fn is_socket(word: &str) -> bool {
    #[cfg(unix)]
    {
        let is = |path: &str| {
            std::fs::metadata(path).is_ok_and(|m| std::os::unix::fs::FileTypeExt::is_socket(&m.file_type()))
        };
        word.strip_prefix("unix:").is_some() || is(word)
    }
    #[cfg(not(unix))]
    {
        let _ = word;
        false
    }
}

/// Whether a word can only be a target.
fn looks_like(word: &str) -> bool {
    is_address(word) || is_socket(word) || Transcript::is(Path::new(word))
}

#[cfg(unix)]
fn socket(path: &Path) -> Target {
    let unix = linchpin::transport::unix::unix(path);
    let name = Dial::name(&unix);
    Target { dial: Arc::new(unix), name, kind: Kind::Socket, redactor: Redactor::default() }
}

#[cfg(not(unix))]
fn socket(_: &Path) -> Target {
    unreachable!("`is_socket` finds none here")
}

fn transcript(path: &Path) -> Result<Target, Failure> {
    let service = replay::service(Transcript::read(path)?);
    let dial = Arc::new(in_process(service));
    Ok(Target { dial, name: path.display().to_string(), kind: Kind::Transcript, redactor: Redactor::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_found_among_other_words() {
        let args = TargetArgs::default();
        for (words, target, rest) in [
            (&["http://x/mcp", "echo", "a=b"][..], Some("http://x/mcp"), &["echo", "a=b"][..]),
            (&["echo", "a=b", "http://x/mcp"], Some("http://x/mcp"), &["echo", "a=b"]),
            (&["https://x/mcp", "https://y/page"], Some("https://x/mcp"), &["https://y/page"]),
            (&["echo", "a=http://x"], None, &["echo", "a=http://x"]),
        ] {
            let mut words: Vec<String> = words.iter().map(ToString::to_string).collect();
            assert_eq!(args.take(&mut words).first().map(String::as_str), target);
            assert_eq!(words, rest);
        }
        let said = TargetArgs { command: vec!["x".into()], ..TargetArgs::default() };
        let mut words = vec!["http://x".to_owned()];
        assert!(said.take(&mut words).is_empty());
        assert_eq!(words, ["http://x"]);
    }
}
