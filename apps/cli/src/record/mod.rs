//! Messages on record: traces, transcripts, replaying and comparing them, with secrets masked.

pub(crate) mod diff;
pub(crate) mod redact;
pub(crate) mod replay;
pub(crate) mod trace;
pub(crate) mod transcript;
