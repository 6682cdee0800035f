//! What a server says of its skills.

use crate::common::{ask, catalogue, connect, connect_as, directory, server, skill_md, write};
use linchpin::client::Change;
use linchpin::prelude::*;
use linchpin::skills::{SkillFiles, Skills, SkillsExt};
use linchpin::transport::IntoService;
use linchpin::types::version::Revision;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test]
async fn skills_are_listed_got_and_read_in_every_revision() {
    let skills = catalogue();
    for revision in Revision::ALL {
        let c = connect_as(server(Skills::dir(skills.path()).unwrap()), revision).await;
        assert!(c.has_skills(), "{revision:?}");
        let listed = ask(&c, "skills/list", json!({})).await.unwrap();
        let entries = listed["skills"].as_array().unwrap();
        let uris: Vec<_> = entries.iter().map(|entry| entry["uri"].as_str().unwrap()).collect();
        assert_eq!(uris, ["skill://acme/billing/refunds/SKILL.md", "skill://pdf-processing/SKILL.md"]);
        let pdf = &entries[1];
        let front = json!({ "name": "pdf-processing", "description": "What pdf-processing does.", "license": "MIT", "metadata": { "version": "2.1" } });
        assert_eq!(pdf["frontmatter"], front);
        let files: Vec<_> = pdf["resources"].as_array().unwrap().iter().map(|f| f["uri"].as_str().unwrap()).collect();
        let expected = ["SKILL.md", "assets/logo.png", "references/FORMS.md", "references/deep/x%20y.txt"];
        assert_eq!(files, expected.map(|file| format!("skill://pdf-processing/{file}")));
        let stateless = revision >= Revision::V2026_07_28;
        for hint in ["ttlMs", "cacheScope", "resultType"] {
            assert_eq!(listed.get(hint).is_some(), stateless, "{revision:?} {hint}");
        }
        let got = ask(&c, "skills/get", json!({ "uri": "skill://pdf-processing/SKILL.md" })).await.unwrap();
        assert_eq!(&got["skill"], pdf, "{revision:?}");
        assert_eq!((got.get("ttlMs").is_some(), got.get("nextCursor")), (stateless, None));

        let resources = c.resources().await.unwrap();
        let md = resources.iter().find(|r| r.uri == "skill://pdf-processing/SKILL.md").unwrap();
        assert_eq!((md.name.as_str(), md.mime_type.as_deref()), ("pdf-processing", Some("text/markdown")));
        assert_eq!((md.description.as_deref(), resources.len()), (Some("What pdf-processing does."), 2));
        let forms = c.read("skill://pdf-processing/references/FORMS.md").await.unwrap();
        assert_eq!((forms.text().as_str(), forms.contents[0].mime_type()), ("# Forms\n", Some("text/markdown")));
        assert_eq!(c.read("skill://pdf-processing/references/deep/x%20y.txt").await.unwrap().text(), "text");
        let logo = ask(&c, "resources/read", json!({ "uri": "skill://pdf-processing/assets/logo.png" })).await.unwrap();
        assert_eq!(
            (&logo["contents"][0]["blob"], &logo["contents"][0]["mimeType"]),
            (&json!("iVD/"), &json!("image/png"))
        );
        let missing = if stateless { -32602 } else { -32002 };
        for uri in ["skill://README.md", "skill://pdf-processing/other.md", "skill://pdf-processing/references"] {
            assert_eq!(ask(&c, "resources/read", json!({ "uri": uri })).await.unwrap_err().0, missing, "{uri}");
        }
        // Without the setting there are no directories.
        assert_eq!(ask(&c, "resources/directory/read", json!({ "uri": "skill://acme" })).await.unwrap_err().0, -32601);
    }
}

#[tokio::test]
async fn a_skill_is_got_by_its_uri_letter_for_letter() {
    let skills = catalogue();
    let c = connect(server(Skills::dir(skills.path()).unwrap())).await;
    for uri in [
        "skill://pdf-processing",
        "skill://pdf-processing/",
        "skill://pdf-processing/skill.md",
        "skill://PDF-processing/SKILL.md",
        "SKILL://pdf-processing/SKILL.md",
        "skill://pdf-processing%2FSKILL.md",
        "skill://pdf-processing/SKILL%2Emd",
        "skill://pdf-processing/SKILL.md?x",
        "skill://pdf-processing/SKILL.md#x",
        "skill://acme/../pdf-processing/SKILL.md",
        "skill://acme/%2e%2e/pdf-processing/SKILL.md",
        "skill://acme//billing/refunds/SKILL.md",
        "skill://pdf-processing/references/FORMS.md",
        "file:///etc/passwd",
        "",
    ] {
        let (code, why) = ask(&c, "skills/get", json!({ "uri": uri })).await.unwrap_err();
        assert!(code == -32602 && why.contains("no skill is served"), "{uri}: {why}");
    }
    assert_eq!(ask(&c, "skills/get", json!({})).await.unwrap_err().0, -32602);
    assert_eq!(ask(&c, "skills/list", json!({ "cursor": "nonsense" })).await.unwrap_err().0, -32602);
}

