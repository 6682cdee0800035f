//! What is checked of an entry before anything of the skill is read.

use crate::digest;
use crate::limits::{SKILL_BYTES_MAX, SKILL_FILES_MAX};
use crate::path;
use linchpin_types::skill::{Skill, SkillResources};
use serde_json::Value;
use std::collections::HashSet;

/// Checks an entry of a server. The error says what is wrong with it.
pub(crate) fn check(skill: &Skill) -> Result<(), String> {
    let root = path::root_of(&skill.uri).ok_or("its URI does not end with /SKILL.md below a directory")?;
    if skill.uri.contains(['?', '#', '\\']) {
        return Err("its URI has a query or a fragment".to_owned());
    }
    for member in ["name", "description"] {
        if !skill.frontmatter.get(member).is_some_and(Value::is_string) {
            return Err(format!("its front matter has no text `{member}`"));
        }
    }
    let last = root.rsplit('/').next().unwrap_or_default();
    if !path::is_skill_name(skill.name()) {
        return Err(format!("its name {:?} is not 1 to 64 of a-z, 0-9 and single hyphens inside", clip(skill.name())));
    }
    if last != skill.name() {
        return Err(format!("its name is `{}`, and its directory `{}`", skill.name(), clip(last)));
    }
    let SkillResources::Listed(files) = &skill.resources else { return Ok(()) };
    if files.len() > SKILL_FILES_MAX {
        return Err(format!("it has more than {SKILL_FILES_MAX} files"));
    }
    let (mut bytes, mut seen) = (0_u64, HashSet::new());
    for file in files {
        let at = clip(&file.uri);
        if path::below(root, &file.uri).is_none() {
            return Err(format!("{at} is not below its directory"));
        }
        if !digest::is_digest(&file.digest) {
            return Err(format!("the digest of {at} is malformed"));
        }
        if !seen.insert(file.uri.as_str()) {
            return Err(format!("{at} is there twice"));
        }
        bytes = bytes.saturating_add(file.size);
    }
    if !seen.contains(skill.uri.as_str()) {
        return Err("SKILL.md is not one of its files".to_owned());
    }
    match bytes > SKILL_BYTES_MAX {
        true => Err(format!("its files are larger than {} MiB together", SKILL_BYTES_MAX >> 20)),
        false => Ok(()),
    }
}

/// Shortens what a server wrote before it is quoted.
pub(crate) fn clip(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn an_entry_that_breaks_a_rule_is_refused_before_anything_is_read() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let file = |uri: &str, size: u64| json!({ "uri": uri, "digest": digest, "size": size });
        let entry = |uri: &str, name: &str, resources: Value| json!({ "uri": uri, "frontmatter": { "name": name, "description": "d" }, "resources": resources });
        let own = || file("skill://x/a/SKILL.md", 1);
        let with = |more: Value| entry("skill://x/a/SKILL.md", "a", json!([own(), more]));
        let many = (0..512).map(|n| file(&format!("skill://x/a/{n}"), 0)).chain([own()]).collect();
        let bad_digest = json!({ "uri": "skill://x/a/b", "digest": digest.to_uppercase(), "size": 1 });
        for (entry, expected) in [
            (entry("skill://x/a/SKILL.md", "a", json!([own()])), ""),
            (entry("github://o/r/a/SKILL.md", "a", json!("dynamic")), ""),
            (with(file("skill://x/a/b%20c/d", 3)), ""),
            (entry("skill://x/a/skill.md", "a", json!([])), "does not end with /SKILL.md"),
            (entry("skill://SKILL.md", "a", json!("dynamic")), "does not end with /SKILL.md"),
            (entry("skill://x/a?b/SKILL.md", "a?b", json!("dynamic")), "a query or a fragment"),
            (entry("skill://x/a/SKILL.md", "b", json!([own()])), "its name is `b`, and its directory `a`"),
            (entry("skill://x/A/SKILL.md", "A", json!([own()])), "is not 1 to 64"),
            (
                json!({ "uri": "skill://a/SKILL.md", "frontmatter": { "name": "a" }, "resources": "dynamic" }),
                "no text `description`",
            ),
            (
                json!({ "uri": "skill://a/SKILL.md", "frontmatter": { "name": 1, "description": "d" }, "resources": "dynamic" }),
                "no text `name`",
            ),
            (entry("skill://x/a/SKILL.md", "a", json!([])), "SKILL.md is not one of its files"),
            (with(own()), "is there twice"),
            (with(file("skill://x/ab", 1)), "is not below its directory"),
            (with(file("skill://x/a/../b", 1)), "is not below its directory"),
            (with(file("skill://x/a/%2e%2e/b", 1)), "is not below its directory"),
            (with(file("other://x/a/b", 1)), "is not below its directory"),
            (with(bad_digest), "the digest of skill://x/a/b is malformed"),
            (with(file("skill://x/a/b", 16 << 20)), "larger than 16 MiB"),
            (with(file("skill://x/a/b", u64::MAX)), "larger than 16 MiB"),
            (entry("skill://x/a/SKILL.md", "a", Value::Array(many)), "more than 512 files"),
        ] {
            let skill: Skill = serde_json::from_value(entry.clone()).unwrap();
            let why = check(&skill).err().unwrap_or_default();
            assert!(if expected.is_empty() { why.is_empty() } else { why.contains(expected) }, "{expected}: {why}");
        }
    }
}
