//! Masks secrets in command lines and output.

use crate::text;
use std::ffi::{OsStr, OsString};

/// The replacement for a secret.
const MASK: &str = "***";
/// Shorter values are not looked for elsewhere: they would be found everywhere.
const SECRET_BYTES_MIN: usize = 6;
/// Longest command line shown.
const SHOWN_CHARS: usize = 400;

/// The command line to show without these secrets and those in it, and all of them.
pub(crate) fn command(program: &OsStr, args: &[OsString], mut secrets: Vec<String>) -> (String, Secrets) {
    let known = Secrets::new(secrets.clone());
    let mut words = vec![quoted(known.hide(text(program)))];
    let mut next_is_secret = false;
    for arg in args.iter().map(|arg| known.hide(text(arg))) {
        let shown = if std::mem::take(&mut next_is_secret) && !arg.starts_with('-') {
            secrets.push(arg);
            MASK.to_owned()
        } else {
            next_is_secret = arg.starts_with('-') && !arg.contains(['=', ':']) && is_secret_name(&arg);
            word(&arg, &mut secrets)
        };
        words.push(quoted(shown));
    }
    let all = words.join(" ");
    let shown = match all.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &all[..end]),
        None => all,
    };
    (shown, Secrets::new(secrets))
}

/// Quotes an argument for display if it is not one word.
fn quoted(word: String) -> String {
    let plain = !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\'));
    if plain { word } else { shell_words::quote(&word).into_owned() }
}

/// One argument without its secrets.
fn word(arg: &str, secrets: &mut Vec<String>) -> String {
    if is_secret_value(arg) {
        secrets.push(arg.to_owned());
        return MASK.to_owned();
    }
    if let Some(at) = arg.find("://") {
        return url(arg, at + 3, secrets);
    }
    // `--token=x`, `NAME_TOKEN=x`, `Authorization: Bearer x`
    if let Some(at) = arg.find(['=', ':']) {
        let (name, value) = (&arg[..at], arg[at + 1..].trim());
        if !value.is_empty() && (is_secret_name(name) || is_secret_value(value)) {
            secrets.push(value.to_owned());
            secrets.extend(value.split_once(' ').map(|(_, credential)| credential.to_owned()));
            return format!("{}{MASK}", &arg[..=at]);
        }
    }
    arg.to_owned()
}

/// An address without the password before its host and secrets in its query. `start` is where the host would be.
fn url(arg: &str, start: usize, secrets: &mut Vec<String>) -> String {
    let authority = arg[start..].find(['/', '?', '#']).map_or(arg.len(), |n| start + n);
    let mut out = arg[..start].to_owned();
    match arg[start..authority].rfind('@') {
        Some(at) => {
            let user = &arg[start..start + at];
            secrets.push(user.split_once(':').map_or(user, |(_, password)| password).to_owned());
            out.push_str(MASK);
            out.push_str(&arg[start + at..authority]);
        }
        None => out.push_str(&arg[start..authority]),
    }
    let (path, query) = arg[authority..].split_once('?').unwrap_or((&arg[authority..], ""));
    out.push_str(path);
    for (n, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        out.push(if n == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, value)) if is_secret_name(name) || is_secret_value(value) => {
                secrets.push(value.to_owned());
                out.push_str(&format!("{name}={MASK}"));
            }
            _ => out.push_str(pair),
        }
    }
    out
}

/// Returns whether values with this name are usually secret. The name can be that of an option, a variable, a header or
/// a query parameter. The values of such options and variables of a child are masked.
///
/// ```
/// use linchpin_process::is_secret_name;
/// assert!(is_secret_name("GITHUB_TOKEN") && is_secret_name("--api-key") && !is_secret_name("HOME"));
/// ```
pub fn is_secret_name(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "token",
        "secret",
        "passw",
        "passphrase",
        "credential",
        "apikey",
        "privatekey",
        "accesskey",
        "authorization",
        "bearer",
        "cookie",
        "signature",
        "connectionstring",
    ];
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let ends = ["key", "auth", "pwd", "pat", "dsn"].iter().any(|end| plain.ends_with(end));
    ends || PARTS.iter().any(|part| plain.contains(part))
}

/// Whether a value looks like a credential.
fn is_secret_value(value: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "sk-",
        "sk_",
        "rk_",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "xapp-",
        "AKIA",
        "ASIA",
        "AIza",
        "ya29.",
        "hf_",
        "npm_",
        "pypi-",
        "eyJ",
        "Bearer ",
        "bearer ",
        "Basic ",
    ];
    value.len() >= 16 && BEGINNINGS.iter().any(|begin| value.starts_with(begin))
}

/// Secrets to mask in text. Returned by [`Command::shown`](crate::Command::shown) and
/// [`Process::secrets`](crate::Process::secrets).
///
/// # Example
///
/// ```
/// use linchpin_process::Command;
///
/// let mut command = Command::new("weather");
/// command.args.push("--token=hidden-token".into());
/// let (_, secrets) = command.shown();
/// assert_eq!(secrets.hide("bad token: hidden-token".to_owned()), "bad token: ***");
/// ```
#[derive(Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    fn new(mut all: Vec<String>) -> Secrets {
        all.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
        // Longer secrets first, because one may contain another.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Secrets(all)
    }

    /// Returns the text with the secrets masked.
    pub fn hide(&self, line: String) -> String {
        self.0.iter().fold(line, |line, secret| if line.contains(secret) { line.replace(secret, MASK) } else { line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_a_command_line_are_masked() {
        let cases: &[(&[&str], &str)] = &[
            (&["-y", "server", "--port", "80", "a b"], "p -y server --port 80 'a b'"),
            (&["--api-key", "abcdefg", "x"], "p --api-key *** x"),
            (&["--api-key", "--verbose"], "p --api-key --verbose"),
            (&["--token=abcdefg"], "p --token=***"),
            (&["-e", "GITHUB_TOKEN=abcdefg", "-e", "MODE=x"], "p -e GITHUB_TOKEN=*** -e MODE=x"),
            (&["--header", "Authorization: Bearer abcdefg"], "p --header Authorization:***"),
            (&["ghp_0123456789abcdefghij"], "p ***"),
            (&["postgres://me:abcdefg@host:5432/db?x=1"], "p postgres://***@host:5432/db?x=1"),
            (&["https://host/mcp?api_key=abcdefg&x=1"], "p https://host/mcp?api_key=***&x=1"),
        ];
        for (args, expected) in cases {
            let args: Vec<_> = args.iter().map(OsString::from).collect();
            let (shown, secrets) = command(OsStr::new("p"), &args, Vec::new());
            assert_eq!(shown, *expected);
            let hidden = secrets.hide("bad key abcdefg given".to_owned());
            assert_eq!(hidden.contains("***"), expected.contains("***") && !expected.ends_with("p ***"), "{expected}");
        }
    }
}
