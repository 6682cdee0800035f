//! The token of GitHub's own program, `gh`.

use linchpin_kit::{Secret, ToolError};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use url::Url;

/// How long `gh` may take: it may ask a keyring.
const WAIT: Duration = Duration::from_secs(10);

/// What `gh auth token` answers for the host of this API. The token of one host is never that of another.
pub(crate) fn token(program: &Path, api_url: Option<&str>) -> Result<Secret, ToolError> {
    let host = host_of(api_url);
    let failed = |why: String| {
        let told = ToolError::new(format!("gh auth token --hostname {host} {why}"));
        told.hint(format!("Log in with gh auth login --hostname {host}, or set GITHUB_PERSONAL_ACCESS_TOKEN."))
    };
    let mut command = Command::new(program);
    command
        .args(["auth", "token", "--hostname", &host])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(|e| failed(format!("does not start: {e}")))?;
    let end = Instant::now() + WAIT;
    let status = loop {
        match child.try_wait().map_err(|e| failed(format!("failed: {e}")))? {
            Some(status) => break status,
            None if Instant::now() < end => sleep(Duration::from_millis(10)),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(format!("did not end within {} s", WAIT.as_secs())));
            }
        }
    };
    let mut said = String::new();
    let read = child.stdout.take().map(|out| out.take(1 << 16).read_to_string(&mut said));
    let token = said.trim();
    match (read, status.success() && !token.is_empty()) {
        (Some(Ok(_)), true) => Ok(Secret::new(token)),
        _ => Err(failed("knows no token".to_owned())),
    }
}

/// The host as `gh` calls it: that of the pages, not of the API.
fn host_of(api_url: Option<&str>) -> String {
    let url = api_url.and_then(|url| Url::parse(url).ok());
    let host = url.as_ref().and_then(|url| {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Some(format!("{}{port}", url.host_str()?))
    });
    match host.as_deref() {
        None | Some("api.github.com") => "github.com".to_owned(),
        Some(cloud) if cloud.ends_with(".ghe.com") => cloud.strip_prefix("api.").unwrap_or(cloud).to_owned(),
        Some(host) => host.to_owned(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_token_is_that_of_the_host_and_what_fails_is_said() {
        let program = std::env::temp_dir().join(format!("linchpin-gh-{}", std::process::id()));
        // It knows one host.
        let script = "#!/bin/sh\n[ \"$*\" = 'auth token --hostname github.com' ] && echo gho_1 && exit 0\nexit 1\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        for url in [None, Some("https://api.github.com/")] {
            assert_eq!(token(&program, url).unwrap().reveal(), "gho_1");
        }
        let refused = token(&program, Some("https://evil.example:8443/api/v3")).unwrap_err().to_string();
        assert!(refused.starts_with("gh auth token --hostname evil.example:8443 knows no token"), "{refused}");
        std::fs::remove_file(&program).unwrap();
        assert!(token(&program, None).unwrap_err().to_string().contains("does not start"));
    }

    #[test]
    fn hosts_are_those_of_the_pages() {
        for (url, host) in [
            ("https://api.octocorp.ghe.com", "octocorp.ghe.com"),
            ("https://git.example.com/api/v3", "git.example.com"),
            ("http://127.0.0.1:3000/", "127.0.0.1:3000"),
        ] {
            assert_eq!(host_of(Some(url)), host);
        }
    }
}
