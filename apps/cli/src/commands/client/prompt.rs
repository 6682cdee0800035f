//! `linchpin prompt`: renders a prompt.

use crate::content::Keeper;
use crate::exit::Exit;
use crate::fail::Failure;
use crate::session::{self, TalkArgs};
use crate::shown::{Out, clean, near};
use crate::target::TargetArgs;
use clap::Args;
use linchpin::client::Error;
use linchpin::types::content::Role;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// The target, if it is a word; the prompt's name; and its arguments.
    #[arg(value_name = "WORDS")]
    words: Vec<String>,

    /// Save images, audio and other data to this folder.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

/// `key=value` words as texts.
pub(crate) fn texts(words: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |word: &String| {
        let (name, text) = word.split_once('=').ok_or_else(|| Failure::usage(format!("`{word}` is not key=value")))?;
        let text = match text.strip_prefix('@') {
            Some(literal) if literal.starts_with('@') => literal.to_owned(),
            Some(file) if !file.is_empty() => crate::args::input(file)?,
            _ => text.to_owned(),
        };
        Ok((name.to_owned(), text))
    };
    words.iter().map(pair).collect()
}

pub(crate) fn run(mut args: PromptArgs) -> Result<(), Failure> {
    let target = args.target.take(&mut args.words);
    let target = args.target.resolve(target)?;
    if args.words.is_empty() {
        return Err(Failure::usage("no prompt is named").hint("`linchpin prompts` shows what there is"));
    }
    let name = args.words.remove(0);
    let arguments = texts(&args.words)?;
    session::run(&args.talk, target, async |session| {
        let result = match session.connection.prompt(&name, &arguments).await {
            Ok(result) => result,
            Err(e) => {
                let failure = session.told(&e);
                let Error::Refused(_) = &e else { return Err(failure) };
                let known = session.connection.prompts().await.map(|p| p.items).unwrap_or_default();
                return Err(match known.iter().find(|p| p.name == name) {
                    Some(prompt) => failure.hint(format!("it is used like this: {}", usage(prompt))),
                    None if failure.says("did you mean") => failure.exit(Exit::Usage),
                    None => match near(&name, known.iter().map(|p| p.name.as_str())) {
                        Some(meant) => failure.exit(Exit::Usage).hint(format!("did you mean `{}`?", clean(meant))),
                        None => failure,
                    },
                });
            }
        };
        let mut out = Out::new();
        if args.talk.json {
            out.json(&serde_json::from_str::<Value>(result.as_json()).unwrap_or_default())?;
            return Ok(out.flush()?);
        }
        let mut keeper = Keeper::new(args.save.as_deref(), &name)?;
        for message in &result.messages {
            let who = if message.role == Role::User { "user:" } else { "assistant:" };
            out.line(out.style.bold(who))?;
            keeper.show(&mut out, &message.content)?;
        }
        Ok(out.flush()?)
    })
}

fn usage(prompt: &linchpin::types::prompt::Prompt) -> String {
    let words = prompt.arguments.iter().map(|argument| {
        let word = format!("{}=TEXT", clean(&argument.name));
        if argument.required == Some(true) { word } else { format!("[{word}]") }
    });
    std::iter::once(clean(&prompt.name)).chain(words).collect::<Vec<_>>().join(" ")
}
