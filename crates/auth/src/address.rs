//! URL checks: which URLs may be requested, the identity of a server, and the scope of a resource identifier.

use crate::error::Error;
use linchpin_web::Reach;
use std::net::IpAddr;
use url::{Host, ParseError, Url};

/// The URL of a server without query and fragment, which identifies it.
pub(crate) fn server(address: &str) -> Result<Url, Error> {
    let mut url = parse("the server's URL", address).map_err(|e| Error::setup(e.to_string()))?;
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// Parses and checks a URL: `https`, or `http` on this machine; no user or
/// password in it.
pub(crate) fn parse(what: &str, address: &str) -> Result<Url, Error> {
    let shown: String = address.chars().filter(|c| !c.is_control()).take(200).collect();
    let wrong = |why: &str| Error::discovery(format!("{what} is invalid: {shown:?}: {why}"));
    let url = Url::parse(address).map_err(|e| match e {
        ParseError::RelativeUrlWithoutBase => wrong("it must begin with https://"),
        e => wrong(&e.to_string()),
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::discovery(format!("{what} contains a user name or password, which is not allowed")));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => Err(wrong("it must be https, since it is not on this machine")),
        _ => Err(wrong("it must be https")),
    }
}

/// The default resource identifier of a server: its URL, without a trailing slash.
pub(crate) fn canonical(server: &Url) -> String {
    let text = server.as_str();
    if server.path() == "/" { text.trim_end_matches('/').to_owned() } else { text.to_owned() }
}

/// Scheme, host and port.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Whether a resource identifier covers this server: the same origin, and a path that is a prefix of the server's.
pub(crate) fn covers(resource: &Url, server: &Url) -> bool {
    let path = resource.path().trim_end_matches('/');
    let below = server.path().strip_prefix(path);
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether two addresses are the same but for their queries and fragments.
pub(crate) fn same_place(a: &str, b: &str) -> bool {
    let bare = |address: &str| {
        let mut url = Url::parse(address).ok()?;
        url.set_query(None);
        url.set_fragment(None);
        Some(url)
    };
    bare(a).is_some_and(|a| bare(b) == Some(a))
}

/// `https://host/.well-known/NAME/path` for `https://host/path`.
pub(crate) fn well_known_inserted(url: &Url, name: &str) -> String {
    format!("{}/.well-known/{name}{}", origin(url), url.path().trim_end_matches('/'))
}

/// How far requests on behalf of `server` may reach when they go to `target`.
///
/// The origin of the server itself is where its user sent us, so that is open. Beyond it, a server on the internet
/// can only send us to the internet; one on this machine also to this machine; one at a private address also to private
/// addresses. A host name does not reveal its location: for servers inside a company's network, allow them with
/// `OAuth::reach`.
pub(crate) fn reach(chosen: Option<Reach>, server: &Url, target: &Url) -> Reach {
    if server.origin() == target.origin() {
        return Reach::Any;
    }
    chosen.unwrap_or_else(|| {
        if is_loopback(server) {
            Reach::PublicOrLoopback
        } else if is_private(server) {
            Reach::PublicOrPrivate
        } else {
            Reach::Public
        }
    })
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    linchpin_web::is_loopback(url.as_str())
}

fn is_private(url: &Url) -> bool {
    let ip: IpAddr = match url.host() {
        Some(Host::Ipv4(ip)) => ip.into(),
        Some(Host::Ipv6(ip)) => ip.into(),
        _ => return false,
    };
    Reach::Public.check(ip).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_covers_servers_of_its_origin_below_its_path() {
        let rows = [
            ("https://a/mcp", "https://a/mcp", true),
            ("https://a", "https://a/mcp", true),
            ("https://a/", "https://a/mcp", true),
            ("HTTPS://A:443/mcp/", "https://a/mcp", true),
            ("https://a/mcp", "https://a/mcp/x", true),
            ("https://a/mc", "https://a/mcp", false),
            ("https://a/mcp/x", "https://a/mcp", false),
            ("https://a/mcp", "https://b/mcp", false),
            ("https://a:444/mcp", "https://a/mcp", false),
            ("http://localhost/mcp", "https://localhost/mcp", false),
            ("https://a/mcp/../evil", "https://a/mcp", false),
            ("https://a/#x", "https://a/mcp", false),
        ];
        for (resource, server, want) in rows {
            assert_eq!(
                covers(&Url::parse(resource).unwrap(), &Url::parse(server).unwrap()),
                want,
                "{resource} {server}"
            );
        }
    }

    #[test]
    fn only_https_or_this_machine_may_be_asked() {
        let good = ["https://a/x", "http://localhost:1/x", "http://127.9.9.9/", "http://[::1]/", "http://a.localhost/"];
        let bad = [
            "http://a/x",
            "ftp://a",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://u:p@a/",
            "https://u@a/",
            "//a",
            "",
            "http://localhost.evil.example/",
            "http://127.0.0.1.evil.example/",
            "data:text/html,x",
        ];
        for address in good {
            parse("it", address).unwrap();
        }
        for address in bad {
            let error = parse("it", address).unwrap_err().to_string();
            assert!(!error.contains("u:p"), "{error}");
        }
    }

    #[test]
    fn how_far_requests_reach_follows_from_where_the_server_is() {
        let rows = [
            ("https://a.example/mcp", "https://b.example/", Reach::Public),
            ("https://a.example/mcp", "https://a.example/x", Reach::Any),
            ("http://localhost:3000/mcp", "http://localhost:4000/", Reach::PublicOrLoopback),
            ("http://[::ffff:127.0.0.1]/mcp", "https://b.example/", Reach::PublicOrLoopback),
            ("https://10.1.2.3/mcp", "https://10.1.2.4/", Reach::PublicOrPrivate),
            ("https://10.1.2.3/mcp", "https://10.1.2.3/x", Reach::Any),
            ("https://10.1.2.3/mcp", "https://10.1.2.3:444/x", Reach::PublicOrPrivate),
            ("https://192.168.1.1/mcp", "https://127.0.0.1/", Reach::PublicOrPrivate),
            ("https://100.64.0.1/mcp", "https://10.1.2.4/", Reach::PublicOrPrivate),
            ("https://[fd00::1]/mcp", "https://10.1.2.4/", Reach::PublicOrPrivate),
            ("https://[::ffff:10.0.0.1]/mcp", "https://10.1.2.4/", Reach::PublicOrPrivate),
            ("https://8.8.8.8/mcp", "https://10.1.2.4/", Reach::Public),
        ];
        for (server, target, want) in rows {
            assert_eq!(
                reach(None, &Url::parse(server).unwrap(), &Url::parse(target).unwrap()),
                want,
                "{server} {target}"
            );
        }
    }
}
