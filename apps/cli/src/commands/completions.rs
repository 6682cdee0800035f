//! `linchpin completions`: generates shell completion scripts.

use crate::cli::Cli;
use crate::fail::Failure;
use crate::shown::Out;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to generate the script for.
    shell: Shell,
}

pub(crate) fn run(args: CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "linchpin", &mut script);
    let mut out = Out::new();
    out.bytes(&script)?;
    Ok(out.flush()?)
}
