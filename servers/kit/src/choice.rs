//! Which tools are registered, and under which names: one set of rules for all servers.

use crate::{ToolError, near};
use linchpin::Tool;
use linchpin::types::tool::ToolAnnotations;
use std::collections::BTreeSet;
use std::str::FromStr;

/// The short name and tools of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// Short name: the prefix of its tools (without `_`) when several servers share a process: `fs`, `pg`,
    /// `git`.
    pub name: &'static str,
    /// All tools, in listing order.
    pub tools: &'static [ToolSpec],
}

/// The definition of a tool.
///
/// ```
/// # use linchpin_kit::ToolSpec;
/// const STATUS: ToolSpec = ToolSpec::reads("git_status", "Status", "status", "Shows what changed in the working tree.");
/// const PUSH: ToolSpec = ToolSpec::writes("git_push", "Push", "remote", "Sends commits to a remote.").outside().needs("--allow-remote");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolSpec {
    /// Canonical name, without prefix.
    pub name: &'static str,
    /// Title for display.
    pub title: &'static str,
    /// Description for models.
    pub description: &'static str,
    /// The tool set it belongs to, for `--toolsets`; blanks separate several.
    pub toolset: &'static str,
    /// Whether it modifies anything (the opposite of `readOnlyHint`).
    pub writes: bool,
    /// Whether it may overwrite or delete existing data (`destructiveHint`).
    pub destructive: bool,
    /// Whether a repeated call with the same arguments has no further effect (`idempotentHint`).
    pub idempotent: bool,
    /// Whether it interacts with external systems, for example the web (`openWorldHint`).
    pub open_world: bool,
    /// The flag that must be set for the tool to be registered.
    pub needs: Option<&'static str>,
    /// Whether it is registered only if its name or tool set is enabled explicitly.
    pub on_request: bool,
    /// Whether the published server lacks it.
    pub extra: bool,
    /// Whether it is registered by default only under the published server's name.
    pub superseded: bool,
    /// Whether its name says already whose it is, and gets no prefix of the server.
    pub own_name: bool,
    /// Former names. They work in calls and in the operator's options, but are never listed.
    pub aliases: &'static [Alias],
}

/// A former name of a tool, for calls, configurations and prompts that still use it.
///
/// ```
/// # use linchpin_kit::{Alias, ToolSpec};
/// const SUM: ToolSpec = ToolSpec::reads("get-sum", "Sum", "all", "Adds two numbers.")
///     .aliases(&[Alias::of("add"), Alias::of("plus").arguments(&[("left", "a"), ("right", "b")])]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    /// The old name.
    pub name: &'static str,
    /// Renamed arguments as `(old, new)`. All others keep their names.
    pub arguments: &'static [(&'static str, &'static str)],
}

impl Alias {
    /// An old name whose arguments are unchanged.
    #[must_use]
    pub const fn of(name: &'static str) -> Self {
        Self { name, arguments: &[] }
    }

    /// Sets the renamed arguments, as `(old, new)`.
    #[must_use]
    pub const fn arguments(self, arguments: &'static [(&'static str, &'static str)]) -> Self {
        Self { arguments, ..self }
    }
}

/// Maximum characters of a tool name in the protocol.
pub const NAME_CHARS_MAX: usize = 128;

/// Maximum characters that leave room for the prefix of a host; some hosts allow 64 in total.
pub const NAME_CHARS_GOOD: usize = 40;

impl ToolSpec {
    /// A read-only tool: idempotent, closed world.
    #[must_use]
    pub const fn reads(
        name: &'static str,
        title: &'static str,
        toolset: &'static str,
        description: &'static str,
    ) -> Self {
        Self {
            name,
            title,
            description,
            toolset,
            writes: false,
            destructive: false,
            idempotent: true,
            open_world: false,
            needs: None,
            on_request: false,
            extra: false,
            superseded: false,
            own_name: false,
            aliases: &[],
        }
    }

    /// A tool that writes, by default additive: neither destructive nor idempotent.
    #[must_use]
    pub const fn writes(
        name: &'static str,
        title: &'static str,
        toolset: &'static str,
        description: &'static str,
    ) -> Self {
        Self { writes: true, idempotent: false, ..Self::reads(name, title, toolset, description) }
    }

