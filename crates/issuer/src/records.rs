//! What is kept: typed records in spaces of the store, all of them sealed.
//!
//! Nothing here changes two records at once: each step of a grant is one compare-and-swap, so that a process may end between
//! any two of them.

use crate::answer::Refused;
use crate::limits::Rate;
use linchpin_store::{Delete, Error, Expect, Put, Rev, Store, Take};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Clients that registered, or were added by the operator.
    Client,
    /// Logins under way, by their random names.
    Transaction,
    /// Logins in browsers, by the hash of the cookie.
    Login,
    /// Codes, by their hash.
    Code,
    /// Devices that wait for a user, by the hash of the user's code.
    Device,
    /// Families of refresh tokens.
    Family,
    /// Ended families, until their last access token expires.
    Revoked,
    /// Ids that may be used once.
    Replay,
    /// Keys that sign.
    Key,
}

impl Space {
    fn name(self) -> &'static str {
        match self {
            Space::Client => "client",
            Space::Transaction => "transaction",
            Space::Login => "login",
            Space::Code => "code",
            Space::Device => "device",
            Space::Family => "family",
            Space::Revoked => "revoked",
            Space::Replay => "replay",
            Space::Key => "key",
        }
    }

    fn key(self, name: &str) -> String {
        format!("{}/{name}", self.name())
    }
}

/// The store did not answer, or what it has cannot be read. The cause is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Away;

impl From<Away> for Refused {
    fn from(_: Away) -> Refused {
        Refused::away()
    }
}

/// The records of an issuer.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    store: Store,
    /// What is counted may be lost with the machine's power: to wait for the disk would cost more than it saves.
    counted: Store,
}

impl Records {
    pub(crate) fn new(store: &Store) -> Records {
        Records { store: store.durable(), counted: store.clone() }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns a record and its revision. One that cannot be read is an error: it must not look like an absent one.
    pub(crate) async fn get<T: DeserializeOwned>(&self, space: Space, name: &str) -> Result<Option<(T, Rev)>, Away> {
        let Some(record) = self.store.sealed().get(&space.key(name)).await.map_err(away)? else { return Ok(None) };
        Ok(Some((read(&record.value)?, record.rev)))
    }

    /// Creates a record; `false` if there is one.
    pub(crate) async fn create<T: Serialize>(
        &self,
        space: Space,
        name: &str,
        value: &T,
        life: Duration,
    ) -> Result<bool, Away> {
        self.write(space, name, value, Expect::Absent, life).await.map(|put| put.is_stored())
    }

    /// Replaces a record of this revision, and returns the new one; `None` if somebody else was faster.
    pub(crate) async fn replace<T: Serialize>(
        &self,
        space: Space,
        name: &str,
        value: &T,
        rev: Rev,
        life: Duration,
    ) -> Result<Option<Rev>, Away> {
        match self.write(space, name, value, Expect::Rev(rev), life).await? {
            Put::Stored(rev) => Ok(Some(rev)),
            Put::Conflict(_) => Ok(None),
        }
    }

    /// Stores a record, whatever was there.
    pub(crate) async fn put<T: Serialize>(
        &self,
        space: Space,
        name: &str,
        value: &T,
        life: Duration,
    ) -> Result<(), Away> {
        self.write(space, name, value, Expect::Any, life).await.map(drop)
    }

    async fn write<T: Serialize>(
        &self,
        space: Space,
        name: &str,
        value: &T,
        expect: Expect,
        life: Duration,
    ) -> Result<Put, Away> {
        let value = serde_json::to_vec(value).map_err(|_| Away)?;
        self.store.sealed().put(&space.key(name), value.into(), expect, life).await.map_err(away)
    }

    /// Deletes a record; `false` if there was none.
    pub(crate) async fn delete(&self, space: Space, name: &str) -> Result<bool, Away> {
        let deleted = self.store.sealed().delete(&space.key(name), Expect::Any).await.map_err(away)?;
        Ok(deleted == Delete::Deleted)
    }

    /// Keeps a record for this time from now.
    pub(crate) async fn touch(&self, space: Space, name: &str, life: Duration) -> Result<(), Away> {
        self.store.sealed().touch(&[&space.key(name)], life).await.map_err(away)
    }

    /// Returns all records of a space whose names start with a prefix, `most` at most.
    pub(crate) async fn all<T: DeserializeOwned>(
        &self,
        space: Space,
        prefix: &str,
        most: usize,
    ) -> Result<Vec<(String, T)>, Away> {
        const PAGE: usize = 500;
        let prefix = space.key(prefix);
        let cut = space.name().len() + 1;
        let mut found: Vec<(String, T)> = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.store.sealed().scan(&prefix, after.as_deref(), PAGE).await.map_err(away)?;
            let full = page.len() == PAGE;
            for (key, record) in page {
                if found.len() == most {
                    return Ok(found);
                }
                found.push((key[cut..].to_owned(), read(&record.value)?));
                after = Some(key);
            }
            if !full {
                return Ok(found);
            }
        }
    }

    /// Returns the names of a space's records, `most` at most, whether or not they can be read.
    pub(crate) async fn names(&self, space: Space, most: usize) -> Result<Vec<String>, Away> {
        const PAGE: usize = 500;
        let prefix = space.key("");
        let mut found: Vec<String> = Vec::new();
        let mut after: Option<String> = None;
        while found.len() < most {
            let page = self.store.kv().scan(&prefix, after.as_deref(), PAGE).await.map_err(away)?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|(key, _)| key.clone());
            found.extend(page.into_iter().map(|(key, _)| key[prefix.len()..].to_owned()));
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// Counts something; the error says when it may happen again. A store that is away counts nothing.
    pub(crate) async fn take(&self, rate: Rate, of: &str) -> Result<(), Duration> {
        let limit = linchpin_store::Rate::new(rate.count, rate.window, rate.count);
        let Ok(limit) = limit else { return Ok(()) };
        // Names that strangers choose are hashed: keys are bounded.
        let key = format!("rate/{}/{}", rate.name, crate::client::hash(of));
        match self.counted.bucket().take(&key, 1, limit).await {
            Ok(Take::Ok) => Ok(()),
            Ok(Take::RetryAfter(after)) => Err(after),
            Err(error) => {
                tracing::warn!(%error, "the store cannot count requests");
                Ok(())
            }
        }
    }
}

fn read<T: DeserializeOwned>(value: &[u8]) -> Result<T, Away> {
    serde_json::from_slice(value).map_err(|error| {
        tracing::error!(%error, "a record of the issuer cannot be read");
        Away
    })
}

fn away(error: Error) -> Away {
    tracing::warn!(%error, "the store of the issuer does not answer");
    Away
}
