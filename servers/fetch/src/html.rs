//! HTML: parsing that hostile pages cannot make deep, large or slow, finding what a page is about, and its links.
//!
//! The parser is html5ever, the tree dom_query's, the search for the main content dom_smoothie's. None of them has bounds, so
//! that the page is fed to the parser in small pieces, and [`Guard`] counts what comes of them. A page that passes a bound is
//! reduced to its bare text by [`bare_text`], which is linear and does not look at structure.

use crate::markdown::{Links, Style, render};
use dom_query::{Document, Matcher, NodeId, NodeRef};
use dom_smoothie::Readability;
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tokenizer::TokenizerOpts;
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeBuilderOpts, TreeSink};
use html5ever::{Attribute, ParseOpts, QualName, parse_document};
use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use url::Url;

/// What is wanted of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Markdown,
    Text,
    Html,
    Links,
}

/// A page in the form that was wanted.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    pub(crate) title: Option<String>,
    /// Empty when nothing was found.
    pub(crate) text: String,
    /// What the reader should know about how it was made.
    pub(crate) note: Option<&'static str>,
}

/// Why there is nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The selector is no CSS selector.
    Selector,
    /// Nothing fits it.
    Nothing,
    /// The page is too complex for what was wanted.
    Complex,
}

const NODES_MAX: usize = 300_000;
const DEPTH_MAX: usize = 512;
/// Larger pages are not searched for their main content: that takes longer than their length says, and cannot be stopped.
const READABLE_ELEMENTS_MAX: usize = 60_000;
const READABLE_BYTES_MAX: usize = 2 << 20;
/// Bytes between two looks at the bounds.
const PIECE_BYTES: usize = 256;
/// How long parsing may take; ordinary pages take milliseconds.
const PARSING_MAX: Duration = Duration::from_secs(10);
/// How many bytes of attributes the parser may repeat: it opens formatting elements again, attributes and all, for every block
/// that they reach into.
const REPEATED_BYTES_MAX: usize = 4 << 20;
/// A longer `<base>` is not followed: every link would become as long.
const BASE_BYTES_MAX: usize = 2_048;
const LINKS_MAX: usize = 5_000;
const TITLE_CHARS_MAX: usize = 300;

const COMPLEX: &str = "The page is too large or too deeply nested to be simplified: this is its bare text.";
const WHOLE: &str = "The page is too large to be searched for its main content: this is all of it.";

/// Brings a page into a form. `base` is where it lies; `compat` leaves links as they stand in it.
pub(crate) fn convert(
    html: &str,
    base: &Url,
    form: Form,
    selector: Option<&str>,
    compat: bool,
    deadline: Instant,
) -> Result<Converted, Failed> {
    let matcher = selector.map(Matcher::new).transpose().map_err(|_| Failed::Selector)?;
    let Some(doc) = parse(html, deadline) else {
        if matcher.is_some() || matches!(form, Form::Html | Form::Links) {
            return Err(Failed::Complex);
        }
        return Ok(Converted { title: None, text: bare_text(html), note: Some(COMPLEX) });
    };
    let named = doc.root().descendants_it().find(|node| node.has_name("base") && node.has_attr("href"));
    let named = named.and_then(|node| base.join(&node.attr("href")?).ok());
    let named = named.filter(|base| base.as_str().len() <= BASE_BYTES_MAX);
    let base = named.unwrap_or_else(|| base.clone());
    let links = Links::new((!compat).then_some(&base));
    let title = title(&doc);
    if let Some(matcher) = matcher {
        let nodes = selected(&doc, &matcher);
        if nodes.is_empty() {
            return Err(Failed::Nothing);
        }
        let text = nodes.iter().map(|node| shown(*node, form, &links)).filter(|text| !text.is_empty());
        return Ok(Converted { title, text: text.collect::<Vec<_>>().join("\n\n"), note: None });
    }
    if form == Form::Links {
        return Ok(Converted { title, text: list_links(&[doc.root()], &links), note: None });
    }
    let (elements, bytes) = size(&doc);
    if elements > READABLE_ELEMENTS_MAX || bytes > READABLE_BYTES_MAX {
        return Ok(Converted { title, text: shown(doc.root(), form, &links), note: Some(WHOLE) });
    }
    // The search changes the tree; the page as it was is needed when it finds nothing.
    let whole = doc.clone();
    let article = Readability::with_document(doc, None, None).and_then(|mut page| page.parse());
    let text = match article {
        Ok(article) if !article.content.trim().is_empty() => match parse(&article.content, deadline) {
            Some(content) => shown(content.root(), form, &links),
            None => bare_text(&article.content),
        },
        _ => String::new(),
    };
    let text = if text.trim().is_empty() { shown(whole.root(), form, &links) } else { text };
    Ok(Converted { title, text, note: None })
}

