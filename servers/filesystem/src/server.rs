//! The server: opening it, and restricting it to a client's roots.

use std::sync::Arc;

use linchpin_kit::{RootsPolicy, ToolError, root_path};

use crate::config::{self, Config};
use crate::inner::Inner;
use crate::paths::expand_home;
use crate::roots::Roots;

/// The state of the server: the open directories and the configuration. Cloning shares both.
#[derive(Clone, Debug)]
pub struct Filesystem {
    pub(crate) inner: Arc<Inner>,
}

impl Filesystem {
    /// Opens the configured directories.
    ///
    /// Directories that cannot be opened are skipped, with one warning line each in the returned list (print them to
    /// stderr). Without any directory, every tool returns an error that says how to configure one.
    ///
    /// # Errors
    /// When directories were given and none of them can be opened, or a deny pattern is invalid.
    pub fn open(config: Config) -> Result<(Self, Vec<String>), ToolError> {
        let deny = config::Deny::new(&config.deny)?;
        let mut skipped = Vec::new();
        let mut roots = Roots::default();
        for given in &config.directories {
            if let Err(why) = roots.add_ambient(&expand_home(given)) {
                skipped.push((given, why));
            }
        }
        if roots.is_empty() && !config.directories.is_empty() {
            let skipped: Vec<String> = skipped.iter().map(|(given, why)| format!("{given}: {why}")).collect();
            return Err(ToolError::new("Error: None of the specified directories are accessible")
                .hint(format!("Name at least one existing, readable directory. {}", skipped.join("; "))));
        }
        let warning = |(given, why)| format!("Warning: Cannot access directory {given}, skipping: {why}");
        let warnings = skipped.into_iter().map(warning).collect();
        let ceiling = Arc::new(roots);
        let inner = Inner {
            config: Arc::new(config),
            deny: Arc::new(deny),
            roots: Arc::clone(&ceiling),
            ceiling,
            turns: Arc::default(),
        };
        Ok((Self { inner: Arc::new(inner) }, warnings))
    }

    /// The configuration this server was opened with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Whether any directory is allowed.
    #[must_use]
    pub fn has_directories(&self) -> bool {
        !self.inner.roots.is_empty()
    }

    /// The roots policy: the configured one, or the default.
    #[must_use]
    pub fn roots_policy(&self) -> RootsPolicy {
        self.inner.config.roots.unwrap_or(RootsPolicy::Ignore)
    }

    /// This server as restricted to a client with these roots (`file://` URIs or plain paths), by the configured
    /// [`RootsPolicy`], see [`Config::roots`]. Other clients are not affected.
    ///
    /// # Errors
    /// When opening the roots fails unexpectedly: the access of this client is unknown then.
    pub async fn for_roots(&self, roots: Vec<String>) -> Result<Self, ToolError> {
        let policy = self.roots_policy();
        if policy == RootsPolicy::Ignore || policy == RootsPolicy::Use && !self.inner.ceiling.is_empty() {
            return Ok(self.clone());
        }
        let roots = self.run(move |inner| Ok(inner.take_roots(policy, &roots))).await?;
        // `Narrow` applies even if nothing is left; `Replace` does not, as in the published server.
        if policy != RootsPolicy::Narrow && roots.is_empty() {
            return Ok(self.clone());
        }
        Ok(Self { inner: Arc::new(Inner { roots: Arc::new(roots), ..Inner::clone(&self.inner) }) })
    }

    /// Runs a tool's work on the runtime's blocking pool.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, ToolError>
    where
        T: Send + 'static,
        F: FnOnce(&Inner) -> Result<T, ToolError> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        linchpin_kit::blocking(move || work(&inner)).await.unwrap_or_else(|| {
            Err(ToolError::new("The operation stopped unexpectedly.")
                .hint("The result is unknown; check the file's state with get_file_info before trying again."))
        })
    }
}

impl Inner {
    fn take_roots(&self, policy: RootsPolicy, offered: &[String]) -> Roots {
        let mut roots = Roots::default();
        for root in offered {
            // The published server expands `~` too.
            let home = || Some(expand_home(root)).filter(|path| path.is_absolute());
            let Some(path) = root_path(root).or_else(home) else { continue };
            // Roots come from the client: those that cannot be opened are skipped, as in the published server.
            let _ = match policy {
                RootsPolicy::Narrow => self.narrow(&mut roots, &path),
                _ => roots.add_ambient(&path),
            };
        }
        roots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also while a client's roots are looked at: it is refused then, and does not get what is configured.
    #[tokio::test]
    async fn work_that_panics_is_a_refusal() {
        let (fs, _) = Filesystem::open(Config::default()).expect("no directory is fine");
        let refused = fs.run(|_| -> Result<Roots, ToolError> { panic!("on purpose") }).await;
        assert!(refused.is_err_and(|fault| fault.message().contains("stopped unexpectedly")));
    }
}
