//! The rows of the table.

use crate::arg::{Arg, Args, list, text};
use crate::ask::{Ask, Narrow};
use crate::{Answer, Pages, Problems, Rest};
use http::Method;
use linchpin::BoxFuture;
use linchpin_kit::{Alias, ToolError, ToolSpec};
use serde_json::{Map, Value, json};
use std::fmt;

/// The code of a row that takes several requests: `.run(|rest, args| Box::pin(push_files(rest, args)))`.
pub type Run = for<'a> fn(&'a Rest, Args) -> BoxFuture<'a, Result<Answer, ToolError>>;

/// Code that runs before a row's request: it may change the arguments (names become ids), refuse them, or answer in place of
/// the API.
pub type Before = for<'a> fn(&'a Rest, &'a mut Args) -> BoxFuture<'a, Result<Option<Answer>, ToolError>>;

/// Code that runs after a row's request: it may change the answer by what other requests say.
pub type After = for<'a> fn(&'a Rest, &'a Args, &'a mut Value) -> BoxFuture<'a, Result<(), ToolError>>;

/// The member in which [`After`] says how many parts of an item it has left out because of `--lockdown`: the result tells
/// their number, as it does of whole items.
pub const LEFT_OUT: &str = "linchpin_left_out";

/// Whether an item of such a request's answer is inside the operator's restriction.
pub type Inside = fn(&Value, &[String]) -> bool;

/// A row: an endpoint as a tool.
#[derive(Clone, Copy)]
pub struct Call {
    pub(crate) spec: ToolSpec,
    pub(crate) verb: Verb,
    pub(crate) base: &'static str,
    pub(crate) path: &'static str,
    pub(crate) args: &'static [Arg],
    pub(crate) fixed: &'static [(&'static str, &'static str)],
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) form: bool,
    pub(crate) pages: Option<Pages>,
    pub(crate) list: Option<&'static str>,
    pub(crate) items: Option<&'static str>,
    pub(crate) keep: &'static str,
    pub(crate) beside: &'static str,
    pub(crate) fields: Fields,
    pub(crate) tidy: Option<fn(&mut Value)>,
    pub(crate) text: Option<fn(&Value) -> String>,
    pub(crate) second: Option<fn(&Value) -> String>,
    pub(crate) before: Option<Before>,
    pub(crate) after: Option<After>,
    pub(crate) run: Option<Run>,
    pub(crate) scope: InScope,
    pub(crate) trusted: Option<fn(&Value) -> bool>,
    pub(crate) adjust: Option<fn(Ask, &Args) -> Ask>,
    pub(crate) problems: Option<Problems>,
    pub(crate) ignored: &'static [&'static str],
    pub(crate) methods: &'static [(&'static str, Call)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    pub(crate) fn method(self) -> Method {
        match self {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
            Verb::Put => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        }
    }
}

/// What callers may choose with `fields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fields {
    /// There is no such argument.
    None,
    /// Members of the answer.
    Any,
    /// Members of what is kept of it.
    Kept,
}

/// What a restriction means for a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InScope {
    /// The request names what it is about; otherwise it is refused.
    Named,
    /// It is about nothing that can be restricted.
    Always,
    /// It is narrowed, and so is its answer.
    Narrowed(Narrow, Inside),
}

const fn call(verb: Verb, spec: ToolSpec, path: &'static str) -> Call {
    Call {
        spec: spec.outside(),
        verb,
        base: "",
        path,
        args: &[],
        fixed: &[],
        headers: &[],
        form: false,
        pages: None,
        list: None,
        items: None,
        keep: "",
        beside: "",
        fields: Fields::None,
        tidy: None,
        text: None,
        second: None,
        before: None,
        after: None,
        run: None,
        scope: InScope::Named,
        trusted: None,
        adjust: None,
        problems: None,
        ignored: &[],
        methods: &[],
    }
}

