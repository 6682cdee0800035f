//! Parts of a URL.

/// The scheme, host and port of a URL.
pub(super) fn origin(url: &str) -> &str {
    let end = url.find("://").map_or(0, |at| at + 3);
    url[end..].find('/').map_or(url, |at| &url[..end + at])
}

/// The host of a URL, without its port.
pub(super) fn host(url: &str) -> Option<&str> {
    let authority = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
    match authority.strip_prefix('[') {
        Some(v6) => authority.get(..v6.find(']')? + 2),
        None => authority.split(':').next().filter(|host| !host.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_public_url_is_accepted() {
        let rows = [
            ("https://mcp.example.com/mcp", Some("mcp.example.com")),
            ("https://mcp.example.com:8443/mcp", Some("mcp.example.com")),
            ("https://[2001:db8::1]:8443/mcp", Some("[2001:db8::1]")),
            ("mcp.example.com", None),
        ];
        for (url, expected) in rows {
            assert_eq!(host(url), expected, "{url}");
        }
    }
}
