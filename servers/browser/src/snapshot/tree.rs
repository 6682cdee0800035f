//! From the accessibility trees of a page's frames to one list of what is worth telling, in document order.
//!
//! Nothing here recurses: pages nest as deeply as they like.

use super::ax::{AxNode, Frame};
use linchpin_kit::without_hidden;
use std::borrow::Cow;
use std::collections::HashMap;

/// Most nodes that a snapshot tells of.
pub(crate) const NODES_MAX: usize = 20_000;
/// Most bytes of a name, a value or a text.
const TEXT_BYTES_MAX: usize = 1_000;
/// Most bytes of a URL.
const URL_BYTES_MAX: usize = 200;

/// An element, or a text between elements.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// How deep it is in the snapshot; 0 is outermost.
    pub(crate) depth: usize,
    /// The index of the node around it.
    pub(crate) parent: Option<usize>,
    /// The role; `text` for texts.
    pub(crate) role: Cow<'static, str>,
    /// The accessible name.
    pub(crate) name: String,
    /// States, each as `[state]`, separated by spaces.
    pub(crate) states: String,
    /// Its text or value, if it has nothing else inside.
    pub(crate) text: String,
    /// Where a link leads.
    pub(crate) url: Option<String>,
    /// The index of its frame.
    pub(crate) frame: usize,
    /// The DOM node; none for texts.
    pub(crate) backend: Option<i64>,
    /// The reference it was given.
    pub(crate) reference: Option<u32>,
}

/// A page as a list of nodes in document order.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// The frames that [`Node::frame`] refers to.
    pub(crate) frames: Vec<FrameInfo>,
    /// The title of the page.
    pub(crate) title: String,
    /// The nodes.
    pub(crate) nodes: Vec<Node>,
    /// Whether the page has more than [`NODES_MAX`] nodes.
    pub(crate) truncated: bool,
}

/// Which frame it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FrameInfo {
    /// The browser's id.
    pub(crate) id: String,
    /// The document in it.
    pub(crate) document: String,
    /// The URL of that document.
    pub(crate) url: String,
}

impl Tree {
    /// The index of the node with this reference.
    pub(crate) fn find(&self, reference: u32) -> Option<usize> {
        self.nodes.iter().position(|node| node.reference == Some(reference))
    }

    /// For each node, the index after the last node inside it.
    pub(crate) fn ends(&self) -> Vec<usize> {
        let mut ends: Vec<usize> = (1..=self.nodes.len()).collect();
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                ends[parent] = ends[parent].max(ends[index]);
            }
        }
        ends
    }
}

/// Reads the frames of a page, the main frame first.
pub(crate) fn read(frames: &[Frame]) -> Tree {
    let info =
        |frame: &Frame| FrameInfo { id: frame.id.clone(), document: frame.document.clone(), url: frame.url.clone() };
    let sources = Sources::new(frames);
    let title =
        frames.first().and_then(|frame| frame.nodes.first()).map(|root| clipped(&clean(root.name()), URL_BYTES_MAX));
    let mut tree =
        Tree { frames: frames.iter().map(info).collect(), title: title.unwrap_or_default(), ..Tree::default() };
    let within = |inside: Vec<Inner>, depth, parent| {
        inside.into_iter().rev().map(move |Inner { at, apart }| Todo { at, apart, depth, parent })
    };
    let mut todo: Vec<Todo> = within(sources.roots(), 0, None).collect();
    let mut pending = Pending::default();
    while let Some(Todo { at, apart, depth, parent }) = todo.pop() {
        if tree.nodes.len() >= NODES_MAX {
            tree.truncated = true;
            break;
        }
        let ax = sources.node(at);
        if ax.role() == "StaticText" {
            let text = Node { depth, parent, role: "text".into(), frame: at.frame, ..Node::default() };
            pending.add(&mut tree, text, ax.name(), apart);
            continue;
        }
        pending.end();
        let role = shown_role(ax);
        let inside = sources.inside(at, takes_name_from_content(&role));
        let mut node = Node {
            depth,
            parent,
            name: name_of(ax),
            states: states(ax, &role),
            text: ax.value().map(|value| clipped(&clean(&value), TEXT_BYTES_MAX)).unwrap_or_default(),
            url: link_url(ax, &role, &frames[at.frame].url),
            frame: at.frame,
            backend: ax.backend,
            role,
            ..Node::default()
        };
        // The parts of a date are its value already.
        let inside = if DATES.contains(&ax.role()) { Vec::new() } else { inside };
        let only_text = inside.iter().all(|inner| sources.node(inner.at).role() == "StaticText");
        let own_index = tree.nodes.len();
        if only_text {
            if node.text.is_empty() && !inside.is_empty() && !is_field(&node.role) {
                let text = sources.text_of(&inside);
                if !same_words(&text, &node.name) {
                    node.text = clipped(&text, TEXT_BYTES_MAX);
                }
            }
        } else {
            todo.extend(within(inside, depth + 1, Some(own_index)));
        }
        tree.nodes.push(node);
    }
    tree
}

