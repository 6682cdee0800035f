//! Examples of Linchpin, one folder a story. Run one with `cargo run -p linchpin-examples --example NAME`.
