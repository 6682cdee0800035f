//! `linchpin serve filesystem`.

use super::{Main, Native, Reach};
use clap::{Args, ValueHint};
use linchpin::Server;
use linchpin_filesystem::{Config, Filesystem, ROOTS, SERVICE};
use linchpin_kit::{RootsPolicy, Service, ToolChoice, ToolError, Vars};

#[derive(Debug, Args)]
pub(crate) struct FilesystemArgs {
    /// Directories to serve. Nothing outside them is accessible, not even through symlinks.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directories: Vec<String>,

    /// Files that are never accessed or listed, for example '**/.env'. May be repeated.
    #[arg(long, value_name = "GLOB")]
    deny: Vec<String>,

    /// Maximum size of a file read whole, in bytes [default: 10 MiB].
    #[arg(long, value_name = "BYTES")]
    max_read_bytes: Option<u64>,

    /// Also offer fs_delete.
    #[arg(long)]
    allow_delete: bool,

    /// Allow invisible or direction-changing characters in new names.
    #[arg(long)]
    allow_odd_names: bool,

    /// Follow symlinks that stay inside the directories, or none [default: inside].
    #[arg(long, value_name = "inside|never")]
    follow_symlinks: Option<String>,

    /// How to use the client's roots [default: ignore, or use if neither DIR nor --http is given].
    #[arg(long, value_name = "ignore|narrow|use|replace")]
    roots: Option<String>,

    /// Also offer files as resources (file:///…).
    #[arg(long)]
    resources: bool,

    /// Match the published server exactly, without this server's improvements.
    #[arg(long)]
    compat: bool,
}

impl Native for FilesystemArgs {
    const NAME: &'static str = "filesystem";
    const TITLE: &'static str = "File system";
    const ABOUT: &'static str = "Files in the directories you name, and nothing outside them";
    const EXAMPLES: &'static str = "  \
  linchpin serve filesystem ~/notes ~/drafts
  linchpin serve filesystem --read-only --deny '**/.env' .
  linchpin serve filesystem . --http 127.0.0.1:8931
";
    const NOTES: &'static str =
        "Each option has an equivalent environment variable, MCP_FS_ and its name; the command line takes precedence.";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Word;
    const TAKES_SEVERAL: bool = true;

    type Config = Config;

    fn config(self, vars: Vars<'_>) -> Result<Config, ToolError> {
        let mut config = Config::from_env(vars)?;
        if !self.directories.is_empty() {
            config.directories = self.directories;
        }
        config.deny.extend(self.deny);
        for (given, set) in [
            (self.allow_delete, &mut config.allow_delete),
            (self.allow_odd_names, &mut config.allow_odd_names),
            (self.resources, &mut config.resources),
            (self.compat, &mut config.compat),
        ] {
            *set |= given;
        }
        if let Some(bytes) = self.max_read_bytes {
            config.max_read_bytes = bytes;
        }
        if let Some(policy) = &self.follow_symlinks {
            config.follow_symlinks = policy.parse()?;
        }
        if let Some(policy) = &self.roots {
            config.roots = Some(RootsPolicy::parse(policy, ROOTS)?);
        }
        Ok(config)
    }

    fn choice(config: &mut Config) -> &mut ToolChoice {
        &mut config.tools
    }

    fn reach(config: &mut Config) -> Option<Reach<'_>> {
        Some(Reach {
            named: !config.directories.is_empty(),
            roots: &mut config.roots,
            how: "a directory: DIR or MCP_FS_DIRS",
        })
    }

    fn add(config: Config, server: Server) -> Result<(Server, Vec<String>), ToolError> {
        let (filesystem, warnings) = Filesystem::open(config)?;
        Ok((filesystem.add_to(server)?.state(()), warnings))
    }
}
