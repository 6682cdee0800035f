//! What a message may say: whom it notifies, and where it leads.

use linchpin::transport::web::HostRule;
use linchpin_kit::ToolError;

/// The message as it may be posted.
///
/// Without leave, mentions are shown and notify nobody: `<!channel>`, `<!here>`, `<!subteam^…>`, `<@U…>`. Where hosts are named, a
/// message that leads elsewhere is refused: an address can carry what a model was told to leak.
pub(crate) fn checked(text: &str, mentions: bool, hosts: &[HostRule]) -> Result<String, ToolError> {
    if !hosts.is_empty()
        && let Some(address) = addresses(text).into_iter().find(|one| !hosts.iter().any(|host| host.matches(one)))
    {
        let shown: String = address.chars().take(60).collect();
        let names: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        return Err(ToolError::denied(format!(
            "The message leads to a host that the operator does not allow: {shown}"
        ))
        .hint(format!("Allowed: {}. Leave other addresses out, also what only looks like one.", names.join(", "))));
    }
    Ok(match mentions {
        true => text.to_owned(),
        false => text.replace("<!", "&lt;!").replace("<@", "&lt;@"),
    })
}

/// All that Slack may make a link of, as URLs: those with a scheme, targets in angle brackets, and names of hosts that a path
/// or a query follows, or that begin with `www`, or have three parts.
fn addresses(text: &str) -> Vec<String> {
    // What is not seen does not end an address.
    let text = linchpin_kit::without_hidden(text).into_owned();
    let (mut found, mut urls) = (Vec::new(), Vec::new());
    for (at, _) in text.match_indices("://") {
        let scheme = text[..at].chars().rev().take_while(|c| c.is_ascii_alphanumeric() || "+.-".contains(*c)).count();
        let rest = &text[at + 3..];
        let end = rest.find(|c: char| c.is_whitespace() || "<>|\"".contains(c)).unwrap_or(rest.len());
        let url = &text[at - scheme..at + 3 + end];
        let is_web = ["http", "https"].iter().any(|web| text[at - scheme..at].eq_ignore_ascii_case(web));
        urls.push(span(&text, at - scheme, at + 3));
        // A rule is about the hosts of the web; anything else fits none.
        found.push(if is_web { trimmed(url).to_owned() } else { format!("{}:", &text[at - scheme..at]) });
    }
    for target in text.split('<').skip(1) {
        let target = &target[..target.find(['>', '|']).unwrap_or(target.len())];
        let scheme = target.split_once(':').map(|(scheme, _)| scheme.trim()).unwrap_or_default();
        let is_scheme = !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b));
        if is_scheme && !target.contains("://") {
            found.push(target.trim().to_owned());
        }
    }
    found.extend(bare(&text, &urls));
    found
}

/// A URL without the punctuation after it.
fn trimmed(url: &str) -> &str {
    url.trim_end_matches(is_punctuation)
}

fn is_punctuation(c: char) -> bool {
    ").,;:!?'*_~`]}".contains(c)
}

/// Bytes of an address: where it begins, the first character that may end it, and the one that does.
type Span = (usize, usize, usize);

/// The address that begins at the first of these bytes, and goes on at the second.
fn span(text: &str, begin: usize, rest: usize) -> Span {
    let rest_of = &text[rest..];
    let to = |ends: fn(char) -> bool| rest + rest_of.find(ends).unwrap_or(rest_of.len());
    (begin, to(may_end), to(ends))
}

fn ends(c: char) -> bool {
    c.is_whitespace() || "<>|\"".contains(c)
}

fn may_end(c: char) -> bool {
    ends(c) || "'()[]{},`*~".contains(c) || !c.is_ascii() && !c.is_alphanumeric()
}

/// Whether names of hosts are made of it. Some dots are not ASCII.
fn in_host(c: char) -> bool {
    c.is_alphanumeric() || "-_.".contains(c) || is_dot(c)
}

fn is_dot(c: char) -> bool {
    matches!(c, '\u{3002}' | '\u{ff0e}' | '\u{ff61}')
}

/// The URLs of what Slack may take for addresses, wherever they begin, outside these addresses.
fn bare(text: &str, urls: &[Span]) -> Vec<String> {
    let (mut found, mut last, mut at) = (Vec::new(), (0, 0, 0), 0);
    while let Some(begin) = text[at..].find(in_host).map(|n| at + n) {
        at = text[begin..].find(|c| !in_host(c)).map_or(text.len(), |n| begin + n);
        let before = &text[..begin];
        // Of a URL with a second one inside, both end at the same characters.
        let url = urls[..urls.partition_point(|(from, ..)| *from <= begin)].last();
        let goes_on = |(_, may_end_at, end): &Span| {
            begin < *may_end_at || begin < *end && !before.chars().next_back().is_some_and(may_end)
        };
        if goes_on(&last) || url.is_some_and(goes_on) {
            continue;
        }
        let run = text[begin..at].replace(is_dot, ".");
        let parts: Vec<&str> = run.split("..").collect();
        let count = parts.len();
        for (n, part) in parts.into_iter().enumerate() {
            let after = if n + 1 == count { &text[at..] } else { "" };
            let is_local = after.strip_prefix('@').is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
            let is_mail = before.strip_suffix('@').is_some_and(|local| local.ends_with(char::is_alphanumeric));
            let host = part.trim_matches(['.', '-', '_']);
            if !is_local && leads(host, after, n == 0 && is_mail) {
                found.push(format!("https://{host}/"));
                last = span(text, begin, at);
            }
        }
    }
    found
}

