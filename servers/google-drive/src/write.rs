//! Creating and changing files.

use crate::files::bare;
use linchpin_kit::ToolError;
use linchpin_rest::{Answer, Args, Ask, Rest};
use serde_json::{Value, json};

const FIELDS: &str = "id,name,mimeType,webViewLink";

pub(crate) async fn create(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let mut about = json!({ "name": args.text("name") });
    if let Some(parent) = args.get("parent_id").and_then(Value::as_str) {
        about["parents"] = json!([bare(parent)]);
    }
    let given = args.get("mime_type").and_then(Value::as_str);
    let Some(content) = args.get("content").and_then(Value::as_str) else {
        if let Some(given) = given {
            about["mimeType"] = json!(given);
        }
        return send(rest, Ask::post("/files").json(about)).await;
    };
    let media_type = given.unwrap_or("text/plain");
    if args.is_on("convert") {
        let sheet = matches!(media_type, "text/csv" | "text/tab-separated-values");
        let kind = if sheet { "spreadsheet" } else { "document" };
        about["mimeType"] = json!(format!("application/vnd.google-apps.{kind}"));
    }
    send(rest, with_content(Ask::post("/files"), &about, media_type, content)).await
}

pub(crate) async fn update(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let id = bare(args.text("file_id"));
    let mut about = json!({});
    if let Some(name) = args.get("name") {
        about["name"] = name.clone();
    }
    let given = args.get("mime_type").and_then(Value::as_str);
    let ask = Ask::patch("/files/{fileId}").segment("fileId", id);
    let ask = match args.get("content").and_then(Value::as_str) {
        Some(content) => with_content(ask, &about, given.unwrap_or("text/plain"), content),
        None if about == json!({}) => return Err(ToolError::invalid("Nothing to change: set name or content")),
        None => ask.json(about),
    };
    send(rest, ask).await
}

async fn send(rest: &Rest, ask: Ask) -> Result<Answer, ToolError> {
    Ok(rest.send(ask.query("supportsAllDrives", "true").query("fields", FIELDS)).await?.json()?.into())
}

/// An upload of what is about a file together with its content, so that there is never the one without the other.
fn with_content(ask: Ask, about: &Value, media_type: &str, content: &str) -> Ask {
    let boundary = (0..).map(|n| format!("part-{n}-of-a-file")).find(|one| !content.contains(one.as_str()));
    let boundary = boundary.unwrap_or_default();
    let body = format!(
        "--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{about}\r\n\
         --{boundary}\r\nContent-Type: {media_type}\r\n\r\n{content}\r\n--{boundary}--\r\n"
    );
    ask.at("upload").query("uploadType", "multipart").body(format!("multipart/related; boundary={boundary}"), body)
}

pub(crate) fn is_mime_type(text: &str) -> bool {
    let part = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b".+-_".contains(&b));
    text.len() <= 127 && text.split_once('/').is_some_and(|(kind, rest)| part(kind) && part(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_adds_no_headers() {
        assert!(is_mime_type("application/vnd.google-apps.folder") && is_mime_type("image/svg+xml"));
        assert!(
            !["text", "text/plain\r\nx: y", "text/plain; charset=x", "a/b/c", "/x", "x/"].into_iter().any(is_mime_type)
        );
    }
}
