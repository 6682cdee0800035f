//! Where an authorization server keeps clients, logins and keys: `--store`, `--key-file`.

use super::keyring;
use crate::fail::Failure;
use clap::{Args, ValueHint};
use linchpin::issuer::{Issuer, Secrets, Store};
use linchpin_kit::{Vars, redact_urls};
use std::path::{Path, PathBuf};

/// A store, and what it is sealed with.
#[derive(Debug, Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// Where clients, logins and keys are stored: memory (lost at exit), sqlite:FILE, or for several nodes
    /// redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], also rediss:// [env: LINCHPIN_STORE].
    #[arg(long, value_name = "WHERE", value_parser = stored)]
    store: Option<String>,

    /// File with the secret that encrypts the store (64 hexadecimal digits). By default one is created beside
    /// an SQLite file; Redis requires it, or LINCHPIN_KEY, the same for all nodes.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    key_file: Option<PathBuf>,

    /// With Redis, accept a server that may evict keys when its memory is full.
    #[cfg(feature = "redis")]
    #[arg(long)]
    redis_may_evict: bool,

    /// With Redis, the name of the master, if the URL is that of a Sentinel with several.
    #[cfg(feature = "redis")]
    #[arg(long, value_name = "NAME")]
    redis_master: Option<String>,
}

const EXPECTED: &str = "expected memory, sqlite:FILE or redis://HOST:PORT/DATABASE";

fn stored(text: &str) -> Result<String, String> {
    match text.strip_prefix("sqlite:") {
        Some(file) if !file.is_empty() => Ok(text.to_owned()),
        None if text == "memory" => Ok(text.to_owned()),
        None if is_redis(text) && cfg!(feature = "redis") => Ok(text.to_owned()),
        None if is_redis(text) => {
            Err("this program was built without Redis: build it with `--features redis`".to_owned())
        }
        _ => Err(EXPECTED.to_owned()),
    }
}

fn is_redis(text: &str) -> bool {
    ["redis://", "rediss://", "unix://"].iter().any(|scheme| text.starts_with(scheme))
}

impl StoreArgs {
    /// Whether one of the options was given.
    pub(super) fn is_given(&self) -> bool {
        self.store.is_some() || self.key_file.is_some() || self.is_for_redis()
    }

    #[cfg(feature = "redis")]
    fn is_for_redis(&self) -> bool {
        self.redis_may_evict || self.redis_master.is_some()
    }

    #[cfg(not(feature = "redis"))]
    fn is_for_redis(&self) -> bool {
        false
    }

    /// Refuses options that this store has no use for.
    fn check(&self, place: Option<&str>) -> Result<(), Failure> {
        if self.key_file.is_some() && place.is_none_or(|place| place == "memory") {
            let why = "--key-file is for a store that outlives the process: add --store sqlite:FILE or redis://HOST";
            return Err(Failure::usage(why));
        }
        if self.is_for_redis() && !place.is_some_and(is_redis) {
            let why = "--redis-may-evict and --redis-master are for a store in Redis: add --store redis://HOST";
            return Err(Failure::usage(why));
        }
        Ok(())
    }

    /// Gives an authorization server its store. Nodes that share one in Redis remember each other's DPoP proofs.
    pub(super) fn of(&self, issuer: Issuer) -> Result<Issuer, Failure> {
        let store = self.open_or_memory()?;
        let is_shared = store.kind() == "redis";
        let issuer = issuer.store(store);
        Ok(if is_shared { issuer.shared_replay() } else { issuer })
    }

    /// Opens the store of a server; without one, memory.
    fn open_or_memory(&self) -> Result<Store, Failure> {
        let place = self.place()?;
        self.check(place.as_deref())?;
        match place {
            Some(place) => self.open(&place, true),
            None => Ok(Store::builder().memory()),
        }
    }

    /// Opens the store of a server that may be running. `exists`: whether it must have been there before.
    pub(crate) fn open_shared(&self, exists: bool) -> Result<Store, Failure> {
        let missing = || {
            Failure::usage("this needs the store of the authorization server: --store sqlite:FILE or --store redis://…")
                .hint("the server must have the same --store and --key-file")
        };
        let place = self.place()?.filter(|place| place != "memory").ok_or_else(missing)?;
        self.check(Some(&place))?;
        match place.strip_prefix("sqlite:") {
            Some(file) if exists && !Path::new(file).is_file() => {
                Err(Failure::usage(format!("there is no store at {file}"))
                    .hint("a server started with --store creates it"))
            }
            // A new secret would open nothing in a store that is there: a file that is not is a mistake. Only a new store has none.
            Some(file) => self.open(&place, !exists && !Path::new(file).exists()),
            None => self.open(&place, false),
        }
    }