/// Elements, and bytes of text.
fn size(doc: &Document) -> (usize, usize) {
    doc.root().descendants_it().fold((0, 0), |(elements, bytes), node| match node.is_text() {
        true => (elements, bytes + node.text().len()),
        false => (elements + usize::from(node.is_element()), bytes),
    })
}

fn shown(node: NodeRef<'_>, form: Form, links: &Links<'_>) -> String {
    match form {
        Form::Markdown => render(node, Style::Markdown, links),
        Form::Text => render(node, Style::Plain, links),
        Form::Links => list_links(&[node], links),
        Form::Html => match node.is_document() {
            true => body(&node).map(|body| body.inner_html().trim().to_owned()).unwrap_or_default(),
            false => node.html().trim().to_owned(),
        },
    }
}

fn body<'a>(node: &NodeRef<'a>) -> Option<NodeRef<'a>> {
    node.descendants_it().find(|node| node.has_name("body"))
}

/// What a selector picks; what lies inside of something picked is not picked again.
fn selected<'a>(doc: &'a Document, matcher: &Matcher) -> Vec<NodeRef<'a>> {
    let found = doc.select_matcher(matcher);
    let ids: HashSet<NodeId> = found.nodes().iter().map(|node| node.id).collect();
    let outermost = |node: &&NodeRef<'a>| !node.ancestors_it(None).any(|above| ids.contains(&above.id));
    found.nodes().iter().filter(outermost).copied().collect()
}

/// The name of a page: its title, or its first heading.
fn title(doc: &Document) -> Option<String> {
    let text_of = |name: &str| {
        let node = doc.root().descendants_it().find(|node| node.has_name(name))?;
        let text = node.text().split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then(|| text.chars().take(TITLE_CHARS_MAX).collect::<String>())
    };
    text_of("title").or_else(|| text_of("h1"))
}

fn list_links(roots: &[NodeRef<'_>], links: &Links<'_>) -> String {
    let mut seen = HashSet::new();
    let mut out = String::new();
    let nodes = roots.iter().flat_map(|root| std::iter::once(*root).chain(root.descendants_it()));
    for node in nodes.filter(|node| node.has_name("a")) {
        let Some(href) = node.attr("href").and_then(|href| links.resolve(&href)) else { continue };
        let text = node.text().split_whitespace().collect::<Vec<_>>().join(" ");
        let text: String = text.chars().take(TITLE_CHARS_MAX).collect();
        if href.starts_with('#') || !seen.insert(href.clone()) {
            continue;
        }
        let text = if text.is_empty() { &href } else { &text };
        out.push_str(&format!("* [{text}]({href})\n"));
        if seen.len() >= LINKS_MAX {
            break;
        }
    }
    out.trim_end().to_owned()
}

/// Parses a page; `None` when it passes a bound.
fn parse(html: &str, deadline: Instant) -> Option<Document> {
    let deadline = deadline.min(Instant::now() + PARSING_MAX);
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tokenizer: TokenizerOpts::default(), tree_builder };
    let mut parser = parse_document(Guard::default(), options);
    let mut rest = html;
    while !rest.is_empty() {
        let mut end = rest.len().min(PIECE_BYTES);
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        parser.process(StrTendril::from_slice(&rest[..end]));
        rest = &rest[end..];
        let guard = &parser.tokenizer.sink.sink;
        let repeated = guard.attribute_bytes.get() > html.len() + REPEATED_BYTES_MAX;
        let large = guard.nodes.get() > NODES_MAX || guard.deepest.get() > DEPTH_MAX || repeated;
        if large || Instant::now() > deadline {
            return None;
        }
    }
    let doc = parser.finish();
    (depth(&doc) <= DEPTH_MAX + PIECE_BYTES).then_some(doc)
}

/// How deep the tree is; the parser moves nodes around, so that this is looked at again at the end.
fn depth(doc: &Document) -> usize {
    let (mut deepest, mut stack) = (0, vec![(doc.root(), 1_usize)]);
    while let Some((node, depth)) = stack.pop() {
        deepest = deepest.max(depth);
        stack.extend(node.children_it(false).map(|child| (child, depth + 1)));
    }
    deepest
}

