//! Nothing: `tests/ui.rs` holds mistakes in handlers against the compiler's messages for them.
