//! The README as the pages of npm and PyPI show it, outside of the repository.

use super::places::PLACES;

/// The README of a package: how it is started comes first, its links lead to the repository at this version, and it
/// names the entry of the MCP registry, which looks for that on PyPI.
pub(crate) fn page(readme: &str, version: &str, start: &str) -> String {
    let (title, rest) = readme.split_once("\n\n").unwrap_or(("# Linchpin", readme));
    let mut page = format!("{title}\n\n```sh\n{start} serve filesystem .\n```\n\n");
    let mut is_code = false;
    for line in rest.lines() {
        is_code ^= line.starts_with("```");
        match is_code {
            true => page.push_str(line),
            false => page.push_str(&absolute(line, version)),
        }
        page.push('\n');
    }
    page.push_str(&format!("\n<!-- mcp-name: {} -->\n", PLACES.entry()));
    page
}

/// A line whose links and images do not depend on where it is read.
fn absolute(line: &str, version: &str) -> String {
    let mut parts = line.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_image = text.rfind('[').is_some_and(|at| text[..at].ends_with('!'));
        text.push_str("](");
        let target = part.split(')').next().unwrap_or_default();
        if !target.starts_with('#') && !target.contains(':') {
            let kind = if is_image { "raw" } else { "blob" };
            text.push_str(&format!("{}/{kind}/v{version}/", PLACES.repository));
        }
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_repository_and_images_to_their_bytes() {
        let there = PLACES.repository;
        let line = "![A](docs/a.svg) [b](b.md#c) [d](#d) [e](https://e.example/) `[f]`";
        let wanted = format!(
            "![A]({there}/raw/v1.0.0/docs/a.svg) [b]({there}/blob/v1.0.0/b.md#c) [d](#d) [e](https://e.example/) `[f]`"
        );
        assert_eq!(absolute(line, "1.0.0"), wanted);
    }

    #[test]
    fn the_page_of_a_package_begins_with_how_it_is_started_and_has_no_relative_links() {
        let page = page(include_str!("../../../README.md"), "1.0.0", "npx linchpin");
        assert!(page.starts_with("# Linchpin\n\n```sh\nnpx linchpin serve filesystem .\n```\n"), "{page}");
        let targets = page.split("](").skip(1).map(|part| part.split(')').next().unwrap());
        let relative: Vec<&str> =
            targets.filter(|target| !target.starts_with('#') && !target.starts_with("https://")).collect();
        assert!(relative.is_empty(), "{relative:?}");
    }

    #[test]
    fn code_stays_as_it_is() {
        let page = page("# T\n\n```\na[0](b)\n```\n", "1.0.0", "uvx linchpin");
        assert!(page.contains("a[0](b)\n"), "{page}");
        assert!(page.ends_with(&format!("<!-- mcp-name: {} -->\n", PLACES.entry())), "{page}");
    }
}