    /// Marks it as destructive.
    #[must_use]
    pub const fn destructive(self) -> Self {
        Self { destructive: true, ..self }
    }

    /// Marks it as idempotent.
    #[must_use]
    pub const fn idempotent(self) -> Self {
        Self { idempotent: true, ..self }
    }

    /// Marks it as open-world: it interacts with external systems.
    #[must_use]
    pub const fn outside(self) -> Self {
        Self { open_world: true, ..self }
    }

    /// Registers it only with this flag (for example `--allow-remote`), see [`ToolChoice::grant`].
    #[must_use]
    pub const fn needs(self, flag: &'static str) -> Self {
        Self { needs: Some(flag), ..self }
    }

    /// Registers it only if its name or tool set is enabled explicitly.
    #[must_use]
    pub const fn on_request(self) -> Self {
        Self { on_request: true, ..self }
    }

    /// Marks it as one that the published server lacks: it is not registered under that server's name, unless its name or
    /// tool set is enabled.
    #[must_use]
    pub const fn extra(self) -> Self {
        Self { extra: true, ..self }
    }

    /// Marks it as one that other tools of the server replace: it is registered under the published server's name, and
    /// otherwise if its name or tool set is enabled.
    #[must_use]
    pub const fn superseded(self) -> Self {
        Self { superseded: true, ..self }
    }

    /// Says that its name says already whose it is, not as its first word: `get_sentry_issue`. [`ToolPrefix::Auto`] leaves it
    /// as it is.
    #[must_use]
    pub const fn own_name(self) -> Self {
        Self { own_name: true, ..self }
    }

    /// Sets its former names.
    #[must_use]
    pub const fn aliases(self, aliases: &'static [Alias]) -> Self {
        Self { aliases, ..self }
    }

    /// The tool sets it belongs to.
    pub fn toolsets(&self) -> impl Iterator<Item = &'static str> {
        self.toolset.split(' ')
    }

    /// The tool definition under this name, with all four hints.
    #[must_use]
    pub fn listed(&self, name: impl Into<String>) -> Tool {
        Tool::new(name, self.description).title(self.title).annotations(
            ToolAnnotations::new()
                .with_read_only_hint(!self.writes)
                .with_destructive_hint(self.destructive)
                .with_idempotent_hint(self.idempotent)
                .with_open_world_hint(self.open_world),
        )
    }
}

/// How exposed tool names are built.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolPrefix {
    /// Names without a prefix.
    #[default]
    None,
    /// The server's short name and `_` before every name that lacks it, as when several servers share a process.
    Auto,
    /// This text before every name that does not start with it.
    Text(String),
}

impl FromStr for ToolPrefix {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self, ToolError> {
        match text {
            "none" | "" => Ok(Self::None),
            "auto" => Ok(Self::Auto),
            prefix
                if prefix.len() <= 20 && prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b)) =>
            {
                Ok(Self::Text(prefix.to_owned()))
            }
            other => Err(ToolError::new(format!("Invalid tool prefix: {other}"))
                .hint("Use none, auto, or at most 20 characters of A-Z a-z 0-9 _ . -")),
        }
    }
}

impl ToolPrefix {
    /// The exposed name of a tool of this service.
    #[must_use]
    pub fn of(&self, service: &str, tool: &ToolSpec) -> String {
        if tool.own_name && *self == Self::Auto { tool.name.to_owned() } else { self.apply(service, tool.name) }
    }

    /// The exposed name of the prompt, or of the former name of a tool, `name` of this service.
    #[must_use]
    pub fn apply(&self, service: &str, name: &str) -> String {
        match self {
            Self::None => name.to_owned(),
            Self::Auto
                if name == service || name.strip_prefix(service).is_some_and(|rest| rest.starts_with(['_', '-'])) =>
            {
                name.to_owned()
            }
            Self::Auto => format!("{service}_{name}"),
            Self::Text(prefix) if name.starts_with(prefix.as_str()) => name.to_owned(),
            Self::Text(prefix) => format!("{prefix}{name}"),
        }
    }
}

