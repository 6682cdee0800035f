//! Renders a tree as Markdown in the dialect of the published server: ATX headings, `*` for bullets, pipe tables, fences
//! without a language, `*` and `_` escaped. [`crate::html`] limits the depth of the tree, so recursion is safe.

use dom_query::{NodeId, NodeRef};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use url::Url;

/// The output format of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Markdown,
    /// Text and line breaks only.
    Plain,
}

/// How links are resolved, and how much a page may grow.
///
/// Short markup can expand to long output: an absolute link for each `<a href=x>`, indentation before every line of a
/// nested list, the columns of a wide cell. The total is limited; beyond it, links are kept unresolved, and lines and
/// cells are not indented or padded.
#[derive(Debug)]
pub(crate) struct Links<'a> {
    /// The URL of the page, to resolve links; links that run scripts are dropped. `None` keeps links unchanged.
    base: Option<&'a Url>,
    left: Cell<usize>,
    /// The last written item of each numbered list, with its number.
    counted: RefCell<HashMap<NodeId, (NodeId, u64)>>,
}

/// Maximum bytes added to a page.
const ADDED_BYTES_MAX: usize = 16 << 20;

impl<'a> Links<'a> {
    pub(crate) fn new(base: Option<&'a Url>) -> Self {
        Links { base, left: Cell::new(ADDED_BYTES_MAX), counted: RefCell::default() }
    }

    /// Takes so many bytes from the budget; `false` if it is used up.
    fn add(&self, bytes: usize) -> bool {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// The target of a link; `None` if it has none.
    pub(crate) fn resolve(&self, href: &str) -> Option<String> {
        let Some(base) = self.base else { return (!href.is_empty()).then(|| href.to_owned()) };
        let href = href.trim();
        // A fragment of the page itself is kept short.
        if href.starts_with('#') {
            return Some(href.to_owned());
        }
        // Without budget the base is not used, which would cost its length for each link.
        let url = if self.left.get() > 0 {
            base.join(href).ok()?
        } else {
            match Url::parse(href) {
                Err(url::ParseError::RelativeUrlWithoutBase) => return Some(href.to_owned()),
                other => other.ok()?,
            }
        };
        match url.scheme() {
            "http" | "https" | "mailto" | "tel" | "ftp" => {
                let whole = url.to_string().replace('(', "%28").replace(')', "%29");
                Some(if self.add(whole.len().saturating_sub(href.len())) { whole } else { href.to_owned() })
            }
            _ => None,
        }
    }

    fn image(&self, src: &str) -> String {
        match self.base {
            Some(_) if src.trim_start().starts_with("data:") => "data:…".to_owned(),
            Some(_) => self.resolve(src).unwrap_or_default(),
            None => src.to_owned(),
        }
    }
}

/// Maximum indented levels of lists and quotations; deeper ones are not indented further, which limits the size.
const INDENTS_MAX: usize = 12;
const COLUMNS_MAX: usize = 200;

/// Renders a tree as text.
pub(crate) fn render(node: NodeRef<'_>, style: Style, links: &Links<'_>) -> String {
    let text = Renderer { style, links }.node(&node, Context::default());
    let text = text.trim_matches(['\n', ' ', '\t']);
    let mut out = String::with_capacity(text.len());
    let mut blank = 0;
    let mut fenced = false;
    for line in text.split('\n') {
        fenced ^= line.trim_start().starts_with("```");
        blank = if line.trim().is_empty() { blank + 1 } else { 0 };
        if blank > 1 && !fenced {
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(if blank > 0 { "" } else { line });
    }
    out
}

struct Renderer<'a> {
    style: Style,
    links: &'a Links<'a>,
}

/// The context of a node.
#[derive(Debug, Clone, Copy, Default)]
struct Context {
    /// Within `pre`: whitespace is significant.
    pre: bool,
    /// Within code: no markup or escapes.
    verbatim: bool,
    /// Within a heading or a cell: no line breaks.
    inline: bool,
    /// Within a list item.
    item: bool,
    indents: usize,
}

impl Renderer<'_> {
    fn node(&self, node: &NodeRef<'_>, context: Context) -> String {
        if node.is_text() {
            return self.text(node, context);
        }
        if !node.is_element() && !node.is_document() && !node.is_fragment() {
            return String::new();
        }
        let name = node.node_name().unwrap_or_default();
        let name: &str = &name;
        if SKIPPED.contains(&name) {
            return String::new();
        }
        let mut inside = context;
        inside.inline |= heading(name).is_some() || matches!(name, "td" | "th");
        inside.verbatim |= matches!(name, "pre" | "code" | "kbd" | "samp");
        inside.pre |= name == "pre";
        inside.item |= name == "li";
        inside.indents += usize::from(matches!(name, "li" | "blockquote" | "dd"));
        let text = self.children(node, name, inside);
        self.element(node, name, text, context)
    }

