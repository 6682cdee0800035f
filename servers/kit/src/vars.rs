//! Environment variables, with errors that name them, and secrets from variables, files and keyrings.

use crate::ToolError;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Maximum bytes of a secret file.
const SECRET_BYTES_MAX: u64 = 1 << 20;

/// A string that is never printed: its `Debug` is redacted, and it has no `Display`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a string.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the string, for the code that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    fn first_line(self, name: &str, source: &str) -> Result<Option<Self>, ToolError> {
        match self.0.lines().next() {
            Some(line) if !line.is_empty() => Ok(Some(Self::new(line))),
            _ => Err(ToolError::new(format!("{name}_{source}: the first line is empty"))),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

/// Looks up a secret in the keyring of the operating system by service and account. Errors say what is wrong and what to
/// do, and never contain the secret.
pub type Keyring<'a> = dyn Fn(&str, &str) -> Result<Secret, ToolError> + 'a;

/// The environment, as a function, so that tests can replace it: `Vars::new(&|name| std::env::var(name).ok())`.
///
/// An empty variable counts as unset, as in the environment files of containers and hosts.
#[derive(Clone, Copy)]
pub struct Vars<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    keyring: Option<&'a Keyring<'a>>,
}

impl<'a> Vars<'a> {
    /// Reads variables with this function, without a keyring.
    pub fn new(get: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { get, keyring: None }
    }

    /// Sets the keyring for `<NAME>_KEYRING`.
    #[must_use]
    pub fn keyring(self, look: &'a Keyring<'a>) -> Self {
        Self { keyring: Some(look), ..self }
    }

    /// A secret of one line: the value of the variable; else the first line of the file `<NAME>_FILE`; else the first
    /// line of the keyring entry `<NAME>_KEYRING`, which is `SERVICE/ACCOUNT` (split at the last `/`). Later sources
    /// are not read once one has the secret.
    ///
    /// # Errors
    /// When the file or the keyring entry cannot be read. The error names the variable and the source, never its
    /// content.
    pub fn secret(self, name: &str) -> Result<Option<Secret>, ToolError> {
        self.secret_of(&[name])
    }

    /// The same for a secret with several names: each kind of source is tried for all names before the next kind.
    ///
    /// # Errors
    /// As [`Vars::secret`].
    pub fn secret_of(self, names: &[&str]) -> Result<Option<Secret>, ToolError> {
        if let Some(value) = names.iter().find_map(|name| self.text(name)) {
            return Ok(Some(Secret(value)));
        }
        for name in names {
            if let Some(secret) = self.secret_in_file(name)? {
                return secret.first_line(name, "FILE");
            }
        }
        for name in names {
            if let Some(secret) = self.secret_in_keyring(name)? {
                return secret.first_line(name, "KEYRING");
            }
        }
        Ok(None)
    }

    /// Secrets of one line each, from all three sources, in the order of [`Vars::secret`]. Whitespace around lines and
    /// empty lines are ignored.
    ///
    /// # Errors
    /// As [`Vars::secret`].
    pub fn secret_lines(self, name: &str) -> Result<Vec<Secret>, ToolError> {
        let sources = [self.text(name).map(Secret), self.secret_in_file(name)?, self.secret_in_keyring(name)?];
        let lines = sources.iter().flatten().flat_map(|secret| secret.0.lines());
        Ok(lines.map(str::trim).filter(|line| !line.is_empty()).map(Secret::new).collect())
    }

