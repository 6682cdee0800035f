//! Pointer and keyboard: events as a user makes them.

use super::keys::{self, Key};
use crate::cdp::{CdpError, CdpSession};
use serde_json::{Value, json};

// A button of the mouse, not documented for the schema: models pay for every word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Button {
    #[default]
    Left,
    Right,
    Middle,
}

impl Button {
    fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Middle => "middle",
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Left => 1,
            Self::Right => 2,
            Self::Middle => 4,
        }
    }
}

/// The keyboard and mouse of a tab.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a>(pub(crate) &'a CdpSession);

impl Input<'_> {
    /// Moves the pointer.
    pub(crate) async fn move_to(self, x: f64, y: f64, held: Option<Button>) -> Result<(), CdpError> {
        let event = json!({
            "type": "mouseMoved", "x": x, "y": y,
            "button": held.map_or("none", Button::name), "buttons": held.map_or(0, Button::bit),
        });
        self.mouse(event).await
    }

    /// Presses or releases a button.
    pub(crate) async fn button(
        self,
        down: bool,
        (x, y): (f64, f64),
        button: Button,
        count: u8,
        modifiers: u8,
    ) -> Result<(), CdpError> {
        let event = json!({
            "type": if down { "mousePressed" } else { "mouseReleased" },
            "x": x, "y": y, "button": button.name(), "buttons": if down { button.bit() } else { 0 },
            "clickCount": count, "modifiers": modifiers,
        });
        self.mouse(event).await
    }

    /// Moves there and clicks.
    pub(crate) async fn click(self, at: (f64, f64), button: Button, count: u8, modifiers: u8) -> Result<(), CdpError> {
        self.move_to(at.0, at.1, None).await?;
        for nth in 1..=count {
            self.button(true, at, button, nth, modifiers).await?;
            self.button(false, at, button, nth, modifiers).await?;
        }
        Ok(())
    }

    /// Presses a key and releases it.
    pub(crate) async fn press(self, key: &Key) -> Result<(), CdpError> {
        let mut event = json!({
            "type": if key.text.is_some() { "keyDown" } else { "rawKeyDown" },
            "modifiers": key.modifiers, "key": key.key, "code": key.code,
            "windowsVirtualKeyCode": key.number,
        });
        if let Some(text) = &key.text {
            event["text"] = json!(text);
            event["unmodifiedText"] = json!(text);
        }
        self.key(event.clone()).await?;
        event["type"] = json!("keyUp");
        if let Some(event) = event.as_object_mut() {
            event.remove("text");
            event.remove("unmodifiedText");
        }
        self.key(event).await
    }

    /// Writes text at the cursor, at once.
    pub(crate) async fn insert(self, text: &str) -> Result<(), CdpError> {
        self.0.call("Input.insertText", json!({ "text": text })).await.map(drop)
    }

    /// Types text key by key.
    pub(crate) async fn type_out(self, text: &str) -> Result<(), CdpError> {
        for c in text.chars() {
            let key = keys::of_char(c);
            if key.code.is_empty() {
                self.insert(c.encode_utf8(&mut [0; 4])).await?;
            } else {
                self.press(&key).await?;
            }
        }
        Ok(())
    }

    async fn mouse(self, event: Value) -> Result<(), CdpError> {
        self.0.call("Input.dispatchMouseEvent", event).await.map(drop)
    }

    async fn key(self, event: Value) -> Result<(), CdpError> {
        self.0.call("Input.dispatchKeyEvent", event).await.map(drop)
    }
}
