//! Scripted conversations.

use crate::lines::Lines;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// A scripted conversation, with one message per line.
///
/// | line | meaning |
/// |---|---|
/// | `> {…}` | is sent to the server unchanged |
/// | `< {…}` | must be the next message of the server |
/// | `<< {…}` | must arrive before the next line of another kind or the end; several of these may arrive in any order |
/// | `= 250` | no message may arrive for this many milliseconds |
/// | `# …` | a comment |
///
/// Members of objects may be in any order. In lines of the server these strings are placeholders:
///
/// | instead of a value | matches |
/// |---|---|
/// | `"<any>"` | anything |
/// | `"<string>"`, `"<number>"`, `"<object>"`, `"<array>"` | anything of that type |
/// | `"<text: word>"` | a string that contains `word` |
/// | `"<save: name>"` | anything, and saves it; `"<name>"` in later lines of either side stands for the saved value |
///
/// A member `"...": true` in an object allows other members.
///
/// ```
/// # use linchpin_testing::Script;
/// let script = Script::parse(r#"
///     > {"jsonrpc": "2.0", "id": 1, "method": "ping"}
///     < {"jsonrpc": "2.0", "id": 1, "result": {}}
/// "#).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    steps: Vec<(usize, Step)>,
    wait: Duration,
}

#[derive(Clone, Debug)]
enum Step {
    Send(String),
    Next(Value),
    Some(Value),
    Quiet(u64),
}

/// The error of a conversation that did not match its script, or of a malformed script.
///
/// ```
/// # use linchpin_testing::Script;
/// let wrong = Script::parse("> {}\n? {}").unwrap_err();
/// assert_eq!(wrong.line, 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The line of the script, from 1.
    pub line: usize,
    /// What was expected and what arrived.
    pub message: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for Mismatch {}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// If a line has an unknown form, or a message of the server is not JSON.
    pub fn parse(text: &str) -> Result<Script, Mismatch> {
        let mut steps = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), at + 1);
            let wrong = |message: String| Mismatch { line: number, message };
            let json = |text: &str| serde_json::from_str(text).map_err(|e| wrong(format!("not JSON: {e}")));
            let step = match line.split_once(' ').unwrap_or((line, "")) {
                ("", _) => continue,
                (mark, _) if mark.starts_with('#') => continue,
                // Kept as text: a script may send what is not JSON.
                (">", message) => Step::Send(message.to_owned()),
                ("<", message) => Step::Next(json(message)?),
                ("<<", message) => Step::Some(json(message)?),
                ("=", ms) => Step::Quiet(ms.parse().map_err(|e| wrong(format!("not milliseconds: {e}")))?),
                _ => return Err(wrong(format!("begins with none of `>`, `<`, `<<`, `=`, `#`: {line}"))),
            };
            steps.push((number, step));
        }
        Ok(Script { steps, wait: Duration::from_secs(10) })
    }

    /// Sets how long to wait for each message. Default 10 seconds.
    pub fn wait(mut self, wait: Duration) -> Script {
        self.wait = wait;
        self
    }

    /// Plays the client's side and compares the server's messages. Returns the values saved with `"<save: name>"`.
    ///
    /// # Errors
    /// The first line that did not match.
    pub async fn play<T: AsyncRead + AsyncWrite>(&self, stream: T) -> Result<BTreeMap<String, Value>, Mismatch> {
        let mut lines = Lines::new(stream);
        let mut saved = BTreeMap::new();
        let mut open: Vec<(usize, &Value)> = Vec::new();
        for (line, step) in &self.steps {
            let wrong = |message: String| Mismatch { line: *line, message };
            if !matches!(step, Step::Some(_)) {
                self.gather(&mut lines, &mut open, &mut saved).await?;
            }
            match step {
                Step::Send(message) => {
                    let message = fill(message, &saved);
                    lines.write(&message).await.map_err(|e| wrong(format!("could not send: {e}")))?;
                }
                Step::Some(wanted) => open.push((*line, wanted)),
                Step::Next(wanted) => {
                    let got = lines.read(self.wait).await.map_err(|e| wrong(e.to_string()))?;
                    let got =
                        got.ok_or_else(|| wrong(format!("nothing came within {:?}; expected {wanted}", self.wait)))?;
                    compare(wanted, &got, "", &mut saved)
                        .map_err(|why| wrong(format!("{why}\n  expected {wanted}\n  got      {got}")))?;
                }
                Step::Quiet(ms) => {
                    let got = lines.read(Duration::from_millis(*ms)).await.map_err(|e| wrong(e.to_string()))?;
                    if let Some(got) = got {
                        return Err(wrong(format!("nothing should have come; got {got}")));
                    }
                }
            }
        }
        self.gather(&mut lines, &mut open, &mut saved).await?;
        Ok(saved)
    }

    /// Takes the messages that may come in any order.
    async fn gather<T: AsyncRead + AsyncWrite>(
        &self,
        lines: &mut Lines<T>,
        open: &mut Vec<(usize, &Value)>,
        saved: &mut BTreeMap<String, Value>,
    ) -> Result<(), Mismatch> {
        while let Some(&(line, first)) = open.first() {
            let wrong = |message: String| Mismatch { line, message };
            let got = lines.read(self.wait).await.map_err(|e| wrong(e.to_string()))?;
            let got = got.ok_or_else(|| wrong(format!("nothing came within {:?}; expected {first}", self.wait)))?;
            let fits = |wanted: &Value| compare(wanted, &got, "", &mut saved.clone()).is_ok();
            let Some(at) = open.iter().position(|(_, wanted)| fits(wanted)) else {
                return Err(wrong(format!("none of the expected messages\n  expected {first}\n  got      {got}")));
            };
            let (line, wanted) = open.remove(at);
            compare(wanted, &got, "", saved).map_err(|message| Mismatch { line, message })?;
        }
        Ok(())
    }
}

