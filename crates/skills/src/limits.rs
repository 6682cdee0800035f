//! The bounds of skills: two of the specification, and those of a server's whole catalogue.

/// Maximum files of a skill, `SKILL.md` included.
pub const SKILL_FILES_MAX: usize = 512;
/// Maximum bytes of a skill's files together.
pub const SKILL_BYTES_MAX: u64 = 16 << 20;
/// Maximum skills that a server serves, or that a host lists.
pub const SKILLS_MAX: usize = 1_000;
/// Maximum bytes of all files that a server serves.
pub const ALL_BYTES_MAX: u64 = 64 << 20;
/// Maximum files and directories that a server looks at.
pub const ENTRIES_MAX: usize = 100_000;
/// Maximum depth of directories.
pub const DEPTH_MAX: usize = 32;
/// Maximum length of a skill's name.
pub const NAME_CHARS_MAX: usize = 64;
/// Maximum length of a skill's description.
pub const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// Maximum pages of a list that a host reads.
pub const PAGES_MAX: usize = 1_000;
