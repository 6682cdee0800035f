//! The tools of the published server.

use crate::BrowserServer;
use crate::config::SIDE_MAX;
use crate::page::{Area, Element, Page, shown, thrown};
use crate::session::Session;
use linchpin::types::content::ContentBlock;
use linchpin::{Audience, Cx, Result};
use linchpin_kit::{
    ErrorKind, TEXT_BYTES_MAX, ToolError, ToolOutput, ToolSet, ToolSpec, clip, from_outside, without_hidden,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const NAVIGATE: ToolSpec =
    ToolSpec::writes("puppeteer_navigate", "Navigate", "puppeteer", "Navigate to a URL").outside();
const SCREENSHOT: ToolSpec = ToolSpec {
    idempotent: false,
    ..ToolSpec::reads(
        "puppeteer_screenshot",
        "Screenshot",
        "puppeteer",
        "Take a screenshot of the current page or a specific element",
    )
    .outside()
};
const CLICK: ToolSpec =
    ToolSpec::writes("puppeteer_click", "Click", "puppeteer", "Click an element on the page").destructive().outside();
const FILL: ToolSpec = ToolSpec::writes("puppeteer_fill", "Fill", "puppeteer", "Fill out an input field")
    .destructive()
    .idempotent()
    .outside();
const SELECT: ToolSpec =
    ToolSpec::writes("puppeteer_select", "Select", "puppeteer", "Select an element on the page with Select tag")
        .destructive()
        .idempotent()
        .outside();
const HOVER: ToolSpec =
    ToolSpec::writes("puppeteer_hover", "Hover", "puppeteer", "Hover an element on the page").idempotent().outside();
const EVALUATE: ToolSpec =
    ToolSpec::writes("puppeteer_evaluate", "Evaluate", "puppeteer", "Execute JavaScript in the browser console")
        .destructive()
        .outside();

/// All of them: under the published server's name, or on request.
pub(crate) const TOOLS: [ToolSpec; 7] = [
    NAVIGATE.superseded(),
    SCREENSHOT.superseded(),
    CLICK.superseded(),
    FILL.superseded(),
    SELECT.superseded(),
    HOVER.superseded(),
    EVALUATE.superseded(),
];

/// Longest name of a screenshot.
const NAME_CHARS_MAX: usize = 200;
/// Longest side of a screenshot's default size.
const WIDTH: u32 = 800;
const HEIGHT: u32 = 600;
/// How long an element may take to appear, and how often it is looked for.
const APPEAR_TIME: Duration = Duration::from_secs(5);
const LOOK_TIME: Duration = Duration::from_millis(100);

/// Adds the tools that are enabled.
pub(crate) fn add(tools: ToolSet<BrowserServer>) -> ToolSet<BrowserServer> {
    let tools = match tools.has(&NAVIGATE) {
        true => tools.instructions("`puppeteer_navigate` comes first. Elements are named by CSS selectors."),
        false => tools,
    };
    tools
        .tool(&NAVIGATE, BrowserServer::navigate)
        .tool(&SCREENSHOT, BrowserServer::screenshot)
        .tool(&CLICK, BrowserServer::click)
        .tool(&FILL, BrowserServer::fill)
        .tool(&SELECT, BrowserServer::select)
        .tool(&HOVER, BrowserServer::hover)
        .tool(&EVALUATE, BrowserServer::evaluate)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NavigateArgs {
    /// URL to navigate to
    url: String,
    /// Set by the operator: refused unless equal to the configuration.
    launch_options: Option<Map<String, Value>>,
    /// Set by the operator: refused unless equal to the configuration.
    allow_dangerous: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ScreenshotArgs {
    /// Name for the screenshot
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// CSS selector for element to screenshot
    selector: Option<String>,
    /// Width in pixels
    #[serde(default = "width")]
    #[schemars(range(min = 1, max = 16_384))]
    width: u32,
    /// Height in pixels
    #[serde(default = "height")]
    #[schemars(range(min = 1, max = 16_384))]
    height: u32,
    /// Return a base64-encoded data URI (as text) instead of an image
    #[serde(default)]
    encoded: bool,
}

fn width() -> u32 {
    WIDTH
}

fn height() -> u32 {
    HEIGHT
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SelectorArgs {
    /// CSS selector for element
    selector: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ValueArgs {
    /// CSS selector for element
    selector: String,
    /// Value to enter or select
    value: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ScriptArgs {
    /// JavaScript code to execute
    script: String,
}

/// Where the tab is.
#[derive(Debug, Serialize, JsonSchema)]
struct Navigated {
    /// After redirects.
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Shot {
    /// The resource.
    uri: String,
    width: u32,
    height: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Used {
    selector: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Evaluated {
    /// As JSON.
    result: String,
    console: Vec<String>,
    truncated: bool,
}

impl BrowserServer {
    /// The client of a call. Its dialogs are answered at once: these tools have none for that.
    async fn client(&self, cx: &Cx) -> Result<(Arc<Session>, Audience)> {
        let (session, audience) = Session::of(&self.session, cx)?;
        session.hold_dialogs(false).await;
        Ok((session, audience))
    }

    async fn navigate(&self, cx: &Cx, args: NavigateArgs) -> Result<ToolOutput<Navigated>> {
        self.check_launch(&args)?;
        let url = self.shared.egress.destination(&args.url)?;
        let (session, _) = self.client(cx).await?;
        let egress = self.shared.egress.clone();
        let there = session.with_page(|page| async move { page.navigate(url.as_str(), &egress).await }).await?;
        let text = format!("Navigated to {}", shown(&args.url));
        let url = linchpin_kit::redact_urls(&there.url);
        Ok(ToolOutput::ours(text, Navigated { url, status: there.status }))
    }

    /// How the browser is started is not the model's to say: a path there is a command.
    fn check_launch(&self, args: &NavigateArgs) -> Result<(), ToolError> {
        let config = &self.shared.config;
        let same = |options: &Map<String, Value>| {
            options.iter().all(|(name, value)| value.is_null() || config.launch_options.get(name) == Some(value))
        };
        let refused = |name: &str| {
            ToolError::denied(format!("{name} is set by the operator")).hint(
                "Call puppeteer_navigate without it. The operator has PUPPETEER_LAUNCH_OPTIONS and ALLOW_DANGEROUS.",
            )
        };
        if !args.launch_options.as_ref().is_none_or(same) {
            return Err(refused("launchOptions"));
        }
        if args.allow_dangerous == Some(true) && !config.allow_dangerous {
            return Err(refused("allowDangerous"));
        }
        Ok(())
    }

    async fn screenshot(&self, cx: &Cx, args: ScreenshotArgs) -> Result<ToolOutput<Shot>> {
        let ScreenshotArgs { name, selector, width, height, encoded } = args;
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            Err(ToolError::invalid(format!("The name must be 1 to {NAME_CHARS_MAX} characters without line breaks")))?;
        }
        if !(1..=SIDE_MAX).contains(&width) || !(1..=SIDE_MAX).contains(&height) {
            Err(ToolError::invalid(format!("Width and height must be 1 to {SIDE_MAX}")))?;
        }
        let (session, audience) = self.client(cx).await?;
        let data = session
            .with_page(|page| async move {
                page.resize(width, height).await?;
                let area = match &selector {
                    Some(selector) => Some(area_of(&page, selector).await?),
                    None => None,
                };
                page.screenshot(area).await
            })
            .await?;
        session.keep_shot(&name, &data, &audience);
        let picture = match encoded {
            true => ContentBlock::text(format!("data:image/png;base64,{data}")),
            false => ContentBlock::image_base64(data, "image/png"),
        };
        let text = ContentBlock::text(format!("Screenshot '{name}' taken at {width}x{height}"));
        let uri = crate::shots::shot_uri(&self.shared.config.tools, &name);
        Ok(ToolOutput::blocks(vec![text, from_outside(picture)], Shot { uri, width, height }))
    }

    async fn click(&self, cx: &Cx, args: SelectorArgs) -> Result<ToolOutput<Used>> {
        let (session, _) = self.client(cx).await?;
        let selector = args.selector.clone();
        let work = |page: Page| async move {
            let element = element(&page, &selector).await?;
            page.click(element.area().await?.centre()).await
        };
        session.with_page(work).await.map_err(|e| failed("click", &args.selector, e))?;
        Ok(ToolOutput::ours(format!("Clicked: {}", args.selector), Used { selector: args.selector }))
    }

    async fn hover(&self, cx: &Cx, args: SelectorArgs) -> Result<ToolOutput<Used>> {
        let (session, _) = self.client(cx).await?;
        let selector = args.selector.clone();
        let work = |page: Page| async move {
            let element = coming(&page, &selector).await?;
            page.move_mouse(element.area().await?.centre()).await
        };
        session.with_page(work).await.map_err(|e| failed("hover", &args.selector, e))?;
        Ok(ToolOutput::ours(format!("Hovered {}", args.selector), Used { selector: args.selector }))
    }

    async fn fill(&self, cx: &Cx, args: ValueArgs) -> Result<ToolOutput<Used>> {
        let ValueArgs { selector, value } = args;
        let (session, _) = self.client(cx).await?;
        let (wanted, text) = (selector.clone(), value.clone());
        let work = |page: Page| async move {
            let element = coming(&page, &wanted).await?;
            fill(&page, &element, &text).await
        };
        let is_secret = session.with_page(work).await.map_err(|e| failed("fill", &selector, e))?;
        let value = if is_secret { "***".to_owned() } else { value };
        Ok(ToolOutput::ours(format!("Filled {selector} with: {value}"), Used { selector }))
    }

    async fn select(&self, cx: &Cx, args: ValueArgs) -> Result<ToolOutput<Used>> {
        let ValueArgs { selector, value } = args;
        let (session, _) = self.client(cx).await?;
        let (wanted, option) = (selector.clone(), value.clone());
        let work = |page: Page| async move {
            let element = coming(&page, &wanted).await?;
            select(&element, &option).await
        };
        session.with_page(work).await.map_err(|e| failed("select", &selector, e))?;
        Ok(ToolOutput::ours(format!("Selected {selector} with: {value}"), Used { selector }))
    }

    async fn evaluate(&self, cx: &Cx, args: ScriptArgs) -> Result<ToolOutput<Evaluated>> {
        let (session, _) = self.client(cx).await?;
        let before = session.log.count();
        let work = |page: Page| async move { page.evaluate(&args.script).await };
        let answer = session.with_page(work).await?;
        if let Some(why) = thrown(&answer) {
            // The published server has the page's words in its sentence.
            let why = without_hidden(&why);
            Err(ToolError::new(format!("Script execution failed: {why}")))?;
        }
        let result = &answer["result"];
        let json = match (result.get("value"), result["unserializableValue"].as_str()) {
            (Some(value), _) => serde_json::to_string_pretty(value).unwrap_or_default(),
            (None, Some(number)) => number.to_owned(),
            (None, None) => "undefined".to_owned(),
        };
        let console: Vec<String> =
            session.log.since(before).iter().map(|line| format!("[{}] {}", line.kind, line.text)).collect();
        let cut = clip(&json, TEXT_BYTES_MAX / 2);
        let lines = console.join("\n");
        let lines = clip(&lines, TEXT_BYTES_MAX / 4);
        let truncated = cut.left_out + lines.left_out > 0;
        let text = format!("Execution result:\n{}\n\nConsole output:\n{}", cut.text, lines.text);
        let notice = truncated.then(|| "The result was cut: let the script return less.".to_owned());
        let console = lines.text.lines().map(str::to_owned).collect();
        let value = Evaluated { result: cut.text.to_owned(), console, truncated };
        Ok(ToolOutput::outside(text, value).notice(notice))
    }
}

async fn element(page: &Page, selector: &str) -> Result<Element, ToolError> {
    page.query(selector)
        .await?
        .ok_or_else(|| ToolError::not_found(format!("No element found for selector: {selector}")))
}

/// An element that may be on its way, as the published server waits for it (30 s there).
async fn coming(page: &Page, selector: &str) -> Result<Element, ToolError> {
    let end = Instant::now() + APPEAR_TIME;
    loop {
        match element(page, selector).await {
            Err(missing) if missing.is_not_found() && Instant::now() < end => tokio::time::sleep(LOOK_TIME).await,
            Err(missing) if missing.is_not_found() => {
                return Err(missing.hint(format!("It did not appear within {} s.", APPEAR_TIME.as_secs())));
            }
            found => return found,
        }
    }
}

async fn area_of(page: &Page, selector: &str) -> Result<Area, ToolError> {
    match page.query(selector).await? {
        Some(element) => element.area().await,
        None => Err(ToolError::not_found(format!("Element not found: {selector}"))),
    }
}

/// `Failed to click #none: No element found for selector: #none`
fn failed(verb: &str, selector: &str, error: ToolError) -> ToolError {
    let mut failed = ToolError::new(format!("Failed to {verb} {selector}: {}", error.message()));
    if let Some(kind) = error.error_kind() {
        failed = failed.kind(kind);
    }
    if let Some(advice) = error.advice() {
        failed = failed.hint(advice);
    }
    match error.quoted() {
        Some(words) => failed.detail(words),
        None => failed,
    }
}

/// Selects what a field contains and says how it is filled: by typing, not at all, or by its value.
const PREPARE: &str = r"function(value) {
    const typed = ['text', 'search', 'url', 'tel', 'email', 'password', 'number'];
    if (this.disabled || this.readOnly) return { how: 'locked' };
    this.focus();
    if (this instanceof HTMLTextAreaElement || this instanceof HTMLInputElement && typed.includes(this.type)) {
        this.select();
        return { how: 'type', secret: this.type === 'password' };
    }
    if (this.isContentEditable) {
        getSelection().selectAllChildren(this);
        return { how: 'type' };
    }
    if (!(this instanceof HTMLInputElement)) return { how: 'none' };
    if (['button', 'checkbox', 'file', 'hidden', 'image', 'radio', 'reset', 'submit'].includes(this.type)) return { how: 'none' };
    this.value = value;
    if (this.value !== value) return { how: 'refused', type: this.type };
    for (const name of ['input', 'change']) this.dispatchEvent(new Event(name, { bubbles: true }));
    return { how: 'set' };
}";

/// Replaces what a field contains; whether it is a secret.
async fn fill(page: &Page, element: &Element, value: &str) -> Result<bool, ToolError> {
    let prepared = element.call(PREPARE, &[json!(value)]).await?;
    match prepared["how"].as_str().unwrap_or_default() {
        "type" if value.is_empty() => page.press("Delete", "Delete", 46).await?,
        "type" => page.insert_text(value).await?,
        "set" => {}
        "locked" => return Err(ToolError::conflict("The field is disabled or read-only")),
        "refused" => {
            let kind = prepared["type"].as_str().unwrap_or("special");
            return Err(ToolError::invalid(format!("That is not a value for a field of type {kind}"))
                .hint("A date is YYYY-MM-DD, a time HH:MM, a colour #rrggbb."));
        }
        _ => {
            return Err(ToolError::invalid("It is not a text field")
                .hint("Use puppeteer_select for a list, puppeteer_click for a button or a check box."));
        }
    }
    Ok(prepared["secret"] == true)
}

/// Selects the option with this value, or else with this label; otherwise what there is.
const CHOOSE: &str = r"function(value) {
    if (!(this instanceof HTMLSelectElement)) return { how: 'none' };
    const options = [...this.options];
    const found = options.find(o => o.value === value) || options.find(o => o.label === value);
    if (!found) return { how: 'missing', options: options.slice(0, 50).map(o => o.value) };
    if (this.disabled || found.disabled) return { how: 'locked' };
    this.value = found.value;
    for (const name of ['input', 'change']) this.dispatchEvent(new Event(name, { bubbles: true }));
    return { how: 'done' };
}";

async fn select(element: &Element, value: &str) -> Result<(), ToolError> {
    let chosen = element.call(CHOOSE, &[json!(value)]).await?;
    match chosen["how"].as_str().unwrap_or_default() {
        "done" => Ok(()),
        "locked" => Err(ToolError::conflict("The list or the option is disabled")),
        "missing" => Err(ToolError::new(format!("There is no option {value}"))
            .kind(ErrorKind::NotFound)
            .hint("The options are listed below.")
            .detail(chosen["options"].to_string())),
        _ => Err(ToolError::invalid("Element is not a <select> element.")),
    }
}
