//! URI templates (RFC 6570) of resources, in both directions: a URI back to its values, and values to a URI.
//!
//! Every operator of the RFC is known: `{x}`, `{+x}`, `{#x}`, `{.x}`, `{/x}`, `{;x}`, `{?x}`, `{&x}`, and lists such as
//! `{x,y}`. Values are strings. Refused are the modifiers `*` and `:3`: what they do to a string cannot be undone.
//!
//! Matching is more tolerant than expanding, because people write URIs by hand: a value may hold any character that does
//! not end it. It takes time in proportion to the length of the URI times that of the template, whatever they hold: one
//! pass from the end finds out from where the rest can match, one pass from the start takes the longest values.

#![cfg_attr(not(fuzzing), allow(unreachable_pub, reason = "the fuzz targets use these items"))]

use std::fmt;
use std::ops::Range;

/// A template, parsed and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriTemplate {
    text: Box<str>,
    variables: Vec<Box<str>>,
    steps: Vec<Step>,
}

/// Why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// A sentence for the author of the template.
    pub message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TemplateError {}

/// What must follow next in a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// This text.
    Literal(Box<str>),
    /// The operator's mark and a value of at least one character, as long as possible.
    Value { variable: usize, operator: Operator, first: bool, ends: Ends },
    /// Any of these variables as `name=value`, each at most once, in any order.
    Pairs { variables: Range<usize>, operator: Operator },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Parameter,
    Query,
    Continuation,
}

impl Operator {
    fn parse(expression: &str) -> Option<Operator> {
        Some(match expression.as_bytes().first()? {
            b'+' => Operator::Reserved,
            b'#' => Operator::Fragment,
            b'.' => Operator::Label,
            b'/' => Operator::Path,
            b';' => Operator::Parameter,
            b'?' => Operator::Query,
            b'&' => Operator::Continuation,
            _ => return None,
        })
    }

    /// What stands before the first value, and between values.
    fn marks(self) -> (&'static str, &'static str) {
        match self {
            Operator::Simple | Operator::Reserved => ("", ","),
            Operator::Fragment => ("#", ","),
            Operator::Label => (".", "."),
            Operator::Path => ("/", "/"),
            Operator::Parameter => (";", ";"),
            Operator::Query => ("?", "&"),
            Operator::Continuation => ("&", "&"),
        }
    }

    fn named(self) -> bool {
        matches!(self, Operator::Parameter | Operator::Query | Operator::Continuation)
    }

    /// Whether values keep the characters that have a meaning in URIs.
    fn keeps_reserved(self) -> bool {
        matches!(self, Operator::Reserved | Operator::Fragment)
    }
}

/// Which characters end a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Ends {
    slash: bool,
    question: bool,
    hash: bool,
    ampersand: bool,
    semicolon: bool,
    comma: bool,
}

impl Ends {
    fn at(self, byte: u8) -> bool {
        match byte {
            b'/' => self.slash,
            b'?' => self.question,
            b'#' => self.hash,
            b'&' => self.ampersand,
            b';' => self.semicolon,
            b',' => self.comma,
            _ => false,
        }
    }
}

impl UriTemplate {
    /// Parses a template of at most [`TEMPLATE_BYTES_MAX`] bytes and [`VARIABLES_MAX`] variables.
    ///
    /// # Errors
    /// A sentence saying what is wrong and, where it helps, what to write instead.
    pub fn parse(template: &str) -> Result<UriTemplate, TemplateError> {
        if template.len() > TEMPLATE_BYTES_MAX {
            return fail(format!("the template has {} bytes; the limit is {TEMPLATE_BYTES_MAX}", template.len()));
        }
        let mut parsed = UriTemplate { text: template.into(), variables: Vec::new(), steps: Vec::new() };
        let mut rest = template;
        while !rest.is_empty() {
            let (literal, after) = rest.split_at(rest.find(['{', '}']).unwrap_or(rest.len()));
            parsed.literal(literal)?;
            rest = match after.strip_prefix('{').map(|inner| (inner, inner.find(['{', '}']))) {
                None if after.is_empty() => after,
                None => return fail("unmatched `}`"),
                Some((inner, Some(end))) if inner.as_bytes()[end] == b'}' => {
                    parsed.expression(&inner[..end])?;
                    &inner[end + 1..]
                }
                Some(_) => return fail("there is a `{` without its `}`"),
            };
        }
        parsed.check_neighbours()?;
        parsed.settle_ends();
        Ok(parsed)
    }

