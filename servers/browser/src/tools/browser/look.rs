//! Tools that look at a page.

use super::answer::{PROVENANCE, Seen, answered, no_dialog, of_snapshot};
use super::files;
use crate::act::{Needs, failed, reference};
use crate::console::{Asked, Line};
use crate::page::{Area, shown, thrown};
use crate::session::Session;
use crate::snapshot::{Want, quoted};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linchpin::types::content::{ContentBlock, ResourceContents};
use linchpin_kit::{Paging, TEXT_BYTES_MAX, ToolError, ToolOutput, clip, from_outside, redact_urls, without_hidden};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Most lines of a console, or requests, in a result.
const LINES_MAX: usize = 200;
/// Most bytes of such a line.
const LINE_BYTES_MAX: usize = 1_000;
/// Largest picture of a whole page, in CSS pixels.
const SIDE_MAX: f64 = 16_384.0;
/// Largest PDF document that a result holds.
const PDF_BYTES_MAX: usize = 8 << 20;
/// How often a page is looked at while it is waited for.
const LOOK_TIME: Duration = Duration::from_millis(100);

/// Arguments of `browser_snapshot`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Snapshot {
    /// Only this element: a ref of the last snapshot (e12), or a CSS selector.
    #[serde(alias = "ref")]
    target: Option<String>,
    /// Levels to show.
    #[schemars(range(min = 1))]
    depth: Option<usize>,
    /// Only what changed since the last snapshot.
    #[serde(default)]
    changes: bool,
    /// next_cursor
    cursor: Option<String>,
}

pub(crate) async fn snapshot(session: &Arc<Session>, args: Snapshot) -> Result<ToolOutput<Seen>, ToolError> {
    session.context().await?.tabs().hold_dialogs(true);
    session
        .with_page(|page| async move {
            let tab = session.known.of(&page);
            let mut tab = tab.lock().await;
            if let Some(cursor) = &args.cursor {
                let part = tab.snapshots.more(cursor)?;
                return Ok(of_snapshot(&page, &tab, part, Vec::new()));
            }
            no_dialog(&page)?;
            tab.prepare(&page).await?;
            if args.changes {
                return super::answer::changed(&page, &mut tab, Vec::new()).await;
            }
            let number = args.target.as_deref().and_then(reference);
            if let (Some(target), None) = (&args.target, number) {
                // A selector is of the page as it is now.
                let found = answered_tool(&page, tab.find(&page, target)).await?;
                answered_tool(&page, tab.update(&page)).await?;
                let number = tab.snapshots.reference_of(&found.frame, found.element.backend).ok_or_else(|| {
                    ToolError::not_found("The element is not in the snapshot")
                        .hint("It has no meaning of its own, or is hidden: take the snapshot of an element around it.")
                })?;
                let whole = tab.snapshots.whole(Want { only: Some(number), depth: args.depth })?;
                return Ok(of_snapshot(&page, &tab, whole, Vec::new()));
            }
            answered_tool(&page, tab.update(&page)).await?;
            let whole = tab.snapshots.whole(Want { only: number, depth: args.depth })?;
            Ok(of_snapshot(&page, &tab, whole, Vec::new()))
        })
        .await
}

/// The same as `answered`, for work that makes errors of its own.
async fn answered_tool<T>(
    page: &crate::page::Page,
    work: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    match crate::act::unless_dialog(page, work).await {
        Ok(done) => done,
        Err(dialog) => Err(crate::act::dialog_open().detail(super::answer::dialog_text(&dialog))),
    }
}

/// Arguments of `browser_take_screenshot`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Screenshot {
    /// Only this element: a ref of the snapshot (e12), or a CSS selector.
    #[serde(alias = "ref")]
    target: Option<String>,
    #[serde(default)]
    r#type: ImageType,
    #[serde(default)]
    full_page: bool,
    /// Also saves it in the download directory.
    filename: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum ImageType {
    #[default]
    Png,
    Jpeg,
}

/// What was made.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Made {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

