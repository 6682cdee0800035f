//! Getting a page: requests, robots.txt, the cache. Knows nothing of what is done with a page.

pub(crate) mod address;
pub(crate) mod cache;
mod codings;
pub(crate) mod page;
pub(crate) mod robots;
