//! Settings of the user's own configuration for helpers and signing.

use crate::exec::output::lossy;
use crate::exec::program::args;
use crate::guard::{Guard, Reader};
use linchpin_kit::ToolError;

impl Reader<'_> {
    /// Credential helpers of the user's configuration: dropping the repository's drops these too, so they are added
    /// again.
    pub(crate) async fn own_helpers(self, guard: &mut Guard) -> Result<(), ToolError> {
        guard.settings.push(("credential.helper".into(), String::new()));
        let done = self
            .outside(
                args(&["config", "--global", "--includes", "-z", "--get-regexp", r"^credential\..*helper$"]),
                Vec::new(),
            )
            .await?;
        for record in done.out.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            if let Some((name, value)) = lossy(record).split_once('\n') {
                guard.settings.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(())
    }

    /// Replaces `named`, the signing settings of the repository, with those of the user's configuration.
    pub(crate) async fn own_signing(self, guard: &mut Guard, named: &[String]) -> Result<(), ToolError> {
        let asked = args(&["config", "--includes", "-z", "--get-regexp", r"^(user\.signingkey|gpg\..*)$"]);
        let done = self.outside(asked, Vec::new()).await?;
        let own = lossy(&done.out);
        let own = || own.split('\0').filter_map(|record| record.split_once('\n'));
        for name in named {
            let known = own().any(|(own, _)| own == name);
            match name.as_str() {
                "user.signingkey" if !known => {
                    return Err(ToolError::new(
                        "The signing key is set in the repository's configuration, but not in the user's",
                    )
                    .hint("Set user.signingKey in the user's git configuration."));
                }
                "gpg.format" => guard.set(name, "openpgp"),
                // Not used for signing.
                "gpg.ssh.allowedsignersfile" | "gpg.ssh.revocationfile" => guard.set(name, ""),
                _ => {}
            }
        }
        for (name, value) in own() {
            guard.set(name, value);
        }
        Ok(())
    }
}
