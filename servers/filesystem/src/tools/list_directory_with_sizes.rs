//! `list_directory_with_sizes`: names with sizes, and totals.

use linchpin_kit::{Paging, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use unicode_normalization::UnicodeNormalization;

use crate::answer::Answer;
use crate::inner::Inner;
use crate::os::{self, Kind};
use crate::page::{ListMore, Page};
use crate::resolve::{Last, Place};

pub(crate) const LIST_DIRECTORY_WITH_SIZES: ToolSpec = ToolSpec::reads(
    "list_directory_with_sizes",
    "List Directory with Sizes",
    "list",
    "Lists a directory with sizes and totals, sorted by name or size.",
);

/// Arguments of `list_directory_with_sizes`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListDirectoryWithSizes {
    /// The directory to list.
    pub path: String,
    /// Default name
    #[serde(default)]
    pub sort_by: SortBy,
    /// From next_cursor
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The sort order of a listing with sizes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SortBy {
    /// By name, in collation order.
    #[default]
    #[schemars(description = "")]
    Name,
    /// Largest first.
    #[schemars(description = "")]
    Size,
}

impl Inner {
    pub(crate) fn list_with_sizes(&self, args: &ListDirectoryWithSizes) -> Result<Answer<ListMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let (fd, entries) = self.visible(&place)?;
        let mut sized: Vec<(String, Kind, u64)> = entries
            .into_iter()
            .map(|(name, kind)| {
                let size = self.size_of(&place, fd.as_fd(), &name, kind);
                (name.to_string_lossy().into_owned(), kind, size)
            })
            .collect();
        match args.sort_by {
            SortBy::Name => sized.sort_by(|a, b| compare_names(&a.0, &b.0)),
            SortBy::Size => sized.sort_by_key(|entry| std::cmp::Reverse(entry.2)),
        }
        let start = Paging::start(args.cursor.as_deref().filter(|cursor| !cursor.is_empty()), sized.len())?;
        let mut page = Page::new(self);
        let mut cut = None;
        for (index, (name, kind, size)) in sized.iter().enumerate().skip(start) {
            let (tag, size) = match kind {
                Kind::Dir => ("[DIR]", String::new()),
                _ => ("[FILE]", format!("{:>10}", size_text(*size))),
            };
            // Width in UTF-16 units, as in the published server.
            let pad = " ".repeat(30_usize.saturating_sub(name.encode_utf16().count()));
            if !page.push(&format!("{tag} {name}{pad} {size}")) {
                cut = Some(index.to_string());
                break;
            }
        }
        let files = sized.iter().filter(|(_, kind, _)| *kind != Kind::Dir);
        let (count, total) = files.fold((0_usize, 0_u64), |(count, total), file| (count + 1, total + file.2));
        let mut text = page.text;
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!(
            "\nTotal: {count} files, {} directories\nCombined size: {}",
            sized.len() - count,
            size_text(total)
        ));
        Ok(ListMore::cut(cut, 0).answer(text))
    }

    /// The size to show: for a symlink the size of its target if that is inside, 0 if it is missing, and its own size
    /// if it leads elsewhere, because nothing about the target may be revealed.
    fn size_of(&self, place: &Place, at: BorrowedFd<'_>, name: &OsStr, kind: Kind) -> u64 {
        let own = || os::meta(at, name).map_or(0, |meta| meta.size);
        if kind != Kind::Link {
            return own();
        }
        match place.path().join(name).to_str().map(|path| self.resolve(path, Last::Follow)) {
            Some(Ok(target)) => target.meta().map_or(0, |meta| meta.size),
            Some(Err(error)) if error.is_not_found() => 0,
            _ => own(),
        }
    }
}

/// A size in the format of the published server: bytes unchanged, larger units with two decimals.
fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let power = (bytes.ilog2() / 10).min(4);
    #[allow(clippy::cast_precision_loss)]
    let value = bytes as f64 / f64::from(1024_u32).powi(power.cast_signed());
    format!("{value:.2} {}", UNITS[power as usize - 1])
}

/// The collation order of the published server: symbols, digits, letters; case and accents only break ties, lower case
/// first.
fn compare_names(a: &str, b: &str) -> Ordering {
    const SIGNS: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
    let weight = |c: char| match c {
        c if c.is_whitespace() => (0, 0),
        c if c.is_ascii_digit() => (2, c as usize),
        c => match SIGNS.find(c) {
            Some(at) => (1, at),
            None => (3, c as usize),
        },
    };
    let key = |text: &str| -> Vec<(i32, usize)> {
        let plain = text.nfd().filter(|c| !unicode_normalization::char::is_combining_mark(*c));
        plain.flat_map(char::to_lowercase).map(weight).collect()
    };
    let small_first = |text: &str| text.nfd().map(|c| c.is_uppercase()).collect::<Vec<_>>();
    key(a)
        .cmp(&key(b))
        .then_with(|| a.to_lowercase().cmp(&b.to_lowercase()))
        .then_with(|| small_first(a).cmp(&small_first(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_published() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KB"),
            (1219, "1.19 KB"),
            (1024 * 1024 * 3 / 2, "1.50 MB"),
            (3 << 30, "3.00 GB"),
            (5 << 40, "5.00 TB"),
            (5 << 50, "5120.00 TB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
    }

    #[test]
    fn names_sort_as_people_expect() {
        let mut names = vec!["b", "a", "B", "_x", ".hid", "10", "é", "f", "A", "e", "x y", "xa"];
        names.sort_by(|a, b| compare_names(a, b));
        assert_eq!(names, ["_x", ".hid", "10", "a", "A", "b", "B", "e", "é", "f", "x y", "xa"]);
    }
}
