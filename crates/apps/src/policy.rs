//! The content security policy of a page.
//!
//! Origins come from untrusted servers. A text that is not an origin is dropped and reported, never escaped, so that a server
//! cannot end a directive or add one.

use crate::definition::PageMeta;
use crate::grant::Grant;

/// The purpose for which a page declares an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Requests and WebSockets.
    Connect,
    /// Scripts, styles, images, fonts, media.
    Resource,
    /// Frames inside the page.
    Frame,
    /// The base URI.
    BaseUri,
}

/// The content security policy of a page, and the declarations that were dropped from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// The value of the header `Content-Security-Policy`.
    pub(crate) text: String,
    /// The value of the frame's attribute `allow`.
    pub(crate) allow: String,
    /// The dropped declarations with the reasons, one sentence each, for the log.
    pub(crate) dropped: Vec<String>,
}

impl Policy {
    /// Makes the policy of a page.
    pub(crate) fn of(meta: &PageMeta, grant: &Grant) -> Policy {
        let mut dropped = Vec::new();
        let mut list = |domains: &[String], source: Source| -> Vec<String> {
            let (mut kept, wanted) = (Vec::new(), domains.iter().take(ORIGINS_MAX));
            for domain in wanted {
                match check(domain, source) {
                    Ok(()) if !grant.allows_origin(domain) => {
                        dropped.push(format!("{domain}: this host does not allow it"));
                    }
                    Ok(()) if !kept.contains(domain) => kept.push(domain.clone()),
                    Ok(()) => {}
                    Err(why) => dropped.push(format!("{:?}: {why}", clip(domain))),
                }
            }
            if domains.len() > ORIGINS_MAX {
                dropped.push(format!("a page declares at most {ORIGINS_MAX} origins of a kind"));
            }
            kept
        };
        let connect = list(&meta.csp.connect_domains, Source::Connect);
        let resources = list(&meta.csp.resource_domains, Source::Resource).join(" ");
        let frames = list(&meta.csp.frame_domains, Source::Frame);
        let bases = list(&meta.csp.base_uri_domains, Source::BaseUri);
        let or = |origins: &[String], none: &str| if origins.is_empty() { none.to_owned() } else { origins.join(" ") };
        let mut directives = vec!["default-src 'none'".to_owned()];
        for (directive, own) in [
            ("script-src", "'self' 'unsafe-inline'"),
            ("style-src", "'self' 'unsafe-inline'"),
            ("img-src", "'self' data:"),
            ("font-src", "'self'"),
            ("media-src", "'self' data:"),
        ] {
            directives.push(format!("{directive} {own} {resources}").trim_end().to_owned());
        }
        directives.push(format!("connect-src {}", or(&connect, "'none'")));
        directives.push(format!("frame-src {}", or(&frames, "'none'")));
        directives.push(format!("base-uri {}", or(&bases, "'self'")));
        directives.push("object-src 'none'; form-action 'none'".to_owned());
        if let Some(parent) = &grant.frame_ancestors {
            directives.push(format!("frame-ancestors {parent}"));
        }
        let allow: Vec<_> = meta.permissions.names().filter(|name| grant.allows_feature(name)).collect();
        Policy { text: directives.join("; "), allow: allow.join("; "), dropped }
    }
}

/// Maximum origins of one kind.
const ORIGINS_MAX: usize = 64;

