//! HTML: bounded parsing of hostile pages, extraction of the main content, and links.
//!
//! The parser is html5ever, the tree dom_query's, the search for the main content dom_smoothie's. None of them has
//! limits, so the page is fed to the parser in small pieces, and [`Guard`] counts the nodes. A page that exceeds a
//! limit is reduced to its bare text by [`bare_text`], which is linear and ignores structure.
//!
//! All of it ends soon after the deadline. The search for the main content cannot be stopped; therefore [`Size`]
//! estimates its cost, and pages that would take too long are returned whole.

use crate::markdown::{Links, Style, render};
use crate::text::Work;
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

/// The requested form of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Markdown,
    Text,
    Html,
    Links,
}

/// A page in the requested form.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    pub(crate) title: Option<String>,
    /// Empty if nothing was found.
    pub(crate) text: String,
    /// A note on the conversion.
    pub(crate) note: Option<&'static str>,
}

/// Why the conversion failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Invalid CSS selector.
    Selector,
    /// The selector matches nothing.
    Nothing,
    /// The page is too complex for the request.
    Complex,
    /// The time is up.
    Late,
}

const NODES_MAX: usize = 300_000;
const DEPTH_MAX: usize = 512;
/// Larger pages are not searched for their main content: the search is not linear and cannot be stopped.
const READABLE_ELEMENTS_MAX: usize = 60_000;
const READABLE_BYTES_MAX: usize = 2 << 20;
/// Maximum cost of nesting in the search for the main content, which visits a node once for each pair of its ancestors.
const READABLE_NESTED_MAX: usize = 150_000_000;
/// Maximum number of headings times bytes of title candidates, to which each of them is compared.
const READABLE_COMPARED_MAX: usize = 50_000_000;
/// Maximum attributes of an element; lookups are quadratic.
const READABLE_ATTRIBUTES_MAX: usize = 2_000;
/// Bytes between two checks of the limits.
const PIECE_BYTES: usize = 256;
/// Maximum parser steps, and bytes written, per byte of a page: an ordinary page takes about ten of either.
const STEPS_EACH: usize = 64;
const STEPS_MORE: usize = 64 << 20;
/// Timeout of parsing; ordinary pages take milliseconds.
const PARSING_MAX: Duration = Duration::from_secs(10);
/// Maximum bytes of attributes that the parser may copy: it reopens formatting elements with their attributes in every
/// block they extend into.
const REPEATED_BYTES_MAX: usize = 4 << 20;
/// A longer `<base>` is ignored: every link would become as long.
const BASE_BYTES_MAX: usize = 2_048;
const LINKS_MAX: usize = 5_000;
/// The cost of matching an element against a selector, and the limit of steps if `:has` multiplies them.
const MATCH_UNITS: usize = 64;
const MATCHED_MAX: usize = 50_000_000;
const TITLE_CHARS_MAX: usize = 300;

const COMPLEX: &str = "The page is too large or too deeply nested to be simplified: this is its plain text.";
const WHOLE: &str = "The page is too large to extract its main content: this is the whole page.";

/// Converts a page. `base` is its URL; `compat` keeps links unresolved.
pub(crate) fn convert(
    html: &str,
    base: &Url,
    form: Form,
    selector: Option<&str>,
    compat: bool,
    work: &Work,
) -> Result<Converted, Failed> {
    let matcher = selector.map(Matcher::new).transpose().map_err(|_| Failed::Selector)?;
    let matcher = matcher.as_ref().zip(selector);
    let converted = simplified(html, base, form, matcher, compat, work);
    match converted {
        // The caller is gone, and the result may be incomplete.
        _ if work.is_late() => Err(Failed::Late),
        Err(Failed::Complex) if matcher.is_none() && matches!(form, Form::Markdown | Form::Text) => {
            Ok(Converted { title: None, text: bare_text(html), note: Some(COMPLEX) })
        }
        converted => converted,
    }
}

