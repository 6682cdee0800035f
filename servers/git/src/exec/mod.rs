//! Runs git; nothing else starts the program.
//!
//! Every run is a process in its own process group, with a fixed environment, a deadline, and a limit on its output
//! that is enforced while reading. Dropping the call (cancelled, or past its deadline) terminates the group, so that
//! git can remove its lock files, and kills it two seconds later.

pub(crate) mod output;
pub(crate) mod program;
