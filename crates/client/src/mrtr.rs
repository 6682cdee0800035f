//! Multi-round-trip requests: input that the server requires is gathered, and the request is retried.
//!
//! Specification: 2026-07-28 "Multi Round-Trip Requests"; for the URLs of an error 2025-11-25 "Elicitation".

use crate::connection_state::ConnectionState;
use crate::error::{Error, ErrorKind};
use crate::lock::lock;
use crate::request_parts::Round;
use crate::request_parts::{Options, RequestParts};
use crate::response::Response;
use crate::result::unexpected;
use crate::{Result, list};
use linchpin_proto::message_writer::one_line;
use linchpin_types::elicit::ElicitRequestURLParams;
use linchpin_types::error::code;
use linchpin_types::page::ResultType;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One input request.
#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Sends a request and retries as often as needed. Also returns the number of retries.
pub(crate) async fn run(
    core: &Arc<ConnectionState>,
    request: &RequestParts,
    options: &Options,
    rounds: bool,
) -> Result<(Response, u32)> {
    let tool = (request.method == "tools/call").then(|| request.about.as_deref().unwrap_or_default());
    if let Some(why) = tool.and_then(|name| core.tools.refused(name)) {
        let why = format!("the tool `{}` was refused: {why}", tool.unwrap_or_default());
        return Err(Error::new(ErrorKind::InvalidTool, why));
    }
    let limit = core.config.limits.round_trips.per_request_max;
    let (mut round, mut listed) = (Round::default(), false);
    for number in 0..=limit {
        let answer = core.exchange(request, options, &round).await;
        match answer {
            // The headers that mirror arguments are only known from the list of tools.
            Err(e) if e.is_rpc(code::HEADER_MISMATCH) && tool.is_some() && !listed => {
                listed = true;
                list::learn_tools(core).await?;
            }
            Err(e) if e.is_rpc(code::URL_ELICITATION_REQUIRED) && rounds => {
                if !visit(core, e.rpc().and_then(|error| error.data.as_deref())).await {
                    return Err(e);
                }
            }
            Ok(response) if rounds && response.result_type == ResultType::InputRequired => {
                // Nobody is asked for what is not sent any more.
                if number == limit {
                    break;
                }
                round = answer_all(core, &response).await?;
            }
            Ok(response) => return Ok((response, number)),
            Err(e) => return Err(e),
        }
    }
    let why = format!("the server asked for input again after {limit} round trips, which is the limit");
    Err(Error::new(ErrorKind::TooManyRoundTrips, why))
}

/// Validates a structured result against the schema of its tool, if the host enabled that.
#[cfg(feature = "validate")]
pub(crate) async fn check(core: &Arc<ConnectionState>, tool: Option<&str>, response: &Response) -> Result<()> {
    let Some(tool) = tool.filter(|_| core.config.check_results) else { return Ok(()) };
    if !core.tools.is_complete() {
        list::tools(core).await?;
    }
    let failed = response.member(|members| members.is_error) == Some("true");
    check_known(core, Some(tool), response.member(|members| members.structured_content), failed)
}

/// Validates a structured result, JSON text, against the schema of its tool, if that is known and the host enabled it.
#[cfg(feature = "validate")]
pub(crate) fn check_known(
    core: &ConnectionState,
    tool: Option<&str>,
    structured: Option<&str>,
    failed: bool,
) -> Result<()> {
    let Some(tool) = tool.filter(|_| core.config.check_results && !failed) else { return Ok(()) };
    let Some(output) = core.tools.output(tool) else { return Ok(()) };
    match structured {
        None => {
            let why = format!("`{tool}` declares structured results and answered without one");
            Err(Error::new(ErrorKind::InvalidResponse, why))
        }
        Some(json) => output.check(json).map_err(|why| {
            let why = format!("the result of `{tool}` does not fit its own schema: {why}");
            Error::new(ErrorKind::InvalidResponse, why)
        }),
    }
}

#[cfg(not(feature = "validate"))]
pub(crate) fn check_known(_: &ConnectionState, _: Option<&str>, _: Option<&str>, _: bool) -> Result<()> {
    Ok(())
}

#[cfg(not(feature = "validate"))]
pub(crate) async fn check(_: &Arc<ConnectionState>, _: Option<&str>, _: &Response) -> Result<()> {
    Ok(())
}

/// Handles all input requests, one after the other.
async fn answer_all(core: &Arc<ConnectionState>, response: &Response) -> Result<Round> {
    let present = |member: Option<&str>| member.filter(|json| *json != "null").map(str::to_owned);
    let state = present(response.member(|members| members.request_state));
    let wanted = present(response.member(|members| members.input_requests));
    let wanted = wanted.map(|json| serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(&json)).transpose();
    let wanted = wanted.map_err(|e| unexpected("the result that asks for input", e))?;
    let server = core.server_name();
    let mut responses = wanted.as_ref().map(|_| String::from("{"));
    for (key, request) in wanted.into_iter().flatten() {
        let answer = answer_one(core, &server, &key, &request).await?;
        if let Some(out) = &mut responses {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&serde_json::Value::String(key).to_string());
            out.push(':');
            out.push_str(&answer);
        }
    }
    if let Some(out) = &mut responses {
        out.push('}');
    }
    Ok(Round { responses, state })
}

/// Puts one question to the host. Returns its answer as JSON text on one line.
pub(crate) async fn answer_one(
    core: &Arc<ConnectionState>,
    server: &str,
    key: &str,
    request: &RawValue,
) -> Result<String> {
    let limit = Duration::from_millis(core.config.limits.server_requests.response_ms_max);
    let unreadable = |e: &dyn std::fmt::Display| {
        let why = format!("the server asks for `{key}` in a way that cannot be read: {e}");
        Error::new(ErrorKind::InvalidResponse, why)
    };
    let asked: Asked<'_> = serde_json::from_str(request.get()).map_err(|e| unreadable(&e))?;
    let params = asked.params.map_or("{}", RawValue::get);
    let question = core.config.answers.question(&asked.method, params).map_err(|(_, why)| unreadable(&why))?;
    let answer = tokio::time::timeout(limit, core.config.answers.answer(server, question)).await.map_err(|e| {
        let why = format!("no answer to `{key}` within {} ms", limit.as_millis());
        Error::with_source(ErrorKind::Input, why, e)
    })?;
    Ok(one_line(&answer.map_err(|unanswered| unanswered.error)?).into_owned())
}

/// Sends the user to the URLs of an error, and waits until the server completes the elicitations. Returns whether the
/// call is worth another attempt.
async fn visit(core: &Arc<ConnectionState>, data: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct Data {
        #[serde(default)]
        elicitations: Vec<ElicitRequestURLParams>,
    }
    let Some(data) = data.and_then(|data| serde_json::from_str::<Data>(data.get()).ok()) else { return false };
    let mut waiting: Vec<String> = data.elicitations.iter().filter_map(|asked| asked.elicitation_id.clone()).collect();
    let server = core.server_name();
    if data.elicitations.is_empty() || !core.config.answers.urls(&server, data.elicitations).await {
        return false;
    }
    let done = async {
        loop {
            let changed = core.visited.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut ids = lock(&core.visited.ids);
                waiting.retain(|id| !ids.remove(id));
            }
            if waiting.is_empty() {
                return;
            }
            changed.await;
        }
    };
    let limit = Duration::from_millis(core.config.limits.server_requests.response_ms_max);
    tokio::time::timeout(limit, done).await.is_ok()
}