    fn children(&self, node: &NodeRef<'_>, name: &str, inside: Context) -> String {
        let mut out = String::new();
        for child in node.children_it(false) {
            if child.is_text() && ignorable(&child, name) && !inside.pre {
                continue;
            }
            let piece = self.node(&child, inside);
            if inside.pre {
                out.push_str(&piece);
                continue;
            }
            // Line breaks between two pieces collapse to at most one empty line.
            let before = out.len() - out.trim_end_matches('\n').len();
            let after = piece.len() - piece.trim_start_matches('\n').len();
            if before > 0 && after > 0 {
                out.truncate(out.len() - before);
                out.extend(std::iter::repeat_n('\n', before.max(after).min(2)));
                out.push_str(&piece[after..]);
            } else {
                out.push_str(&piece);
            }
        }
        out
    }

    fn text(&self, node: &NodeRef<'_>, context: Context) -> String {
        let text = node.text();
        let mut out: Cow<'_, str> = if context.pre { Cow::Borrowed(&text) } else { Cow::Owned(collapsed(&text)) };
        if !context.verbatim && self.style == Style::Markdown && out.contains(['*', '_']) {
            out = Cow::Owned(out.replace('*', "\\*").replace('_', "\\_"));
        }
        if context.pre {
            return out.into_owned();
        }
        let parent = node.parent().and_then(|parent| parent.node_name());
        let in_block = parent.as_deref().is_some_and(is_block);
        let beside = |sibling: Option<NodeRef<'_>>| match sibling {
            Some(sibling) => sibling.node_name().is_some_and(|name| is_block(&name) || &*name == "pre"),
            None => in_block,
        };
        let mut trimmed: &str = &out;
        if beside(node.prev_sibling()) {
            trimmed = trimmed.trim_start();
        }
        if beside(node.next_sibling()) {
            trimmed = trimmed.trim_end();
        }
        trimmed.to_owned()
    }

    fn element(&self, node: &NodeRef<'_>, name: &str, text: String, context: Context) -> String {
        let marked = self.style == Style::Markdown;
        if let Some(level) = heading(name) {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            return match () {
                () if context.inline || text.is_empty() => text,
                () if marked => format!("\n\n{} {text}\n\n", "#".repeat(level)),
                () => format!("\n\n{text}\n\n"),
            };
        }
        match name {
            "a" => self.link(node, &text, context),
            "b" | "strong" => around(&text, "**", marked && !context.verbatim),
            "em" | "i" => around(&text, "*", marked && !context.verbatim),
            "del" | "s" => around(&text, "~~", marked && !context.verbatim),
            "code" | "kbd" | "samp" => code(&text, marked && !context.verbatim),
            "pre" => self.fence(&text),
            "br" if context.inline => format!("{text} "),
            "br" if marked => format!("  \n{text}"),
            "br" => format!("\n{text}"),
            "hr" if marked => "\n\n---\n\n".to_owned(),
            "hr" => "\n\n".to_owned(),
            "q" => format!("\"{text}\""),
            "img" => self.image(node, context),
            "blockquote" => self.quote(&text, context, marked),
            "ul" | "ol" => list(node, &text, context),
            "li" => self.item(node, &text, context),
            "table" => format!("\n\n{}\n\n", text.trim()),
            "thead" | "tbody" | "tfoot" => text,
            "tr" => self.row(node, &text),
            "td" | "th" => self.cell(node, &text),
            "caption" | "figcaption" => format!("\n\n{}\n\n", text.trim()),
            "dt" => format!("\n\n{}\n", text.split_whitespace().collect::<Vec<_>>().join(" ")),
            "dd" if marked => self.indented(&text, ":   ", "    ", context),
            "dd" => format!("{}\n", text.trim()),
            name if is_block(name) || name == "body" || name == "html" => {
                let text = text.trim();
                match () {
                    () if text.is_empty() => String::new(),
                    () if context.inline => format!(" {text} "),
                    () => format!("\n\n{text}\n\n"),
                }
            }
            _ => text,
        }
    }

    fn link(&self, node: &NodeRef<'_>, text: &str, context: Context) -> String {
        let (before, inner, after) = chomped(text);
        if inner.is_empty() || context.verbatim || self.style == Style::Plain {
            return text.to_owned();
        }
        let written = node.attr("href");
        let Some(href) = written.as_deref().and_then(|href| self.links.resolve(href)) else { return text.to_owned() };
        let title = node.attr("title").map(|title| format!(" \"{}\"", title.replace('"', "\\\""))).unwrap_or_default();
        if title.is_empty() && inner.replace("\\_", "_") == href {
            return format!("{before}<{href}>{after}");
        }
        format!("{before}[{inner}]({href}{title}){after}")
    }

    fn image(&self, node: &NodeRef<'_>, context: Context) -> String {
        let alt = node.attr("alt").unwrap_or_default();
        if context.inline || self.style == Style::Plain {
            return alt.to_string();
        }
        let src = self.links.image(&node.attr("src").unwrap_or_default());
        if src.is_empty() && alt.is_empty() {
            return String::new();
        }
        let title = node.attr("title").map(|title| format!(" \"{}\"", title.replace('"', "\\\""))).unwrap_or_default();
        format!("![{alt}]({src}{title})")
    }

    fn fence(&self, text: &str) -> String {
        let text = text.trim_start_matches('\n').trim_end_matches([' ', '\n']);
        if text.is_empty() {
            return String::new();
        }
        if self.style == Style::Plain {
            return format!("\n\n{text}\n\n");
        }
        // A page cannot close its own fence, except in compat mode.
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let published = self.links.base.is_none();
        let fence = "`".repeat(if longest < 3 || published { 3 } else { longest + 1 });
        format!("\n\n{fence}\n{text}\n{fence}\n\n")
    }

    fn item(&self, node: &NodeRef<'_>, text: &str, context: Context) -> String {
        let text = text.trim();
        if text.is_empty() {
            return "\n".to_owned();
        }
        let list = node.parent().filter(|parent| parent.has_name("ol"));
        let bullet = if let Some(list) = list {
            format!("{}. ", self.number(node, &list))
        } else {
            let above = node.ancestors_it(Some(64)).filter(|above| above.has_name("ul")).count();
            format!("{} ", ["*", "+", "-"][above.saturating_sub(1) % 3])
        };
        let blanks = " ".repeat(bullet.len());
        self.indented(text, &bullet, &blanks, context)
    }

    /// The number of an item: that of the previous item plus one, which is known if the list is written in order.
    fn number(&self, item: &NodeRef<'_>, list: &NodeRef<'_>) -> u64 {
        let mut counted = self.links.counted.borrow_mut();
        let known = counted.get(&list.id).copied();
        let (mut more, mut found) = (0, None);
        let mut before = item.prev_sibling();
        while let Some(sibling) = before {
            if let Some((_, number)) = known.filter(|(id, _)| *id == sibling.id) {
                found = Some(number.saturating_add(1));
                break;
            }
            more += u64::from(sibling.has_name("li"));
            before = sibling.prev_sibling();
        }
        let first = || list.attr("start").and_then(|start| start.parse().ok()).unwrap_or(1_u64);
        let number = found.unwrap_or_else(first).saturating_add(more);
        counted.insert(list.id, (item.id, number));
        number
    }

    fn cell(&self, node: &NodeRef<'_>, text: &str) -> String {
        let text = text.trim().replace('\n', " ");
        if self.style == Style::Plain {
            return format!("{text}\t");
        }
        let columns = columns(node);
        let columns = if self.links.add(2 * columns) { columns } else { 1 };
        format!(" {text}{}", " |".repeat(columns))
    }

    fn row(&self, node: &NodeRef<'_>, text: &str) -> String {
        if self.style == Style::Plain {
            return format!("{}\n", text.trim_end());
        }
        let cells: Vec<NodeRef<'_>> = node
            .children_it(false)
            .filter(|cell| cell.has_name("td") || cell.has_name("th"))
            .take(COLUMNS_MAX)
            .collect();
        let width: usize = cells.iter().map(columns).sum::<usize>().clamp(1, COLUMNS_MAX);
        let width = if self.links.add(9 * width) { width } else { 1 };
        let parent = node.parent();
        let in_head = parent.as_ref().is_some_and(|parent| parent.has_name("thead"));
        let first = node.prev_element_sibling().is_none();
        let first_of_table = first
            && parent.as_ref().is_none_or(|parent| {
                !parent.has_name("tbody")
                    || parent.prev_element_sibling().is_none_or(|before| !before.has_name("thead"))
            });
        let rule = format!("| {} |\n", vec!["---"; width].join(" | "));
        if first && (in_head || cells.iter().all(|cell| cell.has_name("th"))) {
            return format!("|{text}\n{rule}");
        }
        if first_of_table {
            return format!("| {} |\n{rule}|{text}\n", vec![""; width].join(" | "));
        }
        format!("|{text}\n")
    }

    fn quote(&self, text: &str, context: Context, marked: bool) -> String {
        let text = text.trim();
        if context.inline {
            return format!(" {text} ");
        }
        if text.is_empty() {
            return "\n".to_owned();
        }
        if !marked || context.indents >= INDENTS_MAX || !self.links.add(2 * (1 + text.matches('\n').count())) {
            return format!("\n{text}\n\n");
        }
        let lines = text.split('\n').map(|line| if line.is_empty() { ">".to_owned() } else { format!("> {line}") });
        format!("\n{}\n\n", lines.collect::<Vec<_>>().join("\n"))
    }

    /// Lines with a marker before the first and indentation before the others.
    fn indented(&self, text: &str, mark: &str, blanks: &str, context: Context) -> String {
        let text = text.trim();
        if text.is_empty() {
            return "\n".to_owned();
        }
        let deep = context.indents >= INDENTS_MAX || !self.links.add(blanks.len() * text.matches('\n').count());
        let blanks = if deep { "" } else { blanks };
        let mut out = mark.to_owned();
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                out.push('\n');
                if !line.is_empty() {
                    out.push_str(blanks);
                }
            }
            out.push_str(line);
        }
        out.push('\n');
        out
    }
}

