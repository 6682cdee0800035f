//! The definition of a tool.

use crate::access::Access;
use crate::invocation::{Bound, Run};
use crate::layer::{self, Call, Layer, Next};
use crate::schema;
use crate::target::Target;
#[cfg(feature = "tasks")]
use crate::tasks::options::{Mode, TaskTool};
use crate::ui::Ui;
use crate::validate::{self, Checker};
use crate::viewer::Viewer;
use linchpin_core::Reply;
use linchpin_core::service::HeaderParam;
use linchpin_proto::http::headers;
use linchpin_types::content::Icon;
use linchpin_types::meta::IntoMeta;
#[cfg(feature = "tasks")]
use linchpin_types::tool::TaskSupport;
use linchpin_types::tool::{Tool as Definition, ToolAnnotations};
use serde_json::Value;
use serde_json::value::RawValue;
use std::panic::Location;
use std::sync::Arc;

/// The definition of a tool: its name, description, hints and schemas.
///
/// The schemas of arguments and results are derived from the handler's types unless set here.
///
/// An optional argument (`Option<T>`) is listed as not required with the schema of `T`, because some models do not
/// support `null` in a type; `null` is accepted all the same. If `null` and absence mean different things, set the
/// schema with [`Tool::input_schema`].
///
/// ```
/// # use linchpin_server::Tool;
/// let tool = Tool::new("purge", "Deletes recorded days.").title("Purge").destructive().idempotent();
/// ```
#[derive(Clone)]
pub struct Tool {
    pub(crate) def: Definition,
    pub(crate) input: Option<Value>,
    pub(crate) output: Option<Value>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) place: &'static Location<'static>,
    pub(crate) hidden: Vec<Box<str>>,
    pub(crate) words: Option<Words>,
    pub(crate) access: Access,
    pub(crate) ui: Ui,
    #[cfg(feature = "tasks")]
    pub(crate) task: Option<Box<TaskTool>>,
}

