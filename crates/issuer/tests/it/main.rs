//! The issuer as clients, persons and attackers see it.

mod attacks;
mod flow;
mod support;
mod upstream;