fn columns(cell: &NodeRef<'_>) -> usize {
    cell.attr("colspan").and_then(|span| span.parse().ok()).unwrap_or(1_usize).clamp(1, COLUMNS_MAX)
}

fn list(node: &NodeRef<'_>, text: &str, context: Context) -> String {
    if context.item {
        return format!("\n{}", text.trim_end());
    }
    let mut next = node.next_sibling();
    while let Some(sibling) = next {
        if sibling.is_element() {
            let more = sibling.has_name("ul") || sibling.has_name("ol");
            return format!("\n\n{text}{}", if more { "" } else { "\n" });
        }
        if sibling.is_text() && !sibling.text().trim().is_empty() {
            return format!("\n\n{text}\n");
        }
        next = sibling.next_sibling();
    }
    format!("\n\n{text}")
}

fn around(text: &str, mark: &str, marked: bool) -> String {
    let (before, inner, after) = chomped(text);
    match () {
        () if !marked => text.to_owned(),
        () if inner.is_empty() => String::new(),
        () => format!("{before}{mark}{inner}{mark}{after}"),
    }
}

fn code(text: &str, marked: bool) -> String {
    let (before, inner, after) = chomped(text);
    if !marked || inner.is_empty() {
        return text.to_owned();
    }
    match inner.split(|c| c != '`').map(str::len).max().unwrap_or(0) {
        0 => format!("{before}`{inner}`{after}"),
        longest => {
            let ticks = "`".repeat(longest + 1);
            format!("{before}{ticks} {inner} {ticks}{after}")
        }
    }
}

