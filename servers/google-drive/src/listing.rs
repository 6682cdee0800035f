//! The list of resources: the files of the drive, a page at a time, asked for when a client asks.

use linchpin::{Call, Next, Reply};
use linchpin_kit::ToolError;
use linchpin_rest::{Ask, Rest};
use serde_json::{Value, json};

/// Before the cursors of Drive, which are not cursors of this process.
const MARK: &str = "gdrive.";

/// How many files are on a page, as at the published server.
const PAGE: &str = "10";

/// Adds the files after the last page of the process' other resources; `alone` says that there are none.
pub(crate) async fn layer(rest: Rest, alone: bool, call: Call, next: Next) -> Reply {
    if call.method() != "resources/list" {
        return next.run(call).await;
    }
    let params: Value = serde_json::from_str(call.params()).unwrap_or_default();
    // Cursors differ from drive to drive of one process.
    let mark = rest.config().tools.uri("gdrive:///").replacen("gdrive://", MARK, 1);
    if let Some(token) = params["cursor"].as_str().and_then(|cursor| cursor.strip_prefix(&mark)) {
        return match page(&rest, Some(token), &mark).await {
            Ok((files, more)) => {
                let mut list = json!({ "resources": files, "ttlMs": 0, "cacheScope": "private" });
                if let Some(more) = more {
                    list["nextCursor"] = json!(more);
                }
                call.respond(list)
            }
            Err(error) => refuse(call, &error),
        };
    }
    let (files, more) = match page(&rest, None, &mark).await {
        Ok(page) => page,
        Err(error) if alone => return refuse(call, &error),
        // The resources of the other servers are there.
        Err(_) => return next.run(call).await,
    };
    let mut reply = next.run(call).await;
    reply.edit_exactly(|list| {
        let is_last = !list.contains_key("nextCursor");
        if let Some(known) = list.get_mut("resources").and_then(Value::as_array_mut).filter(|_| is_last) {
            known.extend(files);
            if let Some(more) = more {
                list.insert("nextCursor".to_owned(), json!(more));
            }
        }
    });
    reply
}

fn refuse(call: Call, error: &ToolError) -> Reply {
    call.refuse_protocol(linchpin::types::error::code::INTERNAL_ERROR, &error.to_string())
}

async fn page(rest: &Rest, token: Option<&str>, mark: &str) -> Result<(Vec<Value>, Option<String>), ToolError> {
    let mut ask = Ask::get("/files")
        .query("pageSize", PAGE)
        .query("q", "trashed = false")
        .query("fields", "nextPageToken,files(id,name,mimeType)")
        .query("supportsAllDrives", "true")
        .query("includeItemsFromAllDrives", "true");
    if let Some(token) = token {
        ask = ask.query("pageToken", token);
    }
    let answer = rest.send(ask).await?.json()?;
    let files = answer["files"].as_array().into_iter().flatten().filter_map(|file| {
        let uri = rest.config().tools.uri(&format!("gdrive:///{}", file["id"].as_str()?));
        Some(json!({ "uri": uri, "name": file["name"].as_str()?, "mimeType": file["mimeType"].as_str()? }))
    });
    let more = answer["nextPageToken"].as_str().filter(|token| !token.is_empty()).map(|token| format!("{mark}{token}"));
    Ok((files.collect(), more))
}
