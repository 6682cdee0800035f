//! `linchpin prompt`: renders a prompt.

use super::wanted::{WantedArgs, refused};
use crate::client::session;
use crate::fail::Failure;
use crate::show::bar::busy;
use crate::show::out::{Out, near};
use clap::Args;
use linchpin::types::content::Role;
use linchpin::types::prompt::Prompt;
use std::collections::BTreeMap;

#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// The target, unless set by an option; the prompt's name; and its arguments.
    #[arg(value_name = "WORDS")]
    words: Vec<String>,

    #[command(flatten)]
    wanted: WantedArgs,
}

/// Parses `key=value` words.
pub(crate) fn texts(words: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut texts = BTreeMap::new();
    for word in words {
        let (name, text) = word
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("invalid argument `{word}`: expected key=value")))?;
        let text = match text.strip_prefix('@') {
            Some(literal) if literal.starts_with('@') => literal.to_owned(),
            Some(file) if !file.is_empty() => crate::client::args::input(file)?,
            _ => text.to_owned(),
        };
        texts.insert(name.to_owned(), text);
    }
    Ok(texts)
}

pub(crate) fn run(mut args: PromptArgs) -> Result<(), Failure> {
    let target = args.wanted.target(&mut args.words)?;
    if args.words.is_empty() {
        return Err(Failure::usage("missing prompt name").hint("`linchpin prompts` lists the prompts"));
    }
    let name = args.words.remove(0);
    let arguments = texts(&args.words)?;
    session::run(&args.wanted.talk, target, async |session| {
        let result = match busy(&format!("rendering {name}"), session.connection.prompt(&name, &arguments)).await {
            Ok(result) => result,
            Err(e) => {
                let failure = refused(session, &e)?;
                let Ok(known) = session.connection.prompts().await else { return Err(failure) };
                return Err(match known.iter().find(|p| p.name == name) {
                    Some(prompt) => failure.hint(format!("usage: {}", usage(prompt))),
                    None => unknown(&name, &known),
                });
            }
        };
        let mut out = Out::new();
        if args.wanted.print_json(&mut out, result.as_json())? {
            return Ok(out.flush()?);
        }
        let mut printer = args.wanted.printer(&name)?;
        for message in &result.messages {
            let who = if message.role == Role::User { "user:" } else { "assistant:" };
            if !args.wanted.talk.json {
                out.line(out.style.bold(who))?;
            }
            printer.show(&mut out, &message.content)?;
        }
        Ok(out.flush()?)
    })
}

fn unknown(name: &str, prompts: &[Prompt]) -> Failure {
    let failure = Failure::usage(format!("the server has no prompt `{name}`"));
    match near(name, prompts.iter().map(|prompt| prompt.name.as_str())) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint("`linchpin prompts` lists the prompts"),
    }
}

fn usage(prompt: &Prompt) -> String {
    let words = prompt.arguments.iter().map(|argument| {
        let word = format!("{}=TEXT", argument.name);
        if argument.required == Some(true) { word } else { format!("[{word}]") }
    });
    std::iter::once(prompt.name.clone()).chain(words).collect::<Vec<_>>().join(" ")
}
