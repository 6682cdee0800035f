//! A whole POST: header lines, an empty line, the body. What is admitted to run alone has headers that agree with its
//! body, by a second and simpler reading.
#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use linchpin_core::service::HeaderParam;
use linchpin_core::{Limits, Method};
use linchpin_proto::frame;
use linchpin_proto::http::headers::{check_params, decode, encode, header_params, single, trim};
use linchpin_proto::http::rules::{self, Ask, PostKind, SessionHeaders, classify};
use serde_json::Value;
use std::sync::Arc;

const SCHEMA: &str = r#"{"properties":{"s":{"type":"string","x-mcp-header":"S"},"o":{"properties":{"i":{"type":"integer","x-mcp-header":"I"}}},"b":{"type":"boolean","x-mcp-header":"B"}}}"#;

fn agrees(params: &[HeaderParam], arguments: &Value, headers: &HeaderMap) {
    for param in params {
        let value = param.path.iter().try_fold(arguments, |value, step| value.get(&**step)).filter(|v| !v.is_null());
        let said = single(headers, &*param.header).expect("never twice").map(|v| decode(v).expect("readable"));
        match (value, said) {
            (None, None) => {}
            (Some(Value::String(text)), Some(said)) => assert_eq!(*text, said),
            (Some(Value::Bool(b)), Some(said)) => assert_eq!(b.to_string(), said),
            (Some(Value::Number(n)), Some(said)) => assert_eq!(n.as_f64(), said.parse().ok()),
            (value, said) => panic!("{value:?} and {said:?}"),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let at = data.windows(2).position(|w| w == b"\n\n").unwrap_or(data.len());
    let mut headers = HeaderMap::new();
    for line in data[..at].split(|b| *b == b'\n') {
        let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let value = HeaderValue::from_bytes(line.get(colon + 1..).unwrap_or_default());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&line[..colon]), value) {
            if let Ok(text) = decode(value.as_bytes()) {
                assert_eq!(decode(encode(&text).as_bytes()).unwrap(), text);
            }
            headers.append(name, value);
        }
    }
    let body = data.get(at + 2..).unwrap_or_default();
    let params: Arc<[HeaderParam]> = header_params(SCHEMA).unwrap().into();
    if let Ok(text) = std::str::from_utf8(body) {
        if let Ok(own) = header_params(text) {
            let _ = check_params(&own, Some("{\"a\":1}"), &headers);
        }
    }
    let Ok(message) = frame::message(body.to_vec().into(), &Limits::default()) else { return };
    let ask = Ask {
        header_params: &|tool, _| (tool != "plain").then(|| params.clone()),
        defines: &|_| false,
        named_by: &|_| None,
    };
    match classify(&message, &headers, &SessionHeaders::of(&headers), ask) {
        Ok(PostKind::Request(request)) => {
            let says =
                |name: &HeaderName, text: &str| single(&headers, name).unwrap().is_some_and(|v| trim(v) == text.as_bytes());
            assert!(request.caller.features().stateless);
            assert!(says(&rules::PROTOCOL_VERSION, request.caller.features().revision.as_str()));
            assert!(says(&rules::METHOD, request.method.as_str()));
            let Ok(body) = serde_json::from_slice::<Value>(body) else { return };
            let about = match request.known() {
                Some(Method::ToolsCall | Method::PromptsGet) => body["params"]["name"].as_str(),
                Some(Method::ResourcesRead) => body["params"]["uri"].as_str(),
                _ => return,
            };
            let said = single(&headers, &rules::NAME).unwrap().map(|v| decode(v).unwrap());
            assert_eq!(about, said.as_deref());
            if let (Some(Method::ToolsCall), Some(about)) = (request.known(), about) {
                if about != "plain" {
                    agrees(&params, &body["params"]["arguments"], &headers);
                }
            }
        }
        Ok(_) => {}
        Err(reply) => assert!((400..500).contains(&rules::status(reply.kind(), None))),
    }
});
