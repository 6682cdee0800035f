//! What a lane is: where the server is and what is to be checked. All of it is data.

use linchpin::types::version::Revision;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One connection to one server, and the checks to make on it in order.
#[derive(Deserialize)]
pub(crate) struct Lane {
    /// The server's command line; empty when it has an address.
    #[serde(default)]
    pub(crate) command: Vec<String>,
    /// Its environment variables.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Its address.
    #[serde(default)]
    pub(crate) url: Option<String>,
    /// Whether only the HTTP+SSE transport is spoken there.
    #[serde(default)]
    pub(crate) sse: bool,
    /// What the client may speak; everything when empty.
    #[serde(default)]
    revisions: Vec<Revision>,
    /// What must have been agreed on.
    pub(crate) revision: Revision,
    /// What the server must call itself.
    pub(crate) server: String,
    /// Where the messages are written down.
    pub(crate) recording: PathBuf,
    /// What stands for `{name}` in the checks.
    #[serde(default)]
    pub(crate) vars: BTreeMap<String, String>,
    /// The checks.
    pub(crate) checks: Vec<Check>,
}

/// One check.
#[derive(Deserialize)]
pub(crate) struct Check {
    /// Its name in the report.
    pub(crate) name: String,
    /// Why this server cannot do it.
    #[serde(default)]
    pub(crate) skip: Option<String>,
    /// What is done and what must come of it.
    #[serde(flatten)]
    pub(crate) action: Action,
}

/// What a check does.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(crate) enum Action {
    /// The revision and the server are those that are expected.
    Connect,
    /// The server answers a ping.
    Ping,
    /// A list has these names (URIs for resources), and nothing in it was refused.
    List { list: List, have: Vec<String> },
    /// The tools page by page are the tools at once.
    Pages {
        /// Pages there must be at least.
        least: usize,
    },
    /// A call of a tool.
    Call {
        tool: String,
        #[serde(default)]
        args: Value,
        #[serde(flatten)]
        expect: Expect,
    },
    /// A resource.
    Read {
        uri: String,
        #[serde(flatten)]
        expect: Expect,
    },
    /// A prompt.
    Prompt {
        prompt: String,
        #[serde(default)]
        args: Value,
        #[serde(flatten)]
        expect: Expect,
    },
    /// Suggestions for an argument.
    Complete {
        #[serde(default)]
        prompt: Option<String>,
        #[serde(default)]
        template: Option<String>,
        argument: String,
        value: String,
        #[serde(default)]
        known: BTreeMap<String, String>,
        have: Vec<String>,
    },
    /// A call that reports progress before its answer.
    Progress {
        tool: String,
        #[serde(default)]
        args: Value,
        least: usize,
    },
    /// A call that logs.
    Log {
        tool: String,
        #[serde(default)]
        args: Value,
        text: String,
    },
    /// A call that is dropped; the server then serves the next one, and where `stopped` is given, tells of it.
    Cancel {
        tool: String,
        #[serde(default)]
        args: Value,
        #[serde(default)]
        stopped: Option<String>,
    },
    /// A call that does not answer in time.
    Timeout {
        tool: String,
        #[serde(default)]
        args: Value,
    },
    /// A tool that asks the user.
    Ask {
        tool: String,
        #[serde(default)]
        args: Value,
        /// What the user fills in; `null` is a refusal.
        answer: Value,
        text: String,
    },
    /// A tool that asks the model or for the roots.
    Consult {
        tool: String,
        #[serde(default)]
        args: Value,
        text: String,
    },
    /// A call that becomes a task: looked at, awaited by its identifier, and once more after its end.
    Task {
        tool: String,
        /// The message that is told while it works.
        #[serde(default)]
        told: Option<String>,
        text: String,
    },
    /// A task that fails, with these words.
    TaskFails { tool: String, text: String },
    /// A task that is cancelled; the server, where `stopped` is given, tells of one more that it stopped.
    TaskCancel {
        tool: String,
        #[serde(default)]
        stopped: Option<String>,
    },
    /// A task that never was is lost.
    TaskUnknown,
    /// The list has the skills with these names, and nothing in it was refused.
    Skills { have: Vec<String> },
    /// A skill by its URI; its `SKILL.md` has the text, and the file beside it the other.
    Skill {
        uri: String,
        #[serde(default)]
        file: Option<(String, String)>,
        /// Whether its files have digests.
        #[serde(default = "yes")]
        verified: bool,
        #[serde(flatten)]
        expect: Expect,
    },
    /// The URIs of a directory's children.
    SkillDirectory { uri: String, have: Vec<String> },
    /// A resource that changes, by a call, while it is subscribed to.
    Subscribe {
        uri: String,
        tool: String,
        #[serde(default)]
        args: Value,
    },
    /// The list of tools changes by a call, and then has this tool.
    Changed {
        tool: String,
        #[serde(default)]
        args: Value,
        then: String,
    },
    /// Many calls at once; `{n}` in the arguments and in the answer is the number of the call.
    Parallel { tool: String, args: Value, calls: usize, text: String },
    /// A call with a text of this many bytes as one of its arguments, which comes back.
    Large { tool: String, argument: String, bytes: usize },
    /// A second connection to the same place speaks the same, and closes.
    Again,
    /// A call after which the server has forgotten the session, and another one, which works all the same.
    Forget { tool: String },
    /// A call whose stream the server closes before it answers.
    Resume { tool: String, text: String },
    /// The connection is closed and counts as closed.
    Close,
}

fn yes() -> bool {
    true
}

/// What is listed.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

/// What must come of a call, a read or a prompt.
#[derive(Default, Deserialize)]
pub(crate) struct Expect {
    /// Parts of the texts in the answer.
    #[serde(default)]
    pub(crate) text: Vec<String>,
    /// The structured result, decoded; members that are not named here may be anything.
    #[serde(default)]
    pub(crate) json: Option<Value>,
    /// The kinds of content, in order.
    #[serde(default)]
    pub(crate) kinds: Vec<String>,
    /// It must fail: the tool says so or the server answers with an error. `text` is then what must be said.
    #[serde(default)]
    pub(crate) fails: bool,
}

impl Lane {
    /// What the client may speak.
    pub(crate) fn accepted(&self) -> Vec<Revision> {
        if self.revisions.is_empty() { Revision::ALL.to_vec() } else { self.revisions.clone() }
    }

    /// Whether a check needs a page on the web.
    pub(crate) fn wants_page(&self) -> bool {
        self.checks.iter().any(|check| match &check.action {
            Action::Call { args, .. } | Action::Prompt { args, .. } => args.to_string().contains("{page}"),
            _ => false,
        })
    }

    /// Whether the client tells servers with sessions that it knows skills, as they announce them to no other.
    pub(crate) fn wants_skills(&self) -> bool {
        self.checks.iter().any(|check| matches!(check.action, Action::Skills { .. }))
    }

    /// The text with every `{name}` replaced.
    pub(crate) fn fill(&self, text: &str) -> String {
        self.vars.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    /// The same in every text of a value. Without a text there are no arguments.
    pub(crate) fn fill_all(&self, value: &Value) -> Value {
        match value {
            Value::Null => Value::Object(serde_json::Map::new()),
            other => self.filled(other),
        }
    }

    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.filled(item)).collect()),
            Value::Object(members) => {
                Value::Object(members.iter().map(|(name, value)| (name.clone(), self.filled(value))).collect())
            }
            other => other.clone(),
        }
    }
}
