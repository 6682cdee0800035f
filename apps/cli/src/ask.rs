//! Answering what servers ask: from the command line, from a script, or on the terminal.
//!
//! A script (`--answers FILE`) is a JSON list. Its items are used once each, in order; an item is passed over when it is
//! of another kind than the question or its `when` is not part of the question's text.
//!
//! | item | answers |
//! |---|---|
//! | `{"accept": {"field": value, …}}` | a form |
//! | `{"open": true}` | a request to open an address: yes, it was opened |
//! | `{"sample": "text"}` | a request to the model; also a whole result, as an object |
//! | `{"decline": true}`, `{"cancel": true}` | any question |
//!
//! `"when": "part of the message"` and `"again": true` (use it more than once) may be added to each.

use crate::args;
use crate::fail::Failure;
use crate::shown::{Style, indent, note, stderr_is_terminal, tell};
use linchpin::client::{AskUrl, Client, Form, Sample};
use linchpin::types::elicit::ElicitResult;
use linchpin::types::sample::{CreateMessageResult, SamplingMessageContentBlock as Block};
use serde_json::{Map, Value, json};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What questions are answered with.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Answering the server's questions")]
pub(crate) struct AnswerArgs {
    /// Fill in a field of forms: FIELD=VALUE. May be repeated. Without a terminal, other fields get their defaults.
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) answer: Vec<String>,

    /// Answer by this script: a JSON list of {"accept": {…}}, {"decline": true}, {"cancel": true}, {"open": true} and
    /// {"sample": "text"}, each with an optional "when": "part of the question" and "again": true.
    #[arg(long, value_name = "FILE")]
    pub(crate) answers: Option<PathBuf>,

    /// Say no to whatever is not answered otherwise.
    #[arg(long)]
    pub(crate) decline: bool,
}

/// Everything there is to answer with.
struct Answers {
    fields: Vec<(String, String)>,
    script: Mutex<Vec<Map<String, Value>>>,
    decline: bool,
    /// One question at a time.
    terminal: Option<tokio::sync::Mutex<()>>,
}