/// The operator's choice of tools. Read-only takes precedence over everything, disabling over enabling.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolChoice {
    /// The prefix of exposed names (`--tool-prefix`).
    pub prefix: ToolPrefix,
    /// Tools to enable in addition to the tool sets; without tool sets, the only tools (`--enable-tools`).
    pub enable: Vec<String>,
    /// Tools to disable (`--disable-tools`).
    pub disable: Vec<String>,
    /// Tool sets to enable; empty means all but the tools that are [`on_request`](ToolSpec::on_request) or
    /// [`superseded`](ToolSpec::superseded), unless `enable` names tools (`--toolsets`). `all` is every set.
    pub toolsets: Vec<String>,
    /// Without tool sets and names, enables only the tools of the published server (as `mcp-server-NAME`).
    pub published: bool,
    /// Disables every tool that writes (`--read-only`).
    pub read_only: bool,
    /// Distinguishes this server from others of its kind in the same process; part of its resource URIs then, see
    /// [`ToolChoice::uri`].
    pub scope: Option<String>,
    /// Flags that were set and that tools require; see [`ToolChoice::grant`].
    granted: Vec<&'static str>,
    /// Whether the named tools and tool sets belong to other servers of the same process.
    elsewhere: bool,
}

impl ToolChoice {
    /// Records that this flag was set, so that tools that require it are registered.
    pub fn grant(&mut self, flag: &'static str, given: bool) {
        self.granted.retain(|known| *known != flag);
        if given {
            self.granted.push(flag);
        }
    }

    /// Whether this flag was set.
    #[must_use]
    pub fn grants(&self, flag: &str) -> bool {
        self.granted.contains(&flag)
    }

    /// The URI of a resource: the configured name of the server is prepended to its path, so
    /// that `memo://insights` becomes `memo://notes/insights`. Unchanged if the server has no name.
    #[must_use]
    pub fn uri(&self, uri: &str) -> String {
        match (&self.scope, uri.split_once("://")) {
            (Some(scope), Some((scheme, rest))) => {
                format!("{scheme}://{scope}/{}", rest.strip_prefix('/').unwrap_or(rest))
            }
            _ => uri.to_owned(),
        }
    }

    /// The same choice with every flag set: to inspect names before the server is
    /// opened and its flags are known.
    #[must_use]
    pub fn with_every_flag(&self, service: &Service) -> Self {
        let mut all = self.clone();
        for flag in service.tools.iter().filter_map(|tool| tool.needs) {
            all.grant(flag, true);
        }
        all
    }

    /// Whether tools or tool sets were named that all belong to other servers of the same process.
    #[must_use]
    pub fn is_empty_here(&self) -> bool {
        self.elsewhere && self.enable.is_empty() && self.toolsets.is_empty()
    }

