//! Rules about the hosts and ports of requests.

use std::fmt;
use std::str::FromStr;
use url::{Host, Url};

/// A pattern for hosts, as operators write it.
///
/// `example.com` matches this host on any port, `example.com:8443` on one port, `*.example.com` every subdomain, and
/// `.example.com` both. Addresses are written as in URLs: `10.0.0.7`, `[fd00::7]:8080`.
///
/// ```
/// use linchpin_web::HostRule;
///
/// let rule: HostRule = "*.example.com".parse()?;
/// assert!(rule.matches("https://api.example.com/v1"));
/// assert!(!rule.matches("https://example.com/v1"));
/// # Ok::<(), linchpin_web::NoHost>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostRule {
    /// In the spelling of a parsed URL, without a dot at its end.
    host: String,
    own: bool,
    below: bool,
    port: Option<u16>,
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.own, self.below) {
            (true, true) => ".",
            (false, _) => "*.",
            (true, false) => "",
        })?;
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// The error of parsing an invalid [`HostRule`].
///
/// ```
/// use linchpin_web::{HostRule, NoHost};
///
/// let error: NoHost = "https://example.com".parse::<HostRule>().unwrap_err();
/// assert!(error.to_string().starts_with("not a host: https://example.com "));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoHost(String);

impl fmt::Display for NoHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a host: {} (write example.com, example.com:8443, *.example.com or an address)", self.0)
    }
}

impl std::error::Error for NoHost {}

impl FromStr for HostRule {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<HostRule, NoHost> {
        let bad = || NoHost(text.to_owned());
        let text = text.trim();
        let (own, below, rest) = match (text.strip_prefix("*."), text.strip_prefix('.')) {
            (Some(rest), _) => (false, true, rest),
            (None, Some(rest)) => (true, true, rest),
            (None, None) => (true, false, text),
        };
        if rest.is_empty() || rest.contains(['/', '@', '?', '#', '*', '\\']) || rest.contains(char::is_whitespace) {
            return Err(bad());
        }
        // A scheme without a default port keeps an explicit port.
        let url = Url::parse(&format!("http://{rest}/")).map_err(|_| bad())?;
        let host = name(&url).ok_or_else(bad)?;
        if below && !matches!(url.host(), Some(Host::Domain(_))) {
            return Err(bad());
        }
        let written = rest.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = if rest.ends_with(']') { None } else { written };
        Ok(HostRule { host, own, below, port })
    }
}

impl HostRule {
    /// Returns whether the host of a URL matches.
    pub fn matches(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| self.covers(&url))
    }

    pub(super) fn covers(&self, url: &Url) -> bool {
        let Some(host) = name(url) else { return false };
        if self.port.is_some_and(|port| url.port_or_known_default() != Some(port)) {
            return false;
        }
        self.own && host == self.host
            || self.below && host.strip_suffix(&self.host).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
    }
}

fn name(url: &Url) -> Option<String> {
    let name = url.host_str()?;
    let name = name.strip_suffix('.').unwrap_or(name);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Whether a port is one that browsers do not ask for either: other protocols live there, and some of them take an HTTP
/// request for commands (the list of the Fetch Standard, and port 0).
pub(super) fn is_bad_port(port: u16) -> bool {
    BAD_PORTS.binary_search(&port).is_ok()
}

const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_cover_what_they_say() {
        for (rule, yes, no) in [
            (
                "example.com",
                "http://example.com/ https://example.com:8443/ http://EXAMPLE.com./",
                "http://a.example.com/",
            ),
            ("example.com:8443", "https://example.com:8443/", "https://example.com/ http://example.com:84430/"),
            ("example.com:443", "https://example.com/", "http://example.com/"),
            (
                "*.example.com",
                "http://a.b.example.com/",
                "http://example.com/ http://badexample.com/ http://.example.com/",
            ),
            (".example.com", "http://example.com/ http://a.example.com/", "http://example.com.evil.test/"),
            ("127.0.0.1", "http://2130706433/ http://127.1:99/", "http://127.0.0.2/"),
            ("[::1]:80", "http://[0:0:0:0:0:0:0:1]/", "http://[::1]:81/ http://[::2]/"),
            ("[::1]", "http://[::1]:81/", "http://[::2]/"),
            ("straße.test", "http://xn--strae-oqa.test/", "http://strasse.test/"),
            ("good.test", "http://x@good.test/", "http://good.test@evil.test/ http://evil.test/#good.test nonsense"),
        ] {
            let parsed: HostRule = rule.parse().unwrap();
            assert_eq!(parsed.to_string().parse(), Ok(parsed.clone()), "what is shown can be read");
            for url in yes.split(' ') {
                assert!(parsed.matches(url), "{rule} {url}");
            }
            for url in no.split(' ') {
                assert!(!parsed.matches(url), "{rule} {url}");
            }
        }
        for bad in ["", "*", "*.", ".", "a/b", "u@h", "a b", "*.*.x", "*.127.0.0.1", "http://x", "x:99999", "a?b"] {
            assert!(bad.parse::<HostRule>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ports_of_other_protocols_are_known() {
        assert!(BAD_PORTS.is_sorted());
        for bad in [0, 22, 25, 110, 6667, 10080] {
            assert!(is_bad_port(bad));
        }
        for good in [80, 443, 8080, 3000, 65535] {
            assert!(!is_bad_port(good));
        }
    }
}