    /// The names of the variables, in order of appearance.
    pub fn variables(&self) -> impl ExactSizeIterator<Item = &str> {
        self.variables.iter().map(|name| &**name)
    }

    /// The values that make this template into `uri`, in order of the template. `None` when nothing does, or when the
    /// URI is longer than [`URI_BYTES_MAX`].
    ///
    /// Variables in `{?…}`, `{&…}` and `{;…}` may be absent from the URI, and then are absent from the result; all
    /// others must have at least one character. Values are percent-decoded: **they may hold any character**, `/` and
    /// `..` included, whatever operator they stand under.
    pub fn matches(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        if uri.len() > URI_BYTES_MAX {
            return None;
        }
        if let (Some(Step::Literal(first)), true) = (self.steps.first(), self.steps.len() > 1) {
            // Most URIs belong to another template and are done here.
            if !uri.starts_with(&**first) {
                return None;
            }
        }
        let ends = self.ends(uri);
        let mut values: Vec<Option<String>> = vec![None; self.variables.len()];
        let mut at = 0;
        for (step, ends) in self.steps.iter().zip(&ends) {
            // A step that cannot succeed here has no end.
            let end = ends[at] as usize;
            let part = uri.get(at..end)?;
            match step {
                Step::Literal(_) => {}
                Step::Value { variable, .. } => values[*variable] = Some(percent_decode(&part[step.mark().len()..])?),
                Step::Pairs { variables, operator } => self.read_pairs(part, variables, *operator, &mut values)?,
            }
            at = end;
        }
        (at == uri.len())
            .then(|| self.variables().zip(values).filter_map(|(name, value)| Some((name, value?))).collect())
    }

    /// The URI that these values make of the template. Variables without a value are left out together with what belongs
    /// to them, as the RFC says; values whose name the template does not have are ignored.
    #[cfg(any(test, fuzzing))]
    pub fn expand(&self, values: &[(&str, &str)]) -> String {
        let value = |variable: usize| {
            values.iter().find(|(name, _)| *name == &*self.variables[variable]).map(|(_, value)| *value)
        };
        let mut out = String::with_capacity(self.text.len() + 32);
        // Whether the expression at hand has written a value, which changes the mark before the next.
        let mut begun = false;
        for step in &self.steps {
            match step {
                Step::Literal(text) => out.push_str(text),
                Step::Value { variable, operator, first, .. } => {
                    begun &= !first;
                    if let Some(text) = value(*variable) {
                        let (opening, between) = operator.marks();
                        out.push_str(if begun { between } else { opening });
                        percent_encode(&mut out, text, operator.keeps_reserved());
                        begun = true;
                    }
                }
                Step::Pairs { variables, operator } => {
                    let (mut mark, between) = operator.marks();
                    for (variable, text) in variables.clone().filter_map(|v| Some((v, value(v)?))) {
                        out.push_str(mark);
                        mark = between;
                        out.push_str(&self.variables[variable]);
                        // `{;x}` writes an empty value without the sign, `{?x}` with it.
                        if !(text.is_empty() && *operator == Operator::Parameter) {
                            out.push('=');
                            percent_encode(&mut out, text, false);
                        }
                    }
                }
            }
        }
        out
    }

    fn literal(&mut self, text: &str) -> Result<(), TemplateError> {
        if let Some(c) = text.chars().find(|c| c.is_control() || " \"<>\\^`|".contains(*c)) {
            return fail(format!("the character {c:?} must be percent-encoded in a URI template"));
        }
        if percent_decode(text).is_none() {
            return fail("a `%` must be followed by two hexadecimal digits, and what it encodes must be UTF-8");
        }
        if !text.is_empty() {
            self.steps.push(Step::Literal(text.into()));
        }
        Ok(())
    }

