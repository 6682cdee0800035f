//! The integration tests of `linchpin-sqlite`: one program, a module for each subject.

mod beside;
mod bounds;
mod common;
mod errors;
mod hostile;
mod import;
mod limits;
mod literal;
mod logic;
mod oracle;
mod published;
mod roots;
mod served;
mod tools;
