//! The console and the screenshots of a client as resources.

use crate::BrowserServer;
use crate::session::{CONSOLE, Session, Shared};
use linchpin::types::content::ResourceContents;
use linchpin::{Cx, Error, Handle, NoArgs, Resource, Result};
use linchpin_kit::{ToolChoice, ToolSet};
use std::fmt::Write as _;
use std::sync::Arc;

const PNG: &str = "image/png";

/// Adds the console.
pub(crate) fn add(tools: ToolSet<BrowserServer>, choice: &ToolChoice) -> ToolSet<BrowserServer> {
    let console = Resource::new(choice.uri(CONSOLE))
        .name("Browser console logs")
        .title("Browser console logs")
        .description("What this client's pages wrote to their consoles.")
        .mime_type("text/plain");
    tools.resource(console, console_text)
}

async fn console_text(server: &BrowserServer, cx: &Cx, _: NoArgs) -> Result<ResourceContents> {
    let (session, _) = Session::of(&server.session, cx)?;
    let mut text = String::new();
    for line in session.log.since(0) {
        let _ = writeln!(text, "[{}] {}", line.kind, line.text);
    }
    text.truncate(text.trim_end_matches('\n').len());
    Ok(ResourceContents::text(cx.uri().unwrap_or(CONSOLE), text).with_mime_type("text/plain"))
}

/// The URI of a screenshot. Braces would make it a template.
pub(crate) fn shot_uri(choice: &ToolChoice, name: &str) -> String {
    choice.uri(&format!("screenshot://{}", name.replace('{', "%7B").replace('}', "%7D")))
}

/// Adds the resource of screenshots with this name, which exists for those who took one.
pub(crate) fn list(handle: &Handle, shared: &Arc<Shared>, uri: &str, name: &str) {
    let resource = Resource::new(uri)
        .name(format!("Screenshot: {name}"))
        .title(format!("Screenshot: {name}"))
        .mime_type(PNG)
        .visible_to(|_| false);
    let (shared, name) = (Arc::downgrade(shared), name.to_owned());
    let read = move |cx: &Cx, _: NoArgs| {
        let shot = shared.upgrade().and_then(|shared| shared.shot_of(&name, cx));
        let uri = cx.uri().unwrap_or_default().to_owned();
        async move {
            let shot = shot.ok_or_else(Error::not_found)?;
            Ok::<_, Error>(ResourceContents::blob_base64(uri, &*shot).with_mime_type(PNG))
        }
    };
    // It is there already where another client has one of this name.
    let _ = handle.resources().insert(resource, read);
}
