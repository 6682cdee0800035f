//! Diffs of texts, line by line.
//!
//! Their text must equal that of the published server's diff library, including which of two equally short edits is
//! chosen: of two paths that reach a diagonal, the one further into the old text, and for a tie the one that removes.

use crate::text;

/// Lines of context around a change.
const CONTEXT: usize = 4;

/// Maximum edit steps of the search for the shortest diff; beyond it the differing middle is shown as replaced.
const STEPS_MAX: usize = 1_500;

/// One step of a diff: a run of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Same,
    Remove,
    Add,
}

/// A diff as runs of lines.
pub(crate) type Runs = Vec<(Step, usize)>;

/// The stored form of `after`: unchanged lines keep their line ending, new lines get the file's prevailing one.
pub(crate) fn with_endings(original: &str, runs: &Runs, after: &str) -> String {
    if !original.contains("\r\n") {
        return after.to_owned();
    }
    let usual = if text::mostly_crlf(original) { "\r\n" } else { "\n" };
    let mut old = original.split_inclusive('\n');
    let mut new = after.split_inclusive('\n');
    let mut out = String::with_capacity(original.len().max(after.len()));
    for &(step, count) in runs {
        for _ in 0..count {
            match step {
                Step::Remove => {
                    old.next();
                }
                Step::Same => {
                    new.next();
                    out.push_str(old.next().unwrap_or_default());
                }
                Step::Add => {
                    let line = new.next().unwrap_or_default();
                    match line.strip_suffix('\n') {
                        Some(line) => out.extend([line, usual]),
                        None => out.push_str(line),
                    }
                }
            }
        }
    }
    out
}

/// The diff in a code fence longer than any run of backticks in it.
pub(crate) fn fenced(diff: &str) -> String {
    let longest = diff.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}diff\n{diff}{fence}\n\n")
}

/// The unified diff with its header, and its runs.
pub(crate) fn diff_text(path: &str, before: &str, after: &str) -> (String, Runs) {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let runs = shortest_edit(&old, &new);
    let rule = "=".repeat(67);
    let mut out = format!("Index: {path}\n{rule}\n--- {path}\toriginal\n+++ {path}\tmodified\n");
    let (mut old_at, mut new_at) = (0, 0);
    let mut hunk: Option<Hunk> = None;
    for (index, &(step, count)) in runs.iter().enumerate() {
        match step {
            Step::Same => {
                if let Some(mut open) = hunk.take() {
                    let last = index + 1 == runs.len();
                    if count <= CONTEXT * 2 && !last {
                        open.same(&old[old_at..old_at + count]);
                        hunk = Some(open);
                    } else {
                        open.same(&old[old_at..old_at + count.min(CONTEXT)]);
                        open.print(&mut out);
                    }
                }
                old_at += count;
                new_at += count;
            }
            changed => {
                let open = hunk.get_or_insert_with(|| {
                    let lead = if index > 0 { old_at.min(CONTEXT).min(runs[index - 1].1) } else { 0 };
                    let mut open = Hunk::new(old_at - lead, new_at - lead);
                    open.same(&old[old_at - lead..old_at]);
                    open
                });
                if changed == Step::Add {
                    open.add(&new[new_at..new_at + count]);
                    new_at += count;
                } else {
                    open.remove(&old[old_at..old_at + count]);
                    old_at += count;
                }
            }
        }
    }
    if let Some(open) = hunk {
        open.print(&mut out);
    }
    (out, runs)
}

/// A hunk under construction; starts count from 0.
struct Hunk {
    old_start: usize,
    new_start: usize,
    old_count: usize,
    new_count: usize,
    body: String,
}

impl Hunk {
    fn new(old_start: usize, new_start: usize) -> Self {
        Self { old_start, new_start, old_count: 0, new_count: 0, body: String::new() }
    }

    fn same(&mut self, lines: &[&str]) {
        self.lines(' ', lines);
        self.old_count += lines.len();
        self.new_count += lines.len();
    }

    fn remove(&mut self, lines: &[&str]) {
        self.lines('-', lines);
        self.old_count += lines.len();
    }

    fn add(&mut self, lines: &[&str]) {
        self.lines('+', lines);
        self.new_count += lines.len();
    }

    fn lines(&mut self, sign: char, lines: &[&str]) {
        for line in lines {
            self.body.push(sign);
            self.body.push_str(line);
            if !line.ends_with('\n') {
                self.body.push_str("\n\\ No newline at end of file\n");
            }
        }
    }

    fn print(self, out: &mut String) {
        // An empty side starts at the previous line.
        let start = |at: usize, count: usize| if count == 0 { at } else { at + 1 };
        let (old, new) = (start(self.old_start, self.old_count), start(self.new_start, self.new_count));
        out.push_str(&format!("@@ -{old},{} +{new},{} @@\n{}", self.old_count, self.new_count, self.body));
    }
}

/// A path through the edit graph: how far into the old text, and the last of its runs in the arena.
#[derive(Debug, Clone, Copy)]
struct Reach {
    old: isize,
    last: usize,
}

/// A run in the arena, linked to the one before it.
struct Link {
    step: Step,
    count: usize,
    before: usize,
}

const NONE: usize = usize::MAX;

