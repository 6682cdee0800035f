//! Name lookup that returns only allowed addresses, so that the client connects to the address that was checked.

use super::{BoxFuture, Reach};
use hyper_util::client::legacy::connect::dns;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// A custom name lookup. By default, clients use the lookup of the operating system.
///
/// ```
/// use linchpin_web::{BoxFuture, Lookup};
/// use std::io;
/// use std::net::{IpAddr, Ipv4Addr};
///
/// /// Knows one name.
/// struct Fixed;
///
/// impl Lookup for Fixed {
///     fn lookup(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
///         let known = name == "server.test";
///         Box::pin(async move {
///             known.then(|| vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]).ok_or_else(|| io::Error::other("unknown name"))
///         })
///     }
/// }
/// ```
pub trait Lookup: Send + Sync + 'static {
    /// Returns all addresses of a name, in the order in which to try them.
    ///
    /// # Errors
    /// If the name is unknown.
    fn lookup(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The lookup that is handed to the HTTP client.
#[derive(Clone)]
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

/// A name has no address that is known.
#[derive(Debug)]
pub(super) struct Unknown(Box<dyn std::error::Error + Send + Sync>);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name is unknown")
    }
}

impl std::error::Error for Unknown {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

impl Vetted {
    pub(super) fn new(reach: Reach, lookup: Option<Arc<dyn Lookup>>, exempt: Vec<String>) -> Vetted {
        Vetted { reach, lookup, exempt: exempt.into() }
    }
}

impl Vetted {
    fn addresses(&self, name: &str) -> Resolving {
        let reach =
            if self.exempt.iter().any(|host| host.eq_ignore_ascii_case(name)) { Reach::Any } else { self.reach };
        let (lookup, name) = (self.lookup.clone(), name.to_owned());
        Box::pin(async move {
            let found = vetted(reach, lookup.as_deref(), &name).await;
            let found = found.map_err(|e| if e.is::<Vetoed>() { e } else { Unknown(e).into() })?;
            let addresses: Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}

impl Resolve for Vetted {
    fn resolve(&self, name: Name) -> Resolving {
        self.addresses(name.as_str())
    }
}

impl Service<dns::Name> for Vetted {
    type Response = Addrs;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Resolving;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: dns::Name) -> Resolving {
        self.addresses(name.as_str())
    }
}

/// The addresses of a name, all of them allowed.
///
/// # Errors
/// A [`Vetoed`] if an address is not allowed; otherwise the resolver error.
pub(super) async fn vetted(
    reach: Reach,
    lookup: Option<&dyn Lookup>,
    name: &str,
) -> Result<Vec<IpAddr>, Box<dyn std::error::Error + Send + Sync>> {
    let found = match lookup {
        Some(lookup) => lookup.lookup(name).await?,
        None => tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect(),
    };
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it has no address").into());
    }
    // One forbidden address rejects the name: mixed results indicate an attack.
    for ip in &found {
        reach.check(*ip).map_err(|why| Vetoed { why })?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A name that is public when it is asked for the first time, and this machine from then on.
    struct Rebinding(AtomicUsize);

    impl Lookup for Rebinding {
        fn lookup(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let first = self.0.fetch_add(1, Ordering::Relaxed) == 0;
            let ip = if first { [8, 8, 8, 8] } else { [127, 0, 0, 1] };
            Box::pin(async move { Ok(vec![ip.into()]) })
        }
    }

    #[tokio::test]
    async fn what_was_checked_is_what_the_connector_gets_and_a_changed_name_is_checked_anew() {
        let lookup = Arc::new(Rebinding(AtomicUsize::new(0)));
        let vetted = Vetted::new(Reach::Public, Some(lookup.clone()), Vec::new());
        let ask = || vetted.resolve("rebind.test".parse().unwrap());
        let first: Vec<SocketAddr> = ask().await.unwrap().collect();
        assert_eq!(first, [SocketAddr::from(([8, 8, 8, 8], 0))]);
        assert_eq!(lookup.0.load(Ordering::Relaxed), 1, "one lookup serves the check and the connection");
        let second = ask().await.map(|_| ()).unwrap_err();
        assert_eq!(second.to_string(), "it is this machine itself");
    }
}
