//! The integration tests of `linchpin-rest`: one program, a module for each subject.

mod bases;
mod code;
mod engine;
mod github;
mod keys;
mod lists;
mod logs;
mod methods;
mod network;
mod scope;
mod slack;
mod times;
