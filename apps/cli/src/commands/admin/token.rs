//! `linchpin token`: the logins of an authorization server that last.

use super::store::{ago, with_store};
use crate::fail::Failure;
use crate::serve::store::StoreArgs;
use crate::show::out::{Out, count, note};
use clap::{Args, Subcommand};
use linchpin::issuer::Grant;
use serde_json::json;

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List active logins: user, client and scopes.
    #[command(before_help = "\
Examples:
  linchpin token list --store sqlite:auth.db
  linchpin token list --principal 'http://127.0.0.1:8932#ada' \\
    --store sqlite:auth.db
")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Only logins of this principal.
        #[arg(long, value_name = "PRINCIPAL")]
        principal: Option<String>,
        /// Only logins of this client.
        #[arg(long, value_name = "ID")]
        client: Option<String>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Revoke logins. A server that logs users in itself, with --auth login or a provider, rejects their tokens within a
    /// second. Servers behind `linchpin auth-server` accept access tokens until they expire, after 15 minutes or
    /// --access-life.
    #[command(before_help = "\
Examples:
  linchpin token revoke 'http://127.0.0.1:8932#ada' --store sqlite:auth.db
")]
    Revoke {
        /// The id of a login, or a principal to revoke all of its logins: see `linchpin token list`.
        which: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}

pub(crate) fn run(args: TokenArgs) -> Result<(), Failure> {
    match args.what {
        What::List { json, principal, client, store } => {
            let grants = with_store(&store.open_shared(true)?, async |admin| admin.grants().await)?;
            let wanted = |grant: &&Grant| {
                principal.as_ref().is_none_or(|one| *one == grant.principal)
                    && client.as_ref().is_none_or(|one| *one == grant.client)
            };
            list(&grants.iter().filter(wanted).collect::<Vec<_>>(), json)
        }
        What::Revoke { which, store } => {
            match with_store(&store.open_shared(true)?, async |admin| admin.revoke(&which).await)? {
                0 => Err(Failure::usage(format!("there is no login {which}")).hint("`linchpin token list` shows them")),
                ended => {
                    note(format!("{} ended", count(ended, "login")));
                    Ok(())
                }
            }
        }
    }
}

fn list(grants: &[&Grant], json: bool) -> Result<(), Failure> {
    let mut out = Out::new();
    if json {
        let grants = grants.iter().map(|grant| {
            json!({ "id": grant.id, "principal": grant.principal, "client": grant.client, "scopes": grant.scopes,
                    "resource": grant.resource, "since": grant.since })
        });
        out.json(&json!({ "logins": grants.collect::<Vec<_>>() }))?;
        return Ok(out.flush()?);
    }
    if grants.is_empty() {
        out.line("no logins")?;
    }
    for grant in grants {
        out.line(format!("{}  {}", out.style.bold(&grant.id), grant.principal))?;
        let scopes = if grant.scopes.is_empty() { String::new() } else { format!(": {}", grant.scopes) };
        out.line(format!("    {} at {}{scopes}; {}", grant.client, grant.resource, ago(grant.since)))?;
    }
    if !grants.is_empty() {
        out.summary(&[(grants.len(), "login")])?;
    }
    Ok(out.flush()?)
}
