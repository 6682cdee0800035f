//! Disables the dangerous parts of a repository's own configuration.
//!
//! A repository that came from elsewhere can name programs in its configuration, and git would run them. The names are
//! read here without running anything (`git config --file`, file by file, following includes), and each is overridden
//! with a harmless value in the environment (`GIT_CONFIG_COUNT`). There a name may contain any character, whereas `-c`
//! splits at the first `=` and so can be evaded with a driver named `a=b`.

pub(crate) mod config;
pub(crate) mod overrides;
pub(crate) mod own;
pub(crate) mod submodules;

use crate::exec::program::{Limit, Program};
use crate::guard::config::Listings;
use crate::guard::overrides::{
    ANSWERS, CAUSES, CLIENT_ONLY, FILE_ENDS, FILE_SECTIONS, FIXED, KNOBS, NETWORK, SHAPES, STRATEGIES, Sub, UNSIGNED,
};
use crate::place::Place;
use crate::place::bounds::Bounds;
use linchpin_kit::ToolError;
use std::collections::BTreeSet;

pub(crate) type Settings = Vec<(String, String)>;

/// The purpose of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Read-only.
    Read,
    /// May change the repository.
    Write,
    /// May change it and contacts a remote.
    Remote,
}

/// The overrides for a repository's runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    /// Set for every run.
    pub(crate) settings: Settings,
    /// Settings of the repository that were overridden.
    pub(crate) ignored: BTreeSet<String>,
    /// Settings of the repository that redirect network traffic: with them, nothing is sent.
    pub(crate) network: BTreeSet<String>,
    /// Whether it sets a merge strategy that is a program. cherry-pick and rebase use the *first* value of
    /// `pull.twohead`, so it cannot be overridden.
    pub(crate) strategy: bool,
}

/// Reads configuration.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) program: &'a Program,
    pub(crate) listings: &'a Listings,
    pub(crate) bounds: &'a Bounds,
    pub(crate) limit: Limit,
    pub(crate) trust: bool,
    pub(crate) sign: bool,
}

impl Reader<'_> {
    /// Reads the repository's configuration and returns the overrides.
    pub(crate) async fn guard(self, place: &Place, mode: Mode) -> Result<Guard, ToolError> {
        let mut names = BTreeSet::new();
        let mut strategy = false;
        let entries = self.entries(place, place.configs(), !place.bare).await?;
        if !place.bare {
            self.index(place, entries.iter().any(|(name, _)| name == OBJECT_FORMAT)).await?;
        }
        for (name, value) in entries {
            if name == "pull.twohead" {
                strategy |= !value.split_whitespace().all(|word| STRATEGIES.contains(&word));
            } else if name == "core.worktree" {
                place.check_worktree(self.bounds, &value)?;
            } else if names_a_file(&name) {
                self.read_file(place, &name, &value)?;
            }
            names.insert(name);
        }
        let mut guard = Guard::default();
        if self.trust {
            guard.settings = pairs(SHAPES);
            return Ok(guard);
        }
        guard.strategy = strategy;
        for list in [FIXED, SHAPES] {
            guard.settings.extend(pairs(list));
        }
        if !place.bare {
            // For runs that leave it to git to find the repository.
            guard.settings.push(("safe.bareRepository".into(), "explicit".into()));
        }
        if !self.sign {
            guard.settings.extend(pairs(UNSIGNED));
        }
        if mode != Mode::Read && !place.bare {
            self.submodules(place, &mut guard, &mut names).await?;
        }
        let helpers = names.iter().any(|name| is_helper(name));
        let signs: Vec<String> = names.iter().filter(|name| self.sign && is_signing(name)).cloned().collect();
        for name in names {
            guard.answer(&name, mode);
        }
        if helpers {
            self.own_helpers(&mut guard).await?;
        }
        if mode != Mode::Read && !signs.is_empty() {
            self.own_signing(&mut guard, &signs).await?;
        }
        Ok(guard)
    }

    /// Settings that would run programs in any mode; for repositories that serve as remotes, whose settings cannot be
    /// overridden.
    pub(crate) async fn hazards(self, place: &Place) -> Result<BTreeSet<String>, ToolError> {
        let entries = self.entries(place, place.configs(), !place.bare).await?;
        let mut guard = Guard::default();
        // Settings that matter only to a client of other remotes are ignored.
        let section = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        for (name, value) in entries.iter().filter(|(name, _)| names_a_file(name)) {
            self.read_file(place, name, value)?;
        }
        for (name, _) in entries.iter().filter(|(name, _)| !CLIENT_ONLY.contains(&section(name).as_str())) {
            guard.answer(name, Mode::Remote);
        }
        Ok(guard.ignored)
    }

    /// Checks the names in the index; `named` tells that the configuration sets the object format.
    pub(crate) async fn index(self, place: &Place, named: bool) -> Result<(), ToolError> {
        // Git reads this from the repository's config file only, without includes.
        let own = if named { self.file(&place.common.join("config")).await? } else { Vec::new() };
        let format = own.iter().rfind(|(name, _)| name == OBJECT_FORMAT).map(|(_, value)| value.as_str());
        let id = if format == Some("sha256") { 32 } else { 20 };
        let (place, bounds) = (place.clone(), self.bounds.clone());
        let checked = tokio::task::spawn_blocking(move || place.check_index(&bounds, id)).await;
        checked.map_err(|_| ToolError::new("Checking the index failed unexpectedly"))?
    }
}

