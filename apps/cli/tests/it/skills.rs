//! Skills: served from a directory, listed, verified, printed and written.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const LINCHPIN: &str = env!("CARGO_BIN_EXE_linchpin");

/// The exit code, standard output and standard error of a command.
fn linchpin(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(LINCHPIN).args(args).env_remove("RUST_LOG").stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn write(root: &Path, path: &str, content: &str) {
    let place = root.join(path);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, content).unwrap();
}

#[test]
fn skills_of_a_directory_are_served_listed_verified_printed_and_written() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("skills");
    let refunds = "---\nname: refunds\ndescription: Refunds a customer.\n---\n# Refunds\n";
    write(&root, "refunds/SKILL.md", refunds);
    write(&root, "refunds/examples/email.md", "Dear customer\n");
    write(&root, "broken/SKILL.md", "no front matter");
    let directory = root.to_str().unwrap();
    let alone = ["--", LINCHPIN, "serve", "skills", directory];
    let beside = ["--", LINCHPIN, "serve", "time", "--skills", directory];
    let uri = "skill://refunds/SKILL.md";
    for server in [&alone[..], &beside] {
        let run = |args: &[&str]| linchpin(&[args, server].concat());
        assert!(run(&["skills", "--era", "legacy"]).1.contains(uri));
        let (code, out, err) = run(&["skills", "--verify"]);
        assert!(code == Some(0) && out.contains(uri) && out.contains("Refunds a customer."), "{out}{err}");
        assert!(!out.contains("broken"), "{out}");
        assert_eq!(run(&["skill", uri]).1, refunds);
        assert_eq!(run(&["skill", uri, "--file", "examples/email.md"]).1, "Dear customer\n");
        let (code, out, _) = run(&["skill", uri, "--json"]);
        assert!(code == Some(0) && out.contains("\"sha256:"), "{out}");
        for (args, code, expected) in [
            (&["skill", "skill://refund/SKILL.md"][..], 2, "did you mean skill://refunds/SKILL.md?"),
            (&["skill", uri, "--file", "../../etc/passwd"], 4, "is not a file of the skill"),
            (&["skill", uri, "--out", directory], 2, "is not empty"),
            // The name that other commands have for it.
            (&["skill", uri, "--save", directory], 2, "is not empty"),
            (&["skill"], 2, "expected one URI"),
        ] {
            let (found, out, err) = run(args);
            assert!(found == Some(code) && out.is_empty() && err.contains(expected), "{args:?}: {found:?} {out}{err}");
        }
    }
    let target = home.path().join("out");
    let (code, _, err) = linchpin(&[&["skill", uri, "--out", target.to_str().unwrap()], &alone[..]].concat());
    assert!(code == Some(0) && err.contains("2 verified files"), "{err}");
    assert_eq!(fs::read_to_string(target.join("examples/email.md")).unwrap(), "Dear customer\n");
    assert_eq!(fs::read_to_string(target.join("SKILL.md")).unwrap(), refunds);

    let (code, _, err) = linchpin(&["serve", "skills", "--strict", directory]);
    assert!(code == Some(1) || code == Some(2), "{code:?}");
    assert!(err.contains("skill broken: SKILL.md, line 1: the file must begin with front matter"), "{err}");
    let (code, _, err) = linchpin(&["serve", "skills", "/nonexistent"]);
    assert!(code == Some(2) && err.contains("cannot read the skills of /nonexistent"), "{err}");
    let (code, _, err) = linchpin(&["skills", "--", LINCHPIN, "serve", "time"]);
    assert!(code == Some(2) && err.contains("the server does not announce skills"), "{code:?} {err}");
}
