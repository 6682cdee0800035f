//! Our own words name tools as they are listed: under a prefix, or beside other servers, a tool has another name than its own,
//! and a hint that says the name that it has elsewhere leads nowhere.

use linchpin::Reply;
use linchpin::{Call, Next};
use std::borrow::Cow;
use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::Arc;

/// The tools and prompts of one server that are listed under another name than their own. Those that are not offered are not in
/// it: they keep their own name, which nothing listed has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(Vec<(String, String)>);

thread_local! {
    /// The names of the server whose handler is being polled.
    static NOW: RefCell<Option<Arc<Names>>> = const { RefCell::new(None) };
}

/// Puts back what was there before, when a handler panics too.
struct Back(Option<Arc<Names>>);

impl Drop for Back {
    fn drop(&mut self) {
        NOW.set(self.0.take());
    }
}

impl Names {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes it down if it is listed under another name than its own.
    pub(crate) fn add(&mut self, name: &str, listed: &str) {
        if name != listed && self.listed(name).is_none() {
            self.0.push((name.to_owned(), listed.to_owned()));
        }
    }

    fn listed(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, listed)| listed.as_str())
    }

    /// The text with every name as it is listed; `None` when none of them is in it.
    ///
    /// A word with `_` or `-` in it is a name wherever it is a word of its own. A word without is also a word of the language, and a name
    /// only between backticks. What stands between double quotes, right after a quote or `=`, or in a path is somebody's value.
    pub(crate) fn in_words(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        // How much of the text is in `out` already, and whether what comes next stands between double quotes.
        let (mut done, mut quoted) = (0, false);
        let mut rest = text.char_indices().peekable();
        let mut before = ' ';
        while let Some((at, c)) = rest.next() {
            if !in_word(c) {
                quoted ^= c == '"' && before != '\\';
                before = c;
                continue;
            }
            let mut end = at + c.len_utf8();
            while let Some((next, c)) = rest.next_if(|(next, c)| in_word(*c) || joins(*c, &text[*next..])) {
                end = next + c.len_utf8();
            }
            let word = &text[at..end];
            let ticked = before == '`' && text[end..].starts_with('`');
            let is_value = quoted || matches!(before, '\'' | '=' | '/' | '\\' | '.' | ':' if !ticked);
            before = ' ';
            if is_value || !(ticked || word.contains(['_', '-'])) {
                continue;
            }
            if let Some(listed) = self.listed(word) {
                out.push_str(&text[done..at]);
                out.push_str(listed);
                done = end;
            }
        }
        (done > 0).then(|| {
            out.push_str(&text[done..]);
            out
        })
    }

    /// A layer that makes these the names of everything a handler says while it runs.
    pub(crate) async fn around(self: Arc<Self>, call: Call, next: Next) -> Reply {
        let mut running = next.run(call);
        poll_fn(move |cx| {
            let _back = Back(NOW.replace(Some(self.clone())));
            running.as_mut().poll(cx)
        })
        .await
    }
}

/// Of which names and paths are made.
fn in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '/')
}

/// A dot in the middle of a word.
fn joins(c: char, rest: &str) -> bool {
    c == '.' && rest[1..].starts_with(in_word)
}

/// A text of a server's own with its tools under the names that they are listed under, for what a handler says in an answer's
/// text: hints of [`ToolError`](crate::ToolError) and notices of [`ToolOutput`](crate::ToolOutput) are treated so by themselves. Only while a handler
/// that a [`ToolSet`](crate::ToolSet) added runs, and not for text that others wrote.
#[must_use]
pub fn as_listed(text: &str) -> Cow<'_, str> {
    let said = NOW.with_borrow(|now| now.as_ref().and_then(|names| names.in_words(text)));
    said.map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let mut names = Names::default();
        for (name, listed) in [
            ("list_tables", "one_list_tables"),
            ("read_query", "one_read_query"),
            ("get-sum", "one_get-sum"),
            ("query", "one_query"),
            ("echo", "echo"),
        ] {
            names.add(name, listed);
        }
        names
    }

    #[test]
    fn names_in_words_are_those_of_the_list() {
        for (text, wanted) in [
            ("list_tables shows the names.", "one_list_tables shows the names."),
            ("For SELECT use read_query.", "For SELECT use one_read_query."),
            ("Use list_tables, read_query or get-sum.", "Use one_list_tables, one_read_query or one_get-sum."),
            ("(list_tables)", "(one_list_tables)"),
            ("`list_tables` and `query`", "`one_list_tables` and `one_query`"),
            ("ä list_tables – read_query…", "ä one_list_tables – one_read_query…"),
            ("read_query", "one_read_query"),
            // Said twice, it is the same.
            ("one_list_tables", "one_list_tables"),
            // Words of the language.
            ("A query is answered; the query.", "A query is answered; the query."),
            ("`query is` a `b query`", "`query is` a `b query`"),
            // Other names.
            ("list_tables_now, my_list_tables, listtables", "list_tables_now, my_list_tables, listtables"),
            ("--get-sum get-sum- älist_tables", "--get-sum get-sum- älist_tables"),
            ("`echo` `echo_all`", "`echo` `echo_all`"),
            // Values, and paths.
            ("cursor=\"list_tables\", read_query", "cursor=\"list_tables\", one_read_query"),
            ("\"a list_tables \\\" read_query\" read_query", "\"a list_tables \\\" read_query\" one_read_query"),
            ("table=list_tables 'list_tables'", "table=list_tables 'list_tables'"),
            ("/a/list_tables list_tables/x", "/a/list_tables list_tables/x"),
            ("list_tables.db x.list_tables", "list_tables.db x.list_tables"),
            (
                "C:\\list_tables memo://list_tables memo:list_tables",
                "C:\\list_tables memo://list_tables memo:list_tables",
            ),
            ("", ""),
        ] {
            let said = names().in_words(text);
            assert_eq!(said.as_deref().unwrap_or(text), wanted, "{text}");
            assert_eq!(said.is_some(), text != wanted, "{text}: nothing is written where nothing changes");
        }
    }

    #[test]
    fn outside_of_a_handler_nothing_has_another_name() {
        assert!(matches!(as_listed("list_tables"), Cow::Borrowed("list_tables")));
        NOW.set(Some(names().into()));
        assert_eq!(as_listed("list_tables"), "one_list_tables");
        NOW.set(None);
    }
}