/// A tree that counts what is put into it.
#[derive(Default)]
struct Guard {
    doc: Document,
    nodes: Cell<usize>,
    attribute_bytes: Cell<usize>,
    deepest: Cell<usize>,
    /// The depth of each node when it was put in.
    depths: RefCell<HashMap<NodeId, u16>>,
}

impl Guard {
    fn count(&self, parent: &NodeId, child: &NodeOrText<NodeId>, down: usize) {
        self.nodes.set(self.nodes.get() + 1);
        let mut depths = self.depths.borrow_mut();
        let above = depths.get(parent).copied().unwrap_or(0);
        let depth = above.saturating_add(u16::try_from(down).unwrap_or(u16::MAX));
        self.deepest.set(self.deepest.get().max(usize::from(depth)));
        if let NodeOrText::AppendNode(id) = child {
            depths.insert(*id, depth);
        }
    }
}

impl TreeSink for Guard {
    type Handle = NodeId;
    type Output = Document;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Document {
        self.doc
    }

    /// Mistakes of pages are not kept: a hostile page makes millions.
    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> NodeId {
        self.doc.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Ref<'a, QualName> {
        self.doc.elem_name(target)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        // Whatever becomes of it, it takes memory.
        self.nodes.set(self.nodes.get() + 1 + attrs.len() / 8);
        let bytes: usize = attrs.iter().map(|attr| attr.name.local.len() + attr.value.len()).sum();
        self.attribute_bytes.set(self.attribute_bytes.get() + bytes);
        self.doc.create_element(name, attrs, flags)
    }

    fn create_comment(&self, text: StrTendril) -> NodeId {
        self.doc.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> NodeId {
        self.doc.create_pi(target, data)
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        self.count(parent, &child, 1);
        self.doc.append(parent, child);
    }

    fn append_based_on_parent_node(&self, element: &NodeId, prev_element: &NodeId, child: NodeOrText<NodeId>) {
        self.count(prev_element, &child, 1);
        self.doc.append_based_on_parent_node(element, prev_element, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public_id: StrTendril, system_id: StrTendril) {
        self.doc.append_doctype_to_document(name, public_id, system_id);
    }

    fn get_template_contents(&self, target: &NodeId) -> NodeId {
        self.doc.get_template_contents(target)
    }

    fn same_node(&self, x: &NodeId, y: &NodeId) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.doc.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &NodeId, child: NodeOrText<NodeId>) {
        self.count(sibling, &child, 0);
        self.doc.append_before_sibling(sibling, child);
    }

    fn add_attrs_if_missing(&self, target: &NodeId, attrs: Vec<Attribute>) {
        self.doc.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &NodeId) {
        self.doc.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &NodeId, new_parent: &NodeId) {
        self.doc.reparent_children(node, new_parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &NodeId) -> bool {
        self.doc.is_mathml_annotation_xml_integration_point(handle)
    }
}

/// The text of a piece of HTML without looking at its structure: tags, scripts and comments go, blocks become lines.
pub(crate) fn bare_text(html: &str) -> String {
    let mut out = String::with_capacity(html.len() / 2);
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        push_text(&mut out, &rest[..at]);
        rest = &rest[at..];
        let Some(name) = tag_name(rest) else {
            push_text(&mut out, "<");
            rest = &rest[1..];
            continue;
        };
        if rest.starts_with("<!--") {
            rest = rest[4..].find("-->").map_or("", |end| &rest[4 + end + 3..]);
            continue;
        }
        let end = rest.find('>').map_or(rest.len(), |end| end + 1);
        rest = &rest[end..];
        if let Some(hidden) = HIDDEN.iter().find(|hidden| name == **hidden) {
            rest = after_end(rest, hidden);
        } else if BLOCKS.contains(&name.trim_start_matches('/')) {
            out.push('\n');
        }
    }
    push_text(&mut out, rest);
    let mut text = String::with_capacity(out.len());
    for line in out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")) {
        if line.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&line);
    }
    text
}

