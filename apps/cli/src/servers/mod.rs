//! The built-in servers, one file each, and how they are combined.
//!
//! # How to add a server
//!
//! 1. Write `servers/NAME.rs` with a `clap::Args` struct of the server's own flags (see `filesystem.rs`). Flags that all
//!    servers have are not in it: which tools are offered ([`ToolArgs`]) and where to serve ([`crate::serving::ServingArgs`]) are
//!    added here. Paths get `value_hint`, so that what is pasted elsewhere names them in full.
//! 2. Implement [`Native`] for it: constants, and three short functions. `config` is `Config::from_env(vars)` with the flags
//!    over it; only flags that were given may change what the environment said.
//! 3. In `Cargo.toml`: an optional dependency, a feature of the server's name (`name = ["dep:linchpin-name", "dep:linchpin-kit"]`),
//!    and that feature in `servers`.
//! 4. Below: the `mod` line and the line in [`ENTRIES`], both behind the feature.
//!
//! The server is then `linchpin serve NAME`, one of several (`NAME`, `NAME:VALUE`, `'NAME --flag'`), `mcp-server-NAME`, and
//! in every help text; `tests/servers.rs` wants a row for it.

mod keyring;
mod reach;
mod several;
mod tools;

#[cfg(feature = "everything")]
mod everything;
#[cfg(feature = "fetch")]
pub(crate) mod fetch;
#[cfg(all(feature = "filesystem", unix))]
mod filesystem;
#[cfg(feature = "git")]
mod git;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sequential-thinking")]
mod sequential_thinking;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "time")]
mod time;

pub(crate) use keyring::keyring;
pub(crate) use several::{SeveralArgs, are_several, marked};
pub(crate) use tools::ToolArgs;

use crate::fail::Failure;
use crate::place::{Clients, without_alias};
use crate::serving::ServingArgs;
use crate::shown::note;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use linchpin::Server;
use linchpin_kit::{Service, ToolChoice, ToolError, ToolSpec, Vars};
use reach::Reach;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A built-in server.
pub(crate) trait Native: Args {
    /// Its name on the command line; `mcp-server-NAME` is the name it is known by elsewhere.
    const NAME: &'static str;
    /// Its title.
    const TITLE: &'static str;
    /// Its one-line description in help texts.
    const ABOUT: &'static str;
    /// Example command lines, each on its own line with two spaces of indentation.
    const EXAMPLES: &'static str;
    /// The end of its help text.
    const NOTES: &'static str = "";
    /// Its tools.
    const SERVICE: Service;
    /// What `NAME:VALUE` means.
    const MAIN: Main;
    /// Whether `NAME:A NAME:B` is one server for both.
    const TAKES_SEVERAL: bool = false;
    /// URL schemes that select the server by themselves: `postgres` for `postgres://…`.
    const SCHEMES: &'static [&'static str] = &[];

    /// Flags (without `--`) whose values are `NAME=SECRET`; the secret is never shown.
    const SECRETS: &'static [&'static str] = &[];

    /// The server's configuration.
    type Config: 'static;

    /// Returns the configuration from the environment, overridden by the flags.
    fn config(self, vars: Vars<'_>) -> Result<Self::Config, ToolError>;

    /// Returns the tool selection of the configuration.
    fn choice(config: &mut Self::Config) -> &mut ToolChoice;

    /// Opens the server and puts it on another one: `Name::open(config)?`, `.add_to(server)?.state(())`. Returns warnings for
    /// people too.
    fn add(config: Self::Config, server: Server) -> Result<(Server, Vec<String>), ToolError>;

    /// Returns embedded data with its own version, for `--version`.
    fn data() -> Option<String> {
        None
    }

    /// Called when several clients share the server (`--unix`).
    fn shared(_: &mut Self::Config) {}

    /// Returns what it can access, if clients' roots can affect that.
    fn reach(_: &mut Self::Config) -> Option<Reach<'_>> {
        None
    }

    /// What is shown of the address that it takes (an argument with `ValueHint::Url`), without passwords.
    fn address(value: &str) -> String {
        without_login(value)
    }

    /// Says more about a server that is alone than its name, version and title.
    fn introduce(server: Server) -> Server {
        server
    }

    /// The arguments of the published `mcp-server-NAME` in the words of ours, where they differ.
    fn original(given: Vec<OsString>, _vars: Vars<'_>) -> Vec<OsString> {
        given
    }
}