    fn secret_in_file(self, name: &str) -> Result<Option<Secret>, ToolError> {
        let name = format!("{name}_FILE");
        let Some(path) = self.text(&name) else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(SECRET_BYTES_MAX + 1).read_to_end(&mut bytes));
        let why = match read {
            Err(e) => e.to_string(),
            Ok(_) if bytes.len() as u64 > SECRET_BYTES_MAX => format!("it is larger than {SECRET_BYTES_MAX} bytes"),
            Ok(_) => match String::from_utf8(bytes) {
                Ok(text) => return Ok(Some(Secret(text))),
                // The error contains the bytes.
                Err(_) => "it is not valid UTF-8".to_owned(),
            },
        };
        Err(ToolError::new(format!("{name} cannot be read: {path}: {why}")))
    }

    fn secret_in_keyring(self, name: &str) -> Result<Option<Secret>, ToolError> {
        let name = format!("{name}_KEYRING");
        let Some(place) = self.text(&name) else { return Ok(None) };
        // The value may be the secret itself, which must not be logged.
        let (service, account) = match place.rsplit_once('/') {
            Some((service, account)) if !service.is_empty() && !account.is_empty() => (service, account),
            _ => {
                return Err(
                    ToolError::new(format!("{name} is not a valid keyring entry")).hint("Write SERVICE/ACCOUNT.")
                );
            }
        };
        let Some(look) = self.keyring else {
            return Err(ToolError::new(format!("{name}: this program does not support keyrings")));
        };
        look(service, account).map(Some).map_err(|fault| named(&name, &fault))
    }

    /// The unchanged value of the variable; `None` if it is unset or empty.
    #[must_use]
    pub fn text(self, name: &str) -> Option<String> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    /// The same, but keeps an empty value: for variables passed to other programs.
    #[must_use]
    pub fn raw(self, name: &str) -> Option<String> {
        (self.get)(name)
    }

    /// A switch, written as those of [`options!`](crate::options): `1` or `0`, `true` or `false`, `yes` or `no`, `on` or `off`.
    ///
    /// # Errors
    /// When it is none of these. The error names the variable.
    pub fn switch(self, name: &str) -> Result<Option<bool>, ToolError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        boolean(&text).map(Some).map_err(|fault| named(name, &fault))
    }

    /// A path, unchanged.
    #[must_use]
    pub fn path(self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    /// A list separated by `separator` or newlines; whitespace around items and empty items are ignored.
    #[must_use]
    pub fn list(self, name: &str, separator: char) -> Option<Vec<String>> {
        let value = self.text(name)?;
        let items = value.split([separator, '\n']).map(str::trim).filter(|item| !item.is_empty());
        Some(items.map(str::to_owned).collect())
    }
}

/// The value of a switch.
pub(crate) fn boolean(text: &str) -> Result<bool, ToolError> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        other => Err(ToolError::new(format!("invalid value: {other}")).hint("Use 1 or 0.")),
    }
}

