//! `linchpin key`: the keys with which an authorization server signs.

use super::store::with_store;
use crate::fail::Failure;
use crate::serve::store::StoreArgs;
use crate::show::out::{Out, note};
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Create a signing key, and print its id. Running servers use it within a minute; older keys stay
    /// published until their tokens have expired. Keys rotate automatically every 90 days.
    #[command(before_help = "\
Examples:
  linchpin key rotate --store sqlite:auth.db
")]
    Rotate {
        #[command(flatten)]
        store: StoreArgs,
    },
}

pub(crate) fn run(args: &KeyArgs) -> Result<(), Failure> {
    let What::Rotate { store } = &args.what;
    let id = with_store(&store.open_shared(true)?, async |admin| admin.rotate_key().await)?;
    note("a new key signs from now on:");
    let mut out = Out::new();
    out.line(id)?;
    Ok(out.flush()?)
}