/// A GET: reads, and may be repeated. The arguments are the tool's name, its title, its tool set, its description, and the
/// path.
#[must_use]
pub const fn get(
    name: &'static str,
    title: &'static str,
    toolset: &'static str,
    description: &'static str,
    path: &'static str,
) -> Call {
    call(Verb::Get, ToolSpec::reads(name, title, toolset, description), path)
}

/// A POST: adds something, each time anew.
#[must_use]
pub const fn post(
    name: &'static str,
    title: &'static str,
    toolset: &'static str,
    description: &'static str,
    path: &'static str,
) -> Call {
    call(Verb::Post, ToolSpec::writes(name, title, toolset, description), path)
}

/// A PATCH: changes what is there, to the same each time.
#[must_use]
pub const fn patch(
    name: &'static str,
    title: &'static str,
    toolset: &'static str,
    description: &'static str,
    path: &'static str,
) -> Call {
    call(Verb::Patch, ToolSpec::writes(name, title, toolset, description).destructive().idempotent(), path)
}

/// A PUT: replaces what is there, with the same each time.
#[must_use]
pub const fn put(
    name: &'static str,
    title: &'static str,
    toolset: &'static str,
    description: &'static str,
    path: &'static str,
) -> Call {
    call(Verb::Put, ToolSpec::writes(name, title, toolset, description).destructive().idempotent(), path)
}

/// A DELETE.
#[must_use]
pub const fn delete(
    name: &'static str,
    title: &'static str,
    toolset: &'static str,
    description: &'static str,
    path: &'static str,
) -> Call {
    call(Verb::Delete, ToolSpec::writes(name, title, toolset, description).destructive().idempotent(), path)
}

/// One tool for several rows, of which its argument `method` names one: a list of such tools costs models less than one of all
/// rows. Its arguments are those of its rows, and each call may have those of the row that it names; the description says which
/// a method needs. It changes and destroys what any of its rows does.
///
/// ```
/// use linchpin_rest::{Call, get, methods, post, segment, text};
///
/// const LIST: Call = get("list", "List", "notes", "Lists notes.", "/notes").list("");
/// const ADD: Call = post("add", "Add", "notes", "Adds a note.", "/notes").args(&[text("title")]);
/// const NOTES: Call = methods("notes", "Notes", "notes", "Lists notes; adds one (title).", &[("list", LIST), ("add", ADD)]);
/// assert!(NOTES.writes() && NOTES.accepts("title"));
/// ```
#[must_use]
pub const fn methods(
    name: &'static str,
    title: &'static str,
    toolset: &'static str,
    description: &'static str,
    rows: &'static [(&'static str, Call)],
) -> Call {
    let mut spec = ToolSpec::reads(name, title, toolset, description);
    let mut n = 0;
    while n < rows.len() {
        let row = &rows[n].1.spec;
        spec.writes |= row.writes;
        spec.destructive |= row.destructive;
        spec.idempotent &= row.idempotent;
        n += 1;
    }
    Call { methods: rows, ..call(Verb::Get, spec, "") }
}

impl Call {
    /// Sets its arguments.
    #[must_use]
    pub const fn args(self, args: &'static [Arg]) -> Call {
        Call { args, ..self }
    }

    /// Says that it is at another of the API's [bases](crate::Api::bases), by its name.
    #[must_use]
    pub const fn at(self, base: &'static str) -> Call {
        Call { base, ..self }
    }

    /// Sets how its failures are told, instead of the API's.
    #[must_use]
    pub const fn problems(self, problems: Problems) -> Call {
        Call { problems: Some(problems), ..self }
    }

    /// Sets parameters that are always sent, where arguments of the verb go. In a JSON body a value that is JSON is sent as
    /// such.
    #[must_use]
    pub const fn fixed(self, fixed: &'static [(&'static str, &'static str)]) -> Call {
        Call { fixed, ..self }
    }

    /// Sets further headers.
    #[must_use]
    pub const fn headers(self, headers: &'static [(&'static str, &'static str)]) -> Call {
        Call { headers, ..self }
    }

    /// Sends a form instead of JSON.
    #[must_use]
    pub const fn form(self) -> Call {
        Call { form: true, ..self }
    }

