//! Options as others ask for them: in forms of hosts, in packages.

use crate::Options;
use crate::options::{Form, Hint, Takes};
use serde::Serialize;

/// What a user is asked for before a server can start: its main argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Setting {
    /// The flag, without `--`.
    pub name: String,
    /// The variable, if there is one.
    pub variable: Option<String>,
    /// The documentation, on one line.
    pub about: String,
    /// `directory`, `file`, `program`, `url`, `host` or `text`.
    pub kind: &'static str,
    /// Whether it may be given several times.
    pub repeated: bool,
    /// Whether the value may contain a secret.
    pub secret: bool,
}

/// The plain arguments of a configuration's command line, without those that ask for something else than serving.
///
/// ```
/// use linchpin_kit::{Secret, flag, settings};
/// linchpin_kit::options! {
///     /// The configuration.
///     #[derive(Debug)]
///     pub struct Config: "MCP_X" {
///         /// The database.
///         pub file: String = String::new() => flag::text("FILE").word("FILE"),
///         /// Maximum number of rows in a result.
///         pub max_rows: usize = 1_000 => flag::number("N"),
///     }
/// }
/// let settings = settings::<Config>();
/// assert_eq!(settings.len(), 1);
/// assert_eq!((settings[0].about.as_str(), settings[0].variable.as_deref()), ("The database", Some("MCP_X_FILE")));
/// ```
#[must_use]
pub fn settings<C: Options>() -> Vec<Setting> {
    settings_of(C::options(C::VARIABLES).into_iter().map(|option| option.form).collect())
}

// One copy for all configurations.
fn settings_of(forms: Vec<Form>) -> Vec<Setting> {
    forms
        .into_iter()
        .filter(|form| form.word.is_some() && !form.command)
        .map(|form| Setting {
            kind: match form.hint {
                Hint::Nothing => "text",
                Hint::File => "file",
                Hint::Directory => "directory",
                Hint::Program => "program",
                Hint::Url => "url",
                Hint::Host => "host",
            },
            about: first_paragraph(form.doc),
            variable: form.variables.first().cloned(),
            secret: form.secret,
            repeated: matches!(form.takes, Takes::Repeated | Takes::List),
            name: form.name,
        })
        .collect()
}

/// The first paragraph of a documentation comment on one line, without code marks and the last full stop.
pub(crate) fn first_paragraph(doc: &str) -> String {
    let lines: Vec<&str> = doc.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let text = lines.join(" ").replace('`', "");
    text.strip_suffix('.').map(str::to_owned).unwrap_or(text)
}