fn simplified(
    html: &str,
    base: &Url,
    form: Form,
    matcher: Option<(&Matcher, &str)>,
    compat: bool,
    work: &Work,
) -> Result<Converted, Failed> {
    let doc = parse(html, work).ok_or(Failed::Complex)?;
    let named = doc.root().descendants_it().find(|node| node.has_name("base") && node.has_attr("href"));
    let named = named.and_then(|node| base.join(&node.attr("href")?).ok());
    let named = named.filter(|base| base.as_str().len() <= BASE_BYTES_MAX);
    let base = named.unwrap_or_else(|| base.clone());
    work.begin(steps(html));
    let links = Links::new((!compat).then_some(&base), work);
    let (title, mut note) = (title(&doc), None);
    let text = if let Some((matcher, selector)) = matcher {
        let nodes = selected(&doc, matcher, selector, work)?;
        if nodes.is_empty() && !work.is_over() {
            return Err(Failed::Nothing);
        }
        let text = nodes.iter().map(|node| shown(*node, form, &links)).filter(|text| !text.is_empty());
        text.collect::<Vec<_>>().join("\n\n")
    } else if form == Form::Links {
        list_links(&doc.root(), &links)
    } else if !Size::of(&doc).is_readable() {
        note = Some(WHOLE);
        shown(doc.root(), form, &links)
    } else if work.is_late() {
        String::new()
    } else {
        article(doc, form, &links)
    };
    // A truncated result is not a page.
    if work.is_over() { Err(Failed::Complex) } else { Ok(Converted { title, text, note }) }
}

/// The maximum cost of parsing or writing a page.
fn steps(html: &str) -> usize {
    html.len().saturating_mul(STEPS_EACH) + STEPS_MORE
}

/// The main content of a page, or the whole page if none is found.
fn article(doc: Document, form: Form, links: &Links<'_>) -> String {
    // The search modifies the tree; the original is needed if it finds nothing.
    let whole = doc.clone();
    // It would prepend the base, of any length, to every link; links are resolved afterwards, within limits.
    let bases: Vec<_> = doc.root().descendants_it().filter(|node| node.has_name("base")).collect();
    bases.iter().for_each(NodeRef::remove_from_parent);
    let article = Readability::with_document(doc, None, None).and_then(|mut page| page.parse());
    let text = match article {
        Ok(article) if !article.content.trim().is_empty() => match parse(&article.content, links.work()) {
            Some(content) => {
                links.work().begin(steps(&article.content));
                shown(content.root(), form, links)
            }
            None => bare_text(&article.content),
        },
        _ => String::new(),
    };
    if text.trim().is_empty() { shown(whole.root(), form, links) } else { text }
}

/// The estimated cost of the search for the main content.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Size {
    elements: usize,
    /// Bytes of text.
    bytes: usize,
    /// Nodes, and blocks of 32 bytes of text, each times the square of its depth.
    nested: usize,
    headings: usize,
    /// Bytes of title candidates.
    titles: usize,
    /// The largest number of attributes of an element.
    attributes: usize,
}

impl Size {
    fn of(doc: &Document) -> Size {
        let mut size = Size::default();
        let mut stack = vec![(doc.root(), 0_usize, false)];
        while let Some((node, depth, title)) = stack.pop() {
            let mut title = title;
            let mut weight = 1;
            if node.is_text() {
                let bytes = node.text().len();
                size.bytes += bytes;
                size.titles += if title { bytes } else { 0 };
                weight += bytes / 32;
            } else if let Some(element) = node.element_ref() {
                size.elements += 1;
                size.attributes = size.attributes.max(element.attrs.len());
                match &*element.name.local {
                    "h2" => size.headings += 1,
                    "h1" => (title, size.headings) = (true, size.headings + 1),
                    // A script may contain a title as data.
                    "title" => title = true,
                    "script" => title = element.attrs.iter().any(|attr| attr.value.contains("ld+json")),
                    "meta" => {
                        size.titles += element.attrs.iter().map(|attr| attr.value.len()).sum::<usize>();
                    }
                    _ => {}
                }
            }
            size.nested = size.nested.saturating_add(weight.saturating_mul(depth * depth));
            stack.extend(node.children_it(true).map(|child| (child, depth + 1, title)));
        }
        size
    }