impl AnswerArgs {
    /// Lets the client answer, as far as there is something to answer with. What is not set is not declared.
    pub(crate) fn add_to(&self, client: Client) -> Result<Client, Failure> {
        let terminal = std::io::stdin().is_terminal() && stderr_is_terminal();
        let fields = self
            .answer
            .iter()
            .map(|pair| {
                pair.split_once('=')
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .ok_or_else(|| Failure::usage(format!("--answer wants FIELD=VALUE, and got `{pair}`")))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let script = self.answers.as_deref().map(script).transpose()?;
        let (fields_only, all) = (!fields.is_empty(), script.is_some() || self.decline || terminal);
        let answers = Arc::new(Answers {
            fields,
            script: Mutex::new(script.unwrap_or_default()),
            decline: self.decline,
            terminal: terminal.then(Default::default),
        });
        let (form, url, sample) = (answers.clone(), answers.clone(), answers);
        let mut client = client;
        if fields_only || all {
            client = client.on_ask(move |asked| {
                let answers = form.clone();
                async move { answers.form(&asked).await }
            });
        }
        if all {
            client = client.on_ask_url(move |asked| {
                let answers = url.clone();
                async move { answers.url(&asked).await }
            });
            client = client.on_sample(move |asked| {
                let answers = sample.clone();
                async move { answers.sample(&asked).await }
            });
        }
        Ok(client)
    }
}

fn script(file: &std::path::Path) -> Result<Vec<Map<String, Value>>, Failure> {
    const KNOWN: [&str; 7] = ["accept", "decline", "cancel", "open", "sample", "when", "again"];
    let name = file.display().to_string();
    let items: Vec<Map<String, Value>> = serde_json::from_str(&args::input(&name)?)
        .map_err(|e| Failure::usage(format!("{name} is no JSON list of objects: {e}")))?;
    for (at, item) in items.iter().enumerate() {
        let kinds = item.keys().filter(|k| KNOWN[..5].contains(&k.as_str())).count();
        if kinds != 1 || item.keys().any(|k| !KNOWN.contains(&k.as_str())) {
            return Err(Failure::usage(format!("{name}: answer {} is none", at + 1))
                .hint("each has one of accept, decline, cancel, open and sample, and may have when and again"));
        }
    }
    Ok(items)
}

impl Answers {
    /// The script's next answer to a question of this kind.
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

    async fn form(&self, form: &Form) -> ElicitResult {
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
            None => form.accept(content),
        }
    }

    async fn url(&self, ask: &AskUrl) -> ElicitResult {
        if let Some(item) = self.scripted("open", &ask.message) {
            return match item.get("open") {
                Some(_) => ask.accept(),
                None if item.contains_key("decline") => ask.decline(),
                None => ask.cancel(),
            };
        }
        let Some(terminal) = self.terminal.as_ref().filter(|_| !self.decline) else { return ask.decline() };
        let _one = terminal.lock().await;
        let style = Style::of_stderr();
        note(format!("{} wants you to open an address: {}", style.bold(&ask.server), ask.message));
        note(format!("  {}", ask.url));
        match line("Open it in your browser if you trust it. Done? [y]es, [n]o, [c]ancel: ").await.as_deref() {
            Some("y" | "yes") => ask.accept(),
            Some("n" | "no") => ask.decline(),
            _ => ask.cancel(),
        }
    }

    async fn sample(&self, asked: &Sample) -> Result<CreateMessageResult, String> {
        let texts: Vec<&str> =
            asked.params.messages.iter().flat_map(|m| &m.content).filter_map(Block::as_text).collect();
        let message = texts.join("\n");
        let refused = || Err("the person refused".to_owned());
        if let Some(item) = self.scripted("sample", &message) {
            return match item.get("sample") {
                Some(Value::String(text)) => Ok(said(text, "script")),
                Some(whole) => {
                    let mut result = json!({ "role": "assistant", "model": "script" });
                    if let (Some(result), Some(whole)) = (result.as_object_mut(), whole.as_object()) {
                        result.extend(whole.clone());
                    }
                    serde_json::from_value(result).map_err(|e| format!("the script's answer cannot be used: {e}"))
                }
                None => refused(),
            };
        }
        let Some(terminal) = self.terminal.as_ref().filter(|_| !self.decline) else { return refused() };
        let _one = terminal.lock().await;
        let style = Style::of_stderr();
        note(format!("{} asks the model:", style.bold(&asked.server)));
        if let Some(system) = &asked.params.system_prompt {
            note(style.dim(&indent(system, 4)));
        }
        note(indent(&message, 2));
        let mut answer: Vec<String> = Vec::new();
        while let Some(next) = line(if answer.is_empty() {
            "Answer in its place; end with an empty line, or refuse with one: "
        } else {
            "... "
        })
        .await
        .filter(|next| !next.is_empty())
        {
            answer.push(next);
        }
        if answer.is_empty() { refused() } else { Ok(said(&answer.join("\n"), "a person")) }
    }
}

fn said(text: &str, model: &str) -> CreateMessageResult {
    CreateMessageResult {
        role: linchpin::types::content::Role::Assistant,
        content: vec![Block::text(text)],
        model: model.to_owned(),
        stop_reason: Some("endTurn".to_owned()),
        meta: None,
    }
}

/// Asks for every field that has no value yet, then whether to send it.
async fn ask_form(form: &Form, mut content: Map<String, Value>) -> ElicitResult {
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
                    note("  it is needed");
                    continue;
                }
                break;
            }
            // Several choices are written with commas between them.
            let typed = match schema["type"] == "array" && !text.starts_with('[') {
                true => Ok(text.split(',').map(|t| Value::String(t.trim().to_owned())).collect()),
                false => args::typed(&text, Some(&schema), &schema),
            };
            match typed {
                Ok(value) => {
                    content.insert(name.clone(), value);
                    break;
                }
                Err(why) => note(format!("  it {why}")),
            }
        }
    }
    match line("Send this? [Y]es, [n]o, [c]ancel: ").await.as_deref() {
        Some("" | "y" | "yes" | "Y") => form.accept(content),
        Some("n" | "no" | "N") => form.decline(),
        _ => form.cancel(),
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
    let needed = if required { "needed" } else { "optional" };
    out.push_str(&style.dim(&format!(" [{}{default}; {needed}]", names.join(", "))));
    out
}

/// One line of the terminal; `None` at its end.
async fn line(prompt: &str) -> Option<String> {
    tell(prompt);
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|n| (n > 0).then_some(line))
    });
    let line = read.await.ok()?.ok()??;
    Some(line.trim_end_matches(['\r', '\n']).to_owned())
}
