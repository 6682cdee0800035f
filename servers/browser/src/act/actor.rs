//! The actions.

use super::element::{Choice, Filled, Needs, failed, gone};
use super::input::{Button, Input};
use super::keys::Key;
use super::tab::{Found, Tab};
use crate::cdp::CdpError;
use crate::page::Page;
use linchpin_kit::{ErrorKind, ToolError};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Between the steps of a drag, so that a page sees the pointer move.
const DRAG_STEP_TIME: Duration = Duration::from_millis(20);
const DRAG_STEPS: u8 = 8;

// Not documented for the schema: the names say it, and models pay for every word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum FieldKind {
    Textbox,
    Checkbox,
    Radio,
    Combobox,
    Slider,
}

/// A field and what it is to hold.
#[derive(Debug)]
pub(crate) struct Field<'a> {
    /// Which.
    pub(crate) target: &'a str,
    /// What kind.
    pub(crate) kind: FieldKind,
    /// What it is to hold.
    pub(crate) value: &'a str,
}

/// Something that a user does.
#[derive(Debug)]
pub(crate) enum Action<'a> {
    /// Clicks an element.
    Click {
        /// Which.
        target: &'a str,
        /// With which button.
        button: Button,
        /// How often.
        count: u8,
        /// With which keys held.
        modifiers: u8,
    },
    /// Moves the pointer over an element.
    Hover {
        /// Which.
        target: &'a str,
    },
    /// Replaces the text of a field.
    Type {
        /// Which.
        target: &'a str,
        /// By what.
        text: &'a str,
        /// And presses Enter.
        submit: bool,
        /// Key by key.
        slowly: bool,
    },
    /// Fills fields, one after the other.
    Fill(&'a [Field<'a>]),
    /// Selects options by value or label.
    Select {
        /// Of which element.
        target: &'a str,
        /// Which.
        values: &'a [String],
    },
    /// Presses a key where the focus is.
    Press(&'a Key),
    /// Drags an element onto another.
    Drag {
        /// Which.
        from: &'a str,
        /// Where to.
        to: &'a str,
    },
    /// Chooses files: in the file chooser that is open, or of an element.
    Upload {
        /// Of which.
        target: Option<&'a str>,
        /// Which.
        files: &'a [PathBuf],
    },
}

/// Acts on a tab.
#[derive(Debug)]
pub(crate) struct Actor<'a> {
    /// The tab.
    pub(crate) page: &'a Page,
    /// What is known of it.
    pub(crate) tab: &'a mut Tab,
}