/// What the value in `NAME:VALUE` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "which of them are used depends on the servers of the build")]
pub(crate) enum Main {
    /// Nothing; the server has no main argument.
    Nothing,
    /// A plain word, as in `filesystem DIR`.
    Word,
    /// The value of this flag, as in `git --repository DIR`.
    Flag(&'static str),
}

/// All servers of this build, in help order.
pub(crate) const ENTRIES: &[Entry] = &[
    #[cfg(all(feature = "filesystem", unix))]
    Entry::of::<filesystem::FilesystemArgs>(),
    #[cfg(feature = "git")]
    Entry::of::<git::GitArgs>(),
    #[cfg(feature = "fetch")]
    Entry::of::<fetch::FetchArgs>(),
    #[cfg(feature = "memory")]
    Entry::of::<memory::MemoryArgs>(),
    #[cfg(feature = "sqlite")]
    Entry::of::<sqlite::SqliteArgs>(),
    #[cfg(feature = "postgres")]
    Entry::of::<postgres::PostgresArgs>(),
    #[cfg(feature = "time")]
    Entry::of::<time::TimeArgs>(),
    #[cfg(feature = "sequential-thinking")]
    Entry::of::<sequential_thinking::SequentialThinkingArgs>(),
    #[cfg(feature = "everything")]
    Entry::of::<everything::EverythingArgs>(),
];

/// A server in [`ENTRIES`].
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    title: &'static str,
    about: &'static str,
    examples: &'static str,
    notes: &'static str,
    service: Service,
    main: Main,
    takes_several: bool,
    schemes: &'static [&'static str],
    secrets: &'static [&'static str],
    address: fn(&str) -> String,
    arguments: fn(Command) -> Command,
    part: fn(&mut ArgMatches, Vars<'_>) -> Result<Part, Failure>,
    data: fn() -> Option<String>,
    introduce: fn(Server) -> Server,
    original: fn(Vec<OsString>, Vars<'_>) -> Vec<OsString>,
}

/// A configured server that is not open yet.
pub(crate) struct Part {
    /// Its tools; with the name it was given, where it was given one.
    pub(crate) service: Service,
    pub(crate) title: &'static str,
    /// What its environment and its own flags say about tools.
    pub(crate) tools: ToolChoice,
    add: Box<Adding>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.name == other.name
    }
}

impl Eq for Entry {}

type Adding = dyn FnOnce(Server, ToolChoice, Clients) -> Result<(Server, Vec<String>), Failure>;

impl Part {
    /// Opens it for these clients, and puts it on a server with these tools. Warnings go to standard error.
    pub(crate) fn add_to(self, server: Server, tools: ToolChoice, clients: Clients) -> Result<Server, Failure> {
        let before = server.tools().names().len();
        let nothing = no_tool(self.title, &self.service, &tools);
        let (server, warnings) = (self.add)(server, tools, clients)?;
        for warning in warnings {
            note(&warning);
        }
        if let Some(nothing) = nothing.filter(|_| server.tools().names().len() == before) {
            note(&nothing);
        }
        Ok(server)
    }
}

/// The tools that a server offers unless some are chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tools {
    /// All but the rare ones.
    All,
    /// Those of the published server.
    Published,
}

impl Entry {
    const fn of<A: Native>() -> Entry {
        Entry {
            name: A::NAME,
            title: A::TITLE,
            about: A::ABOUT,
            examples: A::EXAMPLES,
            notes: A::NOTES,
            service: A::SERVICE,
            main: A::MAIN,
            takes_several: A::TAKES_SEVERAL,
            schemes: A::SCHEMES,
            secrets: A::SECRETS,
            address: A::address,
            arguments: A::augment_args,
            part: part::<A>,
            data: A::data,
            introduce: A::introduce,
            original: A::original,
        }
    }

