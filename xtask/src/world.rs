//! The one debug build that all checks share. Whoever names other packages or features gets another one, from nothing.

use anyhow::{Context as _, Result, bail};

use crate::context::Context;
use crate::process;

/// What every `cargo` of the checks says, so that nothing is built twice.
pub(crate) const WORLD: &[&str] = &["--workspace", "--locked", "--features", "linchpin-cli/keyring,linchpin-cli/redis"];

/// Builds the programs of the workspace, in the open: for subcommands that a user runs alone.
pub(crate) fn programs(context: &Context) -> Result<()> {
    build(context, &["--bins"])
}

/// Builds the programs and the examples.
pub(crate) fn with_examples(context: &Context) -> Result<()> {
    build(context, &["--bins", "--examples"])
}

fn build(context: &Context, what: &[&str]) -> Result<()> {
    let mut cargo = process::cargo();
    cargo.arg("build").args(WORLD).args(what).current_dir(&context.root);
    if !cargo.status().context("cargo cannot be started")?.success() {
        bail!("the programs do not build");
    }
    Ok(())
}

/// What the profile `dist` cannot say, for `--config`.
pub(crate) const DIST_CONFIG: &str = ".cargo/dist.toml";