    fn place(&self) -> Result<Option<String>, Failure> {
        if self.store.is_some() {
            return Ok(self.store.clone());
        }
        let get = |name: &str| std::env::var(name).ok();
        let set = Vars::new(&get).keyring(&keyring).secret("LINCHPIN_STORE").map_err(Failure::usage)?;
        let place = set.map(|place| stored(place.reveal()));
        place.transpose().map_err(|why| Failure::usage(format!("LINCHPIN_STORE: {why}")))
    }

    /// `may_make`: whether the file of the secret is made if there is none.
    fn secrets(&self, may_make: bool) -> Result<Option<Secrets>, Failure> {
        if let Some(file) = &self.key_file {
            if !may_make && !file.exists() {
                return Err(Failure::usage(format!("there is no key file at {}", file.display()))
                    .hint("pass the --key-file that the server was started with"));
            }
            return Secrets::from_file_or_new(file).map(Some).map_err(Failure::usage);
        }
        let get = |name: &str| std::env::var(name).ok();
        let key = Vars::new(&get).keyring(&keyring).secret("LINCHPIN_KEY").map_err(Failure::usage)?;
        let secrets = key.map(|key| Secrets::parse(key.reveal()));
        secrets.transpose().map_err(|error| Failure::usage(format!("LINCHPIN_KEY: {error}")))
    }

    fn open(&self, place: &str, may_make: bool) -> Result<Store, Failure> {
        let mut builder = Store::builder();
        let secrets = self.secrets(may_make)?;
        let is_sealed = secrets.is_some();
        if let Some(secrets) = secrets {
            builder = builder.secrets(secrets);
        }
        match place.strip_prefix("sqlite:") {
            Some(file) => builder.sqlite(file).map_err(Failure::usage),
            None if place == "memory" => Ok(builder.memory()),
            None if !is_sealed => {
                Err(Failure::usage(format!("{} needs a secret that all nodes have", redact_urls(place)))
                    .hint("pass --key-file FILE: the first node creates it; copy it to the others"))
            }
            #[cfg(feature = "redis")]
            None => {
                let options = linchpin::issuer::RedisOptions::new(place);
                let options = options.with(|options| {
                    options.may_evict = self.redis_may_evict;
                    options.sentinel_master.clone_from(&self.redis_master);
                });
                let store = builder.redis(options).map_err(Failure::usage)?;
                reached(&store)?;
                Ok(store)
            }
            #[cfg(not(feature = "redis"))]
            None => Err(Failure::usage(EXPECTED)),
        }
    }
}

/// Asks a store whether it can be used, before anything is promised.
#[cfg(feature = "redis")]
fn reached(store: &Store) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::new)?;
    runtime.block_on(store.check()).map_err(|error| match error.is_transient() {
        true => Failure::new(error).hint("start the Redis server first, or correct --store"),
        false => Failure::usage(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_beside_a_server_make_no_key_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let args = |key: &str| StoreArgs {
            store: Some(format!("sqlite:{}", at("auth.db").display())),
            key_file: Some(at(key)),
            #[cfg(feature = "redis")]
            redis_may_evict: false,
            #[cfg(feature = "redis")]
            redis_master: None,
        };
        drop(args("key").open_or_memory().unwrap());
        for exists in [true, false] {
            assert!(args("key").open_shared(exists).is_ok());
            assert!(args("kye").open_shared(exists).is_err(), "mistyped");
            assert!(!at("kye").exists());
        }
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        for (text, is_one) in [
            ("memory", true),
            ("sqlite:auth.db", true),
            ("redis://127.0.0.1:6379/1", cfg!(feature = "redis")),
            ("rediss://u:p@redis.example.com", cfg!(feature = "redis")),
            ("sqlite:", false),
            ("auth.db", false),
            ("http://redis", false),
        ] {
            assert_eq!(stored(text).is_ok(), is_one, "{text}");
        }
    }
}