    /// Says that it only reads, although it is not a GET: a search whose question is a body. Undoes what methods before
    /// it have said of the tool, such as `needs`: call it first.
    #[must_use]
    pub const fn reads(self) -> Call {
        let ToolSpec { name, title, description, toolset, .. } = self.spec;
        Call { spec: ToolSpec::reads(name, title, toolset, description).outside(), ..self }
    }

    /// Says that it destroys nothing, although it is a PUT or PATCH.
    #[must_use]
    pub const fn additive(self) -> Call {
        Call { spec: ToolSpec { destructive: false, ..self.spec }, ..self }
    }

    /// Says that it may destroy something, although it is a POST.
    #[must_use]
    pub const fn destructive(self) -> Call {
        Call { spec: self.spec.destructive(), ..self }
    }

    /// Says that a repeated call is another one, although it is a PUT or PATCH.
    #[must_use]
    pub const fn once(self) -> Call {
        Call { spec: ToolSpec { idempotent: false, ..self.spec }, ..self }
    }

    /// Says that a repeated call adds nothing, although it is a POST.
    #[must_use]
    pub const fn again(self) -> Call {
        Call { spec: self.spec.idempotent(), ..self }
    }

    /// Offers it only where its name or tool set is enabled.
    #[must_use]
    pub const fn on_request(self) -> Call {
        Call { spec: self.spec.on_request(), ..self }
    }

    /// Says that the published server lacks it.
    #[must_use]
    pub const fn extra(self) -> Call {
        Call { spec: self.spec.extra(), ..self }
    }

    /// Offers it only with this flag.
    #[must_use]
    pub const fn needs(self, flag: &'static str) -> Call {
        Call { spec: self.spec.needs(flag), ..self }
    }

    /// Says that other rows replace it, except under the published server's name.
    #[must_use]
    pub const fn superseded(self) -> Call {
        Call { spec: self.spec.superseded(), ..self }
    }

    /// Says that its name says already whose it is, see [`ToolSpec::own_name`].
    #[must_use]
    pub const fn own_name(self) -> Call {
        Call { spec: self.spec.own_name(), ..self }
    }

    /// Sets its former names.
    #[must_use]
    pub const fn aliases(self, aliases: &'static [Alias]) -> Call {
        Call { spec: self.spec.aliases(aliases), ..self }
    }

    /// Says that the answer is a list, or has one at this path (`web.results`; empty for the answer itself). Results have it
    /// as [`Api::items`](crate::Api::items), and pages of it.
    #[must_use]
    pub const fn list(self, at: &'static str) -> Call {
        Call { list: Some(at), ..self }
    }

    /// Sets another name of the list than the API's.
    #[must_use]
    pub const fn items(self, name: &'static str) -> Call {
        Call { items: Some(name), ..self }
    }

    /// Sets other pages than the API's.
    #[must_use]
    pub const fn pages(self, pages: Pages) -> Call {
        Call { pages: Some(pages), ..self }
    }

    /// Sets what is kept of the answer, or of each item of the list: `number user.login labels.name body:4000`. Dots enter
    /// objects and lists; `:N` caps a text at so many characters, and a cursor continues it.
    #[must_use]
    pub const fn keep(self, paths: &'static str) -> Call {
        Call { keep: paths, ..self }
    }

    /// Sets what is kept of the answer beside its list: `total_count`.
    #[must_use]
    pub const fn beside(self, paths: &'static str) -> Call {
        Call { beside: paths, ..self }
    }

    /// Adds an argument `fields`, with which callers choose what is kept: of all that the API says.
    #[must_use]
    pub const fn fields(self) -> Call {
        Call { fields: Fields::Any, ..self }
    }

    /// Adds an argument `fields`, with which callers choose among what is [kept](Call::keep): answers become shorter, and what
    /// the row leaves out stays out.
    #[must_use]
    pub const fn fewer_fields(self) -> Call {
        Call { fields: Fields::Kept, ..self }
    }

    /// Changes the answer before anything else looks at it: markup becomes text.
    #[must_use]
    pub const fn tidy(self, tidy: fn(&mut Value)) -> Call {
        Call { tidy: Some(tidy), ..self }
    }

