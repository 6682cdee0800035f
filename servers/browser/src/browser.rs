//! A running browser.

use crate::cdp::{Cdp, CdpError};
use crate::config::Config;
use crate::downloads::Downloads;
use crate::egress::Egress;
use crate::launch;
use crate::page::page_error;
use crate::routes::Routes;
use linchpin::transport::web::ForwardProxy;
use linchpin_kit::{ErrorKind, ToolError, io_text};
use linchpin_process::Process;
use serde_json::{Value, json};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// How long a browser has to write its profile at its end.
const FAREWELL_TIME: Duration = Duration::from_secs(2);
/// How long a killed one may take until its profile can be removed.
const REAP_TIME: Duration = Duration::from_secs(3);

/// A running browser. Dropping it kills it, and everything that it has started.
pub(crate) struct Browser {
    cdp: Cdp,
    routes: Arc<Routes>,
    /// In the order in which they are given up: the processes, what they go through, where they write.
    parts: Option<Parts>,
    keeps_profile: bool,
}

struct Parts {
    process: Process,
    proxy: ForwardProxy,
    profile: Option<TempDir>,
}

impl Browser {
    /// Starts one, and waits until it answers.
    ///
    /// # Errors
    /// When there is none, or it does not start; with its own last words.
    pub(crate) async fn launch(config: &Config, egress: &Arc<Egress>) -> Result<Browser, ToolError> {
        let proxy = egress
            .proxy()
            .await
            .map_err(|e| ToolError::new(format!("The browser's proxy could not be started: {}", io_text(&e))))?;
        let profile = match &config.profile {
            Some(_) => None,
            None => Some(launch::fresh_profile()?),
        };
        let folder = match (&config.profile, &profile) {
            (Some(named), _) => existing(named)?,
            (None, Some(fresh)) => fresh.path().to_owned(),
            (None, None) => return Err(ToolError::new("There is no directory for the profile")),
        };
        let running = launch::start(config, &folder, &proxy)?;
        let (user, password) = proxy.credential();
        let credential = (proxy.address(), user, password.to_owned());
        let downloads =
            Downloads::new(config.download_dir.as_deref().and_then(|folder| std::path::absolute(folder).ok()));
        let routes = Arc::new(Routes::new(egress.clone(), config.viewport, credential, downloads));
        let heard = routes.clone();
        let cdp = Cdp::open(running.stdout, running.stdin, Box::new(move |cdp, event| heard.hear(cdp, event)));
        let parts = Parts { process: running.process, proxy, profile };
        let browser = Browser { cdp, routes, parts: Some(parts), keeps_profile: config.profile.is_some() };
        browser.greet(config).await?;
        Ok(browser)
    }

    /// Waits for its first answer, and has every target of the future confined.
    async fn greet(&self, config: &Config) -> Result<(), ToolError> {
        let limit = Duration::from_millis(config.launch_timeout_ms);
        let session = self.cdp.browser();
        let version = session.call_within("Browser.getVersion", json!({}), limit).await;
        let Some(parts) = &self.parts else { return Err(page_error(CdpError::Closed)) };
        match version {
            Ok(version) => tracing::debug!(product = %version["product"], "a browser was started"),
            Err(CdpError::Timeout(_)) => {
                return Err(ToolError::new(format!("The browser did not start within {} ms", limit.as_millis()))
                    .kind(ErrorKind::Timeout)
                    .detail(parts.process.last_lines()));
            }
            Err(_) => {
                let exit = parts.process.exited(Duration::from_secs(1)).await;
                let how = match exit {
                    Some(Ok(status)) => linchpin_process::exit_text(status),
                    _ => "closed its pipe".to_owned(),
                };
                let words = parts.process.last_lines();
                let failed = ToolError::new(format!("The browser could not be started: it {how}"));
                return Err(match words.contains("sandbox") {
                    true => {
                        failed.hint("Where it has no sandbox (containers, root), the operator can set --no-sandbox.")
                    }
                    false => failed,
                }
                .kind(ErrorKind::Upstream { status: None })
                .detail(words));
            }
        }
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        session.call("Target.setAutoAttach", attach).await.map_err(page_error)?;
        session.call("Browser.setDownloadBehavior", json!({"behavior": "deny"})).await.map_err(page_error)?;
        Ok(())
    }

    /// The connection to it.
    pub(crate) fn cdp(&self) -> &Cdp {
        &self.cdp
    }

    /// Whose what is in it.
    pub(crate) fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }

    /// Whether it runs.
    pub(crate) fn is_alive(&self) -> bool {
        self.cdp.is_open()
    }

    /// Sends a command to the browser itself.
    ///
    /// # Errors
    /// When it fails.
    pub(crate) async fn call(&self, method: &'static str, params: Value) -> Result<Value, ToolError> {
        self.cdp.browser().call(method, params).await.map_err(page_error)
    }

    /// Kills it: all its commands fail at once.
    pub(crate) fn kill(&self) {
        self.cdp.close();
        if let Some(parts) = &self.parts {
            parts.process.kill();
        }
    }

    /// Ends it, and waits until nothing of it is left.
    pub(crate) async fn end(mut self) {
        if let Some(parts) = self.parts.take() {
            end(&self.cdp, parts, self.keeps_profile).await;
        }
    }
}

/// A profile that is kept is written first.
async fn end(cdp: &Cdp, parts: Parts, keeps_profile: bool) {
    let Parts { process, proxy, profile } = parts;
    if keeps_profile && cdp.is_open() {
        cdp.browser().post("Browser.close", json!({}));
        let _ = process.exited(FAREWELL_TIME).await;
    }
    cdp.close();
    process.kill();
    drop(proxy);
    process.reaped(REAP_TIME).await;
    drop(profile);
}

impl Drop for Browser {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let (cdp, keeps_profile) = (self.cdp.clone(), self.keeps_profile);
                runtime.spawn(async move { end(&cdp, parts, keeps_profile).await });
            }
            Err(_) => {
                self.cdp.close();
                parts.process.kill();
            }
        }
    }
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Browser").field("cdp", &self.cdp).finish_non_exhaustive()
    }
}

/// The folder of a profile that is kept, created if it is missing.
fn existing(named: &Path) -> Result<std::path::PathBuf, ToolError> {
    let unusable = |e| ToolError::new(format!("The profile {} cannot be used: {}", named.display(), io_text(&e)));
    std::fs::create_dir_all(named).map_err(unusable)?;
    std::path::absolute(named).map_err(unusable)
}
