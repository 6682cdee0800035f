//! The integration tests of `linchpin-middleware`: one program, a module for each subject.

mod audit;
#[allow(unused_imports, reason = "these tests use a part")]
#[path = "../../../linchpin/tests/it/common/mod.rs"]
mod common;
mod metrics;
mod rate_limit;
