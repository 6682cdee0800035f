//! `linchpin resources`: lists resources and resource templates.

use super::plain::Plain;
use super::refusals::refused;
use crate::client::session;
use crate::fail::Failure;
use crate::show::bar::busy;
use crate::show::describe;
use crate::show::out::Out;
use linchpin::types::error::code::METHOD_NOT_FOUND;
use linchpin_core::exact;
use serde_json::json;

pub(crate) fn run(args: Plain) -> Result<(), Failure> {
    session::run(&args.talk, args.resolve()?, async |session| {
        let resources =
            busy("listing resources", session.connection.resources()).await.map_err(|e| session.told(&e))?;
        let templates = busy("listing resource templates", session.connection.resource_templates()).await;
        let templates = match templates {
            Ok(templates) => {
                refused("resource template", &templates.refused);
                templates.items
            }
            // Servers without resource templates need not implement the method.
            Err(error) if error.rpc().is_some_and(|error| error.code == METHOD_NOT_FOUND) => Vec::new(),
            Err(error) => return Err(session.told(&error)),
        };
        let mut out = Out::new();
        if args.talk.json {
            out.json(&json!({ "resources": exact::of(&resources.items), "resourceTemplates": exact::of(&templates) }))?;
        } else {
            let style = out.style;
            for r in resources.iter() {
                let (mime, about) = (r.mime_type.as_deref(), r.description.as_deref());
                out.line(describe::resource(&r.uri, &r.name, mime, about, style))?;
            }
            for t in &templates {
                let (mime, about) = (t.mime_type.as_deref(), t.description.as_deref());
                out.line(describe::resource(&t.uri_template, &t.name, mime, about, style))?;
            }
            out.summary(&[(resources.len(), "resource"), (templates.len(), "resource template")])?;
        }
        out.flush()?;
        refused("resource", &resources.refused);
        Ok(())
    })
}
