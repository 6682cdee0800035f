//! `linchpin auth`: logs in to servers, logs out, and shows stored logins; makes keys for servers, and checks what they say.

mod check;
mod key;

use crate::client::in_flags;
use crate::client::login::{LoginArgs, RegisteredArgs, StoredArgs};
use crate::client::session::{block_on, web_hint};
use crate::exit::Exit;
use crate::fail::Failure;
use crate::show::out::{Out, note};
use clap::{Args, Subcommand};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Args)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Log in to a server and store its tokens for all commands.
    #[command(before_help = "\
Examples:
  linchpin auth login https://example.com/mcp
  linchpin auth login https://example.com/mcp \\
    --scope files:read --scope files:write
")]
    Login(Where),
    /// Revoke and delete the tokens of a server.
    #[command(before_help = "\
Examples:
  linchpin auth logout https://example.com/mcp
")]
    Logout {
        /// The server's URL.
        url: String,
        #[command(flatten)]
        client: RegisteredArgs,
        #[command(flatten)]
        stored: StoredArgs,
    },
    /// Check a server's authorization as a client would, and report problems.
    #[command(before_help = "\
Examples:
  linchpin auth check https://example.com/mcp
")]
    Check(check::CheckArgs),
    /// Create keys for `linchpin serve --auth keys:FILE`.
    Key(key::KeyArgs),
    /// Show stored logins, without secrets.
    #[command(before_help = "\
Examples:
  linchpin auth status
  linchpin auth status --json | jq -r '.servers[].resource'
")]
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        stored: StoredArgs,
    },
}

#[derive(Debug, Args)]
struct Where {
    /// The server's URL.
    url: String,
    #[command(flatten)]
    login: LoginArgs,
}

pub(crate) fn run(args: AuthArgs) -> Result<(), Failure> {
    let refused = |e: &linchpin::auth::Error| {
        let failure = Failure::new(in_flags(&e.to_string())).exit(match e {
            e if e.is_setup() => Exit::Usage,
            e if e.is_unreachable() => Exit::Unreachable,
            _ => Exit::Unauthorized,
        });
        match () {
            () if e.is_registration() => failure.hint("pass a pre-registered client with --client-id ID"),
            () => web_hint(&e.to_string()).into_iter().fold(failure, Failure::hint),
        }
    };
    match args.what {
        What::Login(place) => block_on(async {
            let oauth = place.login.oauth(true)?;
            match oauth.login_to(&place.url).await {
                Ok(()) => note(format!("logged in to {}", place.url)),
                Err(e) if e.is_unprotected() => note(format!("{} does not require login", place.url)),
                Err(e) => return Err(refused(&e)),
            }
            Ok(())
        }),
        What::Logout { url, client, stored } => block_on(async {
            let login = LoginArgs { client, stored, ..LoginArgs::default() };
            let forgotten = login.oauth(false)?.logout(&url).await.map_err(|e| refused(&e))?;
            match forgotten {
                0 => note(format!("no stored login for {url}")),
                _ => note(format!("logged out of {url}")),
            }
            Ok(())
        }),
        What::Check(args) => block_on(check::run(&args)),
        What::Key(args) => key::run(args),
        What::Status { json, stored } => block_on(async {
            let login = LoginArgs { stored, ..LoginArgs::default() };
            let all = login.oauth(false)?.status().await.map_err(|e| Failure::new(&e))?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let mut out = Out::new();
            if json {
                let all: Vec<_> = all
                    .iter()
                    .map(|s| {
                        json!({
                            "resource": s.resource, "issuer": s.issuer, "clientId": s.client_id, "loggedIn": s.logged_in,
                            "expiresAt": s.expires_at, "refreshable": s.refreshable, "scope": s.scope, "dpop": s.dpop,
                        })
                    })
                    .collect();
                out.json(&json!({ "servers": all }))?;
                return Ok(out.flush()?);
            }
            if all.is_empty() {
                out.line("no stored logins; log in with `linchpin auth login URL`")?;
            }
            for s in &all {
                let state = match (s.logged_in, s.expires_at) {
                    (false, _) => "logged out".to_owned(),
                    (true, Some(at)) if at <= now && s.refreshable => "expired, refreshed on next use".to_owned(),
                    (true, Some(at)) if at <= now => "expired".to_owned(),
                    (true, Some(at)) => format!("logged in, expires in {} min", (at - now).div_ceil(60)),
                    (true, None) => "logged in".to_owned(),
                };
                out.line(out.style.bold(&s.resource))?;
                out.line(format!("    {state}; issuer {}", s.issuer))?;
                if let Some(scope) = &s.scope {
                    out.line(format!("    scope {scope}"))?;
                }
            }
            Ok(out.flush()?)
        }),
    }
}