    /// Sets how the result reads as text. It is given the structured content. Without it, that is the text.
    #[must_use]
    pub const fn text(self, text: fn(&Value) -> String) -> Call {
        Call { text: Some(text), ..self }
    }

    /// Sets a second block of text, where the published server has two. It is given the structured content.
    #[must_use]
    pub const fn second(self, text: fn(&Value) -> String) -> Call {
        Call { second: Some(text), ..self }
    }

    /// Sets code that runs before its request. What it sets in the arguments is not checked again; it returns `None` for the
    /// request to be made, or the answer in its place.
    ///
    /// ```
    /// # use linchpin_kit::ToolError; use linchpin_rest::{Answer, Args, Call, Rest, get, segment};
    /// const CALL: Call = get("get_user", "Get a user", "users", "Reads a user.", "/users/{id}")
    ///     .args(&[segment("id")])
    ///     .before(|rest, args| Box::pin(known(rest, args)));
    ///
    /// async fn known(_: &Rest, args: &mut Args) -> Result<Option<Answer>, ToolError> {
    ///     let id = args.text("id").trim_start_matches('@').to_owned();
    ///     args.set("id", id);
    ///     Ok(None)
    /// }
    /// ```
    #[must_use]
    pub const fn before(self, before: Before) -> Call {
        Call { before: Some(before), ..self }
    }

    /// Sets code that runs after its request, before anything else looks at the answer.
    #[must_use]
    pub const fn after(self, after: After) -> Call {
        Call { after: Some(after), ..self }
    }

    /// Sets its code: for what takes several requests. What that returns is projected and shown like the answer of an API.
    ///
    /// Where the code uses the row itself ([`Ask::of`]), set it in the table and not in the row's constant, which would depend
    /// on itself.
    #[must_use]
    pub const fn run(self, run: Run) -> Call {
        Call { run: Some(run), ..self }
    }

    /// Says that the operator's restriction does not apply: it is about nothing that can be restricted.
    #[must_use]
    pub const fn always(self) -> Call {
        Call { scope: InScope::Always, ..self }
    }

    /// Sets how the operator's restriction is put into a request that does not name what it is about, and which items of its
    /// answer are inside: what a caller asks for may widen a search again.
    #[must_use]
    pub const fn narrowed(self, narrow: Narrow, inside: Inside) -> Call {
        Call { scope: InScope::Narrowed(narrow, inside), ..self }
    }

    /// Sets which items (or answers) have an author with rights: with `--lockdown`, others are left out. It is given them
    /// as the API sent them.
    #[must_use]
    pub const fn trusted(self, trusted: fn(&Value) -> bool) -> Call {
        Call { trusted: Some(trusted), ..self }
    }

    /// Changes the request before it is sent, by what the arguments say together.
    #[must_use]
    pub const fn adjust(self, adjust: fn(Ask, &Args) -> Ask) -> Call {
        Call { adjust: Some(adjust), ..self }
    }

