//! One file per subcommand.

use crate::fail::Failure;
use crate::session::TalkArgs;
use crate::target::{Target, TargetArgs};
use clap::Args;

pub(crate) mod auth;
pub(crate) mod call;
pub(crate) mod complete;
pub(crate) mod diff;
pub(crate) mod inspect;
pub(crate) mod load;
pub(crate) mod ping;
pub(crate) mod prompt;
pub(crate) mod prompts;
pub(crate) mod read;
pub(crate) mod replay;
pub(crate) mod resources;
pub(crate) mod serve;
pub(crate) mod tools;
pub(crate) mod watch;

/// What commands take that need nothing but a server.
#[derive(Debug, Args)]
pub(crate) struct Plain {
    /// An address, a socket, a transcript, or a command and its arguments.
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