    fn is_readable(&self) -> bool {
        self.elements <= READABLE_ELEMENTS_MAX
            && self.bytes <= READABLE_BYTES_MAX
            && self.nested <= READABLE_NESTED_MAX
            && self.headings.saturating_mul(self.titles) <= READABLE_COMPARED_MAX
            && self.attributes <= READABLE_ATTRIBUTES_MAX
    }
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
fn selected<'a>(doc: &'a Document, matcher: &Matcher, selector: &str, work: &Work) -> Result<Vec<NodeRef<'a>>, Failed> {
    let (mut found, mut stack) = (Vec::new(), vec![doc.root()]);
    // Matching one element does not check the clock. It is linear in the number of elements, but each `:has` and each
    // `~` inside it multiplies that.
    if selector.to_ascii_lowercase().contains(":has(") {
        let elements = doc.root().descendants_it().filter(NodeRef::is_element).count();
        let each = u32::try_from(selector.matches('~').count()).unwrap_or(u32::MAX);
        if elements.saturating_pow(each.saturating_add(1)) > MATCHED_MAX {
            return Err(Failed::Complex);
        }
    }
    while let Some(node) = stack.pop() {
        if !work.spend(MATCH_UNITS) {
            return Err(Failed::Complex);
        }
        if node.is_element() && matcher.match_element(&node) {
            found.push(node);
        } else {
            stack.extend(node.children_it(true));
        }
    }
    Ok(found)
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
        if !links.work().spend(0) {
            break;
        }
        let Some(href) = node.attr("href").and_then(|href| links.resolve(&href)) else { continue };
        if href.starts_with('#') || !seen.insert(href.clone()) {
            continue;
        }
        let text = beginning(&node, links.work());
        let text = if text.is_empty() { &href } else { &text };
        out.push_str(&format!("* [{text}]({href})\n"));
        if seen.len() >= LINKS_MAX {
            break;
        }
    }
    out.trim_end().to_owned()
}

/// The text of an element as a link label, on one line and truncated; links may be nested.
fn beginning(node: &NodeRef<'_>, work: &Work) -> String {
    let mut out = String::new();
    let (mut blank, mut room) = (false, TITLE_CHARS_MAX);
    for text in node.descendants_it() {
        if room == 0 || !work.spend(0) {
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

/// Parses a page; `None` if it exceeds a limit.
fn parse(html: &str, work: &Work) -> Option<Document> {
    work.begin(steps(html));
    let deadline = work.deadline().min(Instant::now() + PARSING_MAX);
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tokenizer: TokenizerOpts::default(), tree_builder };
    let mut parser = parse_document(Guard::new(work), options);
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
        if large || work.is_over() || Instant::now() > deadline {
            return None;
        }
    }
    let doc = parser.finish();
    (depth(&doc) <= DEPTH_MAX + PIECE_BYTES).then_some(doc)
}

/// The depth of the tree; the parser moves nodes, so it is checked again at the end.
fn depth(doc: &Document) -> usize {
    let (mut deepest, mut stack) = (0, vec![(doc.root(), 1_usize)]);
    while let Some((node, depth)) = stack.pop() {
        deepest = deepest.max(depth);
        stack.extend(node.children_it(false).map(|child| (child, depth + 1)));
    }
    deepest
}

/// A tree that counts its nodes and lookups.
struct Guard<'w> {
    doc: Document,
    work: &'w Work,
    /// The largest number of attributes of an element, and those added to elements later.
    most: Cell<usize>,
    added: Cell<usize>,
    nodes: Cell<usize>,
    attribute_bytes: Cell<usize>,
    deepest: Cell<usize>,
    /// The depth of each node when it was inserted.
    depths: RefCell<HashMap<NodeId, u16>>,
}

impl<'w> Guard<'w> {
    fn new(work: &'w Work) -> Self {
        let (doc, depths) = (Document::default(), RefCell::default());
        let [most, added, nodes, attribute_bytes, deepest] = [0; 5].map(Cell::new);
        Guard { doc, work, most, added, nodes, attribute_bytes, deepest, depths }
    }

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

impl TreeSink for Guard<'_> {
    type Handle = NodeId;
    type Output = Document;
    type ElemName<'a>
        = Ref<'a, QualName>
    where
        Self: 'a;

