//! The command line.

#[cfg(feature = "web")]
use crate::commands::admin;
#[cfg(feature = "client")]
use crate::commands::client;
use crate::commands::{completions, install_names, man, serve, servers};
use crate::deferred::Deferred;
use crate::exit;
use crate::fail::Failure;
use crate::help;
use crate::serve::{several, words};
use crate::show::out::{help_width, note, tell};
use crate::show::wrap;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use linchpin_kit::redact_urls;
use std::ffi::OsString;
use std::process::ExitCode;

const EXAMPLES: &str = if cfg!(feature = "client") { EXAMPLES_ALL } else { EXAMPLES_SERVE };

const EXAMPLES_ALL: &str = "\
Examples:
  Serve files on standard input and output, for a host's configuration:
    linchpin serve filesystem ~/notes
  The same over HTTP; prints the configuration for hosts:
    linchpin serve filesystem --read-only . --http 127.0.0.1:8931
  Several servers in one process:
    linchpin serve filesystem:. git:. memory
  Every feature of the protocol, for testing clients:
    linchpin serve everything
  Inspect a server and check it for problems:
    linchpin inspect -- npx -y some-server
  Call a tool:
    linchpin call echo message=hi -- npx -y some-server
  Any server: a command, a URL, a socket, or a name in a configuration file:
    linchpin tools https://example.com/mcp
    linchpin tools --config mcp.json --server NAME
";

const EXAMPLES_SERVE: &str = "\
Examples:
  Serve files on standard input and output, for a host's configuration:
    linchpin serve filesystem ~/notes
  The same over HTTP; prints the configuration for hosts:
    linchpin serve filesystem --read-only . --http 127.0.0.1:8931
  Several servers in one process:
    linchpin serve filesystem:. git:. memory
  With a name, flags for one server, and a flag for all:
    linchpin serve notes=sqlite:a.db 'git . --allow-remote' --read-only
  Every feature of the protocol, for testing clients:
    linchpin serve everything
";

const SEVERAL: &str = "\
Of several servers, each is one argument: NAME, NAME:VALUE (its directory, \
repository, file, URL or time zone), postgres://…, or its name and flags in \
quotes. OTHER=… before it renames it. Options after the servers apply to all \
of them.

The first argument must not be a bare name: everything after `serve NAME` \
belongs to that server. Write NAME: for the first of several, as in \
`serve memory: time`.

Tool names are prefixed with the server's name: fs_read_file, git_status. A \
name without the prefix also works while only one server has such a tool.
";

/// Wider text is hard to read.
const WIDTH_MAX: usize = 110;

/// Serve MCP servers, and inspect any other: every protocol revision, every transport.
#[derive(Debug, Parser)]
#[command(name = "linchpin", version, before_help = EXAMPLES, after_help = exit::TABLE, propagate_version = true, max_term_width = WIDTH_MAX)]
pub(crate) struct Cli {
    /// Log to standard error: each call with -v, debug messages with -vv, never payloads. Clients also show what their
    /// server writes there. RUST_LOG=LEVEL works too.
    #[arg(short, long, action = clap::ArgAction::Count, global = true, display_order = 998)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve one or several servers on standard input and output, or over HTTP.
    #[command(before_help = EXAMPLES_SERVE, after_help = SEVERAL)]
    Serve(Box<serve::Serve>),
    /// List the servers of this program.
    #[command(before_help = "\
Examples:
  linchpin servers
  linchpin servers --json | jq -r '.servers[].name'
")]
    Servers(Deferred<servers::ServersArgs>),
    /// Install drop-in commands (mcp-server-git, mcp-server-time, …) as symlinks.
    #[command(
        before_help = "\
Examples:
  All commands; host configurations need no change:
    linchpin install-names ~/.local/bin
  Only mcp-server-git and mcp-server-time:
    linchpin install-names ~/.local/bin git time
  List what is installed:
    linchpin install-names ~/.local/bin --list
",
        after_help = "\
The symlinks point to this program, which selects the server by the name it is \
invoked as. Other files and symlinks are never replaced without --force.
"
    )]
    InstallNames(Deferred<install_names::InstallArgs>),
    /// Generate a shell completion script.
    #[command(before_help = "\
Examples:
  eval \"$(linchpin completions bash)\"
  linchpin completions zsh > ~/.zfunc/_linchpin
  linchpin completions fish > ~/.config/fish/completions/linchpin.fish
")]
    Completions(Deferred<completions::CompletionsArgs>),
    /// Write manual pages of all commands.
    #[command(before_help = "\
Examples:
  linchpin man ~/.local/share/man/man1 && man linchpin-serve-git
")]
    Man(Deferred<man::ManArgs>),
    #[cfg(feature = "web")]
    #[command(flatten)]
    Admin(admin::AdminCommand),
    #[cfg(feature = "client")]
    #[command(flatten)]
    Client(client::ClientCommand),
}

