//! Secrets of servers in the keyring of the operating system: `<NAME>_KEYRING=SERVICE/ACCOUNT`.

use linchpin_kit::{Secret, ToolError};

/// Returns the secret of this account of this service.
#[cfg(feature = "keyring")]
pub(crate) fn keyring(service: &str, account: &str) -> Result<Secret, ToolError> {
    match linchpin::auth::store::keyring_password(service, account) {
        Ok(Some(secret)) => Ok(Secret::new(secret.expose())),
        Ok(None) => {
            Err(ToolError::new(format!("the keyring has no entry of the service {service} for the account {account}"))
                .hint(format!("Store it: {}", stored(service, account))))
        }
        Err(error) => Err(ToolError::new(error.to_string())),
    }
}

/// Returns the command line of the operating system's own tool, which prompts for the secret.
#[cfg(feature = "keyring")]
fn stored(service: &str, account: &str) -> String {
    let words = if cfg!(target_os = "macos") {
        vec!["security", "add-generic-password", "-s", service, "-a", account, "-w"]
    } else if cfg!(windows) {
        // Entry names consist of both.
        return format!("cmdkey /generic:{account}.{service} /user:{account} /pass");
    } else {
        vec!["secret-tool", "store", "--label=linchpin", "service", service, "username", account]
    };
    crate::shell::joined(&words.into_iter().map(str::to_owned).collect::<Vec<_>>())
}

/// Built without keyring support: always an error.
#[cfg(not(feature = "keyring"))]
pub(crate) fn keyring(_service: &str, _account: &str) -> Result<Secret, ToolError> {
    Err(ToolError::new("this program was built without keyring support")
        .hint("Build it with `--features keyring`, or set the variable that ends in _FILE to a file with the secret."))
}