    fn finish(self) -> Document {
        self.doc
    }

    /// Parse errors are discarded: a hostile page causes millions.
    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> NodeId {
        self.doc.get_document()
    }

    /// Called for every element that the parser checks for a tag, which may be hundreds.
    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Ref<'a, QualName> {
        self.work.spend(0);
        self.doc.elem_name(target)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        // It takes memory even if it is never attached.
        self.nodes.set(self.nodes.get() + 1 + attrs.len() / 8);
        let bytes: usize = attrs.iter().map(|attr| attr.name.local.len() + attr.value.len()).sum();
        self.attribute_bytes.set(self.attribute_bytes.get() + bytes);
        self.most.set(self.most.get().max(attrs.len()));
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

    /// Each `<html x>` and `<body x>` after the first adds attributes, and each is compared with all existing ones.
    fn add_attrs_if_missing(&self, target: &NodeId, attrs: Vec<Attribute>) {
        self.added.set(self.added.get() + attrs.len());
        if !self.work.spend((self.added.get() + self.most.get()) * (attrs.len() + 1)) {
            return;
        }
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

/// The text of HTML, ignoring its structure: tags, scripts and comments are removed, blocks become lines.
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

/// The name of the tag at the start of a text, with its `/`, in lower case; `!` for a comment or declaration.
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

/// The text after the end tag of this name.
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

/// Appends text with the common character references resolved.
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
        page_in(html, form, selector, Work::until(Instant::now() + Duration::from_secs(60))).0
    }

