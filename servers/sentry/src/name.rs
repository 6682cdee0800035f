//! What a text says about an issue: an id, a short id, or the URL of a page of Sentry.

use linchpin_kit::ToolError;
use url::{Host, Url};

/// An issue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) issue: Issue,
    /// The organization, if the text says it.
    pub(crate) org: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Issue {
    /// Digits.
    Id(String),
    /// Such as `PROJ-1A`.
    Short(String),
    /// The last part of a link that was shared.
    Shared(String),
}

/// Subdomains that are not organizations.
const REGIONS: [&str; 3] = ["us", "de", "www"];

/// Reads a text; URLs are of this host.
pub(crate) fn read(text: &str, host: &str) -> Result<Name, ToolError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ToolError::invalid("Missing issue_id_or_url argument"));
    }
    if text.contains("://") {
        return of_url(text, host);
    }
    let issue = of_id(text).ok_or_else(|| {
        ToolError::invalid("Invalid Sentry issue ID")
            .hint("Write digits, a short id such as PROJ-1A, or the URL of an issue.")
    })?;
    Ok(Name { issue, org: None })
}

fn of_id(text: &str) -> Option<Issue> {
    if is_number(text) {
        return Some(Issue::Id(text.to_owned()));
    }
    is_short(text).then(|| Issue::Short(text.to_ascii_uppercase()))
}

fn of_url(text: &str, host: &str) -> Result<Name, ToolError> {
    let foreign =
        || ToolError::invalid("Invalid Sentry URL").hint(format!("Its host must be {host} or a subdomain of it."));
    let url = Url::parse(text).map_err(|_| foreign())?;
    let plain = matches!(url.scheme(), "https" | "http") && url.username().is_empty() && url.password().is_none();
    if !plain {
        return Err(foreign());
    }
    let found = match url.host() {
        Some(Host::Domain(found)) => found.trim_end_matches('.').to_owned(),
        Some(ip) => ip.to_string(),
        None => return Err(foreign()),
    };
    let sub = match found.strip_suffix(host) {
        Some("") => None,
        Some(sub) => Some(sub.strip_suffix('.').filter(|sub| is_slug(sub)).ok_or_else(foreign)?.to_owned()),
        None => return Err(foreign()),
    };
    let mut org = sub.filter(|sub| !REGIONS.contains(&sub.as_str()));
    let mut parts = url.path_segments().into_iter().flatten().filter(|part| !part.is_empty());
    let bad = || ToolError::invalid("Invalid Sentry issue URL. Path must contain '/issues/{issue_id}'");
    let mut part = parts.next();
    if part == Some("organizations") {
        let slug = parts.next().filter(|slug| is_slug(slug)).ok_or_else(bad)?;
        org = Some(slug.to_owned());
        part = parts.next();
    }
    let issue = match (part, parts.next(), parts.next()) {
        (Some("share"), Some("issue"), Some(id)) if id.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            Issue::Shared(id.to_owned())
        }
        (Some("issues"), Some(id), _) => of_id(id).ok_or_else(bad)?,
        // As addresses of old installations: /ORG/PROJECT/issues/1/.
        (Some(slug), Some(_), Some("issues")) if org.is_none() && is_slug(slug) => {
            org = Some(slug.to_owned());
            parts.next().and_then(of_id).ok_or_else(bad)?
        }
        _ => return Err(bad()),
    };
    Ok(Name { issue, org })
}

fn is_number(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// Letters, digits and hyphens: the name of a project, a hyphen, a number in base 32.
fn is_short(text: &str) -> bool {
    let good =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    text.len() <= 100
        && text.rsplit_once('-').is_some_and(|(project, number)| {
            good(project) && !number.is_empty() && number.bytes().all(|b| b.is_ascii_alphanumeric())
        })
}

pub(crate) fn is_slug(text: &str) -> bool {
    (1..=63).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// Digits, or `-1` for all.
pub(crate) fn is_project_id(text: &str) -> bool {
    is_number(text) || text == "-1"
}

pub(crate) fn is_project(text: &str) -> bool {
    is_project_id(text) || is_slug(text)
}

/// Such as `24h`.
pub(crate) fn is_period(text: &str) -> bool {
    let digits = text.strip_suffix(['m', 'h', 'd', 'w']).unwrap_or_default();
    (1..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_an_issue_are_read() {
        let id = |id: &str| Issue::Id(id.into());
        for (text, issue, org) in [
            ("123", id("123"), None),
            (" 123 ", id("123"), None),
            ("https://acme.sentry.io/issues/123/", id("123"), Some("acme")),
            ("https://acme.sentry.io/issues/123", id("123"), Some("acme")),
            ("https://acme.sentry.io/issues/123/?project=1#x", id("123"), Some("acme")),
            ("https://acme.sentry.io/issues/123/events/abc/", id("123"), Some("acme")),
            ("https://sentry.io/organizations/acme/issues/123/", id("123"), Some("acme")),
            ("https://us.sentry.io/organizations/acme/issues/123/", id("123"), Some("acme")),
            ("https://us.sentry.io/issues/123/", id("123"), None),
            ("https://sentry.io/acme/web/issues/123/", id("123"), Some("acme")),
            ("https://acme.sentry.io/issues/WEB-1A", Issue::Short("WEB-1A".into()), Some("acme")),
            ("proj-x-1a", Issue::Short("PROJ-X-1A".into()), None),
            ("https://acme.sentry.io/share/issue/0f00/", Issue::Shared("0f00".into()), Some("acme")),
            ("https://sentry.io/share/issue/0f00/", Issue::Shared("0f00".into()), None),
        ] {
            assert_eq!(read(text, "sentry.io").unwrap(), Name { issue, org: org.map(Into::into) }, "{text}");
        }
        let own = read("https://errors.example:8443/organizations/a/issues/1/", "errors.example").unwrap();
        assert_eq!((own.issue, own.org.as_deref()), (id("1"), Some("a")));
    }

    #[test]
    fn hosts_that_only_look_like_sentry_and_paths_that_lead_elsewhere_are_refused() {
        for text in [
            "https://evil.com/issues/1",
            "https://x.sentry.io.evil.com/issues/1",
            "https://sentry.io@evil.com/issues/1",
            "https://evil.com@sentry.io/issues/1",
            "https://evilsentry.io/issues/1",
            "https://a.b.sentry.io/issues/1",
            "https://evil.com/https://acme.sentry.io/issues/1",
            "https://evil.com\\@sentry.io/issues/1",
            "https://127.0.0.1/issues/1",
            "file://sentry.io/issues/1",
            "https://acme.sentry.io/",
            "https://acme.sentry.io/projects/1/",
            "https://acme.sentry.io/issues/",
            "https://acme.sentry.io/issues/../../users/me",
            "https://acme.sentry.io/issues/1%2f..%2fx",
            "https://sentry.io/organizations/a%2fb/issues/1",
            "1/../../users/me",
            "..",
            "1a",
            "PROJ-",
            "-1",
            "a b-1",
            "",
            " ",
            "://",
        ] {
            assert!(read(text, "sentry.io").is_err(), "{text}: {:?}", read(text, "sentry.io"));
        }
    }
}