    /// Finds a tool by a name in the operator's options: its canonical name, a prefixed one (the chosen prefix, or the
    /// service's name and `_` or `.`), or a former name, with or without these. Current names take precedence over
    /// former ones.
    fn find(&self, service: &Service, wanted: &str) -> Option<&'static ToolSpec> {
        let within = wanted.strip_prefix(service.name).and_then(|rest| rest.strip_prefix('.'));
        let is = |name: &str| {
            wanted == name
                || within == Some(name)
                || wanted == self.prefix.apply(service.name, name)
                || wanted == ToolPrefix::Auto.apply(service.name, name)
        };
        let now = service.tools.iter().find(|tool| is(tool.name));
        now.or_else(|| service.tools.iter().find(|tool| tool.aliases.iter().any(|alias| is(alias.name))))
    }

    /// The exposed name of the tool that is named like this in the operator's options, see [`ToolChoice::split`].
    /// `None` if the service has no such tool.
    #[must_use]
    pub fn exposed(&self, service: &Service, wanted: &str) -> Option<String> {
        self.find(service, wanted).map(|tool| self.prefix.of(service.name, tool))
    }

    /// The enabled tools in the order of the service, each with its exposed name.
    ///
    /// # Errors
    /// When a tool or tool set is unknown, a tool is enabled by name without the flag it requires, or a name exceeds
    /// the limit of the protocol. The process should then refuse to start.
    pub fn choose(&self, service: &Service) -> Result<Vec<(&'static ToolSpec, String)>, ToolError> {
        let all = service.tools;
        let known: BTreeSet<&str> = all.iter().flat_map(|tool| tool.toolsets()).chain(["all"]).collect();
        if let Some(set) = self.toolsets.iter().find(|set| !known.contains(set.as_str())) {
            return Err(unknown("tool set", set, near(set, known.iter().copied()).map(str::to_owned), known));
        }
        let found = |names: &[String]| -> Result<Vec<&'static ToolSpec>, ToolError> {
            names
                .iter()
                .map(|wanted| self.find(service, wanted).ok_or_else(|| self.unknown_tool(&[service], wanted)))
                .collect()
        };
        let (enable, disable) = (found(&self.enable)?, found(&self.disable)?);
        let named = |tool: &ToolSpec| enable.iter().any(|one| one.name == tool.name);
        for tool in all.iter().filter(|tool| named(tool) && !(self.read_only && tool.writes)) {
            if let Some(flag) = tool.needs.filter(|flag| !self.grants(flag)) {
                return Err(ToolError::new(format!("{} is enabled but not allowed", tool.name))
                    .hint(format!("Add {flag}, or remove {} from the enabled tools.", tool.name)));
            }
        }
        let everything = self.toolsets.is_empty() && self.enable.is_empty() && !self.elsewhere;
        let chosen = all.iter().filter(|tool| {
            let in_set = self.toolsets.iter().any(|set| set == "all" || tool.toolsets().any(|own| own == set));
            let usual = !tool.on_request && !if self.published { tool.extra } else { tool.superseded };
            (in_set || named(tool) || everything && usual)
                && !disable.iter().any(|one| one.name == tool.name)
                && !(self.read_only && tool.writes)
                && tool.needs.is_none_or(|flag| self.grants(flag))
        });
        let chosen: Vec<_> = chosen.map(|tool| (tool, self.prefix.of(service.name, tool))).collect();
        match chosen.iter().map(|(_, name)| name).find(|name| name.len() > NAME_CHARS_MAX) {
            None => Ok(chosen),
            Some(name) => Err(ToolError::new(format!("The tool name {name} has {} characters", name.len()))
                .hint(format!("The maximum is {NAME_CHARS_MAX}: choose a shorter prefix."))),
        }
    }

    /// The longest enabled name that exceeds [`NAME_CHARS_GOOD`] because of a custom prefix, so
    /// that a host may reject or truncate it.
    ///
    /// # Errors
    /// As [`ToolChoice::choose`].
    pub fn longest_of_own_making(&self, service: &Service) -> Result<Option<String>, ToolError> {
        if self.scope.is_none() && !matches!(self.prefix, ToolPrefix::Text(_)) {
            return Ok(None);
        }
        let long = self.choose(service)?.into_iter().map(|(_, name)| name).filter(|name| name.len() > NAME_CHARS_GOOD);
        Ok(long.max_by_key(String::len))
    }

    /// The error for an unknown tool name, with the nearest name and all valid ones.
    fn unknown_tool(&self, services: &[&Service], wanted: &str) -> ToolError {
        let (mut now, mut before) = (Vec::new(), Vec::new());
        for service in services {
            let forms = |name: &'static str| {
                let auto = ToolPrefix::Auto.apply(service.name, name);
                [name.to_owned(), self.prefix.apply(service.name, name), auto]
            };
            now.extend(service.tools.iter().flat_map(|tool| forms(tool.name)));
            for tool in service.tools {
                before.extend(tool.aliases.iter().flat_map(|old| forms(old.name)).map(|old| (old, tool.name)));
            }
        }
        let old = before.iter().map(|(old, _)| old.as_str());
        let meant = near(wanted, now.iter().map(String::as_str).chain(old));
        let meant = meant.map(|meant| match before.iter().find(|(old, _)| old == meant) {
            Some((_, tool)) if !now.iter().any(|name| name == meant) => format!("{meant}, now named {tool}"),
            _ => meant.to_owned(),
        });
        unknown("tool", wanted, meant, services.iter().flat_map(|service| service.tools.iter().map(|tool| tool.name)))
    }

    /// Splits a choice among the services of a process. A tool is named as in calls, or with
    /// its service as `git.git_log`. A tool set applies to every service that has one of this name, or to one service as
    /// `git.read`; the name of a service (`git`) means all its tools.
    ///
    /// # Errors
    /// When a tool or tool set is unknown to all of them, or several have a tool of this name.
    pub fn split(&self, services: &[&Service]) -> Result<Vec<ToolChoice>, ToolError> {
        let mut shares = vec![self.clone(); services.len()];
        for share in &mut shares {
            (share.enable, share.disable, share.toolsets) = (Vec::new(), Vec::new(), Vec::new());
            share.elsewhere = !(self.enable.is_empty() && self.toolsets.is_empty());
        }
        for (wanted, disabled) in
            self.enable.iter().map(|name| (name, false)).chain(self.disable.iter().map(|name| (name, true)))
        {
            let found = services.iter().enumerate();
            let owners: Vec<(usize, &ToolSpec)> =
                found.filter_map(|(at, service)| Some((at, self.find(service, wanted)?))).collect();
            let (at, tool) = match owners.as_slice() {
                [] => return Err(self.unknown_tool(services, wanted)),
                [one] => *one,
                several => {
                    let names: Vec<_> =
                        several.iter().map(|(at, tool)| ToolPrefix::Auto.of(services[*at].name, tool)).collect();
                    return Err(ToolError::new(format!("Several servers have a tool named {wanted}"))
                        .hint(format!("Use one of: {}.", names.join(" or "))));
                }
            };
            let list = if disabled { &mut shares[at].disable } else { &mut shares[at].enable };
            list.push(tool.name.to_owned());
        }
        for wanted in &self.toolsets {
            let mut met = wanted == "all";
            for (share, service) in shares.iter_mut().zip(services) {
                let set = match wanted.split_once('.') {
                    Some((of, set)) if of == service.name => set,
                    _ if wanted == service.name => "all",
                    _ => wanted,
                };
                if set == "all" || service.tools.iter().flat_map(ToolSpec::toolsets).any(|own| own == set) {
                    share.toolsets.push(set.to_owned());
                    met = true;
                }
            }
            if !met {
                let sets = services
                    .iter()
                    .flat_map(|s| s.tools.iter().flat_map(|t| t.toolsets().map(|set| format!("{}.{set}", s.name))));
                let sets: BTreeSet<String> = sets.chain(services.iter().map(|s| s.name.to_owned())).collect();
                let meant = near(wanted, sets.iter().map(String::as_str)).map(str::to_owned);
                return Err(unknown("tool set", wanted, meant, sets.iter().map(String::as_str)));
            }
        }
        Ok(shares)
    }
}

