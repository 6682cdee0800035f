//! The operating system: every file operation goes through here.

mod name;
mod temp;

pub(crate) use name::{
    Kind, Meta, OpenError, created, entries, make_dir, meta, meta_of, open_ambient, open_append, open_dir,
    open_dir_beneath, open_file, read_link, remove, rename_new,
};
pub(crate) use temp::{Temp, mode_after_write};
