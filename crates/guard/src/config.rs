//! What a guard was told, and whether that can work.

use crate::clock::Clock;
use crate::fetch::Fetch;
use crate::issuer::TrustedIssuer;
use crate::keys::Keys;
use crate::mode::Dpop;
use crate::proxies::TrustedProxies;
use linchpin_oauth::Scopes;
use linchpin_store::Store;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The configuration of a guard.
#[derive(Clone, Default)]
pub(crate) struct Config {
    /// The URLs of the server, the first being that of its endpoint. None for keys alone.
    pub(crate) resources: Vec<String>,
    pub(crate) issuers: Vec<TrustedIssuer>,
    pub(crate) keys: Vec<Keys>,
    pub(crate) require: Vec<String>,
    pub(crate) ask_for: Vec<String>,
    pub(crate) implies: Vec<(String, Vec<String>)>,
    pub(crate) optional: bool,
    pub(crate) name: Option<String>,
    pub(crate) documentation: Option<String>,
    pub(crate) dpop: Dpop,
    pub(crate) nonces: bool,
    pub(crate) mirror: bool,
    /// Where proofs are remembered that all nodes know.
    pub(crate) replay: Option<Store>,
    pub(crate) proxies: TrustedProxies,
    pub(crate) fetch: Option<Arc<dyn Fetch>>,
    pub(crate) clock: Clock,
}

impl Config {
    /// Why it cannot work, and what to do about it: one line.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.issuers.is_empty() && self.keys.is_empty() {
            return Some("this guard lets nobody in: add .issuer(URL), or .keys(Keys::file(PATH)?)".to_owned());
        }
        if self.resources.is_empty() && !self.issuers.is_empty() {
            return Some("a guard with an issuer needs the server's public URL: use Guard::new(URL)".to_owned());
        }
        for url in &self.resources {
            if let Some(why) = wrong_url(url) {
                return Some(format!("the server's public URL {url:?} {why}"));
            }
        }
        for issuer in &self.issuers {
            if let Some(why) = wrong_url(&issuer.url) {
                return Some(format!("the issuer {:?} {why}", issuer.url));
            }
            if issuer.is_remote() && self.fetch.is_none() && cfg!(not(feature = "web")) {
                let url = &issuer.url;
                return Some(format!(
                    "the keys of {url} cannot be fetched: turn on the feature `guard`, or give them with keys()"
                ));
            }
        }
        let urls: Vec<&str> = self.issuers.iter().map(|issuer| issuer.url.as_str()).collect();
        if let Some(twice) = urls.iter().enumerate().find(|(at, url)| urls[..*at].contains(url)) {
            return Some(format!("the issuer {} was added twice", twice.1));
        }
        let implied = self.implies.iter().flat_map(|(scope, all)| all.iter().chain([scope]));
        for scope in self.require.iter().chain(&self.ask_for).chain(implied) {
            if Scopes::from_iter([scope]).is_empty() {
                return Some(format!(
                    "{scope:?} is not a scope: use printable ASCII without spaces, quotes and backslashes"
                ));
            }
        }
        implications(&self.implies).err()
    }
}

/// Why a URL cannot be that of a server or issuer.
fn wrong_url(url: &str) -> Option<&'static str> {
    let uri = match url.parse::<http::Uri>() {
        Ok(uri) if uri.scheme().is_some() && uri.host().is_some_and(|host| !host.is_empty()) => uri,
        _ => return Some("is not a URL; write https://HOST/PATH"),
    };
    if url.contains('#') {
        return Some("has a fragment, which the specification forbids");
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Some("has a user name in it");
    }
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match uri.scheme_str() {
        Some("https") => None,
        Some("http") if local => None,
        Some("http") => Some("is not https; plain http is for this machine only"),
        _ => Some("is neither https nor http"),
    }
}

/// For each scope all that it implies, directly or not.
pub(crate) fn implications(implies: &[(String, Vec<String>)]) -> Result<BTreeMap<String, Scopes>, String> {
    let mut closed = BTreeMap::new();
    for (scope, _) in implies {
        let mut reached: Vec<String> = Vec::new();
        let mut open = vec![scope.clone()];
        while let Some(next) = open.pop() {
            for (_, all) in implies.iter().filter(|(from, _)| *from == next) {
                for to in all {
                    if to == scope {
                        return Err(format!("scope {scope:?} implies itself: remove one of the implications between"));
                    }
                    if !reached.contains(to) {
                        reached.push(to.clone());
                        open.push(to.clone());
                    }
                }
            }
        }
        closed.insert(scope.clone(), reached.iter().collect());
    }
    Ok(closed)
}
