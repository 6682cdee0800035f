//! The rules of the HTTP transports, without HTTP: how values are written in headers, how SSE frames are written and
//! read, and which POST is answered how.
//!
//! [`headers`] is about single values, [`request_headers`] about what a client sends, [`sse`] about bytes of event streams, [`rules`] decides.

pub mod headers;
pub mod request_headers;
pub mod rules;
pub mod sse;
