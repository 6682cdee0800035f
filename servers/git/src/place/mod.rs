//! Locates a repository, and checks that all of it is inside the allowed directories.
//!
//! Git finds the parts of a repository by references: a `.git` file, `commondir`, `core.worktree`, alternates, symlinks.
//! Each of these is resolved here first, and refused by name if it leads outside.

pub(crate) mod bounds;
pub(crate) mod files;
pub(crate) mod head;
pub(crate) mod index;

use crate::place::bounds::Bounds;
use crate::place::files::small_file;

use linchpin_kit::{ToolError, clip, resolve_symlinks};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The paths of a repository.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The top of the work tree; of a bare repository, the repository itself. Git runs here.
    pub(crate) top: PathBuf,
    pub(crate) bare: bool,
    pub(crate) git_dir: PathBuf,
    /// The directory of refs, objects and configuration; differs from `git_dir` in linked work trees.
    pub(crate) common: PathBuf,
    /// Whether all of it belongs to the user of this process, which git requires too.
    pub(crate) own: bool,
}

impl Place {
    /// Variables that pin git to the repository that was checked: git's own search could end up in another one if it
    /// judged a directory differently. Repositories of other users are left to that search, because only it applies
    /// `safe.directory`.
    pub(crate) fn pins(&self) -> Vec<(&'static str, OsString)> {
        let mut vars = Vec::new();
        if self.own {
            vars.push(("GIT_DIR", self.git_dir.clone().into_os_string()));
            if self.bare {
                vars.push(("GIT_IMPLICIT_WORK_TREE", OsString::from("0")));
            }
        }
        vars
    }

    /// Its configuration files that exist.
    pub(crate) fn configs(&self) -> Vec<PathBuf> {
        let all =
            [self.common.join("config"), self.git_dir.join("config.worktree"), self.common.join("config.worktree")];
        let mut found: Vec<PathBuf> = all.into_iter().filter(|path| path.symlink_metadata().is_ok()).collect();
        found.dedup();
        found
    }

    /// Finds the repository that contains `given`, within `bounds`.
    pub(crate) fn find(bounds: &Bounds, given: &str) -> Result<Self, ToolError> {
        if given.contains('\0') || given.is_empty() {
            return Err(ToolError::invalid("Invalid path: repo_path").hint("Pass the absolute path of a repository."));
        }
        let shown = clip(given, ECHO_MAX).text;
        let path = absolute(Path::new(given))?;
        let path = resolve_symlinks(&path);
        if !bounds.hold(&path) {
            return Err(match bounds.dirs.as_slice() {
                [] => ToolError::denied("No repository is allowed on this server")
                    .hint("The operator can allow repositories with --repository DIR, or all with --allow-any."),
                _ => ToolError::denied(format!(
                    "Repository path '{shown}' is outside the allowed repository {}",
                    bounds.shown()
                ))
                .hint("Use a path inside it. The operator can add others with --repository."),
            });
        }
        if !path.exists() {
            return Err(ToolError::not_found(format!("'{shown}' does not exist"))
                .hint("Pass the absolute path of a repository."));
        }
        let Some(place) = Self::above(bounds, &path)? else {
            return Err(ToolError::not_found(format!("'{shown}' is not in a git repository"))
                .hint("Pass the top level of a repository, or a directory below it."));
        };
        place.inspect(bounds)?;
        Ok(place)
    }

