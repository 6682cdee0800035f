//! State, several tools, a resource template, a prompt, an elicitation during a call, and progress. The
//! same functions serve clients of every revision. `cargo run -p linchpin-examples --example notes -- http` serves HTTP.

use linchpin::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

#[derive(Default)]
struct Notes(Mutex<BTreeMap<String, String>>);

#[derive(Deserialize, JsonSchema)]
struct Write {
    /// The note's name.
    name: String,
    /// Its text, in Markdown.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// The note's name.
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Written {
    bytes: usize,
    replaced: bool,
}

/// Confirm
#[derive(Deserialize, JsonSchema)]
struct Sure {
    /// Really delete every note?
    yes: bool,
}

impl Notes {
    async fn write(&self, note: Write) -> Result<Json<Written>> {
        let bytes = note.text.len();
        let replaced = self.all()?.insert(note.name, note.text).is_some();
        Ok(Json(Written { bytes, replaced }))
    }

    async fn clear(&self, cx: &Cx) -> Result<String> {
        let names: Vec<String> = self.all()?.keys().cloned().collect();
        let sure: Sure = cx.elicit("sure", &format!("Delete {} notes?", names.len())).await?;
        if !sure.yes {
            return Err(Error::tool("nothing was deleted: the user said no"));
        }
        for (done, name) in names.iter().enumerate() {
            self.all()?.remove(name);
            cx.progress((done + 1) as f64, Some(names.len() as f64));
        }
        Ok(format!("deleted {} notes", names.len()))
    }

    async fn page(&self, which: Which) -> Result<Markdown> {
        self.all()?.get(&which.name).cloned().map(Markdown).ok_or_else(Error::not_found)
    }

    async fn summarise(&self, which: Which) -> Result<String> {
        let text = self.all()?.get(&which.name).cloned().unwrap_or_default();
        Ok(format!("Summarise this note in one sentence:\n\n{text}"))
    }

    fn all(&self) -> Result<std::sync::MutexGuard<'_, BTreeMap<String, String>>> {
        self.0.lock().map_err(|_| Error::tool("the notes are damaged; restart the server"))
    }
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let server = Server::new("notes", "1.0")
        .state(Notes::default())
        .tool(Tool::new("write_note", "Writes a note.").writes().idempotent(), Notes::write)
        .tool(Tool::new("clear_notes", "Deletes every note. Asks first.").destructive(), Notes::clear)
        .resource(Resource::new("notes://{name}").name("note").mime_type("text/markdown"), Notes::page)
        .prompt(("summarise", "Summarises a note."), Notes::summarise);
    match std::env::args().nth(1).as_deref() {
        Some("http") => server.serve(http("127.0.0.1:8931").with_graceful_shutdown(shutdown_signal())).await,
        _ => server.serve(stdio().with_graceful_shutdown(shutdown_signal())).await,
    }
}
