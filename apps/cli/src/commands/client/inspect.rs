//! `linchpin inspect`: what a server is and has, and what is wrong with it.
//!
//! With `--json`, one object: `target`, `era` (`legacy` or `modern`), `revision`, `versions` (those the server named),
//! `server`, `capabilities`, `instructions`, `tools`, `resources`, `resourceTemplates`, `prompts` (as on the wire),
//! `tokens` (`tools`, `method`), and `warnings` (`code`, `about`, `message`). Members may be added.

use super::Plain;
use crate::describe;
use crate::fail::Failure;
use crate::inspector::InspectorArgs;
use crate::lint::{self, Warning};
use crate::session::{self, Session};
use crate::shown::{Out, count, indent};
use clap::Args;
use linchpin::client::{Error, Listed, Listing, Refusal};
use linchpin::types::prompt::Prompt;
use linchpin::types::resource::{Resource, ResourceTemplate};
use linchpin::types::tool::Tool;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    plain: Plain,

    #[command(flatten)]
    inspector: InspectorArgs,
}

/// All that was found.
struct Found {
    tools: Vec<Tool>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
    warnings: Vec<Warning>,
}

pub(crate) fn run(args: InspectArgs) -> Result<(), Failure> {
    let (mut plain, mut inspector) = (args.plain, args.inspector);
    plain.words.extend(inspector.spilled());
    if inspector.is_asked() {
        return inspector.run(&plain);
    }
    session::run(&plain.talk, plain.resolve()?, async |session| {
        let found = look(session).await?;
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
    // A server without templates need not have the method.
    let templates = match connection.resource_templates().await {
        Ok(templates) => templates,
        Err(Error::Refused(_)) => Listing { items: Vec::new(), refused: Vec::new() },
        Err(e) => return Err(session.told(&e)),
    };
    warnings.extend(lint::tools(&tools.items, &tools.refused));
    let uris: Vec<&str> = resources.items.iter().map(|r| r.uri.as_str()).collect();
    warnings.extend(lint::others(&prompts.items, &uris));
    let refused =
        |r: &Refusal| Warning { code: "refused", about: r.name.clone(), message: format!("cannot be used: {}", r.why) };
    warnings.extend([&resources.refused, &prompts.refused, &templates.refused].into_iter().flatten().map(refused));
    Ok(Found {
        tools: tools.items,
        resources: resources.items,
        templates: templates.items,
        prompts: prompts.items,
        warnings,
    })
}

/// A list, held against what the server says it can do.
async fn listed<T: Listed>(
    session: &Session,
    warnings: &mut Vec<Warning>,
    listed: Result<Listing<T>, Error>,
) -> Result<Listing<T>, Failure> {
    let (connection, kind) = (&session.connection, T::MEMBER);
    let mut warn = |code, message: String| warnings.push(Warning { code, about: String::new(), message });
    let capabilities = serde_json::to_value(connection.capabilities()).unwrap_or_default();
    match listed {
        Err(Error::Refused(why)) => {
            warn("capability-broken", format!("declares {kind}, but {} does not work: {}", T::METHOD, why.message));
            Ok(Listing { items: Vec::new(), refused: Vec::new() })
        }
        Err(e) => Err(session.told(&e)),
        Ok(listing) if capabilities.get(kind).is_none() => {
            // Nothing was asked, because nothing is declared. Is there something all the same?
            if let Ok(answer) = connection.request(T::METHOD, ()).await {
                let answer: Value = serde_json::from_str(answer.as_json()).unwrap_or_default();
                let n = answer.get(kind).and_then(Value::as_array).map_or(0, Vec::len);
                if n > 0 {
                    let method = T::METHOD;
                    let message = format!("answers {method} with {n} found, but does not declare {kind}: no host asks");
                    warn("capability-undeclared", message);
                }
            }
            Ok(listing)
        }
        Ok(listing) => Ok(listing),
    }
}

fn era(session: &Session) -> &'static str {
    if session.connection.stateless() { "modern" } else { "legacy" }
}

fn as_json(session: &Session, found: &Found) -> Value {
    let connection = &session.connection;
    json!({
        "target": session.target,
        "era": era(session),
        "revision": connection.revision().as_str(),
        "versions": connection.versions(),
        "server": connection.server(),
        "capabilities": connection.capabilities(),
        "instructions": connection.instructions(),
        "tools": found.tools,
        "resources": found.resources,
        "resourceTemplates": found.templates,
        "prompts": found.prompts,
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
    let named = if others.len() > 1 { format!(", and offers {}", others.join(", ")) } else { String::new() };
    out.line(format!("  speaks {} ({}){named}", connection.revision(), era(session)))?;
    let capabilities = serde_json::to_value(connection.capabilities()).unwrap_or_default();
    out.line(format!("  can {}", can(&capabilities)))?;
    if let Some(instructions) = connection.instructions().filter(|text| !text.trim().is_empty()) {
        out.line(format!("\n{}", style.bold("Instructions")))?;
        out.line(indent(instructions.trim(), 2))?;
    }
    if !found.tools.is_empty() {
        let cost: usize = found.tools.iter().map(lint::tokens).sum();
        let note = style.dim(&format!("  about {cost} tokens ({})", lint::TOKENS_METHOD));
        out.line(format!("\n{}{note}", style.bold(&count(found.tools.len(), "tool"))))?;
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
    if found.warnings.is_empty() {
        return out.line(format!("\n{}", style.good("No warnings")));
    }
    out.line(format!("\n{}", style.warn(&count(found.warnings.len(), "warning"))))?;
    for warning in &found.warnings {
        let about = if warning.about.is_empty() { "the server".to_owned() } else { warning.about.clone() };
        let code = style.dim(&format!("[{}]", warning.code));
        out.line(format!("  {} {about} {}", code, warning.message))?;
    }
    Ok(())
}

/// Capabilities in words: each by name, with what is switched on in it.
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
    if words.is_empty() { "nothing that it declares".to_owned() } else { words.join(", ") }
}