fn unknown<'a>(what: &str, name: &str, meant: Option<String>, known: impl IntoIterator<Item = &'a str>) -> ToolError {
    let known: Vec<&str> = known.into_iter().collect();
    let known = format!("Known: {}.", known.join(", "));
    ToolError::new(format!("Unknown {what}: {name}")).hint(match meant {
        Some(meant) => format!("Did you mean {meant}?\nHint: {known}"),
        None => known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIT: Service = Service {
        name: "git",
        tools: &[
            ToolSpec::reads("git_log", "", "read", ""),
            ToolSpec::writes("git_add", "", "write", ""),
            ToolSpec::writes("git_push", "", "remote", "").needs("--allow-remote"),
            ToolSpec::reads("git_rare", "", "rare", "").on_request(),
        ],
    };
    const FS: Service = Service {
        name: "fs",
        tools: &[ToolSpec::reads("read_file", "", "read", ""), ToolSpec::writes("query", "", "write", "")],
    };
    const PG: Service = Service { name: "pg", tools: &[ToolSpec::reads("query", "", "read", "")] };
    /// Tools with old names; one of these is what another tool is called now.
    const CALC: Service = Service {
        name: "calc",
        tools: &[
            ToolSpec::reads("get-sum", "", "read", "").aliases(&[Alias::of("add"), Alias::of("plus")]),
            ToolSpec::reads("get-ratio", "", "read", "").aliases(&[Alias::of("calc_divide"), Alias::of("product")]),
            ToolSpec::reads("product", "", "read", ""),
            ToolSpec::writes("calc_clear", "", "write", "").aliases(&[Alias::of("reset")]).needs("--clear"),
        ],
    };
    /// A tool whose name is the old name of one of `CALC`'s.
    const SHOP: Service = Service { name: "shop", tools: &[ToolSpec::writes("add", "", "write", "")] };

    fn choice(enable: &str, disable: &str, sets: &str) -> ToolChoice {
        let list = |text: &str| text.split_terminator(',').map(str::to_owned).collect();
        ToolChoice { enable: list(enable), disable: list(disable), toolsets: list(sets), ..ToolChoice::default() }
    }

    fn names(choice: &ToolChoice, service: &Service) -> Vec<String> {
        choice.choose(service).unwrap().into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn exclude_beats_include_and_read_only_beats_both() {
        for (enable, disable, sets, read_only, remote, expected) in [
            ("", "", "", false, false, "git_log git_add"),
            ("", "", "", false, true, "git_log git_add git_push"),
            ("", "", "all", false, false, "git_log git_add git_rare"),
            ("git_rare", "", "read", false, false, "git_log git_rare"),
            ("git_add", "git_add", "", false, false, ""),
            ("git_add,git_log", "", "", true, false, "git_log"),
            ("git_push", "", "", true, false, ""),
            ("", "", "remote", false, false, ""),
        ] {
            let mut choice = choice(enable, disable, sets);
            choice.read_only = read_only;
            choice.grant("--allow-remote", remote);
            assert_eq!(names(&choice, &GIT).join(" "), expected, "{choice:?}");
        }
    }

    #[test]
    fn each_name_of_a_server_has_its_own_tools_by_default() {
        const BOTH: Service = Service {
            name: "both",
            tools: &[
                ToolSpec::reads("old", "", "original", "").superseded(),
                ToolSpec::reads("kept", "", "original modern", ""),
                ToolSpec::reads("new", "", "compact", "").extra(),
            ],
        };
        for (published, enable, sets, expected) in [
            (false, "", "", "kept new"),
            (true, "", "", "old kept"),
            (false, "", "original", "old kept"),
            (false, "old", "", "old"),
            (false, "", "modern", "kept"),
            (true, "", "compact", "new"),
            (true, "", "all", "old kept new"),
        ] {
            let choice = ToolChoice { published, ..choice(enable, "", sets) };
            assert_eq!(names(&choice, &BOTH).join(" "), expected, "{choice:?}");
        }
    }

    #[test]
    fn exposed_names_are_found_by_every_form() {
        for (prefix, wanted, expected) in [
            (ToolPrefix::None, "git_log", Some("git_log")),
            (ToolPrefix::None, "add", Some("get-sum")),
            (ToolPrefix::Auto, "get-sum", Some("calc_get-sum")),
            (ToolPrefix::Auto, "calc.get-sum", Some("calc_get-sum")),
            (ToolPrefix::Auto, "calc_add", Some("calc_get-sum")),
            (ToolPrefix::Text("my_".to_owned()), "my_get-sum", Some("my_get-sum")),
            (ToolPrefix::Text("my_".to_owned()), "calc_get-sum", Some("my_get-sum")),
            (ToolPrefix::Auto, "zebra", None),
        ] {
            let service = if expected == Some("git_log") { &GIT } else { &CALC };
            let choice = ToolChoice { prefix, ..ToolChoice::default() };
            assert_eq!(choice.exposed(service, wanted).as_deref(), expected, "{wanted}");
        }
    }

    #[test]
    fn unknown_names_and_missing_flags_stop_the_start() {
        for (enable, disable, sets, said) in [
            (
                "git_lgo",
                "",
                "",
                "Unknown tool: git_lgo\nHint: Did you mean git_log?\nHint: Known: git_log, git_add, git_push, git_rare.",
            ),
            ("", "x", "", "Unknown tool: x\nHint: Known: git_log, git_add, git_push, git_rare."),
            (
                "",
                "",
                "remot",
                "Unknown tool set: remot\nHint: Did you mean remote?\nHint: Known: all, rare, read, remote, write.",
            ),
            ("", "", "x", "Unknown tool set: x\nHint: Known: all, rare, read, remote, write."),
            (
                "git_push",
                "",
                "",
                "git_push is enabled but not allowed\nHint: Add --allow-remote, or remove git_push from the enabled tools.",
            ),
        ] {
            assert_eq!(choice(enable, disable, sets).choose(&GIT).unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn old_names_mean_the_tool_of_today_in_both_lists_and_with_every_prefix() {
        for (prefix, word, tool) in [
            ("none", "add", "get-sum"),
            ("none", "plus", "get-sum"),
            ("none", "calc_add", "get-sum"),
            ("none", "calc.add", "get-sum"),
            ("none", "calc.get-sum", "get-sum"),
            ("auto", "add", "get-sum"),
            ("auto", "calc_add", "get-sum"),
            ("x.", "add", "get-sum"),
            ("x.", "x.add", "get-sum"),
            ("x.", "calc_add", "get-sum"),
            ("none", "calc_divide", "get-ratio"),
            // What is a name now wins over what was one.
            ("none", "product", "product"),
            ("auto", "calc_product", "product"),
        ] {
            let prefix: ToolPrefix = prefix.parse().unwrap();
            let exposed = |name: &str| prefix.apply(CALC.name, name);
            let enabled = ToolChoice { prefix: prefix.clone(), ..choice(word, "", "") };
            assert_eq!(names(&enabled, &CALC), [exposed(tool)], "{prefix:?} {word}");
            let disabled = ToolChoice { prefix: prefix.clone(), ..choice("", word, "") };
            let rest: Vec<String> =
                ["get-sum", "get-ratio", "product"].into_iter().filter(|name| *name != tool).map(exposed).collect();
            assert_eq!(names(&disabled, &CALC), rest, "{prefix:?} {word}");
        }
        // Leaving out beats enabling and flags are needed, whichever name was said.
        assert_eq!(names(&choice("add,get-ratio", "get-sum", ""), &CALC), ["get-ratio"]);
        assert_eq!(names(&choice("get-sum,plus", "", ""), &CALC), ["get-sum"]);
        let said = choice("reset", "", "").choose(&CALC).unwrap_err().to_string();
        assert!(said.starts_with("calc_clear is enabled but not allowed\nHint: Add --clear"), "{said}");
    }

    #[test]
    fn an_unknown_name_may_be_near_an_old_one() {
        for (word, meant) in [
            ("calc_dvide", "calc_divide, now named get-ratio"),
            ("rest", "reset, now named calc_clear"),
            ("get_sum", "get-sum"),
            ("prodct", "product"),
            ("calc_get_sum", "calc_get-sum"),
        ] {
            let said = choice(word, "", "").choose(&CALC).unwrap_err().to_string();
            let known = "get-sum, get-ratio, product, calc_clear";
            assert_eq!(said, format!("Unknown tool: {word}\nHint: Did you mean {meant}?\nHint: Known: {known}."));
        }
    }

    #[test]
    fn an_old_name_is_shared_out_like_any_other() {
        let services = [&CALC, &SHOP, &PG];
        let of = |choice: ToolChoice| -> Vec<String> {
            let shares = choice.split(&services).unwrap();
            shares.iter().zip(services).map(|(share, service)| names(share, service).join(" ")).collect()
        };
        assert_eq!(of(choice("plus", "", "")), ["get-sum", "", ""]);
        assert_eq!(of(choice("", "calc_add", "")), ["get-ratio product", "add", "query"]);
        assert_eq!(of(choice("calc.add,shop.add", "", "")), ["get-sum", "add", ""]);
        let said = choice("add", "", "").split(&services).unwrap_err().to_string();
        assert_eq!(said, "Several servers have a tool named add\nHint: Use one of: calc_get-sum or shop_add.");
        let said = choice("", "calc_ad", "").split(&services).unwrap_err().to_string();
        assert!(said.contains("Hint: Did you mean calc_add, now named get-sum?"), "{said}");
    }

    #[test]
    fn long_names_of_the_operators_own_making_are_told_and_longer_ones_than_allowed_refused() {
        const LONG: &str = "trigger-long-running-operation";
        const MANY: Service = Service {
            name: "everything",
            tools: &[ToolSpec::reads("echo", "", "all", ""), ToolSpec::reads(LONG, "", "all", "")],
        };
        let told = |prefix: &str, scope: Option<&str>| {
            let prefix = prefix.parse().unwrap();
            let choice = ToolChoice { prefix, scope: scope.map(str::to_owned), ..ToolChoice::default() };
            choice.longest_of_own_making(&MANY).unwrap()
        };
        // Without a prefix of the operator's own there is nothing to be done about it.
        assert_eq!((told("none", None), told("auto", None)), (None, None));
        assert_eq!(told("ten.chars.", None), None);
        assert_eq!(told("eleven.char", None), Some(format!("eleven.char{LONG}")));
        // Another name for the server, and its prefix made of it.
        assert_eq!(told("auto", Some("everything")), Some(format!("everything_{LONG}")));
        let disabled = ToolChoice { prefix: "eleven.char".parse().unwrap(), ..choice("", LONG, "") };
        assert_eq!(disabled.longest_of_own_making(&MANY), Ok(None));

        const TEN: &str = "0123456789";
        static HUGE: std::sync::LazyLock<Service> = std::sync::LazyLock::new(|| {
            let name: &'static str = Box::leak(TEN.repeat(12).into_boxed_str());
            Service { name: "huge", tools: Box::leak(Box::new([ToolSpec::reads(name, "", "all", "")])) }
        });
        for (prefix, fits) in [("eight_ch", true), ("nine_char", false)] {
            let choice = ToolChoice { prefix: prefix.parse().unwrap(), ..ToolChoice::default() };
            match choice.choose(&HUGE) {
                Ok(_) => assert!(fits, "{prefix}"),
                Err(fault) => assert!(!fits && fault.message().ends_with("has 129 characters"), "{prefix}: {fault}"),
            }
        }
    }

    #[test]
    fn a_server_with_a_name_has_resources_of_its_own() {
        let mut choice = ToolChoice::default();
        assert_eq!(choice.uri("memo://insights"), "memo://insights");
        choice.scope = Some("notes".to_owned());
        assert_eq!(choice.uri("memo://insights"), "memo://notes/insights");
        assert_eq!(choice.uri("sqlite:///{table}/schema"), "sqlite://notes/{table}/schema");
        assert_eq!(choice.uri("sqlite:///schema"), "sqlite://notes/schema");
    }

    #[test]
    fn prefixes_are_never_doubled() {
        for (prefix, service, name, exposed) in [
            ("none", "fs", "read_file", "read_file"),
            ("auto", "fs", "read_file", "fs_read_file"),
            ("auto", "fs", "fs_glob", "fs_glob"),
            ("auto", "fetch", "fetch", "fetch"),
            ("auto", "sentry", "sentry-issue", "sentry-issue"),
            ("auto", "time", "timeless", "time_timeless"),
            ("x.", "fs", "read_file", "x.read_file"),
            ("x.", "fs", "x.y", "x.y"),
        ] {
            assert_eq!(prefix.parse::<ToolPrefix>().unwrap().apply(service, name), exposed);
        }
        let tool = ToolSpec::reads("get_fs_size", "Size", "all", "Tells the size.").own_name();
        let exposed =
            [ToolPrefix::None, ToolPrefix::Auto, ToolPrefix::Text("x.".to_owned())].map(|p| p.of("fs", &tool));
        assert_eq!(exposed, ["get_fs_size", "get_fs_size", "x.get_fs_size"]);
        for bad in ["a b", "ä", "aaaaaaaaaaaaaaaaaaaaa"] {
            assert!(bad.parse::<ToolPrefix>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_choice_for_several_is_shared_out_and_ambiguous_names_are_refused() {
        let services = [&GIT, &FS, &PG];
        let of = |choice: ToolChoice| -> Vec<String> {
            let shares = choice.split(&services).unwrap();
            shares.iter().zip(services).map(|(share, service)| names(share, service).join(" ")).collect()
        };
        assert_eq!(of(choice("", "", "")), ["git_log git_add", "read_file query", "query"]);
        assert_eq!(of(choice("", "git_log", "")), ["git_add", "read_file query", "query"]);
        assert_eq!(of(choice("read_file", "", "")), ["", "read_file", ""]);
        assert_eq!(of(choice("", "", "read")), ["git_log", "read_file", "query"]);
        assert_eq!(of(choice("", "", "git.read,fs")), ["git_log", "read_file query", ""]);
        assert_eq!(of(choice("pg_query", "", "")), ["", "", "query"]);
        let said = |choice: ToolChoice| choice.split(&services).unwrap_err().to_string();
        assert_eq!(
            said(choice("query", "", "")),
            "Several servers have a tool named query\nHint: Use one of: fs_query or pg_query."
        );
        assert!(said(choice("", "nothing", "")).starts_with("Unknown tool: nothing\nHint: Known: git_log,"));
        assert!(
            said(choice("", "", "git.wrong"))
                .starts_with("Unknown tool set: git.wrong\nHint: Did you mean git.write?\nHint: Known: fs, fs.read,")
        );
    }
}
