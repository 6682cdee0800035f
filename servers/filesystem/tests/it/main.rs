//! The integration tests of `linchpin-filesystem`: one program, a module for each subject.

mod common;
mod confinement;
mod limits;
mod ours;
mod published;
mod roots;
mod served;
mod texts;
