//! Results as text.

use linchpin_kit::ToolError;
use linchpin_rest::{Rest, one_line};
use serde_json::{Value, json};

/// Adds the URIs of the resources that files are.
pub(crate) async fn with_uris(rest: &Rest, answer: &mut Value) -> Result<(), ToolError> {
    for file in answer.get_mut("files").and_then(Value::as_array_mut).into_iter().flatten() {
        if let (Some(id), true) = (file["id"].as_str().map(str::to_owned), file.is_object()) {
            file["uri"] = json!(rest.config().tools.uri(&format!("gdrive:///{id}")));
        }
    }
    Ok(())
}

/// The lines of the published server, with where each file is.
pub(crate) fn found(told: &Value) -> String {
    let files = told["files"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lines = files.iter().map(|file| {
        let text = |name: &str| one_line(&file[name]);
        format!("{} ({}) — {}", text("name"), text("mimeType"), text("uri"))
    });
    let lines: Vec<String> = lines.collect();
    format!("Found {} files:\n{}", files.len(), lines.join("\n"))
}

/// A part of a file.
pub(crate) fn part(told: &Value) -> String {
    let text = told["text"].as_str().unwrap_or_default();
    match told["next_offset"].as_u64() {
        Some(next) => format!("{text}\n[It goes on: offset {next} of {}.]", told["total"]),
        None => text.to_owned(),
    }
}
