//! Fetches pages: requests, robots.txt, the cache. Does not depend on how pages are converted.

pub(crate) mod address;
pub(crate) mod cache;
mod codings;
pub(crate) mod page;
pub(crate) mod robots;
