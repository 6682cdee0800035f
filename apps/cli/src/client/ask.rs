//! Responses to elicitation and sampling requests: from the command line, from a script, or from the terminal. The declared
//! capabilities do not depend on these: a request without a response is declined, with a note on standard error.
//!
//! A script (`--answers FILE`) is a JSON array. Its items are used once each, in order; an item is skipped when it is
//! of another kind than the request or its `when` is not part of the request's message.
//!
//! | item | responds to |
//! |---|---|
//! | `{"accept": {"field": value, …}}` | a form |
//! | `{"open": true}` | a URL elicitation: accepted |
//! | `{"sample": "text"}` | a sampling request; also a whole result, as an object |
//! | `{"decline": true}`, `{"cancel": true}` | any request |
//!
//! `"when": "part of the message"` and `"again": true` (use it more than once) are optional for each.

use crate::client::args;
use crate::fail::Failure;
use crate::show::out::{Style, indent, near, note, prompt_is_over, shorten, stderr_is_terminal, tell};
use linchpin::client::{BoxError, Client, ElicitForm, ElicitUrl, SamplingRequest};
use linchpin::types::elicit::ElicitResult;
use linchpin::types::sample::{CreateMessageResult, SamplingMessageContentBlock as Block};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Responses to elicitation and sampling requests.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Elicitation and sampling")]
pub(crate) struct AnswerArgs {
    /// Set a form field: FIELD=VALUE. May be repeated. Without a terminal, other fields use their defaults.
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) answer: Vec<String>,

    /// Respond from this script: a JSON array of {"accept": {…}}, {"decline": true}, {"cancel": true}, {"open": true} and
    /// {"sample": "text"}, each with an optional "when": "part of the message" and "again": true.
    #[arg(long, value_name = "FILE")]
    pub(crate) answers: Option<PathBuf>,

    /// Decline everything else without prompting on the terminal.
    #[arg(long)]
    pub(crate) decline: bool,
}

/// All sources of responses.
struct Answers {
    fields: Vec<(String, String)>,
    /// The fields of the forms that were shown.
    shown: Mutex<BTreeSet<String>>,
    script: Mutex<Vec<Map<String, Value>>>,
    decline: bool,
    /// Held while a request is shown: one at a time.
    terminal: Option<tokio::sync::Mutex<()>>,
}