    /// Sets arguments that callers may have and that mean nothing here: they are not listed, and not sent.
    #[must_use]
    pub const fn ignored(self, names: &'static [&'static str]) -> Call {
        Call { ignored: names, ..self }
    }

    /// Returns the name of its tool.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.spec.name
    }

    /// Whether it changes anything.
    #[must_use]
    pub const fn writes(&self) -> bool {
        self.spec.writes
    }

    /// Whether callers may pass this argument, listed or not.
    #[must_use]
    pub fn accepts(&self, name: &str) -> bool {
        let own = |arg: &Arg| arg.name == name || arg.aliases.contains(&name);
        self.ignored.contains(&name)
            || self.rows().any(|row| row.args.iter().any(own))
            || !self.methods.is_empty() && name == "method"
    }

    /// The rows that it stands for: itself, or those of its methods.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Call> {
        let own = if self.methods.is_empty() { Some(self) } else { None };
        own.into_iter().chain(self.methods.iter().map(|(_, row)| row))
    }

    /// Takes the method out of the arguments and returns its row.
    pub(crate) fn pick(&'static self, given: &mut Map<String, Value>) -> Result<&'static Call, ToolError> {
        if self.methods.is_empty() {
            return Ok(self);
        }
        let method = given.remove("method");
        let row = self.methods.iter().find(|(name, _)| method.as_ref().and_then(Value::as_str) == Some(*name));
        row.map(|(_, row)| row).ok_or_else(|| {
            let names: Vec<&str> = self.methods.iter().map(|(name, _)| *name).collect();
            ToolError::invalid(format!("Invalid argument method: expected {}", names.join(", ")))
        })
    }

    /// All arguments, those included that the engine adds.
    pub(crate) fn all_args(&self, pages: Pages) -> Vec<Arg> {
        let mut all = self.args.to_vec();
        if self.fields != Fields::None {
            all.push(FIELDS);
        }
        if self.is_paged(pages) {
            all.push(CURSOR);
        }
        all
    }

    /// The arguments of each method; of a row without methods those of the method "".
    pub(crate) fn args_of_methods(&self, pages: Pages) -> Vec<(&'static str, Vec<Arg>)> {
        match self.methods {
            [] => vec![("", self.all_args(pages))],
            methods => methods.iter().map(|(name, row)| (*name, row.all_args(pages))).collect(),
        }
    }

    /// Whether results may continue: pages of lists, and texts that are capped.
    pub(crate) fn is_paged(&self, pages: Pages) -> bool {
        let pages = self.pages.unwrap_or(pages);
        self.list.is_some() && pages != Pages::One || self.keep.contains(':') && !self.spec.writes
    }

    pub(crate) fn input_schema(&self, pages: Pages) -> Value {
        if !self.methods.is_empty() {
            return self.schema_of_methods(pages);
        }
        let mut properties = Map::new();
        let mut required = Vec::new();
        for arg in self.all_args(pages).iter().filter(|arg| arg.listed) {
            if arg.required {
                required.push(arg.name);
            }
            properties.insert(arg.name.to_owned(), arg.schema());
        }
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    /// The arguments of all rows. A default is none for all of them: some clients send it.
    fn schema_of_methods(&self, pages: Pages) -> Value {
        let (names, rows): (Vec<&str>, Vec<_>) = self.args_of_methods(pages).into_iter().unzip();
        let mut properties = Map::from_iter([(
            "method".to_owned(),
            json!({ "type": "string", "enum": names, "description": "What to do." }),
        )]);
        for arg in rows.iter().flatten().filter(|arg| arg.listed) {
            let schema = arg.schema();
            match properties.get_mut(arg.name) {
                None => {
                    let mut schema = schema;
                    schema.as_object_mut().map(|members| members.remove("default"));
                    properties.insert(arg.name.to_owned(), schema);
                }
                Some(known) => {
                    if let (Some(Value::Array(known)), Some(words)) = (known.get_mut("enum"), schema["enum"].as_array())
                    {
                        let new: Vec<_> = words.iter().filter(|word| !known.contains(word)).cloned().collect();
                        known.extend(new);
                    }
                }
            }
        }
        let needed = |name: &str| rows.iter().all(|args| args.iter().any(|arg| arg.name == name && arg.required));
        let required: Vec<&String> = properties.keys().filter(|name| *name == "method" || needed(name)).collect();
        json!({ "type": "object", "properties": properties, "required": required })
    }

    /// Structure only: APIs add members as they like.
    pub(crate) fn output_schema(&self, items: &str) -> Value {
        if self.list.is_none() {
            return json!({ "type": "object" });
        }
        let name = self.items.unwrap_or(items);
        json!({ "type": "object", "properties": { name: { "type": "array" } }, "required": [name] })
    }
}

const FIELDS: Arg = list("fields").local().opt().about("Return only these; dots go deeper.");
const CURSOR: Arg = text("cursor").local().opt().about("next_cursor of the previous result.");

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("name", &self.spec.name).field("path", &self.path).finish_non_exhaustive()
    }
}