fn clip(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Whether it is plainly an origin: `https://host`, `wss://host`, a port, `*.` in front of at least two labels; `http` and `ws` on this
/// machine only. The error says why not.
pub(crate) fn check(origin: &str, source: Source) -> Result<(), &'static str> {
    let (scheme, place) = origin.split_once("://").ok_or("an origin begins with https://")?;
    if !place.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.:*[]".contains(&b)) {
        return Err("an origin has no path, no spaces, no quotes and no `;`");
    }
    let socket = matches!(scheme, "wss" | "ws");
    if socket && source != Source::Connect {
        return Err("WebSockets are for connections only");
    }
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !place.ends_with(']') => (host, Some(port)),
        _ => (place, None),
    };
    if port.is_some_and(|port| port.parse::<u16>().map_or(true, |port| port == 0)) {
        return Err("the port is not a number");
    }
    let loopback = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    match scheme {
        "https" | "wss" => {}
        "http" | "ws" if loopback => {}
        "http" | "ws" => return Err("only https and wss, except on this machine"),
        _ => return Err("only https and wss"),
    }
    if loopback {
        return Ok(());
    }
    let (wild, name) = host.strip_prefix("*.").map_or((false, host), |name| (true, name));
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let labels = name.split('.').count();
    if !name.split('.').all(label) || name.len() > 253 {
        return Err("the host is not a name");
    }
    match wild && labels < 2 {
        true => Err("`*.` stands before a whole domain"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_origin_is_plainly_one_or_is_refused() {
        for origin in [
            "https://a.example",
            "https://*.a.example",
            "https://a.example:8443",
            "https://localhost",
            "http://localhost:3000",
            "http://127.0.0.1:80",
            "http://[::1]:80",
            "https://xn--bcher-kva.example",
        ] {
            assert_eq!(check(origin, Source::Resource), Ok(()), "{origin}");
        }
        for origin in ["wss://a.example", "ws://localhost:1"] {
            assert_eq!(check(origin, Source::Connect), Ok(()), "{origin}");
            assert!(check(origin, Source::Frame).is_err(), "{origin}");
        }
        for origin in [
            "https://a.example; script-src *",
            "https://a.example;",
            "https://a.example script-src",
            "https://a.example\tb",
            "https://a.example,https://b.example",
            "https://a.example/path",
            "https://a.example?q",
            "https://a.example#f",
            "https://user@a.example",
            "https://a.example\nx: y",
            "'unsafe-eval'",
            "'self'",
            "*",
            "https://*",
            "https://*.example",
            "https://a.*.example",
            "https://*a.example",
            "http://a.example",
            "ws://a.example",
            "http://localhost.evil.example",
            "data:",
            "data://x",
            "blob:https://a.example",
            "javascript://a",
            "https:",
            "https://",
            "https://-a.example",
            "https://a..example",
            "https://a.example:0",
            "https://a.example:x",
            "https://a.example:99999",
            "https://bücher.example",
            "HTTPS://a.example",
            "",
        ] {
            assert!(check(origin, Source::Connect).is_err(), "{origin}");
        }
    }

    fn policy(meta: serde_json::Value, grant: &Grant) -> Policy {
        Policy::of(&serde_json::from_value(meta).unwrap(), grant)
    }

    #[test]
    fn nothing_is_allowed_that_was_not_declared() {
        let none = policy(json!({}), &Grant::new());
        assert_eq!(
            none.text,
            "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
             font-src 'self'; media-src 'self' data:; connect-src 'none'; frame-src 'none'; base-uri 'self'; object-src 'none'; \
             form-action 'none'"
        );
        assert_eq!((none.allow.as_str(), none.dropped.len()), ("", 0));
        let meta = json!({
            "csp": {
                "connectDomains": ["https://api.example", "wss://live.example"], "resourceDomains": ["https://cdn.example", "https://cdn.example"],
                "frameDomains": ["https://video.example"], "baseUriDomains": ["https://base.example"],
            },
            "permissions": { "camera": {}, "geolocation": {} },
        });
        let some =
            policy(meta.clone(), &Grant::new().features(["geolocation"]).frame_ancestors("https://sandbox.example"));
        for directive in [
            "script-src 'self' 'unsafe-inline' https://cdn.example;",
            "img-src 'self' data: https://cdn.example;",
            "connect-src https://api.example wss://live.example;",
            "frame-src https://video.example;",
            "base-uri https://base.example;",
            "frame-ancestors https://sandbox.example",
        ] {
            assert!(some.text.contains(directive), "{directive}: {}", some.text);
        }
        assert_eq!(some.allow, "geolocation");
        let narrowed = policy(meta, &Grant::new().origins(["https://cdn.example"]));
        assert!(narrowed.text.contains("connect-src 'none'; frame-src 'none'; base-uri 'self'"), "{}", narrowed.text);
        assert_eq!(narrowed.dropped.len(), 4);
    }

    #[test]
    fn what_a_server_writes_never_becomes_a_directive() {
        let evil = ["https://a.example; script-src *", "'unsafe-eval'", "*", "http://a.example", "data:"];
        let meta = json!({ "csp": { "connectDomains": evil, "resourceDomains": evil, "frameDomains": evil, "baseUriDomains": evil } });
        let policy = policy(meta, &Grant::new());
        assert_eq!(policy.text, super::Policy::of(&PageMeta::default(), &Grant::new()).text);
        assert_eq!(policy.dropped.len(), 20);
    }

    proptest::proptest! {
        #[test]
        fn a_policy_has_the_same_directives_whatever_is_declared(domains in proptest::collection::vec(".{0,40}", 0..8), close in "https://[a-z.*:;' /-]{0,20}") {
            let mut domains = domains;
            domains.push(close);
            let mut meta = PageMeta::default();
            meta.csp.connect_domains.clone_from(&domains);
            meta.csp.resource_domains.clone_from(&domains);
            meta.csp.frame_domains = domains;
            let policy = Policy::of(&meta, &Grant::new());
            let names: Vec<_> = policy.text.split("; ").map(|part| part.split(' ').next().unwrap()).collect();
            let plain = Policy::of(&PageMeta::default(), &Grant::new());
            let expected: Vec<_> = plain.text.split("; ").map(|part| part.split(' ').next().unwrap()).collect();
            proptest::prop_assert_eq!(names, expected);
            proptest::prop_assert!(!policy.text.contains("unsafe-eval"));
        }
    }
}
