//! Registration of the enabled tools on a server.

use crate::names::Names;
use crate::{Service, ToolChoice, ToolError, ToolPrefix, ToolSpec};
use linchpin::{Call, Next, PromptHandler, ResourceHandler, ToolHandler};
use linchpin::{Prompt, Resource, Server, Tool};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Registers the enabled tools of a service on a server under their exposed names. A tool with a different exposed name
/// also accepts calls by its canonical name, unlisted, unless another server of the process has a tool of that name.
/// Its former names ([`ToolSpec::aliases`]) work likewise, with and without the prefix. Instructions, descriptions,
/// hints and notices of the server use the listed names.
///
/// ```
/// # use linchpin_kit::{ToolError, Service, ToolChoice, ToolSpec, ToolSet, ToolOutput};
/// # use linchpin::{Server, Json}; use serde::{Serialize, Deserialize}; use schemars::JsonSchema;
/// # #[derive(Deserialize, JsonSchema)] struct Add { a: i64, b: i64 }
/// # #[derive(Serialize, JsonSchema)] struct Sum { sum: i64 }
/// const ADD: ToolSpec = ToolSpec::reads("add", "Add", "all", "Adds two numbers.");
/// const SERVICE: Service = Service { name: "calc", tools: &[ADD] };
///
/// struct Calc;
///
/// async fn add(_: &Calc, args: Add) -> Result<ToolOutput<Sum>, ToolError> {
///     let sum = args.a.checked_add(args.b).ok_or_else(|| ToolError::new("Too large").hint("Use smaller numbers."))?;
///     Ok(ToolOutput::ours(sum.to_string(), Sum { sum }))
/// }
///
/// let server = Server::new("calc", "1.0").state(Calc);
/// let server = ToolSet::open(server, &SERVICE, &ToolChoice::default())?.tool(&ADD, add).close();
/// # Ok::<(), ToolError>(())
/// ```
pub struct ToolSet<S> {
    server: Server<S>,
    service: &'static str,
    prefix: ToolPrefix,
    chosen: BTreeMap<&'static str, String>,
    names: Arc<Names>,
}

/// The enabled tools by their own names, and what the others are listed under. One copy for all states.
fn chosen(service: &Service, choice: &ToolChoice) -> Result<(BTreeMap<&'static str, String>, Names), ToolError> {
    let mut chosen = BTreeMap::new();
    chosen.extend(choice.choose(service)?.into_iter().map(|(spec, name)| (spec.name, name)));
    let mut names = Names::default();
    for (own, name) in &chosen {
        names.add(own, name);
    }
    Ok((chosen, names))
}

