//! The issuer as clients, persons and attackers see it.

mod attacks;
mod bound;
mod flow;
mod limited;
mod machines;
mod nodes;
mod stores;
mod support;
mod upstream;
