//! Configuration from flags and environment variables.

use linchpin::transport::web::{HostRule, Reach, WebOptions};
use linchpin_kit::flag::{self, Flag};
use linchpin_kit::{Given, ToolChoice, ToolError, Vars};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::str::FromStr;

linchpin_kit::options! {
    /// The configuration.
    #[derive(Debug, Clone)]
    pub struct Config: "MCP_BROWSER" then settle {
        /// The browser: Chrome, Chromium, Edge or chrome-headless-shell.
        pub executable: Option<PathBuf> = None => flag::program("FILE").default("the first that is found"),
        /// Show the browser's windows.
        pub headed: bool = false => flag::switch(),
        /// Keep cookies and storage in this profile directory.
        ///
        /// One client at a time can use it. Without it every client has a context of its own, which is forgotten.
        pub profile: Option<PathBuf> = None => flag::directory("DIR"),
        /// Start with the cookies and local storage of this file, in the format of Playwright.
        pub storage_state: Option<PathBuf> = None => flag::file("FILE"),
        /// Save downloads in this directory; without it they are refused.
        pub download_dir: Option<PathBuf> = None => flag::directory("DIR"),
        /// Give pages files of this directory when they ask for some. May be repeated.
        ///
        /// Empty means that nothing is uploaded.
        pub upload_dirs: Vec<PathBuf> = Vec::new() => flag::repeated("DIR", ':').named("upload-dir").adds(),
        /// Another flag for the browser: one that is known to be harmless. May be repeated.
        pub browser_args: Vec<String> = Vec::new() => flag::repeated("FLAG", '\n').named("browser-arg").adds(),
        /// Run the browser without its sandbox, as containers and root need it.
        pub no_sandbox: bool = false => flag::switch(),
        /// Allow every flag in --browser-arg, also those that weaken the browser's security.
        pub allow_dangerous: bool = false => flag::switch(),
        /// Size of the viewport, in pixels.
        pub viewport: Viewport = Viewport::default() => flag::choice("WIDTHxHEIGHT").default("800x600"),
        /// Timeout of a tool, in seconds.
        ///
        /// In milliseconds here.
        pub timeout_ms: u64 = 30_000 => flag::seconds_in_ms().named("timeout"),
        /// Timeout of the browser's start, in seconds.
        pub launch_timeout_ms: u64 = 30_000 => flag::seconds_in_ms().named("launch-timeout"),
        /// Allow every address, including private and loopback addresses.
        pub allow_private_ips: bool = false => flag::switch(),
        /// Allow this host to have private addresses: `example.test`, `example.test:8080`, `*.example.test`. May be
        /// repeated.
        pub allow_private_hosts: Vec<HostRule> = Vec::new() => hosts("allow-private-host"),
        /// Connect to this host only. May be repeated.
        ///
        /// Empty means all.
        pub allow_hosts: Vec<HostRule> = Vec::new() => hosts("allow-host"),
        /// Never connect to this host. May be repeated.
        ///
        /// Takes precedence over the others.
        pub deny_hosts: Vec<HostRule> = Vec::new() => hosts("deny-host"),
        /// Allow tools to open `data:` URLs.
        pub allow_data_urls: bool = false => flag::switch(),
        /// The value of `PUPPETEER_LAUNCH_OPTIONS`, which `launchOptions` of a call may repeat.
        pub launch_options: Map<String, Value> = Map::new(),
        /// The enabled tools and their names.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
    }
}

fn hosts(name: &str) -> Flag<Vec<HostRule>> {
    flag::repeated_with("HOST", ',', |text| text.parse().map_err(|e| ToolError::new(format!("{e}"))))
        .named(name)
        .host()
        .adds()
}

/// The size of a viewport in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Viewport {
    /// Its width.
    pub width: u32,
    /// Its height.
    pub height: u32,
}

/// The longest side of a viewport and of a screenshot.
pub(crate) const SIDE_MAX: u32 = 16_384;

