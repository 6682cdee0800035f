//! Text utilities: doc comments, near misses, the variables of a URI template.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment among `attrs` as a description: lines of a paragraph are joined; lists, tables, headings and code
/// are kept.
pub(crate) fn doc(attrs: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attr in attrs {
        if let Meta::NameValue(pair) = &attr.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value
        {
            lines.extend(text.value().split('\n').map(str::to_owned));
        }
    }
    join(&lines)
}

fn join(lines: &[String]) -> String {
    let mut out = String::new();
    let (mut fenced, mut keep) = (false, true);
    for line in lines {
        let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
        let fence = line.trim_start().starts_with("```");
        let own_line = fenced || fence || line.is_empty() || begins_block(line);
        if !out.is_empty() {
            out.push(if own_line || keep { '\n' } else { ' ' });
        }
        out.push_str(if own_line { line } else { line.trim_start() });
        fenced ^= fence;
        // A line after an empty line, a heading or a fence starts anew; one after a list item may continue it.
        keep = fenced || fence || line.is_empty() || line.starts_with('#');
    }
    out.trim().to_owned()
}

fn begins_block(line: &str) -> bool {
    let text = line.trim_start();
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = digits.len() < text.len() && digits.starts_with(". ");
    line.starts_with("    ")
        || numbered
        || ["- ", "* ", "+ ", "# ", "## ", "### ", "> ", "|"].iter().any(|mark| text.starts_with(mark))
}

/// The most similar of `choices` to `word`, if any is similar enough.
pub(crate) fn near<'a>(word: &str, choices: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (word.len() / 3).clamp(1, 3);
    let plain = |s: &str| s.to_lowercase().replace('_', "");
    choices
        .into_iter()
        .map(|choice| (if plain(choice) == plain(word) { 0 } else { distance(word, choice) }, choice))
        .filter(|(steps, _)| *steps <= allowed)
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, choice)| choice)
}

/// The edit distance between `a` and `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// `a`, `b` or `c`, each in backticks.
pub(crate) fn list<S: AsRef<str>>(words: &[S]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("`{}`", w.as_ref())).collect();
    quoted.join(", ")
}

/// The names of the variables of an RFC 6570 template. The server checks the whole template when it starts.
pub(crate) fn variables(template: &str) -> Vec<String> {
    let expressions = template.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside);
    let specs =
        expressions.flat_map(|inside| inside.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']).split(','));
    specs
        .map(|spec| spec.trim_end_matches('*').split(':').next().unwrap_or_default().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// `read_page` as `ReadPage`.
pub(crate) fn camel(name: &str) -> String {
    let parts = name.trim_start_matches("r#").split('_').filter(|part| !part.is_empty());
    parts.flat_map(|part| part.chars().take(1).flat_map(char::to_uppercase).chain(part.chars().skip(1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_of_a_doc_comment_become_one_and_blocks_stay() {
        let cases = [
            (" Adds two numbers.", "Adds two numbers."),
            (" Adds two\n numbers.", "Adds two numbers."),
            (" First.\n\n Second\n goes on.", "First.\n\nSecond goes on."),
            (" Kinds:\n - one\n   and more\n - two", "Kinds:\n- one and more\n- two"),
            (" # Head\n Body\n goes on", "# Head\nBody goes on"),
            (" Run:\n ```\n a\n b\n ```\n Then\n stop.", "Run:\n```\na\nb\n```\nThen stop."),
            (" 1. one\n 2. two\n 3 is not an item", "1. one\n2. two 3 is not an item"),
            ("\n\n", ""),
        ];
        for (doc, want) in cases {
            let lines: Vec<String> = doc.lines().map(str::to_owned).collect();
            assert_eq!(join(&lines), want, "{doc:?}");
        }
    }

    #[test]
    fn a_near_miss_is_found_and_a_far_one_is_not() {
        let options = ["name", "title", "description", "read_only", "destructive"];
        let cases = [
            ("nane", Some("name")),
            ("readonly", Some("read_only")),
            ("readOnly", Some("read_only")),
            ("descripton", Some("description")),
            ("colour", None),
            ("x", None),
        ];
        for (word, want) in cases {
            assert_eq!(near(word, options), want, "{word}");
        }
    }

    #[test]
    fn the_variables_of_a_template_are_read_off_it() {
        let cases: [(&str, &[&str]); 4] = [
            ("weather://{city}/{day}", &["city", "day"]),
            ("file:///{+path}{?from,to*}{#part:3}", &["path", "from", "to", "part"]),
            ("notes://all", &[]),
            ("broken://{open", &[]),
        ];
        for (template, want) in cases {
            assert_eq!(variables(template), want, "{template}");
        }
    }

    #[test]
    fn names_become_type_names() {
        assert_eq!(camel("read_page"), "ReadPage");
        assert_eq!(camel("r#type"), "Type");
        assert_eq!(camel("_x1__y"), "X1Y");
    }
}
