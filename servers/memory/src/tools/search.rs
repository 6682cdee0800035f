//! `memory_search`.

use crate::answer::{Warnings, within};
use crate::format::{Entity, indented, shown};
use crate::graph::Graph;
use crate::journal::{self, Journal, Last, When};
use crate::search::{Hit, Query};
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{Cursor, Paging, Provenance, ToolError, ToolOutput, ToolSpec, clip};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const SEARCH: ToolSpec = ToolSpec::reads(
    "memory_search",
    "Search Memory",
    "read",
    "Finds entities by words, best first, and returns the matching facts. Start here; open_nodes then returns the whole entity.",
).extra();

/// Maximum observations shown per entity, and bytes of each.
const SHOWN_OBSERVATIONS: usize = 3;

const SHOWN_BYTES: usize = 500;

/// Default hits per page.
const PAGE_HITS: usize = 20;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Search {
    /// Words, or beginnings of words; not all must match.
    query: String,
    /// Only entities of this type.
    entity_type: Option<String>,
    /// Only entities changed since this date or time (UTC).
    changed_since: Option<String>,
    /// Default 20.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// From next_cursor
    cursor: Option<String>,
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Found {
    /// Its name; open_nodes returns the whole entity.
    pub(crate) name: String,
    /// Its type.
    pub(crate) entity_type: String,
    /// The best matching observations, truncated if long.
    pub(crate) observations: Vec<String>,
    /// The number of all its observations.
    pub(crate) observation_count: usize,
    /// The relevance; comparable only within one result.
    pub(crate) score: f32,
    /// When it was created and changed.
    #[serde(flatten)]
    pub(crate) when: When,
}

/// A page of search results.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct FoundPage {
    /// The number of entities with at least one of the words.
    pub(crate) total: usize,
    /// Best first; without words, last changed first.
    pub(crate) results: Vec<Found>,
    /// With changedSince: the number of entities omitted because the time of their last change is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undated: Option<usize>,
    /// Pagination.
    #[serde(flatten)]
    pub(crate) paging: Paging,
}

/// What to search for.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) text: &'a str,
    pub(crate) entity_type: Option<&'a str>,
    /// Only entities changed at this time or later.
    pub(crate) changed_since: Option<&'a str>,
    pub(crate) cursor: Option<&'a str>,
    pub(crate) most: usize,
    pub(crate) bytes_max: usize,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct FoundAnswer {
    /// The search results.
    #[serde(flatten)]
    page: FoundPage,
    /// Problems of the memory file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

pub(super) async fn search(memory: &Memory, args: Search) -> Result<ToolOutput<FoundAnswer>, Error> {
    memory
        .read_dated(move |inner, graph, times| {
            let wanted = Wanted {
                text: &args.query,
                entity_type: args.entity_type.as_deref(),
                changed_since: args.changed_since.as_deref(),
                cursor: args.cursor.as_deref(),
                most: args.limit.unwrap_or(PAGE_HITS),
                bytes_max: inner.config.max_result_bytes,
            };
            let page = ranked(graph, times, &wanted)?;
            let notice = page.paging.notice();
            let warnings = within(graph.warnings(), wanted.bytes_max);
            Ok(ToolOutput::json(FoundAnswer { page, warnings }, Provenance::ThirdParty)?.notice(notice))
        })
        .await
        .map_err(Error::from)
}

/// Ranked search; without words but with a time, all later changes, newest first.
fn ranked(graph: &Graph, times: Option<&Journal>, wanted: &Wanted<'_>) -> Result<FoundPage, ToolError> {
    let query = Query::of(wanted.text);
    let since = wanted.changed_since.map(since).transpose()?;
    let kind = wanted.entity_type.map(str::to_lowercase);
    let of_type = |entity: &Entity| kind.as_ref().is_none_or(|kind| entity.entity_type.to_lowercase() == *kind);
    let entities = graph.entities().iter().enumerate().filter(|(_, item)| of_type(item.value()));
    let mut hits: Vec<Hit> = match (&query, since) {
        (Some(query), _) => query.rank(entities),
        (None, Some(_)) => entities.map(|(at, _)| Hit { at, score: 0.0 }).collect(),
        (None, None) => {
            return Err(ToolError::invalid("The query contains no words")
                .hint("Pass letters or digits, or changedSince; memory_read_page lists everything."));
        }
    };
    let undated = since.map(|since| only_since(graph, times, since, query.is_none(), &mut hits));
    // The cursor belongs to this memory and this search.
    let of = graph.version() ^ Cursor::<1>::digest((wanted.text, wanted.entity_type, wanted.changed_since));
    let cursor = Cursor::<1>::parse(wanted.cursor)?.map(|cursor| cursor.still(of)).transpose()?;
    let start = cursor.map_or(0, |cursor| usize::try_from(cursor.at[0]).unwrap_or(usize::MAX).min(hits.len()));
    let page = &hits[start..hits.len().min(start.saturating_add(wanted.most.max(1)))];
    let (mut results, mut bytes) = (Vec::new(), 0_usize);
    let bytes_max = if wanted.bytes_max == 0 { usize::MAX } else { wanted.bytes_max };
    for hit in page {
        let item = &graph.entities()[hit.at];
        let entity = item.value();
        let best: Vec<&str> = match &query {
            Some(query) => query.best(entity, SHOWN_OBSERVATIONS),
            None => entity.observations.iter().rev().take(SHOWN_OBSERVATIONS).rev().map(String::as_str).collect(),
        };
        // At most three quarters of the budget, so that at least one always fits.
        let found = Found {
            name: shown(&entity.name, bytes_max / 4),
            entity_type: shown(&entity.entity_type, bytes_max / 4),
            observations: best.into_iter().map(|text| shown(text, SHOWN_BYTES.min(bytes_max / 12))).collect(),
            observation_count: entity.observations.len(),
            score: (hit.score * 1_000.0).round() / 1_000.0,
            when: times.map(|times| times.when(graph, item)).unwrap_or_default(),
        };
        bytes = bytes.saturating_add(indented(&found, 2));
        if bytes > bytes_max && !results.is_empty() {
            break;
        }
        results.push(found);
    }
    let end = start + results.len();
    let paging = match end < hits.len() {
        true => Paging::more(Cursor { at: [end as u64], of }.to_string()),
        false => Paging::whole(),
    };
    Ok(FoundPage { total: hits.len(), results, undated, paging })
}

fn since(text: &str) -> Result<u64, ToolError> {
    journal::seconds(text).ok_or_else(|| {
        ToolError::invalid(format!("Invalid time: {}", clip(text, 40).text))
            .hint("Use 2026-11-21 or 2026-11-21T09:14:06Z, in UTC, for changedSince.")
    })
}

/// Keeps the entities that were certainly changed at `since` or later, in order or newest first; returns how many are
/// uncertain.
fn only_since(graph: &Graph, times: Option<&Journal>, since: u64, newest_first: bool, hits: &mut Vec<Hit>) -> usize {
    let mut undated = 0;
    let last = |hit: &Hit| times.map_or(Last::Unknown, |times| times.last(graph, &graph.entities()[hit.at]));
    let mut dated: Vec<(u64, Hit)> = Vec::new();
    for hit in hits.drain(..) {
        match last(&hit) {
            Last::At(at) | Last::After(at) if at >= since => dated.push((at, hit)),
            Last::At(_) => {}
            Last::After(_) | Last::Unknown => undated += 1,
        }
    }
    if newest_first {
        dated.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.at.cmp(&b.1.at)));
    }
    hits.extend(dated.into_iter().map(|(_, hit)| hit));
    undated
}