/// Leading space, trimmed text, trailing space.
fn chomped(text: &str) -> (&str, &str, &str) {
    let blank = |yes: bool| if yes { " " } else { "" };
    (blank(text.starts_with(' ')), text.trim(), blank(text.ends_with(' ')))
}

/// Collapses whitespace; a run with a line break becomes a line break.
fn collapsed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut run: Option<char> = None;
    for c in text.chars() {
        match c {
            '\n' | '\r' => run = Some('\n'),
            ' ' | '\t' => run = run.or(Some(' ')),
            c => {
                out.extend(run.take());
                out.push(c);
            }
        }
    }
    out.extend(run);
    out
}

/// Whether whitespace is insignificant in this position.
fn ignorable(text: &NodeRef<'_>, parent: &str) -> bool {
    if !text.text().trim().is_empty() {
        return false;
    }
    let (before, after) = (text.prev_sibling(), text.next_sibling());
    let block = |sibling: &Option<NodeRef<'_>>| {
        sibling.as_ref().and_then(NodeRef::node_name).is_some_and(|name| is_block(&name) || &*name == "pre")
    };
    is_block(parent) && (before.is_none() || after.is_none()) || block(&before) || block(&after)
}

fn heading(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}

pub(super) fn is_block(name: &str) -> bool {
    heading(name).is_some() || BLOCKS.contains(&name)
}