impl Default for Viewport {
    fn default() -> Self {
        Self { width: 800, height: 600 }
    }
}

impl FromStr for Viewport {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self, ToolError> {
        let sides = text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
        match sides {
            Some((width @ 1..=SIDE_MAX, height @ 1..=SIDE_MAX)) => Ok(Self { width, height }),
            _ => Err(ToolError::new(format!("not a size: {text}"))
                .hint(format!("Write WIDTHxHEIGHT, for example 1280x720, at most {SIDE_MAX} each."))),
        }
    }
}

/// What we take from `PUPPETEER_LAUNCH_OPTIONS`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LaunchOptions {
    headless: Option<Value>,
    executable_path: Option<PathBuf>,
    #[serde(default)]
    args: Vec<String>,
    default_viewport: Option<Viewport>,
    timeout: Option<u64>,
}

impl Config {
    /// Reads the variables of the published server. Its launch options are weaker than ours, flag or variable.
    fn settle(&mut self, vars: Vars<'_>, _: &Given) -> Result<(), ToolError> {
        self.allow_dangerous |= vars.switch("ALLOW_DANGEROUS")?.unwrap_or(false);
        // The published server needs it for a container's root.
        self.no_sandbox |= vars.switch("DOCKER_CONTAINER")?.unwrap_or(false);
        let Some(text) = vars.text("PUPPETEER_LAUNCH_OPTIONS") else { return self.check() };
        let wrong = |e: serde_json::Error| ToolError::new(format!("PUPPETEER_LAUNCH_OPTIONS: {e}"));
        self.launch_options = serde_json::from_str(&text).map_err(wrong)?;
        let options: LaunchOptions = serde_json::from_str(&text).map_err(wrong)?;
        self.headed |= options.headless == Some(Value::Bool(false));
        self.executable = self.executable.take().or(options.executable_path);
        if self.viewport == Viewport::default() {
            self.viewport = options.default_viewport.unwrap_or_default();
        }
        if let Some(timeout) = options.timeout.filter(|timeout| *timeout > 0) {
            self.launch_timeout_ms = timeout;
        }
        for flag in options.args {
            match flag.as_str() {
                "--no-sandbox" | "--disable-setuid-sandbox" if self.allow_dangerous => self.no_sandbox = true,
                _ => self.browser_args.push(flag),
            }
        }
        self.check()
    }

    /// Refuses what cannot work, and flags that are not known to be harmless.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        if self.timeout_ms == 0 || self.launch_timeout_ms == 0 {
            return Err(ToolError::new("A timeout must not be 0"));
        }
        for flag in &self.browser_args {
            if !flag.starts_with("--") || OURS.contains(&name(flag)) {
                return Err(ToolError::new(format!("{flag} cannot be given to the browser"))
                    .hint("This server sets it, or has an option of its own for it; see --help."));
            }
            if !self.allow_dangerous && !HARMLESS.contains(&name(flag)) {
                return Err(ToolError::new(format!("{} is not known to be harmless", name(flag)))
                    .hint("With --allow-dangerous (ALLOW_DANGEROUS=true) it is given to the browser nevertheless."));
            }
        }
        Ok(())
    }

    /// The rules about where the browser may connect.
    pub(crate) fn web(&self) -> WebOptions {
        WebOptions::default().with(|web| {
            web.reach = if self.allow_private_ips { Reach::Any } else { Reach::Public };
            web.proxies = false;
            web.web_ports_only = true;
            web.only_hosts = self.allow_hosts.clone();
            web.deny_hosts = self.deny_hosts.clone();
            web.trusted_hosts = self.allow_private_hosts.clone();
        })
    }
}

/// The name of a browser's flag.
fn name(flag: &str) -> &str {
    flag.split('=').next().unwrap_or(flag)
}

