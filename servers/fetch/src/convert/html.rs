//! HTML: the tree, the main content, and links.
//!
//! The parser is html5ever, the tree dom_query's, and the main content is found by dom_smoothie. None of them has
//! limits; [`super::worker`] does. This module limits only the depth of the tree, because its own functions are
//! recursive, and the number of nodes, which a short page can multiply.

use super::markdown::{Links, Style, render};
use super::plain;
use dom_query::{Document, Matcher, NodeRef};
use dom_smoothie::Readability;
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tokenizer::TokenizerOpts;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use url::Url;

/// The requested form of an HTML page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Form {
    Markdown,
    Text,
    Html,
    Links,
}

/// The URL of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base<'a> {
    pub(super) url: &'a Url,
    /// Whether links stay as written, as in the published server.
    pub(super) published: bool,
}

/// A page in the requested form.
#[derive(Debug, Default)]
pub(super) struct Converted {
    pub(super) title: Option<String>,
    /// Empty if nothing was found.
    pub(super) text: String,
    /// A note on the conversion.
    pub(super) note: Option<&'static str>,
}

/// Why the conversion failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// Invalid CSS selector.
    Selector,
    /// The selector matches nothing.
    Nothing,
    /// The page has too many nodes, or is too deep for the request.
    Complex,
}

const DEPTH_MAX: usize = 512;
/// Larger pages are not searched for their main content, which takes longer than everything else.
const READABLE_NODES_MAX: usize = 150_000;
/// Bytes parsed between two checks of the number of nodes.
const PIECE_BYTES: usize = 64;
/// Maximum nodes of a text in a feed.
const TEXT_NODES_MAX: usize = 50_000;
/// A longer `<base>` is ignored: every link would become as long.
const BASE_BYTES_MAX: usize = 2_048;
const LINKS_MAX: usize = 5_000;
const TITLE_CHARS_MAX: usize = 300;

const COMPLEX: &str = "The page is too large or too deeply nested to be simplified: this is its plain text.";
const WHOLE: &str = "The page is too large to extract its main content: this is the whole page.";

/// Converts a page of at most this many nodes.
pub(super) fn convert(
    html: &str,
    base: Base<'_>,
    form: Form,
    selector: Option<&str>,
    nodes_max: usize,
) -> Result<Converted, Failed> {
    let matcher = selector.map(Matcher::new).transpose().map_err(|_| Failed::Selector)?;
    let Some(doc) = parse(html, nodes_max) else {
        return match (matcher, form) {
            (None, Form::Markdown | Form::Text) => {
                Ok(Converted { title: None, text: plain::text(html), note: Some(COMPLEX) })
            }
            _ => Err(Failed::Complex),
        };
    };
    let title = title(&doc);
    let named = doc.root().descendants_it().find(|node| node.has_name("base") && node.has_attr("href"));
    let named = named.and_then(|node| base.url.join(&node.attr("href")?).ok());
    let named = named.filter(|base| base.as_str().len() <= BASE_BYTES_MAX);
    let url = named.unwrap_or_else(|| base.url.clone());
    let links = Links::new((!base.published).then_some(&url));
    let mut note = None;
    let text = if let Some(matcher) = &matcher {
        let nodes = selected(&doc, matcher);
        if nodes.is_empty() {
            return Err(Failed::Nothing);
        }
        let text = nodes.iter().map(|node| shown(*node, form, &links)).filter(|text| !text.is_empty());
        text.collect::<Vec<_>>().join("\n\n")
    } else if form == Form::Links {
        list_links(&doc.root(), &links)
    } else if doc.tree.len() > READABLE_NODES_MAX {
        note = Some(WHOLE);
        shown(doc.root(), form, &links)
    } else {
        article(doc, form, &links, nodes_max)
    };
    Ok(Converted { title, text, note })
}

/// The text of a piece of HTML, blocks separated by empty lines.
pub(super) fn text(html: &str) -> String {
    if !html.contains(['<', '&']) {
        return html.trim().to_owned();
    }
    match parse(html, TEXT_NODES_MAX) {
        Some(doc) => render(doc.root(), Style::Plain, &Links::new(None)),
        None => plain::text(html),
    }
}

