//! The options of a Redis store, and the checks of its server.

use super::failure::Failure;
use crate::error::{Error, ErrorKind};
use ::redis::aio::MultiplexedConnection;
use ::redis::{Client, ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion, cmd};
use std::fmt;

/// Options of a store in Redis 6.2 or newer, or in Valkey.
///
/// ```
/// use linchpin_store::RedisOptions;
///
/// let options = RedisOptions::new("redis://127.0.0.1:6379/0").with(|options| options.tag = "staging".to_owned());
/// # let _ = options;
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisOptions {
    /// The URL of the server: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://…` for TLS (feature
    /// `redis-tls`), or `unix:///PATH`.
    ///
    /// For a cluster, it is the URL of any node; for servers that are monitored by a Sentinel, it is the URL of the
    /// Sentinel. The store finds the server with its keys, also after a failover, and uses the same user and password.
    pub url: String,
    /// The tag of the store, whose keys begin with `lp:{TAG}:`. Stores with different tags are independent of each
    /// other. Up to 64 letters, digits, `-`, `_` and `.`; `store` by default.
    pub tag: String,
    /// Whether to accept a server that may evict keys when its memory is full, which loses records. By default, such a
    /// server is rejected.
    pub may_evict: bool,
    /// The number of replicas that a write of [`Store::durable`](crate::Store::durable) must reach. 0 by default.
    pub wait_replicas: u32,
    /// The name of the master, if the Sentinel monitors several.
    pub sentinel_master: Option<String>,
}

impl RedisOptions {
    /// Creates default options for the server at this URL.
    pub fn new(url: impl Into<String>) -> RedisOptions {
        RedisOptions {
            url: url.into(),
            tag: "store".to_owned(),
            may_evict: false,
            wait_replicas: 0,
            sentinel_master: None,
        }
    }

    /// Returns these options with the changes that a closure makes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut RedisOptions)) -> RedisOptions {
        change(&mut self);
        self
    }

    /// How it is connected to.
    pub(super) fn connection(&self) -> Result<ConnectionInfo, Error> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        if !(1..=64).contains(&self.tag.len()) || !self.tag.bytes().all(plain) {
            return Err(config("the tag of a store in Redis is 1 to 64 letters, digits, `-`, `_` and `.`"));
        }
        // The URL may have a password, so no error repeats it.
        let wrong = "the URL of Redis is not valid: use redis://HOST:PORT/DATABASE, rediss://… or unix:///PATH";
        if self.url.starts_with("rediss:") && !cfg!(feature = "redis-tls") {
            return Err(config("this program is built without TLS for Redis (feature `redis-tls`): use redis://"));
        }
        let info = self.url.as_str().into_connection_info().map_err(|_| config(wrong))?;
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        let info = info.set_redis_settings(settings).set_tcp_settings(tcp);
        Client::open(info.clone()).map_err(|_| config(wrong))?;
        Ok(info)
    }
}

impl From<&str> for RedisOptions {
    fn from(url: &str) -> RedisOptions {
        RedisOptions::new(url)
    }
}

impl From<String> for RedisOptions {
    fn from(url: String) -> RedisOptions {
        RedisOptions::new(url)
    }
}

impl fmt::Debug for RedisOptions {
    /// Omits the URL, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions").field("tag", &self.tag).finish_non_exhaustive()
    }
}

/// What a server says of itself.
pub(super) struct Info(String);

impl Info {
    pub(super) async fn of(connection: &mut MultiplexedConnection) -> Result<Info, Failure> {
        Ok(Info(cmd("INFO").query_async(connection).await?))
    }

    /// The value of a line.
    pub(super) fn said(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    /// The masters that a Sentinel watches: their names and addresses.
    pub(super) fn masters(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.0.lines().filter(|line| line.starts_with("master") && line.contains(":name="));
        lines.filter_map(|line| {
            let value = |name: &str| line.trim().split([',', ':']).find_map(|pair| pair.strip_prefix(name));
            let address = line.split_once("address=")?.1.split(',').next()?;
            Some((value("name=")?, address.trim()))
        })
    }
}

/// Checks the version of a server, and that it keeps what it is given.
pub(super) fn check(info: &Info, options: &RedisOptions) -> Result<(), Failure> {
    let said = |name| info.said(name);
    // Valkey names a version of Redis too: 7.2.4.
    let version = said("redis_version").unwrap_or_default();
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let is_old = (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < (6, 2);
    if is_old {
        return Err(refused(format!("Redis {version} is too old: 6.2 is needed, or Valkey")));
    }
    match said("maxmemory_policy") {
        Some(policy) if policy != "noeviction" && !options.may_evict => Err(refused(format!(
            "Redis may evict what it keeps (maxmemory-policy {policy}): set it to noeviction, or say that it is meant"
        ))),
        _ => Ok(()),
    }
}

/// A server that cannot be used.
pub(super) fn refused(message: String) -> Failure {
    Failure { error: config(message), again: false, broken: true }
}

fn config(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Config, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_of_a_configuration_are_told_without_the_url() {
        let urls =
            ["", "http://h", "redis://", "rediss://u:s3cret@h", "redis://u:s3cret@h:port", "redis://u:s3cret@h/x"];
        for url in urls {
            if url.starts_with("rediss") && cfg!(feature = "redis-tls") {
                continue;
            }
            let error = RedisOptions::new(url).connection().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{url}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        for tag in ["", "a b", "{a}", "ä", &"x".repeat(65)] {
            let options = RedisOptions::new("redis://h").with(|options| options.tag = tag.to_owned());
            assert!(options.connection().is_err(), "{tag}");
        }
        let options = RedisOptions::new("redis://u:s3cret@h:6380/2");
        assert!(options.connection().is_ok());
        assert!(!format!("{options:?}").contains("s3cret"));
    }

    #[test]
    fn masters_of_a_sentinel_are_read() {
        let info = "redis_mode:sentinel\r\nsentinel_masters:2\r\n\
                    master0:name=a,status=ok,address=127.0.0.1:6379,slaves=1,sentinels=3\r\n\
                    master1:name=b,status=sdown,address=::1:6380,slaves=0,sentinels=3\r\n";
        let masters: Vec<(String, String)> =
            Info(info.to_owned()).masters().map(|(name, at)| (name.to_owned(), at.to_owned())).collect();
        assert_eq!(masters, [("a".into(), "127.0.0.1:6379".into()), ("b".into(), "::1:6380".into())]);
    }
}
