//! What every server of this program is served with: a transport, and what watches and limits its calls.

use super::auth::AuthArgs;
use super::paste::Card;
use super::place::{Clients, PlaceArgs};
use super::words::in_full;
use crate::fail::Failure;
use crate::log;
use crate::show::out;
use clap::{Args, ValueHint};
use linchpin::Server;
use linchpin::middleware::{Audit, Metrics, RateLimit};
use linchpin::skills::Skills;
use linchpin_kit::{Service, ToolChoice};
use std::path::{Path, PathBuf};

/// The flags of `linchpin serve` that are the same for all servers.
#[derive(Debug, Args)]
pub(crate) struct ServingArgs {
    #[command(flatten)]
    place: PlaceArgs,

    #[command(flatten)]
    auth: AuthArgs,

    #[command(flatten)]
    operation: OperationArgs,
}

/// Limits and records, off by default.
#[derive(Debug, Args)]
#[command(next_help_heading = "Operation")]
struct OperationArgs {
    /// Refuse calls of a client beyond this rate, for each tool, resource and prompt: 10/s, 60/min, 1000/h or 5000/day.
    #[arg(long, value_name = "RATE")]
    rate_limit: Option<RateLimit>,

    /// Append a line of JSON for each tool call, resource read, prompt and login to this file (- for standard error). Calls
    /// have a digest of their arguments. `linchpin audit FILE` shows it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    audit: Option<PathBuf>,

    /// Serve the skills below this directory too, each a directory with a SKILL.md.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    skills: Option<PathBuf>,

    /// Show metrics for Prometheus at /metrics.
    #[arg(long, requires = "http")]
    metrics: bool,
}

impl ServingArgs {
    /// Returns the possible clients.
    pub(crate) fn clients(&self) -> Clients {
        self.place.clients()
    }

    /// Whether people are told how to reach it.
    pub(super) fn tells(&self) -> bool {
        self.place.tells()
    }

    /// Accepts the tools of `--tool-scope` under all names that `--enable-tools` accepts.
    pub(super) fn find_tools(&mut self, servers: &[(&Service, &ToolChoice)]) -> Result<(), Failure> {
        self.auth.find_tools(servers)
    }

    /// Serves until end of input or a termination signal.
    pub(crate) fn run(self, mut server: Server, mut card: Card<'_>) -> Result<(), Failure> {
        let ServingArgs { mut place, auth, operation } = self;
        card.command.extend(operation.words());
        server = auth.scoped(server)?;
        place.guard(&auth)?;
        if let Some(directory) = &operation.skills {
            server = server.with(skills(directory)?);
        }
        if let Some(limit) = operation.rate_limit {
            server = server.layer(limit.layer());
        }
        // Outside of all else: refused calls are recorded too.
        if let Some(file) = &operation.audit {
            let audit = audit(file)?;
            log::audit(&audit);
            server = server.layer_requests(audit.layer());
        }
        if operation.metrics {
            let metrics = Metrics::new();
            server = server.observe(metrics.clone());
            place.metrics = Some(metrics);
        }
        place.run(server, &card)
    }
}

impl OperationArgs {
    /// The options that have an effect on standard input and output too, as words of a command line.
    fn words(&self) -> Vec<String> {
        let OperationArgs { rate_limit, audit, skills, metrics: _ } = self;
        let path = |path: &PathBuf| match path.to_string_lossy() {
            stderr if stderr == "-" => stderr.into_owned(),
            path => in_full(&path),
        };
        let words = [
            ("--rate-limit", rate_limit.as_ref().map(RateLimit::to_string)),
            ("--audit", audit.as_ref().map(path)),
            ("--skills", skills.as_ref().map(path)),
        ];
        words.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?])).flatten().collect()
    }
}

/// The skills below a directory.
pub(crate) fn skills(directory: &Path) -> Result<Skills, Failure> {
    let skills = Skills::dir(directory);
    let skills =
        skills.map_err(|e| Failure::usage(format!("cannot read the skills of {}: {e}", directory.display())))?;
    if skills.entries().is_empty() && skills.problems().is_empty() {
        out::note(format!("note: {} contains no skill (a directory with a SKILL.md)", directory.display()));
    }
    Ok(skills.directories(true))
}

/// Opens an audit log.
pub(crate) fn audit(file: &Path) -> Result<Audit, Failure> {
    if file == Path::new("-") {
        return Ok(Audit::writer(out::log()));
    }
    Audit::file(file).map_err(|e| Failure::usage(format!("cannot open the audit log {}: {e}", file.display())))
}