pub(crate) async fn screenshot(session: &Arc<Session>, args: Screenshot) -> Result<ToolOutput<Made>, ToolError> {
    if args.full_page && args.target.is_some() {
        return Err(ToolError::invalid("fullPage and target exclude each other"));
    }
    let (format, mime) = match args.r#type {
        ImageType::Png => ("png", "image/png"),
        ImageType::Jpeg => ("jpeg", "image/jpeg"),
    };
    let folder = folder(session, args.filename.as_deref())?;
    session.context().await?.tabs().hold_dialogs(true);
    let (url, data) = session
        .with_page(|page| async move {
            no_dialog(&page)?;
            let metrics = answered(&page, page.cdp().call("Page.getLayoutMetrics", json!({}))).await?;
            let part = |of: &str, name: &str| metrics[of][name].as_f64().unwrap_or(0.0);
            let area = match &args.target {
                Some(target) => {
                    let tab = session.known.of(&page);
                    let mut tab = tab.lock().await;
                    let found = answered_tool(&page, tab.find(&page, target)).await?;
                    let place = answered_tool(&page, tab.ready(&found, Needs::SEEN)).await?;
                    let [x, y, width, height] = place.area;
                    Some(Area { x, y, width, height })
                }
                None if args.full_page => {
                    let (x, y) = (-part("cssVisualViewport", "pageX"), -part("cssVisualViewport", "pageY"));
                    let side = |name| part("cssContentSize", name).clamp(1.0, SIDE_MAX);
                    Some(Area { x, y, width: side("width"), height: side("height") })
                }
                None => None,
            };
            // Scrolling to the element has moved the viewport.
            let metrics = answered(&page, page.cdp().call("Page.getLayoutMetrics", json!({}))).await?;
            let scrolled = |name: &str| metrics["cssVisualViewport"][name].as_f64().unwrap_or(0.0);
            let mut params = json!({ "format": format });
            if let Some(area) = area {
                params["clip"] = json!({
                    "x": area.x + scrolled("pageX"), "y": area.y + scrolled("pageY"),
                    "width": area.width.clamp(1.0, SIDE_MAX), "height": area.height.clamp(1.0, SIDE_MAX), "scale": 1,
                });
                params["captureBeyondViewport"] = json!(true);
            }
            let mut made = answered(&page, page.cdp().call("Page.captureScreenshot", params)).await?;
            match made["data"].take() {
                Value::String(data) if !data.is_empty() => Ok((shown(&page.url()), data)),
                _ => Err(ToolError::new("The browser returned no image")),
            }
        })
        .await?;
    let file = save(folder, args.filename.as_deref(), &data)?;
    let text = ContentBlock::text(match &file {
        Some(file) => format!("Screenshot of {url}, saved as {file}"),
        None => format!("Screenshot of {url}"),
    });
    let picture = from_outside(ContentBlock::image_base64(data, mime));
    Ok(ToolOutput::blocks(vec![text, picture], Made { url, file }))
}

/// Where files are saved, if one is to be.
fn folder(session: &Session, filename: Option<&str>) -> Result<Option<std::path::PathBuf>, ToolError> {
    match (&session.shared.config.download_dir, filename) {
        (_, None) => Ok(None),
        (Some(folder), Some(_)) => Ok(Some(folder.clone())),
        (None, Some(_)) => Err(ToolError::denied("Files are not saved: there is no download directory")
            .hint("Omit filename; the operator can set --download-dir.")),
    }
}

fn save(folder: Option<std::path::PathBuf>, name: Option<&str>, data: &str) -> Result<Option<String>, ToolError> {
    let (Some(folder), Some(name)) = (folder, name) else { return Ok(None) };
    let bytes = STANDARD.decode(data).map_err(|_| ToolError::new("The browser's answer was not understood"))?;
    Ok(Some(files::save(&folder, name, &bytes)?.display().to_string()))
}

/// Arguments of `browser_pdf_save`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PdfSave {
    /// Saves it in the download directory, instead of returning it.
    filename: Option<String>,
}

pub(crate) async fn pdf_save(session: &Arc<Session>, args: PdfSave) -> Result<ToolOutput<Made>, ToolError> {
    let folder = folder(session, args.filename.as_deref())?;
    session.context().await?.tabs().hold_dialogs(true);
    let (url, data) = session
        .with_page(|page| async move {
            no_dialog(&page)?;
            let params = json!({ "printBackground": true });
            let mut made = answered(&page, page.cdp().call("Page.printToPDF", params)).await?;
            match made["data"].take() {
                Value::String(data) if !data.is_empty() => Ok((shown(&page.url()), data)),
                _ => Err(ToolError::new("The browser returned no PDF document")),
            }
        })
        .await?;
    if let Some(file) = save(folder, args.filename.as_deref(), &data)? {
        return Ok(ToolOutput::ours(format!("Saved {url} as {file}"), Made { url, file: Some(file) }));
    }
    if data.len() > PDF_BYTES_MAX {
        return Err(ToolError::new("The PDF document is too large for a result")
            .hint("Pass a filename, if the operator has set --download-dir."));
    }
    let text = ContentBlock::text(format!("PDF document of {url}"));
    let uri = "browser://page.pdf";
    let document = from_outside(ContentBlock::resource(
        ResourceContents::blob_base64(uri, data).with_mime_type("application/pdf"),
    ));
    Ok(ToolOutput::blocks(vec![text, document], Made { url, file: None }))
}