/// The name of a node, as snapshots have it.
pub(crate) fn name_of(ax: &AxNode) -> String {
    clipped(&clean(ax.name()), TEXT_BYTES_MAX)
}

/// Joins texts that follow each other.
#[derive(Default)]
struct Pending {
    /// The text that was written last, if nothing came after it.
    last: Option<usize>,
    /// Whether it ends with white space.
    spaced: bool,
}

impl Pending {
    fn end(&mut self) {
        self.last = None;
    }

    fn add(&mut self, tree: &mut Tree, text: Node, raw: &str, apart: bool) {
        let words = clean(raw);
        let spaced = std::mem::replace(&mut self.spaced, raw.ends_with(char::is_whitespace));
        if words.is_empty() {
            self.spaced |= spaced || !raw.is_empty();
            return;
        }
        if let Some(node) = self.last.map(|last| &mut tree.nodes[last]).filter(|node| node.parent == text.parent) {
            if node.text.len() < TEXT_BYTES_MAX {
                let space = if apart || spaced || raw.starts_with(char::is_whitespace) { " " } else { "" };
                node.text = clipped(&format!("{}{space}{words}", node.text), TEXT_BYTES_MAX);
            }
            return;
        }
        self.last = Some(tree.nodes.len());
        tree.nodes.push(Node { text: clipped(&words, TEXT_BYTES_MAX), ..text });
    }
}

/// Where a node is.
#[derive(Debug, Clone, Copy)]
struct At {
    frame: usize,
    node: usize,
}

struct Todo {
    at: At,
    apart: bool,
    depth: usize,
    parent: Option<usize>,
}

/// A node inside another, once everything of no meaning between them is left out.
struct Inner {
    at: At,
    /// Whether it begins a block of its own, so that texts do not run into each other.
    apart: bool,
}

struct Sources<'a> {
    frames: &'a [Frame],
    /// For each frame, its nodes by id.
    ids: Vec<HashMap<&'a str, usize>>,
    /// The frame that the node of an `<iframe>` shows.
    shown_in: HashMap<(&'a str, i64), usize>,
}