/// The main content of a page, or the whole page if none is found.
fn article(doc: Document, form: Form, links: &Links<'_>, nodes_max: usize) -> String {
    // The search modifies the tree; the original is needed if it finds nothing.
    let whole = doc.clone();
    // It would prepend the base, of any length, to every link; links are resolved afterwards, within limits.
    let bases: Vec<_> = doc.root().descendants_it().filter(|node| node.has_name("base")).collect();
    bases.iter().for_each(NodeRef::remove_from_parent);
    let article = Readability::with_document(doc, None, None).and_then(|mut page| page.parse());
    let text = match article {
        Ok(article) if !article.content.trim().is_empty() => {
            parse(&article.content, nodes_max).map(|content| shown(content.root(), form, links)).unwrap_or_default()
        }
        _ => String::new(),
    };
    if text.trim().is_empty() { shown(whole.root(), form, links) } else { text }
}

fn shown(node: NodeRef<'_>, form: Form, links: &Links<'_>) -> String {
    match form {
        Form::Markdown => render(node, Style::Markdown, links),
        Form::Text => render(node, Style::Plain, links),
        Form::Links => list_links(&node, links),
        Form::Html => match node.is_document() {
            true => body(&node).map(|body| body.inner_html().trim().to_owned()).unwrap_or_default(),
            false => node.html().trim().to_owned(),
        },
    }
}

fn body<'a>(node: &NodeRef<'a>) -> Option<NodeRef<'a>> {
    node.descendants_it().find(|node| node.has_name("body"))
}

/// The elements that a selector matches, without those inside another match.
fn selected<'a>(doc: &'a Document, matcher: &Matcher) -> Vec<NodeRef<'a>> {
    let (mut found, mut stack) = (Vec::new(), vec![doc.root()]);
    while let Some(node) = stack.pop() {
        if node.is_element() && matcher.match_element(&node) {
            found.push(node);
        } else {
            stack.extend(node.children_it(true));
        }
    }
    found
}

/// The title of a page: its `<title>`, or its first heading.
fn title(doc: &Document) -> Option<String> {
    let text_of = |name: &str| {
        let node = doc.root().descendants_it().find(|node| node.has_name(name))?;
        let text = node.text().split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then(|| text.chars().take(TITLE_CHARS_MAX).collect::<String>())
    };
    text_of("title").or_else(|| text_of("h1"))
}

fn list_links(root: &NodeRef<'_>, links: &Links<'_>) -> String {
    let mut seen = HashSet::new();
    let mut out = String::new();
    let nodes = std::iter::once(*root).chain(root.descendants_it());
    for node in nodes.filter(|node| node.has_name("a")) {
        let Some(href) = node.attr("href").and_then(|href| links.resolve(&href)) else { continue };
        if href.starts_with('#') || !seen.insert(href.clone()) {
            continue;
        }
        let text = beginning(&node);
        let text = if text.is_empty() { &href } else { &text };
        out.push_str(&format!("* [{text}]({href})\n"));
        if seen.len() >= LINKS_MAX {
            break;
        }
    }
    out.trim_end().to_owned()
}

/// The text of an element as a link label, on one line and truncated; links may be nested.
fn beginning(node: &NodeRef<'_>) -> String {
    let mut out = String::new();
    let (mut blank, mut room) = (false, TITLE_CHARS_MAX);
    for text in node.descendants_it() {
        if room == 0 {
            break;
        }
        if !text.is_text() {
            continue;
        }
        let text = text.text();
        for c in text.chars() {
            if c.is_whitespace() {
                blank = !out.is_empty();
                continue;
            }
            for c in [' '; 1].into_iter().filter(|_| std::mem::take(&mut blank)).chain([c]).take(room) {
                out.push(c);
                room -= 1;
            }
            if room == 0 {
                break;
            }
        }
    }
    out
}

