//! Reverse proxies, and the address of a client behind them.

use http::{HeaderMap, HeaderName};
use std::net::{IpAddr, SocketAddr};

/// Reverse proxies that are trusted to report the client's address with `X-Forwarded-For` or, without it, `Forwarded`.
///
/// ```
/// use linchpin_guard::TrustedProxies;
/// use http::HeaderMap;
///
/// let proxies = TrustedProxies::from_iter(["10.0.0.1".parse().unwrap()]);
/// let headers = HeaderMap::from_iter([("x-forwarded-for".parse().unwrap(), "192.0.2.7".parse().unwrap())]);
/// let peer = |text: &str| Some(text.parse().unwrap());
/// assert_eq!(proxies.client(&headers, peer("10.0.0.1:443")), Some("192.0.2.7".parse().unwrap()));
/// assert_eq!(proxies.client(&headers, peer("192.0.2.9:443")), Some("192.0.2.9".parse().unwrap()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpAddr>);

impl TrustedProxies {
    /// Returns the address of the client: the peer of the connection or, if that is a trusted proxy, the last reported
    /// address that is not a trusted proxy.
    pub fn client(&self, headers: &HeaderMap, peer: Option<SocketAddr>) -> Option<IpAddr> {
        const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
        const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
        let peer = peer?.ip().to_canonical();
        if !self.0.contains(&peer) {
            return Some(peer);
        }
        let parts =
            |name| headers.get_all(name).iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
        let mut named: Vec<Option<IpAddr>> = parts(FORWARDED_FOR).map(|text| text.trim().parse().ok()).collect();
        if named.is_empty() {
            named = parts(FORWARDED).map(forwarded_for).collect();
        }
        let addresses = named.into_iter().rev().map_while(|address| address);
        Some(addresses.map(|ip| ip.to_canonical()).find(|ip| !self.0.contains(ip)).unwrap_or(peer))
    }
}

/// The address in one element of `Forwarded` (RFC 7239): `for=192.0.2.43;proto=http`, `for="[2001:db8::17]:4711"`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let node =
        pairs.filter(|(name, _)| name.eq_ignore_ascii_case("for")).map(|(_, node)| node.trim_matches('"')).next()?;
    let address = node.parse::<SocketAddr>().map(|address| address.ip()).or_else(|_| node.parse());
    address.ok().or_else(|| node.strip_prefix('[')?.strip_suffix(']')?.parse().ok())
}

impl FromIterator<IpAddr> for TrustedProxies {
    fn from_iter<I: IntoIterator<Item = IpAddr>>(proxies: I) -> TrustedProxies {
        TrustedProxies(proxies.into_iter().map(|ip| ip.to_canonical()).collect())
    }
}

impl IntoIterator for TrustedProxies {
    type Item = IpAddr;
    type IntoIter = std::vec::IntoIter<IpAddr>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Extend<IpAddr> for TrustedProxies {
    fn extend<I: IntoIterator<Item = IpAddr>>(&mut self, proxies: I) {
        self.0.extend(proxies.into_iter().map(|ip| ip.to_canonical()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_what_trusted_proxies_say_and_nobody_else() {
        let proxies = TrustedProxies::from_iter(["10.0.0.1".parse().unwrap(), "::ffff:10.0.0.2".parse().unwrap()]);
        let rows = [
            ("1.2.3.4:5", "9.9.9.9", "1.2.3.4"),
            ("10.0.0.1:5", "", "10.0.0.1"),
            ("10.0.0.1:5", "9.9.9.9", "9.9.9.9"),
            ("10.0.0.1:5", "6.6.6.6, 9.9.9.9, 10.0.0.2", "9.9.9.9"),
            ("10.0.0.1:5", "9.9.9.9, evil", "10.0.0.1"),
            ("[::ffff:10.0.0.1]:5", "9.9.9.9", "9.9.9.9"),
        ];
        for (peer, forwarded, expected) in rows {
            let mut headers = HeaderMap::new();
            if !forwarded.is_empty() {
                headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            }
            let found = proxies.client(&headers, Some(peer.parse().unwrap()));
            assert_eq!(found, Some(expected.parse().unwrap()), "{peer} {forwarded}");
        }
    }

    #[test]
    fn the_standard_header_names_the_address_as_well() {
        let proxies = TrustedProxies::from_iter(["10.0.0.1".parse().unwrap()]);
        let rows = [
            ("for=192.0.2.43", "192.0.2.43"),
            ("For=\"[2001:db8::17]:4711\";proto=https", "2001:db8::17"),
            ("for=\"[2001:db8::17]\"", "2001:db8::17"),
            ("for=6.6.6.6, by=x;for=192.0.2.43:80, for=10.0.0.1", "192.0.2.43"),
            ("for=6.6.6.6, for=unknown", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
        ];
        for (line, expected) in rows {
            let mut headers = HeaderMap::new();
            headers.insert("forwarded", line.parse().unwrap());
            let found = proxies.client(&headers, Some("10.0.0.1:5".parse().unwrap()));
            assert_eq!(found, Some(expected.parse().unwrap()), "{line}");
            headers.insert("x-forwarded-for", "9.9.9.9".parse().unwrap());
            assert_eq!(proxies.client(&headers, Some("10.0.0.1:5".parse().unwrap())), Some("9.9.9.9".parse().unwrap()));
        }
    }
}
