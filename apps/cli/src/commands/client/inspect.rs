//! `linchpin inspect`: shows a server's capabilities and features, and checks it for problems.
//!
//! With `--json`, one object: `target`, `era` (`legacy` or `modern`), `revision`, `versions` (those the server supports),
//! `server`, `capabilities`, `instructions`, `tools`, `resources`, `resourceTemplates`, `prompts`, `skills` (as sent by the
//! server), `tokens` (`tools`, `method`), and `warnings` (`code`, `about`, `message`). Members may be added.

use super::inspector::InspectorArgs;
use super::plain::Plain;
use super::skills;
use crate::client::session::{self, NOT_MCP, Session};
use crate::fail::Failure;
use crate::show::bar::busy;
use crate::show::describe;
use crate::show::lint::{self, Warning};
use crate::show::out::{self, Out, count, indent};
use clap::Args;
use linchpin::client::{Error, Listed, Listing, Refusal};
use linchpin::skills::{RemoteSkill, SkillsExt as _};
use linchpin::types::prompt::Prompt;
use linchpin::types::resource::{Resource, ResourceTemplate};
use linchpin::types::tool::Tool;
use linchpin_core::{Features, exact};
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    plain: Plain,

    #[command(flatten)]
    inspector: InspectorArgs,
}

/// The features of a server.
struct Found {
    tools: Vec<Tool>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
    skills: Vec<RemoteSkill>,
    warnings: Vec<Warning>,
}

pub(crate) fn run(args: InspectArgs) -> Result<(), Failure> {
    let (mut plain, mut inspector) = (args.plain, args.inspector);
    plain.words.extend(inspector.spilled());
    if inspector.is_asked() {
        return inspector.run(&plain);
    }
    session::run_with(&plain.talk, plain.resolve()?, skills::declared, async |session| {
        let found = busy("listing what the server has", look(session)).await?;
        let mut out = Out::new();
        if plain.talk.json {
            out.json(&as_json(session, &found))?;
        } else {
            show(session, &found, &mut out)?;
        }
        Ok(out.flush()?)
    })
}

async fn look(session: &Session) -> Result<Found, Failure> {
    let connection = &session.connection;
    let mut warnings = Vec::new();
    let tools = listed(session, &mut warnings, connection.tools().await).await?;
    let resources = listed(session, &mut warnings, connection.resources().await).await?;
    let prompts = listed(session, &mut warnings, connection.prompts().await).await?;
    // A server without resource templates need not implement the method.
    let templates = match connection.resource_templates().await {
        Ok(templates) => templates,
        Err(e) if e.rpc().is_some() => Listing::default(),
        Err(e) => return Err(session.told(&e)),
    };
    let skills = match connection.has_skills() {
        true => connection.skills().await,
        false => Ok(Listing::default()),
    };
    let skills = skills.or_else(|error| match error {
        linchpin::skills::Error::Request(error) if error.rpc().is_none() => Err(session.told(&error)),
        error => {
            let message = format!("declares skills, but skills/list fails: {error}");
            warnings.push(Warning { code: "capability-broken", about: String::new(), message });
            Ok(Listing::default())
        }
    })?;
    let features = Features::of(connection.revision());
    warnings.extend(lint::tools(&tools.items, &tools.refused, features));
    let uris: Vec<&str> = resources.items.iter().map(|r| r.uri.as_str()).collect();
    warnings.extend(lint::others(&prompts.items, &uris));
    let refused =
        |r: &Refusal| Warning { code: "refused", about: r.name.clone(), message: format!("cannot be used: {}", r.why) };
    warnings.extend(session.garbage().map(|what| Warning {
        code: "not-a-message",
        about: String::new(),
        message: format!("{NOT_MCP}: `{what}`; logs belong on standard error"),
    }));
    let others = [&resources.refused, &prompts.refused, &templates.refused, &skills.refused];
    warnings.extend(others.into_iter().flatten().map(refused));
    Ok(Found {
        tools: tools.items,
        resources: resources.items,
        templates: templates.items,
        prompts: prompts.items,
        skills: skills.items,
        warnings,
    })
}

/// Checks a list result against the declared capabilities.
async fn listed<T: Listed>(
    session: &Session,
    warnings: &mut Vec<Warning>,
    listed: Result<Listing<T>, Error>,
) -> Result<Listing<T>, Failure> {
    let (connection, kind) = (&session.connection, T::MEMBER);
    let mut warn = |code, message: String| warnings.push(Warning { code, about: String::new(), message });
    let capabilities = serde_json::to_value(connection.capabilities()).unwrap_or_default();
    match listed {
        Err(e) => {
            let Some(rpc) = e.rpc() else { return Err(session.told(&e)) };
            warn("capability-broken", format!("declares {kind}, but {} fails: {}", T::METHOD, rpc.message));
            Ok(Listing::default())
        }
        Ok(listing) if capabilities.get(kind).is_none() => {
            // The client skips undeclared features; check whether the server has some anyway.
            if let Ok(answer) = connection.request(T::METHOD, ()).await {
                let answer = exact::read(answer.as_json()).unwrap_or_default();
                let n = answer.get(kind).and_then(Value::as_array).map_or(0, Vec::len);
                if n > 0 {
                    let method = T::METHOD;
                    let message =
                        format!("returns {n} from {method}, but does not declare {kind}: hosts will not list them");
                    warn("capability-undeclared", message);
                }
            }
            Ok(listing)
        }
        Ok(listing) => Ok(listing),
    }
}