/// Puts kept values in the place of their names.
fn fill(message: &str, saved: &BTreeMap<String, Value>) -> String {
    saved
        .iter()
        .fold(message.to_owned(), |text, (name, value)| text.replace(&format!("\"<{name}>\""), &value.to_string()))
}

/// Compares a message with what was written, and says where they differ.
fn compare(wanted: &Value, got: &Value, path: &str, saved: &mut BTreeMap<String, Value>) -> Result<(), String> {
    let at = if path.is_empty() { "the message" } else { path };
    match (wanted, got) {
        (Value::String(mark), got) if mark.starts_with('<') && mark.ends_with('>') => {
            placeholder(&mark[1..mark.len() - 1], got, at, saved)
        }
        (Value::Object(wanted), Value::Object(got)) => {
            for (name, wanted) in wanted.iter().filter(|(name, _)| *name != "...") {
                let got = got.get(name).ok_or_else(|| format!("{at} has no `{name}`"))?;
                compare(wanted, got, &format!("{path}/{name}"), saved)?;
            }
            match got.keys().find(|name| !wanted.contains_key(*name)).filter(|_| !wanted.contains_key("...")) {
                Some(extra) => Err(format!("{at} has `{extra}`, which was not expected")),
                None => Ok(()),
            }
        }
        (Value::Array(wanted), Value::Array(got)) => {
            if wanted.len() != got.len() {
                return Err(format!("{at} has {} items, not {}", got.len(), wanted.len()));
            }
            let pairs = wanted.iter().zip(got).enumerate();
            pairs.into_iter().try_for_each(|(i, (wanted, got))| compare(wanted, got, &format!("{path}/{i}"), saved))
        }
        (wanted, got) if wanted == got => Ok(()),
        // 1 and 1.0 are one number.
        (Value::Number(wanted), Value::Number(got)) if wanted.as_f64() == got.as_f64() => Ok(()),
        (wanted, got) => Err(format!("{at} is {got}, not {wanted}")),
    }
}

