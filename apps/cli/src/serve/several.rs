//! Several servers in one process: `linchpin serve filesystem:DIR git:REPO memory time`.
//!
//! A word is `NAME`, `NAME:VALUE` (the server's main argument), an address whose scheme is a server's (`postgres://…`), or a
//! quoted `'NAME --flag …'`; `OTHER=` before it gives the server another name. The first word must be more than a bare name:
//! `linchpin serve NAME …` is the command line of that one server, and `NAME:` the first of several.

use super::native::{Entry, Main, Part};
use super::report::{failed, tell_long_name};
use super::servers::ENTRIES;
use super::serving::ServingArgs;
use super::words::{self, without_password};
use crate::fail::Failure;
use crate::shell;
use crate::show::out::near;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use linchpin::Server;
use linchpin_kit::{Given, Options, Service, ToolChoice, ToolError, ToolPrefix, Vars, cli};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// One server, or several in one process.
#[derive(Debug)]
pub(crate) struct Several {
    servers: Vec<String>,
    /// Which tools of all of them are offered.
    tools: Given,
    /// The same as words.
    tool_words: Vec<String>,
    serving: ServingArgs,
}

/// Servers put together.
pub(crate) struct Together {
    pub(crate) server: Server,
    pub(crate) serving: ServingArgs,
    /// What a client may call it.
    pub(crate) name: String,
    /// The words after `linchpin serve` that start it on stdio.
    pub(crate) words: Vec<String>,
}

/// A server that is wanted: what one word says, or several words about the same one.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    entry: &'static Entry,
    /// The name it was given.
    name: Option<String>,
    args: Vec<String>,
    /// Whether it has flags of its own.
    flags: bool,
}

impl Several {
    /// Adds the flags that apply to all servers to a command.
    pub(crate) fn augment(command: Command) -> Command {
        ServingArgs::augment_args(cli::augment::<ToolChoice>(command))
    }

    /// These servers, with the flags for all of them.
    pub(crate) fn new(servers: Vec<String>, matches: &mut ArgMatches) -> Result<Several, clap::Error> {
        let tools = cli::given::<ToolChoice>(matches);
        let tool_words = words::given(&cli::augment::<ToolChoice>(Command::new("")), matches, None);
        Ok(Several { servers, tools, tool_words, serving: ServingArgs::from_arg_matches_mut(matches)? })
    }

    /// Configures and opens all of them, and puts them on one server.
    pub(crate) fn open(mut self, vars: Vars<'_>) -> Result<Together, Failure> {
        if self.servers.is_empty() {
            let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
            return Err(Failure::usage("no server given")
                .hint(format!("servers: {}", names.join(", ")))
                .hint("for example: linchpin serve filesystem ~/notes"));
        }
        let wanted = merged(self.servers.iter().map(|word| parse(word)).collect::<Result<_, _>>()?)?;
        let single = matches!(wanted.as_slice(), [one] if one.name.is_none());
        let shared = |fault: ToolError| failed(&fault);
        let over_all = ToolChoice::read(Vars::new(&|_| None), &self.tools).map_err(shared)?;
        let for_all = ForAll { given: &self.tools, prefix: &over_all.prefix, single };
        let (mut parts, mut words) = (Vec::new(), Vec::new());
        for one in &wanted {
            let (part, word) = configured(one, words.is_empty(), vars, &for_all)?;
            parts.push(part);
            words.push(word);
        }
        let services: Vec<&Service> = parts.iter().map(|part| &part.service).collect();
        let shares = over_all.split(&services).map_err(shared)?;
        let choices: Vec<ToolChoice> = parts.iter().zip(shares).map(|(part, share)| both(part, share)).collect();
        unlike(&parts, &choices)?;
        let named: Vec<_> = parts.iter().map(|part| &part.service).zip(&choices).collect();
        self.serving.find_tools(&named)?;
        tell_long_name(named)?;
        words.extend(self.tool_words);
        let (name, title) = match parts.as_slice() {
            [one] if single => (wanted[0].entry.name.to_owned(), one.title),
            _ => ("linchpin".to_owned(), "Linchpin"),
        };
        let own_name = if single { format!("linchpin-{name}") } else { name.clone() };
        let mut server = Server::new(own_name, env!("CARGO_PKG_VERSION")).title(title);
        if single {
            server = (wanted[0].entry.introduce)(server);
        }
        for (part, choice) in parts.into_iter().zip(choices) {
            if !single {
                server = server.instructions(heading(&part, &choice)?);
            }
            server = part.add_to(server, choice, self.serving.clients())?;
        }
        Ok(Together { server, serving: self.serving, name, words })
    }
}

