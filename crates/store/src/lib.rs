#![doc = include_str!("../README.md")]

// This crate must not interpret the values that it stores.
//
// Files import downwards, in this order:
//
// ```text
// store
// memory sqlite redis
// redis/link
// redis/place redis/start
// redis/failure redis/scripts
// sqlite/writer
// sqlite/statements sqlite/file
// rev
// sealed
// seal
// secret
// topic
// hub
// key
// log bucket
// kv lease
// clock
// error
// ```

mod bucket;
mod clock;
mod error;
mod hub;
mod key;
mod kv;
mod lease;
mod log;
mod memory;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "redis", feature = "sqlite"))]
mod rev;
mod seal;
mod sealed;
mod secret;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod topic;

pub use bucket::{Bucket, Rate, Take};
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{Error, ErrorKind};
pub use key::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use kv::{Delete, Expect, Kv, Put, Record, Rev};
pub use lease::{Claim, Fence, Lease};
pub use log::{Append, Log, Read};
#[cfg(feature = "redis")]
pub use redis::RedisOptions;
pub use seal::Seal;
pub use sealed::Sealed;
pub use secret::Secrets;
pub use store::{Builder, Store};
pub use topic::{Topic, Watch};

use std::future::Future;
use std::pin::Pin;

/// A boxed future, as returned by the traits of this crate.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{BoxFuture, Error, Store};
///
/// fn exists<'a>(store: &'a Store, key: &'a str) -> BoxFuture<'a, Result<bool, Error>> {
///     Box::pin(async move { Ok(store.kv().get(key).await?.is_some()) })
/// }
///
/// assert!(!exists(&Store::memory(), "code/7f").await?);
/// # Ok(())
/// # }
/// ```
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
