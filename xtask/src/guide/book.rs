//! The guide as a book.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::GUIDE;
use crate::context::Context;
use crate::dist::places::PLACES;
use crate::markdown::{beside, links};
use crate::report::Report;
use crate::{process, tools};

/// How long making it may take.
const BUILD_S_MAX: u64 = 120;

/// Makes the book under `target/guide` with mdBook, which is compiled once.
pub(super) fn html(context: &Context) -> Result<Report> {
    let program = tools::cargo_subcommand(context, tools::MDBOOK)?;
    let source = context.results("guide")?.join("book");
    let _ = std::fs::remove_dir_all(&source);
    std::fs::create_dir_all(source.join("src"))?;
    let toml = context.root.join("docs/guide/book.toml");
    let _ =
        std::fs::copy(&toml, source.join("book.toml")).with_context(|| format!("cannot copy {}", toml.display()))?;
    for entry in std::fs::read_dir(context.root.join(GUIDE))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(context.root.join(GUIDE).join(&name))?;
        std::fs::write(source.join("src").join(&name), with_links_to_the_repository(&name, text))?;
    }
    let out = std::path::absolute(context.target.join("guide"))?;
    let mut mdbook = std::process::Command::new(program);
    mdbook.arg("build").arg("--dest-dir").arg(&out).arg(&source);
    let log = context.results("guide")?.join("mdbook.log");
    let done = process::run(&mut mdbook, &log, Duration::from_secs(BUILD_S_MAX))?;
    if !out.join("index.html").is_file() {
        bail!("mdBook made no book:\n{}", done.output);
    }
    Ok(Report::one(done.ok, format!("the guide is in {}\n", context.short(&out))))
}

/// Links to files that are not in the book lead to the repository's site.
fn with_links_to_the_repository(name: &str, text: String) -> String {
    let mut out = text.clone();
    for (_, target) in links(&text).into_iter().filter(|(_, target)| target.starts_with("../")) {
        let place = beside(&format!("{GUIDE}{name}"), &target);
        out = out.replace(&format!("]({target})"), &format!("]({}/blob/main/{place})", PLACES.repository));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_of_the_book_is_in_the_repository() {
        let text = "[a](b.md) [l](../../LIMITS.md#clients)".to_owned();
        let out = with_links_to_the_repository("x.md", text);
        assert_eq!(out, format!("[a](b.md) [l]({}/blob/main/docs/LIMITS.md#clients)", PLACES.repository));
    }
}
