//! The request that a row describes.

use crate::arg::{Arg, Args, Join, Kind, Place, plain};
use crate::ask::{Ask, put};
use crate::call::{Call, InScope, Verb};
use crate::path;
use serde_json::{Map, Value, json};

impl Ask {
    /// Returns the request that a row describes, for the code of a row that begins with it.
    #[must_use]
    pub fn of(call: &Call, args: &Args) -> Ask {
        let mut ask = Ask::new(call.verb.method(), call.path);
        ask.repeatable = !call.spec.writes;
        (ask.base, ask.problems) = (call.base, call.problems);
        ask.always = matches!(call.scope, InScope::Always);
        ask.narrow = if let InScope::Narrowed(narrow, _) = call.scope { Some(narrow) } else { None };
        ask.headers = call.headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let in_query = matches!(call.verb, Verb::Get | Verb::Delete);
        let (mut body, mut form) = (Map::new(), Vec::new());
        for arg in call.args {
            let Some(value) = args.get(arg.name) else { continue };
            if path::names(call.path).any(|name| name == arg.wire_name()) {
                ask.values.push((arg.wire_name(), path::slashes(call.args, arg.wire_name()), plain(value)));
                continue;
            }
            match arg.place {
                Place::Nowhere => {}
                Place::Header => ask.headers.extend(arg.pairs(value)),
                Place::Query => ask.query.extend(owned(arg.pairs(value))),
                Place::Auto if in_query => ask.query.extend(owned(arg.pairs(value))),
                Place::Auto if call.form => form.extend(owned(arg.pairs(value))),
                Place::Auto => put(&mut body, arg.wire_name(), in_body(arg, value)),
            }
        }
        for (name, value) in call.fixed {
            if in_query {
                ask.query.push(((*name).to_owned(), (*value).to_owned()));
            } else if call.form {
                form.push(((*name).to_owned(), (*value).to_owned()));
            } else {
                put(&mut body, name, serde_json::from_str(value).unwrap_or_else(|_| json!(value)));
            }
        }
        if call.form {
            ask.form = Some(form);
        } else if !in_query {
            ask.json = Some(Value::Object(body));
        }
        match call.adjust {
            Some(adjust) => adjust(ask, args),
            None => ask,
        }
    }
}

fn owned(pairs: Vec<(&'static str, String)>) -> impl Iterator<Item = (String, String)> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value))
}

/// A list that is sent with commas is a text in a body too.
fn in_body(arg: &Arg, value: &Value) -> Value {
    match arg.kind {
        Kind::List { join: Join::Comma, .. } => json!(arg.pairs(value)[0].1),
        _ => value.clone(),
    }
}
