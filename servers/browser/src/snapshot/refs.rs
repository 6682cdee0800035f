//! References to elements: numbers that stay with an element for as long as it can be recognized.
//!
//! An element keeps its number while its DOM node lives. When a page renders anew and replaces nodes by equal ones, the
//! number moves to the node with the same role and name in the same place of the same document; or else to the only one
//! with that role and name, if there was only one before. Otherwise the reference is stale, and says so.

use super::tree::{FrameInfo, Tree};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Most elements that are remembered.
const KNOWN_MAX: usize = 40_000;

/// The references of a tab.
#[derive(Debug, Default)]
pub(crate) struct Refs {
    last: u32,
    known: HashMap<u32, Known>,
    by_node: HashMap<(String, i64), u32>,
    /// The number of the snapshot, to forget what was gone long ago.
    round: u32,
}

/// An element that was told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its frame and document.
    pub(crate) frame: FrameInfo,
    /// Its DOM node.
    pub(crate) backend: i64,
    /// Its role.
    pub(crate) role: String,
    /// Its name, or its text if it has none.
    pub(crate) name: String,
    /// Whether that is its name.
    pub(crate) is_named: bool,
    place: u64,
    seen: u32,
}

impl Known {
    /// What it is, for errors and answers.
    pub(crate) fn label(&self) -> String {
        if self.name.is_empty() { self.role.clone() } else { format!("{} {:?}", self.role, self.name) }
    }
}

impl Refs {
    /// The element with this number, if it was ever told of and not forgotten.
    pub(crate) fn get(&self, reference: u32) -> Option<&Known> {
        self.known.get(&reference)
    }

    /// Whether the element was in the last snapshot.
    pub(crate) fn is_current(&self, reference: u32) -> bool {
        self.known.get(&reference).is_some_and(|known| known.seen == self.round)
    }

    /// Gives every element of a new snapshot its number.
    pub(crate) fn assign(&mut self, tree: &mut Tree) {
        self.round += 1;
        let places = places(tree);
        let mut unknown = Vec::new();
        for (index, place) in places.into_iter().enumerate() {
            let node = &tree.nodes[index];
            let Some(backend) = node.backend else { continue };
            let frame = &tree.frames[node.frame];
            let name = if node.name.is_empty() { &node.text } else { &node.name };
            let known = Known {
                frame: frame.clone(),
                backend,
                role: node.role.to_string(),
                name: name.clone(),
                is_named: !node.name.is_empty(),
                place,
                seen: self.round,
            };
            match self.by_node.get(&(frame.id.clone(), backend)).copied() {
                Some(reference) => {
                    self.known.insert(reference, known);
                    tree.nodes[index].reference = Some(reference);
                }
                None => unknown.push((index, known)),
            }
        }
        let mut orphans = Orphans::of(self, &unknown);
        for (index, known) in unknown {
            let reference = orphans.heir(&known).unwrap_or_else(|| {
                self.last += 1;
                self.last
            });
            if let Some(before) = self.known.get(&reference) {
                self.by_node.remove(&(before.frame.id.clone(), before.backend));
            }
            self.by_node.insert((known.frame.id.clone(), known.backend), reference);
            self.known.insert(reference, known);
            tree.nodes[index].reference = Some(reference);
        }
        self.forget();
    }

    /// Forgets what was gone longest, if there is too much.
    fn forget(&mut self) {
        if self.known.len() <= KNOWN_MAX {
            return;
        }
        let round = self.round;
        self.known.retain(|_, known| known.seen == round);
        let known = &self.known;
        self.by_node.retain(|_, reference| known.contains_key(reference));
    }
}

/// Elements whose nodes are gone, by what they were.
struct Orphans {
    by_kind: HashMap<u64, Vec<(u32, u64)>>,
    /// How many new elements there are of each kind.
    new: HashMap<u64, usize>,
    /// Places of new elements, so that a number moves within its place before it moves elsewhere.
    taken: HashSet<(u64, u64)>,
}

impl Orphans {
    fn of(refs: &Refs, unknown: &[(usize, Known)]) -> Self {
        let mut new: HashMap<u64, usize> = HashMap::new();
        let mut taken = HashSet::new();
        for (_, known) in unknown {
            for kind in kinds(known) {
                *new.entry(kind).or_default() += 1;
                taken.insert((kind, known.place));
            }
        }
        let mut by_kind: HashMap<u64, Vec<(u32, u64)>> = HashMap::new();
        if !new.is_empty() {
            // Only what was there in the last snapshot: what left earlier did not come back by rendering.
            for (reference, known) in refs.known.iter().filter(|(_, known)| known.seen + 1 == refs.round) {
                for kind in kinds(known) {
                    by_kind.entry(kind).or_default().push((*reference, known.place));
                }
            }
        }
        Self { by_kind, new, taken }
    }

    /// The number that this new element takes over.
    fn heir(&mut self, known: &Known) -> Option<u32> {
        for kind in kinds(known) {
            let Some(left) = self.by_kind.get(&kind) else { continue };
            let same_place = left.iter().find(|(_, place)| *place == known.place);
            let only = || match (&left[..], self.new.get(&kind)) {
                ([only], Some(1)) if !known.name.is_empty() && !self.taken.contains(&(kind, only.1)) => Some(only),
                _ => None,
            };
            let Some((reference, _)) = same_place.or_else(only).copied() else { continue };
            for left in self.by_kind.values_mut() {
                left.retain(|(other, _)| *other != reference);
            }
            return Some(reference);
        }
        None
    }
}

/// What an element is, in its document; and in any document at the same URL.
fn kinds(known: &Known) -> [u64; 2] {
    // What these say is news, not who they are.
    let is_live =
        matches!(known.role.as_str(), "status" | "alert" | "log" | "timer" | "marquee" | "progressbar" | "meter");
    let name = if is_live { "" } else { &known.name };
    let hash = |document: &str| {
        let mut hasher = DefaultHasher::new();
        (&known.frame.id, document, &known.role, name).hash(&mut hasher);
        hasher.finish()
    };
    [hash(&known.frame.document), hash(&known.frame.url)]
}

/// The place of each node: the roles around it, and which of its kind it is.
fn places(tree: &Tree) -> Vec<u64> {
    let mut counts: HashMap<(Option<usize>, &str), u32> = HashMap::new();
    let mut places: Vec<u64> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let count = counts.entry((node.parent, &node.role)).or_default();
        *count += 1;
        let mut hasher = DefaultHasher::new();
        (node.parent.map(|parent| places[parent]), &node.role, *count).hash(&mut hasher);
        places.push(hasher.finish());
    }
    places
}
