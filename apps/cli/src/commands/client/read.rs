//! `linchpin read`: reads a resource.

use super::wanted::{WantedArgs, refused};
use crate::client::session;
use crate::exit::Exit;
use crate::fail::Failure;
use crate::show::bar::busy;
use crate::show::content::bytes;
use crate::show::out::{Out, near};
use clap::Args;
use linchpin::types::content::ResourceContents;

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The target, unless set by an option, and the URI of the resource.
    #[arg(value_name = "WORDS")]
    words: Vec<String>,

    #[command(flatten)]
    wanted: WantedArgs,
}

pub(crate) fn run(mut args: ReadArgs) -> Result<(), Failure> {
    let target = args.wanted.target(&mut args.words)?;
    let [uri] = args.words.as_slice() else {
        return Err(Failure::usage("expected one URI").hint("`linchpin resources` lists the resources"));
    };
    session::run(&args.wanted.talk, target, async |session| {
        let result = match busy(&format!("reading {uri}"), session.connection.read(uri)).await {
            Ok(result) => result,
            Err(e) => {
                let failure = refused(session, &e)?;
                let known = session.connection.resources().await.map(|r| r.items).unwrap_or_default();
                return Err(match near(uri, known.iter().map(|r| r.uri.as_str())).filter(|meant| meant != uri) {
                    Some(meant) => failure.hint(format!("did you mean {meant}?")),
                    None => failure,
                });
            }
        };
        let mut out = Out::new();
        if args.wanted.print_json(&mut out, result.as_json())? {
            return Ok(out.flush()?);
        }
        // A single blob is written to a pipe or file as bytes.
        if let ([ResourceContents::Blob(blob)], None) = (result.contents.as_slice(), &args.wanted.save)
            && !out.is_terminal()
        {
            let bytes = bytes(&blob.blob)
                .ok_or_else(|| Failure::new("the server's data is not valid base64").exit(Exit::Protocol))?;
            out.bytes(&bytes)?;
            return Ok(out.flush()?);
        }
        let about = uri.rsplit(['/', ':']).next().unwrap_or(uri);
        let mut printer = args.wanted.printer(about)?;
        for contents in &result.contents {
            printer.contents(&mut out, contents)?;
        }
        Ok(out.flush()?)
    })
}
