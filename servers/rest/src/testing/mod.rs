//! What must be true of every row of a table, tried against a site of this machine: for the tests of servers.
//!
//! A [`Suite`] is given the table and a description of the API that was written (or taken) independently of it, as JSON:
//!
//! ```json
//! {
//!   "operations": [{
//!     "method": "GET", "path": "/v1/folders/{folder}/notes",
//!     "query": { "type": "object", "properties": { "per_page": { "type": "integer", "maximum": 100 } }, "additionalProperties": false },
//!     "wrong": { "query": { "per_page": 101 } },
//!     "answer": [{ "id": 1, "title": "A note" }]
//!   }],
//!   "calls": { "list_notes": { "least": { "folder": "home" }, "most": { "folder": "home", "size": 5 } } }
//! }
//! ```
//!
//! `query`, `headers` and `body` are JSON Schemas of what a request may have; `"x-style": "comma"` marks lists of a query that are
//! one parameter. `wrong` is a change that the schemas must refuse, so that what they let through means something. `least` and
//! `most` are arguments of each tool; `most` is a list where arguments exclude one another. Those of a method are under
//! `tool method`, or else under the name of its row.
//! `"plain": true` beside them says that the answer is text, which is no worse for not being JSON.

mod contract;
mod faults;
mod hostile;

use crate::profile::KeyPlace;
use crate::{Api, Call, Config, Exchange, Rest};
use contract::Contract;
use linchpin::Server;
use linchpin::client::{Client, Connection};
use linchpin::prelude::in_process;
use linchpin::testing::site::{Do, Seen, Site, json};
use linchpin_kit::{ERROR_META, Secret, Service, ToolError};
use serde_json::{Value, json};
use std::sync::Arc;

/// The key of all tests: what must not be found where it does not belong.
pub const KEY: &str = "k3y-that-must-not-be-seen";

/// The trials of a table.
#[derive(Debug, Clone)]
pub struct Suite {
    api: &'static Api,
    service: &'static Service,
    contract: Arc<Contract>,
    open: Option<fn(Config) -> Result<Rest, ToolError>>,
}

/// What a tool answered.
#[derive(Debug, Clone)]
pub struct Told {
    /// The whole result as JSON.
    pub result: Value,
    /// Whether it is an error.
    pub failed: bool,
    /// The kind of the error.
    pub kind: String,
    /// The text of the first block.
    pub text: String,
    /// The structured content.
    pub structured: Value,
}

impl Suite {
    /// Reads the description of the API.
    ///
    /// # Panics
    /// If it is not such a description.
    pub fn new(api: &'static Api, service: &'static Service, contract: &str) -> Suite {
        Suite { api, service, contract: Arc::new(Contract::parse(contract)), open: None }
    }

    /// Sets how the server opens the engine, where that is more than [`Rest::open`]: its own function, with options of its own.
    #[must_use]
    pub fn opened_by(self, open: fn(Config) -> Result<Rest, ToolError>) -> Suite {
        Suite { open: Some(open), ..self }
    }

    /// All of the trials.
    ///
    /// # Panics
    /// If one fails.
    pub async fn run(&self) {
        self.contract().await;
        self.hostile_arguments().await;
        self.faults().await;
    }

    /// The configuration for a site.
    pub fn config(&self, site: &Site) -> Config {
        Config::default().with(|config| {
            let path = self.api.profile.base.splitn(4, '/').nth(3).unwrap_or_default();
            config.api_url = Some(site.url(&format!("/{path}")));
            config.key = Some(Secret::new(KEY));
            config.env_proxies = false;
            config.pace_ms = Some(0);
            config.tools.toolsets = vec!["all".to_owned()];
            for flag in self.service.tools.iter().filter_map(|tool| tool.needs) {
                config.tools.grant(flag, true);
            }
        })
    }

    /// The same with the one tool of a trial.
    fn config_of(&self, trial: &Trial, site: &Site) -> Config {
        self.config(site).with(|config| {
            config.tools.toolsets.clear();
            config.tools.enable = vec![trial.name().to_owned()];
        })
    }

    /// A site that answers as the description says.
    pub async fn site(&self) -> Site {
        let contract = self.contract.clone();
        Site::new(move |_, seen| vec![Do::Write(json(200, "", contract.answer(seen)))]).await
    }

    /// The same, unless this function knows better.
    pub async fn site_but(&self, special: impl Fn(&Seen) -> Option<Vec<u8>> + Send + Sync + 'static) -> Site {
        let contract = self.contract.clone();
        let usual = move |seen: &Seen| json(200, "", contract.answer(seen));
        Site::new(move |_, seen| vec![Do::Write(special(seen).unwrap_or_else(|| usual(seen)))]).await
    }

    /// Connects a client to the server.
    ///
    /// # Panics
    /// If the configuration is invalid.
    pub async fn connect(&self, config: Config) -> Connection {
        let opened = match self.open {
            Some(open) => open(config),
            None => Rest::open(self.api, config),
        };
        self.serve(opened.expect("a valid configuration")).await
    }

    /// The same with something else than the network.
    ///
    /// # Panics
    /// If the configuration is invalid.
    pub async fn connect_over(&self, config: Config, exchange: impl Exchange) -> Connection {
        self.serve(Rest::open_over(self.api, config, exchange).expect("a valid configuration")).await
    }