/// The options about tools that were given for all servers.
struct ForAll<'a> {
    given: &'a Given,
    prefix: &'a ToolPrefix,
    /// Whether there is only one server, without a name.
    single: bool,
}

impl ForAll<'_> {
    /// Whether the variable of an option counts for a server of this name: the command line takes precedence.
    fn allows_variable(&self, option: &str, name: Option<&String>) -> bool {
        !self.given.has(option) && (name.is_none() || option != "tool-prefix")
    }

    /// The prefix of a server's tools: its own flag, its name, the flag for all, its variable, or its short name.
    fn prefix_of(&self, name: Option<&String>, own: Given, read: ToolPrefix) -> Result<ToolPrefix, ToolError> {
        Ok(match name {
            _ if own.has("tool-prefix") => read,
            Some(name) => format!("{name}_").parse()?,
            None if self.given.has("tool-prefix") => self.prefix.clone(),
            None if read == ToolPrefix::None && !self.single => ToolPrefix::Auto,
            None => read,
        })
    }
}

/// What a part's own words say and its share of what was said for all.
fn both(part: &Part, share: ToolChoice) -> ToolChoice {
    let own = &part.tools;
    // From the share: it also knows whether what was named is meant for others.
    let mut choice = share;
    choice.enable.extend(own.enable.iter().cloned());
    choice.disable.extend(own.disable.iter().cloned());
    choice.toolsets.extend(own.toolsets.iter().cloned());
    choice.read_only |= own.read_only;
    choice.scope.clone_from(&own.scope);
    for flag in part.service.tools.iter().filter_map(|tool| tool.needs) {
        choice.grant(flag, own.grants(flag));
    }
    choice.prefix.clone_from(&own.prefix);
    choice
}

/// No two servers may list a tool under the same name.
fn unlike(parts: &[Part], choices: &[ToolChoice]) -> Result<(), Failure> {
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for (part, choice) in parts.iter().zip(choices) {
        // Which flags a server was given is known when it is opened; all of its tools have names of their own in any case.
        let all = choice.with_every_flag(&part.service);
        for (_, name) in all.choose(&part.service).map_err(|fault| failed(&fault))? {
            if let Some(other) = owners.insert(name.clone(), part.service.name) {
                return Err(Failure::usage(format!("{other} and {} both have a tool named {name}", part.service.name))
                    .hint("remove --tool-prefix, or rename one of them: OTHER=NAME:VALUE"));
            }
        }
    }
    Ok(())
}

/// Begins what models are told about a part: what the names of its tools and prompts have in common.
fn heading(part: &Part, choice: &ToolChoice) -> Result<String, Failure> {
    let prefix = match &choice.prefix {
        ToolPrefix::None => return Ok(format!("# {}", part.title)),
        ToolPrefix::Auto => format!("{}_", part.service.name),
        ToolPrefix::Text(prefix) => prefix.clone(),
    };
    let all = choice.with_every_flag(&part.service).choose(&part.service).map_err(|fault| failed(&fault))?;
    // A tool that has the server's own name keeps it.
    let own = all.iter().find(|(_, name)| !name.starts_with(&prefix)).map(|(_, name)| name);
    let names = match own {
        None => format!("names beginning with `{prefix}`"),
        Some(own) if all.len() == 1 => format!("the name `{own}`"),
        Some(own) => format!("the name `{own}` and names beginning with `{prefix}`"),
    };
    Ok(format!("# {}: {names}", part.title))
}

