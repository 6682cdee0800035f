//! Administration of clients, logins and keys in the store of an issuer.

use crate::client::{Client, Kind, hash};
use crate::keys::Keys;
use crate::records::{Away, Records, Space};
use crate::revoked::TOPIC;
use crate::tokens::{Family, mark};
use linchpin_oauth::random_id;
use linchpin_store::{Clock as _, Store, SystemClock};
use std::fmt;
use std::time::Duration;

/// An administration interface to the store of an issuer: its clients, logins and keys.
///
/// Changes apply to running issuers immediately; new keys apply within a minute.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_issuer::AdminError> {
/// use linchpin_issuer::{Admin, Client};
/// use linchpin_store::Store;
///
/// let admin = Admin::new(&Store::memory());
/// admin.add_client(&Client::new("desktop").redirect_uri("http://127.0.0.1/callback")).await?;
/// assert_eq!(admin.clients().await?[0].id(), "desktop");
/// assert!(admin.remove_client("desktop").await?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Admin {
    records: Records,
}

/// The error of an [`Admin`] operation: the store is unavailable, or its records are sealed with another secret. The
/// cause is logged.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use linchpin_issuer::{Admin, AdminError, Store};
///
/// async fn log_out(admin: &Admin, principal: &str) -> Result<usize, AdminError> {
///     admin.revoke(principal).await.inspect_err(|error| eprintln!("cannot log out: {error}"))
/// }
///
/// let admin = Admin::new(&Store::memory());
/// assert_eq!(log_out(&admin, "https://login.example.com#ada").await, Ok(0));
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminError(());

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store of the authorization server cannot be read or written")
    }
}

impl std::error::Error for AdminError {}

impl From<Away> for AdminError {
    fn from(_: Away) -> AdminError {
        AdminError(())
    }
}

/// A persistent login: a user, a client, and its refresh tokens.
///
/// ```
/// # use linchpin_issuer::{Admin, AdminError};
/// async fn show(admin: &Admin) -> Result<(), AdminError> {
///     for grant in admin.grants().await? {
///         println!("{}: {} may use {}", grant.id, grant.client, grant.resource);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The identifier for [`Admin::revoke`]. It is not part of a token.
    pub id: String,
    /// The principal: issuer, `#`, subject.
    pub principal: String,
    /// The id of the client.
    pub client: String,
    /// The granted scopes, separated by spaces.
    pub scopes: String,
    /// The URL of the server that the tokens are for.
    pub resource: String,
    /// The time of the login, in seconds since 1970.
    pub since: u64,
}

const CLIENT_LIFE: Duration = Duration::from_secs(100 * 365 * 86_400);
const MOST: usize = 100_000;

impl Admin {
    /// Opens the store of an issuer.
    pub fn new(store: &Store) -> Admin {
        Admin { records: Records::new(store) }
    }

    /// Lists the clients that were added with [`Admin::add_client`] or by dynamic registration.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn clients(&self) -> Result<Vec<Client>, AdminError> {
        let all = self.records.all::<Client>(Space::Client, "", MOST).await?;
        Ok(all.into_iter().map(|(_, client)| client).collect())
    }

    /// Adds a client, or replaces the client with the same id, whose tokens remain valid.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn add_client(&self, client: &Client) -> Result<(), AdminError> {
        let name = hash(&client.id);
        let before = self.records.get::<Client>(Space::Client, &name).await?;
        let registration = before.map_or_else(random_id, |(before, _)| before.registration);
        let client = Client { kind: Kind::Known, registration, ..client.clone() };
        Ok(self.records.put(Space::Client, &name, &client, CLIENT_LIFE).await?)
    }

    /// Removes a client, and revokes its logins and tokens. Returns `false` if it does not exist.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn remove_client(&self, id: &str) -> Result<bool, AdminError> {
        let name = hash(id);
        let client = self.records.get::<Client>(Space::Client, &name).await?;
        let removed = self.records.delete(Space::Client, &name).await?;
        if let Some((client, _)) = client {
            self.end_mark(&client.mark()).await?;
            self.announce().await;
        }
        self.revoke_if(|grant| grant.client == id).await?;
        Ok(removed)
    }

    /// Lists the persistent logins.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn grants(&self) -> Result<Vec<Grant>, AdminError> {
        let all = self.records.all::<Family>(Space::Family, "", MOST).await?;
        Ok(all.iter().map(|(name, family)| described(name, family)).collect())
    }

    /// Revokes the login with this [`Grant::id`], or all logins of a principal, including their access tokens. Returns
    /// the number of revoked logins.
    ///
    /// Issuers with the same store reject the access tokens. Servers elsewhere that verify tokens with the issuer's
    /// keys accept them until they expire.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn revoke(&self, id_or_principal: &str) -> Result<usize, AdminError> {
        self.revoke_if(|grant| grant.id == id_or_principal || grant.principal == id_or_principal).await
    }

    async fn revoke_if(&self, which: impl Fn(&Grant) -> bool) -> Result<usize, AdminError> {
        let all = self.records.all::<Family>(Space::Family, "", MOST).await?;
        let mut ended = 0;
        for (name, _) in all.iter().filter(|(name, family)| which(&described(name, family))) {
            self.end_mark(&mark(name)).await?;
            self.records.delete(Space::Family, name).await?;
            ended += 1;
        }
        if ended > 0 {
            self.announce().await;
        }
        Ok(ended)
    }

    /// Ends the access tokens with a mark.
    async fn end_mark(&self, mark: &str) -> Result<(), Away> {
        // A day is the longest life of an access token.
        self.records.put(Space::Revoked, mark, &(), Duration::from_secs(86_520)).await
    }

    async fn announce(&self) {
        if self.records.store().topic().publish(TOPIC).await.is_err() {
            tracing::warn!("running servers will notice the revocation later");
        }
    }

    /// Creates a new signing key and returns its ID. The previous keys remain published until their tokens have
    /// expired.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn rotate_key(&self) -> Result<String, AdminError> {
        let now = SystemClock::new().now().as_secs();
        let ring = Keys::default().rotate(&self.records, now).await?;
        Ok(ring.signer(now).map(|signer| signer.jwk().thumbprint().to_string()).unwrap_or_default())
    }
}

fn described(name: &str, family: &Family) -> Grant {
    Grant {
        id: mark(name),
        principal: family.grant.person.principal(),
        client: family.grant.client.clone(),
        scopes: family.grant.scopes.clone(),
        resource: family.grant.resource.clone(),
        since: family.since,
    }
}
