#![doc = include_str!("../README.md")]
//!
//! This crate must not know what is kept in it: bytes go in and come out.
//!
//! Files import downwards, in this order:
//!
//! ```text
//! store
//! memory sqlite redis
//! redis/link
//! redis/start
//! redis/failure redis/scripts
//! sqlite/writer
//! sqlite/statements sqlite/file
//! rev
//! sealed
//! seal
//! secret
//! topic
//! hub
//! key
//! log bucket
//! kv lease
//! clock
//! error
//! ```

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

/// A future on the heap, as the traits of this crate return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
