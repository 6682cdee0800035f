//! Finds a browser and starts it.

use crate::config::Config;
use linchpin::transport::web::ForwardProxy;
use linchpin_kit::{ErrorKind, ToolError, io_text};
use linchpin_process::{Command, Running};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of the browser's standard error that are kept for errors.
const STDERR_BYTES: usize = 16 << 10;

/// The names that browsers are found by, the first that is there counts. A headless shell has no windows.
const HEADLESS_SHELLS: &[&str] = &["chromium-headless-shell", "chrome-headless-shell", "headless_shell"];
const BROWSERS: &[&str] = &[
    "google-chrome",
    "google-chrome-stable",
    "chromium",
    "chromium-browser",
    "microsoft-edge",
    "microsoft-edge-stable",
    "chrome",
    "/opt/google/chrome/chrome",
    "/usr/lib/chromium/chromium",
    "/opt/microsoft/msedge/msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
];

/// What every browser is started with. Nothing of it reports, updates, synchronises or looks names up by itself.
const FLAGS: &[&str] = &[
    "--remote-debugging-pipe",
    "--no-startup-window",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    "--no-pings",
    "--enable-automation",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    "--export-tagged-pdf",
    "--force-color-profile=srgb",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-field-trial-config",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-search-engine-choice-screen",
    "--disable-sync",
    // A page in the background answers too.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-ipc-flooding-protection",
    // Connections go through the proxy, those to this machine included; nothing may go around it.
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--dns-prefetch-disable",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-features=AutofillServerCommunication,CertificateTransparencyComponentUpdater,DialMediaRouteProvider,\
     GlobalMediaControls,HttpsUpgrades,ImprovedCookieControls,InterestFeedContentSuggestions,LensOverlay,MediaRouter,\
     OptimizationHints,PaintHolding,PrivacySandboxSettings4,Translate,WebOTP",
];

/// The browser that the configuration names, or the first that is found.
///
/// # Errors
/// When there is none, or this system has no way to start one.
pub(crate) fn executable(config: &Config) -> Result<PathBuf, ToolError> {
    if !cfg!(unix) {
        return Err(ToolError::new("Browsers are not started on this system: only where there are Unix pipes"));
    }
    let missing = |message: String| {
        ToolError::new(message).kind(ErrorKind::NotFound).hint(
            "The operator can install Chrome, Chromium, Edge or chrome-headless-shell, or name one with --executable.",
        )
    };
    if let Some(named) = &config.executable {
        return find(named).ok_or_else(|| missing(format!("There is no browser at {}", named.display())));
    }
    let shells = if config.headed { &[] } else { HEADLESS_SHELLS };
    let found = shells.iter().chain(BROWSERS).find_map(|name| find(Path::new(name)));
    found.ok_or_else(|| missing("There is no browser on this machine".to_owned()))
}

/// The file of a program, looked for in `PATH` if it has no folder.
fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return is_program(program).then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| is_program(file))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

/// Starts the browser: what it writes to the pipe is `stdout` of the result, what it reads `stdin`.
///
/// The pipe is its third and fourth file, where a shell puts our ends of the standard streams before it becomes the
/// browser; what browsers print goes to standard error.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn start(config: &Config, profile: &Path, proxy: &ForwardProxy) -> Result<Running, ToolError> {
    let program = executable(config)?;
    let mut command = Command::new("/bin/sh");
    let script = "exec 3<&0 4>&1 </dev/null >&2 && exec \"$@\"";
    command.args = ["-c", script, "linchpin-browser"].map(OsString::from).to_vec();
    command.args.push(program.clone().into_os_string());
    command.args.extend(flags(config, &program, profile, proxy));
    command.cwd = Some(profile.to_owned());
    if config.profile.is_none() {
        // A whole Chromium has a folder for its socket there, which a killed one leaves behind.
        command.environment.set("TMPDIR".into(), profile.into());
    }
    command.start(STDERR_BYTES, |_| ()).map_err(|e| ToolError::new("The browser could not be started").detail(e))
}

/// All flags of the browser.
fn flags(config: &Config, program: &Path, profile: &Path, proxy: &ForwardProxy) -> Vec<OsString> {
    let mut all: Vec<OsString> = FLAGS.iter().map(OsString::from).collect();
    let is_shell = program.file_name().is_some_and(|name| name.to_string_lossy().contains("headless"));
    if !config.headed {
        // A shell knows no other mode.
        all.push(if is_shell { "--headless" } else { "--headless=new" }.into());
        all.push("--hide-scrollbars".into());
    }
    if config.no_sandbox {
        all.push("--no-sandbox".into());
    }
    let mut folder = OsString::from("--user-data-dir=");
    folder.push(profile);
    all.push(folder);
    all.push(format!("--proxy-server={}", proxy.address()).into());
    all.push(format!("--window-size={},{}", config.viewport.width, config.viewport.height).into());
    all.extend(config.browser_args.iter().map(OsString::from));
    all
}

/// A new folder for a profile, removed when it is dropped.
///
/// # Errors
/// When it cannot be created.
pub(crate) fn fresh_profile() -> Result<tempfile::TempDir, ToolError> {
    tempfile::Builder::new().prefix("linchpin-browser-").tempdir().map_err(|e| {
        ToolError::new(format!("The directory for the browser's profile cannot be created: {}", io_text(&e)))
    })
}
