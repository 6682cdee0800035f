//! A request before it is sent, and what came back.

use crate::arg::{Args, Slashes, plain};
use crate::clean::{clean, without_key};
use crate::{Problems, path};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use linchpin_kit::{ErrorKind, Secret, ToolError, without_hidden};
use serde_json::{Map, Value, json};

/// Puts the operator's restriction into a request that does not name what it is about, such as a search.
pub type Narrow = fn(Ask, &[String]) -> Ask;

/// A request of a row's code: a verb, a path template, and values for it. Values never become a part of the URL unchecked, and
/// the operator's restriction holds for every request.
///
/// ```
/// # use linchpin_rest::{Args, Ask, Reply, Rest}; use linchpin_kit::ToolError;
/// async fn tip(rest: &Rest, args: &Args) -> Result<Reply, ToolError> {
///     let ask = Ask::get("/repos/{owner}/{repo}/git/ref/heads/{branch}").fill(args).segment("branch", "main");
///     rest.send(ask).await
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Ask {
    pub(crate) method: Method,
    pub(crate) base: &'static str,
    pub(crate) problems: Option<Problems>,
    pub(crate) template: &'static str,
    pub(crate) values: Vec<(&'static str, Slashes, String)>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) form: Option<Vec<(String, String)>>,
    pub(crate) json: Option<Value>,
    /// A body of another kind, and its media type.
    pub(crate) raw: Option<(String, Bytes)>,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Whether it only reads, so that it is retried when the server is busy. A write is not, also one that is idempotent: if the
    /// first attempt took effect, the second may be refused because of it.
    pub(crate) repeatable: bool,
    pub(crate) always: bool,
    pub(crate) narrow: Option<Narrow>,
}

impl Ask {
    pub(crate) fn new(method: Method, template: &'static str) -> Ask {
        let repeatable = method == Method::GET;
        let (values, query, headers) = Default::default();
        let (form, json, narrow) = (None, None, None);
        Ask {
            method,
            base: "",
            problems: None,
            template,
            values,
            query,
            form,
            json,
            raw: None,
            headers,
            repeatable,
            always: false,
            narrow,
        }
    }

    /// A GET of a path such as `/repos/{owner}/{repo}`.
    #[must_use]
    pub fn get(template: &'static str) -> Ask {
        Ask::new(Method::GET, template)
    }

    /// A POST.
    #[must_use]
    pub fn post(template: &'static str) -> Ask {
        Ask::new(Method::POST, template)
    }

    /// A PUT.
    #[must_use]
    pub fn put(template: &'static str) -> Ask {
        Ask::new(Method::PUT, template)
    }

    /// A PATCH.
    #[must_use]
    pub fn patch(template: &'static str) -> Ask {
        Ask::new(Method::PATCH, template)
    }

    /// A DELETE.
    #[must_use]
    pub fn delete(template: &'static str) -> Ask {
        Ask::new(Method::DELETE, template)
    }

    /// Says that it is at another of the API's [bases](crate::Api::bases), by its name.
    #[must_use]
    pub fn at(mut self, base: &'static str) -> Ask {
        self.base = base;
        self
    }

    /// Takes the values of the path that are arguments of the call.
    #[must_use]
    pub fn fill(mut self, args: &Args) -> Ask {
        for name in path::names(self.template) {
            if let Some(value) = args.get(name) {
                self.values.push((name, Slashes::Refused, plain(value)));
            }
        }
        self
    }

    /// Sets a value of the path, of one segment.
    #[must_use]
    pub fn segment(mut self, name: &'static str, value: impl Into<String>) -> Ask {
        self.values.retain(|(known, ..)| *known != name);
        self.values.push((name, Slashes::Refused, value.into()));
        self
    }

    /// Sets a value of the path that is several segments: the path of a file.
    #[must_use]
    pub fn segments(mut self, name: &'static str, value: impl Into<String>) -> Ask {
        self.values.retain(|(known, ..)| *known != name);
        self.values.push((name, Slashes::Separate, value.into()));
        self
    }

    /// Sets a value of the path that is one segment, whose slashes are sent as `%2F`: `group/project` of GitLab.
    #[must_use]
    pub fn slashed(mut self, name: &'static str, value: impl Into<String>) -> Ask {
        self.values.retain(|(known, ..)| *known != name);
        self.values.push((name, Slashes::Encoded, value.into()));
        self
    }

    /// Adds a parameter to the query.
    #[must_use]
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Ask {
        self.query.push((name.into(), value.into()));
        self
    }

    /// Replaces a parameter of the query.
    #[must_use]
    pub fn set_query(mut self, name: impl Into<String>, value: impl Into<String>) -> Ask {
        let name = name.into();
        self.query.retain(|(known, _)| *known != name);
        self.query(name, value)
    }

    /// Takes a parameter out of the query.
    #[must_use]
    pub fn without_query(mut self, name: &str) -> Ask {
        self.query.retain(|(known, _)| known != name);
        self
    }

    /// Returns a parameter of the query.
    #[must_use]
    pub fn query_of(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Sets a JSON body.
    #[must_use]
    pub fn json(mut self, body: Value) -> Ask {
        self.json = Some(body);
        self
    }

    /// Sets a body of another kind, such as the content of a file.
    #[must_use]
    pub fn body(mut self, media_type: impl Into<String>, body: impl Into<Bytes>) -> Ask {
        self.raw = Some((media_type.into(), body.into()));
        self
    }

    /// Sets a member of the JSON body; dots separate the names of nested objects.
    #[must_use]
    pub fn member(mut self, name: &str, value: Value) -> Ask {
        if let Value::Object(body) = self.json.get_or_insert_with(|| json!({})) {
            put(body, name, value);
        }
        self
    }

    /// Adds a header. Its value must not be a secret.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Ask {
        self.headers.push((name, value.into()));
        self
    }

    /// Says that the operator's restriction does not apply.
    #[must_use]
    pub fn always(mut self) -> Ask {
        self.always = true;
        self
    }

    /// Replaces a parameter where the request has its parameters.
    pub(crate) fn set_parameter(mut self, name: &str, value: &str, is_number: bool) -> Ask {
        if let Some(form) = &mut self.form {
            form.retain(|(known, _)| known != name);
            form.push((name.to_owned(), value.to_owned()));
        } else if let Some(Value::Object(body)) = &mut self.json {
            let number = if is_number { value.parse::<u64>().ok() } else { None };
            put(body, name, number.map_or_else(|| json!(value), |number| json!(number)));
        } else {
            self = self.set_query(name, value);
        }
        self
    }

    /// The value of a parameter, wherever it is.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let form = self.form.iter().flatten();
        let pair = self.query.iter().chain(form).find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let value = self.values.iter().find(|(known, ..)| *known == name).map(|(.., value)| value.clone());
        value.or(pair).or_else(|| self.json.as_ref()?.get(name).map(plain))
    }
}