impl Cli {
    /// Parses a command line.
    pub(crate) fn parsed(given: &[OsString]) -> Result<Cli, clap::Error> {
        help::choose(given);
        let matches = help::shorten(Cli::command()).try_get_matches_from(given)?;
        Cli::from_arg_matches(&matches)
    }
}

impl Command {
    /// Whether the command serves until it is stopped.
    pub(crate) fn serves(&self) -> bool {
        match self {
            Command::Serve(_) => true,
            Command::Servers(_) | Command::InstallNames(_) | Command::Completions(_) | Command::Man(_) => false,
            #[cfg(feature = "web")]
            Command::Admin(command) => command.serves(),
            #[cfg(feature = "client")]
            Command::Client(command) => command.serves(),
        }
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Command::Serve(args) => serve::run(*args),
            Command::Servers(args) => servers::run(&args.into_inner()),
            Command::InstallNames(args) => install_names::run(args.into_inner()),
            Command::Completions(args) => completions::run(args.into_inner(), Cli::command()),
            Command::Man(args) => man::run(&args.into_inner(), Cli::command()),
            #[cfg(feature = "web")]
            Command::Admin(command) => command.run(),
            #[cfg(feature = "client")]
            Command::Client(command) => command.run(),
        }
    }
}

/// Prints help to standard output with status 0, or a usage error to standard error with status 2. Hosts may show only one
/// line, so the most useful one comes first.
pub(crate) fn usage(e: clap::Error, given: &[OsString]) -> ExitCode {
    let meant = several::meant(&e, given);
    let mut e = words::without_passwords(e);
    if meant.is_some() {
        e.remove(ContextKind::SuggestedSubcommand);
    }
    let wrapped = |text: &StyledStr| StyledStr::from(wrap::usage(&text.ansi().to_string(), help_width(WIDTH_MAX)));
    if let Some(ContextValue::StyledStr(usage)) = e.get(ContextKind::Usage) {
        let usage = wrapped(usage);
        e.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    let text = e.render().to_string();
    match redact_urls(&text) {
        shown if shown != text && e.use_stderr() => tell(&shown),
        // The text of such an error cannot be changed, but that of a command can. A closed stream cannot be reported.
        _ if e.kind() == ErrorKind::DisplayHelp => {
            drop(clap::Command::new("linchpin").override_help(wrapped(&e.render())).print_help());
        }
        _ => drop(e.print()),
    }
    if let Some(hint) = meant.or_else(|| several::hint(&e, given)) {
        note(redact_urls(&format!("hint: {hint}")));
    }
    ExitCode::from(if e.use_stderr() { 2 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of 80 characters are those that no terminal breaks twice.
    fn wraps_once(command: &clap::Command, wrong: &mut Vec<String>) {
        for text in [command.get_before_help(), command.get_after_help()].into_iter().flatten() {
            let text = text.to_string();
            let lines: Vec<&str> = text.lines().collect();
            for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.chars().count() >= 80) {
                let alone = |at: Option<usize>| at.and_then(|at| lines.get(at)).is_none_or(|line| line.is_empty());
                // A paragraph on one line is the parser's to wrap.
                if line.starts_with(' ') || !alone(at.checked_sub(1)) || !alone(Some(at + 1)) {
                    wrong.push(format!("{}: {line}", command.get_name()));
                }
            }
        }
        command.get_subcommands().for_each(|command| wraps_once(command, wrong));
    }

    #[test]
    fn help_is_wrapped_once() {
        let mut command = Cli::command();
        command.build();
        let mut wrong = Vec::new();
        wraps_once(&command, &mut wrong);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// The commands whose help does not begin with examples.
    fn without_examples(command: &clap::Command, path: &str, wrong: &mut Vec<String>) {
        if command.get_name() == "help" {
            return;
        }
        let begins = command.get_before_help().is_some_and(|text| text.to_string().starts_with("Examples:\n"));
        if !begins && !command.has_subcommands() {
            wrong.push(path.to_owned());
        }
        for command in command.get_subcommands() {
            without_examples(command, &format!("{path} {}", command.get_name()), wrong);
        }
    }

    #[test]
    fn help_of_every_command_begins_with_examples() {
        let mut command = Cli::command();
        command.build();
        let mut wrong = Vec::new();
        without_examples(&command, "linchpin", &mut wrong);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Lines of help that are wider than `width` although they could be broken.
    fn too_wide(command: &mut clap::Command, width: usize, wrong: &mut Vec<String>) {
        let help = wrap::usage(&command.render_long_help().ansi().to_string(), width);
        for line in help.lines().map(|line| wrap::visible(line, "\x1b[")) {
            if line.chars().count() > width && line.trim().contains(' ') {
                wrong.push(format!("{}: {line}", command.get_bin_name().unwrap_or_default()));
            }
        }
        command.get_subcommands_mut().for_each(|command| too_wide(command, width, wrong));
    }

    #[test]
    fn no_help_is_wider_than_the_terminal() {
        let mut command = Cli::command().term_width(80);
        command.build();
        let mut wrong = Vec::new();
        too_wide(&mut command, 80, &mut wrong);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
