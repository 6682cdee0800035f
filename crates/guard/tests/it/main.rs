//! Guards against hostile and honest senders. Rows have the numbers of the attacks in the design of authorization.

mod answers;
mod away;
mod differential;
mod introspected;
mod layered;
mod proofs;
mod support;
mod tokens;
