//! Lists, rendered once per version of the registry, revision and page; a request only adds its id.

use crate::registry::{Entry, Item as _, Page, Registry};
use crate::running_server::RunningServer;
use crate::ui::{self, Shown};
use crate::viewer::Viewer;
use crate::{cursor, downgrade};
use bytes::Bytes;
use linchpin_core::message::Request;
use linchpin_core::service::RequestContext;
use linchpin_core::{Features, Id, Reply, ReplyKind, ResultWriter};
use linchpin_types::error::code;
use linchpin_types::page::CacheScope;
use linchpin_types::resource::ResourceTemplate;
use std::sync::Arc;

/// The lists of one kind of item, at most.
const LISTS: usize = 2;

/// A list: its items and how they are serialised.
struct List<T> {
    member: &'static str,
    /// The prefix of this list's cursors.
    kind: char,
    /// The index of its cache in the registry.
    slot: usize,
    on: fn(&T) -> bool,
    write: fn(&T, For, &mut ResultWriter) -> Result<(), serde_json::Error>,
}

/// Whom a list is written for.
#[derive(Clone, Copy)]
struct For {
    features: &'static Features,
    /// Whether the client shows pages of MCP Apps.
    pages: bool,
}

/// `tools/list`
pub(crate) fn tools(core: &RunningServer, request: &Request, context: &RequestContext) -> Reply {
    let write = |t: &crate::tool::Registered, to: For, out: &mut ResultWriter| {
        let mut tool = downgrade::tool(t.def.clone(), to.features);
        if to.pages && t.ui.shown() != Shown::Alike {
            t.ui.add_to(&mut tool.meta, to.features.has_sessions);
        }
        out.serialize(&tool)
    };
    serve(
        core,
        request,
        context,
        &core.registries.tools,
        &List { member: "tools", kind: 't', slot: 0, on: |_| true, write },
    )
}

/// `prompts/list`
pub(crate) fn prompts(core: &RunningServer, request: &Request, context: &RequestContext) -> Reply {
    let write = |p: &crate::prompt::Registered, to: For, out: &mut ResultWriter| {
        out.serialize(&downgrade::prompt(p.def.clone(), to.features))
    };
    serve(
        core,
        request,
        context,
        &core.registries.prompts,
        &List { member: "prompts", kind: 'p', slot: 0, on: |_| true, write },
    )
}

/// `resources/list`
pub(crate) fn resources(core: &RunningServer, request: &Request, context: &RequestContext) -> Reply {
    let write = |r: &crate::resource::Registered, to: For, out: &mut ResultWriter| {
        let mut resource = downgrade::resource(r.def.clone(), to.features);
        if r.shown() == Shown::ToPages {
            // What the page may do is said in every revision.
            resource.meta.clone_from(&r.def.meta);
        }
        out.serialize(&resource)
    };
    let list = List {
        member: "resources",
        kind: 'r',
        slot: 0,
        on: |r: &crate::resource::Registered| r.template.is_none(),
        write,
    };
    serve(core, request, context, &core.registries.resources, &list)
}

/// `resources/templates/list`
pub(crate) fn templates(core: &RunningServer, request: &Request, context: &RequestContext) -> Reply {
    let write = |r: &crate::resource::Registered, to: For, out: &mut ResultWriter| {
        let d = r.def.clone();
        let mut template = ResourceTemplate::new(d.uri, d.name).with_icons(d.icons);
        (template.title, template.description) = (d.title, d.description);
        (template.mime_type, template.annotations, template.meta) = (d.mime_type, d.annotations, d.meta);
        out.serialize(&downgrade::template(template, to.features))
    };
    let list = List {
        member: "resourceTemplates",
        kind: 'm',
        slot: 1,
        on: |r: &crate::resource::Registered| r.template.is_some(),
        write,
    };
    serve(core, request, context, &core.registries.resources, &list)
}