impl<'a> Sources<'a> {
    fn new(frames: &'a [Frame]) -> Self {
        let by_id = |frame: &'a Frame| {
            frame.nodes.iter().enumerate().map(|(index, node)| (node.node_id.as_str(), index)).collect()
        };
        let shown_in = frames
            .iter()
            .enumerate()
            .filter_map(|(index, frame)| frame.owner.as_ref().map(|(parent, node)| ((parent.as_str(), *node), index)))
            .collect();
        Self { frames, ids: frames.iter().map(by_id).collect(), shown_in }
    }

    fn node(&self, at: At) -> &'a AxNode {
        &self.frames[at.frame].nodes[at.node]
    }

    /// The outermost nodes of the page.
    fn roots(&self) -> Vec<Inner> {
        match self.frames.first().filter(|frame| !frame.nodes.is_empty()) {
            None => Vec::new(),
            Some(_) => self.inside(At { frame: 0, node: 0 }, false),
        }
    }

    /// The children of a node, or, of an `<iframe>`, the root of its frame.
    fn children(&self, at: At) -> Vec<At> {
        let node = self.node(at);
        let frame = &self.frames[at.frame];
        if let Some(shown) = node.backend.and_then(|node| self.shown_in.get(&(frame.id.as_str(), node))) {
            let root = At { frame: *shown, node: 0 };
            return if self.frames[*shown].nodes.is_empty() { Vec::new() } else { vec![root] };
        }
        let known = |id: &String| self.ids[at.frame].get(id.as_str()).map(|node| At { frame: at.frame, node: *node });
        node.child_ids.iter().filter_map(known).collect()
    }

    /// What is inside a node: its children, or theirs where they have no meaning of their own.
    fn inside(&self, at: At, in_named: bool) -> Vec<Inner> {
        let mut found = Vec::new();
        let children = |at, apart| self.children(at).into_iter().rev().map(move |at| Inner { at, apart });
        let mut todo: Vec<Inner> = children(at, false).collect();
        let mut steps = 0;
        while let Some(Inner { at, apart }) = todo.pop() {
            steps += 1;
            if steps > 4 * NODES_MAX {
                break;
            }
            let node = self.node(at);
            match self.meaning(at, node, in_named) {
                Meaning::Nothing => {}
                Meaning::Own => found.push(Inner { at, apart }),
                Meaning::Children { block } => {
                    if let Some(next) = todo.last_mut().filter(|_| block) {
                        next.apart = true;
                    }
                    let first = todo.len();
                    todo.extend(children(at, block));
                    if let Some(outermost) = todo.get_mut(first..).and_then(<[_]>::last_mut) {
                        outermost.apart |= apart;
                    }
                }
            }
        }
        found
    }

    fn meaning(&self, at: At, node: &AxNode, in_named: bool) -> Meaning {
        let role = node.role();
        match role {
            "InlineTextBox" | "LineBreak" | "ListMarker" => return Meaning::Nothing,
            "StaticText" if node.ignored => return Meaning::Nothing,
            "StaticText" => return Meaning::Own,
            "RootWebArea" => return Meaning::Children { block: true },
            _ if node.ignored => return Meaning::Children { block: false },
            _ if INLINE.contains(&role) => return Meaning::Children { block: false },
            _ if TRANSPARENT.contains(&role) => return Meaning::Children { block: true },
            _ => {}
        }
        if role != "generic" || node.is("focusable") {
            return Meaning::Own;
        }
        let text = |at: At| matches!(self.node(at), child if child.role() == "StaticText" && !child.ignored && !child.name().trim().is_empty());
        match !in_named && (!node.name().is_empty() || self.children(at).into_iter().any(text)) {
            true => Meaning::Own,
            false => Meaning::Children { block: true },
        }
    }

    /// The words of texts.
    fn text_of(&self, texts: &[Inner]) -> String {
        let mut out = String::new();
        for inner in texts {
            if inner.apart && !out.is_empty() {
                out.push(' ');
            }
            out.push_str(self.node(inner.at).name());
            if out.len() > 4 * TEXT_BYTES_MAX {
                break;
            }
        }
        clean(&out)
    }
}

/// What is told of a node.
enum Meaning {
    /// Nothing, nor of what is inside.
    Nothing,
    /// Only what is inside.
    Children {
        /// Whether it is a block: texts in it do not continue those before.
        block: bool,
    },
    /// The node itself.
    Own,
}

/// Roles within a line of text that say nothing which a model needs.
const INLINE: &[&str] = &[
    "Abbr",
    "code",
    "deletion",
    "emphasis",
    "insertion",
    "mark",
    "none",
    "presentation",
    "strong",
    "subscript",
    "superscript",
    "time",
    "RubyAnnotation",
    "Ruby",
];

/// Roles that say nothing which a model needs.
const TRANSPARENT: &[&str] = &[
    "LabelText",
    "LayoutTable",
    "LayoutTableCell",
    "LayoutTableRow",
    "MenuListPopup",
    "Section",
    "rowgroup",
    "Unknown",
    "",
];