/// The server of its words and its environment, and the word that names it elsewhere: as the first of several, with a colon.
fn configured(wanted: &Wanted, first: bool, vars: Vars<'_>, all: &ForAll<'_>) -> Result<(Part, String), Failure> {
    let Wanted { entry, name, args, .. } = wanted;
    let command = entry.own_command().no_binary_name(true);
    let matches = command.try_get_matches_from(args).map_err(|e| {
        let text = words::without_passwords(e).to_string();
        let first = text.lines().next().unwrap_or_default();
        Failure::usage(format!("{}: {}", entry.name, first.strip_prefix("error: ").unwrap_or(first)))
            .hint(format!("its flags: linchpin serve {} --help", entry.name))
    })?;
    let words = entry.words(&entry.own_command(), &matches);
    let tools = cli::augment::<ToolChoice>(Command::new(""));
    let options = tools.get_arguments().filter_map(Arg::get_long);
    let masked: Vec<&str> = options.filter(|option| !all.allows_variable(option, name.as_ref())).collect();
    let mut part = entry.part(&matches, vars, &masked)?;
    let prefix = all.prefix_of(name.as_ref(), cli::given::<ToolChoice>(&matches), part.tools.prefix);
    part.tools.prefix = prefix.map_err(|fault| failed(&fault))?;
    let begins = name.as_ref().map(|name| format!("{name}=")).unwrap_or_default();
    if let Some(name) = name {
        // For the life of the process, and as many as there are words.
        part.service.name = Box::leak(name.clone().into_boxed_str());
        part.tools.scope = Some(name.clone());
    }
    let plain = match (words.as_slice(), entry.main) {
        ([name], _) => Some(if first { format!("{name}:") } else { name.clone() }),
        ([name, value], Main::Word | Main::Flag(_)) if !value.starts_with('-') => Some(format!("{name}:{value}")),
        ([name, flag, value], Main::Flag(main)) if flag == main => Some(format!("{name}:{value}")),
        _ => None,
    };
    Ok((part, format!("{begins}{}", plain.unwrap_or_else(|| shell::joined(&words)))))
}

/// Words about the same server are one where the server can do that.
fn merged(words: Vec<Wanted>) -> Result<Vec<Wanted>, Failure> {
    let mut all: Vec<Wanted> = Vec::new();
    for word in words {
        let called = |w: &Wanted| w.name.clone().unwrap_or_else(|| w.entry.service.name.to_owned());
        let Some(before) = all.iter_mut().find(|w| called(w) == called(&word)) else {
            all.push(word);
            continue;
        };
        let twice = Failure::usage(format!("server given twice: `{}`", called(&word)));
        if before.entry.name != word.entry.name || !word.entry.takes_several {
            let name = word.entry.name;
            return Err(
                twice.hint(format!("rename them: one={name}:… other={name}:…; their tools begin with one_ and other_"))
            );
        }
        if before.flags || word.flags {
            return Err(twice.hint("flags of one would apply to both; quote both as one argument, or rename them"));
        }
        before.args.extend(word.args);
    }
    Ok(all)
}

/// What a word says.
fn parse(word: &str) -> Result<Wanted, Failure> {
    let by_scheme = |word: &str| {
        let scheme = word.split_once("://")?.0;
        let entry = ENTRIES.iter().find(|entry| entry.schemes.contains(&scheme))?;
        Some(Wanted { entry, name: None, args: entry.value(word)?, flags: false })
    };
    let (first, sign, rest) = first(word);
    match sign {
        Some('=') => {
            let mut named = parse(rest)?;
            if named.name.is_some() {
                return Err(Failure::usage(format!("more than one name in `{}`", without_password(word))));
            }
            if first.is_empty()
                || first.len() > 19
                || !first.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            {
                return Err(Failure::usage(format!("invalid server name: {first}"))
                    .hint("use at most 19 characters of A-Z a-z 0-9 - _"));
            }
            named.name = Some(first.to_owned());
            return Ok(named);
        }
        Some(':') if rest.starts_with("//") => {
            if let Some(wanted) = by_scheme(word) {
                return Ok(wanted);
            }
        }
        _ => {}
    }
    let Some(entry) = Entry::named(first) else { return Err(unknown(word, first)) };
    let (args, flags) = match sign {
        None => (Vec::new(), false),
        Some(':') if rest.is_empty() => (Vec::new(), false),
        Some(':') => {
            let args = entry.value(rest).ok_or_else(|| {
                Failure::usage(format!("{first} takes no value: {}", without_password(word)))
                    .hint(format!("to pass flags: '{first} --flag'; see linchpin serve {first} --help"))
            })?;
            (args, false)
        }
        Some(_) => {
            let args = shell::split(rest).ok_or_else(|| Failure::usage(format!("unclosed quote after `{first}`")))?;
            (args, true)
        }
    };
    Ok(Wanted { entry, name: None, args, flags })
}