impl AnswerArgs {
    /// Registers the callbacks with the client.
    pub(crate) fn add_to(&self, client: Client) -> Result<Client, Failure> {
        let terminal = std::io::stdin().is_terminal() && stderr_is_terminal();
        let fields = self
            .answer
            .iter()
            .map(|pair| {
                pair.split_once('=')
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .ok_or_else(|| Failure::usage(format!("invalid value `{pair}` for --answer: expected FIELD=VALUE")))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let script = self.answers.as_deref().map(script).transpose()?;
        let answers = Arc::new(Answers {
            fields,
            shown: Mutex::default(),
            script: Mutex::new(script.unwrap_or_default()),
            decline: self.decline,
            terminal: terminal.then(Default::default),
        });
        let (form, url, sample) = (answers.clone(), answers.clone(), answers);
        let client = client.on_elicitation(move |asked| {
            let answers = form.clone();
            async move { answers.form(&asked).await }
        });
        let client = client.on_url_elicitation(move |asked| {
            let answers = url.clone();
            async move { answers.url(&asked).await }
        });
        Ok(client.on_sampling(move |asked| {
            let answers = sample.clone();
            async move { answers.sample(&asked).await }
        }))
    }
}

fn script(file: &std::path::Path) -> Result<Vec<Map<String, Value>>, Failure> {
    const KNOWN: [&str; 7] = ["accept", "decline", "cancel", "open", "sample", "when", "again"];
    let name = file.display().to_string();
    let items: Vec<Map<String, Value>> = serde_json::from_str(&args::input(&name)?)
        .map_err(|e| Failure::usage(format!("{name} must be a JSON array of objects: {e}")))?;
    for (at, item) in items.iter().enumerate() {
        let kinds = item.keys().filter(|k| KNOWN[..5].contains(&k.as_str())).count();
        if kinds != 1 || item.keys().any(|k| !KNOWN.contains(&k.as_str())) {
            return Err(Failure::usage(format!("{name}: item {} is invalid", at + 1)).hint(
                "each item has exactly one of accept, decline, cancel, open and sample, and optionally when and again",
            ));
        }
    }
    Ok(items)
}

impl Answers {
    /// Takes the script's next response to a request of this kind.
    fn scripted(&self, kind: &str, message: &str) -> Option<Map<String, Value>> {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let at = script.iter().position(|item| {
            let fits = [kind, "decline", "cancel"].iter().any(|k| item.contains_key(*k));
            fits && item.get("when").and_then(Value::as_str).is_none_or(|part| message.contains(part))
        })?;
        match script[at].get("again") {
            Some(Value::Bool(true)) => Some(script[at].clone()),
            _ => Some(script.remove(at)),
        }
    }

    async fn form(&self, form: &ElicitForm) -> ElicitResult {
        let names = || form.schema.properties.0.iter().map(|(name, _)| name.as_str());
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).extend(names().map(str::to_owned));
        if let Some(item) = self.scripted("accept", &form.message) {
            return match item.get("accept") {
                Some(content) => form.accept(content),
                None if item.contains_key("decline") => form.decline(),
                None => form.cancel(),
            };
        }
        let mut content = Map::new();
        for (name, field) in &form.schema.properties.0 {
            let schema = serde_json::to_value(field).unwrap_or_default();
            for (_, text) in self.fields.iter().filter(|(n, _)| n == name) {
                match (args::typed(text, Some(&schema), &schema), content.get_mut(name)) {
                    (Ok(Value::Array(more)), Some(Value::Array(chosen))) => chosen.extend(more),
                    (Ok(value), _) => drop(content.insert(name.clone(), value)),
                    (Err(why), _) => {
                        note(format!("warning: --answer {name} {why}"));
                        return form.cancel();
                    }
                }
            }
        }
        match &self.terminal {
            _ if self.decline && content.is_empty() => form.decline(),
            Some(terminal) => {
                let _one = terminal.lock().await;
                ask_form(form, content).await
            }
            None if content.is_empty() => {
                let fields = shorten(&names().collect::<Vec<_>>().join(", "), 300);
                let flags = match fields.is_empty() {
                    true => "--answers FILE".to_owned(),
                    false => format!("--answer FIELD=VALUE (fields: {fields}) or --answers FILE"),
                };
                self.unanswered(&form.server, &form.message, &flags);
                form.decline()
            }
            None => form.accept(content),
        }
    }

    /// Notes that a request is declined for want of a response.
    fn unanswered(&self, server: &str, question: &str, flags: &str) {
        if !self.decline {
            note(format!("declined, because there is no terminal: {server} asks: {}", shorten(question, 200)));
            note(format!("hint: respond with {flags}, or decline silently with --decline"));
        }
    }

    async fn url(&self, ask: &ElicitUrl) -> ElicitResult {
        if let Some(item) = self.scripted("open", &ask.message) {
            return match item.get("open") {
                Some(_) => ask.accept(),
                None if item.contains_key("decline") => ask.decline(),
                None => ask.cancel(),
            };
        }
        let Some(terminal) = self.terminal.as_ref().filter(|_| !self.decline) else {
            self.unanswered(&ask.server, &format!("{} {}", ask.message, ask.url), "--answers FILE");
            return ask.decline();
        };
        let _one = terminal.lock().await;
        let style = Style::of_stderr();
        note(format!("{} asks you to open a URL: {}", style.bold(&ask.server), ask.message));
        note(format!("  {}", ask.url));
        match choose("Open it in your browser if you trust it. Opened? [y]es, [n]o, [c]ancel: ", None).await {
            Choice::Yes => ask.accept(),
            Choice::No => ask.decline(),
            Choice::Cancel => ask.cancel(),
        }
    }

    async fn sample(&self, asked: &SamplingRequest) -> Result<CreateMessageResult, BoxError> {
        let texts: Vec<&str> =
            asked.params.messages.iter().flat_map(|m| &m.content).filter_map(Block::as_text).collect();
        let message = texts.join("\n");
        let refused = || Err(BoxError::from(Declined));
        if let Some(item) = self.scripted("sample", &message) {
            return match item.get("sample") {
                Some(Value::String(text)) => Ok(said(text, "script")),
                Some(whole) => {
                    let mut result = json!({ "role": "assistant", "model": "script" });
                    if let (Some(result), Some(whole)) = (result.as_object_mut(), whole.as_object()) {
                        result.extend(whole.clone());
                    }
                    serde_json::from_value(result)
                        .map_err(|e| format!("the script's sampling result is invalid: {e}").into())
                }
                None => refused(),
            };
        }
        let Some(terminal) = self.terminal.as_ref().filter(|_| !self.decline) else {
            self.unanswered(&asked.server, &message, "--answers FILE");
            return refused();
        };
        let _one = terminal.lock().await;
        let style = Style::of_stderr();
        note(format!("{} requests sampling:", style.bold(&asked.server)));
        if let Some(system) = &asked.params.system_prompt {
            note(style.dim(&indent(system, 4)));
        }
        note(indent(&message, 2));
        let mut answer: Vec<String> = Vec::new();
        while let Some(next) = line(if answer.is_empty() {
            "Respond in place of the model; an empty line ends the response, or declines the request: "
        } else {
            "... "
        })
        .await
        .filter(|next| !next.is_empty())
        {
            answer.push(next);
        }
        if answer.is_empty() { refused() } else { Ok(said(&answer.join("\n"), "a user")) }
    }
}

impl Drop for Answers {
    /// Names what was given for a field that no form had.
    fn drop(&mut self) {
        let shown = self.shown.get_mut().unwrap_or_else(PoisonError::into_inner);
        let unused: BTreeSet<&str> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
        for name in unused.into_iter().filter(|name| !shown.is_empty() && !shown.contains(*name)) {
            let meant = near(name, shown.iter().map(String::as_str)).map(|meant| format!("; did you mean `{meant}`?"));
            note(format!("warning: --answer {name}: no form has this field{}", meant.unwrap_or_default()));
        }
    }
}

/// The user declined the sampling request.
#[derive(Debug)]
pub(crate) struct Declined;

impl std::fmt::Display for Declined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the user refused")
    }
}

