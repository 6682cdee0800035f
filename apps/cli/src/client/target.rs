//! Server selection: a command, a URL, a socket, a configuration entry, or a transcript.

use crate::client::config::{self, Entry};
use crate::client::login;
use crate::fail::Failure;
use crate::record::redact::{Redactor, is_secret};
use crate::record::replay;
use crate::record::transcript::Transcript;
use crate::shell;
use crate::show::out::near;
use clap::Args;
use linchpin::transport::Connector;
use linchpin::transport::in_process;
use linchpin::transport::remote;
use linchpin::transport::{Child, is_secret_name};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The server: a command after `--`, a URL, a socket, a transcript, or a name in a configuration file.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server selection")]
pub(crate) struct TargetArgs {
    /// The command that starts the server.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    /// Host configuration file with mcpServers or servers. ${VAR}, ${env:VAR} and ${VAR:-default} are expanded.
    #[arg(long, value_name = "FILE", alias = "catalog")]
    pub(crate) config: Option<PathBuf>,

    /// Server of this name in the file. Without --config: in .mcp.json, .vscode/mcp.json, .cursor/mcp.json, or the
    /// configuration of Cursor or Claude Desktop.
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// Server URL.
    #[arg(long, value_name = "URL", alias = "server-url", conflicts_with_all = ["config", "server"])]
    pub(crate) url: Option<String>,

    /// Working directory of the command.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Environment variable for the command: NAME=VALUE, or NAME to inherit it. May be repeated.
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,

    /// Pass the whole environment to the command, credentials included.
    #[arg(long)]
    pub(crate) inherit_env: bool,

    /// HTTP header of every request: 'Name: value'. May be repeated.
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<String>,

    /// File with HTTP headers of every request, one 'Name: value' per line; # begins a comment. ${VAR} is expanded, as in
    /// --header.
    #[arg(long, value_name = "FILE")]
    pub(crate) header_file: Option<PathBuf>,

    /// Bearer token. Other users of this machine can see command lines: prefer --bearer-env.
    #[arg(long, value_name = "TOKEN", conflicts_with = "bearer_env", conflicts_with_all = OF_A_LOGIN)]
    pub(crate) bearer: Option<String>,

    /// Environment variable with the bearer token.
    #[arg(long, value_name = "VAR", conflicts_with_all = OF_A_LOGIN)]
    pub(crate) bearer_env: Option<String>,

    /// Transport: auto, http, sse (HTTP+SSE of 2024-11-05 only), or stdio.
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = transport)]
    pub(crate) transport: Transport,

    /// Allow sending credentials to other machines without TLS.
    #[arg(long)]
    pub(crate) allow_plain_http: bool,

    #[command(flatten)]
    pub(crate) login: login::LoginArgs,
}

/// Options of a login that a token replaces.
const OF_A_LOGIN: [&str; 4] = ["client_id", "client_metadata_url", "client_credentials", "scope"];

/// See `--transport`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Detected from the target; for URLs, from the server's responses.
    #[default]
    Auto,
    /// Streamable HTTP, with its fallbacks.
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
        _ => Err("expected auto, http, sse or stdio".to_owned()),
    }
}

/// A server to connect to.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) dial: Arc<dyn Connector>,
    /// The display name.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Masks secrets in its messages.
    pub(crate) redactor: Redactor,
    /// Why it cannot be started, if that is known before it is.
    pub(crate) missing: Option<String>,
}

/// The kind of a target, for hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A program of this name.
    Command(String),
    /// A URL, and whether it has credentials.
    Web(String, bool),
    Socket,
    Transcript,
}

impl TargetArgs {
    /// Whether the target is set by an option or after `--`.
    pub(crate) fn is_said(&self) -> bool {
        !self.command.is_empty() || self.config.is_some() || self.server.is_some() || self.url.is_some()
    }