    /// The page, and what was spent to convert it.
    fn page_in(html: &str, form: Form, selector: Option<&str>, work: Work) -> (Result<Converted, Failed>, usize) {
        let base = Url::parse("http://a.test/dir/page").unwrap();
        (convert(html, &base, form, selector, false, &work), work.spent())
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
            "<div>".repeat(8_000),
            "<b>".repeat(8_000),
            (0..1_500).map(|i| format!("<b a={i}>")).collect::<String>() + &"<p>x".repeat(1_500),
            "<table>".repeat(1_000),
            "<ul><li>".repeat(8_000),
            "<blockquote>".repeat(8_000) + "x",
            "<a".repeat(8_000),
            "<!--".repeat(8_000),
            "<p>x</p>".repeat(3_000),
            format!("<div {}>x", (0..2_500).map(|i| format!("a{i}=1 ")).collect::<String>()),
            "&amp;".repeat(1_500),
            "<svg>".repeat(8_000) + "<p>after",
            "<template>".repeat(8_000),
            format!("{}<p>a, b, c, and so on.{}", "<div>".repeat(60), "</div>".repeat(60)).repeat(15),
            format!("<p>a, b, <a href=x>{}", "<span>c, </span>".repeat(50)).repeat(40),
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

    /// Pages that cost more than their length says, each twice as long when `n` is.
    fn costly(n: usize) -> Vec<String> {
        vec![
            format!("<ol>{}", "<li>a".repeat(150 * n)),
            format!("<ol>{}", "<li>a<ol><li>b</ol>".repeat(50 * n)),
            format!("{}{}", "<span>".repeat(400), "</x>".repeat(250 * n)),
            format!("{}{}", "<span>".repeat(400), "<li></li>".repeat(50 * n)),
            format!("{}{}", "<h1><div>".repeat(100), "word ".repeat(500 * n)),
            format!("{}{}", "<pre>".repeat(200), "word\n".repeat(500 * n)),
            format!("{}{}", "<ul><li>x".repeat(100), "<li>y".repeat(100 * n)),
            format!("{}{}", "<blockquote>".repeat(100), "w<br>".repeat(100 * n)),
            format!("<base href=/{}/>{}", "d".repeat(1_900), "<a href=x>l</a>".repeat(50 * n)),
            format!("{}{}", "<a href=x><object>".repeat(100), "words ".repeat(250 * n)),
            format!("<h2>x</h2>{}", "<p>x</p>".repeat(100 * n)),
            sentences(25 * n),
        ]
    }

    #[test]
    fn pages_twice_as_long_cost_about_twice() {
        for form in [Form::Markdown, Form::Links] {
            for (short, long) in costly(2).iter().zip(costly(4)) {
                let cost = |html: &str| page_in(html, form, None, Work::late_after(usize::MAX)).1;
                let (short, long, start) = (cost(short), cost(&long), long.chars().take(20).collect::<String>());
                // What stands around the part that is repeated stays, which only makes the ratio smaller.
                assert!(long * 10 < short * 25, "{form:?} {start}: {short}, {long}");
            }
        }
    }

    #[test]
    fn work_ends_with_its_time() {
        for (n, html) in costly(1).iter().enumerate() {
            for (form, selector) in
                [(Form::Markdown, None), (Form::Text, None), (Form::Links, None), (Form::Markdown, Some("h2 ~ q, q"))]
            {
                let whole = page_in(html, form, selector, Work::late_after(usize::MAX)).1;
                for part in [0, 20, 80] {
                    let time = whole / 100 * part;
                    let (got, spent) = page_in(html, form, selector, Work::late_after(time));
                    assert_eq!(got.err(), Some(Failed::Late), "page {n} {form:?} at {part}%");
                    // A look at the clock is never further away than this.
                    assert!(spent < time + 100_000, "page {n} {form:?}: {spent} for {time}");
                }
            }
        }
    }

    #[test]
    fn the_search_for_the_main_content_is_spared_what_it_cannot_do_soon() {
        let size = |html: &str| Size::of(&parse(html, &Work::late_after(usize::MAX)).unwrap());
        let blocks = |deep, n| format!("{}{}", "<div>".repeat(deep), "<p>some words, and more words</p>".repeat(n));
        assert!(size(&blocks(20, 500)).is_readable());
        // Looked at once for each pair of elements around it.
        assert!(!size(&blocks(300, 1_500)).is_readable());
        // Each heading is compared with the whole title.
        for title in [
            format!("<title>{}</title>", "word ".repeat(20_000)),
            format!("<meta property=og:title content='{}'>", "word ".repeat(20_000)),
            format!("<script type=application/ld+json>\"{}\"</script>", "word ".repeat(20_000)),
        ] {
            assert!(size(&format!("{title}{}", "<h2>x</h2>".repeat(50))).is_readable());
            assert!(!size(&format!("{title}{}", "<h2>x</h2>".repeat(600))).is_readable());
        }
        // Each attribute is looked for among the others.
        let image = |n| format!("<img {}>", (0..n).map(|i| format!("a{i}=x.jpg ")).collect::<String>());
        assert!(size(&image(100)).is_readable() && !size(&image(3_000)).is_readable());
        let got = page(&blocks(300, 1_500), Form::Markdown, None).unwrap();
        assert_eq!(got.note, Some(WHOLE));
        assert_eq!(got.text.matches("some words").count(), 1_500);
    }

    #[test]
    fn selectors_that_multiply_are_refused_on_large_pages() {
        let html = "<p>x</p>".repeat(8_000);
        assert_eq!(page(&html, Form::Markdown, Some("p:has(~ b ~ c)")).unwrap_err(), Failed::Complex);
        assert_eq!(page(&html, Form::Markdown, Some("p:HAS(~ b)")).unwrap_err(), Failed::Complex);
        assert_eq!(page("<p>x</p><b>y</b>", Form::Markdown, Some("p:has(~ b)")).unwrap().text, "x");
        assert_eq!(page(&html, Form::Markdown, Some("div:has(b)")).unwrap_err(), Failed::Nothing);
    }

    #[test]
    fn attributes_that_are_added_later_are_bounded() {
        let added = |n| (0..n).map(|i| format!("<html a{i}><body b{i}=1>")).collect::<String>() + "<p>x";
        assert_eq!(page(&added(100), Form::Markdown, None).unwrap().note, None);
        // Each is held against all before it.
        let (got, spent) = page_in(&added(5_000), Form::Markdown, None, Work::late_after(usize::MAX));
        assert_eq!(got.unwrap().note, Some(COMPLEX));
        assert!(spent < 2 * steps(&added(5_000)), "{spent}");
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