/// Flags that change neither what the browser runs nor where it connects.
const HARMLESS: &[&str] = &[
    "--accept-lang",
    "--disable-animations",
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--font-render-hinting",
    "--force-color-profile",
    "--force-dark-mode",
    "--force-device-scale-factor",
    "--force-prefers-reduced-motion",
    "--hide-scrollbars",
    "--incognito",
    "--lang",
    "--mute-audio",
    "--no-first-run",
    "--start-maximized",
    "--window-position",
    "--window-size",
];

/// Flags that confine the browser, or start it: nobody else may set these.
const OURS: &[&str] = &[
    "--enable-quic",
    "--force-webrtc-ip-handling-policy",
    "--host-resolver-rules",
    "--host-rules",
    "--no-proxy-server",
    "--origin-to-force-quic-on",
    "--proxy-auto-detect",
    "--proxy-bypass-list",
    "--proxy-pac-url",
    "--proxy-server",
    "--remote-debugging-address",
    "--remote-debugging-io-pipes",
    "--remote-debugging-pipe",
    "--remote-debugging-port",
    "--remote-debugging-socket-name",
    "--user-data-dir",
    "--webrtc-ip-handling-policy",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vars: &[(&str, &str)]) -> Result<Config, ToolError> {
        let get = |name: &str| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Config::from_env(Vars::new(&get))
    }

    #[test]
    fn the_variables_of_the_published_server_are_heeded() {
        let options = r#"{"headless": false, "executablePath": "/opt/chrome", "args": ["--lang=de", "--no-sandbox"],
            "defaultViewport": {"width": 1, "height": 2}, "timeout": 5, "devtools": true}"#;
        let config = of(&[("PUPPETEER_LAUNCH_OPTIONS", options), ("ALLOW_DANGEROUS", "true")]).unwrap();
        assert!(config.headed && config.no_sandbox && config.allow_dangerous);
        assert_eq!(config.executable.as_deref(), Some("/opt/chrome".as_ref()));
        assert_eq!((config.viewport, config.launch_timeout_ms), (Viewport { width: 1, height: 2 }, 5));
        assert_eq!(config.browser_args, ["--lang=de"]);
        assert_eq!(config.launch_options["devtools"], true);
        assert!(of(&[("DOCKER_CONTAINER", "true")]).unwrap().no_sandbox);
        assert!(!of(&[]).unwrap().headed, "no window unless it is asked for");
    }

    #[test]
    fn flags_that_run_programs_or_lead_around_the_rules_are_refused() {
        for flag in [
            "--renderer-cmd-prefix=/bin/sh",
            "--utility-cmd-prefix=x",
            "--gpu-launcher=x",
            "--load-extension=/x",
            "--disable-web-security",
            "--ignore-certificate-errors",
            "--single-process",
            "--no-sandbox",
        ] {
            let args = format!("{{\"args\": [\"{flag}\"]}}");
            let refused = of(&[("PUPPETEER_LAUNCH_OPTIONS", &args)]).unwrap_err();
            assert!(refused.message().contains("not known to be harmless"), "{refused}");
            assert!(of(&[("PUPPETEER_LAUNCH_OPTIONS", &args), ("ALLOW_DANGEROUS", "true")]).is_ok());
        }
        for flag in [
            "--remote-debugging-port=1",
            "--user-data-dir=/x",
            "--proxy-server=x",
            "--no-proxy-server",
            "--webrtc-ip-handling-policy=default",
            "x",
            "-x",
        ] {
            for dangerous in ["true", "false"] {
                let args = format!("{{\"args\": [\"{flag}\"]}}");
                let vars = [("PUPPETEER_LAUNCH_OPTIONS", &*args), ("ALLOW_DANGEROUS", dangerous)];
                assert!(of(&vars).unwrap_err().message().contains("cannot be given"), "{flag}");
            }
        }
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!("1280x720".parse(), Ok(Viewport { width: 1_280, height: 720 }));
        for bad in ["", "x", "1x", "0x5", "5x99999", "5", "-1x5", "5×5"] {
            assert!(bad.parse::<Viewport>().is_err(), "{bad}");
        }
    }
}
