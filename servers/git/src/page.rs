//! Results of a text and a list, which are shown together and go on together; and what is always short.

use linchpin_kit::{Budget, Cursor, PAGE_ITEMS_MAX, ToolError, clip, json_len};
use serde::Serialize;

/// Where a text and a list go on: the byte, [`ALL`] if all of it was shown, and the item.
pub(crate) type Mark = Cursor<2>;

/// Nothing of the text is left.
pub(crate) const ALL: u64 = u64::MAX;

const START: Mark = Mark { at: [0, 0], of: 0 };

/// The mark of a cursor; the beginning without one.
pub(crate) fn mark(cursor: Option<&str>) -> Result<Mark, ToolError> {
    Ok(Mark::parse(cursor)?.unwrap_or(START))
}

pub(crate) fn is_start(mark: Mark) -> bool {
    mark.at == START.at
}

/// The mark, if `numbers` are those of then and there is something to come: what changes moves all that comes after.
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
    /// Where it goes on.
    pub(crate) next: Option<Mark>,
}

/// What fits of a text and a list from `mark` on; `out` is the text from there, which goes on when it was `cut`.
pub(crate) fn both<T: Serialize>(mark: Mark, out: &[u8], cut: bool, all: Vec<T>, budget: Budget) -> Both<T> {
    let [start, listed] = mark.at;
    let mut items: Vec<T> = all.into_iter().skip(usize::try_from(listed).unwrap_or(usize::MAX)).collect();
    let rest = items.len();
    let (mut text, mut taken) = budget.lines(out, 0, cut);
    // The list has what the text leaves, and a third at least.
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

/// The beginning of what should be short: a first line, a name of a user.
pub(crate) fn brief(text: &str) -> String {
    clip(text, SHORT_BYTES).text.to_owned()
}

/// Names that fit, and how they are told in a sentence.
pub(crate) fn few(mut names: Vec<String>, budget: Budget) -> (Vec<String>, String) {
    let fit = budget.count(&names).min(PAGE_ITEMS_MAX);
    let more = names.len() - fit;
    names.truncate(fit);
    let mut told = names.join(", ");
    if more > 0 {
        told.push_str(&format!(" and {more} more"));
    }
    (names, told)
}

/// Bytes of what should be short.
const SHORT_BYTES: usize = 500;

/// Bytes that are read of a list that is then shown in pages.
pub(crate) const LIST_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes that are read of one part of an item of a list.
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
