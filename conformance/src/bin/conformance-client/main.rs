//! The client that the official conformance suite runs: `conformance-client [PROGRAM ERA REVISION] URL`. With the three words the
//! client speaks this revision with a bridge, which the program is, and the bridge this era with the suite.
//!
//! The suite says in the environment what is wanted: `MCP_CONFORMANCE_SCENARIO` names the scenario (without it, tools are
//! listed), `MCP_CONFORMANCE_PROTOCOL_VERSION` the revision (without it, that is found out), `MCP_CONFORMANCE_CONTEXT` holds
//! what the scenario hands out (JSON).
//! Written with Linchpin's public API, as any host would be: it must never speak the protocol by itself, because then the
//! suite would test this program instead of Linchpin.
//!
//! It ends with 0 and the line `conformance-client: done` on standard error when everything was answered.

mod auth;
mod calls;
mod headers;
mod skills;

use linchpin::client::Connection;
use linchpin::prelude::*;
use linchpin::transport::{Child, Remote};
use linchpin::types::version::Revision;
use serde_json::Value;
use std::process::ExitCode;

/// Any failure, in words.
type Outcome<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What the suite wants done.
struct Task {
    scenario: String,
    revision: Option<Revision>,
    context: Value,
    url: String,
    bridge: Option<Bridged>,
}

/// A bridge between this client and the suite.
struct Bridged {
    program: String,
    era: String,
    /// What is spoken with the bridge.
    revision: Revision,
}

impl Task {
    fn read() -> Outcome<Task> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let revision = match variable("MCP_CONFORMANCE_PROTOCOL_VERSION") {
            Some(version) => Some(Revision::parse(&version).ok_or_else(|| format!("{version} is not a revision"))?),
            None => None,
        };
        let context = match variable("MCP_CONFORMANCE_CONTEXT") {
            Some(text) => serde_json::from_str(&text).map_err(|e| format!("MCP_CONFORMANCE_CONTEXT: {e}"))?,
            None => Value::Null,
        };
        let words: Vec<String> = std::env::args().skip(1).collect();
        let bridge = match words.as_slice() {
            [program, era, revision, _] => Some(Bridged {
                program: program.clone(),
                era: era.clone(),
                revision: Revision::parse(revision).ok_or_else(|| format!("{revision} is not a revision"))?,
            }),
            _ => None,
        };
        Ok(Task {
            scenario: variable("MCP_CONFORMANCE_SCENARIO").unwrap_or_default(),
            revision,
            context,
            url: words.last().ok_or("usage: conformance-client [PROGRAM ERA REVISION] URL")?.clone(),
            bridge,
        })
    }

    /// A text that the scenario hands out.
    fn given(&self, name: &str) -> Outcome<&str> {
        Ok(self.context[name].as_str().ok_or_else(|| format!("the context has no text `{name}`"))?)
    }

    /// What may be spoken: the revision that is tested, and where there are sessions the older ones too, because a server
    /// may answer a handshake with an older one. Nothing is probed: what is tried first is the revision itself.
    fn revisions(&self) -> Vec<Revision> {
        if let Some(bridge) = &self.bridge {
            return vec![bridge.revision];
        }
        let newest = self.revision.unwrap_or(Revision::LATEST);
        match self.revision {
            Some(Revision::LATEST) => vec![newest],
            _ => Revision::ALL.into_iter().filter(|other| *other <= newest).collect(),
        }
    }

    /// A host that is asked for nothing.
    fn host(&self) -> Client {
        Client::new("linchpin-conformance", env!("CARGO_PKG_VERSION")).revisions(&self.revisions())
    }

    fn place(&self) -> Outcome<Remote> {
        Ok(remote(&self.url)?)
    }

    /// Connects as that host.
    async fn connect(&self) -> Outcome<Connection> {
        self.connect_as(self.host()).await
    }

    /// Connects as this host, through the bridge if there is one.
    async fn connect_as(&self, host: Client) -> Outcome<Connection> {
        match &self.bridge {
            None => Ok(host.connect(self.place()?).await?),
            Some(Bridged { program, era, .. }) => {
                Ok(host.connect(Child::new(program).args(["bridge", "--era", era, &self.url])).await?)
            }
        }
    }
}

async fn run(task: &Task) -> Outcome {
    match task.scenario.as_str() {
        "tools_call" => calls::tools_call(task).await,
        "elicitation-sep1034-client-defaults" => calls::form_defaults(task).await,
        "sse-retry" => calls::reconnection(task).await,
        "request-metadata" => calls::metadata(task).await,
        "sep-2322-client-request-state" => calls::rounds(task).await,
        "json-schema-2020-12-preservation" => calls::schema_preserved(task).await,
        "http-standard-headers" => headers::standard(task).await,
        "http-custom-headers" => headers::custom(task).await,
        "http-invalid-tool-headers" => headers::invalid_tools(task).await,
        "sep-2640-client-no-prefetch" => skills::list(task).await,
        scenario if scenario.starts_with("sep-2640-") => skills::load(task).await,
        scenario if scenario.starts_with("auth/") => auth::run(task).await,
        // `initialize`, `json-schema-ref-no-deref`, and whatever there may be one day.
        _ => calls::list(task).await,
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Task::read() {
        Ok(task) => run(&task).await,
        Err(why) => Err(why),
    };
    match done {
        Ok(()) => {
            eprintln!("conformance-client: done");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("conformance-client: {why}");
            ExitCode::FAILURE
        }
    }
}
