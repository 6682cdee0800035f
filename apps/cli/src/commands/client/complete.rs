//! `linchpin complete`: suggestions for an argument.

use super::prompt::texts;
use crate::fail::Failure;
use crate::session::{self, TalkArgs};
use crate::shown::{Out, note};
use crate::target::TargetArgs;
use clap::Args;
use serde_json::Value;

#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The target, if it is a word; a prompt's name or a resource template; the argument, and what of it is typed
    /// already (`city=Os`); and arguments that are known.
    #[arg(value_name = "WORDS")]
    words: Vec<String>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

pub(crate) fn run(mut args: CompleteArgs) -> Result<(), Failure> {
    let target = args.target.take(&mut args.words);
    let target = args.target.resolve(target)?;
    let [about, argument, known @ ..] = args.words.as_slice() else {
        return Err(Failure::usage("a prompt or template and an argument are wanted")
            .hint("for example: linchpin complete args-prompt city=Os -- COMMAND"));
    };
    let known = texts(known)?;
    let (argument, value) = argument.split_once('=').unwrap_or((argument, ""));
    session::run(&args.talk, target, async |session| {
        let connection = &session.connection;
        // Templates have an expression or a scheme; prompts' names have neither.
        let result = match about.contains('{') || about.contains("://") {
            true => connection.complete_template(about, argument, value, known).await,
            false => connection.complete_prompt(about, argument, value, known).await,
        };
        let result = result.map_err(|e| session.told(&e))?;
        let mut out = Out::new();
        if args.talk.json {
            out.json(&serde_json::from_str::<Value>(result.as_json()).unwrap_or_default())?;
        } else {
            for value in &result.completion.values {
                out.text(value)?;
            }
            if result.completion.has_more == Some(true) {
                let total = result.completion.total.map_or(String::new(), |n| format!(" of {n}"));
                note(format!("there are more{total}"));
            }
        }
        Ok(out.flush()?)
    })
}
