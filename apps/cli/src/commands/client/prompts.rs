//! `linchpin prompts`: lists prompts.

use super::plain::Plain;
use super::refusals::refused;
use crate::client::session;
use crate::fail::Failure;
use crate::show::bar::busy;
use crate::show::describe;
use crate::show::out::Out;
use linchpin_core::exact;
use serde_json::json;

pub(crate) fn run(args: Plain) -> Result<(), Failure> {
    session::run(&args.talk, args.resolve()?, async |session| {
        let prompts = busy("listing prompts", session.connection.prompts()).await.map_err(|e| session.told(&e))?;
        let mut out = Out::new();
        if args.talk.json {
            out.json(&json!({ "prompts": exact::of(&prompts.items) }))?;
        } else {
            for prompt in prompts.iter() {
                out.line(describe::prompt(prompt, out.style))?;
            }
            out.summary(&[(prompts.len(), "prompt")])?;
        }
        out.flush()?;
        refused("prompt", &prompts.refused);
        Ok(())
    })
}