impl Actor<'_> {
    fn input(&self) -> Input<'_> {
        Input(self.page.cdp())
    }

    /// Does it.
    ///
    /// # Errors
    /// Why it cannot be done.
    pub(crate) async fn perform(&mut self, action: &Action<'_>) -> Result<(), ToolError> {
        match *action {
            Action::Click { target, button, count, modifiers } => self.click(target, button, count, modifiers).await,
            Action::Hover { target } => self.hover(target).await,
            Action::Type { target, text, submit, slowly } => {
                self.fill(target, text, slowly).await?;
                match submit {
                    true => self.press(&super::keys::key("Enter")?).await,
                    false => Ok(()),
                }
            }
            Action::Fill(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    self.field(field).await.map_err(|e| of_field(e, index))?;
                }
                Ok(())
            }
            Action::Select { target, values } => self.select(target, values).await,
            Action::Press(key) => self.press(key).await,
            Action::Drag { from, to } => self.drag(from, to).await,
            Action::Upload { target, files } => self.upload(target, files).await,
        }
    }

    /// Finds an element, and returns it once it can be used, with its middle.
    async fn at(&mut self, target: &str, needs: Needs) -> Result<(Found, (f64, f64)), ToolError> {
        let found = self.tab.find(self.page, target).await?;
        let place = self.tab.ready(&found, needs).await?;
        Ok((found, (place.x, place.y)))
    }

    async fn click(&mut self, target: &str, button: Button, count: u8, modifiers: u8) -> Result<(), ToolError> {
        let (_, at) = self.at(target, Needs::CLICK).await?;
        self.input().click(at, button, count, modifiers).await.map_err(|e| failed(&e))
    }

    async fn hover(&mut self, target: &str) -> Result<(), ToolError> {
        let (_, at) = self.at(target, Needs::HOVER).await?;
        self.input().move_to(at.0, at.1, None).await.map_err(|e| failed(&e))
    }

    async fn drag(&mut self, from: &str, to: &str) -> Result<(), ToolError> {
        // Both are found before the first moves, and the first once more: the second may have been scrolled to.
        let (end, _) = self.at(to, Needs::SEEN).await?;
        let (_, start) = self.at(from, Needs::HOVER).await?;
        let input = self.input();
        let failed = |e| failed(&e);
        input.move_to(start.0, start.1, None).await.map_err(failed)?;
        input.button(true, start, Button::Left, 1, 0).await.map_err(failed)?;
        let over = self.tab.ready(&end, Needs::SEEN).await;
        let Ok(over) = over else {
            let _ = input.button(false, start, Button::Left, 1, 0).await;
            return over.map(drop);
        };
        for step in 1..=DRAG_STEPS {
            let part = f64::from(step) / f64::from(DRAG_STEPS);
            let (x, y) = (start.0 + (over.x - start.0) * part, start.1 + (over.y - start.1) * part);
            input.move_to(x, y, Some(Button::Left)).await.map_err(failed)?;
            tokio::time::sleep(DRAG_STEP_TIME).await;
        }
        input.move_to(over.x, over.y, Some(Button::Left)).await.map_err(failed)?;
        input.button(false, (over.x, over.y), Button::Left, 1, 0).await.map_err(failed)
    }

    async fn press(&mut self, key: &Key) -> Result<(), ToolError> {
        self.input().press(key).await.map_err(|e| failed(&e))
    }

    async fn fill(&mut self, target: &str, text: &str, slowly: bool) -> Result<(), ToolError> {
        let found = self.tab.find(self.page, target).await?;
        self.fill_found(&found, text, slowly).await
    }

    async fn fill_found(&mut self, found: &Found, text: &str, slowly: bool) -> Result<(), ToolError> {
        self.tab.ready(found, Needs::TEXT).await?;
        let input = self.input();
        let done = match found.element.fill(text).await? {
            Filled::Set => Ok(()),
            Filled::Selected { empty } if text.is_empty() => match empty {
                true => Ok(()),
                false => input.press(&super::keys::key("Delete")?).await,
            },
            Filled::Selected { .. } if slowly => input.type_out(text).await,
            Filled::Selected { .. } => input.insert(text).await,
            Filled::Invalid { r#type } => {
                return Err(ToolError::invalid(format!(
                    "The value is not one for a field of type {:?}",
                    short(&r#type)
                ))
                .hint("Dates are YYYY-MM-DD, times HH:MM, colours #rrggbb, sliders a number in their range."));
            }
            Filled::Refused { r#type } => {
                return Err(ToolError::invalid(format!("The element takes no text: it is of type {:?}", short(&r#type)))
                    .hint("Use browser_click for buttons and boxes, browser_select_option for select elements, browser_file_upload for files."));
            }
            Filled::Gone => return Err(gone()),
        };
        done.map_err(|e| failed(&e))
    }

    async fn select(&mut self, target: &str, values: &[String]) -> Result<(), ToolError> {
        let found = self.tab.find(self.page, target).await?;
        self.tab.ready(&found, Needs { enabled: true, ..Needs::default() }).await?;
        let listed = |options: &[String]| format!("Options: {}", json!(options));
        match found.element.select(values).await? {
            Choice::Selected => Ok(()),
            Choice::Missing { missing, options } => Err(ToolError::not_found("There is no such option")
                .hint("Use the value or the label of one of the options below.")
                .detail(format!("Not there: {}\n{}", json!(missing), listed(&options)))),
            Choice::Disabled { options } => Err(ToolError::conflict("The option is disabled").detail(listed(&options))),
            Choice::Single => Err(ToolError::invalid("Exactly one option can be selected")),
            Choice::Refused => Err(ToolError::invalid("The element is not a select element")
                .hint("Click it with browser_click, then click the option in the new snapshot.")),
            Choice::Gone => Err(gone()),
        }
    }

    async fn field(&mut self, field: &Field<'_>) -> Result<(), ToolError> {
        match field.kind {
            FieldKind::Textbox | FieldKind::Slider => self.fill(field.target, field.value, false).await,
            FieldKind::Combobox => {
                let values = [field.value.to_owned()];
                match self.select(field.target, &values).await {
                    // One that can be typed into.
                    Err(wrong) if wrong.error_kind() == Some(ErrorKind::Invalid) => {
                        self.fill(field.target, field.value, false).await.map_err(|_| wrong)
                    }
                    done => done,
                }
            }
            FieldKind::Checkbox | FieldKind::Radio => {
                let want = match field.value.trim() {
                    "true" => true,
                    "false" if field.kind == FieldKind::Checkbox => false,
                    _ => {
                        return Err(ToolError::invalid(
                            "The value of a checkbox is \"true\" or \"false\"; of a radio button, \"true\"",
                        ));
                    }
                };
                self.check(field.target, want).await
            }
        }
    }

    async fn check(&mut self, target: &str, want: bool) -> Result<(), ToolError> {
        let found = self.tab.find(self.page, target).await?;
        match found.element.checked().await? {
            None => {
                return Err(ToolError::invalid("The element cannot be checked").hint("Use browser_click for others."));
            }
            Some(is) if is == want => return Ok(()),
            Some(_) => {}
        }
        let place = self.tab.ready(&found, Needs::CLICK).await?;
        self.input().click((place.x, place.y), Button::Left, 1, 0).await.map_err(|e| failed(&e))?;
        // A page may replace the box.
        let found = self.tab.find(self.page, target).await?;
        match found.element.checked().await? {
            Some(is) if is == want => Ok(()),
            _ => Err(ToolError::conflict("The click did not change the box")
                .hint("Take browser_snapshot to see what the page made of it.")),
        }
    }

    async fn upload(&mut self, target: Option<&str>, files: &[PathBuf]) -> Result<(), ToolError> {
        let chooser = self.tab.take_chooser();
        if files.is_empty() && target.is_none() {
            return match chooser {
                Some(_) => Ok(()),
                None => Err(no_chooser()),
            };
        }
        let element = match target {
            Some(target) => self.tab.find(self.page, target).await?.element,
            None => chooser.ok_or_else(no_chooser)?.element().await?,
        };
        element.set_files(files).await.map_err(|e| match e {
            CdpError::Refused(_) => ToolError::invalid("The element does not accept files, or not that many"),
            e => failed(&e),
        })
    }
}

fn no_chooser() -> ToolError {
    ToolError::conflict("No file chooser is open")
        .hint("Click what opens it first, or name the field for files as target.")
}

/// The error of one of several fields. Those before it are filled.
fn of_field(error: ToolError, index: usize) -> ToolError {
    let done = match index {
        0 => "no field was filled".to_owned(),
        1 => "the first field was filled".to_owned(),
        count => format!("the first {count} fields were filled"),
    };
    let kind = error.error_kind();
    let mut told = ToolError::new(format!("{} (field {}; {done})", error.message(), index + 1));
    if let Some(hint) = error.advice() {
        told = told.hint(hint);
    }
    if let Some(words) = error.quoted() {
        told = told.detail(words);
    }
    match kind {
        Some(kind) => told.kind(kind),
        None => told,
    }
}

/// A word of a page in a sentence of ours.
fn short(word: &str) -> String {
    word.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(30).collect()
}