const BLOCKS: [&str; 30] = [
    "p",
    "blockquote",
    "article",
    "div",
    "section",
    "ol",
    "ul",
    "li",
    "dl",
    "dt",
    "dd",
    "table",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "td",
    "th",
    "main",
    "header",
    "footer",
    "nav",
    "aside",
    "address",
    "figure",
    "figcaption",
    "form",
    "details",
    "summary",
    "fieldset",
];
const SKIPPED: [&str; 12] = [
    "script", "style", "noscript", "template", "head", "title", "svg", "iframe", "object", "canvas", "textarea",
    "select",
];

#[cfg(test)]
mod tests {
    use super::*;
    use dom_query::Document;

    fn markdown(html: &str) -> String {
        let base = Url::parse("http://a.test/d/").unwrap();
        render(Document::from(html).root(), Style::Markdown, &Links::new(Some(&base)))
    }

    #[test]
    fn elements_read_as_published() {
        for (html, want) in [
            ("<h2>Head <b>x</b></h2><p>a\n b</p><p>c</p>", "## Head **x**\n\na\nb\n\nc"),
            ("<p>a <b> b </b>c <i>d</i> <s>e</s> 2*3_4</p>", "a  **b** c *d* ~~e~~ 2\\*3\\_4"),
            ("<ul><li>x</li><li>y<ul><li>z</li></ul></li></ul>", "* x\n* y\n  + z"),
            ("<ol start=3><li>x</li><li>y</li></ol>", "3. x\n4. y"),
            ("<pre>fn main() {}\n  x_y\n</pre>", "```\nfn main() {}\n  x_y\n```"),
            ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
            ("<p>a <code>b*c</code> <code>`</code></p>", "a `b*c` `` ` ``"),
            (
                "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>",
                "| A | B |\n| --- | --- |\n| 1 | 2 |",
            ),
            ("<table><tr><td>1</td><td>2</td></tr></table>", "|  |  |\n| --- | --- |\n| 1 | 2 |"),
            ("<blockquote><p>a</p><p>b</p></blockquote>c", "> a\n>\n> b\n\nc"),
            ("a<br>b<hr>c", "a  \nb\n\n---\n\nc"),
            ("<a href='/x'>l</a> <a href=x title=t>m</a>", "[l](http://a.test/x) [m](http://a.test/d/x \"t\")"),
            ("<a href='http://a.test/x'>http://a.test/x</a> <a href=#f>f</a>", "<http://a.test/x> [f](#f)"),
            ("<a href='javascript:x'>no</a> <a href=''></a><a>plain</a>", "no plain"),
            ("<a href='/a(b)'>p</a>", "[p](http://a.test/a%28b%29)"),
            (
                "<img src=/i.png alt=im> <img src='data:image/png;base64,AAAA' alt=d>",
                "![im](http://a.test/i.png) ![d](data:…)",
            ),
            ("<dl><dt>t</dt><dd>d</dd></dl>", "t\n:   d"),
            (
                "<table><thead><tr><th>A</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>",
                "| A |\n| --- |\n| 1 |",
            ),
            ("<script>x</script><style>y</style>z", "z"),
            ("<q>x</q>", "\"x\""),
        ] {
            assert_eq!(markdown(html), want, "{html}");
        }
        let as_written = render(Document::from("<a href='/x'>l</a>").root(), Style::Markdown, &Links::new(None));
        assert_eq!(as_written, "[l](/x)");
    }