    /// Returns the server of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Entry> {
        ENTRIES.iter().find(|entry| entry.name == name)
    }

    /// Its command line without where to serve: what a word of several can hold.
    fn own_command(&self) -> Command {
        self.own(Command::new(self.name))
    }

    fn own(&self, command: Command) -> Command {
        let command = ToolArgs::augment_args((self.arguments)(command));
        command.about(self.about).before_help(format!("Examples:\n{}", self.examples)).after_help(self.notes)
    }

    /// Its whole command line.
    fn command(&self) -> Command {
        self.whole(Command::new(self.name))
    }

    fn whole(&self, command: Command) -> Command {
        let command = self.own(command);
        let taken = command.get_arguments().any(|arg| arg.get_long() == Some("allow-host"));
        let command = ServingArgs::augment_args(command);
        let command = if taken { without_alias(command) } else { command };
        let version = match (self.data)() {
            Some(data) => format!("{} ({data})", env!("CARGO_PKG_VERSION")),
            None => env!("CARGO_PKG_VERSION").to_owned(),
        };
        // The parser keeps versions for the life of the process; a command is made a few times in it.
        let version: &'static str = Box::leak(version.into_boxed_str());
        command.about(self.about).display_name(format!("linchpin-{}", self.name)).version(version)
    }

    /// The subcommand, whose arguments are only put together when it is the one that was typed.
    pub(crate) fn subcommand(&self) -> Command {
        let fill = |command: Command| match Entry::named(command.get_name()) {
            Some(entry) => entry.whole(command),
            None => command,
        };
        Command::new(self.name).about(self.about).defer(fill)
    }

    /// Builds it as the only server, with the published tool names.
    pub(crate) fn alone(
        &'static self,
        mut matches: ArgMatches,
        vars: Vars<'_>,
        offered: Tools,
    ) -> Result<Alone, Failure> {
        let words = self.words(&self.own_command(), &matches);
        let serving = ServingArgs::from_arg_matches_mut(&mut matches).map_err(Failure::usage)?;
        let part = (self.part)(&mut matches, vars)?;
        let server = Server::new(format!("linchpin-{}", self.name), env!("CARGO_PKG_VERSION")).title(self.title);
        let mut tools = part.tools.clone();
        tools.published = matches!(offered, Tools::Published);
        tell_long_name([(&part.service, &tools)])?;
        let server = part.add_to((self.introduce)(server), tools, serving.clients())?;
        Ok(Alone { server, serving, words })
    }

    /// What was given on the command line, to be pasted elsewhere: its name, its flags, and paths in full.
    fn words(&self, command: &Command, matches: &ArgMatches) -> Vec<String> {
        let mut words = vec![self.name.to_owned()];
        words.extend(given(command, matches, self));
        words
    }

    /// The server that the program was called as: `mcp-server-NAME`. A name of that form that is no server's is an error.
    pub(crate) fn called_as(program: &OsStr) -> Result<Option<&'static Entry>, Failure> {
        let file = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
        let file = file.strip_suffix(".exe").unwrap_or(file);
        let Some(name) = file.strip_prefix("mcp-server-") else { return Ok(None) };
        let unknown = || {
            let names: Vec<String> = ENTRIES.iter().map(|entry| format!("mcp-server-{}", entry.name)).collect();
            Failure::usage(format!("linchpin has no server named {file}"))
                .hint(format!("known names: {}", names.join(", ")))
        };
        Entry::named(name).map(Some).ok_or_else(unknown)
    }

    /// Its whole command line under the published name, and what was given in its words.
    pub(crate) fn published(&self, given: Vec<OsString>, vars: Vars<'_>) -> (Command, Vec<OsString>) {
        let name = format!("mcp-server-{}", self.name);
        let examples = self.examples.replace(&format!("linchpin serve {}", self.name), &name);
        let verbose =
            Arg::new("verbose").short('v').long("verbose").action(ArgAction::Count).help("Show more on standard error");
        let command = self.command().display_name(&name).bin_name(name);
        let command = command.before_help(format!("Examples:\n{examples}")).arg(verbose).no_binary_name(true);
        (command, (self.original)(given, vars))
    }

    /// Whether plain words after its name are its own.
    fn takes_words(&self) -> bool {
        self.own_command().get_positionals().next().is_some()
    }
}

