//! robots.txt by RFC 9309: groups for product tokens, the longest matching rule decides, `Allow` wins a tie. Like other
//! crawlers it also accepts misspelled `Disallow`, and lines without a colon.
//!
//! Rejected: the existing crates, which are old and do not report the matching rule; and matching several tokens by two
//! passes.

/// A parsed robots.txt.
#[derive(Debug, Default)]
pub(crate) struct Robots {
    groups: Vec<Group>,
    whole: Option<String>,
}

#[derive(Debug, Default)]
struct Group {
    /// Product tokens in lower case; `*` matches all.
    agents: Vec<String>,
    rules: Vec<Rule>,
}

/// Why a URL is disallowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal<'a> {
    /// The file, for the published form.
    Whole(&'a str),
    /// The rule in this line, counted from 1.
    Line(usize),
    /// Too many rules to compare.
    TooMany,
}

#[derive(Debug)]
struct Rule {
    line: usize,
    allow: bool,
    pattern: String,
}

/// Maximum bytes of a file, as required by RFC 9309. The rest is ignored.
pub(crate) const BYTES_MAX: usize = 500 << 10;
const RULES_MAX: usize = 20_000;
const PATTERN_BYTES_MAX: usize = 2_048;
/// Maximum bytes compared for one URL: many rules with `*` and a long URL would take too long.
const COMPARED_BYTES_MAX: usize = 16 << 20;

impl Robots {
    /// Parses a file; with `whole` a refusal contains the whole file, as in the published server.
    pub(crate) fn parse(text: &str, whole: bool) -> Self {
        let mut robots = Self { whole: whole.then(|| text.to_owned()), groups: Vec::new() };
        let (mut rules, mut naming) = (0, false);
        let lines = text.trim_start_matches('\u{feff}').split('\n').enumerate();
        for (n, line) in lines.flat_map(|(n, line)| line.split('\r').map(move |line| (n + 1, line))) {
            let line = line.split('#').next().unwrap_or_default().trim();
            let Some((directive, value)) = split(line) else { continue };
            match directive {
                Directive::Agent => {
                    if !naming {
                        robots.groups.push(Group::default());
                    }
                    naming = true;
                    if let (Some(group), Some(token)) = (robots.groups.last_mut(), token(value)) {
                        group.agents.push(token);
                    }
                }
                Directive::Rule { allow } => {
                    naming = false;
                    // Rules before any group and empty rules are ignored.
                    let Some(group) = robots.groups.last_mut() else { continue };
                    rules += 1;
                    if !value.is_empty() && value.len() <= PATTERN_BYTES_MAX && rules <= RULES_MAX {
                        group.rules.push(Rule { line: n, allow, pattern: encoded(value, true) });
                    }
                }
                // Other records belong to no group and end none.
                Directive::Other => {}
            }
        }
        robots
    }

    /// Whether this path and query are disallowed for these product tokens (in lower case), and why.
    ///
    /// The rules of all tokens apply; those of `*` only if no group names one of them.
    pub(crate) fn refuses(&self, tokens: &[String], path: &str) -> Option<Refusal<'_>> {
        if path == "/robots.txt" {
            return None;
        }
        let path = encoded(path, false);
        let named: Vec<&str> =
            tokens.iter().map(String::as_str).filter(|token| self.groups.iter().any(|g| g.is_for(token))).collect();
        let bound_by = if named.is_empty() { vec!["*"] } else { named };
        bound_by.into_iter().find_map(|token| self.verdict(token, &path))
    }

    /// The disallowing rule, if the groups for this token disallow the path.
    fn verdict(&self, token: &str, path: &str) -> Option<Refusal<'_>> {
        let whole = |refusal| self.whole.as_deref().map_or(refusal, Refusal::Whole);
        let mut best: Option<(usize, bool, usize)> = None;
        let mut left = COMPARED_BYTES_MAX;
        for group in self.groups.iter().filter(|group| group.is_for(token)) {
            for rule in &group.rules {
                let Some(rest) = left.checked_sub(rule.cost(path)) else { return Some(whole(Refusal::TooMany)) };
                left = rest;
                if !rule.covers(path) {
                    continue;
                }
                let weight = (rule.pattern.len(), rule.allow);
                if best.is_none_or(|(length, allow, _)| weight > (length, allow)) {
                    best = Some((weight.0, weight.1, rule.line));
                }
            }
        }
        let (_, _, line) = best.filter(|(_, allow, _)| !allow)?;
        Some(whole(Refusal::Line(line)))
    }
}

