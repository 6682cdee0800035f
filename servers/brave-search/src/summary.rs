//! A summary of a search: it is written while one waits.

use crate::SUMMARIZER;
use linchpin_kit::{ErrorKind, ToolError};
use linchpin_rest::{Answer, Args, Ask, Rest, one_line, tidy_markup};
use serde_json::{Value, json};
use std::time::Duration;

/// How often it is asked for, and how long is waited between; requests also wait for their turn.
const TRIES: usize = 4;
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) async fn wait(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let args = with_own_key(args);
    for tried in 0..TRIES {
        if tried > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let found = rest.send(Ask::of(&SUMMARIZER, &args)).await?.json()?;
        match found["status"].as_str() {
            Some("complete") => return written(&found),
            Some("failed") => break,
            _ => {}
        }
    }
    Err(none().kind(ErrorKind::Timeout).hint("Search again with brave_web_search and summary=true for another key."))
}

/// Takes markup out of results, but not out of the key of a summary, which repeats the query. A key that would not survive as
/// a line of text becomes a JSON string.
pub(crate) fn tidy_but_key(found: &mut Value) {
    let key = found.pointer_mut("/summarizer/key").map(Value::take);
    tidy_markup(found);
    if let (Some(key), Some(slot)) = (key, found.pointer_mut("/summarizer/key")) {
        *slot = match key.as_str() {
            Some(text) if text.starts_with('"') || one_line(&key) != text => json!(json!(text).to_string()),
            _ => key,
        };
    }
}

/// The key as Brave wrote it.
fn with_own_key(mut args: Args) -> Args {
    let key = args.text("key");
    if let Some(key) = key.starts_with('"').then(|| serde_json::from_str::<String>(key).ok()).flatten() {
        args.set("key", key);
    }
    args
}

fn none() -> ToolError {
    ToolError::new("Unable to retrieve a Summarizer summary.")
}

fn written(found: &Value) -> Result<Answer, ToolError> {
    let parts = found["summary"].as_array().into_iter().flatten().map(|part| match part["type"].as_str() {
        Some("token") => part["data"].as_str().unwrap_or_default().to_owned(),
        Some("inline_reference") => {
            part.pointer("/data/url").and_then(Value::as_str).map(|url| format!(" ({url})")).unwrap_or_default()
        }
        _ => String::new(),
    });
    let text: String = parts.collect();
    if text.is_empty() {
        return Err(none().kind(ErrorKind::NotFound));
    }
    let mut answer = json!({ "summary": text });
    for (name, path) in [("title", "/title"), ("followups", "/followups"), ("entities", "/entities_infos")] {
        if let Some(value) = found.pointer(path) {
            answer[name] = value.clone();
        }
    }
    Ok(answer.into())
}
