//! The tools, one file a group.

pub(crate) mod puppeteer;
