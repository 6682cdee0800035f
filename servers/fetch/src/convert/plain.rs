//! The text of HTML without its structure, for pages whose tree would be too large. Takes time and memory proportional
//! to the length of the page.

use super::markdown::is_block;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use std::cell::{Cell, RefCell};

/// Elements whose content is not shown, and their ends.
const HIDDEN: [(&str, Option<RawKind>); 8] = [
    ("script", Some(RawKind::ScriptData)),
    ("style", Some(RawKind::Rawtext)),
    ("iframe", Some(RawKind::Rawtext)),
    ("title", Some(RawKind::Rcdata)),
    ("textarea", Some(RawKind::Rcdata)),
    ("noscript", None),
    ("template", None),
    ("svg", None),
];

/// The text of a page, blocks separated by empty lines.
pub(super) fn text(html: &str) -> String {
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let text = tokenizer.sink.text.into_inner();
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n\n")
}

#[derive(Default)]
struct Sink {
    text: RefCell<String>,
    /// Within this element.
    hidden: Cell<Option<&'static str>>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        match token {
            Token::CharacterTokens(text) if self.hidden.get().is_none() => {
                self.text.borrow_mut().push_str(&text.replace(['\n', '\r'], " "));
            }
            Token::TagToken(tag) => {
                let ended = tag.kind == TagKind::EndTag;
                if let Some(hidden) = self.hidden.get() {
                    if ended && *tag.name == *hidden {
                        self.hidden.set(None);
                    }
                    return TokenSinkResult::Continue;
                }
                let known = HIDDEN.iter().find(|(name, _)| *tag.name == **name);
                if let Some((name, raw)) = known.filter(|_| !ended && !tag.self_closing) {
                    self.hidden.set(Some(name));
                    return raw.map_or(TokenSinkResult::Continue, TokenSinkResult::RawData);
                }
                if is_block(&tag.name) || matches!(&*tag.name, "br" | "pre" | "hr" | "body") {
                    self.text.borrow_mut().push('\n');
                }
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_a_reader_sees() {
        for (html, want) in [
            ("<h1>A</h1>b <b>c</b><br>d<p>e</p>f", "A\n\nb c\n\nd\n\ne\n\nf"),
            ("a<script>if (x < y) </scrip</script>b<!-- c > d -->e", "abe"),
            ("1 < 2 &amp;&amp; 3 &gt; 2 &#228;&#xe4;&unknown; & <", "1 < 2 && 3 > 2 ää&unknown; & <"),
            ("<title>t</title><svg><a>x</a></svg>y<svg/>z<style>x", "yz"),
            (&"<div>".repeat(100_000), ""),
        ] {
            assert_eq!(text(html), want);
        }
    }
}
