//! The arguments of a call as data: how they are listed, checked, and sent.

use linchpin::Cx;
use linchpin_kit::{ToolError, near};
use serde_json::{Map, Value, json};

/// An argument in a row of the table. It is required until [`opt`](Arg::opt) or [`default`](Arg::default) says otherwise.
///
/// It goes where the path of the row names it as `{name}`; otherwise into the query of GET and DELETE, and into the body of the
/// other verbs.
///
/// ```
/// use linchpin_rest::{Arg, int, list, one_of, segment, text};
///
/// const OWNER: Arg = segment("owner");
/// const SIZE: Arg = int("perPage").wire("per_page").range(1, 100).default("30").aliases(&["per_page"]);
/// const STATE: Arg = one_of("state", &["open", "closed", "all"]).opt();
/// const LABELS: Arg = list("labels").comma().opt();
/// const QUERY: Arg = text("query").wire("q").chars(400).words(50);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Arg {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) place: Place,
    pub(crate) required: bool,
    pub(crate) default: Option<&'static str>,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) listed: bool,
    wire: Option<&'static str>,
    about: &'static str,
    like: Option<Like>,
}

/// A test of a text, and what passes it.
type Like = (fn(&str) -> bool, &'static str);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text { chars: usize, words: usize },
    Segment(Slashes),
    Int { min: i64, max: i64 },
    Number { min: f64, max: f64 },
    Bool,
    Choice(&'static [&'static str]),
    List { of: &'static [&'static str], join: Join },
    Json(&'static str),
}

/// What a slash in a path argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slashes {
    /// An error.
    Refused,
    /// The end of a segment.
    Separate,
    /// A part of the one segment, sent as `%2F`.
    Encoded,
}

/// How a list is sent in a query or a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    Comma,
    Repeat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Auto,
    Query,
    Header,
    Nowhere,
}

const fn arg(name: &'static str, kind: Kind) -> Arg {
    let (wire, default, like) = (None, None, None);
    Arg { name, kind, place: Place::Auto, required: true, default, aliases: &[], listed: true, wire, about: "", like }
}

/// A text.
#[must_use]
pub const fn text(name: &'static str) -> Arg {
    arg(name, Kind::Text { chars: 0, words: 0 })
}

/// A segment of the path. One that is empty, has a slash or a control character, or means a parent directory is refused,
/// percent-encoded or not.
#[must_use]
pub const fn segment(name: &'static str) -> Arg {
    arg(name, Kind::Segment(Slashes::Refused))
}

/// Several segments of the path, separated by slashes: the path of a file. Each is checked like a [`segment`].
#[must_use]
pub const fn segments(name: &'static str) -> Arg {
    arg(name, Kind::Segment(Slashes::Separate))
}

/// One segment of the path that may have slashes, which are sent as `%2F`: `group/project` of GitLab.
#[must_use]
pub const fn slashed(name: &'static str) -> Arg {
    arg(name, Kind::Segment(Slashes::Encoded))
}

/// An integer.
#[must_use]
pub const fn int(name: &'static str) -> Arg {
    arg(name, Kind::Int { min: i64::MIN, max: i64::MAX })
}

/// A number between two others.
#[must_use]
pub const fn number(name: &'static str, min: f64, max: f64) -> Arg {
    arg(name, Kind::Number { min, max })
}

/// A switch.
#[must_use]
pub const fn boolean(name: &'static str) -> Arg {
    arg(name, Kind::Bool)
}

