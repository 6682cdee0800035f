//! The query of an authorization request, or the form of a token request. It is refused, or has a bounded number of parameters,
//! which are the same when they are written into an address and read from it again.
#![no_main]

#[allow(dead_code, reason = "the whole file of the issuer")]
#[path = "../../crates/issuer/src/limits.rs"]
mod limits;
#[path = "../../crates/issuer/src/params.rs"]
mod params;

use libfuzzer_sys::fuzz_target;
use params::{Params, with_query};

/// Parameters that decide something.
const NAMES: [&str; 8] =
    ["client_id", "redirect_uri", "state", "scope", "resource", "code", "code_verifier", "refresh_token"];

fuzz_target!(|text: &[u8]| {
    let Ok(params) = Params::parse(text) else { return };
    if params.check_single().is_err() {
        return;
    }
    let pairs: Vec<(&str, &str)> =
        NAMES.into_iter().filter(|name| *name != "resource").filter_map(|name| Some((name, params.get(name)?))).collect();
    let resources: Vec<(&str, &str)> = params.all("resource").map(|resource| ("resource", resource)).collect();
    assert!(pairs.iter().chain(&resources).all(|(_, value)| value.len() <= limits::PARAM_BYTES_MAX));
    assert!(resources.len() <= limits::PARAMS_MAX);
    // Written, everything is encoded, and three times as long at most.
    let written = with_query("https://app.example/cb", &[pairs.clone(), resources.clone()].concat());
    let query = written.split_once('?').map_or("", |(_, query)| query);
    assert!(!query.contains(['#', '"', '<', ' ']), "{query}");
    if let Ok(again) = Params::parse(query.as_bytes()) {
        for (name, value) in pairs {
            assert_eq!(again.get(name), Some(value));
        }
        assert!(again.all("resource").eq(resources.iter().map(|(_, value)| *value)));
    }
});
