//! The rounds of a call: a server that wants input first is given it, and asked again.
//!
//! Specification: 2026-07-28 "Multi Round-Trip Requests"; for the URLs of an error 2025-11-25 "Elicitation".

use crate::core::{Core, Options, Request, Response, lock};
use crate::error::Error;
use crate::result::unexpected;
use crate::{Result, list};
use linchpin_proto::outgoing::{Members, one_line};
use linchpin_types::elicit::ElicitRequestURLParams;
use linchpin_types::error::code;
use linchpin_types::mrtr::InputRequest;
use linchpin_types::page::ResultType;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What the next attempt carries beside the request itself.
#[derive(Default)]
pub(crate) struct Round {
    /// `inputResponses`, as JSON text.
    responses: Option<String>,
    /// `requestState`, as the JSON text that the server sent.
    state: Option<Box<RawValue>>,
}

impl Round {
    pub(crate) fn write(&self, members: &mut Members) {
        if let Some(responses) = &self.responses {
            members.raw("inputResponses", responses);
        }
        if let Some(state) = &self.state {
            members.raw("requestState", state.get());
        }
    }
}

/// A result that wants input.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wanted {
    #[serde(default)]
    input_requests: Option<BTreeMap<String, Box<RawValue>>>,
    #[serde(default)]
    request_state: Option<Box<RawValue>>,
}

/// Makes a request, with as many rounds as it takes. Also tells how many it took beyond the first.
pub(crate) async fn run(
    core: &Arc<Core>,
    request: &Request,
    options: &Options,
    rounds: bool,
) -> Result<(Response, u32)> {
    let tool = (request.method == "tools/call").then(|| request.about.as_deref().unwrap_or_default());
    if let Some(why) = tool.and_then(|name| core.tools.refused(name)) {
        return Err(Error::Tools(format!("the tool `{}` was refused: {why}", tool.unwrap_or_default())));
    }
    let limit = core.recipe.limits.rounds_max;
    let (mut round, mut listed) = (Round::default(), false);
    for number in 0..=limit {
        let answer = core.exchange(request, options, &round).await;
        match answer {
            // Headers that repeat arguments are only known from the list of tools.
            Err(Error::Refused(e)) if e.code == code::HEADER_MISMATCH && tool.is_some() && !listed => {
                listed = true;
                list::learn_tools(core).await?;
            }
            Err(Error::Refused(e)) if e.code == code::URL_ELICITATION_REQUIRED && rounds => {
                if !visit(core, e.data.as_deref()).await {
                    return Err(Error::Refused(e));
                }
            }
            Ok(response) if rounds && response.result_type == ResultType::InputRequired => {
                let wanted = serde_json::from_str(response.text());
                let wanted = wanted.map_err(|e| unexpected("the result that asks for input", &e))?;
                round = answer_all(core, wanted).await?;
            }
            Ok(response) => {
                check(core, tool, &response).await?;
                return Ok((response, number));
            }
            Err(e) => return Err(e),
        }
    }
    Err(Error::Rounds(limit))
}

/// Holds a structured result against the schema its tool declared, where the host wants that.
#[cfg(feature = "validate")]
async fn check(core: &Arc<Core>, tool: Option<&str>, response: &Response) -> Result<()> {
    let Some(tool) = tool.filter(|_| core.recipe.check_results) else { return Ok(()) };
    if !core.tools.is_complete() {
        list::tools(core).await?;
    }
    let Some(output) = core.tools.output(tool) else { return Ok(()) };
    let result = crate::CallResult::read(response.text().into())?;
    match result.structured() {
        _ if result.is_error() => Ok(()),
        None => Err(Error::Unexpected(format!("`{tool}` declares structured results and answered without one"))),
        Some(json) => output
            .check(json)
            .map_err(|why| Error::Unexpected(format!("the result of `{tool}` does not fit its own schema: {why}"))),
    }
}

#[cfg(not(feature = "validate"))]
async fn check(_: &Arc<Core>, _: Option<&str>, _: &Response) -> Result<()> {
    Ok(())
}

/// Answers every question, one after the other, as a person would be asked.
async fn answer_all(core: &Arc<Core>, wanted: Wanted) -> Result<Round> {
    let server = core.latest().and_then(|live| live.agreed.server.clone());
    let server = server.map_or_else(|| core.dial.name(), |server| server.name);
    let mut responses = wanted.input_requests.as_ref().map(|_| String::from("{"));
    let limit = Duration::from_millis(core.recipe.limits.ask_ms_max);
    for (key, request) in wanted.input_requests.into_iter().flatten() {
        let question: InputRequest = serde_json::from_str(request.get())
            .map_err(|e| Error::Ask(format!("the server asks for `{key}` in a way that cannot be read: {e}")))?;
        let answer = tokio::time::timeout(limit, core.recipe.answers.answer(&server, question))
            .await
            .map_err(|_| Error::Ask(format!("nobody answered `{key}` within {} ms", limit.as_millis())))?
            .map_err(Error::Ask)?;
        if let Some(out) = &mut responses {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&serde_json::Value::String(key).to_string());
            out.push(':');
            out.push_str(&one_line(&answer));
        }
    }
    if let Some(out) = &mut responses {
        out.push('}');
    }
    Ok(Round { responses, state: wanted.request_state })
}

/// Sends the person to the URLs that an error names, and waits until the server says that it is done with them. Whether
/// the call is worth another attempt.
async fn visit(core: &Arc<Core>, data: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct Data {
        #[serde(default)]
        elicitations: Vec<ElicitRequestURLParams>,
    }
    let Some(data) = data.and_then(|data| serde_json::from_str::<Data>(data.get()).ok()) else { return false };
    let mut waiting: Vec<String> = data.elicitations.iter().filter_map(|asked| asked.elicitation_id.clone()).collect();
    let server =
        core.latest().and_then(|live| live.agreed.server.clone()).map_or_else(String::new, |server| server.name);
    if data.elicitations.is_empty() || !core.recipe.answers.urls(&server, data.elicitations).await {
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
    let limit = Duration::from_millis(core.recipe.limits.ask_ms_max);
    tokio::time::timeout(limit, done).await.is_ok()
}
