//! Lists, rendered once per version of the registry, revision and page; a request only adds its id.

use crate::registry::{Entry, Page, Registry};
use crate::service::RunningServer;
use crate::{cursor, downgrade};
use bytes::Bytes;
use linchpin_core::message::Request;
use linchpin_core::{Features, Id, Reply, ReplyKind, ResultWriter};
use linchpin_types::error::code;
use linchpin_types::resource::ResourceTemplate;
use std::sync::Arc;

/// A list: its items and how they are serialised.
struct List<T> {
    member: &'static str,
    /// The prefix of this list's cursors.
    kind: char,
    /// The index of its cache in the registry.
    slot: usize,
    on: fn(&T) -> bool,
    write: fn(&T, &'static Features, &mut ResultWriter) -> Result<(), serde_json::Error>,
}

/// `tools/list`
pub(crate) fn tools(core: &RunningServer, request: &Request) -> Reply {
    let write = |t: &crate::tool::Registered, features: &'static Features, out: &mut ResultWriter| {
        out.serialize(&downgrade::tool(t.def.clone(), features))
    };
    serve(core, request, &core.registries.tools, &List { member: "tools", kind: 't', slot: 0, on: |_| true, write })
}

/// `prompts/list`
pub(crate) fn prompts(core: &RunningServer, request: &Request) -> Reply {
    let write = |p: &crate::prompt::Registered, features: &'static Features, out: &mut ResultWriter| {
        out.serialize(&downgrade::prompt(p.def.clone(), features))
    };
    serve(core, request, &core.registries.prompts, &List { member: "prompts", kind: 'p', slot: 0, on: |_| true, write })
}

/// `resources/list`
pub(crate) fn resources(core: &RunningServer, request: &Request) -> Reply {
    let write = |r: &crate::resource::Registered, features: &'static Features, out: &mut ResultWriter| {
        out.serialize(&downgrade::resource(r.def.clone(), features))
    };
    let list = List {
        member: "resources",
        kind: 'r',
        slot: 0,
        on: |r: &crate::resource::Registered| r.template.is_none(),
        write,
    };
    serve(core, request, &core.registries.resources, &list)
}

/// `resources/templates/list`
pub(crate) fn templates(core: &RunningServer, request: &Request) -> Reply {
    let write = |r: &crate::resource::Registered, features: &'static Features, out: &mut ResultWriter| {
        let d = r.def.clone();
        let mut template = ResourceTemplate::new(d.uri, d.name).with_icons(d.icons);
        (template.title, template.description) = (d.title, d.description);
        (template.mime_type, template.annotations, template.meta) = (d.mime_type, d.annotations, d.meta);
        out.serialize(&downgrade::template(template, features))
    };
    let list = List {
        member: "resourceTemplates",
        kind: 'm',
        slot: 1,
        on: |r: &crate::resource::Registered| r.template.is_some(),
        write,
    };
    serve(core, request, &core.registries.resources, &list)
}

fn serve<T: crate::registry::Item>(
    core: &RunningServer,
    request: &Request,
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
    let entries = || snapshot.entries.iter().filter(|e| (list.on)(&e.item));
    let pages = snapshot.rendered[list.slot][features.index].get_or_init(|| {
        let all: Vec<_> = entries().collect();
        let size =
            if core.limits.lists.page_items_max == 0 { all.len().max(1) } else { core.limits.lists.page_items_max };
        if all.is_empty() {
            return vec![page(core, features, list, 0, &[], false)].into();
        }
        let mut after = 0;
        let chunks = all.chunks(size).enumerate();
        chunks
            .map(|(i, chunk)| {
                let page = page(core, features, list, after, chunk, (i + 1) * size < all.len());
                after = chunk[chunk.len() - 1].seq;
                page
            })
            .collect()
    });
    let result = match pages.binary_search_by_key(&after, |p| p.after) {
        Ok(at) => pages[at].result.clone(),
        // The list changed since the cursor was issued: the pages moved, but the cursor still marks its position.
        Err(_) => {
            let rest: Vec<_> = entries().filter(|e| e.seq > after).collect();
            let size = if core.limits.lists.page_items_max == 0 {
                rest.len()
            } else {
                core.limits.lists.page_items_max.min(rest.len())
            };
            page(core, features, list, after, &rest[..size], size < rest.len()).result
        }
    };
    Reply::with_result(&request.id, result)
}

fn page<T>(
    core: &RunningServer,
    features: &'static Features,
    list: &List<T>,
    after: u64,
    entries: &[&Arc<Entry<T>>],
    more: bool,
) -> Page {
    let mut out = ResultWriter::new(&Id::number(0), features, &core.stamps, usize::MAX);
    out.key(list.member);
    out.push(b"[");
    for (i, entry) in entries.iter().enumerate() {
        if i > 0 {
            out.push(b",");
        }
        if let Err(e) = (list.write)(&entry.item, features, &mut out) {
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
    core.cache_hints(&mut out, core.list_cache);
    Page { after, result: Bytes::from(out.finish(ReplyKind::Complete).body().to_owned()) }
}
