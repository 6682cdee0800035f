//! Tools that act on elements.

use super::answer::{Seen, acted};
use super::files;
use crate::act::{Action, Button, Field, FieldKind, key, modifier};
use crate::session::Session;
use linchpin_kit::{ToolError, ToolOutput, without_hidden};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

type Answer = Result<ToolOutput<Seen>, ToolError>;

/// Most fields of a form in a call.
const FIELDS_MAX: usize = 100;
/// Most bytes of a target in an answer.
const TARGET_BYTES_MAX: usize = 80;

/// The element of a call.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Hover {
    /// A ref of the snapshot (e12), or a CSS selector.
    #[serde(alias = "ref")]
    target: String,
}

/// Arguments of `browser_click`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Click {
    /// A ref of the snapshot (e12), or a CSS selector.
    #[serde(alias = "ref")]
    target: String,
    #[serde(default)]
    double_click: bool,
    #[serde(default)]
    button: Button,
    /// Alt, Control, ControlOrMeta, Meta, Shift
    #[serde(default)]
    modifiers: Vec<String>,
}

/// Arguments of `browser_type`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Type {
    /// A ref of the snapshot (e12), or a CSS selector.
    #[serde(alias = "ref")]
    target: String,
    /// Replaces what is in the field.
    text: String,
    /// Press Enter after.
    #[serde(default)]
    submit: bool,
    /// Key by key, for pages that listen to keys.
    #[serde(default)]
    slowly: bool,
}

/// Arguments of `browser_fill_form`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FillForm {
    fields: Vec<FormField>,
}

// A field of a form.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
struct FormField {
    /// A ref of the snapshot (e12), or a CSS selector.
    #[serde(alias = "ref")]
    target: String,
    r#type: FieldKind,
    /// Text; "true" or "false" of a checkbox; an option's label or value.
    value: String,
}

/// Arguments of `browser_select_option`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SelectOption {
    /// A ref of the snapshot (e12), or a CSS selector.
    #[serde(alias = "ref")]
    target: String,
    /// Values or labels.
    values: Vec<String>,
}

/// Arguments of `browser_press_key`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PressKey {
    /// A character or a name: a, Enter, ArrowLeft, Control+A
    key: String,
}

/// Arguments of `browser_drag`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Drag {
    /// A ref of the snapshot (e12), or a CSS selector.
    #[serde(alias = "startRef")]
    start_target: String,
    #[serde(alias = "endRef")]
    end_target: String,
}

/// Arguments of `browser_file_upload`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FileUpload {
    /// Absolute, or within the upload directory. Without any the file chooser is cancelled.
    #[serde(default)]
    paths: Vec<String>,
    /// The field for files, if no file chooser is open.
    #[serde(alias = "ref")]
    target: Option<String>,
}

/// A target in a sentence of ours: it is the caller's own word.
fn named(target: &str) -> String {
    let target = without_hidden(target);
    linchpin_kit::clip(target.trim(), TARGET_BYTES_MAX).text.replace('\n', " ")
}

pub(crate) async fn click(session: &Arc<Session>, args: Click) -> Answer {
    let mut modifiers = 0;
    for name in &args.modifiers {
        modifiers |= modifier(name).ok_or_else(|| {
            ToolError::invalid("There is no such modifier").hint("Use Alt, Control, ControlOrMeta, Meta or Shift.")
        })?;
    }
    let count = if args.double_click { 2 } else { 1 };
    let action = Action::Click { target: &args.target, button: args.button, count, modifiers };
    acted(session, &action, format!("Clicked {}.", named(&args.target))).await
}

pub(crate) async fn hover(session: &Arc<Session>, args: Hover) -> Answer {
    acted(session, &Action::Hover { target: &args.target }, format!("The pointer is over {}.", named(&args.target)))
        .await
}

pub(crate) async fn type_text(session: &Arc<Session>, args: Type) -> Answer {
    let action = Action::Type { target: &args.target, text: &args.text, submit: args.submit, slowly: args.slowly };
    let sent = if args.submit { " and pressed Enter" } else { "" };
    acted(session, &action, format!("Typed into {}{sent}.", named(&args.target))).await
}

pub(crate) async fn fill_form(session: &Arc<Session>, args: FillForm) -> Answer {
    if args.fields.is_empty() || args.fields.len() > FIELDS_MAX {
        return Err(ToolError::invalid(format!("fields must have 1 to {FIELDS_MAX} elements")));
    }
    let fields: Vec<Field<'_>> = args
        .fields
        .iter()
        .map(|field| Field { target: &field.target, kind: field.r#type, value: &field.value })
        .collect();
    acted(session, &Action::Fill(&fields), format!("Filled {} fields.", fields.len())).await
}

pub(crate) async fn select_option(session: &Arc<Session>, args: SelectOption) -> Answer {
    let action = Action::Select { target: &args.target, values: &args.values };
    acted(session, &action, format!("Selected in {}.", named(&args.target))).await
}

pub(crate) async fn press_key(session: &Arc<Session>, args: PressKey) -> Answer {
    let key = key(&args.key)?;
    acted(session, &Action::Press(&key), format!("Pressed {}.", named(&args.key))).await
}

pub(crate) async fn drag(session: &Arc<Session>, args: Drag) -> Answer {
    let action = Action::Drag { from: &args.start_target, to: &args.end_target };
    let said = format!("Dragged {} onto {}.", named(&args.start_target), named(&args.end_target));
    acted(session, &action, said).await
}

pub(crate) async fn file_upload(session: &Arc<Session>, args: FileUpload) -> Answer {
    let files = files::allowed(&session.shared.config.upload_dirs, &args.paths)?;
    let said = match files.len() {
        0 => "No files were chosen.".to_owned(),
        count => format!("Chose {count} files."),
    };
    acted(session, &Action::Upload { target: args.target.as_deref(), files: &files }, said).await
}
