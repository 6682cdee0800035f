//! `linchpin replay`: serves a transcript.

use crate::fail::Failure;
use crate::record::replay;
use crate::record::transcript::Transcript;
use crate::serve::auth::ToollessAuthArgs;
use crate::serve::paste::Card;
use crate::serve::place::PlaceArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The transcript to serve.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    place: PlaceArgs,

    #[command(flatten)]
    auth: ToollessAuthArgs,
}

pub(crate) fn run(mut args: ReplayArgs) -> Result<(), Failure> {
    args.auth.0.without_scopes()?;
    args.place.guard(&args.auth.0)?;
    let service = replay::service(Transcript::read(&args.file)?)?;
    let program = std::env::current_exe().map_or_else(|_| "linchpin".into(), |p| p.display().to_string());
    let file = std::fs::canonicalize(&args.file).unwrap_or(args.file).display().to_string();
    let command = vec![program, "replay".to_owned(), file];
    args.place.run(service, &Card { name: "replay", command, variables: Vec::new() })
}