/// The shortest edit as runs, greedily by the number of changed lines (Myers).
fn shortest_edit(old: &[&str], new: &[&str]) -> Runs {
    let (old_len, new_len) = (old.len() as isize, new.len() as isize);
    let mut arena: Vec<Link> = Vec::new();
    // Indexed by diagonal (old - new) plus `offset`.
    let steps = (old.len() + new.len()).min(STEPS_MAX);
    let offset = steps as isize + 1;
    let mut best: Vec<Option<Reach>> = vec![None; 2 * steps + 3];
    let mut first = Reach { old: -1, last: NONE };
    let common = slide(&mut first, &mut arena, old, new, 0);
    if first.old + 1 >= old_len && common + 1 >= new_len {
        return unwind(&arena, first.last);
    }
    best[offset as usize] = Some(first);
    let (mut lowest, mut highest) = (isize::MIN, isize::MAX);
    for length in 1..=steps as isize {
        let mut diagonal = lowest.max(-length);
        while diagonal <= highest.min(length) {
            let slot = (diagonal + offset) as usize;
            let remove = best[slot - 1].take();
            let add = best[slot + 1];
            let can_add = add.filter(|add| (0..new_len).contains(&(add.old - diagonal)));
            let can_remove = remove.filter(|remove| remove.old + 1 < old_len);
            let mut reach = match (can_remove, can_add) {
                (None, None) => {
                    best[slot] = None;
                    diagonal += 2;
                    continue;
                }
                (Some(remove), Some(add)) if remove.old < add.old => extend(&mut arena, add, Step::Add),
                (Some(remove), _) => extend(&mut arena, remove, Step::Remove),
                (None, Some(add)) => extend(&mut arena, add, Step::Add),
            };
            let new_at = slide(&mut reach, &mut arena, old, new, diagonal);
            let (old_done, new_done) = (reach.old + 1 >= old_len, new_at + 1 >= new_len);
            if old_done && new_done {
                return unwind(&arena, reach.last);
            }
            best[slot] = Some(reach);
            if old_done {
                highest = highest.min(diagonal - 1);
            }
            if new_done {
                lowest = lowest.max(diagonal + 1);
            }
            diagonal += 2;
        }
    }
    replaced_middle(old, new)
}

fn extend(arena: &mut Vec<Link>, from: Reach, step: Step) -> Reach {
    let old = if step == Step::Remove { from.old + 1 } else { from.old };
    let (count, before) = match arena.get(from.last) {
        Some(last) if last.step == step => (last.count + 1, last.before),
        _ => (1, from.last),
    };
    arena.push(Link { step, count, before });
    Reach { old, last: arena.len() - 1 }
}

/// Follows equal lines and returns the position in the new text.
fn slide(reach: &mut Reach, arena: &mut Vec<Link>, old: &[&str], new: &[&str], diagonal: isize) -> isize {
    let start = reach.old;
    let mut new_at = reach.old - diagonal;
    while let (Some(a), Some(b)) = (old.get((reach.old + 1) as usize), new.get((new_at + 1) as usize)) {
        if a != b {
            break;
        }
        reach.old += 1;
        new_at += 1;
    }
    if reach.old > start {
        arena.push(Link { step: Step::Same, count: (reach.old - start) as usize, before: reach.last });
        reach.last = arena.len() - 1;
    }
    new_at
}

fn unwind(arena: &[Link], mut last: usize) -> Runs {
    let mut runs = Runs::new();
    while let Some(link) = arena.get(last) {
        runs.push((link.step, link.count));
        last = link.before;
    }
    runs.reverse();
    runs
}

/// The fallback if the search for the shortest edit takes too long: everything between the common ends is replaced.
fn replaced_middle(old: &[&str], new: &[&str]) -> Runs {
    let front = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - front;
    let back = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let runs = [
        (Step::Same, front),
        (Step::Remove, old.len() - front - back),
        (Step::Add, new.len() - front - back),
        (Step::Same, back),
    ];
    runs.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_lead_from_the_old_text_to_the_new(old in "[ab\n]{0,40}", new in "[ab\n]{0,40}") {
            let (old_lines, new_lines): (Vec<_>, Vec<_>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
            for runs in [shortest_edit(&old_lines, &new_lines), replaced_middle(&old_lines, &new_lines)] {
                let (mut at, mut out) = (0, String::new());
                let mut fresh = new_lines.iter();
                for (step, count) in runs {
                    match step {
                        Step::Same => {
                            out.extend(old_lines[at..at + count].iter().copied());
                            at += count;
                            fresh.by_ref().take(count).for_each(drop);
                        }
                        Step::Remove => at += count,
                        Step::Add => out.extend(fresh.by_ref().take(count).copied()),
                    }
                }
                prop_assert_eq!(at, old_lines.len());
                prop_assert_eq!(&out, &new);
            }
        }

        #[test]
        fn untouched_lines_keep_their_endings(text in "([a-c]{1,2}(\r\n|\n)){1,12}") {
            let before = text::to_lf(&text);
            let after = before.replacen('a', "zz", 1);
            let (_, runs) = diff_text("x", &before, &after);
            prop_assert_eq!(with_endings(&text, &runs, &after).replace("\r\n", "\n"), after);
            let (_, same) = diff_text("x", &before, &before);
            prop_assert_eq!(with_endings(&text, &same, &before), text);
        }
    }
}
