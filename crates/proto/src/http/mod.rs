//! The rules of the HTTP transports, without HTTP: how values are written in headers, how SSE frames are written and
//! read, and which POST is answered how.
//!
//! [`headers`] is about single values, [`ask`] about what a client sends, [`sse`] about bytes of event streams, [`rules`] decides.

pub mod ask;
pub mod headers;
pub mod rules;
pub mod sse;
