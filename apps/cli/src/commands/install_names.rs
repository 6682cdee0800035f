//! `linchpin install-names`: installs symlinks with the names of the published servers.

use crate::exit::Exit;
use crate::fail::Failure;
use crate::serve::ENTRIES;
use crate::shell;
use crate::show::out::{Out, near, note, tell};
use clap::{Args, ValueHint};
use std::io;
use std::path::{Component, Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Directory for the symlinks, usually one in PATH. Created if missing.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,

    /// Servers to install, for example git or mcp-server-git [default: all], or bridges: supergateway, mcp-remote, mcp-proxy.
    #[arg(value_name = "NAMES")]
    names: Vec<String>,

    /// Install all servers (the default).
    #[arg(long, conflicts_with = "names")]
    all: bool,

    /// Replace other files and symlinks of these names. Directories are never replaced.
    #[arg(long)]
    force: bool,

    /// Create relative symlinks, which keep working when DIR and this program move together.
    #[arg(long)]
    relative: bool,

    /// List what is installed; change nothing.
    #[arg(long, conflicts_with_all = ["force", "relative"])]
    list: bool,
}

/// What exists under a name in the directory.
enum There {
    Nothing,
    /// A symlink to this program, with its target as written.
    Ours(PathBuf),
    /// Something else, described.
    Foreign(String),
    Directory,
}

pub(crate) fn run(args: InstallArgs) -> Result<(), Failure> {
    let program = std::env::current_exe().and_then(std::fs::canonicalize).map_err(Failure::new)?;
    let names = wanted(&args.names)?;
    let dir = directory(&args)?;
    let target = if args.relative { relative(&program, &dir) } else { program.clone() };
    let mut out = Out::new();
    let mut refused = 0;
    for name in names {
        let at = dir.join(file_name(&name));
        let there = look(&at, &program);
        if args.list {
            out.line(match there {
                There::Nothing => format!("{name}  not installed"),
                There::Ours(to) => format!("{name} -> {}", to.display()),
                There::Foreign(what) => format!("{name}  not a linchpin symlink: {what}"),
                There::Directory => format!("{name}  not a linchpin symlink: a directory"),
            })?;
            continue;
        }
        match there {
            There::Ours(to) if to == target => out.line(format!("{name} is already installed"))?,
            There::Nothing | There::Ours(_) => {
                link(&target, &at).map_err(|e| cannot(&at, &e))?;
                out.line(format!("{name} -> {}", target.display()))?;
            }
            There::Foreign(what) if args.force => {
                link(&target, &at).map_err(|e| cannot(&at, &e))?;
                out.line(format!("{name} -> {} (was {what})", target.display()))?;
            }
            There::Foreign(what) => {
                note(format!("{name} not replaced: {what}"));
                refused += 1;
            }
            There::Directory => {
                note(format!("{name} not replaced: a directory"));
                refused += 1;
            }
        }
    }
    out.flush()?;
    if refused > 0 {
        let what = if refused == 1 { "1 name is".to_owned() } else { format!("{refused} names are") };
        return Err(Failure::new(format!("{what} already in use in {}", dir.display()))
            .hint("--force replaces files and symlinks"));
    }
    let on_path = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|one| std::fs::canonicalize(one).is_ok_and(|one| one == dir))
    });
    if !args.list && !on_path {
        note(format!("note: {} is not in your PATH", dir.display()));
        if cfg!(unix) {
            let file = if cfg!(target_os = "macos") { "~/.zprofile" } else { "~/.profile" };
            note(format!("to add it, put this line into {file}:"));
            // In one piece, to be copied.
            tell(&format!("export PATH={}:\"$PATH\"\n", shell::path(&dir)));
        }
    }
    Ok(())
}

/// Returns the canonical directory for the symlinks, creating it unless `--list` is given.
fn directory(args: &InstallArgs) -> Result<PathBuf, Failure> {
    let shown = args.dir.display();
    if !args.list {
        std::fs::create_dir_all(&args.dir).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => no_directory(&args.dir),
            _ => cannot(&args.dir, &e),
        })?;
    }
    match std::fs::canonicalize(&args.dir) {
        Ok(dir) if dir.is_dir() => Ok(dir),
        Ok(_) => Err(no_directory(&args.dir)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Err(Failure::usage(format!("{shown} does not exist")).hint("without --list it is created"))
        }
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => Err(no_directory(&args.dir)),
        Err(e) => Err(Failure::usage(format!("{shown} cannot be used: {e}"))),
    }
}

