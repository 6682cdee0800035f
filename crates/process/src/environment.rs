//! The environment of a child process.

use crate::{mask, text};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};

/// The variables of this program that are passed to every child by default, together with all that begin with `LC_`.
/// Call [`Environment::clear`] to pass none of them.
///
/// They are the variables that programs need to find their files, directories, caches and the network, so that `npx`,
/// `uvx`, `docker` and version managers work, also behind a proxy and with private certificates. None of them is meant
/// for credentials, but the URL of a proxy may contain some.
pub const PASSED: &[&str] = &[
    // The user and the terminal.
    "HOME",
    "LOGNAME",
    "USER",
    "SHELL",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "LANG",
    "LANGUAGE",
    "TZ",
    // Where things are.
    "PATH",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_DIRS",
    // The network.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "NIX_SSL_CERT_FILE",
    // Tools that start servers.
    "NVM_DIR",
    "VOLTA_HOME",
    "FNM_DIR",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "npm_config_cache",
    "npm_config_prefix",
    "UV_CACHE_DIR",
    "UV_TOOL_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "PIPX_HOME",
    "PYENV_ROOT",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "JAVA_HOME",
    "DOTNET_ROOT",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST",
    // Windows.
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMMONPROGRAMFILES",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// The environment variables of a child process. By default, those in [`PASSED`].
///
/// # Example
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use linchpin_process::Command;
/// use tokio::io::AsyncReadExt as _;
///
/// let mut command = Command::new("sh");
/// command.args.extend(["-c".into(), "echo $MODE".into()]);
/// command.environment.set("MODE".into(), "test".into());
/// command.environment.pass("AWS_PROFILE".into());
///
/// let mut running = command.start(4096, |_| {}).unwrap();
/// let mut output = String::new();
/// running.stdout.read_to_string(&mut output).await.unwrap();
/// assert_eq!(output, "test\n");
/// # });
/// ```
#[derive(Clone, Default)]
pub struct Environment {
    base: Base,
    passed: Vec<OsString>,
    set: BTreeMap<OsString, OsString>,
}

/// Environment variables that are passed by default.
#[derive(Clone, Copy, Default, Hash)]
enum Base {
    #[default]
    Usual,
    All,
    Nothing,
}

impl Environment {
    /// Sets a variable.
    pub fn set(&mut self, name: OsString, value: OsString) {
        self.set.insert(name, value);
    }

    /// Passes a variable of this program that is not in [`PASSED`], if it is set.
    pub fn pass(&mut self, name: OsString) {
        self.passed.push(name);
    }

    /// Passes the whole environment of this program, credentials included.
    pub fn inherit(&mut self) {
        self.base = Base::All;
    }

    /// Passes nothing of this program's environment, and forgets the variables set so far.
    pub fn clear(&mut self) {
        *self = Environment { base: Base::Nothing, ..Environment::default() };
    }

    /// All variables of the child, out of those of this program.
    pub(crate) fn of(&self, ours: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<OsString, OsString> {
        let mut all = BTreeMap::new();
        all.extend(ours.filter(|(name, value)| self.passes(name, value)));
        all.extend(self.set.iter().map(|(name, value)| (name.clone(), value.clone())));
        all
    }

    fn passes(&self, name: &OsStr, value: &OsStr) -> bool {
        if self.passed.iter().any(|passed| passed == name) {
            return true;
        }
        match self.base {
            Base::All => true,
            Base::Nothing => false,
            // A shell function in a variable is code.
            Base::Usual => usual(&text(name)) && !text(value).starts_with("()"),
        }
    }

    /// Values that were set and are called like secrets.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = String> {
        self.set.iter().filter(|(name, _)| mask::is_secret_name(&text(name))).map(|(_, value)| text(value))
    }
}

impl Hash for Environment {
    fn hash<H: Hasher>(&self, all: &mut H) {
        (self.base, &self.passed, &self.set).hash(all);
    }
}

/// Names have no case on Windows.
fn usual(name: &str) -> bool {
    let is = |known: &&str| if cfg!(windows) { known.eq_ignore_ascii_case(name) } else { *known == name };
    name.starts_with("LC_") || PASSED.iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_what_it_needs_and_no_credentials() {
        let ours = [
            ("PATH", "/bin"),
            ("HOME", "/h"),
            ("HTTPS_PROXY", "http://p"),
            ("LC_ALL", "C"),
            ("GITHUB_TOKEN", "t"),
            ("AWS_PROFILE", "p"),
            ("TERM", "() { evil; }"),
        ];
        let names = |configure: fn(&mut Environment)| {
            let mut environment = Environment::default();
            configure(&mut environment);
            let of = environment.of(ours.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
            of.into_iter()
                .map(|(name, value)| format!("{}={}", text(&name), text(&value)))
                .collect::<Vec<_>>()
                .join(" ")
        };
        type Case = (fn(&mut Environment), &'static str);
        let cases: &[Case] = &[
            (|_| {}, "HOME=/h HTTPS_PROXY=http://p LC_ALL=C PATH=/bin"),
            (|e| e.pass("AWS_PROFILE".into()), "AWS_PROFILE=p HOME=/h HTTPS_PROXY=http://p LC_ALL=C PATH=/bin"),
            (
                |e| {
                    e.set("A".into(), "1".into());
                    e.clear();
                    e.set("B".into(), "2".into())
                },
                "B=2",
            ),
            (
                |e| {
                    e.clear();
                    e.pass("PATH".into())
                },
                "PATH=/bin",
            ),
        ];
        for (configure, expected) in cases {
            assert_eq!(names(*configure), *expected);
        }
        assert!(
            names(|e| {
                e.inherit();
                e.set("HOME".into(), "/x".into())
            })
            .contains("GITHUB_TOKEN=t HOME=/x HTTPS")
        );
    }
}
