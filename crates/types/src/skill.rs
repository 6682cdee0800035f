//! Skills: instructions for models, with their files, as an extension of the protocol describes them.
//!
//! Specification: the extension `io.modelcontextprotocol/skills`.

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;

/// The entry of one skill, as `skills/list` and `skills/get` return it.
///
/// ```
/// use linchpin_types::skill::{Skill, SkillResources};
///
/// let json = r#"{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"Does A."},"resources":"dynamic"}"#;
/// let skill: Skill = serde_json::from_str(json).unwrap();
/// assert_eq!((skill.name(), &skill.resources), ("a", &SkillResources::Dynamic));
/// assert_eq!(serde_json::to_string(&skill).unwrap(), json);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Skill {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The YAML front matter of `SKILL.md` as JSON, with `name` and `description`.
    pub frontmatter: Map<String, Value>,
    /// Its files.
    pub resources: SkillResources,
}

impl Skill {
    /// The skill whose `SKILL.md` has this URI and front matter.
    pub fn new(uri: impl Into<String>, frontmatter: Map<String, Value>, resources: SkillResources) -> Self {
        Skill { uri: uri.into(), frontmatter, resources }
    }

    /// Its name; empty if the front matter has none. Several skills of a server may have one name.
    pub fn name(&self) -> &str {
        self.frontmatter.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// What it is for; empty if the front matter does not say.
    pub fn description(&self) -> &str {
        self.frontmatter.get("description").and_then(Value::as_str).unwrap_or_default()
    }
}

/// The files of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillResources {
    /// All of them, `SKILL.md` included.
    Listed(Vec<SkillResource>),
    /// They are made when they are asked for, so that nothing is known of them before.
    Dynamic,
}

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkillResource {
    /// Its URI.
    pub uri: String,
    /// The SHA-256 of its bytes: `sha256:` and 64 lower-case hexadecimal digits.
    pub digest: String,
    /// Its bytes.
    pub size: u64,
}

impl SkillResource {
    /// The file of this URI.
    pub fn new(uri: impl Into<String>, digest: impl Into<String>, size: u64) -> Self {
        SkillResource { uri: uri.into(), digest: digest.into(), size }
    }
}

const DYNAMIC: &str = "dynamic";

impl Serialize for SkillResources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SkillResources::Listed(files) => files.serialize(serializer),
            SkillResources::Dynamic => serializer.serialize_str(DYNAMIC),
        }
    }
}

impl<'de> Deserialize<'de> for SkillResources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Files;
        impl<'de> Visitor<'de> for Files {
            type Value = SkillResources;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of files, or \"dynamic\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SkillResources, E> {
                match text {
                    DYNAMIC => Ok(SkillResources::Dynamic),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SkillResources, A::Error> {
                let mut files = Vec::new();
                while let Some(file) = seq.next_element()? {
                    files.push(file);
                }
                Ok(SkillResources::Listed(files))
            }
        }
        deserializer.deserialize_any(Files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_an_array_or_the_word_dynamic_and_nothing_else() {
        for (json, fits) in [
            (r#""dynamic""#, true),
            ("[]", true),
            (r#"[{"uri":"skill://a/SKILL.md","digest":"sha256:00","size":1,"more":true}]"#, true),
            (r#""Dynamic""#, false),
            ("{}", false),
            ("null", false),
            (r#"[{"uri":"skill://a/SKILL.md","digest":"sha256:00"}]"#, false),
            (r#"[{"uri":"skill://a/SKILL.md","digest":"sha256:00","size":-1}]"#, false),
        ] {
            assert_eq!(serde_json::from_str::<SkillResources>(json).is_ok(), fits, "{json}");
        }
    }
}
