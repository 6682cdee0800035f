//! Skills for the Model Context Protocol (the extension `io.modelcontextprotocol/skills`): directories of instructions
//! and files that a server provides to models.
//!
//! Use it through the crate `linchpin`, feature `skills`. A server adds a directory of skills in one line:
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! use linchpin::prelude::*;
//! use linchpin::skills::Skills;
//!
//! let server = Server::new("billing", "1.0").with(Skills::dir("skills")?);
//! # let _ = server; Ok(()) }
//! ```
//!
//! * [`Skills`] serves skills.
//! * [`SkillsExt`], [`RemoteSkill`] and [`LoadedSkill`] list, load and verify them in a host.
//! * [`FrontMatter`] reads the front matter of a `SKILL.md`.
//! * [`limits`] contains the limits.

// This crate owns the format of skills, snapshots of their files, digests and verification. It must never know sockets, eras,
// the model, or what a host does with a skill.
//
// Files import downwards, in this order:
//
// ```text
// list  serve
// load  source
// request  snapshot
// entry  files
// digest  front_matter  path
// error  limits
// ```

#![cfg_attr(not(any(feature = "serve", feature = "host")), allow(dead_code, reason = "only the format is used"))]

#[cfg(any(feature = "serve", feature = "host"))]
mod digest;
#[cfg(feature = "host")]
mod entry;
#[cfg(feature = "host")]
mod error;
#[cfg(feature = "serve")]
mod files;
mod front_matter;
pub mod limits;
#[cfg(feature = "host")]
mod list;
#[cfg(feature = "host")]
mod load;
mod path;
#[cfg(feature = "host")]
mod request;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod snapshot;
#[cfg(feature = "serve")]
mod source;

#[cfg(feature = "host")]
pub use error::{Error, Result};
#[cfg(feature = "serve")]
pub use files::SkillFiles;
pub use front_matter::{FRONT_MATTER_BYTES_MAX, FRONT_MATTER_DEPTH_MAX, FrontMatter, FrontMatterError};
pub use linchpin_types::skill::{Skill, SkillResource, SkillResources};
#[cfg(feature = "host")]
pub use list::{RemoteSkill, SkillsExt};
#[cfg(feature = "host")]
pub use load::LoadedSkill;
pub use path::refused_name;
#[cfg(feature = "serve")]
pub use serve::Skills;
