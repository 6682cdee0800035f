//! A generation from its start to its images.

use crate::GENERATE;
use crate::images::{self, Image, Own};
use linchpin::NoArgs;
use linchpin_kit::{ErrorKind, ToolError};
use linchpin_rest::{Answer, Args, Ask, Rest};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long images are waited for, and how long between two looks.
const WAIT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_secs(1);

/// What to say of a generation that goes on without us.
const GOES_ON: &str = "The images may be finished later, and cost money nevertheless: read the resource everart://images before \
                       generating again.";

/// Whether a text is the id of a model, with its name or without: `5000:FLUX1.1`.
pub(crate) fn is_model(text: &str) -> bool {
    let id = id_of(text);
    (1..=40).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_digit())
}

fn id_of(model: &str) -> &str {
    model.split_once(':').map_or(model, |(id, _)| id)
}

pub(crate) async fn generate(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let (prompt, model) = (args.text("prompt"), id_of(args.text("model")));
    let started = rest.send(Ask::of(&GENERATE, &args).segment("model", model)).await?.json()?;
    let made =
        started["generations"].as_array().into_iter().flatten().filter_map(|one| Image::read(one, prompt, model));
    let mut made: Vec<Image> = made.collect();
    if made.is_empty() {
        return Err(odd("Error: EverArt started no generation"));
    }
    note(rest, &made);
    let begin = Instant::now();
    let mut reported = 0;
    loop {
        for image in made.iter_mut().filter(|image| !image.is_over()) {
            image.look(rest).await.map_err(|error| error.hint(GOES_ON))?;
        }
        note(rest, &made);
        let open = made.iter().filter(|image| !image.is_over()).count();
        if open == 0 {
            break;
        }
        let waited = begin.elapsed();
        if waited >= WAIT {
            let late = format!("Error: {open} of {} images were not finished within {} s", made.len(), WAIT.as_secs());
            return Err(ToolError::new(late).kind(ErrorKind::Timeout).hint(GOES_ON));
        }
        if let Some(cx) = args.cx() {
            reported = waited.as_secs().max(reported + 1);
            let text = format!("{} of {} images", made.len() - open, made.len());
            cx.progress_with(reported as f64, Some(WAIT.as_secs_f64()), &text);
        }
        sleep(PAUSE).await;
    }
    let good: Vec<&Image> = made.iter().filter(|image| image.url.is_some()).collect();
    if good.is_empty() {
        let why = made.iter().map(|image| image.status.as_str()).collect::<Vec<_>>().join(", ");
        return Err(odd("Error: EverArt made no image").detail(why));
    }
    let mut answer = Answer::from(json!({ "model": model, "prompt": prompt, "images": images::listed(&made) }));
    if let Some(own) = rest.state::<Own>() {
        for block in own.load(&good).await {
            answer = answer.block(block);
        }
    }
    Ok(answer)
}

fn odd(words: &str) -> ToolError {
    ToolError::new(words).kind(ErrorKind::Upstream { status: None })
}

fn note(rest: &Rest, made: &[Image]) {
    if let Some(own) = rest.state::<Own>() {
        own.note(made);
    }
}

/// The images of the session. Of those that were not finished yet it is asked again.
pub(crate) async fn list(rest: &Rest, _: NoArgs) -> String {
    let mut made = rest.state::<Own>().map(Own::all).unwrap_or_default();
    for image in made.iter_mut().filter(|image| !image.is_over()) {
        // What is known stays.
        if image.look(rest).await.is_err() {
            break;
        }
    }
    note(rest, &made);
    let list: Value = json!({ "images": images::listed(&made) });
    serde_json::to_string_pretty(&list).unwrap_or_default()
}
