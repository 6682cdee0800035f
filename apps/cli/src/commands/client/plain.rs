//! The arguments of commands that only need a server.

use crate::client::session::TalkArgs;
use crate::client::target::{Target, TargetArgs};
use crate::fail::Failure;
use clap::Args;

/// A server.
#[derive(Debug, Args)]
pub(crate) struct Plain {
    /// A URL, a socket, a transcript, or a command and its arguments.
    #[arg(value_name = "TARGET")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}

impl Plain {
    pub(crate) fn resolve(&self) -> Result<Target, Failure> {
        self.target.resolve(self.words.clone())
    }
}
