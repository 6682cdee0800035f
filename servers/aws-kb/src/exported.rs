//! Profiles that the AWS CLI reads for us: with a session of single sign-on, or with a role to assume.

use crate::Config;
use reqsign_aws_v4::{Credential, DefaultCredentialProvider};
use reqsign_core::{Context, Error, ProvideCredential, Result};
use serde_json::Value;

/// Where credentials come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// What the library looks through.
    Chain(Box<DefaultCredentialProvider>),
    /// `aws configure export-credentials` for this profile: the program knows how to refresh a session, to assume a role and to
    /// follow a chain of profiles.
    Exported(String),
}

/// Settings of profiles that only the AWS CLI makes credentials of.
pub(crate) const EXPORTED: [&str; 2] = ["sso_session", "role_arn"];

impl Source {
    pub(crate) fn exported(config: &Config) -> Source {
        Source::Exported(config.profile.clone().unwrap_or_else(|| "default".to_owned()))
    }
}

impl ProvideCredential for Source {
    type Credential = Credential;

    async fn provide_credential(&self, context: &Context) -> Result<Option<Credential>> {
        let profile = match self {
            Source::Chain(chain) => return chain.provide_credential(context).await,
            Source::Exported(profile) => profile,
        };
        let words = ["configure", "export-credentials", "--profile", profile, "--format", "process"];
        let output = context.command_execute("aws", &words).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status != 0 {
            let said: String = said.trim().chars().take(500).collect();
            return Err(Error::credential_invalid(format!("aws {}: {said}", words.join(" "))));
        }
        read(&output.stdout).map(Some)
    }
}

/// Reads the answer of a `credential_process`.
fn read(answer: &[u8]) -> Result<Credential> {
    let bad = || Error::credential_invalid("what `aws configure export-credentials` printed has no credentials");
    let answer: Value = serde_json::from_slice(answer).map_err(|_| bad())?;
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    let expires_in = text("Expiration").map(|time| time.parse()).transpose().map_err(|_| bad())?;
    Ok(Credential {
        access_key_id: text("AccessKeyId").ok_or_else(bad)?,
        secret_access_key: text("SecretAccessKey").ok_or_else(bad)?,
        session_token: text("SessionToken"),
        expires_in,
    })
}
