//! The integration tests of `linchpin-git`: one program, a module for each subject.

mod common;
mod confinement;
mod cut;
mod damaged;
mod going_on;
mod held;
mod hostile;
mod huge;
mod limits;
mod markers;
mod ours;
mod pairs;
mod partial;
mod published;
mod published_texts;
mod remote;
mod remote_trust;
mod served;
mod signing;
mod status;