fn placeholder(mark: &str, got: &Value, at: &str, saved: &mut BTreeMap<String, Value>) -> Result<(), String> {
    let fits = match (mark, mark.split_once(": ")) {
        ("any", _) => true,
        ("string", _) => got.is_string(),
        ("number", _) => got.is_number(),
        ("object", _) => got.is_object(),
        ("array", _) => got.is_array(),
        (_, Some(("text", word))) => got.as_str().is_some_and(|text| text.contains(word)),
        (_, Some(("save", name))) => {
            saved.insert(name.to_owned(), got.clone());
            true
        }
        (name, _) => match saved.get(name) {
            Some(kept) => kept == got,
            None => return Err(format!("nothing was kept as `{name}`")),
        },
    };
    if fits { Ok(()) } else { Err(format!("{at} is {got}, which does not fit <{mark}>")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_are_compared_with_placeholders_and_the_difference_is_named() {
        let cases = [
            (json!({"id": 1}), json!({"id": 1.0}), ""),
            (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), ""),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), "has `b`"),
            (json!({"a": 1, "...": true}), json!({"a": 1, "b": 2}), ""),
            (json!({"a": {"b": 1}}), json!({"a": {}}), "/a has no `b`"),
            (json!({"a": [1, 2]}), json!({"a": [1, 3]}), "/a/1 is 3, not 2"),
            (json!({"a": [1, 2]}), json!({"a": [1]}), "/a has 1 items, not 2"),
            (json!({"a": "<string>"}), json!({"a": 1}), "/a is 1, which does not fit <string>"),
            (json!({"a": "<any>", "b": "<number>"}), json!({"a": null, "b": 0}), ""),
            (json!({"a": "<text: cat>"}), json!({"a": "a category"}), ""),
            (json!({"a": "<save: x>", "b": "<x>"}), json!({"a": 7, "b": 7}), ""),
            (json!({"a": "<save: x>", "b": "<x>"}), json!({"a": 7, "b": 8}), "does not fit <x>"),
            (json!({"b": "<y>"}), json!({"b": 8}), "nothing was kept as `y`"),
        ];
        for (wanted, got, why) in cases {
            match compare(&wanted, &got, "", &mut BTreeMap::new()) {
                Ok(()) => assert_eq!(why, "", "{wanted} {got}"),
                Err(said) => assert!(!why.is_empty() && said.contains(why), "{wanted} {got}: {said}"),
            }
        }
    }

    #[test]
    fn lines_that_are_no_script_are_named() {
        for (text, line) in [("? x", 1), ("\n\n< {", 3), ("= soon", 1)] {
            assert_eq!(Script::parse(text).unwrap_err().line, line, "{text}");
        }
    }

    /// A server that says what the test put into its mouth.
    async fn played(script: &str, says: &'static str) -> Result<BTreeMap<String, Value>, Mismatch> {
        use tokio::io::AsyncWriteExt;
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        theirs.write_all(says.as_bytes()).await.unwrap();
        let script = Script::parse(script).unwrap().wait(Duration::from_millis(50));
        let result = script.play(ours).await;
        drop(theirs);
        result
    }

    #[tokio::test]
    async fn a_conversation_passes_only_if_every_line_happens() {
        let both = "{\"id\":1}\n{\"id\":2}\n";
        let cases = [
            ("> x\n< {\"id\": 1}\n< {\"id\": 2}\n= 10", both, None),
            ("<< {\"id\": 2}\n<< {\"id\": 1}\n= 10", both, None),
            ("< {\"id\": 2}", both, Some(1)),
            ("< {\"id\": 1}\n= 10", both, Some(2)),
            ("< {\"id\": 1}\n< {\"id\": 2}\n# more\n< {\"id\": 3}", both, Some(4)),
            ("<< {\"id\": 1}\n<< {\"id\": 3}", both, Some(2)),
            ("< {}", "no json\n", Some(1)),
        ];
        for (script, says, wrong) in cases {
            let line = played(script, says).await.err().map(|mismatch| mismatch.line);
            assert_eq!(line, wrong, "{script}");
        }
    }

    #[tokio::test]
    async fn what_was_kept_is_sent_again() {
        use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        theirs.write_all(b"{\"state\":\"a\\\"b\"}\n").await.unwrap();
        let script = Script::parse("< {\"state\": \"<save: s>\"}\n> {\"again\":\"<s>\"}").unwrap();
        let saved = script.play(ours).await.unwrap();
        assert_eq!(saved["s"], "a\"b");
        let mut line = String::new();
        BufReader::new(theirs).read_line(&mut line).await.unwrap();
        assert_eq!(line, "{\"again\":\"a\\\"b\"}\n");
    }
}
