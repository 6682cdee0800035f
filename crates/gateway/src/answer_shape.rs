//! Whether what a client answers can be an answer to what it was asked.

use linchpin_types::jsonrpc::method;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Why such an answer is a refusal.
pub(crate) const WRONG: &str = "the client's answer does not have the members that the method's result needs";

/// Whether the result of this method has the members without which it is none. Everything else passes as it is.
pub(crate) fn fits(method: &str, answer: &str) -> bool {
    // That the members are there is all that counts.
    #[derive(Deserialize)]
    struct Sampled {
        #[serde(rename = "role")]
        _role: String,
        #[serde(rename = "content")]
        _content: IgnoredAny,
        #[serde(rename = "model")]
        _model: String,
    }
    #[derive(Deserialize)]
    struct Roots {
        #[serde(rename = "roots")]
        _roots: Vec<IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Elicited {
        #[serde(rename = "action")]
        _action: String,
    }
    // By itself, serde would also read a struct from an array.
    let is_object = answer.trim_ascii_start().starts_with('{');
    is_object
        && match method {
            method::SAMPLING_CREATE_MESSAGE => serde_json::from_str::<Sampled>(answer).is_ok(),
            method::ROOTS_LIST => serde_json::from_str::<Roots>(answer).is_ok(),
            method::ELICITATION_CREATE => serde_json::from_str::<Elicited>(answer).is_ok(),
            _ => true,
        }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn answers_have_the_members_that_their_methods_need() {
        for (method, answer, expected) in [
            ("roots/list", r#"{"roots":[]}"#, true),
            ("roots/list", r#"{"roots":{}}"#, false),
            ("roots/list", r#"[[]]"#, false),
            ("sampling/createMessage", r#"{"role":"assistant","content":{"type":"new"},"model":"m","n":1e400}"#, true),
            ("sampling/createMessage", r#"{"role":"assistant","content":{}}"#, false),
            ("elicitation/create", r#" {"action":"accept"}"#, true),
            ("elicitation/create", r#"{"content":{}}"#, false),
            ("acme/ask", "{}", true),
            ("acme/ask", "7", false),
        ] {
            assert_eq!(fits(method, answer), expected, "{method}: {answer}");
        }
    }
}
