//! Proxies: the configured one, or those of the environment.

use std::fmt;
use std::str::FromStr;
use url::Url;

/// The URL of a proxy. `Debug` and errors hide user and password.
///
/// Schemes: `http://`, `https://`, `socks5://` (names are resolved locally), `socks5h://` (the proxy resolves them), and
/// `socks://` for `socks5://`, as desktops write it.
///
/// ```
/// use linchpin_web::Proxy;
///
/// let proxy: Proxy = "socks5h://user:secret@127.0.0.1:1080".parse().unwrap();
/// assert!(!format!("{proxy:?}").contains("secret"));
/// assert!("ftp://127.0.0.1".parse::<Proxy>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy(Url);

/// The error of parsing an invalid [`Proxy`]. It does not contain the user name and password.
///
/// ```
/// use linchpin_web::{NoProxy, Proxy};
///
/// let error: NoProxy = "ftp://user:secret@10.0.0.1".parse::<Proxy>().unwrap_err();
/// assert!(error.to_string().starts_with("invalid proxy: ftp://10.0.0.1 "));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoProxy(String);

impl fmt::Display for NoProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid proxy: {} (use http://host:port or socks5://host:port)", self.0)
    }
}

impl std::error::Error for NoProxy {}

impl FromStr for Proxy {
    type Err = NoProxy;

    fn from_str(text: &str) -> Result<Proxy, NoProxy> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let scheme = scheme.to_ascii_lowercase();
        // It may contain a password.
        let shown = || NoProxy(format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or_default()));
        let known = match scheme.as_str() {
            "socks" => "socks5",
            scheme @ ("http" | "https" | "socks5" | "socks5h" | "socks4" | "socks4a") => scheme,
            _ => return Err(shown()),
        };
        let url = Url::parse(&format!("{known}://{rest}")).map_err(|_| shown())?;
        match url.host_str() {
            Some(host) if !host.is_empty() => Ok(Proxy(url)),
            _ => Err(shown()),
        }
    }
}

impl Proxy {
    pub(super) fn url(&self) -> &str {
        self.0.as_str()
    }

    fn host(&self) -> String {
        self.0.host_str().unwrap_or_default().to_owned()
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.0.scheme(), super::error::host(&self.0))
    }
}

/// Proxy settings of the environment.
pub(super) struct FromEnvironment {
    /// For `http`, for `https`, for both; already in a form that the HTTP client knows.
    pub(super) by_scheme: [Option<Proxy>; 3],
    /// Whether one is written in a way that only we understand.
    pub(super) ours: bool,
}

impl FromEnvironment {
    pub(super) fn read() -> FromEnvironment {
        FromEnvironment::of(&|name| std::env::var(name).ok())
    }

    fn of(get: &dyn Fn(&str) -> Option<String>) -> FromEnvironment {
        let mut ours = false;
        let by_scheme = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].map(|name| {
            let value = [name.to_ascii_lowercase(), name.to_owned()];
            let value = value.iter().find_map(|name| get(name).filter(|value| !value.trim().is_empty()))?;
            ours |= value.trim().to_ascii_lowercase().starts_with("socks://");
            value.parse().ok()
        });
        FromEnvironment { by_scheme, ours }
    }

    /// The hosts of the proxies.
    pub(super) fn hosts(&self) -> Vec<String> {
        self.by_scheme.iter().flatten().map(Proxy::host).collect()
    }
}

/// The hosts of the proxies in use.
pub(super) fn hosts(explicit: Option<&Proxy>, environment: bool) -> Vec<String> {
    match explicit {
        Some(proxy) => vec![proxy.host()],
        None if environment => FromEnvironment::read().hosts(),
        None => Vec::new(),
    }
}

/// Gives a client its proxies.
pub(super) fn apply(
    builder: reqwest::ClientBuilder,
    explicit: Option<&Proxy>,
    environment: bool,
) -> Result<reqwest::ClientBuilder, reqwest::Error> {
    if let Some(proxy) = explicit {
        return Ok(builder.no_proxy().proxy(reqwest::Proxy::all(proxy.url())?));
    }
    if !environment {
        return Ok(builder.no_proxy());
    }
    let found = FromEnvironment::read();
    if !found.ours {
        return Ok(builder);
    }
    let mut builder = builder.no_proxy();
    let makers = [reqwest::Proxy::http, reqwest::Proxy::https, reqwest::Proxy::all];
    for (proxy, make) in found.by_scheme.iter().zip(makers) {
        if let Some(proxy) = proxy {
            builder = builder.proxy(make(proxy.url())?.no_proxy(reqwest::NoProxy::from_env()));
        }
    }
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_proxies_are_read_and_hide_passwords() {
        for (text, shown) in [
            ("http://p:3128", "http://p:3128"),
            ("p:3128", "http://p:3128"),
            ("socks://p:1080", "socks5://p:1080"),
            ("SOCKS://p:1080", "socks5://p:1080"),
            ("socks5h://u:secret@p:1080", "socks5h://p:1080"),
            ("https://u:secret@p", "https://p"),
        ] {
            assert_eq!(format!("{:?}", text.parse::<Proxy>().unwrap()), shown);
        }
        for bad in ["", "ftp://u:secret@p", "http://", "http://u:secret@", "socks5://"] {
            let error = bad.parse::<Proxy>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_environment_is_read_with_the_alias_of_desktops() {
        let get = |name: &str| match name {
            "ALL_PROXY" => Some("socks://127.0.0.1:1080".to_owned()),
            "http_proxy" => Some("http://small:1".to_owned()),
            "HTTP_PROXY" => Some("http://large:1".to_owned()),
            _ => None,
        };
        let found = FromEnvironment::of(&get);
        assert!(found.ours);
        assert_eq!(found.hosts(), ["small", "127.0.0.1"]);
        assert_eq!(format!("{:?}", found.by_scheme), "[Some(http://small:1), None, Some(socks5://127.0.0.1:1080)]");
        assert!(!FromEnvironment::of(&|_| Some("http://p:1".to_owned())).ours);
    }
}
