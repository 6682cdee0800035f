//! What a built-in server is for this program.
//!
//! To add one: an element of [`ENTRIES`](super::servers::ENTRIES), and in `Cargo.toml` an optional dependency, a feature of
//! the server's name, and that feature in `servers`. Its options are declared in the server's own crate, by
//! `linchpin_kit::options!`. It is then `linchpin serve NAME`, one of several (`NAME`, `NAME:VALUE`, `'NAME --flag'`),
//! `mcp-server-NAME`, and in every help text; `tests/it/servers.rs` wants a row for it.

use super::Reach;
use super::place::Clients;
use super::report::{failed, no_tool};
use crate::exit::Exit;
use crate::fail::Failure;
use crate::show::out::note;
use clap::{ArgMatches, Command};
use linchpin::Server;
use linchpin_kit::{Options, Service, Setting, ToolChoice, ToolError, Vars, cli};
use std::ffi::OsString;

/// A built-in server.
pub(crate) struct Entry {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// The NAME of the published `mcp-server-NAME`, where it is another one.
    pub(crate) published_as: &'static str,
    pub(crate) title: &'static str,
    /// One line for help texts.
    pub(crate) about: &'static str,
    /// Example command lines, each on its own line with two spaces of indentation.
    pub(crate) examples: &'static str,
    /// The end of its help text.
    pub(crate) notes: &'static str,
    /// Its tools.
    pub(crate) service: Service,
    /// What `NAME:VALUE` means.
    pub(crate) main: Main,
    /// Whether `NAME:A NAME:B` is one server for both.
    pub(crate) takes_several: bool,
    /// URL schemes that select the server by themselves: `postgres` for `postgres://…`.
    pub(crate) schemes: &'static [&'static str],
    /// Flags (without `--`) whose values are `NAME=SECRET`; the secret is never shown.
    pub(crate) secrets: &'static [&'static str],
    /// What is shown of an address that it takes, without passwords.
    pub(crate) address: fn(&str) -> String,
    /// Variables that hosts ask a user for, keys above all, and what each is.
    pub(crate) asks: &'static [(&'static str, &'static str)],
    /// Embedded data with a version of its own, for `--version`.
    pub(crate) data: fn() -> Option<String>,
    /// Says more about a server that is alone than its name, version and title.
    pub(crate) introduce: fn(Server) -> Server,
    /// The arguments of the published `mcp-server-NAME` in the words of ours, where they differ.
    pub(crate) original: fn(Vec<OsString>, Vars<'_>) -> Vec<OsString>,
    /// Its configuration, and how it is opened.
    pub(crate) configured: &'static dyn Configured,
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

impl Entry {
    /// A server without what is particular about it.
    pub(crate) const fn new(name: &'static str, service: Service, configured: &'static dyn Configured) -> Entry {
        Entry {
            name,
            published_as: name,
            title: name,
            about: "",
            examples: "",
            notes: "",
            service,
            main: Main::Nothing,
            takes_several: false,
            schemes: &[],
            secrets: &[],
            asks: &[],
            address: super::login::without_login,
            data: || None,
            introduce: |server| server,
            original: |given, _| given,
            configured,
        }
    }
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

type Opened = Result<(Server, Vec<String>), ToolError>;

/// A server with the configuration `C`.
pub(crate) struct Typed<C: 'static> {
    /// Its choice of tools.
    pub(crate) tools: fn(&mut C) -> &mut ToolChoice,
    /// Opens it and adds it to another server: `Name::open(config)?`, `.add_to(server)?.state(())`. Returns warnings too.
    pub(crate) open: fn(C, Server) -> Opened,
    /// What its configuration asks for instead of serving, such as a login; what is said then.
    pub(crate) instead: fn(&C) -> Option<Result<String, ToolError>>,
    /// Sets what depends on this program.
    pub(crate) prepare: fn(&mut C),
    /// What it can access, if clients' roots can affect that.
    pub(crate) reach: Option<fn(&mut C) -> Reach<'_>>,
}

impl<C> Typed<C> {
    pub(crate) const fn new(tools: fn(&mut C) -> &mut ToolChoice, open: fn(C, Server) -> Opened) -> Typed<C> {
        Typed { tools, open, instead: |_| None, prepare: |_| {}, reach: None }
    }
}

/// The same for any configuration.
pub(crate) trait Configured: Sync {
    /// Adds its options to a command.
    fn augment(&self, command: Command) -> Command;

    /// Its plain arguments.
    fn settings(&self) -> Vec<Setting>;

    /// Configures it by its variables and these matches. The variables of the options in `masked` are not read.
    fn part(
        &'static self,
        entry: &'static Entry,
        matches: &ArgMatches,
        vars: Vars<'_>,
        masked: &[&str],
    ) -> Result<Part, Failure>;
}

impl<C: Options> Configured for Typed<C> {
    fn augment(&self, command: Command) -> Command {
        cli::augment::<C>(command)
    }

    fn settings(&self) -> Vec<Setting> {
        linchpin_kit::settings::<C>()
    }

    fn part(
        &'static self,
        entry: &'static Entry,
        matches: &ArgMatches,
        vars: Vars<'_>,
        masked: &[&str],
    ) -> Result<Part, Failure> {
        let mut given = cli::given::<C>(matches);
        masked.iter().for_each(|option| given.add(option, []));
        let mut config = C::read(vars, &given).map_err(|fault| failed(&fault))?;
        if let Some(done) = (self.instead)(&config) {
            note(&done.map_err(|fault| failed(&fault))?);
            return Err(Failure::silent(Exit::Ok));
        }
        let tools = (self.tools)(&mut config).clone();
        let add = Box::new(move |server: Server, tools: ToolChoice, clients: Clients| {
            *(self.tools)(&mut config) = tools;
            (self.prepare)(&mut config);
            let by_hand = std::io::IsTerminal::is_terminal(&std::io::stdin());
            let reach = self.reach.map(|reach| reach(&mut config));
            let roots = reach.map_or(Ok(None), |reach| reach.decide(entry.name, clients, by_hand))?;
            let (server, mut warnings) = (self.open)(config, server).map_err(|fault| failed(&fault))?;
            warnings.extend(roots);
            Ok((server, warnings))
        });
        Ok(Part { service: entry.service, title: entry.title, tools, add })
    }
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