fn serve<T: crate::registry::Item>(
    core: &RunningServer,
    request: &Request,
    context: &RequestContext,
    registry: &Registry<T>,
    list: &List<T>,
) -> Reply {
    let features = request.caller.features();
    let after = match request.params.cursor {
        Some(span) if request.text(span) != "null" => {
            match request.string(Some(span)).and_then(|c| cursor::decode(list.kind, &c)) {
                Some(after) => after,
                None => {
                    return Reply::error(
                        Some(&request.id),
                        code::INVALID_PARAMS,
                        "unknown cursor; begin again without one",
                        None,
                    );
                }
            }
        }
        _ => 0,
    };
    let snapshot = registry.snapshot();
    let pages = snapshot.with_pages && ui::is_wanted_by(&request.caller);
    let to = For { features, pages };
    let on = |item: &T| (list.on)(item) && (pages || item.shown() != Shown::ToPages);
    // A list that depends on what the client declares is not for shared caches.
    let per_client = snapshot.per_viewer() || snapshot.with_pages;
    let hints = (core.list_cache.0, if per_client { CacheScope::Private } else { core.list_cache.1 });
    if snapshot.per_viewer() {
        let visible = snapshot.visible(&Viewer::of(request, context));
        let rest: Vec<_> = visible.into_iter().filter(|e| on(&e.item) && e.seq > after).collect();
        return Reply::with_result(&request.id, rest_of(core, list, to, &rest, hints));
    }
    let entries = || snapshot.entries.iter().filter(|e| on(&e.item));
    let slot = list.slot + if pages { LISTS } else { 0 };
    let pages = snapshot.rendered[slot][features.index].get_or_init(|| {
        let all: Vec<_> = entries().collect();
        let size =
            if core.limits.lists.page_items_max == 0 { all.len().max(1) } else { core.limits.lists.page_items_max };
        if all.is_empty() {
            return vec![Page { after: 0, result: page(core, to, list, &[], false, hints) }].into();
        }
        let mut after = 0;
        let chunks = all.chunks(size).enumerate();
        chunks
            .map(|(i, chunk)| {
                let result = page(core, to, list, chunk, (i + 1) * size < all.len(), hints);
                Page { after: std::mem::replace(&mut after, chunk[chunk.len() - 1].seq), result }
            })
            .collect()
    });
    let result = match pages.binary_search_by_key(&after, |p| p.after) {
        Ok(at) => pages[at].result.clone(),
        // The list changed since the cursor was issued: the pages moved, but the cursor still marks its position.
        Err(_) => {
            let rest: Vec<_> = entries().filter(|e| e.seq > after).collect();
            rest_of(core, list, to, &rest, hints)
        }
    };
    Reply::with_result(&request.id, result)
}

/// The page after a cursor that no rendered page begins at.
fn rest_of<T>(
    core: &RunningServer,
    list: &List<T>,
    to: For,
    rest: &[&Arc<Entry<T>>],
    hints: (u64, CacheScope),
) -> Bytes {
    let size = match core.limits.lists.page_items_max {
        0 => rest.len(),
        max => max.min(rest.len()),
    };
    page(core, to, list, &rest[..size], size < rest.len(), hints)
}

fn page<T>(
    core: &RunningServer,
    to: For,
    list: &List<T>,
    entries: &[&Arc<Entry<T>>],
    more: bool,
    hints: (u64, CacheScope),
) -> Bytes {
    let mut out = ResultWriter::new(&Id::number(0), to.features, &core.stamps, usize::MAX);
    out.key(list.member);
    out.push(b"[");
    for (i, entry) in entries.iter().enumerate() {
        if i > 0 {
            out.push(b",");
        }
        if let Err(e) = (list.write)(&entry.item, to, &mut out) {
            // Definitions are plain data; a failure here is a bug, and an empty object is better than an invalid list.
            tracing::error!(error = %e, "a definition could not be written");
            out.push(b"{}");
        }
    }
    out.push(b"]");
    if let Some(last) = entries.last().filter(|_| more) {
        out.key("nextCursor");
        out.string(&cursor::encode(list.kind, last.seq));
    }
    core.cache_hints(&mut out, hints);
    Bytes::from(out.finish(ReplyKind::Complete).body().to_owned())
}
