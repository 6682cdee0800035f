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
    let failed = wait(rest, &args, &mut made).await;
    let good: Vec<&Image> = made.iter().filter(|image| image.url.is_some()).collect();
    if good.is_empty() {
        return Err(nothing(&made, failed));
    }
    let mut answer = Answer::from(json!({ "model": model, "prompt": prompt, "images": images::listed(&made) }));
    if let Some(own) = rest.state::<Own>() {
        for block in own.load(&good).await {
            answer = answer.block(block);
        }
    }
    Ok(answer)
}

/// Looks at the images each second until they are over, or the time is. A look that fails may succeed the next time; the error is
/// that of the last look at an image that is not over.
async fn wait(rest: &Rest, args: &Args, made: &mut [Image]) -> Option<ToolError> {
    let begin = Instant::now();
    let mut reported = 0;
    let mut failed: Vec<Option<ToolError>> = vec![None; made.len()];
    loop {
        for (image, failed) in
            made.iter_mut().zip(&mut failed).filter(|(image, failed)| is_open(image, failed.as_ref()))
        {
            *failed = image.look(rest).await.err();
            if begin.elapsed() > WAIT + PAUSE {
                break;
            }
        }
        note(rest, made);
        let open = made.iter().zip(&failed).filter(|(image, failed)| is_open(image, failed.as_ref())).count();
        let waited = begin.elapsed();
        if open == 0 || waited >= WAIT {
            return failed.into_iter().flatten().next_back();
        }
        if let Some(cx) = args.cx() {
            reported = waited.as_secs().max(reported + 1);
            let text = format!("{} of {} images", made.len() - open, made.len());
            cx.progress_with(reported as f64, Some(WAIT.as_secs_f64()), &text);
        }
        sleep(PAUSE).await;
    }
}

/// Whether another look at an image may tell more: it goes on, and the last look was not refused.
fn is_open(image: &Image, failed: Option<&ToolError>) -> bool {
    let refused = |error: &ToolError| matches!(error.error_kind(), Some(ErrorKind::Denied | ErrorKind::NotFound));
    !image.is_over() && !failed.is_some_and(refused)
}

/// The error where no image is known to be there.
fn nothing(made: &[Image], failed: Option<ToolError>) -> ToolError {
    let open: Vec<&Image> = made.iter().filter(|image| !image.is_over()).collect();
    if open.is_empty() {
        let why = made.iter().map(|image| image.status.as_str()).collect::<Vec<_>>().join(", ");
        return odd("Error: EverArt made no image").detail(why);
    }
    let error = failed.unwrap_or_else(|| {
        let late =
            format!("Error: {} of {} images were not finished within {} s", open.len(), made.len(), WAIT.as_secs());
        ToolError::new(late).kind(ErrorKind::Timeout)
    });
    let ids = open.iter().map(|image| image.id.as_str()).collect::<Vec<_>>().join(", ");
    let detail = format!("Generations: {ids}\n{}", error.quoted().unwrap_or_default());
    error.hint(GOES_ON).detail(detail)
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
