//! The issuer as clients, users and attackers see it.

mod attacks;
mod bound;
mod flow;
mod limited;
mod machines;
mod nodes;
mod stores;
mod support;
mod upstream;