/// The name of the tag a text begins with, with its `/`, in small letters; a comment or declaration is `!`.
fn tag_name(text: &str) -> Option<String> {
    let rest = text.strip_prefix('<')?;
    let (slash, rest) = rest.strip_prefix('/').map_or(("", rest), |rest| ("/", rest));
    match rest.chars().next()? {
        '!' | '?' => Some("!".to_owned()),
        c if c.is_ascii_alphabetic() => {
            let end = rest.bytes().take(16).position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len().min(16));
            Some(format!("{slash}{}", rest.get(..end)?.to_ascii_lowercase()))
        }
        _ => None,
    }
}

/// What follows the end tag of this name.
fn after_end<'a>(text: &'a str, name: &str) -> &'a str {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let after = &text[from + at + 2..];
        if after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return after.find('>').map_or("", |end| &after[end + 1..]);
        }
        from += at + 2;
    }
    ""
}

/// Adds text with the usual character references resolved.
fn push_text(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|b| b == b';');
        let found = end.and_then(|end| Some((reference(&rest[1..end])?, end)));
        match found {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
}

fn reference(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let value = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(value).filter(|c| *c != '\0');
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "copy" => '©',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        _ => return None,
    })
}

const HIDDEN: [&str; 5] = ["script", "style", "noscript", "template", "svg"];
const BLOCKS: [&str; 34] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "title",
    "tr",
    "ul",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn page(html: &str, form: Form, selector: Option<&str>) -> Result<Converted, Failed> {
        let base = Url::parse("http://a.test/dir/page").unwrap();
        convert(html, &base, form, selector, false, Instant::now() + Duration::from_secs(60))
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
    fn hostile_pages_end_soon_in_bounded_stack() {
        let pages = [
            "<div>".repeat(50_000),
            "<b>".repeat(50_000),
            (0..5_000).map(|i| format!("<b a={i}>")).collect::<String>() + &"<p>x".repeat(5_000),
            "<table>".repeat(1_000),
            "<ul><li>".repeat(50_000),
            "<blockquote>".repeat(50_000) + "x",
            "<a".repeat(50_000),
            "<!--".repeat(20_000),
            "<p>x</p>".repeat(12_000),
            format!("<div {}>x", (0..3_000).map(|i| format!("a{i}=1 ")).collect::<String>()),
            "&amp;".repeat(5_000),
            "<svg>".repeat(20_000) + "<p>after",
            "<template>".repeat(20_000),
            format!("{}<p>a, b, c, and so on.{}", "<div>".repeat(60), "</div>".repeat(60)).repeat(15),
            format!("<p>a, b, <a href=x>{}", "<span>c, </span>".repeat(50)).repeat(100),
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
        let got = page(&format!("{}deep down", "<div>".repeat(10_000)), Form::Markdown, None).unwrap();
        assert_eq!((got.text.as_str(), got.note), ("deep down", Some(COMPLEX)));
        assert_eq!(page(&"<div>".repeat(10_000), Form::Markdown, Some("p")).unwrap_err(), Failed::Complex);
    }

    #[test]
    fn bare_text_is_what_a_reader_sees() {
        for (html, want) in [
            ("<h1>A</h1>b <b>c</b><br>d", "A\n\nb c\n\nd"),
            ("a<script>if (x < y) </scrip</script>b<!-- c > d -->e", "abe"),
            ("1 < 2 &amp;&amp; 3 &gt; 2 &#228;&#xe4;&unknown; & <", "1 < 2 && 3 > 2 ää&unknown; & <"),
            ("<style>x", ""),
        ] {
            assert_eq!(bare_text(html), want);
        }
    }

    #[test]
    fn what_the_parser_repeats_is_bounded() {
        // Each paragraph opens the element again, with its long attribute.
        let title = "t".repeat(20_000);
        for html in [
            format!("<p><a href=/x title={title}>y</p>{}", "<p>y</p>".repeat(1_000)),
            format!("<p><b data-x={title}>y</p>{}", "<p>y</p>".repeat(1_000)),
        ] {
            for form in [Form::Markdown, Form::Text] {
                let got = page(&html, form, None).unwrap();
                assert_eq!(got.note, Some(COMPLEX));
                assert!(got.text.len() < 10_000, "{}", got.text.len());
            }
            for form in [Form::Html, Form::Links] {
                assert_eq!(page(&html, form, None).unwrap_err(), Failed::Complex);
            }
        }
        let ordinary = format!("<p><a href=/x title={title}>y</p>{}", "<p>y</p>".repeat(100));
        assert_eq!(page(&ordinary, Form::Markdown, None).unwrap().note, None);
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
