//! `linchpin tools`: lists tools.

use super::plain::Plain;
use super::refusals::refused;
use crate::client::session;
use crate::fail::Failure;
use crate::show::bar::busy;
use crate::show::describe;
use crate::show::out::Out;
use clap::Args;
use linchpin_core::exact;
use serde_json::json;

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// Show all arguments.
    #[arg(short, long)]
    long: bool,

    #[command(flatten)]
    plain: Plain,
}

pub(crate) fn run(args: ToolsArgs) -> Result<(), Failure> {
    session::run(&args.plain.talk, args.plain.resolve()?, async |session| {
        let tools = busy("listing tools", session.connection.tools()).await.map_err(|e| session.told(&e))?;
        let mut out = Out::new();
        if args.plain.talk.json {
            out.json(&json!({ "tools": exact::of(&tools.items) }))?;
        } else {
            for tool in tools.iter() {
                let style = out.style;
                let text = if args.long { describe::tool(tool, style) } else { describe::tool_line(tool, style) };
                out.entry(text)?;
            }
            out.summary(&[(tools.len(), "tool")])?;
        }
        out.flush()?;
        refused("tool", &tools.refused);
        Ok(())
    })
}
