//! What is said to the operator about tools and failures of servers.

use crate::fail::Failure;
use crate::show::out::note;
use linchpin_kit::{Service, ToolChoice, ToolError, ToolSpec};
use std::collections::BTreeSet;

/// Says on standard error which name of a tool a prefix of the operator's own makes so long that some hosts refuse it: the
/// longest, once for all servers of the process.
pub(super) fn tell_long_name<'a>(all: impl IntoIterator<Item = (&'a Service, &'a ToolChoice)>) -> Result<(), Failure> {
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
pub(super) fn no_tool(title: &str, service: &Service, tools: &ToolChoice) -> Option<String> {
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
pub(super) fn failed(fault: &ToolError) -> Failure {
    let message = fault.message();
    let failure = Failure::usage(message.strip_prefix("Error: ").unwrap_or(message));
    fault
        .advice()
        .into_iter()
        .flat_map(|advice| advice.split("\nHint: "))
        .fold(failure, |failure, hint| failure.hint(hint))
}