    /// Takes the target out of the words of a command; the others remain.
    pub(crate) fn restrict_to(&self, words: &mut Vec<String>) -> Result<Target, Failure> {
        let target = self.take(words);
        let first = words.first().filter(|_| target.is_empty() && !self.is_said());
        let target = self.resolve(target);
        match first {
            Some(name) if config::has(name) => {
                target.map_err(|failure| failure.hint(format!("did you mean --server {name}?")))
            }
            Some(path) if path.contains('/') && Path::new(path).is_file() => {
                target.map_err(|failure| failure.hint(format!("did you mean `-- {path}` at the end?")))
            }
            Some(_) => target.map_err(|failure| match program(words) {
                Some(command) => failure.hint(format!("did you mean `-- {}` at the end?", shell::joined(command))),
                None => failure,
            }),
            _ => target,
        }
    }

    /// Takes the target out of other words: nothing if an option sets it, else the first word, or the last if only that
    /// looks like a target. A quoted command line must come first, because arguments may contain spaces too.
    fn take(&self, words: &mut Vec<String>) -> Vec<String> {
        if self.is_said() || words.is_empty() {
            return Vec::new();
        }
        let at = match words.last() {
            _ if looks_like(&words[0]) || is_command_line(&words[0]) => 0,
            Some(last) if looks_like(last) => words.len() - 1,
            _ => return Vec::new(),
        };
        vec![words.remove(at)]
    }

    /// Returns the target that `words` or the options select. Options that it has no use for are refused.
    pub(crate) fn resolve(&self, words: Vec<String>) -> Result<Target, Failure> {
        let target = self.found(words)?;
        self.check(&[&target])?;
        Ok(target)
    }

