//! Looks names up and lets only allowed addresses through, so that what is connected to is what was checked.

use super::Reach;
use linchpin_proto::service::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Finds the addresses of a name. The system's lookup is used unless a client is given its own.
pub trait Lookup: Send + Sync + 'static {
    /// All addresses of a name, in the order they should be tried.
    ///
    /// # Errors
    /// When the name is not known.
    fn lookup(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The lookup that is handed to the HTTP client.
pub(super) struct Vetted {
    reach: Reach,
    lookup: Option<Arc<dyn Lookup>>,
    /// The proxies' own names: the environment wrote them, not a peer.
    exempt: Arc<[String]>,
}

/// A name led to an address that is not allowed.
#[derive(Debug)]
pub(super) struct Vetoed {
    pub(super) why: &'static str,
}

impl fmt::Display for Vetoed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it {}", self.why)
    }
}

impl std::error::Error for Vetoed {}

impl Vetted {
    pub(super) fn new(reach: Reach, lookup: Option<Arc<dyn Lookup>>, exempt: Vec<String>) -> Vetted {
        Vetted { reach, lookup, exempt: exempt.into() }
    }
}

impl Resolve for Vetted {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = if self.exempt.iter().any(|host| host.eq_ignore_ascii_case(name.as_str())) {
            Reach::Any
        } else {
            self.reach
        };
        let found = self.lookup.as_ref().map(|lookup| lookup.lookup(name.as_str()));
        Box::pin(async move {
            let found = match found {
                Some(found) => found.await?,
                None => tokio::net::lookup_host((name.as_str(), 0)).await?.map(|found| found.ip()).collect(),
            };
            if found.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "it has no address").into());
            }
            // One bad address condemns the name: whoever mixes them is up to something.
            for ip in &found {
                reach.check(*ip).map_err(|why| Vetoed { why })?;
            }
            let addresses: Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}

/// The hosts of the proxies that the environment names.
pub(super) fn proxy_hosts() -> Vec<String> {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let host = |value: String| {
        let value = if value.contains("://") { value } else { format!("http://{value}") };
        url::Url::parse(&value).ok()?.host_str().map(str::to_owned)
    };
    names.iter().filter_map(|name| std::env::var(name).ok().and_then(host)).collect()
}