/// A function that replaces a text; `None` keeps it.
type Words = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl Tool {
    /// Creates a tool with this name and description. The name has 1 to 128 letters, digits, `_`, `-` and `.`, which
    /// all clients accept.
    #[track_caller]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Tool {
        let description = description.into();
        let description = (!description.is_empty()).then_some(description);
        let mut def = Definition::default();
        (def.name, def.description) = (name.into(), description);
        Tool {
            def,
            input: None,
            output: None,
            layers: Vec::new(),
            place: Location::caller(),
            hidden: Vec::new(),
            words: None,
            access: Access::default(),
            ui: Ui::default(),
            #[cfg(feature = "tasks")]
            task: None,
        }
    }

    fn hints(mut self, set: impl FnOnce(&mut ToolAnnotations)) -> Tool {
        set(self.def.annotations.get_or_insert_default());
        self
    }

    /// Sets the display name (from 2025-06-18 on; for 2025-03-26, it is the title of the annotations).
    pub fn title(mut self, title: impl Into<String>) -> Tool {
        self.def.title = Some(title.into());
        self
    }

    /// Replaces the description.
    pub fn description(mut self, description: impl Into<String>) -> Tool {
        self.def.description = Some(description.into());
        self
    }

    /// Declares that the tool modifies nothing (`readOnlyHint`).
    pub fn read_only(self) -> Tool {
        self.hints(|h| h.read_only_hint = Some(true))
    }

    /// Declares that the tool modifies something (`readOnlyHint: false`).
    pub fn writes(self) -> Tool {
        self.hints(|h| h.read_only_hint = Some(false))
    }

    /// Declares that the tool may delete or overwrite data (`destructiveHint`).
    pub fn destructive(self) -> Tool {
        self.hints(|h| {
            h.read_only_hint = Some(false);
            h.destructive_hint = Some(true);
        })
    }

    /// Declares that the tool only adds data (`destructiveHint: false`).
    pub fn additive(self) -> Tool {
        self.hints(|h| {
            h.read_only_hint = Some(false);
            h.destructive_hint = Some(false);
        })
    }

    /// Declares that repeated calls with the same arguments have no further effect (`idempotentHint`).
    pub fn idempotent(self) -> Tool {
        self.hints(|h| h.idempotent_hint = Some(true))
    }

    /// Declares whether the tool interacts with external systems, for example the web (`openWorldHint`).
    pub fn open_world(self, open: bool) -> Tool {
        self.hints(|h| h.open_world_hint = Some(open))
    }

    /// Sets all four hints and the annotation title.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Tool {
        self.def.annotations = Some(annotations);
        self
    }

    /// Adds an icon (from 2025-11-25 on).
    pub fn icon(mut self, icon: Icon) -> Tool {
        self.def.icons.push(icon);
        self
    }

    /// Sets the `_meta` of the definition (from 2025-06-18 on).
    ///
    /// It is a `Meta`, or JSON such as `json!({ "example.com/cost": 1 })`.
    ///
    /// # Panics
    /// If the JSON is not an object.
    pub fn meta(mut self, meta: impl IntoMeta) -> Tool {
        self.def.meta = Some(meta.into_meta());
        self
    }

    /// Sets the schema of the arguments, instead of the one derived from the handler.
    ///
    /// It is sent to clients unchanged, and every call is checked against it. Without the feature `validate`, only
    /// types, members, enumerations, bounds and lengths are checked, not other keywords such as `pattern`.
    ///
    /// ```
    /// # use linchpin_server::{Server, Tool}; use serde_json::{Map, Value, json};
    /// let schema = json!({ "type": "object", "properties": { "sql": { "type": "string" } }, "required": ["sql"] });
    /// let tool = Tool::new("query", "Runs a query.").input_schema(schema);
    /// let server = Server::new("rows", "1.0").tool(tool, |q: Map<String, Value>| q["sql"].to_string());
    /// ```
    pub fn input_schema(mut self, schema: impl Into<Value>) -> Tool {
        self.input = Some(schema.into());
        self
    }

    /// Sets the schema of the structured result, instead of the one derived from the handler.
    pub fn output_schema(mut self, schema: impl Into<Value>) -> Tool {
        self.output = Some(schema.into());
        self
    }

    /// Adds a name that calls can use but that is not listed, for example one from an earlier version.
    ///
    /// It is ignored while another tool has this name or alias.
    pub fn alias(mut self, name: impl Into<Box<str>>) -> Tool {
        self.hidden.push(name.into());
        self
    }

    /// Replaces descriptions of the tool and its schemas, including those derived from the handler's types.
    ///
    /// `words` receives each text and returns its replacement, if any.
    pub fn reword(mut self, words: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Tool {
        self.words = Some(Arc::new(words));
        self
    }

    /// Sets the scopes that a call requires: its principal must have all of them.
    ///
    /// Over HTTP, the gate decides how to respond to a call without them: by default with status 403 and a challenge
    /// that names the scopes, so that clients can ask for them. The handler does not run. The tool is listed for all
    /// clients.
    ///
    /// Scopes are not checked on transports that only local users can reach (stdio, unix sockets, memory). [`http`] without a
    /// gate does not start if the server requires scopes.
    ///
    /// ```
    /// # use linchpin_server::Tool;
    /// let tool = Tool::new("purge", "Deletes all rows.").destructive().scopes(["rows:write"]);
    /// ```
    ///
    /// [`http`]: https://docs.rs/linchpin/latest/linchpin/transport/fn.http.html
    pub fn scopes<I>(mut self, scopes: I) -> Tool
    where
        I: IntoIterator,
        I::Item: Into<Arc<str>>,
    {
        self.access.set_scopes(scopes);
        self
    }

    /// Sets for which clients the tool exists: others do not see it in lists, cannot call it, and are not notified of its
    /// changes. For them, a request for it fails as if the tool did not exist.
    ///
    /// `visible` is called for every list and every call, so it must be fast. If a server has such items, its lists are built
    /// for each caller, and are never cached publicly.
    ///
    /// ```
    /// # use linchpin_server::Tool;
    /// let tool = Tool::new("purge", "Deletes all rows.").destructive().visible_to(|viewer| viewer.has_scope("admin"));
    /// ```
    ///
    /// For scopes that a client can ask for, use [`Tool::scopes`] instead: a client only asks for the scopes of tools that it
    /// sees.
    pub fn visible_to(mut self, visible: impl Fn(&Viewer) -> bool + Send + Sync + 'static) -> Tool {
        self.access.set_visible(visible);
        self
    }

    /// Sets the app of the tool, a page that shows its results (MCP Apps): the URI of an `App` of the crate `linchpin-apps`, or of a
    /// resource of type `text/html;profile=mcp-app`.
    ///
    /// Only clients that declare support for MCP Apps receive the URI. For others it is an ordinary tool, so its result
    /// needs text, too.
    ///
    /// ```
    /// # use linchpin_server::Tool;
    /// let tool = Tool::new("now", "Returns the time.").ui("ui://clock/face");
    /// let tick = Tool::new("tick", "Returns the time for the clock.").ui("ui://clock/face").visible("app");
    /// ```
    pub fn ui(mut self, uri: impl Into<String>) -> Tool {
        self.ui.uri = Some(uri.into());
        self
    }

    /// Sets who may call the tool: `"app"` for the page only, or `"model"` for the model only. Default: both.
    ///
    /// A tool that only the page may call exists only for clients that show pages; these hide it from the model.
    pub fn visible(mut self, to: impl Into<String>) -> Tool {
        self.ui.only = Some(to.into());
        self
    }

    /// Lets a call become a task: if it does not finish within `tasks.grace_ms`, or sends a request to the client, the client
    /// receives a task instead of the result, and fetches the result later.
    ///
    /// Only clients that declare support for tasks receive one; for others the tool is like any other. In revision 2025-11-25
    /// the client decides for each call (`taskSupport: optional`).
    ///
    /// ```
    /// # use linchpin_server::{Cx, Server, Tool};
    /// async fn yearly(cx: &Cx) -> &'static str {
    ///     cx.progress_with(1.0, None, "collecting");
    ///     tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    ///     "the report"
    /// }
    ///
    /// let server = Server::new("reports", "1.0").tool(Tool::new("yearly", "Writes the report of a year.").task(), yearly);
    /// ```
    #[cfg(feature = "tasks")]
    pub fn task(self) -> Tool {
        self.of_mode(Mode::May)
    }

    /// Makes every call a task at once. Calls of clients that do not support tasks are rejected.
    #[cfg(feature = "tasks")]
    pub fn task_required(self) -> Tool {
        self.of_mode(Mode::Must)
    }

    /// Lets the handler decide when a call becomes a task, with [`Cx::become_task`](crate::Cx::become_task). In
    /// revision 2025-11-25 the client decides: a call that it requests as a task is one at once, others never become
    /// one.
    #[cfg(feature = "tasks")]
    pub fn task_later(self) -> Tool {
        self.of_mode(Mode::Later)
    }

    #[cfg(feature = "tasks")]
    fn of_mode(mut self, mode: Mode) -> Tool {
        let support = if mode == Mode::Must { TaskSupport::Required } else { TaskSupport::Optional };
        self.def.execution = Some(support.into());
        self.task.get_or_insert_with(|| Box::new(TaskTool::new(mode))).mode = mode;
        self
    }

    #[cfg(feature = "tasks")]
    fn of_task(mut self, set: impl FnOnce(&mut TaskTool)) -> Tool {
        if self.task.is_none() {
            self = self.task();
        }
        if let Some(task) = &mut self.task {
            set(task);
        }
        self
    }

    /// Allows a task of the tool to be restarted from the beginning after the process that ran it has died. Steps that
    /// completed in [`Cx::memoize`](crate::Cx::memoize) are not repeated, and answered requests to the client are not
    /// sent again; everything else runs again. The same happens when a task has waited for an answer for longer than
    /// `tasks.suspend_ms`: it is suspended, and restarted once the answer is there. Timers and other work that the
    /// handler awaits alongside the question are dropped then.
    ///
    /// Tasks of idempotent tools (`idempotentHint`) are restarted without this option, too, but never suspended. A task
    /// of any other tool fails if its process has died, and so does one that was started three times. Restarts require
    /// tasks that outlive the process: [`Tasks::at`](crate::Tasks::at).
    #[cfg(feature = "tasks")]
    pub fn resumable(self) -> Tool {
        self.of_task(|task| task.resumable = true)
    }

    /// Sets how long tasks of the tool live, instead of `tasks.ttl_ms`, unless the client requests another time
    /// (2025-11-25 only).
    #[cfg(feature = "tasks")]
    pub fn task_ttl(self, ttl: std::time::Duration) -> Tool {
        self.of_task(|task| task.ttl = Some(ttl))
    }

    /// Sets a text for the model to read while the task runs (2025-11-25 only).
    #[cfg(feature = "tasks")]
    pub fn meanwhile(self, text: impl Into<Box<str>>) -> Tool {
        let text = text.into();
        self.of_task(|task| task.meanwhile = Some(text))
    }

    /// Wraps the tool in middleware; the last layer added runs first.
    ///
    /// ```
    /// # use linchpin_server::{Call, Next, Reply, Tool};
    /// async fn logged_in(call: Call, next: Next) -> Reply {
    ///     if call.cx().principal().is_none() {
    ///         return call.refuse("log in first");
    ///     }
    ///     next.run(call).await
    /// }
    ///
    /// let tool = Tool::new("purge", "Deletes all rows.").destructive().layer(logged_in);
    /// ```
    pub fn layer<F, Fut>(mut self, layer: F) -> Tool
    where
        F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        self.layers.insert(0, layer::erase(layer));
        self
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.def.name).finish_non_exhaustive()
    }
}