#[tokio::test]
async fn directories_are_listed_level_by_level() {
    let skills = catalogue();
    let c = connect(server(Skills::dir(skills.path()).unwrap().directories(true))).await;
    let settings = c.capabilities().extensions["io.modelcontextprotocol/skills"].get().to_owned();
    assert_eq!(settings, r#"{"directoryRead":true}"#);
    for (uri, expected) in [
        (
            "skill://pdf-processing",
            json!([["SKILL.md", "text/markdown"], ["assets", "inode/directory"], ["references", "inode/directory"]]),
        ),
        ("skill://pdf-processing/references", json!([["FORMS.md", "text/markdown"], ["deep", "inode/directory"]])),
        ("skill://acme", json!([["billing", "inode/directory"]])),
        ("skill://pdf-processing/references/deep", json!([["x y.txt", "text/plain"]])),
    ] {
        let children = c.skill_directory(uri).await.unwrap();
        let found: Vec<_> = children.iter().map(|child| json!([child.name, child.mime_type])).collect();
        assert_eq!(json!(found), expected, "{uri}");
        assert!(children.iter().all(|child| child.uri.starts_with(uri) && !child.uri.ends_with('/')));
    }
    // The specification does not demand an age of this result; the TypeScript SDK does.
    let listed = ask(&c, "resources/directory/read", json!({ "uri": "skill://acme" })).await.unwrap();
    assert!(listed["ttlMs"].is_u64() && listed["cacheScope"].is_string(), "{listed}");
    for uri in ["skill://pdf-processing/SKILL.md", "skill://pdf-processing/", "skill://other", "skill://"] {
        assert_eq!(ask(&c, "resources/directory/read", json!({ "uri": uri })).await.unwrap_err().0, -32602, "{uri}");
    }
}

#[tokio::test]
async fn long_lists_have_pages_and_every_entry_is_on_one() {
    let files = (0..250).map(|n| (format!("s{n}/SKILL.md"), skill_md(&format!("s{n}"), "")));
    let many = (0..130).map(|n| (format!("s0/f{n}"), String::new()));
    let c = connect(server(Skills::embedded(files.chain(many)).directories(true))).await;
    let (mut cursor, mut pages, mut uris) = (None, 0, BTreeSet::new());
    loop {
        let params = cursor.map_or(json!({}), |cursor: String| json!({ "cursor": cursor }));
        let page = ask(&c, "skills/list", params).await.unwrap();
        pages += 1;
        for entry in page["skills"].as_array().unwrap() {
            assert!(uris.insert(entry["uri"].as_str().unwrap().to_owned()), "{entry} is there twice");
        }
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((pages, uris.len()), (3, 250));
    // A cursor of a list that has changed goes on where it was.
    let page = ask(&c, "skills/list", json!({ "cursor": "skill://s98/SKILL.mda" })).await.unwrap();
    assert_eq!(page["skills"][0]["uri"], "skill://s99/SKILL.md");
    assert_eq!(c.skills().await.unwrap().len(), 250);
    assert_eq!(c.skill_directory("skill://s0").await.unwrap().len(), 131);
}

#[tokio::test]
async fn a_skill_inside_of_another_is_one_of_its_own_and_files_of_the_outer() {
    let skills = directory(&[
        ("outer/SKILL.md", &skill_md("outer", "")),
        ("outer/inner/SKILL.md", &skill_md("inner", "")),
        ("outer/inner/a.md", "a"),
    ]);
    let c = connect(server(Skills::dir(skills.path()).unwrap())).await;
    let listed = c.skills().await.unwrap();
    let files = |at: usize| serde_json::to_value(&listed[at].resources).unwrap().as_array().unwrap().len();
    assert_eq!((listed[0].name(), files(0), listed[1].name(), files(1)), ("outer", 3, "inner", 2));
    // The directory can be the skill itself.
    let c = connect(server(Skills::dir(skills.path().join("outer")).unwrap())).await;
    assert_eq!(c.skill("skill://outer/inner/SKILL.md").await.unwrap().name(), "inner");
}

#[tokio::test]
async fn skills_made_for_a_request_are_private_and_have_no_digests_unless_they_are_stable() {
    let make = |cx: Cx| async move {
        let who = cx.client().map(|client| client.name).unwrap_or_default();
        Ok(SkillFiles::new().file("desk/SKILL.md", skill_md("desk", &format!("for: {who}\n"))).file("desk/a", "a"))
    };
    for digests in [false, true] {
        let skills = Skills::dynamic(make).digests(digests).cache(1_000, linchpin::types::page::CacheScope::Public);
        let c = connect(server(skills.directories(true))).await;
        let list = ask(&c, "skills/list", json!({})).await.unwrap();
        assert_eq!((&list["cacheScope"], &list["skills"][0]["frontmatter"]["for"]), (&json!("private"), &json!("h")));
        assert_eq!(list["skills"][0]["resources"].is_array(), digests, "{list}");
        assert_eq!(c.read("skill://desk/a").await.unwrap().text(), "a");
        assert_eq!(c.resources().await.unwrap().len(), 0);
        let loaded = c.skills().await.unwrap()[0].load().await.unwrap();
        assert_eq!((loaded.verified(), loaded.resource_set().is_some()), (digests, digests));
        assert_eq!(loaded.file("a").await.unwrap(), "a");
        assert!(loaded.file("../desk/a").await.is_err() && loaded.file("%2e%2e/desk/a").await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_directory_is_served_whole_and_clients_are_told() {
    let skills = catalogue();
    let served = Skills::dir(skills.path()).unwrap();
    let (told, mut changes) = tokio::sync::mpsc::unbounded_channel();
    let client = Client::new("h", "1.0").on_change(move |change| drop(told.send(change)));
    let c = client.connect(in_process(server(served))).await.unwrap();
    let before = c.skills().await.unwrap();
    // Row 33: the skill changes after it was listed.
    write(skills.path(), "pdf-processing/SKILL.md", skill_md("pdf-processing", "license: Apache-2.0\n"));
    write(skills.path(), "pdf-processing/new.md", "new");
    std::fs::remove_dir_all(skills.path().join("acme")).unwrap();
    write(skills.path(), "more/SKILL.md", skill_md("more", ""));
    assert_eq!(changes.recv().await, Some(Change::Resources));
    let old = before.iter().find(|skill| skill.name() == "pdf-processing").unwrap();
    let loaded = old.load().await.unwrap();
    assert_eq!(loaded.entry().frontmatter["license"], "Apache-2.0");
    assert_eq!(loaded.file("new.md").await.unwrap(), "new");
    let names: Vec<_> = c.skills().await.unwrap().iter().map(|skill| skill.name().to_owned()).collect();
    assert_eq!(names, ["more", "pdf-processing"]);
    let listed: Vec<_> = c.resources().await.unwrap().into_iter().map(|r| r.name).collect();
    assert_eq!(listed.len(), 2, "{listed:?}");
    let gone = before.iter().find(|skill| skill.name() == "refunds").unwrap().load().await.unwrap_err();
    assert!(gone.to_string().contains("not found"), "{gone}");
}

#[tokio::test(start_paused = true)]
async fn a_first_request_that_is_given_up_leaves_the_directory_watched() {
    let skills = catalogue();
    let served = Skills::dir(skills.path()).unwrap();
    let (told, mut changes) = tokio::sync::mpsc::unbounded_channel();
    let client = Client::new("h", "1.0").on_change(move |change| drop(told.send(change)));
    let c = client.connect(in_process(server(served))).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    write(skills.path(), "more/SKILL.md", skill_md("more", ""));
    // While it waits for the directory to settle.
    let given_up = tokio::time::timeout(Duration::from_millis(1), c.skills()).await;
    assert!(given_up.is_err());
    let changed = tokio::time::timeout(Duration::from_secs(60), changes.recv()).await;
    assert_eq!(changed.expect("it is watched"), Some(Change::Resources));
}

#[tokio::test]
async fn a_server_that_is_gone_does_not_watch_and_holds_nothing() {
    let skills = catalogue();
    let served = Skills::dir(skills.path()).unwrap();
    let shared = std::sync::Arc::new(());
    let kept = std::sync::Arc::downgrade(&shared);
    let server = server(served).state(shared).tool("held", |_: &std::sync::Arc<()>| "x");
    let c = Client::new("h", "1.0").connect(in_process(server)).await.unwrap();
    assert_eq!(ask(&c, "skills/list", json!({})).await.unwrap()["skills"].as_array().map(Vec::len), Some(2));
    c.close().await;
    drop(c);
    for _ in 0..100 {
        if kept.upgrade().is_none() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the server is still there");
}

#[test]
fn a_start_is_stopped_where_skills_must_be_right() {
    let refused =
        |skills: Skills| server(skills).into_shared().err().map(|error| error.to_string()).unwrap_or_default();
    let bad = [("a/SKILL.md", skill_md("b", ""))];
    assert!(refused(Skills::embedded(bad.clone())).contains("skill a: the name `b` must be that of the directory"));
    assert_eq!(refused(Skills::embedded(bad).strict(false)), "");
    let broken = directory(&[("a/SKILL.md", "no front matter")]);
    assert_eq!(refused(Skills::dir(broken.path()).unwrap()), "");
    let strict = refused(Skills::dir(broken.path()).unwrap().strict(true));
    assert!(strict.contains("skill a: SKILL.md, line 1: the file must begin with front matter"), "{strict}");
    assert!(Skills::dir(broken.path().join("none")).is_err() && Skills::dir(broken.path().join("a/SKILL.md")).is_err());
    let twice = server(Skills::embedded([("a/SKILL.md", skill_md("a", ""))]));
    let twice = twice.with(Skills::embedded([("b/SKILL.md", skill_md("b", ""))])).into_shared();
    assert!(twice.err().unwrap().to_string().contains("added twice"));
    let none = Skills::embedded(Vec::<(String, Value)>::new().into_iter().map(|(path, _)| (path, "")));
    assert!(none.entries().is_empty() && none.problems().is_empty());
}
