//! Arguments that tools of an upstream over HTTP want repeated in headers.

use crate::call::Outlet;
use crate::exchange::{begin, exchange};
use crate::instance::Instance;
use crate::lock;
use linchpin_core::json::read_str;
use linchpin_core::message::{Kind, Request};
use linchpin_core::service::HeaderParam;
use linchpin_core::{Answer, Id, Method};
use linchpin_proto::http::headers::header_params;
use linchpin_proto::http::request_headers::mirror;
use linchpin_proto::message_writer::{Extras, Writer};
use linchpin_proto::translate::error::Seen;
use linchpin_proto::translate::{self, Claims};
use linchpin_types::error::code;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Pages of a list of tools that are read.
const PAGES_MAX: usize = 1_000;

/// Tools that are remembered; beyond that, all are forgotten.
const TOOLS_MAX: usize = 100_000;

/// A page of a list of tools.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<Definition<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input_schema: &'a RawValue,
}

/// Arguments to be repeated in headers; `None` if the tool says it in a wrong way.
type Params = Option<Arc<[HeaderParam]>>;

/// Which arguments tools of an upstream over HTTP want repeated in headers; `None` of those that say it in a wrong way. Lists
/// that pass by are read, and one is asked for when a call was refused for their lack.
#[derive(Default)]
pub(crate) struct Mirrored(Mutex<HashMap<Box<str>, Params>>);

impl Mirrored {
    /// The arguments that this tool wants repeated, as far as it was listed.
    pub(crate) fn known(&self, tool: &str) -> Option<Arc<[HeaderParam]>> {
        lock(&self.0).get(tool).cloned().flatten().filter(|params| !params.is_empty())
    }

    /// Whether the tool says in a wrong way what it wants repeated. Clients must not call it.
    pub(crate) fn is_wrong(&self, tool: &str) -> bool {
        lock(&self.0).get(tool).is_some_and(Option::is_none)
    }

    /// Whether the upstream compares headers with arguments.
    pub(crate) fn compares(instance: &Instance) -> bool {
        instance.features().header_params && instance.raw().transport.attributes()
    }

    /// The headers of a call for a client that sends none itself, as far as its tool is known.
    pub(crate) fn headers(&self, request: &Request, instance: &Instance) -> Vec<(Box<str>, String)> {
        if request.known() != Some(Method::ToolsCall) || !Mirrored::compares(instance) {
            return Vec::new();
        }
        let params = request.string(request.params.name).and_then(|name| self.known(&name));
        let arguments = request.params.arguments.map(|span| request.text(span));
        params.zip(arguments).map(|(params, arguments)| mirror(&params, arguments)).unwrap_or_default()
    }

    /// Learns from a list of tools that passes by. Returns whether any of them may want arguments repeated.
    pub(crate) fn listed(&self, result: &str) -> bool {
        let any = result.contains("\"x-mcp-header\"");
        // A tool that was known may have changed.
        if (any || !lock(&self.0).is_empty())
            && let Ok(page) = serde_json::from_str::<Page<'_>>(result)
        {
            self.keep(&page);
        }
        any
    }

    fn keep(&self, page: &Page<'_>) {
        let mut known = lock(&self.0);
        if known.len() >= TOOLS_MAX {
            known.clear();
        }
        for tool in &page.tools {
            let params = header_params(tool.input_schema.get()).ok();
            known.insert(tool.name.as_ref().into(), params.map(Into::into));
        }
    }

    /// The headers of a call that was refused because it lacks them.
    pub(crate) async fn wanted(
        &self,
        limit_ms: u64,
        request: &Request,
        instance: &Arc<Instance>,
        answer: &Answer,
        claims: Claims<'_>,
    ) -> Option<Vec<(Box<str>, String)>> {
        let Kind::Response { outcome: Err(span), .. } = &answer.message.kind else { return None };
        let code = Seen::read(answer.message.text(*span)).code;
        if code != code::HEADER_MISMATCH || request.known() != Some(Method::ToolsCall) {
            return None;
        }
        let name = request.string(request.params.name)?;
        // Boxed, to keep the future of a call small.
        Box::pin(self.learn(limit_ms, request, instance, claims)).await;
        let params = lock(&self.0).get(&*name).cloned().flatten()?;
        let arguments = request.params.arguments.map(|span| request.text(span))?;
        Some(mirror(&params, arguments))
    }

    /// Reads the list of tools.
    async fn learn(&self, limit_ms: u64, request: &Request, instance: &Arc<Instance>, claims: Claims<'_>) {
        let own = translate::claims(instance.features(), "{}", request.caller.client_info_json(), None);
        let meta = match claims {
            Claims::Say(said) => String::from_utf8_lossy(said).into_owned(),
            Claims::Keep | Claims::Drop => String::from_utf8_lossy(&own).into_owned(),
        };
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let outlet = Outlet::new(Id::unknown(), None, false, false);
            let Ok(mut pending) = begin(instance, &outlet) else { return };
            let mut out = Writer::opening().request(pending.id, "tools/list", Extras::default(), |members| {
                cursor.iter().for_each(|cursor| members.text("cursor", cursor));
                members.raw("_meta", &format!("{{{meta}}}"));
            });
            out.features = Some(instance.features());
            let Ok(answer) = exchange(limit_ms, instance, &outlet, &mut pending, out).await else { return };
            let Kind::Response { outcome: Ok(span), .. } = &answer.message.kind else { return };
            let Ok(page) = serde_json::from_str::<Page<'_>>(answer.message.text(*span)) else { return };
            self.keep(&page);
            let next = answer.message.result().next_cursor.and_then(|span| read_str(answer.message.text(span)));
            // A cursor that is given again leads nowhere.
            let Some(next) = next.filter(|next| cursor.as_deref() != Some(&**next)) else { return };
            cursor = Some(next.into_owned());
        }
    }
}
