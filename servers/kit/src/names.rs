//! Replaces tool names in the server's own texts by their listed names: with a prefix, or beside other servers, a tool
//! is listed under another name, and a hint with its canonical name would be useless.

use linchpin::Reply;
use linchpin::{Call, Next};
use std::borrow::Cow;
use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::Arc;

/// The tools and prompts of one server that are listed under another name. Disabled ones are not included: they keep
/// their canonical name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(Vec<(String, String)>);

thread_local! {
    /// The names of the server whose handler is being polled.
    static NOW: RefCell<Option<Arc<Names>>> = const { RefCell::new(None) };
}

/// Restores the previous value, also when a handler panics.
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

    /// Adds it if it is listed under another name.
    pub(crate) fn add(&mut self, name: &str, listed: &str) {
        if name != listed && self.listed(name).is_none() {
            self.0.push((name.to_owned(), listed.to_owned()));
        }
    }

    fn listed(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, listed)| listed.as_str())
    }

    /// The text with listed names; `None` if it contains none of the names.
    ///
    /// A name with `_` or `-` is replaced wherever it is a whole word. A name without may also be an English word, and
    /// is replaced only in backticks. Text in double quotes, right after a quote or `=`, or in a path is a value and is
    /// kept.
    pub(crate) fn in_words(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        // The end of the text copied to `out`, and whether the rest starts inside double quotes.
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

    /// A layer that applies these names to the texts of a handler while it runs.
    pub(crate) async fn around(self: Arc<Self>, call: Call, next: Next) -> Reply {
        let mut running = next.run(call);
        poll_fn(move |cx| {
            let _back = Back(NOW.replace(Some(self.clone())));
            running.as_mut().poll(cx)
        })
        .await
    }
}

/// Characters of names and paths.
fn in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '/')
}

/// A dot in the middle of a word.
fn joins(c: char, rest: &str) -> bool {
    c == '.' && rest[1..].starts_with(in_word)
}

/// Replaces tool names in the server's own text by their listed names. Hints of [`ToolError`](crate::ToolError) and
/// notices of [`ToolOutput`](crate::ToolOutput) are replaced automatically. Works only while a handler added by a
/// [`ToolSet`](crate::ToolSet) runs; not for third-party text.
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
