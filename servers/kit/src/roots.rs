//! A client's roots as paths, and paths as they really are.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Links followed at the end of one path before it is given up.
const LINKS_MAX: usize = 40;

/// The path that a root names: a `file://` URI without a host or with `localhost`, percent signs decoded, or an absolute
/// path. `None` for everything else, for example other schemes. The path need not exist.
#[must_use]
pub fn root_path(root: &str) -> Option<PathBuf> {
    let path = match root.split_at_checked(7) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file://") => {
            let rest = rest.strip_prefix("localhost").unwrap_or(rest);
            // On Windows the path of `file:///C:/x` is `C:/x`.
            let rest = if cfg!(windows) { rest.strip_prefix('/')? } else { rest };
            PathBuf::from(decoded(rest)?)
        }
        _ => PathBuf::from(root),
    };
    path.is_absolute().then_some(path)
}

fn decoded(text: &str) -> Option<OsString> {
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
pub fn settled(path: &Path) -> PathBuf {
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
            assert_eq!(settled(&base.join(path)), real, "{path}");
        }
        fs::remove_dir_all(&base).unwrap();
    }
}
