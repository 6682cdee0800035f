//! Calls of several steps that read: files, and the state of a pull request.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use linchpin::types::content::ContentBlock;
use linchpin_kit::{Secret, ToolError, json_len};
use linchpin_rest::{Answer, Args, Ask, Rest, file_text};
use serde_json::{Map, Value, json};

pub(crate) const CONTENTS: &str = "/repos/{owner}/{repo}/contents/{path}";
pub(crate) const PULL: &str = "/repos/{owner}/{repo}/pulls/{pull_number}";

/// Images up to this size are shown.
const IMAGE_BYTES_MAX: usize = 1 << 20;

/// The JSON of a directory, at most.
const DIRECTORY_BYTES_MAX: usize = 60_000;

/// A path in a repository as GitHub writes it; callers also begin it with a slash.
pub(crate) fn in_repository(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

/// A file with its text, or the entries of a directory.
pub(crate) async fn contents(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let path = in_repository(args.text("path"));
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut ask = match path {
        "" => Ask::get("/repos/{owner}/{repo}/contents").fill(&args),
        path => Ask::get(CONTENTS).fill(&args).segments("path", path),
    };
    if !args.text("branch").is_empty() {
        ask = ask.query("ref", args.text("branch"));
    }
    let mut value = rest.send(ask).await?.json()?;
    if value.is_array() {
        shorten(&mut value);
        return Ok(value.into());
    }
    let is_large = value["encoding"] == "none" && value["size"].as_u64().is_some_and(|size| size > 0);
    if let (true, Some(sha)) = (is_large, value["sha"].as_str()) {
        let ask = Ask::get("/repos/{owner}/{repo}/git/blobs/{sha}").fill(&args).segment("sha", sha);
        value["content"] = rest.send(ask).await?.json()?["content"].take();
        value["encoding"] = json!("base64");
    }
    Ok(decoded(value, rest.config().key.as_ref()))
}

/// The file with its text. Bytes that are not text are left out; an image is shown.
fn decoded(mut file: Value, key: Option<&Secret>) -> Answer {
    let Some(encoded) = file["content"].as_str().filter(|_| file["encoding"] == "base64") else { return file.into() };
    let encoded: String = encoded.split_ascii_whitespace().collect();
    let Ok(bytes) = BASE64_STANDARD.decode(encoded) else { return file.into() };
    let Some(members) = file.as_object_mut() else { return file.into() };
    match file_text(bytes, key) {
        Ok((text, hidden)) => {
            if hidden > 0 {
                members.insert("left_out".to_owned(), json!(format!("{hidden} control or invisible characters")));
            }
            members.insert("content".to_owned(), json!(text));
            file.into()
        }
        Err(bytes) => {
            members.remove("content");
            members.insert("binary".to_owned(), json!(true));
            let image = image_type(&bytes).filter(|_| bytes.len() <= IMAGE_BYTES_MAX);
            let answer = Answer::from(file);
            match image {
                Some(kind) => answer.block(ContentBlock::image(&bytes, kind)),
                None => answer,
            }
        }
    }
}

/// The type of an image, by how it begins.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let starts: [(&[u8], &str); 4] =
        [(b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"), (b"RIFF", "image/webp")];
    starts.iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, kind)| *kind)
}

/// Leaves of a large directory what tells its entries apart.
fn shorten(entries: &mut Value) {
    let all = ["type", "name", "size", "sha"];
    for keep in [&all[..], &all[..3], &all[..2]] {
        if json_len(entries) <= DIRECTORY_BYTES_MAX {
            return;
        }
        for members in entries.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            members.retain(|name, _| keep.contains(&name.as_str()));
        }
    }
}

/// The text of a file or a directory: an array of entries is one, as GitHub answers.
pub(crate) fn contents_text(shown: &Value) -> String {
    let shown = shown.get("value").filter(|value| value.is_array()).unwrap_or(shown);
    serde_json::to_string_pretty(shown).unwrap_or_default()
}

/// The combined status of a pull request's newest commit, and its check runs, where most of today's checks report.
pub(crate) async fn status(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let pull = rest.send(Ask::get(PULL).fill(&args)).await?.json()?;
    let Some(sha) = pull["head"]["sha"].as_str() else {
        return Err(ToolError::not_found("The pull request has no commit"));
    };
    let of = |template| Ask::get(template).fill(&args).segment("sha", sha);
    let status = of("/repos/{owner}/{repo}/commits/{sha}/status").query("per_page", "100");
    let mut status = rest.send(status).await?.json()?;
    let runs = of("/repos/{owner}/{repo}/commits/{sha}/check-runs").query("per_page", "100");
    let runs = match rest.send(runs).await {
        Ok(reply) => reply.json()?,
        Err(error) => json!({ "check_runs": format!("not known: {}", error.message()) }),
    };
    if !status.is_object() {
        status = Value::Object(Map::new());
    }
    let mut counts = Map::new();
    for (from, name, left_out) in
        [(&status, "statuses", "statuses_left_out"), (&runs, "check_runs", "check_runs_left_out")]
    {
        let shown = from[name].as_array().map_or(0, Vec::len) as u64;
        let more = from["total_count"].as_u64().unwrap_or(0).saturating_sub(shown);
        if more > 0 {
            counts.insert(left_out.to_owned(), json!(more));
        }
    }
    status["check_runs"] = runs["check_runs"].clone();
    let is_empty = |name: &str| status[name].as_array().is_some_and(Vec::is_empty);
    let says_nothing = is_empty("statuses") && !is_empty("check_runs");
    if let Some(members) = status.as_object_mut() {
        members.extend(counts);
        // Without a status GitHub answers `pending`, whatever the checks are.
        if says_nothing {
            members.remove("state");
        }
    }
    Ok(status.into())
}
