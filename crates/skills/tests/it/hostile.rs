//! Directories that break rules: what is left out, and that nothing leaves them.

use crate::common::{ask, connect, directory, server, skill_md, write};
use linchpin::skills::{Skills, SkillsExt};
use serde_json::json;

#[test]
fn a_skill_that_breaks_a_rule_is_left_out_and_named_and_the_others_are_not() {
    let good = skill_md("good", "");
    let at = |path: &str, content: &str| vec![(path.to_owned(), content.as_bytes().to_vec())];
    let with =
        |name: &str| vec![("bad/SKILL.md".to_owned(), skill_md("bad", "").into_bytes()), (name.to_owned(), vec![])];
    let mut many = with("bad/0");
    many.extend((1..512).map(|n| (format!("bad/{n}"), Vec::new())));
    let mut large = with("bad/0");
    large.push(("bad/large".to_owned(), vec![0; 17 << 20]));
    let long = format!("---\nname: bad\ndescription: {}\n---\n", "x".repeat(1_025));
    let bomb = skill_md("bad", "a: &a [x]\nb: [*a, *a]\n");
    for (files, expected) in [
        (at("bad/SKILL.md", &skill_md("other", "")), "the name `other` must be that of the directory, `bad`"),
        (at("Bad/SKILL.md", &skill_md("Bad", "")), "must be 1 to 64 of a-z"),
        (at("bad/SKILL.md", "---\nname: bad\n---\n"), "`description` is missing"),
        (at("bad/SKILL.md", "---\nname: bad\ndescription: 7\n---\n"), "`description` must be a text"),
        (at("bad/SKILL.md", "---\nname: bad\ndescription: ' '\n---\n"), "1 to 1024 characters"),
        (at("bad/SKILL.md", &long), "1 to 1024 characters"),
        (at("bad/SKILL.md", &skill_md("bad", "metadata:\n  io.modelcontextprotocol/x: 1\n")), "is reserved"),
        (at("bad/SKILL.md", &bomb), "SKILL.md, line 4: anchors"),
        (at("bad/SKILL.md", &skill_md("bad", "a: !!str 1\n")), "line 4: anchors, aliases and tags"),
        (at("bad/SKILL.md", &skill_md("bad", "name: bad\n")), "line 4: the key `name` is there twice"),
        (at("bad/SKILL.md", &skill_md("bad", "a: \0\n")), "line 4: control characters"),
        (at("bad/SKILL.md", "---\nname: bad\ndescription: x\n"), "has no end"),
        (with("bad/CON"), "the name of a device"),
        (with("bad/x/aux.txt"), "the name of a device"),
        (with("bad/../../etc/passwd"), "it is not a name"),
        (with("bad//x"), "it is not a name"),
        (with("bad/a\\b"), "a character that some systems do not allow"),
        (with("bad/u\u{308}.md"), "as one (NFC)"),
        (with("bad/skill.md"), "two files differ only in case"),
        (many, "it has more than 512 files"),
        (large, "larger than 16 MiB"),
    ] {
        let mut files = files;
        files.push(("good/SKILL.md".to_owned(), good.clone().into_bytes()));
        let skills = Skills::embedded(files);
        let problems = skills.problems();
        assert!(problems.len() == 1 && problems[0].contains(expected), "{expected}: {problems:?}");
        let names: Vec<_> = skills.entries().iter().map(|skill| skill.name().to_owned()).collect();
        assert_eq!(names, ["good"], "{expected}");
    }
    let files = format!("\u{feff}{}", skill_md("a", "")).replace('\n', "\r\n");
    assert_eq!(Skills::embedded([("a/SKILL.md", files)]).problems(), Vec::<String>::new());
}

#[test]
fn a_catalogue_has_at_most_a_thousand_skills_and_64_mib() {
    let many = Skills::embedded((0..1_001).map(|n| (format!("s{n}/SKILL.md"), skill_md(&format!("s{n}"), ""))));
    assert_eq!(many.entries().len(), 1_000);
    assert!(many.problems()[0].contains("more than 1,000 skills"), "{:?}", many.problems());
    let large = (0..5).flat_map(|n| {
        let name = format!("s{n}");
        [(format!("{name}/SKILL.md"), skill_md(&name, "").into_bytes()), (format!("{name}/x"), vec![0; 15 << 20])]
    });
    let large = Skills::embedded(large);
    assert_eq!(large.entries().len(), 4);
    assert!(large.problems()[0].contains("larger than 64 MiB"), "{:?}", large.problems());
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_outside_of_the_directory_and_nothing_hidden_is_served() {
    use std::os::unix::fs::symlink;
    let outside = directory(&[("secret", "secret"), ("evil/SKILL.md", &skill_md("evil", ""))]);
    let skills =
        directory(&[("a/SKILL.md", &skill_md("a", "")), ("a/.env", "secret"), (".git/SKILL.md", "x"), ("a/b", "b")]);
    let root = skills.path();
    symlink(outside.path().join("secret"), root.join("a/linked")).unwrap();
    symlink(outside.path().join("evil"), root.join("evil")).unwrap();
    symlink(root, root.join("a/circle")).unwrap();
    symlink("nowhere", root.join("a/broken")).unwrap();
    symlink("b", root.join("a/inside")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(root.join("a/pipe")).status();
    let served = Skills::dir(root).unwrap();
    let problems = served.problems();
    let named = |name: &str| problems.iter().any(|why| why.starts_with(name));
    for name in ["a/linked", "evil", "a/circle", "a/broken"] {
        assert!(named(name), "{name}: {problems:?}");
    }
    assert!(pipe.is_err() || named("a/pipe"), "{problems:?}");
    let c = connect(server(served.directories(true))).await;
    let entries = c.skills().await.unwrap();
    let files: Vec<_> = entries[0].load().await.unwrap().files();
    assert_eq!(files, ["SKILL.md", "b", "inside"]);
    for uri in [
        "skill://a/.env",
        "skill://a/linked",
        "skill://a/pipe",
        "skill://evil/SKILL.md",
        "skill://a/../../secret",
        "skill:///etc/passwd",
    ] {
        assert_eq!(ask(&c, "resources/read", json!({ "uri": uri })).await.unwrap_err().0, -32602, "{uri}");
    }
    // A file that becomes a link after it was listed is served as it was.
    std::fs::remove_file(root.join("a/b")).unwrap();
    symlink(outside.path().join("secret"), root.join("a/b")).unwrap();
    assert_eq!(c.read("skill://a/b").await.unwrap().text(), "b");
    write(root, "a/c", "c");
}
