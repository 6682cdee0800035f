//! What changed between two snapshots.

use super::text::Line;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// What changed, as lines; or nothing, if a whole snapshot says it better.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Diff {
    /// Nothing did.
    Same,
    /// These lines: `+` new, `~` changed, `-` removed, and where they are.
    Changes(String),
    /// Too much.
    Everything,
}

/// Most bytes of changes.
const CHANGES_BYTES_MAX: usize = 10_000;

/// Compares two snapshots.
pub(crate) fn diff(old: &[Line], new: &[Line]) -> Diff {
    if old == new {
        return Diff::Same;
    }
    let steps = steps(old, new);
    let text = shown(old, new, &steps);
    let whole: usize = new.iter().map(|line| line.text.len() + 2 * line.depth.min(30) + 1).sum();
    match text.len() {
        changed if changed > CHANGES_BYTES_MAX || changed > 400 && 10 * changed > 6 * whole => Diff::Everything,
        _ => Diff::Changes(text),
    }
}

/// A line of the old or the new snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Keep(usize),
    Add(usize),
    Remove(usize),
}

/// Lines that occur once on both sides are the anchors; between them everything is different, apart from what begins and
/// ends alike.
fn steps(old: &[Line], new: &[Line]) -> Vec<Step> {
    let mut steps = Vec::new();
    // Ranges of both sides, the last first.
    let mut todo = vec![(0..old.len(), 0..new.len(), true)];
    while let Some((mut left, mut right, anchored)) = todo.pop() {
        while !left.is_empty() && !right.is_empty() && old[left.start] == new[right.start] {
            steps.push(Step::Keep(right.start));
            (left.start, right.start) = (left.start + 1, right.start + 1);
        }
        let mut ends = 0;
        while left.len() > ends && right.len() > ends && old[left.end - 1 - ends] == new[right.end - 1 - ends] {
            ends += 1;
        }
        let after = (left.end - ends..left.end, right.end - ends..right.end);
        (left.end, right.end) = (left.end - ends, right.end - ends);
        if ends > 0 {
            todo.push((after.0, after.1, false));
        }
        let anchors = if anchored { anchors(&old[left.clone()], &new[right.clone()]) } else { Vec::new() };
        if anchors.is_empty() {
            steps.extend(left.map(Step::Remove));
            steps.extend(right.map(Step::Add));
            continue;
        }
        let (from_left, from_right) = (left.start, right.start);
        let mut ends = (left.end, right.end);
        for (at_left, at_right) in anchors.into_iter().rev() {
            let (at_left, at_right) = (from_left + at_left, from_right + at_right);
            todo.push((at_left..ends.0, at_right..ends.1, true));
            ends = (at_left, at_right);
        }
        todo.push((left.start..ends.0, right.start..ends.1, false));
    }
    steps
}

/// Pairs of equal lines that occur once on either side, in order: the longest sequence of them.
fn anchors(old: &[Line], new: &[Line]) -> Vec<(usize, usize)> {
    type Key<'a> = (usize, &'a str, Option<u32>);
    fn once(lines: &[Line]) -> HashMap<Key<'_>, Option<usize>> {
        let mut found = HashMap::new();
        for (index, line) in lines.iter().enumerate() {
            let key = (line.depth, line.text.as_str(), line.reference);
            found.entry(key).and_modify(|at| *at = None).or_insert(Some(index));
        }
        found
    }
    let (left, right) = (once(old), once(new));
    let mut pairs: Vec<(usize, usize)> =
        left.iter().filter_map(|(key, at)| Some(((*at)?, (*right.get(key)?)?))).collect();
    pairs.sort_unstable();
    // The longest increasing sequence of the second numbers: `ends[n]` is where the best one of length n + 1 ends.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for index in 0..pairs.len() {
        let length = ends.partition_point(|end| pairs[*end].1 < pairs[index].1);
        before[index] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut found = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(index) = at {
        found.push(pairs[index]);
        at = before[index];
    }
    found.reverse();
    found
}

fn shown(old: &[Line], new: &[Line], steps: &[Step]) -> String {
    let refs = |lines: &[Line]| lines.iter().filter_map(|line| line.reference).collect::<HashSet<u32>>();
    let (before, after) = (refs(old), refs(new));
    let still = |line: &Line, there: &HashSet<u32>| line.reference.is_some_and(|reference| there.contains(&reference));
    let mut out = String::new();
    // The unchanged lines around the present one that were not written yet.
    let mut around: Vec<(&Line, bool)> = Vec::new();
    let mut removed: Option<usize> = None;
    for step in steps {
        let (line, mark) = match *step {
            Step::Keep(index) => (&new[index], ' '),
            Step::Add(index) if still(&new[index], &before) => (&new[index], '~'),
            Step::Add(index) => (&new[index], '+'),
            Step::Remove(index) if still(&old[index], &after) => continue,
            Step::Remove(index) => (&old[index], '-'),
        };
        if mark == '-' {
            // What was inside went with it.
            if removed.is_some_and(|depth| line.depth > depth) || line.reference.is_none() && is_property(line) {
                continue;
            }
            removed = Some(line.depth);
        } else {
            removed = None;
        }
        while around.last().is_some_and(|(other, _)| other.depth >= line.depth) {
            around.pop();
        }
        if mark == ' ' {
            around.push((line, false));
            continue;
        }
        for (other, written) in around.iter_mut().filter(|(_, written)| !written) {
            write_line(&mut out, ' ', other);
            *written = true;
        }
        write_line(&mut out, mark, line);
        if mark != '-' {
            around.push((line, true));
        }
    }
    out
}

fn is_property(line: &Line) -> bool {
    line.text.starts_with("- /")
}

fn write_line(out: &mut String, mark: char, line: &Line) {
    let indent = 2 * line.depth.min(30);
    let _ = writeln!(out, "{mark} {:indent$}{}", "", line.text);
}
