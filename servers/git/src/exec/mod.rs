//! Runs git: the only place that starts the program.
//!
//! Every call is a process of its own, in its own process group, with a fixed environment, a deadline and a bound on
//! what is read while it is read. Dropping the call (the client cancelled, or the deadline passed) asks the group to
//! end, so that git removes its lock files, and kills it two seconds later.

pub(crate) mod output;
pub(crate) mod program;