    /// The repository that contains `path`, in which symlinks are resolved.
    pub(crate) fn above(bounds: &Bounds, path: &Path) -> Result<Option<Self>, ToolError> {
        for dir in path.ancestors() {
            if !bounds.hold(dir) {
                break;
            }
            let dot = dir.join(".git");
            if dot.symlink_metadata().is_ok() {
                return Self::at(bounds, dir, &dot);
            }
            if is_repository(dir, dir) {
                if dir.file_name().is_some_and(|name| name == ".git")
                    && let Some(top) = dir.parent()
                    && bounds.hold(top)
                {
                    return Self::at(bounds, top, dir);
                }
                let outer = dir.ancestors().skip(1).find(|outer| outer.join(".git").symlink_metadata().is_ok());
                if let Some(outer) = outer {
                    return Err(ToolError::denied(format!(
                        "'{}' is a bare repository inside the repository '{}', which is not safe (safe.bareRepository)",
                        dir.display(),
                        outer.display()
                    ))
                    .hint("Pass the work tree of the intended repository."));
                }
                // Git would read the configuration from there.
                if dir.join("commondir").symlink_metadata().is_ok() {
                    return Err(ToolError::denied(format!(
                        "'{}' is a bare repository with a commondir",
                        dir.display()
                    ))
                    .hint("Nothing was run. Pass the intended repository."));
                }
                let (top, own) = (dir.to_owned(), is_own(&[dir]));
                return Ok(Some(Self { git_dir: top.clone(), common: top.clone(), top, bare: true, own }));
            }
        }
        Ok(None)
    }

    /// The repository whose work tree is `top` and whose `.git` is `dot`.
    pub(crate) fn at(bounds: &Bounds, top: &Path, dot: &Path) -> Result<Option<Self>, ToolError> {
        let at = bounds.inside(dot, ".git")?;
        let git_dir = if at.is_dir() {
            at
        } else {
            let text = small_file(&at, ".git")?;
            let Some(target) = text.strip_prefix("gitdir: ") else {
                return Err(ToolError::new(format!("'{}' is neither a directory nor a gitdir file", dot.display())));
            };
            bounds.inside(&top.join(one_path(target, ".git")?), ".git file (gitdir)")?
        };
        let common = match small_file(&git_dir.join("commondir"), "commondir") {
            Ok(text) => bounds.inside(&git_dir.join(one_path(&text, "commondir")?), "commondir")?,
            Err(fault) if fault.is_not_found() => git_dir.clone(),
            Err(fault) => return Err(fault),
        };
        if !is_repository(&git_dir, &common) {
            return Ok(None);
        }
        let own = is_own(&[top, dot, &git_dir]);
        Ok(Some(Self { top: top.to_owned(), bare: false, git_dir, common, own }))
    }

    /// Whether this path of the work tree leads over a symlink. Such a path is not tracked, whatever the index says.
    pub(crate) fn beyond_link(&self, path: &Path) -> bool {
        let above = path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty());
        above.map(|dir| self.top.join(dir)).any(|dir| dir.is_symlink())
    }

    /// `core.worktree` must name the work tree that was found.
    pub(crate) fn check_worktree(&self, bounds: &Bounds, value: &str) -> Result<(), ToolError> {
        let path = bounds.inside(&self.git_dir.join(value), "core.worktree")?;
        if self.bare || path != self.top {
            return Err(ToolError::denied("The repository's configuration sets another work tree (core.worktree)")
                .hint("Use the path of that work tree if it has a .git of its own."));
        }
        Ok(())
    }

    /// A path argument, relative to the top level, which must be in the work tree with symlinks resolved. The result
    /// can be passed to git after `--`.
    pub(crate) fn inner(&self, given: &str) -> Result<String, ToolError> {
        let shown = clip(given, ECHO_MAX).text;
        let outside = || {
            ToolError::denied(format!("Path '{shown}' is outside the repository '{}'", self.top.display()))
                .hint("Paths are relative to the top level of the repository.")
        };
        if given.contains('\0') || given.is_empty() || given.len() > PATH_MAX {
            return Err(ToolError::invalid(format!("Invalid path: '{}'", shown)));
        }
        let path = self.top.join(given);
        let resolved = resolve_symlinks(&path);
        if !resolved.starts_with(&self.top) || !self.bare && resolved.starts_with(self.top.join(".git")) {
            return Err(outside());
        }
        if Path::new(given).is_relative() {
            return Ok(given.to_owned());
        }
        // Absolute: the directory is resolved, the last component is not, because a symlink itself may be meant.
        let true_name = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => resolve_symlinks(parent).join(name),
            _ => resolved,
        };
        let relative = true_name.strip_prefix(&self.top).map_err(|_| outside())?;
        Ok(match relative.to_string_lossy() {
            text if text.is_empty() => ".".to_owned(),
            text => text.into_owned(),
        })
    }
}

