//! A client's roots: what they do, which paths they name, and where paths really lead.

use crate::{ToolError, clip};
use linchpin::{Cx, Error};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// How long a client may take to tell its roots, unless a server has less time for the whole call.
pub const ROOTS_WAIT: Duration = Duration::from_secs(10);

/// Bytes of the reason why a client did not tell its roots: it may be in the client's words.
const WHY_BYTES_SHOWN: usize = 300;

/// Links followed at the end of one path before it is given up.
const LINKS_MAX: usize = 40;

/// What a client's roots do (`--roots`). Not every server takes all of them: it says which in a list for
/// [`RootsPolicy::parse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootsPolicy {
    /// Nothing; the client is not asked for them.
    Ignore,
    /// Only what is both configured and in a root can be used. Roots never add anything.
    Narrow,
    /// Where nothing is configured, what is in a root can be used. Roots never add to what is configured.
    Use,
    /// Roots take the place of what is configured, as in the published filesystem server.
    Replace,
}

impl RootsPolicy {
    /// The policy of this word, out of those that a server takes.
    ///
    /// # Errors
    /// When it is none of them; the hint names them.
    pub fn parse(text: &str, taken: &[Self]) -> Result<Self, ToolError> {
        let found = taken.iter().find(|policy| policy.word() == text);
        found.copied().ok_or_else(|| unknown(text, taken))
    }

    /// Itself if it is one of those that a server takes, for configurations that come from elsewhere than words.
    ///
    /// # Errors
    /// As [`RootsPolicy::parse`].
    pub fn restrict_to(self, taken: &[Self]) -> Result<Self, ToolError> {
        if taken.contains(&self) { Ok(self) } else { Err(unknown(self.word(), taken)) }
    }

    /// The roots of the client that makes this call, as it tells them now. They are asked for on each call, so that they are
    /// always the present ones. `None` where they do not count: the policy ignores them, or the client never said that it has
    /// any.
    ///
    /// # Errors
    /// When a client that says it has roots does not tell them: it refuses, answers something else, or does not answer within
    /// `patience` ([`ROOTS_WAIT`], unless the server has less). What it may use is not known then, so it may use nothing.
    /// Where requests are stateless also while it is still to be asked: pass the error on and the call comes again with the
    /// answer.
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
            "Error: the roots of this client are not known: {}",
            clip(&why, WHY_BYTES_SHOWN).text
        ));
        let hint = "It says that it has roots, so nothing may be used without them. Try again; the operator can \
                    start it with --roots ignore, so that only what is configured counts.";
        Err(fault.hint(hint).into())
    }

    fn word(self) -> &'static str {
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

/// The path that a root names: a `file://` URI without a host or with `localhost`, percent signs decoded, or an absolute
/// path. `None` for everything else, for example other schemes. The path need not exist.
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

/// What was percent-encoded, which need not be text. `None` when it is not readable or holds a NUL.
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

/// The path with every link followed, also where its end does not exist yet. Touches the disk; compare the result by
/// [`Path::starts_with`], which compares whole names.
#[must_use]
pub fn resolve_symlinks(path: &Path) -> PathBuf {
    let (mut tail, mut head, mut links) = (Vec::new(), path.to_owned(), 0);
    let mut base = loop {
        if let Ok(real) = fs::canonicalize(&head) {
            break real;
        }
        // A link to something that does not exist: where it leads counts, not where it stands.
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
