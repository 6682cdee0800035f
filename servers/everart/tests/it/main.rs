//! The integration tests of `linchpin-everart`: one program, a module for each subject.

mod images;
mod published;
mod rows;