/// A word at its first `:`, `=` or blank.
fn first(word: &str) -> (&str, Option<char>, &str) {
    match word.find(|c: char| c == ':' || c == '=' || c.is_whitespace()) {
        None => (word, None, ""),
        Some(at) => {
            let sign = word[at..].chars().next().unwrap_or(' ');
            (&word[..at], Some(sign), &word[at + sign.len_utf8()..])
        }
    }
}

/// Servers that need Unix, which builds for Windows lack.
const UNIX_ONLY: &[&str] = &["filesystem"];

fn unknown(word: &str, first: &str) -> Failure {
    if let Some(failure) = not_on(cfg!(windows), first) {
        return failure;
    }
    let failure = Failure::usage(format!("unknown server '{}'", without_password(word)));
    let names = || ENTRIES.iter().map(|entry| entry.name);
    match near(first, names()) {
        Some(meant) => failure.hint(format!("did you mean '{meant}'?")),
        None => failure
            .hint(format!("servers: {}", names().collect::<Vec<_>>().join(", ")))
            .hint("a directory or file follows its server's name: filesystem:DIR, git:DIR, memory:FILE, sqlite:FILE"),
    }
}

/// What to say of a server that this platform does not have.
fn not_on(windows: bool, name: &str) -> Option<Failure> {
    (windows && UNIX_ONLY.contains(&name)).then(|| {
        Failure::usage(format!("the {name} server is not available on Windows"))
            .hint("run linchpin in the Windows Subsystem for Linux, or the published server: npx -y @modelcontextprotocol/server-filesystem DIR")
    })
}

impl Entry {
    /// Its main argument, as words of its command line.
    fn value(&self, value: &str) -> Option<Vec<String>> {
        match self.main {
            Main::Nothing => None,
            Main::Word => Some(vec![value.to_owned()]),
            Main::Flag(flag) => Some(vec![format!("{flag}={value}")]),
        }
    }
}

/// Refuses the bare names of other servers after that of a server whose main argument is seldom given: they were meant as
/// servers.
pub(crate) fn refuse_bare_names(entry: &Entry, matches: &ArgMatches) -> Result<(), Failure> {
    let is_name = |value: &OsStr| value.to_str().is_some_and(|word| is_meant(entry, word));
    let values = |id: &clap::Id| matches.try_get_raw(id.as_str()).ok().flatten();
    if !matches.ids().filter_map(values).flatten().any(is_name) {
        // Nearly always, and putting the command together takes a while.
        return Ok(());
    }
    let command = entry.own_command();
    let ids = command.get_positionals().map(|arg| arg.get_id().as_str().to_owned());
    let words: Vec<String> =
        ids.flat_map(|id| matches.get_many::<String>(&id).into_iter().flatten().cloned().collect::<Vec<_>>()).collect();
    match words.as_slice() {
        [first, ..] if words.iter().all(|word| is_meant(entry, word)) => {
            let (name, all) = (entry.name, words.join(" "));
            Err(Failure::usage(format!("`{first}` is the name of a server"))
                .hint(format!("to serve all of them: linchpin serve {name}: {all}"))
                .hint(format!("for a file or directory of that name: linchpin serve {name} ./{first}")))
        }
        _ => Ok(()),
    }
}

/// Whether a word after a server's name is another server. Where it may be a file or directory, only if there is none.
fn is_meant(entry: &Entry, word: &str) -> bool {
    match entry.main {
        Main::Word => Entry::named(word).is_some() && !Path::new(word).exists(),
        _ => is_server(word),
    }
}

/// Commands that are elsewhere.
const ELSEWHERE: &[(&str, &str)] = &[
    #[cfg(feature = "client")]
    ("login", "auth login"),
    #[cfg(feature = "client")]
    ("logout", "auth logout"),
    ("version", "--version"),
];

/// A word of the command line, to be printed: it may hold a password.
fn shown(word: &str) -> String {
    if word.contains(['@', ' ', '=']) { without_password(word) } else { word.to_owned() }
}

