//! Authorization servers of our own: running one, and what its operator does beside it.

mod audit;
mod client;
mod key;
mod store;
mod token;
mod user;

use crate::deferred::Deferred;
use crate::fail::Failure;
use crate::serve::auth_server;
use clap::Subcommand;

/// The commands of an authorization server and of its operator.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Run an authorization server for MCP servers elsewhere.
    #[command(before_help = "\
Examples:
  For one machine, with users in a file:
    linchpin user add ada
    linchpin auth-server --http 127.0.0.1:8932 --issuer http://127.0.0.1:8932 \\
      --resource http://127.0.0.1:8931/mcp --auth login:users.toml \\
      --store sqlite:auth.db
  The server that it protects:
    linchpin serve memory --http 127.0.0.1:8931 --auth http://127.0.0.1:8932
  Several nodes that log users in with GitHub and share a store in Redis:
    linchpin auth-server --http 0.0.0.0:8932 --issuer https://id.example.com \\
      --resource https://mcp.example.com/mcp --auth github --allow org:acme \\
      --store redis://redis.example.com --key-file auth.key
")]
    AuthServer(Deferred<auth_server::AuthServerArgs>),
    /// Manage the users in a file, for --auth login:USERS.toml.
    #[command(before_help = "\
Examples:
  linchpin user add ada --group admins
  linchpin user passwd ada --password-stdin < secret.txt
  linchpin user disable ada
")]
    User(Deferred<user::UserArgs>),
    /// Manage the clients of an authorization server.
    #[command(before_help = "\
Examples:
  An application with a redirect URI:
    export LINCHPIN_STORE=sqlite:auth.db
    linchpin client add desktop --redirect-uri http://127.0.0.1/callback
  A program without users; its secret is printed once:
    linchpin client add nightly --secret --own-scope files:read
")]
    Client(Deferred<client::ClientArgs>),
    /// List and revoke the logins of an authorization server.
    #[command(before_help = "\
Examples:
  linchpin token list --store sqlite:auth.db
  linchpin token revoke 'http://127.0.0.1:8932#ada' --store sqlite:auth.db
")]
    Token(Deferred<token::TokenArgs>),
    /// Rotate the signing keys of an authorization server.
    #[command(before_help = "\
Examples:
  linchpin key rotate --store sqlite:auth.db
")]
    Key(Deferred<key::KeyArgs>),
    /// Show an audit log: logins, tokens, calls, refusals.
    #[command(before_help = "\
Examples:
  linchpin audit audit.jsonl --last 20
  linchpin audit audit.jsonl --verdict refused --json
")]
    Audit(Deferred<audit::AuditArgs>),
}

impl AdminCommand {
    /// Whether the command serves until it is stopped.
    pub(crate) fn serves(&self) -> bool {
        matches!(self, AdminCommand::AuthServer(_))
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            AdminCommand::AuthServer(args) => auth_server::run(&args.into_inner()),
            AdminCommand::User(args) => user::run(args.into_inner()),
            AdminCommand::Client(args) => client::run(args.into_inner()),
            AdminCommand::Token(args) => token::run(args.into_inner()),
            AdminCommand::Key(args) => key::run(&args.into_inner()),
            AdminCommand::Audit(args) => audit::run(&args.into_inner()),
        }
    }
}
