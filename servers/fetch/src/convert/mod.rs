//! Converts the bytes of a page to text. The page determines how much time, memory and stack that takes, so `worker`
//! runs it in a separate process.
//!
//! Files import downwards, in this order: `worker`; `job`; `feed`, `pdf`; `html`; `plain`; `markdown`; `kind`, `marks`;
//! `charset`.

mod charset;
pub(crate) mod feed;
pub(crate) mod html;
pub(crate) mod job;
mod kind;
mod markdown;
mod marks;
#[cfg(feature = "pdf")]
pub(crate) mod pdf;
mod plain;
pub(crate) mod worker;