/// What was meant by an unknown command: a server, or a command that is elsewhere.
pub(crate) fn meant(e: &clap::Error, given: &[OsString]) -> Option<String> {
    let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(unknown))) =
        (e.kind(), e.get(ContextKind::InvalidSubcommand))
    else {
        return None;
    };
    let words = given.iter().skip(1).map(|word| word.to_string_lossy());
    let mut words = words.skip_while(|word| word.starts_with('-'));
    // Not that of a command of several, as `auth`.
    words.next().filter(|word| word == unknown)?;
    let ours = match ELSEWHERE.iter().find(|(name, _)| name == unknown) {
        Some((_, ours)) => (*ours).to_owned(),
        None => format!("serve {}", Entry::named(unknown)?.name),
    };
    let rest: Vec<String> = words.map(|word| shown(&word)).collect();
    let rest = if rest.is_empty() { String::new() } else { format!(" {}", shell::joined(&rest)) };
    Some(format!("did you mean `linchpin {ours}{rest}`?"))
}

/// The command line with the options that were before a server's name after it.
fn in_order(given: &[OsString]) -> Option<String> {
    let words: Vec<String> = given.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let serve = words.iter().position(|word| word == "serve")?;
    let (before, after) =
        words[serve + 1..].split_at(words[serve + 1..].iter().position(|w| Entry::named(w).is_some())?);
    // Of several, they belong to one of them.
    if before.is_empty() || before.iter().any(|word| is_server(word)) {
        return None;
    }
    let (name, after) = after.split_first()?;
    let words: Vec<String> = before.iter().chain(after).map(|word| shown(word)).collect();
    Some(format!("linchpin serve {name} {}", shell::joined(&words)))
}

/// What to say of an argument that is unknown to one server, or to all of several, or in the wrong place.
pub(crate) fn hint(e: &clap::Error, given: &[OsString]) -> Option<String> {
    if e.kind() == ErrorKind::ArgumentConflict && e.to_string().contains("belong after its name") {
        return in_order(given);
    }
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) = (e.kind(), e.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let mut words = given.iter().map(|word| word.to_string_lossy()).skip(1).skip_while(|word| word.starts_with('-'));
    words.next().filter(|word| word == "serve")?;
    let server = words.find(|word| is_server(word))?;
    match Entry::named(&server) {
        Some(_) if is_server(unknown) => {
            Some(format!("to serve several, put a colon after the first: linchpin serve {server}: {unknown}"))
        }
        Some(entry) => match entry.main {
            Main::Flag(flag) if !unknown.starts_with('-') && entry.own_command().get_positionals().next().is_none() => {
                Some(format!("did you mean {flag} {}?", without_password(unknown)))
            }
            _ => None,
        },
        None => {
            Some("to pass flags to one of several servers, quote them with its name: 'git . --allow-remote'".into())
        }
    }
}

/// Whether a word names a server.
fn is_server(word: &str) -> bool {
    Entry::named(first(word).0).is_some()
        || ENTRIES.iter().any(|entry| word.split_once("://").is_some_and(|(scheme, _)| entry.schemes.contains(&scheme)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(feature = "git", feature = "time"))]
    #[test]
    fn what_was_meant_is_a_whole_command_line() {
        let own = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (line, expected) in [
            ("linchpin git .", Some("did you mean `linchpin serve git .`?")),
            ("linchpin -v time", Some("did you mean `linchpin serve time`?")),
            ("linchpin version", Some("did you mean `linchpin --version`?")),
            ("linchpin zebra", None),
        ] {
            let given = own(line);
            let command = Command::new("linchpin").subcommand(Command::new("serve")).subcommand_required(true);
            let command = command.arg(Arg::new("verbose").short('v').action(clap::ArgAction::Count));
            let error = command.try_get_matches_from(&given).unwrap_err();
            assert_eq!(meant(&error, &given).as_deref(), expected, "{line}");
        }
        for (line, expected) in [
            ("linchpin serve --read-only git .", Some("linchpin serve git --read-only .")),
            ("linchpin -v serve --http 127.0.0.1:1 git .", Some("linchpin serve git --http 127.0.0.1:1 .")),
            ("linchpin serve git .", None),
            ("linchpin serve time: --read-only git .", None),
        ] {
            assert_eq!(in_order(&own(line)).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_server_that_windows_lacks_is_said_to_be_missing_there() {
        let said = |windows, name| not_on(windows, name).map(|failure| failure.message().to_owned());
        let lacks = "the filesystem server is not available on Windows";
        assert_eq!(said(true, "filesystem").as_deref(), Some(lacks));
        assert_eq!(said(true, "filesistem"), None);
        assert_eq!(said(false, "filesystem"), None);
    }
}
