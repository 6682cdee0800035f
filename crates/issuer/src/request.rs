//! Requests, as the endpoints look at them.

use crate::params::{Malformed, Params};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, Method, Request};
use linchpin_guard::TrustedProxies;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A request to one of the endpoints.
pub(crate) struct Incoming {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Who sent it: the client, where a trusted proxy says who that is.
    pub(crate) from: Option<IpAddr>,
    query: String,
}

impl Incoming {
    pub(crate) fn new(request: Request<Bytes>, proxies: &TrustedProxies) -> Incoming {
        let (parts, body) = request.into_parts();
        Incoming {
            query: parts.uri.query().unwrap_or_default().to_owned(),
            from: proxies.client(&parts.headers, parts.extensions.get::<SocketAddr>().copied()),
            method: parts.method,
            headers: parts.headers,
            body,
        }
    }

    /// The address that limits count, as text. For IPv6 it is the network of 64 bits: whoever has one address has all of them.
    pub(crate) fn address(&self) -> String {
        match self.from {
            None => "unknown".to_owned(),
            Some(IpAddr::V4(address)) => address.to_string(),
            Some(IpAddr::V6(address)) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                format!("{}/64", Ipv6Addr::from(network))
            }
        }
    }

    /// The address that users are shown.
    pub(crate) fn shown(&self) -> String {
        self.from.map_or_else(|| "unknown".to_owned(), |from| from.to_string())
    }

    pub(crate) fn query(&self) -> Result<Params, Malformed> {
        let params = Params::parse(self.query.as_bytes())?;
        params.check_single()?;
        Ok(params)
    }

    /// The form in the body.
    pub(crate) fn form(&self) -> Result<Params, Malformed> {
        let kind = self.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(Malformed("the body must be application/x-www-form-urlencoded"));
        }
        let params = Params::parse(&self.body)?;
        params.check_single()?;
        Ok(params)
    }

    /// Whether a form was not sent by a page of another site. Old browsers send neither header: then the form's own
    /// anti-forgery value decides alone.
    pub(crate) fn is_from_our_page(&self, origin: &str) -> bool {
        let is = |name: &str, fine: &[&str]| match self.headers.get(name) {
            Some(value) => value.to_str().is_ok_and(|value| fine.contains(&value)),
            None => true,
        };
        is(ORIGIN.as_str(), &[origin]) && is("sec-fetch-site", &["same-origin"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_count_networks_of_ipv6_and_mapped_addresses_as_ipv4() {
        let rows = [
            ("192.0.2.2:1", "192.0.2.2", "192.0.2.2"),
            ("[::ffff:192.0.2.2]:1", "192.0.2.2", "192.0.2.2"),
            ("[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1:2::/64", "2001:db8:1:2:3:4:5:6"),
            ("[2001:db8:1:2:ffff::1]:1", "2001:db8:1:2::/64", "2001:db8:1:2:ffff::1"),
        ];
        for (from, counted, shown) in rows {
            let mut request = Request::new(Bytes::new());
            request.extensions_mut().insert(from.parse::<SocketAddr>().unwrap());
            let incoming = Incoming::new(request, &TrustedProxies::default());
            assert_eq!((incoming.address().as_str(), incoming.shown().as_str()), (counted, shown), "{from}");
        }
    }
}
