//! The promises of the primitives, which every store must keep, and what each store does when something goes wrong.

mod contract;
mod property;
#[cfg(all(feature = "redis", unix))]
mod redis;
mod seal;
#[cfg(feature = "sqlite")]
mod sqlite;
mod world;