impl From<&str> for Tool {
    #[track_caller]
    fn from(name: &str) -> Tool {
        Tool::new(name, "")
    }
}

impl From<(&str, &str)> for Tool {
    #[track_caller]
    fn from((name, description): (&str, &str)) -> Tool {
        Tool::new(name, description)
    }
}

/// A tool in the registry.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) def: Definition,
    pub(crate) target: Target,
    pub(crate) headers: Option<Arc<[HeaderParam]>>,
    pub(crate) place: &'static Location<'static>,
    pub(crate) hidden: Vec<Box<str>>,
    pub(crate) access: Access,
    pub(crate) ui: Ui,
    #[cfg(feature = "tasks")]
    pub(crate) task: Option<Arc<TaskTool>>,
    bound: Bound,
}

/// Binds a definition to its handler. Errors are sentences for the author of the tool.
pub(crate) fn register(tool: Tool, bound: Bound, problems_max: usize) -> Result<Registered, String> {
    #[cfg(feature = "tasks")]
    let task = tool.task.map(Arc::from);
    let Tool { mut def, input, output, layers, place, hidden, words, access, ui, .. } = tool;
    let at = |why: String| format!("tool `{}` ({place}): {why}", def.name);
    if !name_ok(&def.name) {
        return Err(at("the name must be 1 to 128 letters, digits, `_`, `-` or `.`".into()));
    }
    access.check().map_err(at)?;
    ui.check().map_err(at)?;
    let Input { schema, headers, explain, run } = arguments(&def.name, input, &bound, problems_max).map_err(at)?;
    let output = match output {
        Some(output) => Some(given_output(&def.name, output, problems_max).map_err(at)?),
        None => (bound.output)().map(|mut output| {
            schema::portable(&mut output);
            schema::raw(&output)
        }),
    };
    (def.input_schema, def.output_schema) = (schema, output);
    reword(&mut def, words);
    let Bound { wants_cx, per_session, .. } = bound;
    let name = def.name.as_str().into();
    let target = Target { name, run, layers: layers.into(), wants_cx, per_session, explain: Some(explain) };
    Ok(Registered {
        def,
        target,
        headers,
        place,
        hidden,
        access,
        ui,
        #[cfg(feature = "tasks")]
        task,
        bound,
    })
}

