//! Keys by name, as the browser wants to hear of them.

use linchpin_kit::ToolError;

/// The modifier `Alt`.
pub(crate) const ALT: u8 = 1;
/// The modifier `Control`.
pub(crate) const CONTROL: u8 = 2;
/// The modifier `Meta`.
pub(crate) const META: u8 = 4;
/// The modifier `Shift`.
pub(crate) const SHIFT: u8 = 8;

/// A key, alone or with modifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// What it means: `Enter`, `a`, `A`.
    pub(crate) key: String,
    /// Where it is on the keyboard: `Enter`, `KeyA`; empty if it is on none.
    pub(crate) code: String,
    /// The number that Windows has for it.
    pub(crate) number: u32,
    /// The text that it writes.
    pub(crate) text: Option<String>,
    /// The modifiers held down with it.
    pub(crate) modifiers: u8,
}

/// Reads `Enter`, `a`, `Control+Shift+ArrowLeft`.
///
/// # Errors
/// When there is no such key.
pub(crate) fn key(name: &str) -> Result<Key, ToolError> {
    let unknown = || {
        ToolError::invalid("There is no such key")
            .hint("Use a character or a name such as Enter, Tab, Escape, Backspace, ArrowDown, PageUp, F5; with modifiers: Control+A.")
            .detail(name)
    };
    let mut modifiers = 0;
    let mut rest = name.trim();
    // The last part may be `+` itself.
    while let Some((first, after)) =
        rest.split_once('+').filter(|(first, after)| !first.is_empty() && !after.is_empty())
    {
        modifiers |= modifier(first).ok_or_else(unknown)?;
        rest = after;
    }
    let mut chars = rest.chars();
    let mut key = match (chars.next(), chars.next()) {
        // `Control+A` is what is written for Control and the key A.
        (Some(c), None) if modifiers & !SHIFT != 0 => of_char(c.to_ascii_lowercase()),
        (Some(c), None) => of_char(c),
        _ => named(rest).ok_or_else(unknown)?,
    };
    if let Some(text) = key.text.as_mut().filter(|text| modifiers & SHIFT != 0 && text.len() == 1) {
        text.make_ascii_uppercase();
        key.key.clone_from(text);
    }
    if modifiers & !SHIFT != 0 {
        // A shortcut writes nothing.
        key.text = None;
    }
    key.modifiers |= modifiers;
    Ok(key)
}

/// The bit of a modifier.
pub(crate) fn modifier(name: &str) -> Option<u8> {
    match name {
        "Alt" => Some(ALT),
        "Control" | "Ctrl" => Some(CONTROL),
        "Meta" | "Command" | "Cmd" => Some(META),
        "Shift" => Some(SHIFT),
        "ControlOrMeta" => Some(if cfg!(target_os = "macos") { META } else { CONTROL }),
        _ => None,
    }
}

/// The key that writes a character on an American keyboard; any other character is written without one.
pub(crate) fn of_char(c: char) -> Key {
    const PLAIN: &str = "`-=[]\\;',./";
    const SHIFTED: &str = "~_+{}|:\"<>?";
    const CODES: [(&str, u32); 11] = [
        ("Backquote", 192),
        ("Minus", 189),
        ("Equal", 187),
        ("BracketLeft", 219),
        ("BracketRight", 221),
        ("Backslash", 220),
        ("Semicolon", 186),
        ("Quote", 222),
        ("Comma", 188),
        ("Period", 190),
        ("Slash", 191),
    ];
    let new = |code: &str, number: u32, modifiers: u8| Key {
        key: c.to_string(),
        code: code.to_owned(),
        number,
        text: Some(c.to_string()),
        modifiers,
    };
    let upper = c.to_ascii_uppercase();
    match c {
        'a'..='z' => new(&format!("Key{upper}"), upper.into(), 0),
        'A'..='Z' => new(&format!("Key{upper}"), upper.into(), SHIFT),
        '0'..='9' => new(&format!("Digit{c}"), c.into(), 0),
        ' ' => new("Space", 32, 0),
        '\n' | '\r' => named("Enter").unwrap_or_else(|| new("Enter", 13, 0)),
        '\t' => named("Tab").unwrap_or_else(|| new("Tab", 9, 0)),
        _ => {
            let place = |row: &str| row.chars().position(|other| other == c).and_then(|at| CODES.get(at));
            let digit = ")!@#$%^&*(".chars().position(|other| other == c);
            match (place(PLAIN), place(SHIFTED), digit) {
                (Some((code, number)), ..) => new(code, *number, 0),
                (_, Some((code, number)), _) => new(code, *number, SHIFT),
                (.., Some(digit)) => new(&format!("Digit{digit}"), 48 + u32::try_from(digit).unwrap_or(0), SHIFT),
                _ => new("", 0, 0),
            }
        }
    }
}