    fn expression(&mut self, text: &str) -> Result<(), TemplateError> {
        let operator = Operator::parse(text);
        let names = if operator.is_some() { &text[1..] } else { text };
        let operator = operator.unwrap_or(Operator::Simple);
        let from = self.variables.len();
        for name in names.split(',') {
            self.variable(name, text)?;
        }
        let variables = from..self.variables.len();
        if operator.named() {
            self.steps.push(Step::Pairs { variables, operator });
            return Ok(());
        }
        let ends = Ends { comma: operator == Operator::Simple && variables.len() > 1, ..Ends::default() };
        self.steps.extend(variables.map(|variable| Step::Value { variable, operator, first: variable == from, ends }));
        Ok(())
    }

    fn variable(&mut self, name: &str, expression: &str) -> Result<(), TemplateError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        let plain = name.trim_end_matches('*');
        if plain.len() < name.len() {
            return fail(format!(
                "`{{{expression}}}`: the modifier `*` is not supported; for a value that contains slashes write `{{+{plain}}}`"
            ));
        }
        if let Some((plain, _)) = name.split_once(':') {
            return fail(format!(
                "`{{{expression}}}`: a prefix of a value cannot be turned back into the value; write `{plain}` without a length"
            ));
        }
        if name.is_empty() {
            return fail(format!("`{{{expression}}}` lacks the name of a variable"));
        }
        if !name.chars().all(allowed) || name.starts_with('.') || name.ends_with('.') {
            return fail(format!(
                "`{{{expression}}}`: the name of a variable consists of letters, digits, `_` and inner `.`"
            ));
        }
        if self.variables().any(|other| other == name) {
            return fail(format!("duplicate variable `{name}`"));
        }
        if self.variables.len() == VARIABLES_MAX {
            return fail(format!("more than {VARIABLES_MAX} variables in one template"));
        }
        self.variables.push(name.into());
        Ok(())
    }

    /// Refuses templates whose parts could not be told apart in a URI.
    fn check_neighbours(&self) -> Result<(), TemplateError> {
        for pair in self.steps.windows(2) {
            let next = pair[1].mark().bytes().next();
            match &pair[0] {
                Step::Value { variable, .. } if next.is_none() => {
                    return fail(format!(
                        "the end of the value of `{}` is ambiguous; add a literal character after it",
                        self.variables[*variable]
                    ));
                }
                Step::Pairs { variables, operator } if !next.is_some_and(|b| operator.ends_pair(b)) => {
                    let name = &self.variables[variables.end - 1];
                    return fail(format!(
                        "the text after `{name}` is ambiguous; start it with one of {}",
                        operator.pair_ends()
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Fills in what ends each value: the delimiters of URIs, and whatever begins a named expression further right.
    fn settle_ends(&mut self) {
        let mut later = Ends::default();
        for step in self.steps.iter_mut().rev() {
            match step {
                Step::Pairs { operator: Operator::Query, .. } => later.question = true,
                Step::Pairs { operator: Operator::Continuation, .. } => later.ampersand = true,
                Step::Pairs { .. } => later.semicolon = true,
                Step::Value { operator, ends, .. } => {
                    let strict = !operator.keeps_reserved();
                    *ends = Ends {
                        slash: strict,
                        question: strict || later.question,
                        hash: strict || later.hash,
                        ampersand: strict || later.ampersand,
                        semicolon: later.semicolon,
                        comma: ends.comma,
                    };
                    later.hash |= *operator == Operator::Fragment;
                }
                Step::Literal(_) => {}
            }
        }
    }

    /// For each step and each place in the URI, where the step ends that leaves the most to it and still lets the rest
    /// match; [`NOWHERE`] when there is no such end.
    fn ends(&self, uri: &str) -> Vec<Vec<u32>> {
        let mut tables = Vec::with_capacity(self.steps.len());
        // Whether the steps behind the one at hand match from here to the end.
        let mut fits = vec![false; uri.len() + 1];
        fits[uri.len()] = true;
        for step in self.steps.iter().rev() {
            let table = match step {
                Step::Literal(_) => literal_ends(step.mark(), uri, &fits),
                Step::Value { ends, .. } => value_ends(*ends, step.mark(), uri, &fits),
                Step::Pairs { variables, operator } => self.pairs_ends(variables, *operator, uri, &fits),
            };
            fits = table.iter().map(|end| *end != NOWHERE).collect();
            tables.push(table);
        }
        tables.reverse();
        tables
    }

    fn pairs_ends(&self, variables: &Range<usize>, operator: Operator, uri: &str, fits: &[bool]) -> Vec<u32> {
        let bytes = uri.as_bytes();
        let (opening, between) = operator.marks();
        let mut table: Vec<u32> =
            fits.iter().enumerate().map(|(at, fits)| if *fits { at as u32 } else { NOWHERE }).collect();
        // Where the run of pairs ends that goes on at a place with the mark `between`; 0 where none does.
        let mut runs = vec![0_u32; bytes.len() + 1];
        let mut stop = bytes.len();
        for at in (0..bytes.len()).rev() {
            let end = stop;
            if operator.ends_pair(bytes[at]) {
                stop = at;
            }
            let (opens, goes_on) = (bytes[at] == opening.as_bytes()[0], bytes[at] == between.as_bytes()[0]);
            if !(opens || goes_on)
                || !self.variables[variables.clone()].iter().any(|name| is_pair_of(name, &bytes[at + 1..end]))
            {
                continue;
            }
            let run = runs[end].max(end as u32);
            if goes_on {
                runs[at] = run;
            }
            if opens {
                table[at] = if fits[run as usize] { run } else { NOWHERE };
            }
        }
        table
    }

    fn read_pairs(
        &self,
        part: &str,
        variables: &Range<usize>,
        operator: Operator,
        values: &mut [Option<String>],
    ) -> Option<()> {
        let pairs = part.get(1..).unwrap_or_default();
        for pair in pairs.split(operator.marks().1).filter(|_| !part.is_empty()) {
            let variable = variables.clone().find(|v| is_pair_of(&self.variables[*v], pair.as_bytes()))?;
            let text = &pair[self.variables[variable].len()..];
            let value = percent_decode(text.strip_prefix('=').unwrap_or(text))?;
            if values[variable].replace(value).is_some() {
                return None;
            }
        }
        Some(())
    }
}

impl Step {
    /// What the step begins with; empty when it begins with a value.
    fn mark(&self) -> &str {
        match self {
            Step::Literal(text) => text,
            Step::Value { operator, first: true, .. } | Step::Pairs { operator, .. } => operator.marks().0,
            Step::Value { operator, .. } => operator.marks().1,
        }
    }
}

fn literal_ends(text: &str, uri: &str, fits: &[bool]) -> Vec<u32> {
    let end = |at: usize| {
        // What is cheap and mostly false is asked first.
        let fits = fits.get(at + text.len()) == Some(&true) && uri.as_bytes()[at..].starts_with(text.as_bytes());
        if fits { (at + text.len()) as u32 } else { NOWHERE }
    };
    (0..=uri.len()).map(end).collect()
}

fn value_ends(ends: Ends, mark: &str, uri: &str, fits: &[bool]) -> Vec<u32> {
    let bytes = uri.as_bytes();
    // The longest value that begins here, mark not included.
    let mut longest = vec![NOWHERE; bytes.len() + 1];
    for at in (0..bytes.len()).rev().filter(|at| uri.is_char_boundary(*at) && !ends.at(bytes[*at])) {
        let next = match bytes[at] {
            b'%' if bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) => at + 3,
            b'%' => continue,
            _ => (at + 1..).find(|next| uri.is_char_boundary(*next)).unwrap_or(bytes.len()),
        };
        longest[at] = match longest[next] {
            NOWHERE if fits[next] => next as u32,
            longest => longest,
        };
    }
    // A mark is one byte or none.
    let end = |at: usize| match mark.bytes().next() {
        None => longest[at],
        Some(mark) if bytes.get(at) == Some(&mark) => longest[at + 1],
        Some(_) => NOWHERE,
    };
    (0..=bytes.len()).map(end).collect()
}

impl Operator {
    /// Whether a byte ends the value of a `name=value` pair.
    fn ends_pair(self, byte: u8) -> bool {
        let ends: &[u8] = if self == Operator::Parameter { b";/?#&," } else { b"&#" };
        ends.contains(&byte)
    }

    fn pair_ends(self) -> &'static str {
        if self == Operator::Parameter { "`;`, `/`, `?`, `#`, `&`, `,`" } else { "`&`, `#`" }
    }
}

/// Whether a part of a URI is `name` or `name=…`.
fn is_pair_of(name: &str, pair: &[u8]) -> bool {
    pair.strip_prefix(name.as_bytes()).is_some_and(|rest| matches!(rest.first(), None | Some(b'=')))
}

/// Whether a text is a template: URIs contain no braces.
pub(crate) fn is_template(text: &str) -> bool {
    text.contains(['{', '}'])
}

/// Appends a text, percent-encoded. With `keep`, characters that have a meaning in URIs and what is already encoded
/// stay.
#[cfg(any(test, fuzzing))]
fn percent_encode(out: &mut String, text: &str, keep: bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let bytes = text.as_bytes();
    for (at, &b) in bytes.iter().enumerate() {
        let reserved = keep && b":/?#[]@!$&'()*+,;=".contains(&b);
        let encoded =
            keep && b == b'%' && bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) || reserved || encoded {
            out.push(char::from(b));
        } else {
            out.extend(['%', char::from(HEX[usize::from(b >> 4)]), char::from(HEX[usize::from(b & 15)])]);
        }
    }
}

/// Percent-decodes a text; `None` if the encoding is malformed or the result is not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut out = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let hex = part.get(..2).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))?;
        out.push(u8::from_str_radix(hex, 16).ok()?);
        out.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(out).ok()
}

fn fail<T>(message: impl Into<String>) -> Result<T, TemplateError> {
    Err(TemplateError { message: message.into() })
}

/// Longest template, in bytes.
pub(crate) const TEMPLATE_BYTES_MAX: usize = 2048;
/// Most variables in one template.
pub(crate) const VARIABLES_MAX: usize = 32;
/// Maximum length of a URI to match, in bytes.
pub(crate) const URI_BYTES_MAX: usize = 8192;

const NOWHERE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn template(text: &str) -> UriTemplate {
        UriTemplate::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// `a=1 b=2`, or `-` when nothing matches.
    fn matched(text: &str, uri: &str) -> String {
        match template(text).matches(uri) {
            None => "-".into(),
            Some(values) => values.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" "),
        }
    }

    #[test]
    fn uris_are_taken_apart() {
        let cases = [
            ("test://static", "test://static", ""),
            ("test://static", "test://static2", "-"),
            ("", "", ""),
            ("test://template/{id}/data", "test://template/123/data", "id=123"),
            ("test://template/{id}/data", "test://template//data", "-"),
            ("test://template/{id}/data", "test://template/1/2/data", "-"),
            ("test://template/{id}/data", "test://template/1/data/", "-"),
            ("weather://{city}/{day}", "weather://S%C3%A3o%20Paulo/today", "city=São Paulo day=today"),
            ("weather://{city}/{day}", "weather://São Paulo/today", "city=São Paulo day=today"),
            ("x:{a}", "x:%2F%2e%2e", "a=/.."),
            ("x:{a}", "x:%zz", "-"),
            ("x:{a}", "x:%ff", "-"),
            ("x:{a}", "x:1%", "-"),
            ("x:{a}-{b}", "x:1-2-3", "a=1-2 b=3"),
            ("x:{a}.json", "x:a.json.json", "a=a.json"),
            ("x:?a={a}", "x:?a=1&b=2", "-"),
            ("x:{a,b}", "x:1,2", "a=1 b=2"),
            ("x:{a,b}", "x:1", "-"),
            ("x:{a}", "x:1,2", "a=1,2"),
            ("file:///{+path}", "file:///a/b%20c/d.txt", "path=a/b c/d.txt"),
            ("file:///{+path}", "file:///", "-"),
            ("file:///{+path}{?rev}", "file:///a/b?rev=2", "path=a/b rev=2"),
            ("file:///{+path}{#line}", "file:///a/b?c#7", "path=a/b?c line=7"),
            ("{+all}", "http://h/p?q#f", "all=http://h/p?q#f"),
            ("x:{a}{/b,c}", "x:1/2/3", "a=1 b=2 c=3"),
            ("x:{a}{/b,c}", "x:1/2", "-"),
            ("x:{a}{.ext}", "x:tar.gz.sig", "a=tar.gz ext=sig"),
            ("x:y{#a}", "x:y#1/2?3", "a=1/2?3"),
            ("x:y{#a}", "x:y", "-"),
            ("x:y{;a,b}", "x:y;b=2;a", "a= b=2"),
            ("x:y{;a,b}", "x:y", ""),
            ("x:y{;a}/z", "x:y;a=1/z", "a=1"),
            ("x:y{?a,b}", "x:y", ""),
            ("x:y{?a,b}", "x:y?b=2&a=%26", "a=& b=2"),
            ("x:y{?a,b}", "x:y?b", "b="),
            ("x:y{?a,b}", "x:y?a=1&a=2", "-"),
            ("x:y{?a,b}", "x:y?c=1", "-"),
            ("x:y{?a,b}", "x:y?a=1&c=1", "-"),
            ("x:y{?a,b}", "x:y?", "-"),
            ("x:y{?a,ab}", "x:y?ab=1", "ab=1"),
            ("x:y{?a}{#f}", "x:y?a=1#2", "a=1 f=2"),
            ("x:y{?a}{&b}", "x:y?a=1&b=2", "a=1 b=2"),
            ("x:y?fixed=1{&b}", "x:y?fixed=1&b=2", "b=2"),
            ("x:y?id={id}{&b}", "x:y?id=7&b=2", "id=7 b=2"),
            ("x:{v.w_1}", "x:1", "v.w_1=1"),
        ];
        for (text, uri, want) in cases {
            assert_eq!(matched(text, uri), want, "{text} against {uri}");
        }
    }

    #[test]
    fn values_are_put_together_as_the_rfc_says() {
        let values = [
            ("var", "value"),
            ("hello", "Hello World!"),
            ("path", "/foo/bar"),
            ("x", "1024"),
            ("y", "768"),
            ("empty", ""),
            ("half", "50%"),
            ("enc", "a%20b"),
        ];
        let cases = [
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{half}", "50%25"),
            ("O{empty}X", "OX"),
            ("O{undef}X", "OX"),
            ("{x,y}", "1024,768"),
            ("{x,hello,y}", "1024,Hello%20World%21,768"),
            ("{undef,y}", "768"),
            ("{+hello}", "Hello%20World!"),
            ("{+half}", "50%25"),
            ("{+enc}", "a%20b"),
            ("{+path}/here", "/foo/bar/here"),
            ("{+x,hello,y}", "1024,Hello%20World!,768"),
            ("{+path,x}/here", "/foo/bar,1024/here"),
            ("X{#var}", "X#value"),
            ("X{#hello}", "X#Hello%20World!"),
            ("{#undef,x,path}", "#1024,/foo/bar"),
            ("X{.var}", "X.value"),
            ("X{.x,y}", "X.1024.768"),
            ("{/var}", "/value"),
            ("{/var,x}/here", "/value/1024/here"),
            ("{/undef,path}", "/%2Ffoo%2Fbar"),
            ("{;x,y}", ";x=1024;y=768"),
            ("{;x,y,empty}", ";x=1024;y=768;empty"),
            ("{;undef}", ""),
            ("{?x,y}", "?x=1024&y=768"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("{?undef,y}", "?y=768"),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
            ("{&x,y,empty}", "&x=1024&y=768&empty="),
        ];
        for (text, want) in cases {
            assert_eq!(template(text).expand(&values), want, "{text}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused_with_the_reason() {
        let many: String = (0..33).map(|n| format!("{{v{n}}}/")).collect();
        let long = "x".repeat(2049);
        let cases = [
            ("x:{", "without its `}`"),
            ("x:}", "unmatched `}`"),
            ("x:{a{b}}", "without its `}`"),
            ("x:{}", "lacks the name"),
            ("x:{a,}", "lacks the name"),
            ("x:{?}", "lacks the name"),
            ("x:{a*}", "write `{+a}`"),
            ("x:{/a*}", "write `{+a}`"),
            ("x:{a:3}", "write `a` without a length"),
            ("x:{a-b}", "consists of letters"),
            ("x:{a b}", "consists of letters"),
            ("x:{=a}", "consists of letters"),
            ("x:{é}", "consists of letters"),
            ("x:{.a.}", "consists of letters"),
            ("x:{a}/{a}", "duplicate variable"),
            ("x:{a}{b}", "the end of the value of `a`"),
            ("x:{+a}{b}", "the end of the value of `a`"),
            ("x:{?a}b", "start it with one of `&`, `#`"),
            ("x:{?a}{.b}", "start it with one of `&`, `#`"),
            ("x:{;a}b", "start it with one of `;`"),
            ("x y", "percent-encoded"),
            ("x:%4", "two hexadecimal digits"),
            (&many, "more than 32 variables"),
            (&long, "2049 bytes"),
        ];
        for (text, want) in cases {
            let message = UriTemplate::parse(text).unwrap_err().message;
            assert!(message.contains(want), "{text}: {message}");
        }
    }

    #[test]
    fn hostile_uris_take_no_more_than_time_in_proportion() {
        let patterns = [
            "{+a}/{+b}/{+c}/{+d}/{+e}/{+f}/{+g}/{+h}/x",
            "{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}-x",
            "{?a,b,c}#x",
            "x{;a,b}/{+c};a=/{+d}/x",
        ];
        let uris = [
            "/".repeat(8192),
            "-".repeat(8192),
            "?a=".repeat(2730),
            ";a=/".repeat(2048),
            "%25".repeat(2730),
            "é".repeat(4096),
        ];
        let start = std::time::Instant::now();
        for pattern in patterns {
            for uri in &uris {
                assert_eq!(template(pattern).matches(uri), None, "{pattern}");
            }
        }
        // Backtracking would need ages; even an unoptimised build needs well under a second.
        assert!(start.elapsed().as_secs() < 20);
        assert_eq!(template("{+a}").matches(&"x".repeat(URI_BYTES_MAX + 1)), None);
    }

    #[test]
    fn templates_know_their_variables() {
        let t = template("x:{a}/{b,c}{?d}");
        assert_eq!(t.variables().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        assert!(is_template("x:{a}") && is_template("x:}") && !is_template("x:a"));
    }

    /// Templates whose parts never hold what separates them, so that every value must come back.
    const CLEAR: [&str; 10] = [
        "x://{a}/{b}",
        "x://{a,b}",
        "x:{a}{/b}",
        "x:y{;a,b}",
        "x:y{?a,b}",
        "x:y{?a}{&b}",
        "x:y?z=1{&a,b}",
        "x:{a}{#b}",
        "x:{a}{?b}",
        "x:{a}{;b}/z",
    ];

    proptest! {
        #[test]
        fn what_was_expanded_is_matched_back(text in prop::sample::select(&CLEAR[..]), a in ".{1,12}", b in "[^%]{1,12}") {
            let t = template(text);
            let uri = t.expand(&[("a", &a), ("b", &b)]);
            let values = t.matches(&uri);
            prop_assert_eq!(values, Some(vec![("a", a), ("b", b)]), "{}", uri);
        }

        #[test]
        fn any_match_expands_to_a_uri_that_matches_the_same(text in "(x|/|-|\\.|\\{\\+?[abc]\\}|\\{[#./;?&][abc](,[def])?\\}){0,6}", uri in "(x|/|-|\\.|[?&;](a|b|d|e)=|#|,|%41|é){0,20}") {
            let Ok(t) = UriTemplate::parse(&text) else { return Ok(()) };
            // What a value under `{+x}` or `{#x}` may hold includes what ends it elsewhere, so only the URI is compared.
            if let Some(values) = t.matches(&uri) {
                let values: Vec<(&str, &str)> = values.iter().map(|(n, v)| (*n, v.as_str())).collect();
                let again = t.expand(&values);
                prop_assert!(t.matches(&again).is_some(), "{} {} {}", text, uri, again);
            }
        }

        #[test]
        fn nothing_panics(text in any::<String>(), uri in any::<String>()) {
            if let Ok(t) = UriTemplate::parse(&text) {
                t.matches(&uri);
                t.expand(&[]);
            }
        }
    }
}