/// One of several words.
#[must_use]
pub const fn one_of(name: &'static str, words: &'static [&'static str]) -> Arg {
    arg(name, Kind::Choice(words))
}

/// A list of texts; a single text is a list of one. In a query it is one parameter for each text, see [`Arg::comma`]; in a
/// JSON body an array.
#[must_use]
pub const fn list(name: &'static str) -> Arg {
    arg(name, Kind::List { of: &[], join: Join::Repeat })
}

/// A list of some of these words.
#[must_use]
pub const fn list_of(name: &'static str, words: &'static [&'static str]) -> Arg {
    arg(name, Kind::List { of: words, join: Join::Repeat })
}

/// JSON of this schema (which is JSON itself), for a JSON body or a call of several steps.
#[must_use]
pub const fn object(name: &'static str, schema: &'static str) -> Arg {
    arg(name, Kind::Json(schema))
}

impl Arg {
    /// Makes it optional.
    #[must_use]
    pub const fn opt(self) -> Arg {
        Arg { required: false, ..self }
    }

    /// Sets the value that is listed, and sent when there is none: JSON, or a plain word.
    #[must_use]
    pub const fn default(self, value: &'static str) -> Arg {
        Arg { required: false, default: Some(value), ..self }
    }

    /// Sets the name in the request, where it differs. In a JSON body, dots separate the names of nested objects.
    #[must_use]
    pub const fn wire(self, name: &'static str) -> Arg {
        Arg { wire: Some(name), ..self }
    }

    /// Sets other names that callers may use, unlisted.
    #[must_use]
    pub const fn aliases(self, names: &'static [&'static str]) -> Arg {
        Arg { aliases: names, ..self }
    }

    /// Accepts it without listing it: it is rare, and lists cost models tokens in every conversation. Makes it optional.
    #[must_use]
    pub const fn unlisted(self) -> Arg {
        Arg { listed: false, required: false, ..self }
    }

    /// Describes it for models.
    #[must_use]
    pub const fn about(self, text: &'static str) -> Arg {
        Arg { about: text, ..self }
    }

    /// Bounds an integer.
    #[must_use]
    pub const fn range(self, min: i64, max: i64) -> Arg {
        Arg { kind: Kind::Int { min, max }, ..self }
    }

    /// Bounds the characters of a text.
    #[must_use]
    pub const fn chars(self, chars: usize) -> Arg {
        let words = if let Kind::Text { words, .. } = self.kind { words } else { 0 };
        Arg { kind: Kind::Text { chars, words }, ..self }
    }

    /// Bounds the words of a text, which blanks separate.
    #[must_use]
    pub const fn words(self, words: usize) -> Arg {
        let chars = if let Kind::Text { chars, .. } = self.kind { chars } else { 0 };
        Arg { kind: Kind::Text { chars, words }, ..self }
    }

    /// Demands that a text, or each text of a list, passes this test, and says what is expected.
    #[must_use]
    pub const fn like(self, test: fn(&str) -> bool, expected: &'static str) -> Arg {
        Arg { like: Some((test, expected)), ..self }
    }

    /// Sends a list as one parameter, with commas.
    #[must_use]
    pub const fn comma(self) -> Arg {
        let of = if let Kind::List { of, .. } = self.kind { of } else { &[] };
        Arg { kind: Kind::List { of, join: Join::Comma }, ..self }
    }

    /// Sends it in the query, whatever the verb is.
    #[must_use]
    pub const fn in_query(self) -> Arg {
        Arg { place: Place::Query, ..self }
    }

    /// Sends it as a header.
    #[must_use]
    pub const fn in_header(self) -> Arg {
        Arg { place: Place::Header, ..self }
    }

    /// Does not send it: it is for the code of the row.
    #[must_use]
    pub const fn local(self) -> Arg {
        Arg { place: Place::Nowhere, ..self }
    }

    /// Its name in the request.
    pub(crate) fn wire_name(&self) -> &'static str {
        self.wire.unwrap_or(self.name)
    }

    /// Its part of the tool's input schema.
    pub(crate) fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Text { .. } | Kind::Segment(_) => json!({ "type": "string" }),
            Kind::Int { min, max } => {
                bounded("integer", (min > i64::MIN).then_some(min), (max < i64::MAX).then_some(max))
            }
            Kind::Number { min, max } => bounded("number", Some(min), Some(max)),
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Choice(words) => json!({ "type": "string", "enum": words }),
            Kind::List { of: [], .. } => json!({ "type": "array", "items": { "type": "string" } }),
            Kind::List { of, .. } => json!({ "type": "array", "items": { "type": "string", "enum": of } }),
            Kind::Json(schema) => serde_json::from_str(schema).unwrap_or_default(),
        };
        if !self.about.is_empty() {
            schema["description"] = json!(self.about);
        }
        if let Some(default) = self.default_value() {
            schema["default"] = default;
        }
        schema
    }

    pub(crate) fn default_value(&self) -> Option<Value> {
        let text = self.default?;
        Some(match self.kind {
            Kind::Text { .. } | Kind::Segment(_) | Kind::Choice(_) => json!(text),
            _ => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        })
    }

    /// Checks what a schema cannot say.
    fn check(&self, value: &Value) -> Result<(), ToolError> {
        let bad = |why: String| ToolError::invalid(format!("Invalid argument {}: {why}", self.name));
        let wanted = |what: &str| bad(format!("expected {what}"));
        match (self.kind, value) {
            (Kind::Text { chars, words }, Value::String(text)) => {
                let (has, says) = (text.chars().count(), text.split_whitespace().count());
                if chars > 0 && has > chars {
                    return Err(bad(format!("it has {has} characters, at most {chars} are allowed")));
                }
                if words > 0 && says > words {
                    return Err(bad(format!("it has {says} words, at most {words} are allowed")));
                }
                if self.required && text.trim().is_empty() {
                    return Err(bad("it is empty".to_owned()));
                }
            }
            (Kind::Segment(_), Value::String(_)) | (Kind::Bool, Value::Bool(_)) | (Kind::Json(_), _) => {}
            (Kind::Int { min, max }, value) => match value.as_i64() {
                Some(n) if (min..=max).contains(&n) => {}
                _ => return Err(wanted(&format!("an integer from {min} to {max}"))),
            },
            (Kind::Number { min, max }, value) => match value.as_f64() {
                Some(n) if (min..=max).contains(&n) => {}
                _ => return Err(wanted(&format!("a number from {min} to {max}"))),
            },
            (Kind::Choice(words), Value::String(word)) if words.contains(&word.as_str()) => {}
            (Kind::Choice(words), _) => return Err(wanted(&words.join(", "))),
            (Kind::List { of, .. }, Value::Array(items)) => {
                let fits = |item: &Value| item.as_str().is_some_and(|item| of.is_empty() || of.contains(&item));
                if !items.iter().all(fits) {
                    return Err(wanted(&format!(
                        "a list of {}",
                        if of.is_empty() { "texts".into() } else { of.join(", ") }
                    )));
                }
            }
            _ => return Err(bad("it has the wrong type".to_owned())),
        }
        match self.like {
            Some((test, expected)) if !texts(value).into_iter().all(test) => Err(wanted(expected)),
            _ => Ok(()),
        }
    }

    /// Its parameters in a query, a form or a header.
    pub(crate) fn pairs(&self, value: &Value) -> Vec<(&'static str, String)> {
        let name = self.wire_name();
        match (self.kind, value) {
            (Kind::List { join: Join::Comma, .. }, list) => vec![(name, texts(list).join(","))],
            (Kind::List { .. }, list) => texts(list).into_iter().map(|text| (name, text.to_owned())).collect(),
            _ => vec![(name, plain(value))],
        }
    }
}

