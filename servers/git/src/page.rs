//! Results that consist of a text and a list, paged together; and limits for short texts.

use linchpin_kit::{Budget, Cursor, PAGE_ITEMS_MAX, ToolError, clip, json_len};
use serde::Serialize;

/// Where a text and a list continue: the byte offset, [`ALL`] at the end of the text, and the item.
pub(crate) type Mark = Cursor<2>;

/// The text is complete.
pub(crate) const ALL: u64 = u64::MAX;

const START: Mark = Mark { at: [0, 0], of: 0 };

/// The position of a cursor; the beginning without one.
pub(crate) fn mark(cursor: Option<&str>) -> Result<Mark, ToolError> {
    Ok(Mark::parse(cursor)?.unwrap_or(START))
}

pub(crate) fn is_start(mark: Mark) -> bool {
    mark.at == START.at
}

/// The position, if `numbers` are unchanged and something follows: a change would shift everything after it.
pub(crate) fn still<T>(mark: Mark, numbers: &[u8], out: &[u8], all: &[T]) -> Result<Mark, ToolError> {
    let of = Mark::digest(numbers);
    if is_start(mark) {
        return Ok(Mark { of, ..mark });
    }
    let [shown, listed] = mark.at;
    let behind = listed > all.len() as u64 || shown > 0 && shown != ALL && out.is_empty();
    if behind { Err(Mark::outdated()) } else { mark.still(of) }
}

/// Part of a text and part of a list.
pub(crate) struct Both<T> {
    pub(crate) text: String,
    pub(crate) items: Vec<T>,
    /// Where the next page begins.
    pub(crate) next: Option<Mark>,
}

/// The part of a text and a list that fits, from `mark` on; `out` is the text from there, and incomplete if `cut`.
pub(crate) fn both<T: Serialize>(mark: Mark, out: &[u8], cut: bool, all: Vec<T>, budget: Budget) -> Both<T> {
    let [start, listed] = mark.at;
    let mut items: Vec<T> = all.into_iter().skip(usize::try_from(listed).unwrap_or(usize::MAX)).collect();
    let rest = items.len();
    let (mut text, mut taken) = budget.lines(out, 0, cut);
    // The list gets the space that the text leaves, and at least a third.
    let left = if cut || taken < out.len() { 0 } else { budget.json.saturating_sub(json_len(&text)) };
    let mut list = budget;
    list.json = left.max(budget.json / 3);
    items.truncate(list.count(&items).min(PAGE_ITEMS_MAX));
    let budget = budget.beside(0, items.iter().map(|item| json_len(item) + 1).sum());
    if budget.json < json_len(&text) {
        (text, taken) = budget.lines(out, 0, cut);
    }
    let all_shown = start == ALL || !cut && taken == out.len();
    if all_shown && text.ends_with('\n') {
        text.pop();
    }
    let shown = if all_shown { ALL } else { start + taken as u64 };
    let next = Mark { at: [shown, listed + items.len() as u64], of: mark.of };
    let next = (!all_shown || items.len() < rest).then_some(next);
    Both { text, items, next }
}

/// The beginning of a text that should be short: a first line, a user name.
pub(crate) fn brief(text: &str) -> String {
    clip(text, SHORT_BYTES).text.to_owned()
}

/// The names that fit, and a sentence that lists them.
pub(crate) fn few(mut names: Vec<String>, budget: Budget) -> (Vec<String>, String) {
    let fit = budget.count(&names).min(PAGE_ITEMS_MAX);
    let more = names.len() - fit;
    names.truncate(fit);
    let mut listed = names.join(", ");
    if more > 0 {
        listed.push_str(&format!(" and {more} more"));
    }
    (names, listed)
}

/// Maximum bytes of a text that should be short.
const SHORT_BYTES: usize = 500;

/// Maximum bytes read of a list that is then shown in pages.
pub(crate) const LIST_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Maximum bytes read of one field of a list item.
pub(crate) const PART_BYTES_MAX: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_and_a_list_are_shown_to_their_ends_together() {
        let text: String = (0..200).map(|n| format!("line {n}\n")).collect();
        let items: Vec<String> = (0..150).map(|n| format!("{n}{}", "x".repeat(n % 40))).collect();
        for (text, items) in
            [(text.as_str(), items.as_slice()), ("", &items), (&text, &[]), ("short", &items), ("", &[])]
        {
            for max in [100, 333, 1_000, 100_000] {
                let (mut at, mut all, mut listed) = (mark(None).unwrap(), String::new(), Vec::new());
                loop {
                    let start = if at.at[0] == ALL { text.len() } else { usize::try_from(at.at[0]).unwrap() };
                    let end = text.len().min(start + max);
                    let mut budget = Budget::of(max);
                    budget.json = max + 2;
                    let part = both(at, &text.as_bytes()[start..end], end < text.len(), items.to_vec(), budget);
                    assert!(part.text.len() <= max && json_len(&part.text) + json_len(&part.items) <= max + 8, "{max}");
                    all.push_str(&part.text);
                    listed.extend_from_slice(&part.items);
                    let Some(next) = part.next else { break };
                    assert_eq!(mark(Some(&next.to_string())).unwrap(), next);
                    assert_ne!(next, at, "it goes on");
                    at = next;
                }
                assert_eq!((all.trim_end(), listed.as_slice()), (text.trim_end(), items), "{max}");
            }
        }
    }
}
