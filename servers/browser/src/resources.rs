//! The console of a client as a resource.

use crate::BrowserServer;
use crate::session::{CONSOLE, Session};
use linchpin::types::content::ResourceContents;
use linchpin::{Cx, NoArgs, Resource, Result};
use linchpin_kit::{ToolChoice, ToolSet};
use std::fmt::Write as _;

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