/// Reports what is in place of a directory: the path itself, or one of its parents.
fn no_directory(dir: &Path) -> Failure {
    let in_the_way = dir.ancestors().find(|above| std::fs::metadata(above).is_ok_and(|meta| !meta.is_dir()));
    let why = match in_the_way {
        Some(file) if file == dir => format!("{} is a file, not a directory", dir.display()),
        Some(file) => format!("{} cannot be a directory: {} is a file", dir.display(), file.display()),
        // A dangling symlink, for example.
        None => format!("{} is not a directory", dir.display()),
    };
    Failure::usage(why).hint("pass the directory for the symlinks, for example ~/.local/bin")
}

/// Returns the published names of the selected servers.
fn wanted(names: &[String]) -> Result<Vec<String>, Failure> {
    let all = || ENTRIES.iter().map(|entry| entry.name);
    if names.is_empty() {
        return Ok(ENTRIES.iter().map(|entry| format!("mcp-server-{}", entry.published_as)).collect());
    }
    let mut wanted = Vec::new();
    for name in names {
        #[cfg(feature = "client")]
        if let Some((_, foreign)) = crate::foreign::ALL.iter().find(|(_, foreign)| foreign == name) {
            wanted.push((*foreign).to_owned());
            continue;
        }
        let short = name.strip_prefix("mcp-server-").unwrap_or(name);
        let Some(entry) = ENTRIES.iter().find(|entry| [entry.name, entry.published_as].contains(&short)) else {
            let failure = Failure::usage(format!("unknown server {name}"));
            return Err(match near(short, all()) {
                Some(meant) => failure.hint(format!("did you mean {meant}?")),
                None => failure.hint(format!("servers: {}", all().collect::<Vec<_>>().join(", "))),
            });
        };
        let full = format!("mcp-server-{}", entry.published_as);
        if !wanted.contains(&full) {
            wanted.push(full);
        }
    }
    Ok(wanted)
}

fn file_name(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

fn look(at: &Path, program: &Path) -> There {
    let Ok(meta) = std::fs::symlink_metadata(at) else { return There::Nothing };
    if meta.is_dir() {
        return There::Directory;
    }
    match std::fs::read_link(at) {
        Ok(to) if std::fs::canonicalize(at).is_ok_and(|real| real == program) => There::Ours(to),
        Ok(to) => There::Foreign(format!("a symlink to {}", to.display())),
        Err(_) => There::Foreign("a file".to_owned()),
    }
}

/// Creates the symlink under a temporary name and renames it, so that the replacement is atomic.
fn link(target: &Path, at: &Path) -> io::Result<()> {
    let mut beside = at.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    #[cfg(unix)]
    std::os::unix::fs::symlink(target, &beside)?;
    #[cfg(windows)]
    std::os::windows::fs::symlink_file(target, &beside)?;
    std::fs::rename(&beside, at).inspect_err(|_| drop(std::fs::remove_file(&beside)))
}

fn cannot(at: &Path, e: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot create {}: {e}", at.display())).exit(Exit::Failed);
    match e.kind() {
        io::ErrorKind::PermissionDenied => failure.hint("use a directory you can write to, for example ~/.local/bin"),
        _ => failure,
    }
}

/// Returns the relative path from a directory to a file, both canonical.
fn relative(file: &Path, dir: &Path) -> PathBuf {
    let (file_parts, dir_parts): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (file.components().collect(), dir.components().collect());
    let shared = file_parts.iter().zip(&dir_parts).take_while(|(a, b)| a == b).count();
    let up = dir_parts[shared..].iter().map(|_| Component::ParentDir);
    up.chain(file_parts[shared..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_goes_up_and_down_again() {
        for (file, dir, way) in
            [("/a/b/p", "/a/b", "p"), ("/a/b/p", "/a/c/d", "../../b/p"), ("/p", "/a", "../p"), ("/a/p", "/", "a/p")]
        {
            assert_eq!(relative(Path::new(file), Path::new(dir)), Path::new(way), "{file} from {dir}");
        }
    }
}
