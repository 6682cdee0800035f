//! Logs thoughts to standard error.
//!
//! A thought is text by a model, possibly influenced by third-party content. Control characters could move the cursor,
//! change the title or hide text on a terminal, so they are escaped.

use crate::input::Step;
use std::fmt;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum queued thoughts for a slow reader; more are dropped.
const WAITING_MAX: usize = 64;

/// How long dropping the last [`ThoughtLog`] waits for queued thoughts to be written.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Where thoughts are logged.
#[derive(Clone)]
pub struct ThoughtLog(Option<Arc<Writer>>);

struct Writer {
    thoughts: Option<SyncSender<String>>,
    /// Closed when everything is written.
    done: Mutex<Receiver<()>>,
}

impl Drop for Writer {
    /// The process may exit right after: queued thoughts are written first, unless the reader is blocked.
    fn drop(&mut self) {
        self.thoughts = None;
        let done = self.done.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = done.recv_timeout(LAST_WORDS);
    }
}

impl ThoughtLog {
    /// Nowhere.
    #[must_use]
    pub fn silent() -> Self {
        Self(None)
    }

    /// On standard error.
    #[must_use]
    pub fn to_stderr() -> Self {
        Self::to(std::io::stderr())
    }

    /// To this writer. A separate thread writes, so that a blocked reader does not delay calls; thoughts that come
    /// faster than they are read are dropped.
    pub fn to(mut place: impl Write + Send + 'static) -> Self {
        let (sender, lines) = sync_channel::<String>(WAITING_MAX);
        let (on_shutdown, done) = sync_channel::<()>(0);
        let writer = std::thread::Builder::new().name("thoughts".to_owned()).spawn(move || {
            // Dropping it signals that everything is written.
            let _at_end = on_shutdown;
            for line in lines {
                if place.write_all(line.as_bytes()).and_then(|()| place.flush()).is_err() {
                    return;
                }
            }
        });
        Self(writer.is_ok().then(|| Writer { thoughts: Some(sender), done: done.into() }.into()))
    }

    pub(crate) fn show(&self, step: &Step) {
        if let Some(sender) = self.0.as_ref().and_then(|writer| writer.thoughts.as_ref()) {
            // Full or closed: this thought is dropped.
            let _ = sender.try_send(entry(step));
        }
    }
}

impl fmt::Debug for ThoughtLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "ThoughtLog(on)" } else { "ThoughtLog(silent)" })
    }
}

/// A heading and the text, each line behind a bar, as one piece that ends its line.
fn entry(step: &Step) -> String {
    let branch = step.branch_id.as_deref().unwrap_or("?");
    let (kind, context) = match (step.is_revision, step.revises, step.branch_from) {
        (true, Some(of), _) => ("Revision", format!(" (of thought {of})")),
        (true, None, _) => ("Revision", String::new()),
        (false, _, Some(from)) => ("Branch", format!(" {} (from thought {from})", harmless(branch))),
        (false, _, None) => ("Thought", String::new()),
    };
    let mut text = format!("┌ {kind} {}/{}{context}\n", step.number, step.total);
    for line in step.thought.lines() {
        text.push_str("│ ");
        text.push_str(&harmless(line));
        text.push('\n');
    }
    text.push_str("└\n");
    text
}

/// Escapes control and bidirectional characters of a line.
fn harmless(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '\t' => out.push(' '),
            c if c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let step = Step {
            thought: "a\x1b[2J\u{9b}31m\u{7}\r\nb\x1b]0;title\x07\u{202e}c\0\u{8}\n".into(),
            next_thought_needed: true,
            number: 2,
            total: 3,
            is_revision: false,
            revises: None,
            branch_from: Some(1),
            branch_id: Some("x\x1b[31m\ny".into()),
        };
        let text = entry(&step);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert_eq!(text.lines().count(), 4, "no line but ours: {text:?}");
        assert!(text.starts_with("┌ Branch 2/3 x\\u{1b}[31m\\u{a}y (from thought 1)\n"), "{text:?}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
    }

    /// Somewhere that takes its time.
    struct Slow(Arc<Mutex<String>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            std::thread::sleep(Duration::from_millis(5));
            self.0.lock().unwrap().push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_last_thoughts_are_written_before_the_end() {
        let written = Arc::new(Mutex::new(String::new()));
        let log = ThoughtLog::to(Slow(written.clone()));
        let step = |number| Step {
            thought: "x".into(),
            next_thought_needed: true,
            number,
            total: 9,
            is_revision: false,
            revises: None,
            branch_from: None,
            branch_id: None,
        };
        let other = log.clone();
        for number in 1..=9 {
            log.show(&step(number));
        }
        drop((log, other));
        assert_eq!(written.lock().unwrap().matches("Thought").count(), 9);
    }
}
