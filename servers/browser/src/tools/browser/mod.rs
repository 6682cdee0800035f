//! Tools on accessibility snapshots, under the names and with the arguments of npm's `@playwright/mcp`.
//!
//! Those that look at pages or move between them are there with `--read-only`; those that act on them are not.

mod act;
mod answer;
mod files;
mod look;
mod tabs;

use crate::BrowserServer;
use crate::session::Session;
use answer::Seen;
use linchpin::types::tool::ToolAnnotations;
use linchpin::{Cx, Result, Tool};
use linchpin_kit::{ToolOutput, ToolSet, ToolSpec};
use std::sync::Arc;

const fn looks(name: &'static str, title: &'static str, description: &'static str) -> ToolSpec {
    ToolSpec::reads(name, title, "look", description).outside().extra()
}

const fn acts(name: &'static str, title: &'static str, description: &'static str) -> ToolSpec {
    ToolSpec::writes(name, title, "act", description).destructive().outside().extra()
}

const NAVIGATE: ToolSpec = looks("browser_navigate", "Navigate", "Opens a URL and returns a snapshot of the page.");
const NAVIGATE_BACK: ToolSpec =
    looks("browser_navigate_back", "Go back", "Goes back in the history; or forward, or reloads.");
pub(crate) const SNAPSHOT: ToolSpec = looks(
    "browser_snapshot",
    "Page snapshot",
    "Returns the page as an outline of its elements. Their refs (e12) are targets of other tools, which answer with what changed since.",
);
const SCREENSHOT: ToolSpec = looks(
    "browser_take_screenshot",
    "Take a screenshot",
    "Returns a picture of the page. To act on elements, use browser_snapshot.",
);
const WAIT_FOR: ToolSpec =
    looks("browser_wait_for", "Wait", "Waits for a time, or for text to appear or go away, and returns what changed.");
const TABS: ToolSpec = looks("browser_tabs", "Tabs", "Lists, opens, closes or selects tabs.");
const CONSOLE: ToolSpec =
    looks("browser_console_messages", "Console", "Returns what pages wrote to the console, the newest last.");
const NETWORK: ToolSpec =
    looks("browser_network_requests", "Network requests", "Returns the requests of pages, the newest last.");
const PDF: ToolSpec = looks("browser_pdf_save", "Save as PDF", "Prints the page to a PDF document.");
const RESIZE: ToolSpec = looks("browser_resize", "Resize", "Sets the size of the viewport.");
const CLOSE: ToolSpec = looks("browser_close", "Close", "Closes the current tab.");
const CLICK: ToolSpec = acts("browser_click", "Click", "Clicks an element, once it is visible and can be clicked.");
const TYPE: ToolSpec = acts("browser_type", "Type text", "Replaces the text of a field.");
const FILL_FORM: ToolSpec = acts("browser_fill_form", "Fill form", "Fills several fields of a form.");
const SELECT: ToolSpec = acts("browser_select_option", "Select option", "Selects options of a select element.");
const HOVER: ToolSpec = acts("browser_hover", "Hover", "Moves the pointer over an element.");
const PRESS: ToolSpec = acts("browser_press_key", "Press a key", "Presses a key where the focus is.");
const DRAG: ToolSpec = acts("browser_drag", "Drag", "Drags an element onto another.");
const UPLOAD: ToolSpec = acts(
    "browser_file_upload",
    "Upload files",
    "Chooses files of the upload directories, in the file chooser that a click opened.",
);
const DIALOG: ToolSpec =
    acts("browser_handle_dialog", "Handle a dialog", "Answers the alert, confirm or prompt that a page waits for.");
const EVALUATE: ToolSpec =
    acts("browser_evaluate", "Evaluate JavaScript", "Runs a function in the page and returns its result as JSON.");

/// All of them, in listing order.
pub(crate) const TOOLS: [ToolSpec; 21] = [
    NAVIGATE,
    NAVIGATE_BACK,
    SNAPSHOT,
    CLICK,
    TYPE,
    FILL_FORM,
    SELECT,
    HOVER,
    PRESS,
    DRAG,
    UPLOAD,
    DIALOG,
    EVALUATE,
    WAIT_FOR,
    TABS,
    SCREENSHOT,
    PDF,
    CONSOLE,
    NETWORK,
    RESIZE,
    CLOSE,
];