impl std::error::Error for Declined {}

fn said(text: &str, model: &str) -> CreateMessageResult {
    CreateMessageResult::text(model, text).with_stop_reason("endTurn")
}

/// Prompts for every field without a value, then for confirmation.
async fn ask_form(form: &ElicitForm, mut content: Map<String, Value>) -> ElicitResult {
    let style = Style::of_stderr();
    note(format!("{} asks: {}", style.bold(&form.server), form.message));
    for (name, field) in &form.schema.properties.0 {
        if content.contains_key(name) {
            continue;
        }
        let schema = serde_json::to_value(field).unwrap_or_default();
        let required = form.schema.required.contains(name);
        note(format!("  {}", describe(name, &schema, required, style)));
        loop {
            let Some(text) = line(&format!("  {name}> ")).await else { return form.cancel() };
            if text.is_empty() {
                if required && schema.get("default").is_none() {
                    note("  required");
                    continue;
                }
                break;
            }
            // Several choices are separated by commas.
            let typed = match schema["type"] == "array" && !text.starts_with('[') {
                true => Ok(text.split(',').map(|t| Value::String(t.trim().to_owned())).collect()),
                false => args::typed(&text, Some(&schema), &schema),
            };
            match typed {
                Ok(value) => {
                    content.insert(name.clone(), value);
                    break;
                }
                Err(why) => note(format!("  {why}")),
            }
        }
    }
    match choose("Send this? [Y]es, [n]o, [c]ancel: ", Some(Choice::Yes)).await {
        Choice::Yes => form.accept(content),
        Choice::No => form.decline(),
        Choice::Cancel => form.cancel(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Yes,
    No,
    Cancel,
}

/// Prompts until one of the three choices is entered. End of input cancels.
async fn choose(prompt: &str, default: Option<Choice>) -> Choice {
    loop {
        let Some(text) = line(prompt).await else { return Choice::Cancel };
        if let Some(choice) = chosen(&text).or(default.filter(|_| text.trim().is_empty())) {
            return choice;
        }
        note("  enter y, n or c");
    }
}

fn chosen(text: &str) -> Option<Choice> {
    match text.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Choice::Yes),
        "n" | "no" => Some(Choice::No),
        "c" | "cancel" => Some(Choice::Cancel),
        _ => None,
    }
}

fn describe(name: &str, schema: &Value, required: bool, style: Style) -> String {
    let text = |member: &str| schema.get(member).and_then(Value::as_str);
    let mut out = style.bold(text("title").unwrap_or(name));
    if let Some(description) = text("description") {
        out.push_str(&format!(": {description}"));
    }
    let choices = ["/enum", "/items/enum"].iter().find_map(|at| schema.pointer(at)?.as_array());
    let titled = ["/oneOf", "/anyOf", "/items/anyOf"].iter().find_map(|at| schema.pointer(at)?.as_array());
    let names: Vec<String> = match (choices, titled) {
        (Some(all), _) => all.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
        (_, Some(all)) => {
            all.iter().filter_map(|v| Some(format!("{} ({})", v["const"].as_str()?, v["title"].as_str()?))).collect()
        }
        _ => vec![text("type").unwrap_or("text").to_owned()],
    };
    let default = schema.get("default").map_or(String::new(), |v| format!("; default {v}"));
    let needed = if required { "required" } else { "optional" };
    out.push_str(&style.dim(&format!(" [{}{default}; {needed}]", names.join(", "))));
    out
}

/// Reads a line from the terminal; `None` at the end of input.
async fn line(prompt: &str) -> Option<String> {
    tell(prompt);
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|n| (n > 0).then_some(line))
    });
    let read = read.await;
    prompt_is_over();
    let line = read.ok()?.ok()??;
    Some(line.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_choose() {
        for (text, want) in [
            ("y", Some(Choice::Yes)),
            ("Yes ", Some(Choice::Yes)),
            ("N", Some(Choice::No)),
            ("no", Some(Choice::No)),
            ("c", Some(Choice::Cancel)),
            ("cancel", Some(Choice::Cancel)),
            ("clear; ls", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(chosen(text), want, "{text}");
        }
    }
}