    /// The same with an engine that the test has opened.
    ///
    /// # Panics
    /// If its configuration names unknown tools.
    pub async fn serve(&self, rest: Rest) -> Connection {
        let server = rest.add_to(Server::new("test", "0"), self.service).expect("known tools");
        Client::new("test", "0").check_results(true).connect(in_process(server)).await.expect("it connects")
    }

    /// Every row, under the tool that it is called by.
    fn trials(&self) -> Vec<Trial> {
        let of = |call: &'static Call| {
            let methods = call.methods.iter().map(move |(method, row)| Trial { tool: call, row, method: Some(method) });
            methods.chain(call.methods.is_empty().then_some(Trial { tool: call, row: call, method: None }))
        };
        self.api.calls.iter().flat_map(of).collect()
    }

    /// The arguments of a row: `least` or `most`. A method without its own has those of its row's name.
    fn arguments(&self, trial: &Trial, which: &str) -> Value {
        let all = self.all_arguments(trial, which);
        all.into_iter().next().unwrap_or_else(|| panic!("the description has no `{which}` for {}", trial.what()))
    }

    /// The same where arguments exclude one another: in several objects.
    fn all_arguments(&self, trial: &Trial, which: &str) -> Vec<Value> {
        let (own, row) = (trial.what(), trial.row.spec.name);
        let name = if self.contract.has_arguments(&own) { own.as_str() } else { row };
        let mut all = self.contract.all_arguments(name, which);
        if let Some(method) = trial.method {
            all.iter_mut().for_each(|arguments| arguments["method"] = json!(method));
        }
        all
    }
}

/// A row, and how it is called.
#[derive(Debug, Clone, Copy)]
struct Trial {
    tool: &'static Call,
    row: &'static Call,
    method: Option<&'static str>,
}

impl Trial {
    /// The name of the tool.
    fn name(&self) -> &'static str {
        self.tool.spec.name
    }

    /// For messages.
    fn what(&self) -> String {
        self.method.map_or_else(|| self.name().to_owned(), |method| format!("{} {method}", self.name()))
    }
}

/// Variables with which a published server written for Node finds this site where it asks the one host that is in its code. It
/// opens nothing in a browser.
#[must_use]
pub fn led(host: &str, site: &Site) -> [(&'static str, String); 3] {
    let script = concat!("--require ", env!("CARGO_MANIFEST_DIR"), "/src/testing/lead.cjs");
    [("NODE_OPTIONS", script.to_owned()), ("LED_HOST", host.to_owned()), ("LED_TO", site.url("/"))]
}

/// Makes a call.
///
/// # Panics
/// If there is no result, which not even the worst answer of an API may cause.
pub async fn call(connection: &Connection, tool: &str, arguments: Value) -> Told {
    let answer = connection.call(tool, arguments.clone()).await.unwrap_or_else(|e| panic!("{tool} {arguments}: {e}"));
    let failed = answer.is_error();
    let result = answer.result().unwrap_or_else(|_| panic!("{tool} {arguments}: no result"));
    let result = serde_json::to_value(result).unwrap_or_default();
    let part = |path: &str| result.pointer(path).cloned().unwrap_or_default();
    let kind = result["_meta"][ERROR_META]["kind"].as_str().unwrap_or_default().to_owned();
    let text = part("/content/0/text").as_str().unwrap_or_default().to_owned();
    Told { failed, kind, text, structured: part("/structuredContent"), result }
}

/// Where the key was sent. It belongs in the header (or, for old APIs, the parameter) that the API says, of requests to it.
fn check_key(api: &Api, seen: &[Seen], what: &str) {
    let places = api.profile.bases.iter().filter_map(|base| base.key).chain([api.profile.key.place]);
    let params: Vec<String> = places
        .filter_map(|place| if let KeyPlace::Query(name) = place { Some(format!("{name}={KEY}")) } else { None })
        .collect();
    for request in seen {
        let (path, query) = (request.path(), request.query());
        let elsewhere = query.split('&').find(|pair| pair.contains(KEY) && !params.iter().any(|own| own == pair));
        assert!(!path.contains(KEY) && elsewhere.is_none(), "{what}: the key is in {}", request.target);
        assert!(!String::from_utf8_lossy(&request.body).contains(KEY), "{what}: the key is in the body");
        let headers = request.headers.iter().filter(|(_, value)| value.contains(KEY)).count();
        assert!(headers <= 1, "{what}: the key is in {headers} headers");
    }
}

/// Of an API without a key the site repeats what it was never sent.
fn without_key(api: &Api, told: &Told, what: &str) {
    assert!(
        api.profile.key.place == KeyPlace::None || !told.result.to_string().contains(KEY),
        "{what}: the key is in {}",
        told.result
    );
}

/// The value with every leaf changed.
fn every_leaf(value: &Value, change: &dyn Fn(&Value) -> Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| every_leaf(item, change)).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(n, v)| (n.clone(), every_leaf(v, change))).collect())
        }
        leaf => change(leaf),
    }
}

/// Arguments with one more.
fn with(arguments: &Value, name: &str, value: impl Into<Value>) -> Value {
    let mut all = arguments.clone();
    if all.is_null() {
        all = json!({});
    }
    all[name] = value.into();
    all
}
