//! Shared by commands that request one item by name, and show or save it.

use crate::client::session::{Session, TalkArgs};
use crate::client::target::{Target, TargetArgs};
use crate::fail::Failure;
use crate::show::content::ContentPrinter;
use crate::show::out::Out;
use clap::Args;
use linchpin::client::Error;
use linchpin_core::exact;
use std::path::PathBuf;

/// Options beside the positional arguments, which each command defines.
#[derive(Debug, Args)]
pub(crate) struct WantedArgs {
    /// Save images, audio and other data to this directory.
    #[arg(long, value_name = "DIR")]
    pub(super) save: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    pub(super) talk: TalkArgs,
}

impl WantedArgs {
    /// Returns the target, removing it from the words if it is one of them.
    pub(super) fn target(&self, words: &mut Vec<String>) -> Result<Target, Failure> {
        self.target.restrict_to(words)
    }

    /// Prints the raw result with `--json`; returns whether that is all, with nothing to save.
    pub(super) fn print_json(&self, out: &mut Out, result: &str) -> Result<bool, Failure> {
        if self.talk.json {
            out.json(&exact::read(result).unwrap_or_default())?;
        }
        Ok(self.talk.json && self.save.is_none())
    }

    /// Returns a [`ContentPrinter`] whose file names begin like `about`.
    pub(super) fn printer(&self, about: &str) -> Result<ContentPrinter<'_>, Failure> {
        Ok(ContentPrinter::new(self.save.as_deref(), about)?.beside_json(self.talk.json))
    }
}

/// Returns the failure of a request that the server rejected, possibly for its name. Any other failure is an error.
pub(super) fn refused(session: &Session, e: &Error) -> Result<Failure, Failure> {
    let failure = session.told(e);
    if e.rpc().is_some() { Ok(failure) } else { Err(failure) }
}