/// Settings that choose the key and program for signing.
fn is_signing(name: &str) -> bool {
    name == "user.signingkey" || name.starts_with("gpg.")
}

impl Guard {
    /// Overrides this setting if it must not take effect.
    pub(crate) fn answer(&mut self, name: &str, mode: Mode) {
        let Some((section, rest)) = name.split_once('.') else { return };
        let (sub, key) = rest.rsplit_once('.').map_or((None, rest), |(sub, key)| (Some(sub), key));
        if NETWORK.iter().any(|(of, what)| *of == section && *what == key) {
            self.network.insert(name.to_owned());
        }
        if let Some((.., value)) = KNOBS.iter().find(|(of, what, _)| *of == section && *what == key) {
            self.set(name, value);
        }
        let known = ANSWERS.iter().find(|(of, with_sub, what, _)| {
            *of == section
                && *what == key
                && match with_sub {
                    Sub::Any => sub.is_some(),
                    Sub::None => sub.is_none(),
                    Sub::Either => true,
                }
        });
        let Some((.., value)) = known else { return };
        let value = match (section, sub, key) {
            ("gpg", Some("x509"), "program") => "gpgsm",
            ("gpg", Some("ssh"), "program") => "ssh-keygen",
            _ => value,
        };
        self.ignored.insert(name.to_owned());
        self.set(name, value);
        if let ("filter", Some(driver)) = (section, sub) {
            // Nothing may be stored or checked out unfiltered by accident; for reading, unfiltered is right.
            self.set(&format!("filter.{driver}.required"), if mode == Mode::Read { "false" } else { "true" });
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        match self.settings.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.settings.push((name.to_owned(), value.to_owned())),
        }
    }

    /// A hint about overridden settings if they can explain this message of git.
    pub(crate) fn advice(&self, complaint: &str) -> Option<String> {
        let complaint = complaint.to_lowercase();
        let may = |name: &&String| {
            let section = name.split('.').next().unwrap_or_default();
            CAUSES.iter().any(|(of, words)| *of == section && words.iter().any(|word| complaint.contains(word)))
        };
        let names: Vec<String> = self.ignored.iter().filter(may).take(8).map(|name| shown_key(name)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "Disabled, because it is set in the repository's own configuration: {}. The operator can \
                 allow it with --trust-repo-config.",
                names.join(", ")
            )
        })
    }
}

/// Whether this setting is the path of a file that git reads: known names, and typical endings of future ones.
pub(crate) fn names_a_file(name: &str) -> bool {
    let (section, key) = (name.split('.').next().unwrap_or_default(), name.rsplit('.').next().unwrap_or_default());
    FILE_SECTIONS.split(' ').any(|known| known == section) && FILE_ENDS.iter().any(|end| key.ends_with(end))
}

/// A setting's name for errors. Its middle part is free text, so it is shown only if it is plain.
pub(crate) fn shown_key(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/:@=+*".contains(c);
    if name.len() <= 120 && name.chars().all(plain) {
        return name.to_owned();
    }
    let (section, key) = (name.split('.').next().unwrap_or_default(), name.rsplit('.').next().unwrap_or_default());
    format!("{section}.*.{key}")
}

fn is_helper(name: &str) -> bool {
    name.starts_with("credential.") && name.ends_with(".helper")
}

fn pairs(of: &[(&str, &str)]) -> Settings {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const OBJECT_FORMAT: &str = "extensions.objectformat";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_repository_may_not_raise_is_set_whatever_it_says() {
        for (section, key, value) in KNOBS {
            let name = format!("{section}.{key}");
            let mut guard = Guard::default();
            guard.answer(&name, Mode::Read);
            assert_eq!(guard.settings, [(name, (*value).to_owned())]);
            assert!(guard.ignored.is_empty(), "that is not why anything failed");
        }
    }
}