impl<S: Send + Sync + 'static> ToolSet<S> {
    /// Starts the registration of this service; the server's state must already be set.
    ///
    /// # Errors
    /// As [`ToolChoice::choose`].
    pub fn open(server: Server<S>, service: &Service, choice: &ToolChoice) -> Result<Self, ToolError> {
        let (chosen, names) = chosen(service, choice)?;
        Ok(Self { server, service: service.name, prefix: choice.prefix.clone(), chosen, names: names.into() })
    }

    /// Adds a paragraph to the server's instructions.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.server = self.server.instructions(self.names.in_words(&text).unwrap_or(text));
        self
    }

    /// Whether this tool is enabled.
    #[must_use]
    pub fn has(&self, spec: &ToolSpec) -> bool {
        self.chosen.contains_key(spec.name)
    }

    /// The name that this tool is listed under, if it is enabled.
    #[must_use]
    pub fn listed(&self, spec: &ToolSpec) -> Option<&str> {
        self.chosen.get(spec.name).map(String::as_str)
    }

    /// Adds the tool if it is enabled.
    #[must_use]
    #[track_caller]
    pub fn tool<M, H>(self, spec: &ToolSpec, handler: H) -> Self
    where
        H: ToolHandler<S, M>,
    {
        self.tool_as(spec, |tool| tool, handler)
    }

    /// Adds the tool if it is enabled, with changes to its definition (a description with configured values, a custom
    /// schema).
    #[must_use]
    #[track_caller]
    pub fn tool_as<M, H>(mut self, spec: &ToolSpec, change: impl FnOnce(Tool) -> Tool, handler: H) -> Self
    where
        H: ToolHandler<S, M>,
    {
        if let Some(name) = self.chosen.get(spec.name) {
            let tool = named(&self.names, change(aliased(spec, name, &self.prefix, self.service)));
            self.server = self.server.tool(tool, handler);
        }
        self
    }

    /// Adds a prompt under its exposed name.
    #[must_use]
    #[track_caller]
    pub fn prompt<M, H>(
        mut self,
        name: &str,
        description: &str,
        change: impl FnOnce(Prompt) -> Prompt,
        handler: H,
    ) -> Self
    where
        H: PromptHandler<S, M>,
    {
        let exposed = self.prefix.apply(self.service, name);
        Arc::make_mut(&mut self.names).add(name, &exposed);
        let description = self.names.in_words(description).unwrap_or_else(|| description.to_owned());
        let mut prompt = change(Prompt::new(exposed.as_str(), description));
        if exposed != name {
            prompt = prompt.alias(name);
        }
        if !self.names.is_empty() {
            let names = self.names.clone();
            prompt = prompt.layer(move |call, next| names.clone().around(call, next));
        }
        self.server = self.server.prompt(prompt, handler);
        self
    }

    /// Adds a resource or a template. Texts of its handler use the listed tool names.
    #[must_use]
    #[track_caller]
    pub fn resource<M, H>(mut self, mut resource: Resource, handler: H) -> Self
    where
        H: ResourceHandler<S, M>,
    {
        if !self.names.is_empty() {
            let names = self.names.clone();
            resource = resource.layer(move |call, next| names.clone().around(call, next));
        }
        self.server = self.server.resource(resource, handler);
        self
    }

    /// Finishes the registration and returns the server.
    #[must_use]
    pub fn close(self) -> Server<S> {
        self.server
    }
}

/// The tool with listed names in its description.
fn named(names: &Arc<Names>, tool: Tool) -> Tool {
    if names.is_empty() {
        return tool;
    }
    let (said, names) = (names.clone(), names.clone());
    tool.reword(move |text| said.in_words(text)).layer(move |call, next| names.clone().around(call, next))
}

/// The listed tool with all its aliases, and the arguments of former names mapped.
fn aliased(spec: &ToolSpec, name: &str, prefix: &ToolPrefix, service: &str) -> Tool {
    let mut tool = spec.listed(name);
    if name != spec.name {
        tool = tool.alias(spec.name);
    }
    let mut moved = Vec::new();
    for alias in spec.aliases {
        let mut names = vec![alias.name.to_owned(), prefix.apply(service, alias.name)];
        names.dedup();
        for old in names {
            tool = tool.alias(old.as_str());
            if !alias.arguments.is_empty() {
                moved.push((old, alias.arguments));
            }
        }
    }
    if moved.is_empty() {
        return tool;
    }
    tool.layer(move |mut call: Call, next: Next| {
        let arguments = moved.iter().find(|(old, _)| *old == call.name()).map(|(_, arguments)| *arguments);
        if let Some(json) = arguments.and_then(|arguments| renamed(&call.arguments(), arguments)) {
            call.set_arguments(json);
        }
        next.run(call)
    })
}

/// The raw members of a JSON object, duplicates included; the handler validates them.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Visitor<'de> for Members {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(member) = map.next_entry()? {
            self.0.push(member);
        }
        Ok(self)
    }
}

/// The arguments with old names replaced. `None` if there are none, or both the old and the new name are present, so
/// that the handler gets the arguments as sent.
fn renamed(json: &str, arguments: &[(&str, &str)]) -> Option<String> {
    let Members(mut members) = serde_json::Deserializer::from_str(json).deserialize_map(Members(Vec::new())).ok()?;
    let mut any = false;
    for (old, new) in arguments {
        if members.iter().any(|(name, _)| name == new) {
            continue;
        }
        for (name, _) in members.iter_mut().filter(|(name, _)| name == old) {
            *name = (*new).to_owned();
            any = true;
        }
    }
    let mut out = Vec::with_capacity(json.len());
    serde_json::Serializer::new(&mut out).collect_map(members).ok()?;
    any.then(|| String::from_utf8(out).ok()).flatten()
}