/// The error, prefixed with the name of the variable.
fn named(name: &str, fault: &ToolError) -> ToolError {
    let named = ToolError::new(format!("{name}: {}", fault.message()));
    fault.advice().map_or(named.clone(), |advice| named.hint(advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const HIDDEN: &str = "hunter2";

    /// What the variables say, with a keyring that knows one entry and writes down what it is asked for.
    fn ask<T>(
        variables: &[(&str, &str)],
        what: impl Fn(Vars<'_>) -> Result<T, ToolError>,
    ) -> (Result<T, ToolError>, Vec<String>) {
        let asked = RefCell::new(Vec::new());
        let get = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        let look = |service: &str, account: &str| {
            asked.borrow_mut().push(format!("{service}|{account}"));
            match account {
                "known" => Ok(Secret::new("from the keyring\nrest\n")),
                _ => Err(ToolError::new("nothing is kept there").hint("Keep it there.")),
            }
        };
        let said = what(Vars::new(&get).keyring(&look));
        (said, asked.into_inner())
    }

    fn file(name: &str, bytes: &[u8]) -> String {
        let path = std::env::temp_dir().join(format!("linchpin-kit-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    #[test]
    fn a_secret_comes_from_the_variable_then_the_file_then_the_keyring() {
        let path = file("order", b"from the file\r\nrest\n");
        let (all, empty) = (("KEY", "said"), ("KEY", ""));
        let (by_file, by_ring) = (("KEY_FILE", path.as_str()), ("KEY_KEYRING", "https://a.test/x/known"));
        for (variables, want, asked) in [
            (vec![], None, 0),
            (vec![all, by_file, by_ring], Some("said"), 0),
            (vec![empty, by_file, by_ring], Some("from the file"), 0),
            (vec![empty, ("KEY_FILE", ""), by_ring], Some("from the keyring"), 1),
            (vec![("OTHER", "x"), ("OTHER_FILE", "/nowhere")], None, 0),
        ] {
            let (said, places) = ask(&variables, |vars| vars.secret("KEY"));
            assert_eq!(said.unwrap().as_ref().map(Secret::reveal), want, "{variables:?}");
            assert_eq!(places, vec!["https://a.test/x|known"; asked]);
        }
        // The kind of source counts before the order of names.
        let (said, _) = ask(&[by_file, ("ALIAS", "alias")], |vars| vars.secret_of(&["KEY", "ALIAS"]));
        assert_eq!(said.unwrap().unwrap().reveal(), "alias");
        let (said, _) = ask(&[("ALIAS_FILE", &path), by_ring], |vars| vars.secret_of(&["KEY", "ALIAS"]));
        assert_eq!(said.unwrap().unwrap().reveal(), "from the file");
        // Lines add up.
        let (said, _) = ask(&[("KEY", " a \n\nb"), by_file, by_ring], |vars| vars.secret_lines("KEY"));
        let lines: Vec<String> = said.unwrap().iter().map(|secret| secret.reveal().to_owned()).collect();
        assert_eq!(lines, ["a", "b", "from the file", "rest", "from the keyring", "rest"]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_cannot_be_read_is_named_and_nothing_of_it_is_shown() {
        let binary = file("binary", b"hunter2 \xff");
        let large = file("large", "hunter2 ".repeat(1 << 18).as_bytes());
        for (variable, value, says) in [
            ("KEY_FILE", "/nowhere/key", "KEY_FILE cannot be read: /nowhere/key: "),
            ("KEY_FILE", &binary, "not valid UTF-8"),
            ("KEY_FILE", &large, "larger than 1048576 bytes"),
            ("KEY_KEYRING", HIDDEN, "KEY_KEYRING is not a valid keyring entry\nHint: Write SERVICE/ACCOUNT."),
            ("KEY_KEYRING", "hunter2/", "KEY_KEYRING is not a valid keyring entry"),
            ("KEY_KEYRING", "a/b", "KEY_KEYRING: nothing is kept there\nHint: Keep it there."),
        ] {
            for fault in [
                ask(&[(variable, value)], |vars| vars.secret("KEY")).0.map(|_| ()).unwrap_err(),
                ask(&[(variable, value)], |vars| vars.secret_lines("KEY")).0.map(|_| ()).unwrap_err(),
            ] {
                assert!(fault.to_string().contains(says), "{fault}");
                assert!(!format!("{fault:?}").contains(HIDDEN), "{fault:?}");
            }
        }
        let get = |name: &str| (name == "KEY_KEYRING").then(|| "a/b".to_owned());
        let fault = Vars::new(&get).secret("KEY").unwrap_err();
        assert_eq!(fault.message(), "KEY_KEYRING: this program does not support keyrings");
        let blank = file("blank", b"\nhunter2");
        let fault = ask(&[("KEY_FILE", &blank)], |vars| vars.secret("KEY")).0.unwrap_err();
        assert_eq!(fault.message(), "KEY_FILE: the first line is empty");
        for path in [binary, large, blank] {
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn an_empty_variable_is_one_that_is_not_set() {
        let read = |value: Option<&str>| {
            // The files and the keyring's entries of secrets are empty too.
            let get = |name: &str| value.filter(|value| name == "X" || value.is_empty()).map(str::to_owned);
            let vars = Vars::new(&get);
            let secret = vars.secret("X")?.map(|secret| secret.reveal().to_owned());
            let lists = (vars.list("X", ',').unwrap_or_default(), vars.secret_lines("X")?.len());
            Ok((vars.text("X"), vars.path("X"), secret, lists))
        };
        let unset: Result<_, ToolError> = read(None);
        assert!(unset.is_ok());
        assert_eq!(read(Some("")), unset);
        let set = read(Some("1")).unwrap();
        assert_eq!(set, (Some("1".into()), Some("1".into()), Some("1".into()), (vec!["1".into()], 1)));
        let get = |_: &str| Some(String::new());
        assert_eq!(Vars::new(&get).raw("X").as_deref(), Some(""), "for other programs it is what it is");
    }

    #[test]
    fn a_secret_is_not_shown() {
        let secret: Secret = serde_json::from_str("\"hunter2\"").unwrap();
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "*** Some(***)");
        assert_eq!(secret.reveal(), HIDDEN);
    }
}
