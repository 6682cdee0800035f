//! Putting the chosen tools on a server.

use crate::{Fault, Service, ToolChoice, ToolPrefix, ToolSpec};
use linchpin::server::{PromptHandler, Shape, ToolHandler};
use linchpin::{Prompt, Server, Tool};
use std::collections::BTreeMap;

/// Puts the chosen ones of a service's tools on a server, under the chosen names. A tool that is exposed under another name
/// than its own answers to its own name too, unlisted, as long as no other server of the process has one of that name.
///
/// ```
/// # use linchpin_kit::{Fault, Service, ToolChoice, ToolSpec, Toolbox, Shown};
/// # use linchpin::{Server, Json}; use serde::{Serialize, Deserialize}; use schemars::JsonSchema;
/// # #[derive(Deserialize, JsonSchema)] struct Add { a: i64, b: i64 }
/// # #[derive(Serialize, JsonSchema)] struct Sum { sum: i64 }
/// const ADD: ToolSpec = ToolSpec::reads("add", "Add", "all", "Adds two numbers.");
/// const SERVICE: Service = Service { name: "calc", tools: &[ADD] };
///
/// struct Calc;
///
/// async fn add(_: &Calc, args: Add) -> Result<Shown<Sum>, Fault> {
///     let sum = args.a.checked_add(args.b).ok_or_else(|| Fault::new("Too large").hint("Use smaller numbers."))?;
///     Ok(Shown::ours(sum.to_string(), Sum { sum }))
/// }
///
/// let server = Server::new("calc", "1.0").state(Calc);
/// let server = Toolbox::open(server, &SERVICE, &ToolChoice::default())?.tool(&ADD, add).close();
/// # Ok::<(), Fault>(())
/// ```
pub struct Toolbox<S> {
    server: Server<S>,
    service: &'static str,
    prefix: ToolPrefix,
    chosen: BTreeMap<&'static str, String>,
}

impl<S: Send + Sync + 'static> Toolbox<S> {
    /// For this service and this choice; the server's state must be the handlers' already.
    ///
    /// # Errors
    /// As [`ToolChoice::choose`].
    pub fn open(server: Server<S>, service: &Service, choice: &ToolChoice) -> Result<Self, Fault> {
        let chosen = choice.choose(service)?.into_iter().map(|(spec, name)| (spec.name, name)).collect();
        Ok(Self { server, service: service.name, prefix: choice.prefix.clone(), chosen })
    }

    /// Whether this tool was chosen.
    #[must_use]
    pub fn has(&self, spec: &ToolSpec) -> bool {
        self.chosen.contains_key(spec.name)
    }

    /// Adds the tool if it was chosen.
    #[must_use]
    #[track_caller]
    pub fn tool<M, H>(self, spec: &ToolSpec, handler: H) -> Self
    where
        H: Shape<S, M> + ToolHandler<S, M>,
    {
        self.tool_as(spec, |tool| tool, handler)
    }

    /// Adds the tool if it was chosen, with changes to its definition (a description that names what was configured, a
    /// schema of its own).
    #[must_use]
    #[track_caller]
    pub fn tool_as<M, H>(mut self, spec: &ToolSpec, change: impl FnOnce(Tool) -> Tool, handler: H) -> Self
    where
        H: Shape<S, M> + ToolHandler<S, M>,
    {
        if let Some(name) = self.chosen.get(spec.name) {
            let mut tool = spec.listed(name);
            if name != spec.name {
                tool = tool.alias(spec.name);
            }
            self.server = self.server.tool(change(tool), handler);
        }
        self
    }

    /// Adds a prompt under the name that the choice of prefixes gives it.
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
        H: Shape<S, M> + PromptHandler<S, M>,
    {
        let exposed = self.prefix.apply(self.service, name);
        let mut prompt = Prompt::new(exposed.as_str(), description);
        if exposed != name {
            prompt = prompt.alias(name);
        }
        self.server = self.server.prompt(change(prompt), handler);
        self
    }

    /// The server with everything that was added.
    #[must_use]
    pub fn close(self) -> Server<S> {
        self.server
    }
}
