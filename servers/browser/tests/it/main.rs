//! The server with a real browser, against sites on this machine.
//!
//! Ignored where nobody says that there is a browser: `cargo xtask test browser` installs one. Few tests, because each starts
//! a browser.

#![cfg(unix)]

mod common;

mod apps;
mod clients;
mod hangs;
mod originals;
mod published;
mod safety;
mod snapshots;
