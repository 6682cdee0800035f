//! `linchpin diff`: compares two servers or transcripts.

use crate::client::session::{self, TalkArgs};
use crate::client::target::{Kind, Target, TargetArgs};
use crate::exit::Exit;
use crate::fail::Failure;
use crate::record::diff::{self, Picture};
use crate::show::bar::busy;
use crate::show::out::{Out, count, note};
use clap::Args;
use linchpin_core::exact;
use serde_json::json;

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Two of: a URL, a socket, a transcript, a command line in quotes. With `-- COMMAND` or --server, one.
    #[arg(value_name = "TARGET", num_args = 0..=2)]
    words: Vec<String>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

pub(crate) fn run(args: DiffArgs) -> Result<(), Failure> {
    let words = |target: &TargetArgs, word: &String| target.found(vec![word.clone()]);
    let plain = TargetArgs { command: Vec::new(), config: None, server: None, url: None, ..args.target.clone() };
    let (a, b) = match (args.words.as_slice(), args.target.is_said()) {
        ([a, b], false) => (words(&plain, a)?, words(&plain, b)?),
        ([a], true) => (words(&plain, a)?, args.target.found(Vec::new())?),
        _ => {
            return Err(Failure::usage("expected two servers").hint(
                "for example: linchpin diff before.jsonl -- COMMAND, or linchpin diff 'npx -y old' 'npx -y new'",
            ));
        }
    };
    // Each option is for one of them at least.
    args.target.check(&[&a, &b])?;
    if args.talk.record.is_some() && (a.kind == Kind::Transcript) == (b.kind == Kind::Transcript) {
        return Err(Failure::usage("--record is for the comparison of one server with a transcript")
            .hint("record each server with `linchpin inspect --record FILE`, and compare the files"));
    }
    session::block_on(async {
        let (left, right) = (picture(&args.talk, a).await?, picture(&args.talk, b).await?);
        let found = diff::compare(&left, &right);
        let mut out = Out::new();
        if args.talk.json {
            out.json(
                &json!({ "a": left.name, "b": right.name, "same": found.is_empty(), "differences": exact::of(&found) }),
            )?;
        } else if found.is_empty() {
            out.line(format!("no differences between {} and {}", left.name, right.name))?;
        } else {
            let style = out.style;
            out.line(style.bad(&format!("--- {}", left.name)))?;
            out.line(style.good(&format!("+++ {}", right.name)))?;
            for line in diff::lines(&found, style) {
                out.line(line)?;
            }
            out.line(count(found.len(), "difference"))?;
        }
        out.flush()?;
        for missing in left.unknown.iter().chain(&right.unknown) {
            note(format!("note: not compared: {missing}"));
        }
        if found.is_empty() { Ok(()) } else { Err(Failure::silent(Exit::Failed)) }
    })
}

async fn picture(talk: &TalkArgs, target: Target) -> Result<Picture, Failure> {
    // A transcript is not recorded again.
    let record = talk.record.clone().filter(|_| target.kind != Kind::Transcript);
    let talk = &TalkArgs { record, ..talk.clone() };
    let session = session::connect(talk, target, Vec::new(), Box::new(|client| client)).await?;
    let picture = busy(&format!("listing what {} has", session.target), Picture::of(&session)).await;
    session.close().await;
    picture
}