fn bounded<N: Into<Value>>(kind: &str, min: Option<N>, max: Option<N>) -> Value {
    let mut schema = json!({ "type": kind });
    for (word, bound) in [("minimum", min), ("maximum", max)] {
        if let Some(bound) = bound {
            schema[word] = bound.into();
        }
    }
    schema
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text],
        _ => Vec::new(),
    }
}

/// A value as in a query: texts without quotes.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The checked arguments of a call, defaults included.
#[derive(Clone, Default)]
pub struct Args(pub(crate) Map<String, Value>, Option<Cx>);

impl Args {
    /// Checks the arguments of a call against the row's own.
    pub(crate) fn check(mut given: Map<String, Value>, known: &[Arg], ignored: &[&str]) -> Result<Args, ToolError> {
        given.retain(|name, _| !ignored.contains(&name.as_str()));
        let own = |name: &str| known.iter().any(|arg| arg.name == name);
        if let Some(name) = given.keys().find(|name| !own(name)) {
            let error = ToolError::invalid(format!("Unknown argument: {name}"));
            let names = || known.iter().map(|arg| arg.name);
            return Err(match near(name, names()) {
                Some(meant) => error.hint(format!("Did you mean {meant}?")),
                None => error.hint(format!("Known: {}.", names().collect::<Vec<_>>().join(", "))),
            });
        }
        for arg in known {
            match given.get(arg.name) {
                Some(value) => arg.check(value)?,
                None if arg.required => {
                    return Err(ToolError::invalid(format!("Missing required argument: {}", arg.name)));
                }
                None => {
                    if let Some(value) = arg.default_value() {
                        given.insert(arg.name.to_owned(), value);
                    }
                }
            }
        }
        Ok(Args(given, None))
    }

