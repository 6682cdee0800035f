//! What commands share that ask for one thing of a server by name, and show or save it.

use crate::content::Keeper;
use crate::fail::Failure;
use crate::session::{Session, TalkArgs};
use crate::shown::Out;
use crate::target::{Target, TargetArgs};
use clap::Args;
use linchpin::client::Error;
use serde_json::Value;
use std::path::PathBuf;

/// Flags beside the words, whose meaning is each command's own.
#[derive(Debug, Args)]
pub(crate) struct WantedArgs {
    /// Save images, audio and other data to this folder.
    #[arg(long, value_name = "DIR")]
    pub(super) save: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    pub(super) talk: TalkArgs,
}

impl WantedArgs {
    /// The target. If it is one of the words, it is taken out of them.
    pub(super) fn target(&self, words: &mut Vec<String>) -> Result<Target, Failure> {
        let target = self.target.take(words);
        self.target.resolve(target)
    }

    /// Prints the result as it came, if that is wanted; `false` if it is not.
    pub(super) fn print_json(&self, out: &mut Out, result: &str) -> Result<bool, Failure> {
        if self.talk.json {
            out.json(&serde_json::from_str::<Value>(result).unwrap_or_default())?;
        }
        Ok(self.talk.json)
    }

    /// Shows content, and saves what is no text under names that begin like `about`.
    pub(super) fn keeper(&self, about: &str) -> Result<Keeper<'_>, Failure> {
        Keeper::new(self.save.as_deref(), about)
    }
}

/// The failure of a request that the server refused, which may be for its name. Every other failure ends the command.
pub(super) fn refused(session: &Session, e: &Error) -> Result<Failure, Failure> {
    let failure = session.told(e);
    if matches!(e, Error::Refused(_)) { Ok(failure) } else { Err(failure) }
}
