//! A client's roots: their effect, their paths, and symlink resolution.

use crate::{ToolError, clip};
use linchpin::{Cx, Error};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Default timeout of a `roots/list` request; shorter if the server's call timeout is.
pub const ROOTS_WAIT: Duration = Duration::from_secs(10);

/// Maximum bytes of a client's error text for a failed `roots/list`.
const WHY_BYTES_SHOWN: usize = 300;

/// Maximum symlinks followed at the end of one path.
const LINKS_MAX: usize = 40;

/// The effect of a client's roots (`--roots`). A server that does not support all of them passes a list to
/// [`RootsPolicy::parse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootsPolicy {
    /// Roots are not requested.
    Ignore,
    /// Only paths that are both configured and in a root are accessible.
    Narrow,
    /// Paths in a root are accessible if nothing is configured.
    Use,
    /// Roots replace the configured paths, as in the published filesystem server.
    Replace,
}

impl RootsPolicy {
    /// Parses a policy, out of those that a server supports.
    ///
    /// # Errors
    /// When it is none of them; the hint names them.
    pub fn parse(text: &str, taken: &[Self]) -> Result<Self, ToolError> {
        let found = taken.iter().find(|policy| policy.word() == text);
        found.copied().ok_or_else(|| unknown(text, taken))
    }

    /// Checks that a server supports this policy, for configurations built in code.
    ///
    /// # Errors
    /// As [`RootsPolicy::parse`].
    pub fn restrict_to(self, taken: &[Self]) -> Result<Self, ToolError> {
        if taken.contains(&self) { Ok(self) } else { Err(unknown(self.word(), taken)) }
    }

    /// Requests the current roots of the calling client, on each call. `None` if they have no effect: the policy
    /// ignores them, or the client did not declare roots.
    ///
    /// # Errors
    /// When a client that declared roots returns an error or an invalid result, or does not answer within `patience`
    /// ([`ROOTS_WAIT`], or less). Its access is unknown then, so it gets none. For stateless requests also before the
    /// roots were requested: propagate the error, and the client retries the call with the response.
    pub async fn ask(self, cx: &Cx, patience: Duration) -> Result<Option<Vec<String>>, Error> {
        if self == Self::Ignore || !cx.caps().roots {
            return Ok(None);
        }
        let why = match tokio::time::timeout(patience, cx.roots("roots")).await {
            Ok(Ok(roots)) => return Ok(Some(roots.into_iter().map(|root| root.uri).collect())),
            Ok(Err(error)) if error.is_input_required() => return Err(error.into()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the client did not answer roots/list within {} s", patience.as_secs_f64()),
        };
        let fault = ToolError::new(format!(
            "Error: the roots of this client are unknown: {}",
            clip(&why, WHY_BYTES_SHOWN).text
        ));
        let hint = "It declares roots, so nothing is accessible without them. Try again; the operator can \
                    start the server with --roots ignore to use only the configured paths.";
        Err(fault.hint(hint).into())
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Narrow => "narrow",
            Self::Use => "use",
            Self::Replace => "replace",
        }
    }
}

fn unknown(word: &str, taken: &[RootsPolicy]) -> ToolError {
    let words: Vec<&str> = taken.iter().map(|policy| policy.word()).collect();
    let words = match words.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        all => all.concat(),
    };
    ToolError::new(format!("Unknown value for roots: {word}")).hint(format!("Use {words}."))
}

/// The path of a root: a `file://` URI without a host or with `localhost`, percent-decoded, or an absolute path. `None`
/// for everything else, for example other schemes. The path need not exist.
#[must_use]
pub fn root_path(root: &str) -> Option<PathBuf> {
    let path = match root.split_at_checked(7) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file://") => {
            let rest = rest.strip_prefix("localhost").unwrap_or(rest);
            // On Windows the path of `file:///C:/x` is `C:/x`.
            let rest = if cfg!(windows) { rest.strip_prefix('/')? } else { rest };
            PathBuf::from(percent_decoded(rest)?)
        }
        _ => PathBuf::from(root),
    };
    path.is_absolute().then_some(path)
}

