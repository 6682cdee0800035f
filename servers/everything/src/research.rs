//! A tool whose calls are tasks: stages with messages, and a question between them.

use crate::Everything;
use linchpin::prelude::*;
use linchpin::types::elicit::{ElicitAction, ElicitResult};
use linchpin_kit::{ToolSet, ToolSpec};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

pub(crate) const RESEARCH: ToolSpec = ToolSpec::writes(
    "simulate-research-query",
    "Research",
    "asks",
    "Pretends to research a topic in four stages, as a task. An ambiguous topic is asked about, if the client has elicitation.",
);

/// What is done, one after the other.
const STAGES: [&str; 4] = ["Gathering sources", "Analyzing content", "Synthesizing findings", "Generating report"];
/// The stage before which is asked what an ambiguous topic means.
const ASKS_BEFORE: usize = 2;
const STAGE: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(300);

/// Adds the tool.
pub(crate) fn add(tools: ToolSet<Everything>) -> ToolSet<Everything> {
    tools.tool_as(&RESEARCH, |tool| tool.task_required().task_ttl(TTL), research)
}

#[derive(Deserialize, JsonSchema)]
struct Query {
    /// The research topic to investigate.
    topic: String,
    /// Whether the topic shall need a clarification.
    #[serde(default)]
    ambiguous: bool,
}

async fn research(_: &Everything, cx: &Cx, q: Query) -> Result<String> {
    let mut meant = None;
    for (at, stage) in STAGES.into_iter().enumerate() {
        let say = |text: &str| cx.progress_with(at as f64, Some(STAGES.len() as f64), text);
        say(&format!("{stage}..."));
        if at == ASKS_BEFORE && q.ambiguous && cx.caps().elicitation_form {
            say(&format!("Found multiple interpretations for \"{}\". Requesting clarification...", q.topic));
            let answer = clarified(cx, &q.topic).await;
            say(&format!("Continuing with interpretation: \"{answer}\"..."));
            meant = Some(answer);
        }
        tokio::time::sleep(STAGE).await;
    }
    Ok(report(&q.topic, meant.as_deref()))
}

/// What the user means, in the words of the report.
async fn clarified(cx: &Cx, topic: &str) -> String {
    let question = format!(
        "The research query \"{topic}\" could have multiple interpretations. Please clarify what you're looking for:"
    );
    let form = json!({
        "type": "object",
        "properties": {
            "interpretation": {
                "type": "string",
                "title": "Clarification",
                "description": "Which interpretation of the topic do you mean?",
                "oneOf": interpretations(topic)
            }
        },
        "required": ["interpretation"]
    });
    match cx.elicit_raw("interpretation", &question, form).await {
        Ok(ElicitResult { action: ElicitAction::Accept, content, .. }) => {
            let chosen = content.as_ref().and_then(|fields| fields.get("interpretation"));
            let chosen = chosen.and_then(|field| serde_json::to_value(field).ok());
            chosen.as_ref().and_then(Value::as_str).unwrap_or("User accepted without selection").to_owned()
        }
        Ok(ElicitResult { action: ElicitAction::Decline, .. }) => "User declined - using default interpretation".into(),
        Ok(_) => "User cancelled - using default interpretation".into(),
        Err(_) => "technical (default - elicitation unavailable)".into(),
    }
}

/// What a topic may mean.
fn interpretations(topic: &str) -> Value {
    let choices = match topic.to_lowercase().contains("python") {
        true => [
            ("programming", "Python programming language"),
            ("snake", "Python snake species"),
            ("comedy", "Monty Python comedy group"),
        ],
        false => [
            ("technical", "Technical/scientific perspective"),
            ("historical", "Historical perspective"),
            ("current", "Current events/news perspective"),
        ],
    };
    choices.map(|(value, title)| json!({ "const": value, "title": title })).into_iter().collect()
}

fn report(topic: &str, meant: Option<&str>) -> String {
    let title = meant.map_or(topic.to_owned(), |meant| format!("{topic} ({meant})"));
    let mut text = format!("# Research Report: {title}\n\n## Research Parameters\n- **Topic**: {topic}\n");
    if let Some(meant) = meant {
        let _ = writeln!(text, "- **Clarification**: {meant}");
    }
    let _ = write!(text, "\n## Synthesis\nThis research query was processed through {} stages:\n", STAGES.len());
    for (at, stage) in STAGES.into_iter().enumerate() {
        let _ = writeln!(text, "- Stage {}: {stage} ✓", at + 1);
    }
    text.push_str(
        "\n---\n\nNothing was researched: this call was a task, which was looked at until its result was there. \
         `statusMessage` named its stages, and a question made it `input_required`.\n",
    );
    text
}
