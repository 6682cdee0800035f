//! Organizations, projects, teams, releases.

use linchpin_kit::ToolError;
use linchpin_rest::{Answer, Args, Ask, Rest};

pub(crate) async fn find(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let path = match args.text("kind") {
        "organizations" => "/organizations/",
        "projects" => "/organizations/{organization}/projects/",
        "teams" => "/organizations/{organization}/teams/",
        _ => "/organizations/{organization}/releases/",
    };
    let mut ask = Ask::get(path).fill(&args).query("per_page", "100");
    if args.get("query").is_some() {
        ask = ask.query("query", args.text("query"));
    }
    Ok(rest.send(ask).await?.json()?.into())
}
