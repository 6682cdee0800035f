//! Reading environment variables, with errors that name them.

use crate::{Fault, ToolChoice};
use std::str::FromStr;

/// The environment, as a function, so that tests bring their own: `Vars::new(&|name| std::env::var(name).ok())`.
#[derive(Clone, Copy)]
pub struct Vars<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Vars<'a> {
    /// Over this function.
    pub fn new(get: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { get }
    }

    /// The variable as it is; `None` when it is not set.
    #[must_use]
    pub fn text(self, name: &str) -> Option<String> {
        (self.get)(name)
    }

    /// A list separated by `separator` or newlines; blanks around items and empty items are dropped.
    #[must_use]
    pub fn list(self, name: &str, separator: char) -> Option<Vec<String>> {
        let value = self.text(name)?;
        let items = value.split([separator, '\n']).map(str::trim).filter(|item| !item.is_empty());
        Some(items.map(str::to_owned).collect())
    }

    /// A switch: `1/true/yes/on`, or nothing or `0/false/no/off`. Without regard to case.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn switch(self, name: &str, target: &mut bool) -> Result<(), Fault> {
        let Some(value) = self.text(name) else { return Ok(()) };
        *target = match value.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => true,
            "" | "0" | "false" | "no" | "off" => false,
            other => return Err(Fault::new(format!("{name} is neither on nor off: {other}")).hint("Use 1 or 0.")),
        };
        Ok(())
    }

    /// A whole number.
    ///
    /// # Errors
    /// When it is none, or too large for the target.
    pub fn number<N: FromStr>(self, name: &str, target: &mut N) -> Result<(), Fault> {
        let Some(value) = self.text(name) else { return Ok(()) };
        *target = value.trim().parse().map_err(|_| Fault::new(format!("{name} is not a usable number: {value}")))?;
        Ok(())
    }

    /// Anything that reads itself from text and says what is wrong.
    ///
    /// # Errors
    /// When it cannot be read; the message names the variable.
    pub fn parsed<T: FromStr<Err = Fault>>(self, name: &str) -> Result<Option<T>, Fault> {
        self.read(name, str::parse)
    }

    /// Anything that `read` can read from text and says what is wrong otherwise.
    ///
    /// # Errors
    /// When it cannot be read; the message names the variable.
    pub fn read<T>(self, name: &str, read: impl FnOnce(&str) -> Result<T, Fault>) -> Result<Option<T>, Fault> {
        let Some(value) = self.text(name) else { return Ok(None) };
        read(&value).map(Some).map_err(|fault: Fault| {
            let named = Fault::new(format!("{name}: {}", fault.message()));
            fault.advice().map_or(named.clone(), |advice| named.hint(advice))
        })
    }

    /// The choice of tools from `<PREFIX>_READ_ONLY`, `_ENABLE_TOOLS`, `_DISABLE_TOOLS`, `_TOOLSETS` (separated by `,`) and
    /// `_TOOL_PREFIX`; `prefix` for example `MCP_GIT`.
    ///
    /// # Errors
    /// When a variable cannot be understood.
    pub fn tool_choice(self, prefix: &str) -> Result<ToolChoice, Fault> {
        let mut choice = ToolChoice::default();
        let list = |what: &str| self.list(&format!("{prefix}_{what}"), ',').unwrap_or_default();
        choice.enable = list("ENABLE_TOOLS");
        choice.disable = list("DISABLE_TOOLS");
        choice.toolsets = list("TOOLSETS");
        self.switch(&format!("{prefix}_READ_ONLY"), &mut choice.read_only)?;
        if let Some(tool_prefix) = self.parsed(&format!("{prefix}_TOOL_PREFIX"))? {
            choice.prefix = tool_prefix;
        }
        Ok(choice)
    }
}