/// A single server.
pub(crate) struct Alone {
    pub(crate) server: Server,
    pub(crate) serving: ServingArgs,
    /// The words after `linchpin serve` that start it on stdio.
    pub(crate) words: Vec<String>,
}

fn part<A: Native>(matches: &mut ArgMatches, vars: Vars<'_>) -> Result<Part, Failure> {
    let tools = ToolArgs::from_arg_matches_mut(matches).map_err(Failure::usage)?;
    let args = A::from_arg_matches_mut(matches).map_err(Failure::usage)?;
    let configured = || -> Result<A::Config, ToolError> {
        let mut config = args.config(vars)?;
        tools.apply(A::choice(&mut config))?;
        Ok(config)
    };
    let mut config = configured().map_err(|fault| failed(&fault))?;
    let tools = A::choice(&mut config).clone();
    let add = Box::new(move |server: Server, tools: ToolChoice, clients: Clients| {
        *A::choice(&mut config) = tools;
        if clients == Clients::SameUser {
            A::shared(&mut config);
        }
        let by_hand = std::io::IsTerminal::is_terminal(&std::io::stdin());
        let roots = A::reach(&mut config).map_or(Ok(None), |reach| reach.decide(A::NAME, clients, by_hand))?;
        let (server, mut warnings) = A::add(config, server).map_err(|fault| failed(&fault))?;
        warnings.extend(roots);
        Ok((server, warnings))
    });
    Ok(Part { service: A::SERVICE, title: A::TITLE, tools, add })
}

/// Flags and words that were given for the arguments of a command, flags first, in the order of the command.
fn given(command: &Command, matches: &ArgMatches, entry: &Entry) -> Vec<String> {
    let (mut flags, mut plain) = (Vec::new(), Vec::new());
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        if !matches!(matches.try_contains_id(id), Ok(true))
            || matches.value_source(id) != Some(clap::parser::ValueSource::CommandLine)
        {
            continue;
        }
        let flag = arg.get_long().map(|long| format!("--{long}"));
        match (flag, arg.get_action()) {
            (Some(flag), ArgAction::SetTrue | ArgAction::SetFalse) => flags.push(flag),
            (Some(flag), ArgAction::Count) => {
                flags.extend(std::iter::repeat_n(flag, usize::from(matches.get_count(id))));
            }
            (flag, _) => {
                let is_path = is_path(arg);
                let is_secret = arg.get_long().is_some_and(|long| entry.secrets.contains(&long));
                let shown = |value: &str| match value.split_once('=') {
                    Some((name, _)) if is_secret => format!("{name}=SECRET"),
                    _ if is_path => in_full(value),
                    _ if arg.get_value_hint() == ValueHint::Url => (entry.address)(value),
                    _ => without_login(value),
                };
                for values in matches.get_raw_occurrences(id).into_iter().flatten() {
                    let values: Vec<String> =
                        values.map(|value| value.to_string_lossy()).map(|value| shown(&value)).collect();
                    match &flag {
                        Some(flag) if arg.is_require_equals_set() => flags.push(format!("{flag}={}", values.join(","))),
                        Some(flag) => flags.extend([flag.clone(), values.join(",")]),
                        None => plain.extend(values),
                    }
                }
            }
        }
    }
    flags.append(&mut plain);
    flags
}

fn is_path(arg: &Arg) -> bool {
    matches!(arg.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath)
}

/// A path that means the same in another working directory. What is not there yet may mean something else (`~`, `:memory:`).
fn in_full(path: &str) -> String {
    let full = match std::fs::canonicalize(Path::new(path)) {
        Ok(real) => Ok(real),
        Err(_) if path.starts_with(['~', ':']) => return path.to_owned(),
        Err(_) => std::path::absolute(path),
    };
    full.map_or_else(|_| path.to_owned(), |full| full.display().to_string())
}

/// A value with the password of an address hidden: what is to be pasted is printed, and may be kept.
fn without_login(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    match (authority.rsplit_once('@'), authority.rsplit_once(':')) {
        (Some((login, place)), _) => match login.split_once(':') {
            Some((user, password)) if !password.is_empty() => format!("{scheme}://{user}:PASSWORD@{place}{after}"),
            _ => value.to_owned(),
        },
        // A password that has a slash in it ends further on.
        (None, Some((_, port))) if after.contains('@') && !port.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{scheme}://…")
        }
        _ => value.to_owned(),
    }
}