    #[test]
    fn plain_text_has_no_marks() {
        let html = "<h1>H</h1><p>a <b>b</b> <a href=/x>l</a> 1*2</p><ul><li>x</li></ul><pre>  c</pre>";
        let base = Url::parse("http://a.test/").unwrap();
        let text = render(Document::from(html).root(), Style::Plain, &Links::new(Some(&base)));
        assert_eq!(text, "H\n\na b l 1*2\n\n* x\n\n  c");
    }

    #[test]
    fn nesting_does_not_multiply_text() {
        let html = format!("{}{}", "<blockquote>".repeat(200), "x<br>".repeat(2_000));
        let text = markdown(&html);
        assert!(text.len() < html.len() * 12, "{}", text.len());
    }

    #[test]
    fn what_is_added_to_a_page_is_bounded() {
        const ADDED: usize = ADDED_BYTES_MAX / 16;
        let lists = "<ol start=18446744073709551615><li>".repeat(INDENTS_MAX);
        let long = Url::parse(&format!("http://a.test/{}/", "d".repeat(2_000))).unwrap();
        for html in [
            format!("{lists}<pre>{}", "x\n".repeat(5_000)),
            format!("{}<pre>{}", "<blockquote>".repeat(INDENTS_MAX), "x\n".repeat(45_000)),
            "<a href=x>l</a>".repeat(600),
            "<img src=x>".repeat(600),
            format!("<table>{}", "<tr><td colspan=200>".repeat(3_000)),
            "<table><tr><td colspan=200>x</table>".repeat(600),
        ] {
            let links = Links::new(Some(&long));
            // A part of ADDED_BYTES_MAX, so that small pages come to it.
            links.left.set(ADDED);
            let text = render(Document::from(html.as_str()).root(), Style::Markdown, &links);
            let most = 4 * html.len() + ADDED;
            assert!(text.len() <= most, "{}…: {} of {most}", &html[..30], text.len());
            assert_eq!(links.left.get(), 0, "{}… comes to the bound", &html[..30]);
        }
        let links = Links::new(Some(&long));
        links.left.set(0);
        let text = render(Document::from("<a href=x>l</a><ul><li>a<p>b</ul>").root(), Style::Markdown, &links);
        assert_eq!(text, "[l](x)\n\n* a\n\nb", "what is written stays");
    }
}