/// Whether Slack may make a link of this name, before this text.
fn leads(host: &str, after: &str, is_mail: bool) -> bool {
    let labels: Vec<&str> = host.split('.').collect();
    let is_label =
        |label: &&str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    let top = labels.last().copied().unwrap_or_default();
    let is_name = labels.len() >= 2 && labels.iter().all(is_label) && top.chars().count() >= 2;
    let is_number = labels.len() == 4 && labels.iter().all(|label| label.parse::<u8>().is_ok());
    let has_name = is_name && (top.chars().all(char::is_alphabetic) || top.starts_with("xn--"));
    if !(has_name || is_number) {
        return false;
    }
    let after = after.strip_prefix(':').map_or(after, |port| port.trim_start_matches(|c: char| c.is_ascii_digit()));
    let goes_on = |c: &char| !ends(*c) && (c.is_ascii() || c.is_alphanumeric());
    after.starts_with(['/', '#', '\\'])
        || after.starts_with('?') && after.chars().take_while(goes_on).any(|c| !is_punctuation(c))
        || !is_mail && (labels.len() >= 3 || labels[0].eq_ignore_ascii_case("www"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Vec<HostRule> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn mentions_notify_nobody_without_leave() {
        for (text, want) in [
            ("hi <!channel> and <!here>", "hi &lt;!channel> and &lt;!here>"),
            ("<@U123> <@W1|ann>", "&lt;@U123> &lt;@W1|ann>"),
            ("<!subteam^S1> <<!everyone>>", "&lt;!subteam^S1> <&lt;!everyone>>"),
            ("<https://a.example|a> a < b <#C1>", "<https://a.example|a> a < b <#C1>"),
        ] {
            assert_eq!(checked(text, false, &[]).unwrap(), want);
            assert_eq!(checked(text, true, &[]).unwrap(), text);
        }
    }

    #[test]
    fn where_hosts_are_named_messages_lead_nowhere_else() {
        let only = hosts(&["good.example", "*.docs.example"]);
        for text in [
            "plain words, 3.5 and e.g. and/or a<b>c main.rs README.md v1.2.3 12:30 a:b",
            "see https://good.example/x?q=1, and (http://good.example).",
            "<https://good.example/a|click>, <https://a.docs.example>",
            "good.example/path src/main.rs:12 ann@mail.example",
            "`https://good.example/` *https://good.example*",
            "<!here> <@U1> <#C1|general>",
            "good.example/a/index.html?x=1#top and https://good.example/~ann/index.html?x, (good.example/?u=a.b/c)",
            "did you read main.rs? “lib.rs”… ann.b.smith@mail.sub.example",
        ] {
            assert!(checked(text, false, &only).is_ok(), "{text}: {:?}", addresses(text));
        }
        for text in [
            "<https://evil.example/?q=secret|click>",
            "https://evil.example/?q=secret",
            "![x](https://evil.example/?q=secret)",
            "https://good.example@evil.example/",
            "https://good.example.evil.example/",
            "https://docs.example/",
            "https://good.example/)https://evil.example/",
            "HTTPS://EVIL.EXAMPLE/",
            "xhttps://good.example/",
            "ftp://good.example/",
            "<mailto:a@evil.example?body=secret|write>",
            "<slack://channel?id=C1>",
            "< mailto:a@evil.example>",
            "evil.example/?q=secret",
            "www.evil",
            "www.evil.example",
            "c2VjcmV0.evil.example",
            "good.example@evil.example/q",
            "evil.example:8080/q",
            "xn--e1afmkfd.example/q",
            "евил.example/q",
            "10.0.0.1",
            "https://go\u{200b}od.example.evil.example/",
            "https:\u{200b}//evil.example/",
            "<!date^1^{date}^https://evil.example/|x>",
            "evil.example/?q=secret&u=https://good.example/",
            "evil.example/https://good.example/",
            "“evil.example/?q=secret”",
            "see:evil.example/?q=secret",
            "=evil.example/q",
            "x&evil.example/q",
            "so—evil.example/q",
            "and..evil.example/q",
            "evil。example/q",
            "https://good.example/—evil.example/q",
            "https://good.example/,evil.example/q",
            "good.example/,evil.example/q",
            "see @www.evil.example",
        ] {
            let refused = checked(text, false, &only).unwrap_err();
            assert_eq!(refused.error_kind(), Some(linchpin_kit::ErrorKind::Denied), "{text}");
        }
        assert!(checked("https://evil.example/", false, &[]).is_ok());
    }
}
