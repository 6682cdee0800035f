//! The nearest of several names.

use strsim::osa_distance;

/// The nearest name, ignoring case, if one is similar enough; a transposition counts as one edit.
#[must_use]
pub fn near<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest(word, names.into_iter().collect())
}

// One copy, not one for each iterator.
fn nearest<'a>(word: &str, names: Vec<&'a str>) -> Option<&'a str> {
    let length = |name: &str| name.chars().count().max(word.chars().count());
    let lower = word.to_lowercase();
    let mut all: Vec<(usize, &str)> =
        names.into_iter().map(|name| (osa_distance(&lower, &name.to_lowercase()), name)).collect();
    all.sort_by_key(|(distance, _)| *distance);
    let close = all.first().filter(|(distance, name)| distance * 3 <= length(name));
    let part = || all.iter().find(|(_, name)| lower.len() >= 3 && name.to_lowercase().contains(&lower));
    close.or_else(part).map(|(_, name)| *name)
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
