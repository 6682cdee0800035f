//! Signs requests with AWS Signature Version 4.

use crate::Config;
use crate::chain;
use crate::exported::Source;
use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderValue, Request};
use linchpin::BoxFuture;
use linchpin_kit::{ErrorKind, ToolError};
use linchpin_rest::Authorize;
use reqsign_aws_v4::{Credential, RequestSigner};
use reqsign_core::Signer;
use sha2::{Digest, Sha256};

/// The signature of requests to Bedrock in one region. Credentials are looked for at the first request, and again before they
/// expire.
pub(crate) struct Signing(Signer<Credential>);

impl Signing {
    pub(crate) fn new(config: &Config, source: Source, region: &str) -> Result<Signing, ToolError> {
        let signer = RequestSigner::new("bedrock", region).with_standard_session_token();
        Ok(Signing(Signer::new(chain::context(config)?, source, signer)))
    }
}

impl Authorize for Signing {
    fn authorize<'a>(&'a self, request: &'a mut Request<Bytes>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let hash: String = Sha256::digest(request.body()).iter().map(|byte| format!("{byte:02x}")).collect();
            let (mut parts, body) = std::mem::take(request).into_parts();
            if let Ok(hash) = HeaderValue::from_str(&hash) {
                parts.headers.insert("x-amz-content-sha256", hash);
            }
            // As AWS's own clients do: proxies may change it.
            let agent = parts.headers.remove(USER_AGENT);
            let signed = self.0.sign(&mut parts, None).await;
            if let Some(agent) = agent {
                parts.headers.insert(USER_AGENT, agent);
            }
            *request = Request::from_parts(parts, body);
            signed.map_err(|error| no_credentials(&error))
        })
    }
}

/// The library's errors name providers and files, and hide secrets.
fn no_credentials(error: &reqsign_core::Error) -> ToolError {
    ToolError::new("No AWS credentials can be used").kind(ErrorKind::Denied).detail(error.to_string()).hint(
        "The operator must set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE after `aws sso login` (a profile with \
         sso_session or role_arn needs the AWS CLI, `aws`, in PATH); on EC2 add --instance-metadata.",
    )
}
