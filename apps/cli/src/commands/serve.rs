//! `linchpin serve`: puts a server together from its arguments and serves it.

use crate::cli::{EverythingArgs, FilesystemArgs, Serve, Server as Which, ToolArgs};
use crate::fail::Failure;
use crate::place::Card;
use linchpin::server::Server;
use linchpin_filesystem::{Config, Filesystem, FsError};
use std::path::Path;

pub(crate) fn run(serve: Serve) -> Result<(), Failure> {
    match serve.server {
        Which::Filesystem(args) => filesystem(*args),
        Which::Everything(args) => everything(args),
    }
}

fn filesystem(args: FilesystemArgs) -> Result<(), Failure> {
    let config = config(&args).map_err(|e| failure(&e))?;
    let command = command("filesystem", &flags(&args), &config.directories);
    let (filesystem, warnings) = Filesystem::open(config).map_err(|e| failure(&e))?;
    for warning in warnings {
        eprintln!("{warning}");
    }
    let server = Server::new("linchpin-filesystem", env!("CARGO_PKG_VERSION")).title("File system");
    let server = filesystem.add_to(server).map_err(|e| failure(&e))?;
    args.place.run(server, &Card { name: "filesystem", command })
}

/// The server's errors are written for models: a first line, and hints after it.
fn failure(e: &FsError) -> Failure {
    let text = e.to_string();
    let mut parts = text.strip_prefix("Error: ").unwrap_or(&text).split("\nHint: ");
    let failure = Failure::new(parts.next().unwrap_or_default());
    parts.fold(failure, |failure, hint| failure.hint(hint))
}

fn config(args: &FilesystemArgs) -> Result<Config, FsError> {
    let mut config = Config::from_env(|name| std::env::var(name).ok())?;
    if !args.directories.is_empty() {
        config.directories.clone_from(&args.directories);
    }
    config.deny.extend(args.deny.iter().cloned());
    for (given, set) in [
        (args.read_only, &mut config.read_only),
        (args.allow_delete, &mut config.allow_delete),
        (args.allow_odd_names, &mut config.allow_odd_names),
        (args.resources, &mut config.resources),
        (args.compat, &mut config.compat),
    ] {
        *set |= given;
    }
    if let Some(bytes) = args.max_read_bytes {
        config.max_read_bytes = bytes;
    }
    if let Some(policy) = &args.follow_symlinks {
        config.follow_symlinks = policy.parse()?;
    }
    if let Some(policy) = &args.roots {
        config.roots = Some(policy.parse()?);
    }
    let ToolArgs { enable_tools, disable_tools, toolsets, tool_prefix } = &args.tools;
    for (given, set) in [
        (enable_tools, &mut config.tools.enable),
        (disable_tools, &mut config.tools.disable),
        (toolsets, &mut config.tools.toolsets),
    ] {
        if !given.is_empty() {
            set.clone_from(given);
        }
    }
    if let Some(prefix) = tool_prefix {
        config.tools.prefix = prefix.parse()?;
    }
    Ok(config)
}

/// The switches to repeat in what is pasted elsewhere: all but where to serve.
fn flags(args: &FilesystemArgs) -> Vec<String> {
    let mut flags = Vec::new();
    for (on, flag) in [
        (args.read_only, "--read-only"),
        (args.allow_delete, "--allow-delete"),
        (args.allow_odd_names, "--allow-odd-names"),
        (args.resources, "--resources"),
        (args.compat, "--compat"),
    ] {
        if on {
            flags.push(flag.to_owned());
        }
    }
    let bytes = args.max_read_bytes.map(|b| b.to_string());
    for (value, flag) in [
        (&bytes, "--max-read-bytes"),
        (&args.follow_symlinks, "--follow-symlinks"),
        (&args.roots, "--roots"),
        (&args.tools.tool_prefix, "--tool-prefix"),
    ] {
        flags.extend(value.iter().flat_map(|v| [flag.to_owned(), v.clone()]));
    }
    flags.extend(args.deny.iter().flat_map(|glob| ["--deny".to_owned(), glob.clone()]));
    for (names, flag) in [
        (&args.tools.enable_tools, "--enable-tools"),
        (&args.tools.disable_tools, "--disable-tools"),
        (&args.tools.toolsets, "--toolsets"),
    ] {
        if !names.is_empty() {
            flags.extend([flag.to_owned(), names.join(",")]);
        }
    }
    flags
}

fn everything(args: EverythingArgs) -> Result<(), Failure> {
    let options = linchpin_everything::Options { expose_env: args.expose_env, ..Default::default() };
    let flags = if args.expose_env { vec!["--expose-env".to_owned()] } else { Vec::new() };
    let command = command("everything", &flags, &[]);
    args.place.run(linchpin_everything::server(options), &Card { name: "everything", command })
}

/// The command that starts this server on stdio: this very program, with directories that mean the same elsewhere.
fn command(server: &str, flags: &[String], directories: &[String]) -> Vec<String> {
    let program = std::env::current_exe().map_or_else(|_| "linchpin".into(), |p| p.display().to_string());
    let absolute =
        |dir: &String| std::fs::canonicalize(Path::new(dir)).map_or_else(|_| dir.clone(), |p| p.display().to_string());
    let fixed = [program, "serve".to_owned(), server.to_owned()];
    fixed.into_iter().chain(flags.iter().cloned()).chain(directories.iter().map(absolute)).collect()
}
