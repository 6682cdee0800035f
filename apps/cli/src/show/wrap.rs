//! Wraps text at the terminal's width.

use std::borrow::Cow;

/// Wraps lines between words at `width` characters. Continuation lines keep the indentation. Words longer than a line are not
/// broken, so that URLs stay intact. Style marks have no width.
pub(crate) fn wrapped(text: &str, width: usize, mark: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| one(line, width, mark, 0)).collect();
    lines.join("\n")
}

/// The same, but continuations of lines without indentation have one of 2: those lines begin with a name.
pub(crate) fn hanging(text: &str, width: usize, mark: &str) -> String {
    let by = |line: &str| if line.starts_with(' ') { 0 } else { 2 };
    let lines: Vec<String> = text.split('\n').map(|line| one(line, width, mark, by(line))).collect();
    lines.join("\n")
}

/// Help or a usage error as clap renders it: its lines of usage, which clap does not wrap, at `width`. Continuation lines are
/// indented under the first argument. The mark is that of escape sequences.
pub(crate) fn usage(text: &str, width: usize) -> String {
    const MARK: &str = "\x1b[";
    // A command after `--` stays with the `--`.
    const TOGETHER: [(&str, &str); 2] = [("[-- ", "[--\u{a0}"), ("[--\x1b[0m ", "[--\x1b[0m\u{a0}")];
    let mut in_usage = false;
    let lines = text.split('\n').map(|line| {
        let seen = visible(line, MARK);
        in_usage = seen.starts_with("Usage: ") || (in_usage && seen.starts_with("       "));
        if !in_usage {
            return line.to_owned();
        }
        let is_argument = |word: &str| word.starts_with(['[', '<', '-']) || word.starts_with(char::is_uppercase);
        let before = seen.split(' ').take_while(|word| *word == "Usage:" || !is_argument(word));
        let first: usize = before.map(|word| word.chars().count() + 1).sum();
        let indentation = seen.len() - seen.trim_start_matches(' ').len();
        let together = TOGETHER.iter().fold(line.to_owned(), |line, (apart, together)| line.replace(apart, together));
        one(&together, width, MARK, first.saturating_sub(indentation)).replace('\u{a0}', " ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Two columns: names padded to the longest, and what each is, which is wrapped beside its name. Under the name where no width
/// is left for that.
pub(crate) fn columns(rows: &[(String, String)], width: Option<usize>, mark: &str) -> String {
    let names = rows.iter().map(|(name, _)| length(name, mark)).max().unwrap_or(0);
    let indent = names + 2;
    let mut out: Vec<String> = Vec::new();
    for (name, about) in rows {
        let pad = " ".repeat(names - length(name, mark));
        match width {
            Some(_) if about.is_empty() => out.push(name.clone()),
            Some(width) if width < indent + BESIDE_MIN => {
                out.push(name.clone());
                out.push(wrapped(&format!("    {about}"), width, mark));
            }
            Some(width) => {
                let about = wrapped(about, width - indent, mark).replace('\n', &format!("\n{}", " ".repeat(indent)));
                out.push(format!("{name}{pad}  {about}").trim_end().to_owned());
            }
            None => out.push(format!("{name}{pad}  {about}").trim_end().to_owned()),
        }
    }
    out.join("\n")
}

/// The least width of a column of text, in characters.
const BESIDE_MIN: usize = 24;

fn one(line: &str, width: usize, mark: &str, more: usize) -> String {
    if length(line, mark) <= width {
        return line.to_owned();
    }
    let words = line.trim_start_matches(' ');
    // On a narrow terminal, the indentation is limited.
    let indent = (line.len() - words.len() + more).min(width / 2);
    let mut out = " ".repeat(line.len() - words.len());
    let mut room = width.saturating_sub(out.len());
    for (at, word) in words.split(' ').enumerate() {
        let taken = length(word, mark);
        if at > 0 && taken + 1 > room {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            room = width - indent;
        } else if at > 0 {
            out.push(' ');
            room -= 1;
        }
        out.push_str(word);
        room = room.saturating_sub(taken);
    }
    out
}

/// Returns the number of visible characters.
fn length(text: &str, mark: &str) -> usize {
    visible(text, mark).chars().count()
}

/// Returns the text without styles.
pub(crate) fn visible<'a>(text: &'a str, mark: &str) -> Cow<'a, str> {
    let mut parts = text.split(mark);
    let mut out = Cow::Borrowed(parts.next().unwrap_or_default());
    for part in parts {
        // A mark is followed by a code and an `m`.
        *out.to_mut() += part.split_once('m').map_or("", |(_, rest)| rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_keep_their_indentation() {
        for (text, width, want) in [
            ("one two three", 80, "one two three"),
            ("one two three", 7, "one two\nthree"),
            ("  one two three four", 9, "  one two\n  three\n  four"),
            ("a\n\n    b c d", 6, "a\n\n    b\n   c d"),
            ("New_York and functions", 8, "New_York\nand\nfunctions"),
            ("https://example.com/mcp is long", 10, "https://example.com/mcp\nis long"),
            ("äöü äöü", 3, "äöü\näöü"),
            ("<1mbold<0m two", 8, "<1mbold<0m two"),
            ("<1mbold<0m two", 7, "<1mbold<0m\ntwo"),
        ] {
            assert_eq!(wrapped(text, width, "<"), want, "{text} at {width}");
        }
    }

    #[test]
    fn entries_of_lists_continue_under_their_name() {
        for (text, width, want) in [
            ("name one two", 8, "name one\n  two"),
            ("name one two\n    about it all", 12, "name one two\n    about it\n    all"),
            ("\nname one two", 9, "\nname one\n  two"),
        ] {
            assert_eq!(hanging(text, width, "<"), want, "{text} at {width}");
        }
    }

    #[test]
    fn usage_continues_under_its_first_argument() {
        let text = "About it all, in a long line\n\n\x1b[1mUsage:\x1b[0m \x1b[1mx do\x1b[0m [OPTIONS] NAME \x1b[1m[--\x1b[0m COMMAND...]\n       x do SERVER... [OPTIONS]\n\n       ARGUMENT of a long line\n";
        let want = "About it all, in a long line\n\n\x1b[1mUsage:\x1b[0m \x1b[1mx do\x1b[0m [OPTIONS] NAME\n            \x1b[1m[--\x1b[0m COMMAND...]\n       x do SERVER...\n            [OPTIONS]\n\n       ARGUMENT of a long line\n";
        assert_eq!(usage(text, 27), want);
        assert_eq!(usage(text, 80), text);
        assert_eq!(usage("Usage: x A BCDE", 10), "Usage: x A\n     BCDE", "at most half of the width is indentation");
    }

    #[test]
    fn tables_wrap_their_last_column_only() {
        let rows = [("<1mgit<0m", "Git, without hooks, filters and helpers"), ("memory", ""), ("time", "Time")];
        let rows = rows.map(|(name, about)| (name.to_owned(), about.to_owned()));
        for (width, want) in [
            (None, "<1mgit<0m     Git, without hooks, filters and helpers\nmemory\ntime    Time"),
            (Some(80), "<1mgit<0m     Git, without hooks, filters and helpers\nmemory\ntime    Time"),
            (Some(36), "<1mgit<0m     Git, without hooks, filters\n        and helpers\nmemory\ntime    Time"),
            (Some(20), "<1mgit<0m\n    Git, without\n    hooks, filters\n    and helpers\nmemory\ntime\n    Time"),
        ] {
            assert_eq!(columns(&rows, width, "<"), want, "at {width:?}");
        }
    }
}
