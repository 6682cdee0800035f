//! Globs in the dialect of the published server.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use linchpin_kit::ToolError;

/// Globs in the dialect of the published server: `*` and `?` stay within a name, `**` crosses directories, `{a,b}` and
/// `[a-z]` work, names that start with a dot are like any other, a leading `!` negates the pattern.
#[derive(Default)]
pub(crate) struct Patterns {
    list: Vec<(GlobMatcher, bool)>,
}

impl Patterns {
    pub(crate) fn of<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, ToolError> {
        let mut this = Self::default();
        for pattern in patterns {
            this.add(pattern)?;
        }
        Ok(this)
    }

    pub(crate) fn add(&mut self, pattern: &str) -> Result<(), ToolError> {
        if ["!(", "+(", "@(", "?(", "*("].iter().any(|group| pattern.contains(group)) {
            return Err(ToolError::new(format!("Pattern groups such as !(…) or +(…) are not supported: {pattern}"))
                .hint("Use {a,b} for alternatives, and excludePatterns to exclude files."));
        }
        let body = pattern.trim_start_matches('!');
        let negated = (pattern.len() - body.len()) % 2 == 1;
        let body = body.strip_prefix("./").unwrap_or(body);
        let glob = GlobBuilder::new(body).literal_separator(true).build().map_err(|error| {
            ToolError::new(format!("Invalid pattern {pattern}: {}", error.kind()))
                .hint("Use *, **, ?, [a-z] and {a,b}.")
        })?;
        self.list.push((glob.compile_matcher(), negated));
        Ok(())
    }

    pub(crate) fn matches(&self, rest: &Path) -> bool {
        self.list.iter().any(|(glob, negated)| glob.is_match(rest) != *negated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_follow_the_published_dialect() {
        for (pattern, path, expected) in [
            ("*.txt", "a.txt", true),
            ("*.txt", "d/a.txt", false),
            ("**/*.txt", "a.txt", true),
            ("**/*.txt", "d/e/a.txt", true),
            ("d/**", "d", false),
            ("d/**", "d/e/f", true),
            ("*", ".hid", true),
            ("{a,b}.rs", "b.rs", true),
            ("[ab].rs", "c.rs", false),
            ("!*.rs", "a.txt", true),
            ("!*.rs", "a.rs", false),
            ("./a.rs", "a.rs", true),
            ("?.rs", "a.rs", true),
        ] {
            let patterns = Patterns::of([pattern]).expect("a readable pattern");
            assert_eq!(patterns.matches(Path::new(path)), expected, "{pattern} on {path}");
        }
        assert!(Patterns::of(["!(a)"]).is_err_and(|error| error.to_string().contains("{a,b}")));
    }
}
