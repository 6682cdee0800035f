//! `linchpin read`: reads a resource.

use crate::content::{Keeper, bytes};
use crate::exit::Exit;
use crate::fail::Failure;
use crate::session::{self, TalkArgs};
use crate::shown::{Out, near};
use crate::target::TargetArgs;
use clap::Args;
use linchpin::client::Error;
use linchpin::types::content::ResourceContents;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The target, if it is a word, and the URI of the resource.
    #[arg(value_name = "WORDS")]
    words: Vec<String>,

    /// Save what is no text to this folder.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

pub(crate) fn run(mut args: ReadArgs) -> Result<(), Failure> {
    let target = args.target.take(&mut args.words);
    let target = args.target.resolve(target)?;
    let [uri] = args.words.as_slice() else {
        return Err(Failure::usage("one URI is wanted").hint("`linchpin resources` shows what there is"));
    };
    session::run(&args.talk, target, async |session| {
        let result = match session.connection.read(uri).await {
            Ok(result) => result,
            Err(e) => {
                let failure = session.told(&e);
                let Error::Refused(_) = &e else { return Err(failure) };
                let known = session.connection.resources().await.map(|r| r.items).unwrap_or_default();
                return Err(match near(uri, known.iter().map(|r| r.uri.as_str())).filter(|meant| meant != uri) {
                    Some(meant) => failure.hint(format!("did you mean {meant}?")),
                    None => failure,
                });
            }
        };
        let mut out = Out::new();
        if args.talk.json {
            out.json(&serde_json::from_str::<Value>(result.as_json()).unwrap_or_default())?;
            return Ok(out.flush()?);
        }
        // One blob into a pipe or file is meant as bytes.
        if let ([ResourceContents::Blob(blob)], None) = (result.contents.as_slice(), &args.save)
            && !std::io::stdout().is_terminal()
        {
            let bytes =
                bytes(&blob.blob).ok_or_else(|| Failure::new("the server's data is no base64").exit(Exit::Protocol))?;
            drop(out);
            let mut raw = std::io::stdout().lock();
            raw.write_all(&bytes)?;
            return Ok(raw.flush()?);
        }
        let about = uri.rsplit(['/', ':']).next().unwrap_or(uri);
        let mut keeper = Keeper::new(args.save.as_deref(), about)?;
        for contents in &result.contents {
            keeper.contents(&mut out, contents)?;
        }
        Ok(out.flush()?)
    })
}
