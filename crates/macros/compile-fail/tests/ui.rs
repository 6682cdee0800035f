//! Compiler diagnostics for common mistakes: each file in `ui/` has one or more, with the texts that they must contain.

use std::path::Path;

/// The compiler version of `ui/*.stderr`; other versions phrase their messages differently.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn mistakes_are_refused_with_the_messages_kept_beside_them() {
    let rustc = std::process::Command::new("rustc").arg("--version").output().expect("rustc runs");
    let version = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let right = version.starts_with(COMPILER);
    assert!(right, "the messages are those of {COMPILER}x, which rust-toolchain.toml names, and this is {version}");
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

#[test]
fn every_message_names_its_cause() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut cases = 0;
    for file in std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path()) {
        if file.extension().is_none_or(|kind| kind != "rs") {
            continue;
        }
        let source = std::fs::read_to_string(&file).expect("a case");
        let said = std::fs::read_to_string(file.with_extension("stderr")).expect("its messages");
        let names: Vec<&str> = source.lines().filter_map(|line| line.strip_prefix("//@ names: ")).collect();
        assert!(!names.is_empty(), "{} names no cause", file.display());
        for name in names {
            assert!(said.contains(name), "{} does not say {name:?}:\n{said}", file.display());
        }
        cases += 1;
    }
    assert!(cases > 10, "{cases} cases");
}
