//! Lists, rendered once for each version of the registry, revision and page; a request only adds its id.

use crate::core::Core;
use crate::registry::{Entry, Page, Registry};
use bytes::Bytes;
use linchpin_proto::frame::Request;
use linchpin_proto::{Id, Reply, ReplyKind, ResultWriter, Wire, cursor, fit};
use linchpin_types::error::code;
use linchpin_types::resource::ResourceTemplate;
use std::sync::Arc;

/// A list: which items of a registry are on it, and how they are written.
struct List<T> {
    member: &'static str,
    /// Marks this list's cursors.
    kind: char,
    /// Which of the registry's two caches.
    slot: usize,
    on: fn(&T) -> bool,
    write: fn(&T, &'static Wire, &mut ResultWriter) -> Result<(), serde_json::Error>,
}

/// `tools/list`
pub(crate) fn tools(core: &Core, request: &Request) -> Reply {
    let write = |t: &crate::tool::Registered, wire: &'static Wire, out: &mut ResultWriter| {
        out.serialize(&fit::tool(t.def.clone(), wire))
    };
    serve(core, request, &core.offers.tools, &List { member: "tools", kind: 't', slot: 0, on: |_| true, write })
}

/// `prompts/list`
pub(crate) fn prompts(core: &Core, request: &Request) -> Reply {
    let write = |p: &crate::prompt::Registered, wire: &'static Wire, out: &mut ResultWriter| {
        out.serialize(&fit::prompt(p.def.clone(), wire))
    };
    serve(core, request, &core.offers.prompts, &List { member: "prompts", kind: 'p', slot: 0, on: |_| true, write })
}

/// `resources/list`
pub(crate) fn resources(core: &Core, request: &Request) -> Reply {
    let write = |r: &crate::resource::Registered, wire: &'static Wire, out: &mut ResultWriter| {
        out.serialize(&fit::resource(r.def.clone(), wire))
    };
    let list = List {
        member: "resources",
        kind: 'r',
        slot: 0,
        on: |r: &crate::resource::Registered| r.template.is_none(),
        write,
    };
    serve(core, request, &core.offers.resources, &list)
}

/// `resources/templates/list`
pub(crate) fn templates(core: &Core, request: &Request) -> Reply {
    let write = |r: &crate::resource::Registered, wire: &'static Wire, out: &mut ResultWriter| {
        let d = r.def.clone();
        let template = ResourceTemplate {
            uri_template: d.uri,
            name: d.name,
            title: d.title,
            description: d.description,
            mime_type: d.mime_type,
            icons: d.icons,
            annotations: d.annotations,
            meta: d.meta,
        };
        out.serialize(&fit::template(template, wire))
    };
    let list = List {
        member: "resourceTemplates",
        kind: 'm',
        slot: 1,
        on: |r: &crate::resource::Registered| r.template.is_some(),
        write,
    };
    serve(core, request, &core.offers.resources, &list)
}

fn serve<T: crate::registry::Item>(core: &Core, request: &Request, registry: &Registry<T>, list: &List<T>) -> Reply {
    let wire = request.caller.wire();
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
    let entries = || snapshot.entries.iter().filter(|e| (list.on)(&e.item));
    let pages = snapshot.rendered[list.slot][wire.index].get_or_init(|| {
        let all: Vec<_> = entries().collect();
        let size = if core.limits.page_items_max == 0 { all.len().max(1) } else { core.limits.page_items_max };
        if all.is_empty() {
            return vec![page(core, wire, list, 0, &[], false)].into();
        }
        let mut after = 0;
        let chunks = all.chunks(size).enumerate();
        chunks
            .map(|(i, chunk)| {
                let page = page(core, wire, list, after, chunk, (i + 1) * size < all.len());
                after = chunk[chunk.len() - 1].seq;
                page
            })
            .collect()
    });
    let result = match pages.binary_search_by_key(&after, |p| p.after) {
        Ok(at) => pages[at].result.clone(),
        // The list changed since the cursor was given out: the pages moved, the cursor still names its place.
        Err(_) => {
            let rest: Vec<_> = entries().filter(|e| e.seq > after).collect();
            let size =
                if core.limits.page_items_max == 0 { rest.len() } else { core.limits.page_items_max.min(rest.len()) };
            page(core, wire, list, after, &rest[..size], size < rest.len()).result
        }
    };
    Reply::with_result(&request.id, result)
}

fn page<T>(
    core: &Core,
    wire: &'static Wire,
    list: &List<T>,
    after: u64,
    entries: &[&Arc<Entry<T>>],
    more: bool,
) -> Page {
    let mut out = ResultWriter::new(&Id::number(0), wire, &core.stamps, usize::MAX);
    out.key(list.member);
    out.push(b"[");
    for (i, entry) in entries.iter().enumerate() {
        if i > 0 {
            out.push(b",");
        }
        if let Err(e) = (list.write)(&entry.item, wire, &mut out) {
            // Definitions are plain data; a failure here is a bug, and an empty object beats a broken list.
            tracing::error!(error = %e, "a definition could not be written");
            out.push(b"{}");
        }
    }
    out.push(b"]");
    if let Some(last) = entries.last().filter(|_| more) {
        out.key("nextCursor");
        out.string(&cursor::encode(list.kind, last.seq));
    }
    core.cache_hints(&mut out, core.list_cache);
    Page { after, result: Bytes::from(out.finish(ReplyKind::Complete).body().to_owned()) }
}