/// A word that could not be understood, for an error. What may be an address, or the parameters of a connection, may hold a
/// password anywhere: only what it begins with is shown.
fn without_password(word: &str) -> String {
    let scheme = word.split_once("://").map(|(scheme, _)| scheme);
    if let Some(entry) = ENTRIES.iter().find(|entry| scheme.is_some_and(|scheme| entry.schemes.contains(&scheme))) {
        return (entry.address)(word);
    }
    if scheme.is_none() && !word.contains(['=', '@']) {
        return word.to_owned();
    }
    let end = word.find(|c: char| "=@:".contains(c) || c.is_whitespace());
    end.map_or_else(|| word.to_owned(), |end| format!("{}…", &word[..=end]))
}

/// Says on standard error which name of a tool a prefix of the operator's own makes so long that some hosts refuse it: the
/// longest, once for all servers of the process.
fn tell_long_name<'a>(all: impl IntoIterator<Item = (&'a Service, &'a ToolChoice)>) -> Result<(), Failure> {
    let mut longest: Option<String> = None;
    for (service, choice) in all {
        let name = choice.with_every_flag(service).longest_of_own_making(service).map_err(|fault| failed(&fault))?;
        longest = longest.into_iter().chain(name).max_by_key(String::len);
    }
    if let Some(name) = longest {
        note(format!(
            "warning: the tool name {name} has {} characters; hosts that add their own prefix may reject it, so \
             choose a shorter --tool-prefix or server name",
            name.len()
        ));
    }
    Ok(())
}

/// What to say about a server of which no tool is left. No error: in a process of several servers the others may be what is
/// wanted. `None` where that was said: the tools that were named are others'.
fn no_tool(title: &str, service: &Service, tools: &ToolChoice) -> Option<String> {
    if tools.is_empty_here() {
        return None;
    }
    let chosen = |tools: &ToolChoice| tools.choose(service).unwrap_or_default();
    let names = |specs: Vec<&ToolSpec>| specs.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
    let allowed = tools.with_every_flag(service);
    let mut writing = allowed.clone();
    writing.read_only = false;
    let writing = chosen(&writing);
    let name = tools.scope.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let why = if tools.read_only && chosen(&allowed).is_empty() && !writing.is_empty() {
        let reading = service.tools.iter().filter(|spec| !spec.writes && spec.needs.is_none()).collect();
        format!(
            "--read-only excludes {}; remove it, or pass read-only tools to --enable-tools: {}",
            names(writing.into_iter().map(|(spec, _)| spec).collect()),
            names(reading)
        )
    } else {
        let flags: BTreeSet<&str> = chosen(&allowed).iter().filter_map(|(spec, _)| spec.needs).collect();
        match flags.is_empty() {
            true => "--enable-tools, --disable-tools and --toolsets select none".to_owned(),
            false => format!("the selected tools require {}", flags.into_iter().collect::<Vec<_>>().join(", ")),
        }
    };
    Some(format!("warning: {title}{name} offers no tools: {why}"))
}

