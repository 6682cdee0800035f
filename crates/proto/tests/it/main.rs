//! The integration tests of `linchpin-proto`: one program, a module for each subject.

#[path = "common/peer.rs"]
mod peer;
mod client_frames;
mod engine_properties;
mod opening;
mod transcripts;
