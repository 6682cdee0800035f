//! The fixture server of the official conformance suite, written with Linchpin's public API only.
//!
//! What it offers is dictated by the suite: names, texts and keys are the suite's. It must never hold protocol code of its
//! own, because then the suite would test this crate instead of Linchpin.

mod answers;
mod ask;
mod mrtr;
mod offers;
mod skills;
mod tasks;

use linchpin::prelude::*;

/// A PNG of one pixel, in base64.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// A WAV file without samples, in base64.
pub(crate) const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// The fixture server, ready to be served anywhere.
pub fn server() -> Server {
    let server = Server::new("linchpin-conformance", env!("CARGO_PKG_VERSION"))
        .title("Linchpin conformance fixtures")
        .instructions(
            "Fixtures of the official MCP conformance suite. Each tool, resource and prompt tests one thing.",
        );
    // The first tool listed must be one that succeeds without arguments: the suite's header tests call it.
    let server = answers::add(server);
    let server = ask::add(server);
    let server = mrtr::add(server);
    let server = tasks::add(server);
    offers::add(server).with(skills::skills())
}
