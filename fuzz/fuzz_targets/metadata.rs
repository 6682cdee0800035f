//! A metadata document of a resource, an authorization server or a client. What is read is written and read again as the same; of a
//! client's, redirect URIs that are taken lead to `https`, to this computer, or to a program.
#![no_main]

#[allow(dead_code, reason = "the whole file of the issuer")]
#[path = "../../crates/issuer/src/client.rs"]
mod client;
#[allow(dead_code, reason = "the whole file of the issuer")]
#[path = "../../crates/issuer/src/limits.rs"]
mod limits;
#[allow(dead_code, reason = "the whole file of the issuer")]
#[path = "../../crates/issuer/src/redirect.rs"]
mod redirect;

use libfuzzer_sys::fuzz_target;
use linchpin_oauth::{AuthorizationServerMetadata, ClientMetadata, ResourceMetadata};
use serde_json::Value;

/// The id that documents must contain.
const ID: &str = "https://app.example/c";

fuzz_target!(|text: &[u8]| {
    let Ok(document) = serde_json::from_slice::<Value>(text) else { return };
    let (resource, server) = (ResourceMetadata::read(&document), AuthorizationServerMetadata::read(&document));
    assert_eq!(ResourceMetadata::read(&serde_json::to_value(&resource).unwrap()), resource);
    assert_eq!(AuthorizationServerMetadata::read(&serde_json::to_value(&server).unwrap()), server);
    let _ = ClientMetadata::read(&document);
    let Some(members) = document.as_object() else { return };
    if let Ok(client) = client::of_document(ID, members, &[]) {
        assert!(members["client_id"] == ID && !members.contains_key("client_secret"));
        assert!(client.name.chars().count() <= limits::NAME_CHARS_MAX + 1);
        assert!(!client.name.chars().any(char::is_control));
        for uri in &client.redirect_uris {
            let url = url::Url::parse(uri).unwrap();
            assert!(url.username().is_empty() && url.fragment().is_none(), "{uri}");
            assert!(!matches!(url.scheme(), "javascript" | "data" | "file" | "blob" | "about"), "{uri}");
            assert!(url.scheme() != "http" || redirect::is_loopback(&url), "{uri}");
            assert!(client.redirects_to(uri), "{uri}");
        }
    }
});
