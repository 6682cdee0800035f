//! The issuer as clients, persons and attackers see it.

mod attacks;
mod bound;
mod flow;
mod limited;
mod nodes;
mod support;
mod upstream;
