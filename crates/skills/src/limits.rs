//! Limits on skills: two of the specification, and those of all skills of a server.

/// Maximum number of files of a skill, including `SKILL.md`.
pub const SKILL_FILES_MAX: usize = 512;
/// Maximum total size of a skill's files in bytes.
pub const SKILL_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of skills that a server serves, or that a host lists.
pub const SKILLS_MAX: usize = 1_000;
/// Maximum total size of all files that a server serves, in bytes.
pub const ALL_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of files and directories that a server visits.
pub const ENTRIES_MAX: usize = 100_000;
/// Maximum nesting depth of directories.
pub const DEPTH_MAX: usize = 32;
/// Maximum length of a skill's name in characters.
pub const NAME_CHARS_MAX: usize = 64;
/// Maximum length of a skill's description in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// Maximum number of pages of a list that a host reads.
pub const PAGES_MAX: usize = 1_000;
