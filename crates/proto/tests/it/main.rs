//! The integration tests of `linchpin-proto`: one program, a module for each subject.

mod client_frames;
mod engine_properties;
mod opening;
#[path = "common/peer.rs"]
mod peer;
mod task_properties;
mod transcripts;
mod translate;
mod unfinished;