/// Arguments of `browser_console_messages`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ConsoleMessages {
    /// The least severe to return.
    #[serde(default)]
    level: Level,
    /// next_cursor
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Level {
    Error,
    Warning,
    #[default]
    Info,
    Debug,
}

fn level_of(kind: &str) -> Level {
    match kind {
        "error" | "assert" => Level::Error,
        "warn" | "dialog" => Level::Warning,
        "debug" | "trace" => Level::Debug,
        _ => Level::Info,
    }
}

/// Lines, the oldest first.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Lines {
    lines: Vec<String>,
    #[serde(flatten)]
    paging: Paging,
}

fn listed(lines: &[String], cursor: Option<&str>, none: &str) -> Result<ToolOutput<Lines>, ToolError> {
    // What is asked for first is what happened last.
    let newest: Vec<&String> = lines.iter().rev().collect();
    let (page, paging) = Paging::of(&newest, cursor, LINES_MAX)?;
    let lines: Vec<String> = page.iter().rev().map(|line| (*line).clone()).collect();
    let notice = paging.next_cursor.as_ref().map(|cursor| format!("Earlier ones: cursor={cursor:?}. {PROVENANCE}"));
    let text = if lines.is_empty() { none.to_owned() } else { lines.join("\n") };
    Ok(ToolOutput::outside(text, Lines { lines, paging }).notice(notice))
}

pub(crate) fn console_messages(session: &Session, args: &ConsoleMessages) -> Result<ToolOutput<Lines>, ToolError> {
    let shown = |line: &Line| {
        let text = without_hidden(&line.text);
        format!("[{}] {}", line.kind, quoted(clip(&text.replace('\n', " ⏎ "), LINE_BYTES_MAX).text))
    };
    let lines: Vec<String> =
        session.log.since(0).iter().filter(|line| level_of(&line.kind) <= args.level).map(shown).collect();
    listed(&lines, args.cursor.as_deref(), "No messages.")
}

/// Arguments of `browser_network_requests`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NetworkRequests {
    /// Also images, fonts, scripts and the like that succeeded.
    #[serde(default, rename = "static")]
    with_static: bool,
    /// A regular expression for URLs.
    filter: Option<String>,
    /// next_cursor
    cursor: Option<String>,
}

pub(crate) fn network_requests(session: &Session, args: &NetworkRequests) -> Result<ToolOutput<Lines>, ToolError> {
    let filter = match &args.filter {
        None => None,
        Some(filter) => Some(
            regex::RegexBuilder::new(filter)
                .size_limit(1 << 20)
                .build()
                .map_err(|e| ToolError::invalid("The filter is not a regular expression").detail(e.to_string()))?,
        ),
    };
    let wanted = |asked: &&Asked| {
        let is_static =
            matches!(asked.kind.as_str(), "Image" | "Font" | "Stylesheet" | "Script" | "Media" | "Manifest");
        let fine = asked.failed.is_none() && asked.status.is_none_or(|status| status < 400);
        (args.with_static || !is_static || !fine)
            && filter.as_ref().is_none_or(|filter: &Regex| filter.is_match(&asked.url))
    };
    let shown = |asked: &Asked| {
        let url = redact_urls(&without_hidden(&asked.url));
        let mut line =
            format!("[{}] {} {}", asked.method, asked.kind.to_lowercase(), quoted(clip(&url, LINE_BYTES_MAX).text));
        match (&asked.failed, asked.status) {
            (Some(why), _) => _ = write!(line, " failed: {}", without_hidden(why)),
            (None, Some(status)) => _ = write!(line, " {status}"),
            (None, None) => line.push_str(" pending"),
        }
        line
    };
    let lines: Vec<String> = session.log.requests().iter().filter(wanted).map(shown).collect();
    listed(&lines, args.cursor.as_deref(), "No requests.")
}

/// Arguments of `browser_evaluate`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Evaluate {
    /// () => { … }, or (element) => { … } with a target
    function: String,
    /// A ref of the snapshot (e12), or a CSS selector.
    #[serde(alias = "ref")]
    target: Option<String>,
}

/// The result of a script.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Evaluated {
    /// As JSON.
    result: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

