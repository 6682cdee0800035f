//! Reverse proxies, and the address of a client behind them.

use http::{HeaderMap, HeaderName};
use std::net::{IpAddr, SocketAddr};

/// Reverse proxies that are believed when they name the client's address, with `X-Forwarded-For`.
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
    /// Returns the address of the client: that of the connection, or, if that is of a trusted proxy, the last one that it names
    /// and that is no trusted proxy's.
    pub fn client(&self, headers: &HeaderMap, peer: Option<SocketAddr>) -> Option<IpAddr> {
        const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
        let peer = peer?.ip().to_canonical();
        if !self.0.contains(&peer) {
            return Some(peer);
        }
        let lines = headers.get_all(FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok());
        let named: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
        let addresses = named.iter().rev().map_while(|text| text.parse::<IpAddr>().ok());
        Some(addresses.map(|ip| ip.to_canonical()).find(|ip| !self.0.contains(ip)).unwrap_or(peer))
    }
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
}
