//! `linchpin client`: the clients of an authorization server.

use super::store::with_store;
use crate::fail::Failure;
use crate::serve::store::StoreArgs;
use crate::show::out::{Out, note};
use clap::{Args, Subcommand, ValueHint};
use linchpin::guard::Secret;
use linchpin::issuer::Client;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Add a client, or replace the one with this id.
    #[command(before_help = "\
Examples:
  linchpin client add desktop --store sqlite:auth.db \\
    --redirect-uri http://127.0.0.1/callback
  linchpin client add nightly --store sqlite:auth.db \\
    --secret --own-scope files:read
")]
    Add(Add),
    /// List the clients: added, and dynamically registered.
    #[command(before_help = "\
Examples:
  linchpin client list --store sqlite:auth.db
")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Remove a client, and revoke its logins.
    #[command(before_help = "\
Examples:
  linchpin client remove desktop --store sqlite:auth.db
")]
    Remove {
        /// The client's id.
        id: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}

#[derive(Debug, Args)]
struct Add {
    /// The client's id.
    id: String,

    /// Name shown to users [default: the id].
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// Allowed redirect URI; a loopback one matches any port. May be repeated.
    #[arg(long, value_name = "URI")]
    redirect_uri: Vec<String>,

    /// Create a client secret, and print it once.
    #[arg(long, conflicts_with = "keys")]
    secret: bool,

    /// File with the client's public keys (JWKS), for private_key_jwt.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    keys: Option<PathBuf>,

    /// Scope for client credentials, without a user. May be repeated.
    #[arg(long, value_name = "SCOPE")]
    own_scope: Vec<String>,

    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn run(args: ClientArgs) -> Result<(), Failure> {
    match args.what {
        What::Add(add) => added(&add),
        What::List { json, store } => {
            let clients = with_store(&store.open_shared(true)?, async |admin| admin.clients().await)?;
            list(&clients, json)
        }
        What::Remove { id, store } => {
            match with_store(&store.open_shared(true)?, async |admin| admin.remove_client(&id).await)? {
                true => note(format!("removed the client {id}, and revoked its logins")),
                false => return Err(Failure::usage(format!("there is no client {id}")).hint("`linchpin client list`")),
            }
            Ok(())
        }
    }
}

fn added(add: &Add) -> Result<(), Failure> {
    if add.id.starts_with("https://") || add.id.starts_with("http://") {
        let why = "a client whose id is a URL has its metadata there, and need not be added";
        return Err(Failure::usage(why));
    }
    if add.redirect_uri.is_empty() && add.own_scope.is_empty() {
        return Err(Failure::usage("a client needs redirect URIs or scopes of its own")
            .hint("pass --redirect-uri for a client with users, --own-scope for one without users"));
    }
    if !add.own_scope.is_empty() && !add.secret && add.keys.is_none() {
        return Err(Failure::usage("a client without users must authenticate: add --secret or --keys FILE"));
    }
    let mut client = Client::new(&*add.id);
    if let Some(name) = &add.name {
        client = client.name(name);
    }
    for uri in &add.redirect_uri {
        client = client.redirect_uri(uri);
    }
    if !add.own_scope.is_empty() {
        client = client.client_credentials(&add.own_scope);
    }
    if let Some(file) = &add.keys {
        client = client.keys(keys(file)?);
    }
    let secret = add.secret.then(|| Secret::new(linchpin::issuer::random_text()));
    if let Some(secret) = &secret {
        client = client.secret(secret.clone());
    }
    with_store(&add.store.open_shared(false)?, async |admin| admin.add_client(&client).await)?;
    note(format!("added the client {}", add.id));
    if let Some(secret) = secret {
        note("its secret, shown only once:");
        let mut out = Out::new();
        out.line(secret.expose())?;
        out.flush()?;
    }
    Ok(())
}

fn keys(file: &Path) -> Result<Value, Failure> {
    let wrong = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|e| wrong(e.to_string()))?;
    let keys: Value = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    let usable = linchpin::guard::JwkSet::parse(text.as_bytes()).is_some_and(|set| set.iter().next().is_some());
    if !usable {
        return Err(wrong("it has no usable key; a key set is {\"keys\": [{\"kty\": \"EC\", …}]}".to_owned()));
    }
    if text.contains("\"d\"") {
        return Err(wrong("it has a private key: only the public halves belong here".to_owned()));
    }
    Ok(keys)
}

fn list(clients: &[Client], json: bool) -> Result<(), Failure> {
    let mut out = Out::new();
    if json {
        let clients = clients.iter().map(|client| {
            json!({ "id": client.id(), "name": client.shown_name(), "redirectUris": client.redirect_uris(),
                    "auth": client.auth_method(), "ownScopes": client.own_scopes(),
                    "selfRegistered": client.is_self_registered() })
        });
        out.json(&json!({ "clients": clients.collect::<Vec<_>>() }))?;
        return Ok(out.flush()?);
    }
    if clients.is_empty() {
        out.line("no clients; those with a metadata document are not kept")?;
    }
    for client in clients {
        let whose = if client.is_self_registered() { "; registered itself, not verified" } else { "" };
        out.line(out.style.bold(client.id()))?;
        out.line(format!("    {}; {}{whose}", client.shown_name(), client.auth_method()))?;
        for uri in client.redirect_uris() {
            out.line(format!("    {uri}"))?;
        }
        if let Some(scopes) = client.own_scopes() {
            out.line(format!("    for itself: {}", scopes.join(" ")))?;
        }
    }
    if !clients.is_empty() {
        out.summary(&[(clients.len(), "client")])?;
    }
    Ok(out.flush()?)
}
