//! Redirect URIs: which may be registered, and which of them a request names.

use url::{Host, Url};

/// Schemes of programs that users log in from and that have no dot, which RFC 8252 asks for.
const KNOWN_SCHEMES: [&str; 8] =
    ["cursor", "vscode", "vscode-insiders", "windsurf", "claude", "zed", "raycast", "kiro"];

/// Checks a redirect URI that a client wants to have. `web` is the `application_type` of RFC 7591's OpenID sibling: such
/// clients are on servers, so `http` and schemes of their own are not for them.
pub(crate) fn check(uri: &str, schemes: &[String], web: bool) -> Result<(), &'static str> {
    let url = Url::parse(uri).map_err(|_| "a redirect URI is not an absolute URL")?;
    if uri.contains('#') || url.fragment().is_some() {
        return Err("a redirect URI has a fragment");
    }
    if uri.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err("a redirect URI has characters that no URL has");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a redirect URI has user information");
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback(&url) && !web => Ok(()),
        "http" if web => Err("a redirect URI of a web client is not https"),
        "http" => Err("a redirect URI is http, but not on this computer"),
        _ if web => Err("a redirect URI of a web client is not https"),
        scheme if scheme.contains('.') || KNOWN_SCHEMES.contains(&scheme) || schemes.iter().any(|s| s == scheme) => {
            Ok(())
        }
        _ => Err("the scheme of a redirect URI is not known here; \
                  use https, a loopback address or a scheme like com.example.app"),
    }
}

/// Whether a request's redirect URI is a registered one: the same text, or the same but for the port on this computer
/// (RFC 8252, section 7.3).
pub(crate) fn is_same(registered: &str, asked: &str) -> bool {
    if registered == asked {
        return true;
    }
    let (Ok(one), Ok(other)) = (Url::parse(registered), Url::parse(asked)) else { return false };
    // What the parser had to correct is not taken: two parsers could read it in two ways.
    let exact = other.as_str() == asked || other.as_str().strip_suffix('/') == Some(asked);
    let loopback = |url: &Url| url.scheme() == "http" && is_loopback(url);
    exact
        && loopback(&one)
        && loopback(&other)
        && one.host() == other.host()
        && one.path() == other.path()
        && one.query() == other.query()
        && other.fragment().is_none()
        && other.username().is_empty()
        && other.password().is_none()
}

/// Where the answer goes, for a user.
pub(crate) fn place(uri: &str) -> String {
    match Url::parse(uri) {
        Ok(url) if url.scheme() == "http" && is_loopback(&url) => "a program on this computer".to_owned(),
        Ok(url) if url.scheme() == "https" => url.host_str().unwrap_or_default().to_owned(),
        Ok(url) => format!("the program on this computer that opens {}: links", url.scheme()),
        Err(_) => String::new(),
    }
}

/// Whether a URL is on this computer by its name or address.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.octets() == [127, 0, 0, 1],
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows 54 to 58 of the table of attacks.
    #[test]
    fn only_a_registered_redirect_uri_is_one() {
        let rows = [
            ("https://app.example/cb", "https://app.example/cb", true),
            ("https://app.example/cb", "https://app.example/cb/more", false),
            ("https://app.example/cb", "https://app.example/cb?x=1", false),
            ("https://app.example/cb", "https://app.example:8443/cb", false),
            ("https://app.example/cb", "https://app.example.evil/cb", false),
            ("http://127.0.0.1:3000/cb", "http://127.0.0.1:61234/cb", true),
            ("http://127.0.0.1/cb", "http://127.0.0.1:61234/cb", true),
            ("http://localhost:3000/cb", "http://localhost:1/cb", true),
            ("http://[::1]:3000/cb", "http://[::1]:1/cb", true),
            ("http://localhost/cb", "http://127.0.0.1/cb", false),
            ("http://127.0.0.1/cb", "https://127.0.0.1/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1.evil/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1@evil/cb", false),
            ("http://127.0.0.1/cb", "http://user@127.0.0.1/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1/cb#x", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1/x/../cb", false),
            ("http://127.0.0.1/cb", "http://127.1/cb", false),
            ("http://127.0.0.1/cb", "http:\\\\127.0.0.1/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1/other", false),
            ("http://127.0.0.1/cb", "javascript:alert(1)", false),
            ("com.example.app:/cb", "com.example.app:/cb", true),
            ("com.example.app:/cb", "com.example.app:/cb2", false),
        ];
        for (registered, asked, same) in rows {
            assert_eq!(is_same(registered, asked), same, "{registered} {asked}");
        }
    }

    #[test]
    fn redirect_uris_are_https_or_on_this_computer() {
        let rows = [
            ("https://app.example/cb", true, true),
            ("https://app.example/cb?x=1", true, true),
            ("http://127.0.0.1/cb", true, false),
            ("http://localhost:1/cb", true, false),
            ("cursor://anysphere.cursor-retrieval/oauth/cb", true, false),
            ("com.example.app:/cb", true, false),
            ("mine://cb", true, false),
            ("http://app.example/cb", false, false),
            ("http://127.0.0.1.evil/cb", false, false),
            ("http://0.0.0.0/cb", false, false),
            ("other://cb", false, false),
            ("javascript:alert(1)", false, false),
            ("data:text/html,x", false, false),
            ("file:///etc/passwd", false, false),
            ("https://user@app.example/", false, false),
            ("https://app.example/#x", false, false),
            ("https://app.example/#", false, false),
            ("https://app.example\\@evil/", false, false),
            (" https://app.example/", false, false),
            ("/cb", false, false),
        ];
        for (uri, native, web) in rows {
            let schemes = ["mine".to_owned()];
            assert_eq!(check(uri, &schemes, false).is_ok(), native, "{uri}");
            assert_eq!(check(uri, &schemes, true).is_ok(), web, "{uri} of a web client");
        }
    }
}