    /// Refuses options that none of these targets has a use for.
    pub(crate) fn check(&self, targets: &[&Target]) -> Result<(), Failure> {
        let first =
            |options: &[(&'static str, bool)]| options.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| *flag);
        let of_commands =
            [("--cwd", self.cwd.is_some()), ("--env", !self.env.is_empty()), ("--inherit-env", self.inherit_env)];
        let of_urls = [
            ("--header", !self.header.is_empty()),
            ("--header-file", self.header_file.is_some()),
            ("--bearer", self.bearer.is_some()),
            ("--bearer-env", self.bearer_env.is_some()),
            ("--transport", matches!(self.transport, Transport::Http | Transport::Sse)),
            ("--allow-plain-http", self.allow_plain_http),
        ];
        let is_any = |fits: fn(&Kind) -> bool| targets.iter().any(|target| fits(&target.kind));
        if let Some(flag) = first(&of_commands)
            && !is_any(|kind| matches!(kind, Kind::Command(_)))
        {
            let why =
                format!("{flag} is for a server that a command starts: leave it out, or end with `-- COMMAND ARGS…`");
            return Err(Failure::usage(why));
        }
        if let Some(flag) = first(&of_urls).or_else(|| first(&self.login.given()))
            && !is_any(|kind| matches!(kind, Kind::Web(..)))
        {
            let why =
                format!("{flag} is for a server with a URL: leave it out for a command, a socket or a transcript");
            return Err(Failure::usage(why));
        }
        Ok(())
    }

    /// Returns the target, whatever other options there are.
    pub(crate) fn found(&self, words: Vec<String>) -> Result<Target, Failure> {
        if self.is_said() && !words.is_empty() {
            return Err(Failure::usage(format!("server given twice: `{}`", words.join(" "))));
        }
        if !self.command.is_empty() && (self.config.is_some() || self.server.is_some() || self.url.is_some()) {
            let why = format!("server given twice: `{}`", shell::joined(&self.command));
            return Err(Failure::usage(why).hint("with `-- COMMAND` leave out --server, --config and --url"));
        }
        if let [one] = self.command.as_slice()
            && is_address(one)
            && self.transport != Transport::Stdio
        {
            return self.web(one, Vec::new(), false);
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
            [] => Err(Failure::usage("no server given").hint(
                "end with `-- COMMAND ARGS…`, start with a command in quotes, a URL, a socket or a transcript, or pass --config FILE --server NAME",
            )),
            [one] if is_address(one) => self.web(one, Vec::new(), false),
            [one] if is_socket(one) => Ok(socket(Path::new(one.strip_prefix("unix:").unwrap_or(one)))),
            [one] if Transcript::is(Path::new(one)) => transcript(Path::new(one)),
            [one] if meant(one).is_some() => {
                let failure = Failure::usage(format!("`{one}` is neither a URL nor a command"));
                Err(failure.hint(format!("did you mean {}?", meant(one).unwrap_or_default())))
            }
            [one] if one.contains(' ') && !Path::new(one).exists() => {
                let words = shell::split(one).ok_or_else(|| Failure::usage("unclosed quote in the server's command"))?;
                self.program(&words)
            }
            [one] if is_missing_file(one) => Err(Failure::usage(format!("there is no file {one}"))),
            [one, more, ..] if looks_like(one) => Err(Failure::usage(format!("unexpected argument `{more}`"))),
            words => self.program(words),
        }
    }

    fn program(&self, words: &[String]) -> Result<Target, Failure> {
        let (program, args) = words.split_first().ok_or_else(|| Failure::usage("no command given"))?;
        if matches!(self.transport, Transport::Http | Transport::Sse) {
            return Err(
                Failure::usage(format!("`{program}` is not a URL")).hint("--transport http and sse require a URL")
            );
        }
        let mut child = Child::new(program).args(args).pass_env("RUST_LOG");
        if let Some(folder) = &self.cwd {
            child = child.cwd(folder);
        }
        self.finished(child, program)
    }

    /// Adds the environment variables of the command line.
    fn finished(&self, mut child: Child, program: &str) -> Result<Target, Failure> {
        let mut redactor = Redactor::default();
        if self.inherit_env {
            child = child.inherit_env();
        }
        for variable in &self.env {
            match variable.split_once('=') {
                Some(("", _)) => return Err(Failure::usage("invalid value for --env: expected NAME=VALUE or NAME")),
                Some((name, value)) => {
                    if is_secret_name(name) {
                        redactor.know(value);
                    }
                    child = child.env(name, value);
                }
                None => child = child.pass_env(variable),
            }
        }
        let (name, missing) = (Connector::name(&child), child.find().err());
        Ok(Target { dial: Arc::new(child), name, kind: Kind::Command(program.to_owned()), redactor, missing })
    }

    fn entry(&self) -> Result<Target, Failure> {
        let (name, entry, mut secrets) = config::find(self.config.as_deref(), self.server.as_deref())?;
        let mut target = match entry {
            Entry::Program { command, args, env, cwd } => {
                secrets.extend(env.iter().filter(|(n, _)| is_secret_name(n)).map(|(_, v)| v.clone()));
                let mut child = Child::new(&command).args(args).pass_env("RUST_LOG").envs(env);
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
            return Err(Failure::usage(format!("{url} is a URL, not a command")));
        }
        let wrong = |e: std::io::Error| Failure::usage(e).hint("expected a URL such as https://example.com/mcp");
        let mut place = remote(url).map_err(wrong)?;
        let mut redactor = Redactor::default();
        headers.extend(self.headers(&mut redactor)?);
        if let Some(token) = self.token()? {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        let mut credentials = false;
        for (name, value) in &headers {
            credentials |= name.eq_ignore_ascii_case("authorization");
            if is_secret(name) {
                redactor.know(value);
                value.split_whitespace().last().into_iter().for_each(|secret| redactor.know(secret));
            }
            place = place.header(name, value);
        }
        if self.transport == Transport::Sse || (sse && self.transport == Transport::Auto) {
            place = place.sse();
        }
        if self.allow_plain_http {
            place = place.allow_plain_http();
        }
        if !credentials && let Some(oauth) = self.login.authorizer(url)? {
            place = place.auth(oauth);
        }
        let name = Connector::name(&place);
        Ok(Target { dial: Arc::new(place), kind: Kind::Web(name.clone(), credentials), name, redactor, missing: None })
    }

    /// The headers of `--header` and `--header-file`. What variables held is a secret.
    fn headers(&self, redactor: &mut Redactor) -> Result<Vec<(String, String)>, Failure> {
        let lines = match &self.header_file {
            None => String::new(),
            Some(file) => std::fs::read_to_string(file)
                .map_err(|e| Failure::usage(format!("--header-file: {} cannot be read: {e}", file.display())))?,
        };
        let written = lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let given = self.header.iter().map(|header| ("--header", header.as_str()));
        let mut headers = Vec::new();
        for (flag, header) in given.chain(written.map(|line| ("--header-file", line))) {
            let wrong = |why: &str| Failure::usage(format!("invalid value for {flag}: {why}"));
            let (name, value) = header.split_once(':').ok_or_else(|| wrong("expected 'Name: value'"))?;
            let env = |name: &str| std::env::var(name).ok();
            let filled = config::expand(value.trim(), &env, Path::new(".")).map_err(|why| wrong(&why))?;
            if filled != value.trim() || flag == "--header-file" {
                redactor.know(&filled);
                filled.split_whitespace().last().into_iter().for_each(|secret| redactor.know(secret));
            }
            headers.push((name.trim().to_owned(), filled));
        }
        Ok(headers)
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

/// The words of a command after a name: from the first program on that could be started.
fn program(words: &[String]) -> Option<&[String]> {
    let could_start = |word: &String| match word.contains('/') {
        true => Path::new(word).is_file(),
        false => !word.contains('=') && Child::new(word).find().is_ok(),
    };
    // A program of this name is hardly a tool, and what it starts may be a program too.
    if words.len() > 1 && STARTERS.contains(&words[0].as_str()) && could_start(&words[0]) {
        return Some(words);
    }
    let at = words.iter().skip(1).position(could_start)?;
    words.get(at + 1..)
}

/// Programs with which commands of servers usually begin.
const STARTERS: [&str; 12] =
    ["bunx", "bun", "deno", "docker", "linchpin", "node", "npx", "pipx", "podman", "python3", "uv", "uvx"];

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

/// Whether a word is the path of a transcript or another file of JSON which is not there.
fn is_missing_file(word: &str) -> bool {
    let path = Path::new(word);
    path.extension().is_some_and(|end| end == "jsonl" || end == "json") && !path.exists()
}

/// Whether a word can only be a target.
fn looks_like(word: &str) -> bool {
    is_address(word) || is_socket(word) || Transcript::is(Path::new(word)) || meant(word).is_some()
}

/// Whether a word is a quoted command line, and not an argument with a space.
fn is_command_line(word: &str) -> bool {
    let program = word.split(' ').next().unwrap_or_default();
    program.len() < word.len() && !program.is_empty() && !program.contains(['=', '{', '@', '"', '\''])
}

/// Returns the intended URL of one without a scheme (`localhost:8931`) or with a misspelt one (`htp://…`).
fn meant(word: &str) -> Option<String> {
    if is_address(word) || Path::new(word).exists() {
        return None;
    }
    let (scheme, rest) = match word.split_once("://") {
        Some((scheme, _)) if !scheme.chars().all(|c| c.is_ascii_alphabetic()) => return None,
        Some((scheme, rest)) => (near(scheme, ["http", "https"])?, rest),
        None => ("http", word),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "80"));
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    let is_given = word.contains("://") || authority.contains(':');
    if !is_given || host.is_empty() || !host.chars().all(is_host) || port.parse::<u16>().is_err() {
        return None;
    }
    Some(format!("{scheme}://{authority}{}", if matches!(path, "" | "/") { "/mcp" } else { path }))
}

#[cfg(unix)]
fn socket(path: &Path) -> Target {
    let unix = linchpin::transport::unix(path);
    let name = Connector::name(&unix);
    Target { dial: Arc::new(unix), name, kind: Kind::Socket, redactor: Redactor::default(), missing: None }
}

#[cfg(not(unix))]
fn socket(_: &Path) -> Target {
    unreachable!("`is_socket` finds none here")
}

fn transcript(path: &Path) -> Result<Target, Failure> {
    let service = replay::service(Transcript::read(path)?)?;
    let dial = Arc::new(in_process(service));
    Ok(Target {
        dial,
        name: path.display().to_string(),
        kind: Kind::Transcript,
        redactor: Redactor::default(),
        missing: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_a_scheme_are_recognised() {
        for (word, address) in [
            ("localhost:8931", Some("http://localhost:8931/mcp")),
            ("localhost:8931/", Some("http://localhost:8931/mcp")),
            ("127.0.0.1:80/sse", Some("http://127.0.0.1:80/sse")),
            ("[::1]:8931", Some("http://[::1]:8931/mcp")),
            ("htp://localhost:8931", Some("http://localhost:8931/mcp")),
            ("htps://example.com/mcp", Some("https://example.com/mcp")),
            ("http://localhost:8931", None),
            ("postgres://localhost/db", None),
            ("server", None),
            ("server:latest", None),
            ("C:\\x", None),
            ("a=b:1", None),
        ] {
            assert_eq!(meant(word).as_deref(), address, "{word}");
        }
    }

    #[test]
    fn a_program_in_the_place_of_a_tool_is_pointed_out() {
        let program = std::env::current_exe().unwrap().display().to_string();
        let failure = TargetArgs::default().restrict_to(&mut vec![program.clone(), "add".to_owned()]).err().unwrap();
        assert!(format!("{failure:?}").contains(&format!("did you mean `-- {program}` at the end?")), "{failure:?}");
    }

    #[test]
    fn what_is_no_server_is_said() {
        let command = vec!["linchpin".to_owned(), "serve".to_owned(), "memory".to_owned()];
        let of = |command: &[String]| TargetArgs { command: command.to_vec(), ..TargetArgs::default() };
        for (args, words, says) in [
            (TargetArgs { server: Some("ok".into()), ..of(&command) }, &[][..], "server given twice: `linchpin serve"),
            (TargetArgs { url: Some("http://x".into()), ..of(&command) }, &[], "server given twice"),
            (of(&command), &["http://x"], "server given twice: `http://x`"),
            (of(&[]), &["nofile.jsonl"], "there is no file nofile.jsonl"),
            (of(&[]), &["no/file.json"], "there is no file no/file.json"),
        ] {
            let failure = args.resolve(words.iter().map(ToString::to_string).collect()).err().expect("it is no server");
            assert!(failure.message().starts_with(says), "{}", failure.message());
        }
    }

    #[test]
    fn an_address_after_the_dashes_is_a_server_too() {
        let args = TargetArgs { command: vec!["https://example.com/mcp".to_owned()], ..TargetArgs::default() };
        let target = args.restrict_to(&mut vec!["echo".to_owned(), "a=b".to_owned()]).expect("it is a target");
        assert!(matches!(target.kind, Kind::Web(url, _) if url == "https://example.com/mcp"));
    }

    #[test]
    fn the_target_is_found_among_other_words() {
        let args = TargetArgs::default();
        for (words, target, rest) in [
            (&["http://x/mcp", "echo", "a=b"][..], Some("http://x/mcp"), &["echo", "a=b"][..]),
            (&["echo", "a=b", "http://x/mcp"], Some("http://x/mcp"), &["echo", "a=b"]),
            (&["https://x/mcp", "https://y/page"], Some("https://x/mcp"), &["https://y/page"]),
            (&["echo", "a=http://x"], None, &["echo", "a=http://x"]),
            (&["npx -y server", "echo", "a=b c"], Some("npx -y server"), &["echo", "a=b c"]),
            (&["echo", "two words"], None, &["echo", "two words"]),
            (&["a=b c", "echo"], None, &["a=b c", "echo"]),
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
