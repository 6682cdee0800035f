//! Where things are: the repository, the target directory, and command-line flags.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// The places every subcommand needs, and how thorough it is.
#[derive(Clone)]
pub(crate) struct Context {
    /// The folder of the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Cargo's target directory; `CARGO_TARGET_DIR` is honoured.
    pub(crate) target: PathBuf,
    /// Whether everything is checked (`--all`), or what a change needs.
    pub(crate) all: bool,
}

impl Context {
    /// Finds the workspace from the working directory upwards.
    pub(crate) fn locate() -> Result<Context> {
        let here = std::env::current_dir().context("the working directory cannot be read")?;
        let root = here
            .ancestors()
            .find(|folder| folder.join("xtask/Cargo.toml").is_file())
            .with_context(|| format!("{} is not inside the repository; change into it and try again", here.display()))?
            .to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => here.join(dir),
            None => root.join("target"),
        };
        Ok(Context { root, target, all: false })
    }

    /// A binary of the debug profile, whether or not it was built yet.
    pub(crate) fn binary(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// The folder for scratch results of one subcommand, created when missing.
    pub(crate) fn results(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target.join("xtask").join(name);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    /// A path as the reader knows it: relative to the repository where possible.
    pub(crate) fn short<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}

/// Flags of a subcommand: `--name value` pairs and bare `--name` switches.
pub(crate) struct Flags<'a> {
    words: &'a [String],
}

impl<'a> Flags<'a> {
    /// Accepts `words` if every flag in them is one of `values` (takes a value) or `switches`.
    pub(crate) fn parse(words: &'a [String], values: &[&str], switches: &[&str]) -> Result<Flags<'a>> {
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if values.contains(&word.as_str()) {
                if rest.next().is_none() {
                    bail!("{word} needs a value");
                }
            } else if !switches.contains(&word.as_str()) {
                bail!("{word} is not known here; known are {}", [values, switches].concat().join(", "));
            }
        }
        Ok(Flags { words })
    }

    /// Every value given for a repeatable flag.
    pub(crate) fn all(&self, name: &str) -> Vec<&'a str> {
        self.words.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1].as_str()).collect()
    }

    /// The last value given for a flag.
    pub(crate) fn last(&self, name: &str) -> Option<&'a str> {
        self.all(name).pop()
    }

    /// Whether a switch was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| word == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_and_unknown_ones_are_refused_by_name() {
        let words: Vec<String> = ["--only", "tidy", "--only", "fmt", "--list"].map(String::from).to_vec();
        let flags = Flags::parse(&words, &["--only"], &["--list"]).unwrap();
        assert_eq!(flags.all("--only"), ["tidy", "fmt"]);
        assert_eq!(flags.last("--only"), Some("fmt"));
        assert!(flags.has("--list"));
        let error = Flags::parse(&words, &["--skip"], &[]).err().unwrap();
        assert!(error.to_string().contains("--only"), "{error}");
        let words = ["--only".to_string()];
        assert!(Flags::parse(&words, &["--only"], &[]).is_err());
    }
}
