//! `linchpin complete`: completes an argument.

use super::prompt::texts;
use crate::client::session::{self, TalkArgs};
use crate::client::target::TargetArgs;
use crate::fail::Failure;
use crate::show::bar::busy;
use crate::show::out::{Out, note};
use clap::Args;
use linchpin_core::exact;

#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The target, unless set by an option; a prompt's name or a resource template; the argument with its partial value
    /// (`city=Os`); and arguments already resolved.
    #[arg(value_name = "WORDS")]
    words: Vec<String>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

pub(crate) fn run(mut args: CompleteArgs) -> Result<(), Failure> {
    let target = args.target.restrict_to(&mut args.words)?;
    let [about, argument, known @ ..] = args.words.as_slice() else {
        return Err(Failure::usage("expected a prompt or resource template, and an argument")
            .hint("for example: linchpin complete args-prompt city=Os -- COMMAND"));
    };
    let known = texts(known)?;
    let (argument, value) = argument.split_once('=').unwrap_or((argument, ""));
    session::run(&args.talk, target, async |session| {
        let connection = &session.connection;
        // Resource templates have an expression or a scheme; prompt names have neither.
        let completed = async {
            match about.contains('{') || about.contains("://") {
                true => connection.complete_template(about, argument, value, known).await,
                false => connection.complete_prompt(about, argument, value, known).await,
            }
        };
        let result = busy(&format!("completing {argument}"), completed).await.map_err(|e| session.told(&e))?;
        let mut out = Out::new();
        if args.talk.json {
            out.json(&exact::read(result.as_json()).unwrap_or_default())?;
        } else {
            for value in &result.completion.values {
                out.text(value)?;
            }
            if result.completion.has_more == Some(true) {
                let total = result.completion.total.map_or(String::new(), |n| format!(" ({n} in total)"));
                note(format!("more values are available{total}"));
            }
        }
        Ok(out.flush()?)
    })
}
