//! The nearest of several names.

/// The nearest name, if one is similar enough.
#[must_use]
pub fn near<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = |name: &str| name.chars().count().max(word.chars().count());
    let lower = word.to_lowercase();
    let mut all: Vec<(usize, &str)> = names.into_iter().map(|name| (distance(word, name), name)).collect();
    all.sort_by_key(|(distance, _)| *distance);
    let close = all.first().filter(|(distance, name)| distance * 3 <= length(name));
    let part = || all.iter().find(|(_, name)| lower.len() >= 3 && name.to_lowercase().contains(&lower));
    close.or_else(part).map(|(_, name)| *name)
}

/// The edit distance between two words, ignoring case; a transposition counts as one edit.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let mut cost = (above[j] + usize::from(a[i] != b[j])).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_found_and_strangers_are_not() {
        let names = ["echo", "get-sum", "get-tiny-image", "read_file"];
        for (word, meant) in [
            ("ecko", Some("echo")),
            ("ecoh", Some("echo")),
            ("chee", None),
            ("get_sum", Some("get-sum")),
            ("GET-SUM", Some("get-sum")),
            ("image", Some("get-tiny-image")),
            ("redfile", Some("read_file")),
            ("zebra", None),
            ("x", None),
        ] {
            assert_eq!(near(word, names), meant, "{word}");
        }
    }
}