impl Group {
    fn is_for(&self, token: &str) -> bool {
        self.agents.iter().any(|agent| agent == token)
    }
}

impl Rule {
    /// The approximate number of bytes compared to match a path.
    fn cost(&self, path: &str) -> usize {
        self.pattern.len() + if self.pattern.contains('*') { path.len() } else { 0 }
    }

    /// `*` is any run of characters, `$` at the end the end of the path.
    fn covers(&self, path: &str) -> bool {
        let (pattern, ends) = match self.pattern.strip_suffix('$') {
            Some(pattern) => (pattern, true),
            None => (self.pattern.as_str(), false),
        };
        let mut pieces = pattern.split('*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = path.strip_prefix(first) else { return false };
        let pieces: Vec<&str> = pieces.collect();
        let Some((last, middle)) = pieces.split_last() else { return !ends || rest.is_empty() };
        // The first match of a piece leaves the most room for the others.
        for piece in middle {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        if ends { rest.ends_with(last) } else { rest.contains(last) }
    }
}

enum Directive {
    Agent,
    Rule { allow: bool },
    Other,
}

fn split(line: &str) -> Option<(Directive, &str)> {
    let (key, value) = match line.split_once(':') {
        Some((key, value)) => (key.trim(), value.trim()),
        None => line.split_once(char::is_whitespace).map(|(key, value)| (key, value.trim()))?,
    };
    let directive = match key.to_ascii_lowercase().as_str() {
        "user-agent" | "useragent" | "user agent" => Directive::Agent,
        "allow" => Directive::Rule { allow: true },
        "disallow" | "dissallow" | "dissalow" | "disalow" | "diasllow" | "disallaw" => Directive::Rule { allow: false },
        _ => Directive::Other,
    };
    Some((directive, value))
}

/// The product token of a `User-agent` line: up to the first character that cannot be in one.
fn token(value: &str) -> Option<String> {
    if value.starts_with('*') {
        return Some("*".to_owned());
    }
    let end = value.find(|c: char| !is_token(c)).unwrap_or(value.len());
    (end > 0).then(|| value[..end].to_ascii_lowercase())
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// The product tokens of a `User-Agent` header, in lower case: its first word, and every word with a version.
pub(crate) fn tokens(user_agent: &str) -> Vec<String> {
    let words = user_agent.split(|c: char| !is_token(c) && c != '/' && c != '.');
    let mut tokens: Vec<String> = Vec::new();
    for (n, word) in words.filter(|word| !word.is_empty()).enumerate() {
        let name = word.split('/').next().unwrap_or_default();
        if (n == 0 || word.contains('/')) && !name.is_empty() {
            let name = name.to_ascii_lowercase();
            if !tokens.contains(&name) {
                tokens.push(name);
            }
        }
    }
    tokens
}

/// Normalizes paths and patterns: escapes of plain characters are decoded, all others upper-cased, non-ASCII characters
/// escaped. In a path `*` and `$` are plain characters; in a pattern they are special (`$` at its end).
fn encoded(text: &str, pattern: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let escaped = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        let escaped = escaped.filter(|two| byte == b'%' && two.bytes().all(|b| b.is_ascii_hexdigit()));
        let (byte, plain) = match escaped.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(value) => {
                at += 3;
                (value, value.is_ascii_alphanumeric() || b"-._~".contains(&value))
            }
            None => {
                let sign = b"*$".contains(&byte) && !(pattern && (byte == b'*' || at + 1 == bytes.len()));
                at += 1;
                (byte, byte.is_ascii_graphic() && !sign)
            }
        };
        if plain {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(file: &str, agent: &str, path: &str) -> bool {
        Robots::parse(file, false).refuses(&tokens(agent), path).is_none()
    }

    #[test]
    fn rules_decide_as_rfc_9309_says() {
        let star = |rules: &str| format!("User-agent: *\n{rules}");
        for (rules, path, want) in [
            ("Disallow: /", "/x", false),
            ("Disallow:", "/x", true),
            ("", "/x", true),
            ("Disallow: /private/", "/private/x", false),
            ("Disallow: /private/", "/private", true),
            ("Disallow: /p\nAllow: /p/open", "/p/open/x", true),
            ("Allow: /p\nDisallow: /p/closed", "/p/closed", false),
            ("Disallow: /p\nAllow: /p", "/p", true),
            ("Disallow: /*.gif$", "/a/b.gif", false),
            ("Disallow: /*.gif$", "/a/b.gif?x", true),
            ("Disallow: /*?q=", "/a?q=1", false),
            ("Disallow: /a*b*c", "/aXbXXc-and-more", false),
            ("Disallow: /a*b*c$", "/abcbc", false),
            ("Disallow: /a*b*c$", "/abcd", true),
            ("Disallow: *", "/x", false),
            ("Disallow: $", "/x", true),
            ("Disallow: /a%3cd", "/a%3Cd", false),
            ("Disallow: /%7Ejoe/", "/~joe/x", false),
            ("Disallow: /ü", "/%C3%BC", false),
            ("Disallow: /a$b", "/a$b", false),
            ("Disallow: /a*", "/a%2A", false),
            ("Disallow: /robots.txt", "/robots.txt", true),
            ("Disalow: /x", "/x", false),
            ("Disallow /x", "/x", false),
            ("Disallow: /x # Allow: /x", "/x", false),
            ("disallow:/x", "/x", false),
            ("Disallow: x", "/x", true),
        ] {
            assert_eq!(allowed(&star(rules), "Bot/1", path), want, "{rules} for {path}");
        }
    }

    #[test]
    fn groups_are_found_by_product_token() {
        let file = "Disallow: /nobody\n\nUser-agent: ModelContextProtocol/2.0\nUser-agent: other\nCrawl-delay: 3\nDisallow: /mcp\n\
            Sitemap: http://x/\n\nUser-agent: *\nDisallow: /all\n\nuser-agent: MODELCONTEXTPROTOCOL\nDisallow: /more\n";
        for (agent, path, want) in [
            ("ModelContextProtocol/1.0 (Autonomous; +x)", "/mcp", false),
            ("ModelContextProtocol/1.0 (Autonomous; +x)", "/more", false),
            ("ModelContextProtocol/1.0 (Autonomous; +x)", "/all", true),
            ("Other", "/mcp", false),
            ("Model/1.0", "/mcp", true),
            ("Model/1.0", "/all", false),
            ("Mine/1 (x; ModelContextProtocol/1.0)", "/mcp", false),
            ("Mine/1 (x; ModelContextProtocol)", "/mcp", true),
            ("", "/all", false),
            ("x", "/nobody", true),
        ] {
            assert_eq!(allowed(file, agent, path), want, "{agent} for {path}");
        }
        assert_eq!(tokens("Mine/1.2 (Autonomous; Foo-Bar/3; +http://x/)"), ["mine", "foo-bar"]);
    }

    #[test]
    fn one_who_has_two_names_is_bound_by_both() {
        let file = "User-agent: mine\nAllow: /\n\nUser-agent: modelcontextprotocol\nDisallow: /b\n";
        assert!(!allowed(file, "Mine/1 (ModelContextProtocol/1.0)", "/b"));
        assert!(allowed(file, "Mine/1 (ModelContextProtocol/1.0)", "/a"));
    }

    #[test]
    fn the_line_that_refuses_is_named() {
        let file = "User-agent: a\nDisallow: /x\n\nUser-agent: *\r\nDisallow: /x # why\nAllow: /x/y\n\nUser-agent: b\nDisallow: /";
        let refused = |whole, path| Robots::parse(file, whole).refuses(&tokens("me"), path).map(|r| format!("{r:?}"));
        assert_eq!(refused(false, "/x").as_deref(), Some("Line(5)"));
        assert_eq!(refused(false, "/x/y"), None);
        assert_eq!(refused(true, "/x"), Some(format!("{:?}", Refusal::Whole(file))));
    }

    #[test]
    fn hostile_files_cost_little() {
        let stars = format!("User-agent: *\nDisallow: /{}$\n", "*a".repeat(1_000));
        let path = format!("/{}b", "a".repeat(8_000));
        assert!(allowed(&stars.repeat(200), "x", &path));
        let many = "User-agent: *\nDisallow: /x\n".repeat(BYTES_MAX / 27);
        let robots = Robots::parse(&many, false);
        assert!(robots.groups.iter().map(|g| g.rules.len()).sum::<usize>() <= RULES_MAX);
        assert!(robots.refuses(&tokens("x"), "/x").is_some());
        // Twenty thousand rules for an address of 48 KiB are a gigabyte to compare: refused, and said so.
        let robots = Robots::parse(&format!("User-agent: *\n{}", "Disallow:*bc*d\n".repeat(20_000)), false);
        let long = format!("/{}", "b".repeat(48 << 10));
        assert_eq!(robots.refuses(&tokens("x"), &long), Some(Refusal::TooMany));
        assert_eq!(robots.refuses(&tokens("x"), &long[..100]), None);
    }
}