/// Fields of several parts.
const DATES: &[&str] = &["Date", "DateTime", "InputTime"];

fn shown_role(ax: &AxNode) -> Cow<'static, str> {
    match ax.role() {
        "generic" if ax.property("editable").is_some_and(|how| how == "richtext") => "textbox".into(),
        "image" => "img".into(),
        "Iframe" | "IframePresentational" => "iframe".into(),
        "DisclosureTriangle" | "DisclosureTriangleGrouped" => "button".into(),
        "SvgRoot" => "img".into(),
        "DescriptionList" => "list".into(),
        other => clipped(&clean(other).to_lowercase(), 40).into(),
    }
}

/// Whether the name of such an element is what is inside.
fn takes_name_from_content(role: &str) -> bool {
    matches!(
        role,
        "button"
            | "link"
            | "heading"
            | "option"
            | "menuitem"
            | "menuitemcheckbox"
            | "menuitemradio"
            | "tab"
            | "switch"
            | "checkbox"
            | "radio"
            | "treeitem"
            | "tooltip"
            | "textbox"
            | "searchbox"
            | "combobox"
            | "spinbutton"
    )
}

/// Whether its text is what was entered, never what is inside.
fn is_field(role: &str) -> bool {
    matches!(role, "textbox" | "searchbox" | "combobox" | "spinbutton" | "slider" | "progressbar" | "meter")
}

fn states(ax: &AxNode, role: &str) -> String {
    let mut all = Vec::new();
    let mut add = |state: String| all.push(state);
    match ax.property("checked").or_else(|| ax.property("pressed").map(|p| format!("pressed {p}"))).as_deref() {
        Some("true") => add("[checked]".into()),
        Some("mixed") => add("[checked=mixed]".into()),
        Some("pressed true") => add("[pressed]".into()),
        Some("pressed mixed") => add("[pressed=mixed]".into()),
        _ => {}
    }
    if ax.is("disabled") {
        add("[disabled]".into());
    }
    match ax.property("expanded").as_deref() {
        Some("true") => add("[expanded]".into()),
        Some("false") if role != "combobox" => add("[expanded=false]".into()),
        _ => {}
    }
    if ax.is("focused") && role != "iframe" {
        add("[active]".into());
    }
    let level = ax.property("level").filter(|level| level.bytes().all(|b| b.is_ascii_digit()));
    if let Some(level) = level.filter(|_| matches!(role, "heading" | "treeitem")) {
        add(format!("[level={level}]"));
    }
    if ax.is("selected") {
        add("[selected]".into());
    }
    if ax.is("required") {
        add("[required]".into());
    }
    if ax.property("invalid").is_some_and(|invalid| invalid != "false") {
        add("[invalid]".into());
    }
    if ax.is("readonly") && matches!(role, "textbox" | "searchbox" | "spinbutton") {
        add("[readonly]".into());
    }
    all.join(" ")
}

/// Where a link leads, relative to the origin of its page.
fn link_url(ax: &AxNode, role: &str, base: &str) -> Option<String> {
    if role != "link" {
        return None;
    }
    let url = clean(&ax.property("url")?);
    let origin = url::Url::parse(base).ok().map(|base| base.origin().ascii_serialization());
    let local = origin.as_deref().filter(|origin| origin.contains("://")).and_then(|origin| url.strip_prefix(origin));
    let short = local.filter(|path| path.starts_with('/')).unwrap_or(&url);
    Some(clipped(short, URL_BYTES_MAX))
}

/// One line, without hidden characters.
fn clean(text: &str) -> String {
    let text = without_hidden(text);
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

fn clipped(text: &str, bytes_max: usize) -> String {
    let cut = linchpin_kit::clip(text, bytes_max);
    if cut.left_out == 0 { text.to_owned() } else { format!("{}…", cut.text) }
}

/// Whether two texts differ in nothing but white space.
fn same_words(left: &str, right: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    letters(left) == letters(right)
}