    pub(crate) fn with_cx(self, cx: &Cx) -> Args {
        Args(self.0, Some(cx.clone()))
    }

    /// The context of the call, for progress and what belongs to a session. There is none in a test that makes arguments itself.
    #[must_use]
    pub fn cx(&self) -> Option<&Cx> {
        self.1.as_ref()
    }

    /// The value of an argument, if it has one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Sets the value of an argument, for code that runs [before](crate::Call::before) the request.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.0.insert(name.into(), value.into());
    }

    /// The text of an argument; empty without one.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The integer of an argument.
    #[must_use]
    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    /// Whether a switch is on.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool) == Some(true)
    }

    /// The texts of a list.
    #[must_use]
    pub fn list(&self, name: &str) -> Vec<&str> {
        self.get(name).map(texts).unwrap_or_default()
    }
}

/// The arguments as they are listed, if they came otherwise: under another name, one text where a list is expected, a number
/// where a text is, an integer written as a fraction, `null` for nothing. `known` are the arguments of each method, of a row without methods those
/// of the method "".
pub(crate) fn normalized(json: &str, known: &[(&str, Vec<Arg>)]) -> Option<String> {
    let mut given: Map<String, Value> = serde_json::from_str(json).ok()?;
    let method = given.get("method").and_then(Value::as_str);
    let (_, known) = known.iter().find(|(name, _)| name.is_empty() || Some(*name) == method)?;
    let all = given.len();
    given.retain(|_, value| !value.is_null());
    let mut changed = given.len() < all;
    for arg in known {
        for alias in arg.aliases {
            if !given.contains_key(arg.name)
                && let Some(value) = given.remove(*alias)
            {
                given.insert(arg.name.to_owned(), value);
                changed = true;
            }
        }
        match (arg.kind, given.get_mut(arg.name)) {
            (Kind::List { .. }, Some(value @ Value::String(_))) => {
                *value = Value::Array(vec![value.take()]);
                changed = true;
            }
            // An id that is a number.
            (Kind::Text { .. } | Kind::Segment(_), Some(value @ Value::Number(_))) => {
                *value = Value::String(value.to_string());
                changed = true;
            }
            (Kind::Int { .. }, Some(value)) if value.is_f64() => {
                // 10.0 is an integer for JSON Schema.
                if let Some(whole) = value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15) {
                    *value = Value::from(whole as i64);
                    changed = true;
                }
            }
            _ => {}
        }
    }
    changed.then(|| Value::Object(given).to_string())
}

impl std::fmt::Debug for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Args").field(&self.0).finish()
    }
}
