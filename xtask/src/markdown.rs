//! Markdown as far as the checks need it: links, anchors and code blocks.

/// A fenced block of code.
pub(crate) struct Block {
    /// The number of the line with the opening fence.
    pub(crate) line: usize,
    /// What stands after the fence.
    pub(crate) language: String,
    pub(crate) code: String,
}

/// The fenced blocks that begin at a line's start.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (line, content) in (1..).zip(text.lines()) {
        match (&mut open, content.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block { line, language: language.trim().to_owned(), code: String::new() });
            }
            (Some(_), Some("")) => found.extend(open.take()),
            (Some(block), _) => {
                block.code.push_str(content);
                block.code.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// Lines that are no code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let line = line.trim_start();
        let marks = line.len() - line.trim_start_matches('`').len();
        match fence {
            None if marks >= 3 => fence = Some(marks),
            Some(open) if marks >= open && line.trim_matches('`').is_empty() => {
                fence = None;
                return false;
            }
            _ => {}
        }
        fence.is_none()
    })
}

/// The targets of inline links with their lines, without those in code.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Every other part is code.
        let parts = line.split('`').enumerate();
        let plain: String = parts.map(|(at, part)| if at % 2 == 0 { part } else { "x" }).collect();
        for (at, _) in plain.match_indices("](") {
            if let Some((target, _)) = plain[at + 2..].split_once(')') {
                found.push((number, target.split(' ').next().unwrap_or_default().to_owned()));
            }
        }
    }
    found
}

/// The anchors of a document's headings, as GitHub and mdBook make them.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut slugs: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let words = title.trim().to_lowercase();
        let slug: String = words
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            })
            .collect();
        let same = (1..).map(|n| format!("{slug}-{n}")).find(|other| !slugs.contains(other));
        slugs.push(if slugs.contains(&slug) { same.unwrap_or_default() } else { slug });
    }
    slugs
}

/// The path of a link's target, from the root, in the document `path`.
pub(crate) fn beside(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_code_are_none() {
        let text = "[a](b.md#c) `[x](y)` [d](e \"t\")\n```text\n[f](g)\n```\n[h](../i)";
        assert_eq!(links(text), [(1, "b.md#c".into()), (1, "e".into()), (5, "../i".into())]);
        assert_eq!(beside("docs/guide/src/a.md", "../../LIMITS.md"), "docs/LIMITS.md");
        assert_eq!(beside("README.md", "docs/x.md"), "docs/x.md");
    }

    #[test]
    fn headings_have_the_anchors_of_github() {
        let text = "# A `first` server, now!\n```sh\n# no heading\n```\n## Run\n## Run\n#no\n";
        assert_eq!(anchors(text), ["a-first-server-now", "run", "run-1"]);
    }

    #[test]
    fn blocks_have_a_language_and_a_line() {
        let found = blocks("a\n```sh\nls\n```\n\n```rust,no_run\nfn main() {}\n```\n");
        let found: Vec<_> = found.iter().map(|b| (b.line, b.language.as_str(), b.code.as_str())).collect();
        assert_eq!(found, [(2, "sh", "ls\n"), (6, "rust,no_run", "fn main() {}\n")]);
    }
}
