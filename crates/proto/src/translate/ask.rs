//! Questions of an upstream: those in a result, which become requests to a client with a session, and the answers back.

use super::downgrade;
use super::result::{member, remove};
use crate::splice::Splice;
use linchpin_core::json::{Scanner, write_str};
use linchpin_core::message::{Message, ResultMembers};
use linchpin_core::server_request::{KEY_BYTES_MAX, KEY_META};
use linchpin_core::{ClientCaps, Features};
use linchpin_types::jsonrpc::method;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One question of a result that asks for input.
#[derive(Debug)]
pub struct Question {
    /// Under which the server wants the answer.
    pub key: String,
    /// The method of the request to the client.
    pub method: String,
    /// Its parameters as JSON text.
    pub params: String,
    /// The id of an elicitation by URL, which such requests have in revisions with sessions.
    pub elicitation: Option<String>,
}

/// What a result asks for.
#[derive(Debug)]
pub struct Round {
    /// The questions; `None` if there are none, and the request is only to be repeated.
    pub questions: Option<Vec<Question>>,
    /// `requestState` as the JSON text that the server sent.
    pub state: Option<String>,
}

/// Reads a result that asks for input. `name` makes the ids of elicitations by URL.
///
/// # Errors
/// Why it cannot be read, for the operator and the client.
pub fn read(message: &Message, members: &ResultMembers, name: &mut dyn FnMut() -> String) -> Result<Round, String> {
    #[derive(Deserialize)]
    struct Asked<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
        #[serde(borrow, default)]
        params: Option<&'a RawValue>,
    }
    let present = |span| Some(message.text(span)).filter(|json| *json != "null");
    let state = members.request_state.and_then(present).map(str::to_owned);
    let Some(asked) = members.input_requests.and_then(present) else {
        return match state {
            Some(_) => Ok(Round { questions: None, state }),
            None => Err("the server requires input, but sent neither inputRequests nor requestState".to_owned()),
        };
    };
    let asked: BTreeMap<String, Asked<'_>> = serde_json::from_str(asked)
        .map_err(|e| format!("the server asks for input in a way that cannot be read: {e}"))?;
    let question = |(key, asked): (String, Asked<'_>)| {
        let mut params = asked.params.map_or("{}", RawValue::get).to_owned();
        let mut elicitation = None;
        if asked.method == method::ELICITATION_CREATE && is_url(&params) && params.starts_with('{') {
            let id = name();
            let comma = if params[1..].trim_start().starts_with('}') { "" } else { "," };
            params.insert_str(1, &format!("\"elicitationId\":\"{id}\"{comma}"));
            elicitation = Some(id);
        }
        Question { key, method: asked.method.into_owned(), params, elicitation }
    };
    Ok(Round { questions: Some(asked.into_iter().map(question).collect()), state })
}

/// Whether the parameters of an elicitation are those of one by URL.
pub fn is_url(params: &str) -> bool {
    #[derive(Deserialize)]
    struct Mode<'a> {
        #[serde(borrow, default)]
        mode: Option<Cow<'a, str>>,
    }
    serde_json::from_str::<Mode<'_>>(params).is_ok_and(|read| read.mode.as_deref() == Some("url"))
}

/// Whether a client declared that it can be asked this, and has a revision with it.
pub fn is_declared(asked: &str, params: &str, features: &Features, caps: &ClientCaps) -> bool {
    match asked {
        method::ELICITATION_CREATE if is_url(params) => features.icons && caps.elicitation_url,
        method::ELICITATION_CREATE => features.elicitation && caps.elicitation_form,
        method::SAMPLING_CREATE_MESSAGE => caps.sampling,
        method::ROOTS_LIST => caps.roots,
        _ => false,
    }
}

/// The parameters of a question as the client of a session has them.
///
/// # Errors
/// What the client lacks, as a sentence.
pub fn for_session(asked: &str, params: &str, features: &Features, caps: &ClientCaps) -> Result<String, String> {
    match asked {
        method::ELICITATION_CREATE if !is_url(params) => downgrade::form(params, features),
        method::SAMPLING_CREATE_MESSAGE => downgrade::sampling(params, features, caps),
        _ => Ok(params.to_owned()),
    }
}

/// The address of an elicitation by URL; of others there is none.
pub fn visited_page(params: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Page {
        #[serde(default)]
        mode: Option<String>,
        #[serde(default)]
        url: Option<String>,
    }
    let read: Page = serde_json::from_str(params).ok()?;
    (read.mode.as_deref() == Some("url")).then(|| read.url.unwrap_or_default())
}

/// `inputResponses` of these answers: keys, and JSON text.
pub fn responses(answers: &[(String, String)]) -> String {
    let mut out = vec![b'{'];
    for (key, json) in answers {
        if out.len() > 1 {
            out.push(b',');
        }
        write_str(&mut out, key);
        out.push(b':');
        out.extend_from_slice(json.as_bytes());
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// The key that an upstream with sessions gave its question; most give none.
pub fn key(params: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Asked {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "linchpin/key")]
        key: String,
    }
    let asked: Asked = serde_json::from_str(params).ok()?;
    Some(asked.meta.key).filter(|key| !key.is_empty() && key.len() <= KEY_BYTES_MAX)
}

/// The parameters of a question of an upstream with sessions, as a result that asks for input has them.
pub fn for_stateless(asked: &str, params: &str) -> String {
    let (mut id, mut mode, mut meta) = (None, None, None);
    let read = Scanner::new(params, 127).object(&mut |s, key| {
        let value = s.value()?;
        match &*key.name() {
            "elicitationId" => id = Some(value),
            "mode" => mode = Some(value),
            "_meta" => meta = Some(value),
            _ => {}
        }
        Ok(())
    });
    let Ok(all) = read else { return params.to_owned() };
    let mut splice = Splice::new(params, all);
    if let Some((meta, key)) = meta.and_then(|meta| Some((meta, member(params, meta, KEY_META)?))) {
        remove(&mut splice, params, meta, key);
    }
    if asked == method::ELICITATION_CREATE {
        id.into_iter().for_each(|id| splice.remove(id));
        if mode.is_none() {
            splice.add(all, &b"\"mode\":\"form\""[..]);
        }
    }
    let mut out = Vec::with_capacity(params.len() + 16);
    splice.write(&mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// A result that asks for input: keys, methods and parameters as JSON text, and the state that the retry repeats.
pub fn input_required(questions: &[(&str, &str, &str)], state: &str) -> String {
    let mut out = b"{\"resultType\":\"input_required\",\"inputRequests\":{".to_vec();
    for (n, (key, method, params)) in questions.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write_str(&mut out, key);
        out.extend_from_slice(b":{\"method\":");
        write_str(&mut out, method);
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.as_bytes());
        out.push(b'}');
    }
    out.extend_from_slice(b"},\"requestState\":");
    write_str(&mut out, state);
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}
