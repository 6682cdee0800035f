//! Skills: instructions for models and their files, as defined by an extension of the protocol.
//!
//! Specification: the extension `io.modelcontextprotocol/skills`.

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;

/// A skill, as `skills/list` and `skills/get` return it.
///
/// # Example
///
/// ```
/// use linchpin_types::skill::{Skill, SkillResources};
///
/// let json = r#"{
///     "uri": "skill://a/SKILL.md",
///     "frontmatter": { "name": "a", "description": "Does A." },
///     "resources": "dynamic"
/// }"#;
/// let skill: Skill = serde_json::from_str(json).unwrap();
/// assert_eq!((skill.name(), skill.description()), ("a", "Does A."));
/// assert_eq!(skill.resources, SkillResources::Dynamic);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Skill {
    /// The URI of `SKILL.md`.
    pub uri: String,
    /// The YAML front matter of `SKILL.md` as JSON, with `name` and `description`.
    pub frontmatter: Map<String, Value>,
    /// The files of the skill.
    pub resources: SkillResources,
}

impl Skill {
    /// Creates a skill whose `SKILL.md` has this URI and front matter.
    pub fn new(uri: impl Into<String>, frontmatter: Map<String, Value>, resources: SkillResources) -> Self {
        Skill { uri: uri.into(), frontmatter, resources }
    }

    /// Returns the name, or an empty string if the front matter has none. Several skills of a server may have the same
    /// name.
    pub fn name(&self) -> &str {
        self.frontmatter.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the description, or an empty string if the front matter has none.
    pub fn description(&self) -> &str {
        self.frontmatter.get("description").and_then(Value::as_str).unwrap_or_default()
    }
}

/// The files of a skill.
///
/// # Example
///
/// ```
/// use linchpin_types::skill::{SkillResource, SkillResources};
///
/// let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// let listed = SkillResources::Listed(vec![SkillResource::new("skill://a/SKILL.md", digest, 0)]);
/// assert!(serde_json::to_string(&listed).unwrap().starts_with(r#"[{"uri":"skill://a/SKILL.md","#));
/// assert_eq!(serde_json::to_string(&SkillResources::Dynamic).unwrap(), r#""dynamic""#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillResources {
    /// All files, including `SKILL.md`.
    Listed(Vec<SkillResource>),
    /// The files are generated on request and therefore not known in advance.
    Dynamic,
}

/// One file of a skill.
///
/// # Example
///
/// ```
/// use linchpin_types::skill::SkillResource;
///
/// let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// let file = SkillResource::new("skill://a/notes.md", digest, 0);
/// assert_eq!((file.uri.as_str(), file.size), ("skill://a/notes.md", 0));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkillResource {
    /// The URI.
    pub uri: String,
    /// The SHA-256 digest of the bytes: `sha256:` and 64 lower-case hexadecimal digits.
    pub digest: String,
    /// The size in bytes.
    pub size: u64,
}

impl SkillResource {
    /// Creates a file with this URI, digest and size in bytes.
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