/// Parses a page; `None` if it has too many nodes, or is too deep.
fn parse(html: &str, nodes_max: usize) -> Option<Document> {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tokenizer: TokenizerOpts::default(), tree_builder };
    let mut parser = parse_document(Document::default(), options);
    let mut rest = html;
    while !rest.is_empty() {
        let mut end = rest.len().min(PIECE_BYTES);
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        parser.process(StrTendril::from_slice(&rest[..end]));
        rest = &rest[end..];
        let doc = &parser.tokenizer.sink.sink;
        // A malicious page causes millions.
        doc.errors.borrow_mut().clear();
        // The parser's time is quadratic in the depth, so it must stop.
        let last = std::iter::successors(Some(doc.root()), NodeRef::last_child);
        if doc.tree.len() > nodes_max || last.take(DEPTH_MAX + 1).count() > DEPTH_MAX {
            return None;
        }
    }
    let doc = parser.finish();
    (depth(&doc) <= DEPTH_MAX).then_some(doc)
}

/// The depth of the tree.
fn depth(doc: &Document) -> usize {
    let (mut deepest, mut stack) = (0, vec![(doc.root(), 1_usize)]);
    while let Some((node, depth)) = stack.pop() {
        deepest = deepest.max(depth);
        stack.extend(node.children_it(false).map(|child| (child, depth + 1)));
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES_MAX: usize = 300_000;

    fn page(html: &str, form: Form, selector: Option<&str>) -> Result<Converted, Failed> {
        let url = Url::parse("http://a.test/dir/page").unwrap();
        convert(html, Base { url: &url, published: false }, form, selector, NODES_MAX)
    }

    fn sentences(n: usize) -> String {
        (0..n)
            .map(|i| format!("<p>Sentence number {i} is long enough, and has commas, so that it counts as text.</p>"))
            .collect()
    }

    #[test]
    fn the_main_content_is_found_and_titles_are_read() {
        let html = format!(
            "<html><head><title> A  title </title></head><body><nav><a href=/x>menu</a></nav><article><h1>Head</h1>{}\
             <p><a href='next?a=1'>more</a></p></article><footer>imprint</footer></body></html>",
            sentences(8)
        );
        let got = page(&html, Form::Markdown, None).unwrap();
        assert_eq!(got.title.as_deref(), Some("A title"));
        assert!(got.text.contains("Sentence number 7") && got.text.contains("## Head"), "{}", got.text);
        assert!(got.text.contains("[more](http://a.test/dir/next?a=1)"), "{}", got.text);
        assert!(!got.text.contains("menu"), "{}", got.text);
        let links = page(&html, Form::Links, None).unwrap().text;
        assert_eq!(links, "* [menu](http://a.test/x)\n* [more](http://a.test/dir/next?a=1)");
        let text = page(&html, Form::Text, None).unwrap().text;
        assert!(text.contains("Sentence number 7") && !text.contains('#') && !text.contains("http"), "{text}");
        let html = page(&html, Form::Html, None).unwrap().text;
        assert!(html.contains("<p>Sentence number 7") && !html.contains("menu"), "{html}");
    }

    #[test]
    fn selectors_pick_and_say_when_they_do_not() {
        let html = "<div id=a><p class=x>one <b class=x>two</b></p></div><p class=x>three</p><base href='/b/'><a class=l href=c>l</a>";
        assert_eq!(page(html, Form::Markdown, Some(".x")).unwrap().text, "one **two**\n\nthree");
        assert_eq!(page(html, Form::Html, Some("#a b")).unwrap().text, "<b class=\"x\">two</b>");
        assert_eq!(page(html, Form::Markdown, Some(".l")).unwrap().text, "[l](http://a.test/b/c)");
        assert_eq!(page(html, Form::Markdown, Some("table")).unwrap_err(), Failed::Nothing);
        assert_eq!(page(html, Form::Markdown, Some("p[")).unwrap_err(), Failed::Selector);
    }

    #[test]
    fn pages_without_an_article_are_shown_as_they_are() {
        assert_eq!(page("plain no type", Form::Markdown, None).unwrap().text, "plain no type");
        for empty in ["", "<html></html>", "<script>x</script>", "<!-- x -->", "<div> </div>"] {
            assert_eq!(page(empty, Form::Markdown, None).unwrap().text.trim(), "", "{empty}");
        }
    }

    #[test]
    fn deep_pages_take_bounded_stack() {
        let pages = [
            "<div>".repeat(700),
            "<b>".repeat(700),
            "<table>".repeat(400),
            "<ul><li>".repeat(700),
            "<blockquote>".repeat(700) + "x",
            "<div>".repeat(500) + "x",
            "<blockquote>".repeat(500) + "x",
            "<a".repeat(8_000),
            "<!--".repeat(8_000),
            "&amp;".repeat(1_500),
            "<svg>".repeat(700) + "<p>after",
            "<template>".repeat(700),
        ];
        for html in pages {
            let beginning: String = html.chars().take(12).collect();
            let worker = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
                for form in [Form::Markdown, Form::Text, Form::Html, Form::Links] {
                    let _ = page(&html, form, None);
                }
            });
            worker.unwrap().join().unwrap_or_else(|_| panic!("{beginning}"));
        }
    }

    #[test]
    fn too_deep_pages_still_give_their_text() {
        let got = page(&format!("{}deep<p>down", "<div>".repeat(100_000)), Form::Markdown, None).unwrap();
        assert_eq!((got.text.as_str(), got.note), ("deep\n\ndown", Some(COMPLEX)));
        assert_eq!(page(&"<div>".repeat(100_000), Form::Markdown, Some("p")).unwrap_err(), Failed::Complex);
    }

    #[test]
    fn texts_of_feeds_are_plain() {
        assert_eq!(text("<p>First.</p><p>Second &amp; third</p>"), "First.\n\nSecond & third");
        assert_eq!(text(&format!("{}deep<p>down", "<div>".repeat(1_000))), "deep\n\ndown");
        assert_eq!(text(" plain * "), "plain *");
    }

    #[test]
    fn what_the_parser_multiplies_is_bounded() {
        // Each paragraph opens all elements before it again.
        let html = (0..100).map(|i| format!("<b a={i}>")).collect::<String>();
        let html = format!("<p>{html}y</p>{}", "<p>x</p>".repeat(100));
        assert!(parse(&html, 10_000).is_none() && parse(&html, 12_000).is_some());
        let url = Url::parse("http://a.test/").unwrap();
        let base = Base { url: &url, published: false };
        let got = convert(&html, base, Form::Markdown, None, 10_000).unwrap();
        assert_eq!((got.note, got.text.matches('x').count()), (Some(COMPLEX), 100));
        assert_eq!(convert(&html, base, Form::Links, None, 10_000).unwrap_err(), Failed::Complex);
    }

    /// The search for the main content would make every address whole, and the base as long as it likes.
    #[test]
    fn a_base_makes_the_main_content_no_longer() {
        let base = |length| format!("<base href=http://base.test/{}/>", "d".repeat(length));
        for length in [20, 1_900, 20_000] {
            for (what, each) in [
                ("links", "<a href=z>l</a> "),
                ("images", "<img src=z.png alt=i> "),
                ("sets of images", "<img src=z.png srcset='z.png,z.png 2x,z.png 3x'> "),
                ("videos", "<video src=z.mp4 poster=z.png></video> "),
                ("sources", "<picture><source srcset='z.png,z.png 2x'><img src=z.png alt=i></picture> "),
            ] {
                let block = format!("<p>{} Some words, and more words, and a sentence of them.</p>", each.repeat(5));
                let html = format!("<head>{}</head><article>{}</article>", base(length), block.repeat(40));
                let got = page(&html, Form::Html, None).unwrap();
                assert!(got.note.is_none() && got.text.contains("Some words"), "{what}: {}", got.text);
                assert!(got.text.len() < 2 * 40 * block.len(), "{what}, {length}: {}", got.text.len());
            }
        }
        // Links lead where they did.
        let html =
            format!("<head><base href=/b/></head><article>{}</article>", "<p>Words, <a href=c>l</a>.</p>".repeat(40));
        assert!(page(&html, Form::Markdown, None).unwrap().text.starts_with("Words, [l](http://a.test/b/c)."));
    }

    #[test]
    fn a_long_base_is_not_followed() {
        for (length, want) in [(2_000, "base.test"), (3_000, "a.test")] {
            let html = format!("<base href=http://base.test/{}/><a href=x>l</a>", "d".repeat(length));
            let links = page(&html, Form::Links, None).unwrap().text;
            assert!(links.starts_with(&format!("* [l](http://{want}/")), "{links}");
        }
    }
}
