//! Secrets of servers that the operator keeps in the keyring of the operating system: `<NAME>_KEYRING=SERVICE/ACCOUNT`.

use linchpin_kit::{Fault, Secret};

/// What is kept for this account of this service.
#[cfg(feature = "keyring")]
pub(crate) fn keyring(service: &str, account: &str) -> Result<Secret, Fault> {
    match linchpin::auth::store::keyring_password(service, account) {
        Ok(Some(secret)) => Ok(Secret::new(secret.expose())),
        Ok(None) => {
            Err(Fault::new(format!("the keyring has no entry of the service {service} for the account {account}"))
                .hint(format!("Keep it there: {}", stored(service, account))))
        }
        Err(error) => Err(Fault::new(error.to_string())),
    }
}

/// The words of the operating system's own tool; it asks for the secret.
#[cfg(feature = "keyring")]
fn stored(service: &str, account: &str) -> String {
    let words = if cfg!(target_os = "macos") {
        vec!["security", "add-generic-password", "-s", service, "-a", account, "-w"]
    } else if cfg!(windows) {
        // The name of an entry there is made of both.
        return format!("cmdkey /generic:{account}.{service} /user:{account} /pass");
    } else {
        vec!["secret-tool", "store", "--label=linchpin", "service", service, "username", account]
    };
    crate::shell::joined(&words.into_iter().map(str::to_owned).collect::<Vec<_>>())
}

/// This program has none.
#[cfg(not(feature = "keyring"))]
pub(crate) fn keyring(_service: &str, _account: &str) -> Result<Secret, Fault> {
    Err(Fault::new("this program was built without keyrings")
        .hint("Build it with `--features keyring`, or name a file with the secret in the variable that ends in _FILE."))
}