fn named(name: &str) -> Option<Key> {
    let (key, code, number, text) = match name {
        "Enter" | "Return" => ("Enter", "Enter", 13, Some("\r")),
        "Tab" => ("Tab", "Tab", 9, None),
        "Space" => (" ", "Space", 32, Some(" ")),
        "Backspace" => ("Backspace", "Backspace", 8, None),
        "Delete" => ("Delete", "Delete", 46, None),
        "Insert" => ("Insert", "Insert", 45, None),
        "Escape" | "Esc" => ("Escape", "Escape", 27, None),
        "ArrowLeft" => ("ArrowLeft", "ArrowLeft", 37, None),
        "ArrowUp" => ("ArrowUp", "ArrowUp", 38, None),
        "ArrowRight" => ("ArrowRight", "ArrowRight", 39, None),
        "ArrowDown" => ("ArrowDown", "ArrowDown", 40, None),
        "Home" => ("Home", "Home", 36, None),
        "End" => ("End", "End", 35, None),
        "PageUp" => ("PageUp", "PageUp", 33, None),
        "PageDown" => ("PageDown", "PageDown", 34, None),
        "Shift" => ("Shift", "ShiftLeft", 16, None),
        "Control" => ("Control", "ControlLeft", 17, None),
        "Alt" => ("Alt", "AltLeft", 18, None),
        "Meta" => ("Meta", "MetaLeft", 91, None),
        "CapsLock" => ("CapsLock", "CapsLock", 20, None),
        "ContextMenu" => ("ContextMenu", "ContextMenu", 93, None),
        _ => return function_key(name),
    };
    let text = text.map(str::to_owned);
    Some(Key { key: key.to_owned(), code: code.to_owned(), number, text, modifiers: 0 })
}

fn function_key(name: &str) -> Option<Key> {
    let number: u32 = name.strip_prefix('F')?.parse().ok().filter(|number| (1..=12).contains(number))?;
    Some(Key { key: name.to_owned(), code: name.to_owned(), number: 111 + number, text: None, modifiers: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_code_number_and_text_that_browsers_know() {
        for (name, expected) in [
            ("a", ("a", "KeyA", 65, Some("a"), 0)),
            ("A", ("A", "KeyA", 65, Some("A"), SHIFT)),
            ("Shift+a", ("A", "KeyA", 65, Some("A"), SHIFT)),
            ("Control+a", ("a", "KeyA", 65, None, CONTROL)),
            ("Control+A", ("a", "KeyA", 65, None, CONTROL)),
            ("Control+Shift+A", ("A", "KeyA", 65, None, CONTROL | SHIFT)),
            ("Control+Shift+ArrowLeft", ("ArrowLeft", "ArrowLeft", 37, None, CONTROL | SHIFT)),
            ("Enter", ("Enter", "Enter", 13, Some("\r"), 0)),
            ("Control++", ("+", "Equal", 187, None, CONTROL | SHIFT)),
            ("+", ("+", "Equal", 187, Some("+"), SHIFT)),
            ("$", ("$", "Digit4", 52, Some("$"), SHIFT)),
            ("F12", ("F12", "F12", 123, None, 0)),
            ("ü", ("ü", "", 0, Some("ü"), 0)),
        ] {
            let key = key(name).unwrap();
            let found = (key.key.as_str(), key.code.as_str(), key.number, key.text.as_deref(), key.modifiers);
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_key_is_an_error_that_names_some() {
        for name in ["", "Enter2", "Hyper+a", "F13", "Control+", "ab"] {
            let wrong = key(name).unwrap_err();
            assert!(wrong.advice().unwrap().contains("ArrowDown"), "{name}");
        }
    }
}