/// A server could not be configured or opened with what it was given. Servers write for models too: a first line, and hints
/// after it.
fn failed(fault: &ToolError) -> Failure {
    let message = fault.message();
    let failure = Failure::usage(message.strip_prefix("Error: ").unwrap_or(message));
    fault
        .advice()
        .into_iter()
        .flat_map(|advice| advice.split("\nHint: "))
        .fold(failure, |failure, hint| failure.hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_printed() {
        for (value, shown) in [
            ("http://me:secret@h:1/d?x=y", "http://me:PASSWORD@h:1/d?x=y"),
            ("http://me:se@cret@h/d", "http://me:PASSWORD@h/d"),
            ("http://me:se/cret@h/d", "http://…"),
            ("http://me@h/d", "http://me@h/d"),
            ("http://h:5432/a@b", "http://h:5432/a@b"),
            ("http://h/a@b:c", "http://h/a@b:c"),
            ("words", "words"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(without_login(value), shown);
        }
        for (word, shown) in [
            ("words", "words"),
            ("filesystem:/a b", "filesystem:/a b"),
            ("a=b=filesystem:one", "a=…"),
            ("mysql://me:secret@h/d", "mysql:…"),
            ("me:secret@h/d", "me:…"),
            ("127.0.0.1 password = 'secret'", "127.0.0.1 …"),
            ("time:host=h password=secret", "time:…"),
        ] {
            assert_eq!(without_password(word), shown);
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn passwords_of_databases_are_not_printed() {
        for (value, shown) in [
            ("postgres://me:secret@h:1/d?sslmode=require", "postgres://me:PASSWORD@h:1/d?sslmode=require"),
            ("postgres://me:se/cret@h/d", "URL"),
            ("host=h user=u dbname=x password = 'secret x'", "host=h user=u dbname=x password=PASSWORD"),
            (r"password='a\'secret' host=h", "password=PASSWORD host=h"),
            ("password='secret", "URL"),
        ] {
            let command = Entry::named("postgres").expect("it is built in").own_command().no_binary_name(true);
            let matches = command.try_get_matches_from([value]).expect("a plain word");
            let entry = Entry::named("postgres").expect("it is built in");
            assert_eq!(entry.words(&entry.own_command(), &matches), ["postgres", shown]);
            if value.contains("://") {
                assert_eq!(without_password(value), shown);
            }
        }
    }

    #[test]
    fn every_main_argument_is_one_of_its_server() {
        for entry in ENTRIES {
            let command = entry.own_command();
            match entry.main {
                Main::Flag(flag) => {
                    let flag = flag.strip_prefix("--").expect("as it is typed");
                    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(flag));
                    let arg = arg.unwrap_or_else(|| panic!("{} has no --{flag}", entry.name));
                    assert_eq!(entry.takes_several, matches!(arg.get_action(), ArgAction::Append), "{}", entry.name);
                }
                Main::Word => assert!(entry.takes_words(), "{}", entry.name),
                Main::Nothing => assert!(!entry.takes_several, "{}", entry.name),
            }
            entry.command().debug_assert();
        }
    }

    /// The one name that a rule of its own makes longer: the published name with the server's before it.
    const LONGER: &str = "everything_trigger-long-running-operation";

    #[test]
    fn names_of_tools_leave_room_for_a_prefix_of_the_host() {
        let prefix = linchpin_kit::ToolPrefix::Auto;
        for entry in ENTRIES {
            for tool in entry.service.tools {
                let name = prefix.apply(entry.service.name, tool.name);
                assert_eq!(name.len() > linchpin_kit::NAME_CHARS_GOOD, name == LONGER, "{name} has {}", name.len());
            }
        }
    }

    #[test]
    fn old_names_of_tools_mean_one_tool_and_are_no_tools_name_now() {
        let prefix = linchpin_kit::ToolPrefix::Auto;
        for Entry { service, .. } in ENTRIES {
            let forms = |name: &'static str| {
                let mut forms = vec![name.to_owned(), prefix.apply(service.name, name)];
                forms.dedup();
                forms
            };
            let all = service.tools.iter().flat_map(|tool| {
                let old = tool.aliases.iter().map(|alias| alias.name);
                std::iter::once(tool.name).chain(old).flat_map(forms)
            });
            let mut known = std::collections::BTreeSet::new();
            for name in all {
                assert!(known.insert(name.clone()), "{}: {name} means two tools", service.name);
            }
        }
    }

    #[test]
    fn names_of_servers_are_told_apart() {
        let named = |program: &str| Entry::called_as(OsStr::new(program)).map(|entry| entry.map(|entry| entry.name));
        for entry in ENTRIES {
            for program in [format!("mcp-server-{}", entry.name), format!("/usr/bin/mcp-server-{}.exe", entry.name)] {
                assert_eq!(named(&program).unwrap(), Some(entry.name));
            }
        }
        for program in ["linchpin", "/x/mcp-server-git/linchpin", "mcp-serve", ""] {
            assert_eq!(named(program).unwrap(), None, "{program}");
        }
        assert!(named("mcp-server-zebra").is_err());
    }
}