impl Registered {
    /// The tool after `change`. A schema that `change` does not set is kept.
    pub(crate) fn changed(&self, change: impl FnOnce(Tool) -> Tool, problems_max: usize) -> Result<Registered, String> {
        let before = Tool {
            def: self.def.clone(),
            input: None,
            output: None,
            layers: self.target.layers.to_vec(),
            place: self.place,
            hidden: self.hidden.clone(),
            words: None,
            access: self.access.clone(),
            ui: self.ui.clone(),
            #[cfg(feature = "tasks")]
            task: self.task.as_deref().cloned().map(Box::new),
        };
        let after = change(before);
        #[cfg(feature = "tasks")]
        let task = after.task.map(Arc::from);
        let Tool { mut def, input, output, layers, hidden, words, access, ui, .. } = after;
        let at = |why: String| format!("tool `{}`: {why}", self.def.name);
        if def.name != self.def.name {
            return Err(at(format!("an update cannot change its name to `{}`; `rename` does that", def.name)));
        }
        let mut next = self.clone();
        (def.input_schema, def.output_schema) = (self.def.input_schema.clone(), self.def.output_schema.clone());
        if input.is_some() {
            let input = arguments(&def.name, input, &self.bound, problems_max).map_err(at)?;
            def.input_schema = input.schema;
            (next.headers, next.target.explain, next.target.run) = (input.headers, Some(input.explain), input.run);
        }
        if let Some(output) = output {
            def.output_schema = Some(given_output(&def.name, output, problems_max).map_err(at)?);
        }
        reword(&mut def, words);
        access.check().map_err(at)?;
        ui.check().map_err(at)?;
        (next.target.layers, next.hidden, next.def, next.access) = (layers.into(), hidden, def, access);
        next.ui = ui;
        #[cfg(feature = "tasks")]
        (next.task = task);
        Ok(next)
    }
}