/// Puts a value into a body under a name whose dots separate the names of nested objects.
pub(crate) fn put(body: &mut Map<String, Value>, name: &str, value: Value) {
    match name.split_once('.') {
        None => _ = body.insert(name.to_owned(), value),
        Some((outer, rest)) => {
            let inner = body.entry(outer).or_insert_with(|| json!({}));
            if let Some(inner) = inner.as_object_mut() {
                put(inner, rest, value);
            }
        }
    }
}

/// A response with a status of success.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it came.
    pub body: Bytes,
    pub(crate) title: &'static str,
    pub(crate) key: Option<Secret>,
    /// The body as JSON, if it was looked at.
    pub(crate) parsed: Option<Value>,
}

impl Reply {
    /// A text of the body without control, invisible and bidirectional characters, and without the key: for bodies that are
    /// not JSON.
    #[must_use]
    pub fn cleaned(&self, text: &str) -> String {
        without_key(&without_hidden(text), self.key.as_ref().map(Secret::reveal))
    }

    /// The body as JSON, its texts without control, invisible and bidirectional characters, and without the key, should the API
    /// repeat it. An empty one is `{"status": 204}`. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// When it is something else.
    pub fn json(&self) -> Result<Value, ToolError> {
        if let Some(parsed) = &self.parsed {
            return Ok(parsed.clone());
        }
        let text = String::from_utf8_lossy(&self.body);
        if text.trim().is_empty() {
            return Ok(json!({ "status": self.status.as_u16() }));
        }
        let mut value = serde_json::from_str(&text).map_err(|e| {
            let what = if e.is_eof() { "JSON that ends early" } else { "something that is not JSON" };
            ToolError::new(format!("{} answered with {what}", self.title))
                .kind(ErrorKind::Upstream { status: Some(self.status.as_u16()) })
        })?;
        clean(&mut value, self.key.as_ref().map(Secret::reveal));
        Ok(value)
    }
}