/// The top level of the repository that contains `given`; for paths from the operator.
pub(crate) fn top_of(given: &Path) -> Result<PathBuf, ToolError> {
    let shown = given.display();
    let path = fs::canonicalize(given).map_err(|_| {
        ToolError::new(format!("{shown} does not exist")).hint("Pass an existing repository with --repository.")
    })?;
    let everything = Bounds { any: true, ..Bounds::default() };
    let found = Place::above(&everything, &path)?;
    found.map(|place| place.top).ok_or_else(|| {
        ToolError::new(format!("{shown} is not a valid Git repository"))
            .hint("Pass a repository, or a directory inside one, with --repository.")
    })
}

/// The path of a root, if it exists.
pub(crate) fn root_path(root: &str) -> Option<PathBuf> {
    fs::canonicalize(linchpin_kit::root_path(root)?).ok()
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf, ToolError> {
    std::path::absolute(path).map_err(|_| ToolError::new(format!("Invalid path: {}", path.display())))
}

/// Whether git would accept `git_dir` as a repository, by its own rules. Otherwise it would move on to another one,
/// whose configuration was not checked.
fn is_repository(git_dir: &Path, common: &Path) -> bool {
    // The dot requires search permission, as in git.
    is_head(&git_dir.join("HEAD")) && common.join("objects/.").is_dir() && common.join("refs/.").is_dir()
}

/// Whether git would accept this HEAD: a symlink to a ref, a ref name, or an object id.
fn is_head(path: &Path) -> bool {
    let Ok(meta) = path.symlink_metadata() else { return false };
    if meta.is_symlink() {
        return fs::read_link(path).is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(b"refs/"));
    }
    let mut head = Vec::new();
    let read = |head: &mut Vec<u8>| fs::File::open(path)?.take(HEAD_READ).read_to_end(head);
    if !meta.is_file() || read(&mut head).is_err() {
        return false;
    }
    if let Some(name) = head.strip_prefix(b"ref:") {
        let blanks = name.iter().take_while(|byte| b" \t\n\r".contains(byte)).count();
        if name[blanks..].starts_with(b"refs/") {
            return true;
        }
    }
    head.get(..40).is_some_and(|id| id.iter().all(u8::is_ascii_hexdigit))
}

/// Whether these belong to the user of this process.
#[cfg(unix)]
fn is_own(paths: &[&Path]) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    paths.iter().all(|path| path.symlink_metadata().is_ok_and(|meta| meta.uid() == user))
}

#[cfg(not(unix))]
fn is_own(_: &[&Path]) -> bool {
    false
}

/// The path in one of git's files, as git reads it: only line ends are removed; spaces belong to the name. Refused if
/// git would stop reading in the middle.
fn one_path<'a>(text: &'a str, what: &str) -> Result<&'a str, ToolError> {
    let path = text.trim_end_matches(['\n', '\r']);
    if path.is_empty() || path.contains(char::is_control) {
        return Err(ToolError::new(format!("{what} cannot be parsed")).hint("Nothing was run."));
    }
    Ok(path)
}

/// Maximum bytes of HEAD that git reads to check it.
const HEAD_READ: u64 = 255;

pub(crate) const PATH_MAX: usize = 4_096;

/// Maximum bytes of an argument that an error repeats.
const ECHO_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_uris_or_absolute_paths() {
        let base = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(base.path()).unwrap().join("a b");
        fs::create_dir(&dir).unwrap();
        let uri = format!("file://{}", dir.display()).replace(' ', "%20");
        assert_eq!(root_path(&uri), Some(dir.clone()));
        assert_eq!(root_path(&dir.display().to_string()), Some(dir));
        for bad in ["file:///%zz", "file:///%2", "relative", "https://h/x", ""] {
            assert_eq!(root_path(bad), None, "{bad}");
        }
    }
}
