//! `linchpin completions`: generates shell completion scripts.

use crate::fail::Failure;
use crate::show::out::Out;
use clap::{Args, Command};
use clap_complete::Shell;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to generate the script for.
    shell: Shell,
}

/// Writes the script for this command line.
pub(crate) fn run(args: CompletionsArgs, mut command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "linchpin", &mut script);
    let mut out = Out::new();
    out.bytes(&script)?;
    Ok(out.flush()?)
}