fn era(session: &Session) -> &'static str {
    if Features::of(session.connection.revision()).has_sessions { "legacy" } else { "modern" }
}

fn as_json(session: &Session, found: &Found) -> Value {
    let connection = &session.connection;
    json!({
        "target": session.target,
        "era": era(session),
        "revision": connection.revision().as_str(),
        "versions": connection.versions(),
        "server": exact::of(&connection.server()),
        "capabilities": exact::of(&connection.capabilities()),
        "instructions": connection.instructions(),
        "tools": exact::of(&found.tools),
        "resources": exact::of(&found.resources),
        "resourceTemplates": exact::of(&found.templates),
        "prompts": exact::of(&found.prompts),
        "skills": found.skills.iter().map(|skill| exact::of(skill.entry())).collect::<Vec<_>>(),
        "tokens": { "tools": found.tools.iter().map(lint::tokens).sum::<usize>(), "method": lint::TOKENS_METHOD },
        "warnings": found.warnings,
    })
}

fn show(session: &Session, found: &Found, out: &mut Out) -> std::io::Result<()> {
    let (connection, style) = (&session.connection, out.style);
    let server = connection.server();
    let title = server.as_ref().map_or(session.target.as_str(), |s| s.title.as_deref().unwrap_or(&s.name));
    let version = server.as_ref().map_or(String::new(), |s| format!(" {} {}", s.name, s.version));
    out.line(format!("{}{}", style.bold(title), style.dim(&version)))?;
    let others = connection.versions();
    let named = if others.len() > 1 { format!("; supports {}", others.join(", ")) } else { String::new() };
    out.line(format!("  protocol version {} ({}){named}", connection.revision(), era(session)))?;
    let capabilities = serde_json::to_value(connection.capabilities()).unwrap_or_default();
    out.line(format!("  capabilities: {}", can(&capabilities)))?;
    if let Some(instructions) = connection.instructions().filter(|text| !text.trim().is_empty()) {
        out.line(format!("\n{}", style.bold("Instructions")))?;
        out.line(indent(instructions.trim(), 2))?;
    }
    if !found.tools.is_empty() {
        let cost: usize = found.tools.iter().map(lint::tokens).sum();
        let note = style.dim(&format!("  about {cost} tokens ({})", lint::TOKENS_METHOD));
        out.entry(format!("\n{}{note}", style.bold(&count(found.tools.len(), "tool"))))?;
        for tool in &found.tools {
            out.line(indent(&describe::tool(tool, style), 2))?;
        }
    }
    if !found.resources.is_empty() {
        out.line(format!("\n{}", style.bold(&count(found.resources.len(), "resource"))))?;
        for r in &found.resources {
            let text = describe::resource(&r.uri, &r.name, r.mime_type.as_deref(), r.description.as_deref(), style);
            out.line(indent(&text, 2))?;
        }
    }
    if !found.templates.is_empty() {
        out.line(format!("\n{}", style.bold(&count(found.templates.len(), "resource template"))))?;
        for t in &found.templates {
            let text =
                describe::resource(&t.uri_template, &t.name, t.mime_type.as_deref(), t.description.as_deref(), style);
            out.line(indent(&text, 2))?;
        }
    }
    if !found.prompts.is_empty() {
        out.line(format!("\n{}", style.bold(&count(found.prompts.len(), "prompt"))))?;
        for prompt in &found.prompts {
            out.line(indent(&describe::prompt(prompt, style), 2))?;
        }
    }
    if !found.skills.is_empty() {
        out.line(format!("\n{}", style.bold(&count(found.skills.len(), "skill"))))?;
        for skill in &found.skills {
            let about = style.dim(&out::summary(skill.description(), 100));
            out.line(indent(&format!("{}  {about}", skill.uri), 2))?;
        }
    }
    if !found.warnings.is_empty() {
        out.line(format!("\n{}", style.warn(&count(found.warnings.len(), "warning"))))?;
    }
    for warning in &found.warnings {
        let about = if warning.about.is_empty() { "the server".to_owned() } else { warning.about.clone() };
        let code = style.dim(&format!("[{}]", warning.code));
        out.line(format!("  {} {about} {}", code, warning.message))?;
    }
    let summary = summary(found);
    out.line(format!("\n{}", if found.warnings.is_empty() { style.good(&summary) } else { style.warn(&summary) }))
}

/// Returns the summary line.
fn summary(found: &Found) -> String {
    let counts = [
        (found.tools.len(), "tool"),
        (found.resources.len(), "resource"),
        (found.templates.len(), "resource template"),
        (found.prompts.len(), "prompt"),
        (found.skills.len(), "skill"),
    ];
    let counts = counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, one)| count(n, one));
    let warnings =
        if found.warnings.is_empty() { "no warnings".to_owned() } else { count(found.warnings.len(), "warning") };
    counts.chain([warnings]).collect::<Vec<_>>().join(", ")
}

/// Formats capabilities: each name with its enabled members.
fn can(capabilities: &Value) -> String {
    let words: Vec<String> = capabilities
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, settings)| {
            let on: Vec<String> = settings
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(_, value)| **value != Value::Bool(false))
                .map(|(name, _)| name.clone())
                .collect();
            if on.is_empty() { name.clone() } else { format!("{name} ({})", on.join(", ")) }
        })
        .collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