/// The client that a call is from.
fn client(server: &BrowserServer, cx: &Cx) -> Result<Arc<Session>> {
    Ok(Session::of(&server.session, cx)?.0)
}

/// Handlers: the client's session and the arguments go to the function that does it.
macro_rules! handlers {
    ($($name:ident($args:path) -> $out:path = $run:path;)*) => { $(
        async fn $name(server: &BrowserServer, cx: &Cx, args: $args) -> Result<ToolOutput<$out>> {
            Ok($run(&client(server, cx)?, args).await?)
        }
    )* };
}

handlers! {
    navigate(tabs::Navigate) -> Seen = tabs::navigate;
    navigate_back(tabs::NavigateBack) -> Seen = tabs::navigate_back;
    handle_dialog(tabs::HandleDialog) -> Seen = tabs::handle_dialog;
    resize(tabs::Resize) -> Seen = tabs::resize;
    tabs_tool(tabs::TabsArgs) -> tabs::Listed = tabs::tabs;
    close(tabs::Close) -> tabs::Listed = tabs::close;
    snapshot(look::Snapshot) -> Seen = look::snapshot;
    screenshot(look::Screenshot) -> look::Made = look::screenshot;
    pdf_save(look::PdfSave) -> look::Made = look::pdf_save;
    evaluate(look::Evaluate) -> look::Evaluated = look::evaluate;
    wait_for(look::WaitFor) -> Seen = look::wait_for;
    click(act::Click) -> Seen = act::click;
    hover(act::Hover) -> Seen = act::hover;
    type_text(act::Type) -> Seen = act::type_text;
    fill_form(act::FillForm) -> Seen = act::fill_form;
    select_option(act::SelectOption) -> Seen = act::select_option;
    press_key(act::PressKey) -> Seen = act::press_key;
    drag(act::Drag) -> Seen = act::drag;
    file_upload(act::FileUpload) -> Seen = act::file_upload;
}

async fn console_messages(
    server: &BrowserServer,
    cx: &Cx,
    args: look::ConsoleMessages,
) -> Result<ToolOutput<look::Lines>> {
    Ok(look::console_messages(&*client(server, cx)?, &args)?)
}

async fn network_requests(
    server: &BrowserServer,
    cx: &Cx,
    args: look::NetworkRequests,
) -> Result<ToolOutput<look::Lines>> {
    Ok(look::network_requests(&*client(server, cx)?, &args)?)
}

/// Adds the tools that are enabled.
pub(crate) fn add(tools: ToolSet<BrowserServer>) -> ToolSet<BrowserServer> {
    tools
        .tool_as(&NAVIGATE, moves, navigate)
        .tool_as(&NAVIGATE_BACK, moves, navigate_back)
        .tool(&SNAPSHOT, snapshot)
        .tool(&CLICK, click)
        .tool(&TYPE, type_text)
        .tool(&FILL_FORM, fill_form)
        .tool(&SELECT, select_option)
        .tool(&HOVER, hover)
        .tool(&PRESS, press_key)
        .tool(&DRAG, drag)
        .tool(&UPLOAD, file_upload)
        .tool(&DIALOG, handle_dialog)
        .tool(&EVALUATE, evaluate)
        .tool(&WAIT_FOR, wait_for)
        .tool_as(&TABS, moves, tabs_tool)
        .tool_as(&SCREENSHOT, saves, screenshot)
        .tool_as(&PDF, saves, pdf_save)
        .tool(&CONSOLE, console_messages)
        .tool(&NETWORK, network_requests)
        .tool_as(&RESIZE, moves, resize)
        .tool_as(&CLOSE, moves, close)
}

/// These act on no page, so that they are there with `--read-only`; but they do change where the browser is.
fn moves(tool: Tool) -> Tool {
    let hints = ToolAnnotations::new().with_read_only_hint(false).with_destructive_hint(false);
    tool.annotations(hints.with_idempotent_hint(false).with_open_world_hint(true))
}

/// These may write a new file into the operator's download directory.
fn saves(tool: Tool) -> Tool {
    moves(tool)
}