pub(crate) async fn evaluate(session: &Arc<Session>, args: Evaluate) -> Result<ToolOutput<Evaluated>, ToolError> {
    session.context().await?.tabs().hold_dialogs(true);
    let answer = session
        .with_page(|page| async move {
            no_dialog(&page)?;
            let limit = Duration::from_secs(24 * 3_600);
            let Some(target) = &args.target else {
                // An expression is evaluated as well: many write one.
                let script = format!(
                    "(() => {{ const it = ({}\n); return typeof it === 'function' ? it() : it; }})()",
                    args.function.trim().trim_end_matches(';')
                );
                return answered_tool(&page, page.evaluate(&script)).await;
            };
            let tab = session.known.of(&page);
            let mut tab = tab.lock().await;
            let found = answered_tool(&page, tab.find(&page, target)).await?;
            let (cdp, element) = answered_tool(&page, tab.in_page(&page, &found)).await?;
            let params = json!({
                "functionDeclaration": args.function,
                "objectId": element.object(),
                "arguments": [{ "objectId": element.object() }],
                "returnByValue": true, "awaitPromise": true, "userGesture": true,
            });
            answered(&page, cdp.call_within("Runtime.callFunctionOn", params, limit)).await
        })
        .await?;
    if let Some(why) = thrown(&answer) {
        return Err(ToolError::new("The script failed")
            .hint("Pass a function, such as () => document.title.")
            .detail(why));
    }
    let result = &answer["result"];
    let json = match (result.get("value"), result["unserializableValue"].as_str()) {
        (Some(value), _) => value.to_string(),
        (None, Some(number)) => number.to_owned(),
        (None, None) => "undefined".to_owned(),
    };
    let cut = clip(&json, TEXT_BYTES_MAX / 2);
    let truncated = cut.left_out > 0;
    let notice = truncated.then(|| "The result was cut: let the script return less.".to_owned());
    let value = Evaluated { result: cut.text.to_owned(), truncated };
    Ok(ToolOutput::outside(cut.text, value).notice(notice))
}

/// Arguments of `browser_wait_for`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WaitFor {
    /// Seconds.
    #[schemars(range(min = 0, max = 3600))]
    time: Option<f64>,
    /// Until it appears.
    text: Option<String>,
    /// Until it is gone.
    text_gone: Option<String>,
}

/// Whether a document shows a text, frames of its own site included.
const SHOWS: &str = "(text) => {
    const shows = (root) => {
        if (!root || !root.body) return false;
        if (root.body.innerText.includes(text)) return true;
        for (const frame of root.querySelectorAll('iframe, frame')) {
            try { if (shows(frame.contentDocument)) return true; } catch {}
        }
        return false;
    };
    return shows(document);
}";

pub(crate) async fn wait_for(session: &Arc<Session>, args: WaitFor) -> Result<ToolOutput<Seen>, ToolError> {
    if args.time.is_none() && args.text.is_none() && args.text_gone.is_none() {
        return Err(ToolError::invalid("One of time, text and textGone is needed"));
    }
    let longest = Duration::from_millis(session.shared.config.timeout_ms).mul_f64(0.9);
    let wait = match args.time {
        None => Duration::ZERO,
        Some(time) => Duration::try_from_secs_f64(time).map_err(|_| ToolError::invalid("time must be at least 0"))?,
    };
    if wait > longest {
        return Err(ToolError::invalid(format!("A call waits {} s at most", longest.as_secs()))
            .hint("Wait for a text, or call it again."));
    }
    session.context().await?.tabs().hold_dialogs(true);
    session
        .with_page(|page| async move {
            no_dialog(&page)?;
            let tab = session.known.of(&page);
            let mut tab = tab.lock().await;
            let work = async {
                tokio::time::sleep(wait).await;
                let end = tokio::time::Instant::now() + (longest - wait);
                for (text, there) in [(&args.text, true), (&args.text_gone, false)] {
                    let Some(text) = text else { continue };
                    while shows(&page, text).await? != there {
                        if tokio::time::Instant::now() >= end {
                            let what = if there { "did not appear" } else { "did not go away" };
                            return Err(ToolError::new(format!("The text {what} in {} s", longest.as_secs()))
                                .kind(linchpin_kit::ErrorKind::Timeout)
                                .hint("Take browser_snapshot to see what is there.")
                                .detail(text));
                        }
                        tokio::time::sleep(LOOK_TIME).await;
                    }
                }
                Ok(())
            };
            match crate::act::unless_dialog(&page, work).await {
                Ok(done) => done?,
                Err(dialog) => return Ok(super::answer::of_dialog(&page, &dialog, "Waited.".to_owned())),
            }
            super::answer::changed(&page, &mut tab, vec!["Waited.".to_owned()]).await
        })
        .await
}

/// Whether a page shows a text.
async fn shows(page: &crate::page::Page, text: &str) -> Result<bool, ToolError> {
    let script = format!("({SHOWS})({})", json!(text));
    let params = json!({ "expression": script, "returnByValue": true });
    for (index, session) in std::iter::once(page.cdp().clone()).chain(page.frames()).enumerate() {
        match session.call("Runtime.evaluate", params.clone()).await {
            Ok(answer) if answer["result"]["value"] == true => return Ok(true),
            // A document may be on its way, a frame gone.
            Ok(_) | Err(crate::cdp::CdpError::Refused(_)) => {}
            Err(e) if index == 0 => return Err(failed(&e)),
            Err(_) => {}
        }
    }
    Ok(false)
}