/// Percent-decodes bytes that need not be UTF-8. `None` if the encoding is invalid or they contain a NUL.
#[must_use]
pub fn percent_decoded(text: &str) -> Option<OsString> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (high, low) = (char::from(rest.next()?).to_digit(16)?, char::from(rest.next()?).to_digit(16)?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    if bytes.contains(&0) {
        return None;
    }
    #[cfg(unix)]
    return Some(std::os::unix::ffi::OsStringExt::from_vec(bytes));
    #[cfg(not(unix))]
    return String::from_utf8(bytes).ok().map(OsString::from);
}

/// Resolves all symlinks of a path whose end need not exist. Accesses the disk; compare the result with
/// [`Path::starts_with`], which compares whole components.
#[must_use]
pub fn resolve_symlinks(path: &Path) -> PathBuf {
    let (mut tail, mut head, mut links) = (Vec::new(), path.to_owned(), 0);
    let mut base = loop {
        if let Ok(real) = fs::canonicalize(&head) {
            break real;
        }
        // A dangling symlink: its target counts, not its location.
        if links < LINKS_MAX
            && let Ok(target) = fs::read_link(&head)
        {
            links += 1;
            head = head.parent().unwrap_or(Path::new("/")).join(target);
            continue;
        }
        match head.components().next_back() {
            Some(Component::RootDir | Component::Prefix(_)) | None => break head,
            Some(last) => tail.push(last.as_os_str().to_owned()),
        }
        head.pop();
    };
    for part in tail.iter().rev() {
        match Path::new(part).components().next() {
            Some(Component::ParentDir) => {
                base.pop();
            }
            Some(Component::Normal(name)) => base.push(name),
            _ => {}
        }
    }
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_takes_its_own_policies_and_names_them() {
        use RootsPolicy::{Ignore, Narrow, Replace, Use};
        let all: &[RootsPolicy] = &[Ignore, Narrow, Use, Replace];
        for (word, taken, expected) in [
            ("ignore", all, Ok(Ignore)),
            ("narrow", all, Ok(Narrow)),
            ("use", all, Ok(Use)),
            ("replace", all, Ok(Replace)),
            ("x", all, Err("Use ignore, narrow, use or replace.")),
            ("Use", all, Err("Use ignore, narrow, use or replace.")),
            ("", all, Err("Use ignore, narrow, use or replace.")),
            ("narrow", &all[..2], Ok(Narrow)),
            ("use", &all[..2], Err("Use ignore or narrow.")),
            ("replace", &all[..3], Err("Use ignore, narrow or use.")),
            ("narrow", &all[..1], Err("Use ignore.")),
        ] {
            let told = |hint: &str| ToolError::new(format!("Unknown value for roots: {word}")).hint(hint);
            assert_eq!(RootsPolicy::parse(word, taken), expected.map_err(told), "{word} {taken:?}");
            if let Some(policy) = all.iter().find(|policy| policy.word() == word) {
                assert_eq!(policy.restrict_to(taken), RootsPolicy::parse(word, taken));
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn roots_are_file_uris_or_absolute_paths() {
        for (root, path) in [
            ("file:///a/b", Some("/a/b")),
            ("FILE:///a", Some("/a")),
            ("file://localhost/a", Some("/a")),
            ("file:///a%20b/%C3%A9%25", Some("/a b/é%")),
            ("/plain/é", Some("/plain/é")),
            ("file:///", Some("/")),
            ("file://host/a", None),
            ("file://localhost.evil/a", None),
            ("file:///%zz", None),
            ("file:///%2", None),
            ("file:///a%00b", None),
            ("file:", None),
            ("relative", None),
            ("https://h/x", None),
            ("", None),
        ] {
            assert_eq!(root_path(root).as_deref(), path.map(Path::new), "{root}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn paths_settle_where_their_links_lead() {
        use std::os::unix::fs::symlink;
        let base = fs::canonicalize(std::env::temp_dir()).unwrap().join(format!("kit-roots-{}", std::process::id()));
        fs::create_dir_all(base.join("a/b")).unwrap();
        symlink(base.join("a/b"), base.join("in")).unwrap();
        symlink("/nowhere/at/all", base.join("a/dangling")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        for (path, real) in [
            ("in/x/../y", base.join("a/b/y")),
            ("a/dangling/x", "/nowhere/at/all/x".into()),
            ("a/../b/./c", base.join("b/c")),
            ("none/../..", base.parent().unwrap().to_owned()),
            ("loop/x", base.join("loop/x")),
        ] {
            assert_eq!(resolve_symlinks(&base.join(path)), real, "{path}");
        }
        fs::remove_dir_all(&base).unwrap();
    }
}
