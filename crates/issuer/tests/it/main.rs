//! The issuer as clients, persons and attackers see it.

mod attacks;
mod bound;
mod flow;
mod limited;
mod nodes;
mod machines;
mod stores;
mod support;
mod upstream;