/// The processed schema of a tool's arguments.
struct Input {
    schema: Box<RawValue>,
    headers: Option<Arc<[HeaderParam]>>,
    explain: Arc<Checker>,
    /// The handler, wrapped in a schema check if its types do not check as much.
    run: Run,
}

fn arguments(name: &str, given: Option<Value>, bound: &Bound, problems_max: usize) -> Result<Input, String> {
    let derived = given.is_none();
    let mut input = given.unwrap_or_else(bound.input);
    let checks = !derived || schema::beyond_serde(&input);
    let mut listed = input.clone();
    if derived {
        schema::without_type_bounds(&mut listed);
        schema::portable(&mut listed);
        schema::portable(&mut input);
    }
    if input["type"] != "object" {
        return Err("arguments must be a struct (a JSON object); wrap a single value in one".into());
    }
    let headers = headers::header_params(schema::raw(&input).get())?;
    let explain = validate::checker(name, input, !derived, problems_max)?;
    if derived {
        // `null` for an optional member is accepted, but not listed.
        schema::without_nulls(&mut listed);
    }
    let run = if checks { checked(bound.run.clone(), explain.clone()) } else { bound.run.clone() };
    Ok(Input { schema: schema::raw(&listed), headers: (!headers.is_empty()).then(|| headers.into()), explain, run })
}

/// Wraps a handler in a check of its arguments.
fn checked(run: Run, explain: Arc<Checker>) -> Run {
    Arc::new(move |call| {
        let problems = explain.problems(&call.args.json(), explain.problems_max());
        match problems.is_empty() {
            true => run(call),
            false => {
                let text = crate::dispatch::invalid(explain.name(), &problems, "");
                Box::pin(async move { crate::tool_result::failure(call.out, &text) })
            }
        }
    })
}

fn given_output(name: &str, output: Value, problems_max: usize) -> Result<Box<RawValue>, String> {
    let text = schema::raw(&output);
    validate::checker(name, output, true, problems_max).map_err(|why| format!("output schema: {why}"))?;
    Ok(text)
}

/// Applies `words` to the descriptions of a tool.
fn reword(def: &mut Definition, words: Option<Words>) {
    let Some(words) = words else { return };
    if let Some(said) = def.description.as_deref().and_then(&*words) {
        def.description = Some(said);
    }
    for schema in std::iter::once(&mut def.input_schema).chain(def.output_schema.as_mut()) {
        if let Ok(mut value) = serde_json::from_str(schema.get()) {
            schema::reword(&mut value, &*words);
            *schema = schema::raw(&value);
        }
    }
}

pub(crate) fn name_ok(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}
